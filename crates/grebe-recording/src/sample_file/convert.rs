//! A recording whose samples are read as another format.

use std::sync::Arc;

use grebe_frame::SampleFormat;
use grebe_process::{Conversion, Scaling, check_conversion};

use super::SampleFile;
use super::converted::Converted;
use super::window::Window;
use crate::error::{Error, ProcessError};

impl SampleFile {
    /// The same samples in another format, as the stage `convert` makes them.
    ///
    /// # Errors
    /// [`Error::Process`] where real samples are to become complex, or complex ones real.
    pub fn convert_to(mut self, to: SampleFormat, scaling: Scaling) -> Result<Self, Error> {
        let from = self.format;
        check_conversion(from, to).map_err(|what| ProcessError::Takes { what })?;
        if from == to || self.converted.is_some() {
            return Ok(self);
        }
        let said = self.descriptions.first().map(|(_, description)| description.clone());
        let conversion = Conversion::new(from, to, scaling, said.as_deref());
        for (_, description) in &mut self.descriptions {
            *description = Arc::new(conversion.describe(description));
        }
        self.format = to;
        let window = Window::new(from.bytes(), self.channels, self.len_samples);
        self.converted = Some(Converted { conversion, from, window, saturated_samples: 0 });
        Ok(self.reopen())
    }

    /// Components of the samples read so far that the format they were converted to cannot hold.
    pub fn saturated_samples(&self) -> u64 {
        self.converted.as_ref().map_or(0, |converted| converted.saturated_samples)
    }
}

#[cfg(test)]
mod tests {
    use grebe_frame::SampleFormat;
    use grebe_process::Scaling;

    use crate::SampleFile;
    use crate::error::{Error, ProcessError};

    #[test]
    fn samples_are_read_as_another_format_and_mean_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.i16");
        let samples: Vec<i16> = (0..200_000).map(|at| (at * 7) as i16).collect();
        std::fs::write(&path, samples.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<u8>>()).unwrap();
        let open = || SampleFile::open(format!("{}?channels=2&rate=1k", path.display())).unwrap();
        let mut floats = open().convert_to(SampleFormat::F32, Scaling::Full).unwrap();
        for (position, length) in [(0, 10), (50_000, 3_000), (99_990, 10), (5, 100)] {
            let block = floats.block(position, length).unwrap();
            for channel in 0..2 {
                let expected =
                    |at: usize| f32::from(samples[2 * (position as usize + at) + channel]) / 32_768.0;
                let got = block.channel::<f32>(channel).unwrap();
                assert!(got.iter().enumerate().all(|(at, &got)| got == expected(at)), "{position} {channel}");
            }
        }
        assert_eq!(floats.saturated_samples(), 0);
        let mut bytes = open().convert_to(SampleFormat::I8, Scaling::Counts).unwrap();
        bytes.block(0, 100_000).unwrap();
        assert!(bytes.saturated_samples() > 190_000, "{}", bytes.saturated_samples());
        let refused = open().convert_to(SampleFormat::Cf32, Scaling::Full);
        assert!(matches!(refused, Err(Error::Process(ProcessError::Takes { .. }))), "{refused:?}");
    }
}
