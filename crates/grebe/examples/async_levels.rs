//! A tokio program that watches a stream during its recording. The task receives batches by `await`, and prints ten times per
//! second the peak of each channel. A slow task loses batches, which are counted. The recording is lossless.
//!
//! `cargo run -p grebe --example async_levels -- capture.sigmf-meta [udp://:5000]`; Ctrl-C ends it. Without a source it records
//! two seconds of a generator.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use grebe::flow::{Graph, QueueOptions};
use grebe::frame::{Batch, ChannelError};
use grebe::process::synth::Synth;
use grebe::stages::{SinkOptions, SourceOptions, Uri, open_sink, open_source};
use tokio::time::{MissedTickBehavior, interval};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut arguments = std::env::args().skip(1);
    let recording = arguments.next().ok_or("where to? for example capture.sigmf-meta")?;
    let synth =
        Synth { channels: 2, samples: Some("2M".parse()?), amplitude: vec![0.5].into(), ..Synth::default() };
    let source = match arguments.next() {
        Some(uri) => uri.parse()?,
        None => Uri::Synth(Box::new(synth)),
    };
    let watched = watch(&source, Path::new(&recording), |peaks| println!("{peaks:?}")).await?;
    let Watched { recorded, seen, dropped } = watched;
    println!("{recorded} frames recorded; the task saw {seen}, and {dropped} were dropped for it");
    Ok(())
}

/// Counts of frames: recorded, seen by the task, and dropped for it.
struct Watched {
    recorded: u64,
    seen: u64,
    dropped: u64,
}

/// Records a stream, and passes the peaks of each tenth of a second to `show`.
async fn watch(
    source: &Uri,
    recording: &Path,
    mut show: impl FnMut(&[u16]),
) -> Result<Watched, Box<dyn Error + Send + Sync>> {
    let mut notify = |notice| eprintln!("{notice}");
    let source = open_source(source, SourceOptions::default(), &mut notify)?;
    let sink = open_sink(&recording.display().to_string().parse()?, &SinkOptions::default(), &mut notify)?;

    let mut graph = Graph::new();
    let source = graph.add_boxed("source", source.stage);
    let sink = graph.add_boxed("recorder", sink.stage);
    graph.connect(source, sink, QueueOptions::block(256));
    let mut batches = graph.connect_async(source, "levels", QueueOptions::drop_oldest(64));
    let running = graph.start()?;

    let (mut peaks, mut seen) = (Vec::new(), 0);
    let mut tenth = interval(Duration::from_millis(100));
    tenth.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let is_stopped = loop {
        tokio::select! {
            // Dropping this future in favour of another branch loses nothing.
            batch = batches.next() => match batch {
                Some(batch) => {
                    seen += batch.len() as u64;
                    raise(&mut peaks, &batch)?;
                }
                None => break false,
            },
            _ = tenth.tick(), if !peaks.is_empty() => {
                show(&peaks);
                peaks.clear();
            }
            _ = tokio::signal::ctrl_c() => break true,
        }
    };
    // Both wait for threads, so they must not run on the thread of tasks.
    let end = move || if is_stopped { running.stop() } else { running.wait() };
    let snapshot = tokio::task::spawn_blocking(end).await??;
    let recorded = snapshot.stage("recorder").map_or(0, |stage| stage.frames_in);
    Ok(Watched { recorded, seen, dropped: batches.counts().1 })
}

/// Raises the peak of each channel to that of a batch. Refuses other formats than i16.
fn raise(peaks: &mut Vec<u16>, batch: &Batch) -> Result<(), ChannelError> {
    for frame in batch.frames() {
        let channels = frame.header().channel_count as usize;
        peaks.resize(peaks.len().max(channels), 0);
        for (channel, peak) in peaks.iter_mut().enumerate().take(channels) {
            let greatest = frame.channel::<i16>(channel)?.iter().map(|sample| sample.unsigned_abs()).max();
            *peak = greatest.unwrap_or_default().max(*peak);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use grebe::recording::SampleFile;

    use super::*;

    #[tokio::test]
    async fn the_task_sees_what_is_recorded_but_for_what_was_dropped_for_it()
    -> Result<(), Box<dyn Error + Send + Sync>> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("tone.sigmf-meta");
        let amplitude = vec![0.5].into();
        let synth = Synth { channels: 2, samples: Some("400k".parse()?), amplitude, ..Synth::default() };
        let mut shown = Vec::new();
        let watched = watch(&Uri::Synth(Box::new(synth)), &path, |peaks| shown.push(peaks.to_vec())).await?;
        assert!(watched.seen > 0);
        assert_eq!(watched.seen + watched.dropped, watched.recorded);
        assert!(shown.iter().all(|peaks| matches!(peaks[..], [1..16_500, 1..16_500])), "{shown:?}");
        assert_eq!(SampleFile::open(&path)?.channels(), 2);
        Ok(())
    }
}
