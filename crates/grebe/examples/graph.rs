//! Connects stages: a source, a gain, and two sinks with a queue policy each. The recording is lossless, and the
//! network never holds it up.
//!
//! `cargo run -p grebe --example graph -- synth:sine?samples=10M capture.sigmf-meta udp://127.0.0.1:5000`

use std::error::Error;

use grebe::prelude::*;
use grebe::process::Gain;

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [source, recording, network] = &arguments[..] else {
        return Err("usage: graph SOURCE RECORDING NETWORK (three URIs)".into());
    };
    let frames = run(&source.parse()?, &recording.parse()?, &network.parse()?)?;
    println!("{frames} frames recorded");
    Ok(())
}

fn run(from: &Uri, recording: &Uri, network: &Uri) -> Result<u64, Box<dyn Error + Send + Sync>> {
    let mut notify = |notice| eprintln!("{notice}");
    let source = open_source(from, SourceOptions::default(), &mut notify)?;
    let recorder = open_sink(recording, &SinkOptions::default(), &mut notify)?;
    let sender = open_sink(network, &SinkOptions::default(), &mut notify)?;
    let gain = Gain { gain: vec![0.5].into(), offset: vec![0.0].into() }.build(&mut Site::new("gain"))?;

    let mut graph = Graph::new();
    let source = graph.add_boxed("source", source.stage);
    let gain = graph.add_boxed("gain", gain);
    let recorder = graph.add_boxed("recorder", recorder.stage);
    let sender = graph.add_boxed("sender", sender.stage);
    graph.connect(source, gain, QueueOptions::block(64));
    graph.connect(gain, recorder, QueueOptions::block(64));
    graph.connect(gain, sender, QueueOptions::drop_oldest(64));
    let snapshot = graph.start()?.wait()?;
    Ok(snapshot.stage("recorder").map_or(0, |stage| stage.frames_in))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recording_has_every_sample_at_half_the_amplitude() -> Result<(), Box<dyn Error + Send + Sync>> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("x.sigmf-meta");
        let to = Uri::File(path.clone());
        let from = "synth:square?channels=1&samples=100k&amplitude=0.5".parse()?;
        assert!(run(&from, &to, &"udp://127.0.0.1:9".parse()?)? > 0);
        let mut file = SampleFile::open(&path)?;
        assert_eq!(file.len_samples(), 100_000);
        let block = file.block(0, 100_000)?;
        assert!(block.channel::<i16>(0)?.iter().all(|sample| sample.unsigned_abs().abs_diff(8_192) < 100));
        Ok(())
    }
}
