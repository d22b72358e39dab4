//! Reads a live stream, and prints the position and the peak of each batch. The loop is a stage of its own.
//!
//! `cargo run -p grebe --example live_stream -- udp://:5000`; any [URI](grebe::stages::Uri) works.

use std::error::Error;

use grebe::prelude::*;

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let uri = std::env::args().nth(1).ok_or("usage: live_stream URI")?;
    read(&uri.parse()?, |first_sample_index, peak| println!("{first_sample_index}: {peak}"))
}

/// Calls `show` with the first sample's index and the peak of each frame, until the stream ends.
fn read(uri: &Uri, show: impl FnMut(u64, u16) + Send + 'static) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut notify = |notice| eprintln!("{notice}");
    let source = open_source(uri, SourceOptions::default(), &mut notify)?;

    let mut graph = Graph::new();
    let source = graph.add_boxed("source", source.stage);
    let reader = graph.add("reader", Reader(show));
    // A slow reader loses the oldest batches, and the stream continues.
    graph.connect(source, reader, QueueOptions::drop_oldest(64));
    let snapshot = graph.start()?.wait()?;
    eprintln!("{} frames", snapshot.stage("reader").map_or(0, |stage| stage.frames_in));
    Ok(())
}

struct Reader<F>(F);

impl<F: FnMut(u64, u16) + Send> Stage for Reader<F> {
    fn process(
        &mut self,
        input: &mut Inputs,
        _: &mut Outputs,
        _: &mut Context,
    ) -> Result<Outcome, StageError> {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        for frame in batch.frames() {
            let mut peak = 0;
            for channel in 0..frame.header().channel_count as usize {
                // Borrowed from the frame. An error if the stream has another format than i16.
                let samples = frame.channel::<i16>(channel)?;
                peak = samples.iter().map(|sample| sample.unsigned_abs()).max().unwrap_or(0).max(peak);
            }
            (self.0)(frame.header().first_sample_index, peak);
        }
        Ok(Outcome::Produced)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn every_frame_has_its_peak() -> Result<(), Box<dyn Error + Send + Sync>> {
        let (sender, shown) = channel();
        let uri = "synth:square?channels=3&samples=20k&amplitude=0.5".parse()?;
        read(&uri, move |index, peak| sender.send((index, peak)).unwrap())?;
        let shown: Vec<_> = shown.into_iter().collect();
        assert!(
            !shown.is_empty() && shown.iter().all(|(_, peak)| (16_000..=16_500).contains(peak)),
            "{shown:?}"
        );
        assert!(shown.is_sorted_by_key(|(index, _)| *index));
        Ok(())
    }
}
