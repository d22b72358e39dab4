//! Writes a second of a 440 Hz sine as a SigMF recording.
//!
//! `cargo run -p grebe --example write_recording -- tone.sigmf-meta`

use std::error::Error;
use std::path::Path;

use grebe::prelude::*;

const RATE_HZ: f64 = 48_000.0;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: write_recording NAME.sigmf-meta")?;
    write(path.as_ref())
}

fn write(path: &Path) -> Result<(), Box<dyn Error>> {
    let settings = SigmfSettings { channels: 1, sample_rate_hz: RATE_HZ, ..SigmfSettings::default() };
    let mut writer = SigmfWriter::create(path, &settings)?;
    let sample = |index: u64| {
        let phase = 440.0 * index as f64 / RATE_HZ * std::f64::consts::TAU;
        (phase.sin() * 16_000.0).round() as i16
    };
    for first in (0..48_000).step_by(4_800) {
        let block: Vec<i16> = (first..first + 4_800).map(sample).collect();
        // The index places the block. A jump in it would be recorded as a gap.
        writer.write(first, &[&block])?;
    }
    writer.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recording_has_a_second_of_the_tone() -> Result<(), Box<dyn Error>> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("tone.sigmf-meta");
        write(&path)?;
        let mut file = SampleFile::open(&path)?;
        assert_eq!((file.rate_hz(), file.len_samples(), file.segments().len()), (Some(RATE_HZ), 48_000, 1));
        let block = file.block(0, 48_000)?;
        assert_eq!(block.channel::<i16>(0)?.iter().max(), Some(&16_000));
        Ok(())
    }
}
