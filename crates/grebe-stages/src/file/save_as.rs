//! A recording as another kind of file.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grebe_frame::{Description, SampleFormat};
use grebe_ring::Cancel;

use crate::error::Error;
use crate::file::encoding::Encoding;
use crate::file::sample_file::{Block, SampleFile};
use crate::file::sigmf::{SigmfSettings, SigmfWriter, Staged};
use crate::file::wav::{BITS, Header as WavHeader};
use crate::file::{headerless, is_wav};

impl SampleFile {
    /// Writes the recording as another kind of file, by the name of `to`: SigMF, `.wav`, or raw samples (`.cf32`, `.cu8`, ...). Its
    /// samples stay what they are. SigMF keeps gaps, times, descriptions and annotations; the others are refused where there is a gap.
    /// The files, the one to open first.
    ///
    /// ```
    /// use grebe_stages::{Cancel, SampleFile};
    ///
    /// let folder = tempfile::tempdir()?;
    /// let raw = folder.path().join("x.i16");
    /// std::fs::write(&raw, [1, 0, 2, 0])?;
    /// let mut file = SampleFile::open(format!("{}?rate=48k", raw.display()).as_ref())?;
    /// file.save_as(&folder.path().join("x.wav"), false, &Cancel::default())?;
    /// let mut wav = SampleFile::open(&folder.path().join("x.wav"))?;
    /// assert_eq!(wav.block(0, 2)?.channel::<i16>(0)?.as_ref(), [1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// An [`Error`] that names the file: what it cannot hold and what to do, [`Error::Exists`] where it is there and must not be
    /// overwritten, [`Error::Cancelled`]. Of a WAV or a raw file, what was there is as it was then; a SigMF recording holds what
    /// was written until then.
    pub fn save_as(&mut self, to: &Path, overwrite: bool, cancel: &Cancel) -> Result<Vec<PathBuf>, Error> {
        if is_wav(to) {
            let (header, encoding) = self.wav(to)?;
            return self.save_samples(to, Some(header), encoding, overwrite, cancel);
        }
        if headerless::is_raw(to) {
            let encoding = headerless::encoding_to_write(to)?;
            if encoding.format != self.format() {
                let (is, named) = (self.format(), encoding.format);
                let what = format!("its name says {named}, and the samples are {is}: name it NAME.{is}");
                return Err(Error::Field { path: to.into(), what });
            }
            return self.save_samples(to, None, encoding, overwrite, cancel);
        }
        self.save_sigmf(to, overwrite, cancel)
    }

    fn save_sigmf(&mut self, to: &Path, overwrite: bool, cancel: &Cancel) -> Result<Vec<PathBuf>, Error> {
        let settings = SigmfSettings {
            format: self.format(),
            channels: self.channels(),
            sample_rate_hz: self.sample_rate_hz(),
            overwrite,
            ..SigmfSettings::default()
        };
        let mut writer = SigmfWriter::create(to, &settings)?;
        let (mut described, mut labelled) = (None, 0);
        for segment in self.segments().to_vec() {
            let mut position = segment.position;
            let end = segment.position + segment.length_samples;
            while position < end {
                if cancel.is_cancelled() {
                    return Err(Error::Cancelled);
                }
                let number = self.description_number(position);
                if number != described {
                    writer.describe(self.description(position).cloned());
                    described = number;
                }
                let length = self.block_samples().min(end - position).min(self.described_samples(position));
                let first_sample_index = segment.first_sample_index + (position - segment.position);
                let recorded_at = segment.recorded_at.filter(|_| position == segment.position);
                let block = self.block(position, length as usize)?;
                writer.write_block(first_sample_index, &block, recorded_at)?;
                position += length;
            }
            // Behind their segment: where indexes step back, they are those of the newest one.
            while let Some(annotation) = self.annotations().get(labelled).filter(|it| it.position < end) {
                let first = segment.first_sample_index + annotation.position.saturating_sub(segment.position);
                writer.annotate_with(first, annotation.length_samples, annotation.fields.clone())?;
                labelled += 1;
            }
        }
        Ok(writer.finish()?.files)
    }

