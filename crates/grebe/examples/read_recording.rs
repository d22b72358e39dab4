//! Reads a recording of any format, and prints the peak of each channel.
//!
//! `cargo run -p grebe --example read_recording -- examples/data/ecg.sigmf-meta`

use std::error::Error;

use grebe::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: read_recording FILE")?;
    let mut file = SampleFile::open(path)?;
    let rate = file.rate_hz().map_or("unknown rate".to_owned(), |rate_hz| format!("{rate_hz} samples/s"));
    println!("{} in {} channels, {} samples, {rate}", file.format(), file.channels(), file.len_samples());
    println!("peaks: {:?}", peaks(&mut file)?);
    Ok(())
}

/// Largest magnitude per channel, read in blocks.
fn peaks(file: &mut SampleFile) -> Result<Vec<f32>, Box<dyn Error>> {
    let (mut peaks, mut numbers) = (vec![0.0f32; file.channels()], Vec::new());
    // Within a segment the samples are continuous. Between two segments there is a gap.
    for segment in file.segments().to_vec() {
        let (mut position, end) = (segment.position, segment.position + segment.length_samples);
        while position < end {
            let block = file.block(position, (end - position).min(65_536) as usize)?;
            for (channel, peak) in peaks.iter_mut().enumerate() {
                block.numbers(channel, &mut numbers)?;
                *peak = numbers.iter().fold(*peak, |peak, number| peak.max(number.abs()));
            }
            position += block.len_samples() as u64;
        }
    }
    Ok(peaks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_are_those_of_the_whole_file() -> Result<(), Box<dyn Error>> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("x.sigmf-meta");
        let settings = SigmfSettings { channels: 2, ..SigmfSettings::default() };
        let mut writer = SigmfWriter::create(&path, &settings)?;
        writer.write(0, &[&vec![3i16; 70_000], &vec![-4; 70_000]])?;
        writer.write(80_000, &[&[-9i16], &[8]])?;
        writer.finish()?;
        let mut file = SampleFile::open(&path)?;
        assert_eq!((peaks(&mut file)?, file.rate_hz()), (vec![9.0, 8.0], None));
        Ok(())
    }
}