    /// The header of a WAV of these samples, and how they stand behind it.
    fn wav(&self, to: &Path) -> Result<(WavHeader, Encoding), Error> {
        let refused = |what: String| Err(Error::Field { path: to.into(), what });
        let format = self.format();
        if format.is_complex() || format == SampleFormat::I8 {
            return refused(format!(
                "a WAV cannot hold samples of {format}; convert them, or write NAME.sigmf-meta or NAME.{format}"
            ));
        }
        let rate_hz = self.sample_rate_hz();
        if !(1.0..=f64::from(u32::MAX)).contains(&rate_hz) || rate_hz.fract() != 0.0 {
            return refused(format!("a WAV has a whole number of samples a second, and this has {rate_hz}"));
        }
        let is_24_bit = |description: &Arc<Description>| {
            description.rest.get(BITS).and_then(serde_json::Value::as_u64) == Some(24)
        };
        let of_24_bits = format == SampleFormat::I32 && self.description(0).is_some_and(is_24_bit);
        let encoding = if of_24_bits { Encoding::I24 } else { Encoding::of(format) };
        let header = WavHeader { encoding, channels: self.channels() as u16, sample_rate_hz: rate_hz as u32 };
        Ok((header, encoding))
    }

    /// Writes samples one behind the other, behind a header where there is one.
    fn save_samples(
        &mut self,
        to: &Path,
        header: Option<WavHeader>,
        encoding: Encoding,
        overwrite: bool,
        cancel: &Cancel,
    ) -> Result<Vec<PathBuf>, Error> {
        let gaps = self
            .segments()
            .windows(2)
            .filter(|pair| pair[0].first_sample_index + pair[0].length_samples != pair[1].first_sample_index);
        let gaps = gaps.count();
        if gaps > 0 {
            let what = format!(
                "it cannot say where samples are missing, and {gaps} gaps are in the recording: fill them first (a graph of play, \
                 fill_gaps and record), or write NAME.sigmf-meta"
            );
            return Err(Error::Field { path: to.into(), what });
        }
        if to.exists() && !overwrite {
            return Err(Error::Exists { path: to.into() });
        }
        let mut staged = Staged::default();
        let (file, _) = staged.create(to)?;
        let failed = |source| Error::file("write", to)(source);
        let mut out = BufWriter::new(file);
        let sample_bytes = self.len_samples() * (self.channels() * encoding.sample_bytes()) as u64;
        if let Some(header) = &header {
            out.write_all(&header.bytes(sample_bytes)).map_err(failed)?;
        }
        let (mut bytes, mut position) = (Vec::new(), 0);
        while position < self.len_samples() {
            if cancel.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let length = self.block_samples().min(self.len_samples() - position);
            let block = self.block(position, length as usize)?;
            interleave(&block, encoding, &mut bytes).map_err(|sample| {
                let at = position + sample as u64;
                let what = format!(
                    "sample {at} does not fit into the 24 bits that the recording names (grebe:bits)"
                );
                Error::Field { path: to.into(), what }
            })?;
            out.write_all(&bytes).map_err(failed)?;
            position += length;
        }
        if header.is_some() && sample_bytes % 2 == 1 {
            out.write_all(&[0]).map_err(failed)?;
        }
        let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
        file.sync_all().map_err(failed)?;
        staged.commit()?;
        Ok(vec![to.into()])
    }

    /// Samples per channel to take at a time.
    fn block_samples(&self) -> u64 {
        (BLOCK_BYTES / (self.format().bytes() * self.channels())) as u64
    }

    /// How many samples from `position` on have the same description.
    fn described_samples(&self, position: u64) -> u64 {
        let next = self.description_number(position).map_or(0, |number| number + 1);
        self.description_begin(next).map_or(u64::MAX, |begin| begin - position)
    }
}

/// The samples of a block as a file has them; the number of one that does not fit.
fn interleave(block: &Block<'_>, encoding: Encoding, bytes: &mut Vec<u8>) -> Result<(), usize> {
    let channels = block.channels();
    bytes.resize(block.len_samples() * channels * encoding.sample_bytes(), 0);
    for channel in 0..channels {
        // The block has these channels.
        let samples = block.channel_bytes(channel).unwrap_or_default();
        if encoding == Encoding::I24 {
            let is_wide = |sample: &[u8; 4]| {
                let value = i32::from_le_bytes(*sample);
                value << 8 >> 8 != value
            };
            if let Some(at) = samples.as_chunks::<4>().0.iter().position(is_wide) {
                return Err(at);
            }
        }
        encoding.put(samples, channel, channels, bytes);
    }
    Ok(())
}

const BLOCK_BYTES: usize = 512 << 10;

#[cfg(test)]
mod tests;
