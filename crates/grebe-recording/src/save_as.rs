//! A recording as another kind of file.

mod options;
mod part;
mod samples;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use grebe_frame::{Description, SampleFormat};
use grebe_ring::Cancel;

use self::samples::Coding;
use crate::csv::CsvWriter;
use crate::encoding::Encoding;
use crate::error::Error;
use crate::kinds::{Kind, is_csv, kind_of};
use crate::sample_file::{Annotation, SampleFile};
use crate::sigmf::{SigmfSettings, SigmfWriter, StagingFolder};
use crate::unpacked::is_packed;
use crate::wav::Header as WavHeader;
use crate::{headerless, kinds, npy, path_query};
pub use options::{GapPolicy, SaveOptions};

impl SampleFile {
    /// Writes the recording as the kind of file that the name `to` implies: SigMF, `.wav`, `.npy`, `.csv`, or
    /// raw samples (`.cf32`, `.cu8`, ...). The samples do not change. SigMF keeps gaps, times, descriptions
    /// and annotations; the others hold samples alone. Returns the files, the one to open first.
    ///
    /// No file gets its name until it is completely on the disk. An interrupted single file (all but SigMF)
    /// stays in `NAME.part`, and the next call for the same file continues it.
    ///
    /// ```
    /// use grebe_recording::{Cancel, SampleFile, SaveOptions};
    ///
    /// let folder = tempfile::tempdir()?;
    /// let raw = folder.path().join("x.i16");
    /// std::fs::write(&raw, [1, 0, 2, 0])?;
    /// let mut file = SampleFile::open(format!("{}?rate=48k", raw.display()))?;
    /// file.save_as(&folder.path().join("x.wav"), &SaveOptions::default(), &Cancel::default())?;
    /// let mut wav = SampleFile::open(folder.path().join("x.wav"))?;
    /// assert_eq!(wav.block(0, 2)?.channel::<i16>(0)?.as_ref(), [1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// An [`Error`] that names the file: data that it cannot hold, with the remedy; [`Error::Exists`] if it
    /// exists and must not be overwritten; [`Error::Busy`] while another process writes it;
    /// [`Error::Cancelled`]. An existing file is then unchanged.
    pub fn save_as(
        &mut self,
        to: &Path,
        options: &SaveOptions,
        cancel: &Cancel,
    ) -> Result<Vec<PathBuf>, Error> {
        let Some((coding, header)) = self.coding(to, options)? else {
            return self.save_sigmf(to, options, cancel);
        };
        self.save_samples(to, coding, &header, options, cancel)?;
        Ok(vec![to.into()])
    }

    /// Sample layout and header of a file of this name; `None` for a SigMF recording.
    fn coding(&self, to: &Path, options: &SaveOptions) -> Result<Option<(Coding, Vec<u8>)>, Error> {
        let (format, channels) = (self.format(), self.channels());
        let is_plain = !is_packed(to);
        if is_csv(to) && is_plain {
            return self.csv(to, options).map(Some);
        }
        let is_binary = matches!(kind_of(to), Some(Kind::Wav | Kind::NumPy)) || kinds::is_raw(to);
        if !is_binary || !is_plain {
            return if means_another_kind(to) {
                let what = "names no kind of file that can be written: .sigmf-meta, .wav, .npy, .csv and raw samples (.i16, .cf32, ...) can";
                Err(Error::Field { path: to.into(), what: what.to_owned() })
            } else {
                Ok(None)
            };
        }
        let samples = self.len_samples() + self.missing_samples(to, options.gaps)?;
        let (encoding, header) = if kind_of(to) == Some(Kind::Wav) {
            let (header, encoding) = self.wav(to)?;
            (encoding, header.bytes(samples * (channels * encoding.sample_bytes()) as u64))
        } else if kind_of(to) == Some(Kind::NumPy) {
            (Encoding::of(format), npy::header(format, channels, samples))
        } else {
            let encoding = headerless::encoding_to_write(to)?;
            if encoding.format != format {
                let named = encoding.format;
                let converts = named.is_complex() == format.is_complex();
                let or = if converts { format!(", or add --format {named}") } else { String::new() };
                let what =
                    format!("its name says {named}, but the samples are {format}: name it NAME.{format}{or}");
                return Err(Error::Field { path: to.into(), what });
            }
            (encoding, Vec::new())
        };
        Ok(Some((Coding::Binary(encoding), header)))
    }

    /// Writes lines, whose times show where samples are missing.
    fn csv(&self, to: &Path, options: &SaveOptions) -> Result<(Coding, Vec<u8>), Error> {
        let rate_hz = options.times.then(|| self.rate_hz().unwrap_or(0.0));
        let refused = |what: &str| Err(Error::Field { path: to.into(), what: what.to_owned() });
        if path_query::split(to).1.is_some() {
            return refused(FOR_READERS);
        }
        match rate_hz {
            Some(rate_hz) if rate_hz <= 0.0 => {
                return refused(
                    "the sample rate is unknown, and times need it: leave out the times, or name the rate of IN",
                );
            }
            Some(_) if self.stream_count() > 1 => {
                return refused(
                    "the recording has several streams, and the time between them is unknown: leave out the times",
                );
            }
            Some(_) => {}
            None => drop(self.missing_samples(to, options.gaps)?),
        }
        let writer = CsvWriter::new(self.format(), self.channels(), rate_hz);
        let header = writer.header(self.description(0).map(Arc::as_ref));
        Ok((Coding::Csv(writer), header))
    }

    fn save_sigmf(
        &mut self,
        to: &Path,
        options: &SaveOptions,
        cancel: &Cancel,
    ) -> Result<Vec<PathBuf>, Error> {
        let settings = SigmfSettings {
            format: self.format(),
            channels: self.channels(),
            sample_rate_hz: self.rate_hz().unwrap_or(0.0),
            overwrite: options.overwrite,
            ..SigmfSettings::default()
        };
        let apart = StagingFolder::create(to, &settings)?;
        let mut writer = apart.writer(&settings)?;
        let files = self.write_sigmf(&mut writer, options, cancel).and_then(|()| Ok(writer.finish()?.files));
        let files = files.map_err(|error| match error {
            // The written samples go with their folder.
            Error::Write { source, .. } => Error::Write { path: to.to_owned(), source, good_samples: 0 },
            error => error,
        });
        apart.publish(&files?)
    }

    fn write_sigmf(
        &mut self,
        writer: &mut SigmfWriter,
        options: &SaveOptions,
        cancel: &Cancel,
    ) -> Result<(), Error> {
        let mut described = None;
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
                let recorded_at = segment.recorded().filter(|_| position == segment.position);
                let block = self.block(position, length as usize)?;
                writer.write_block(first_sample_index, &block, recorded_at)?;
                position += length;
                options.done_samples.store(position, Ordering::Relaxed);
            }
        }
        // Sample positions do not change.
        for Annotation { position, length_samples, fields } in self.annotations() {
            writer.annotate_file(*position, *length_samples, fields.clone())?;
        }
        Ok(())
    }

    /// The WAV header of these samples, and their encoding. A complex channel becomes two, I and Q, with an
    /// `auxi` chunk.
    fn wav(&self, to: &Path) -> Result<(WavHeader, Encoding), Error> {
        let refused = |what: String| Err(Error::Field { path: to.into(), what });
        if path_query::split(to).1.is_some() {
            return refused(FOR_READERS.to_owned());
        }
        let format = self.format();
        if matches!(format, SampleFormat::I8 | SampleFormat::Ci8) {
            let wider = if format.is_complex() { "ci16" } else { "i16" };
            return refused(format!(
                "a WAV cannot hold samples of {format}: convert them (--format {wider}), or write NAME.sigmf-meta or NAME.{format}"
            ));
        }
        let rate_hz = self.rate_hz().unwrap_or(0.0);
        if !(1.0..=f64::from(u32::MAX)).contains(&rate_hz) || rate_hz.fract() != 0.0 {
            return refused(format!("a WAV has a whole number of samples a second, and this has {rate_hz}"));
        }
        let said = self.description(0);
        let is_24_bit = |description: &Arc<Description>| {
            description.rest.get(Description::BITS).and_then(serde_json::Value::as_u64) == Some(24)
        };
        let of_24_bits = format == SampleFormat::I32 && said.is_some_and(is_24_bit);
        let encoding = if of_24_bits { Encoding::I24 } else { Encoding::of(format) };
        let components = self.channels() * format.components();
        let Ok(channels) = u16::try_from(components) else {
            return refused(format!("a WAV has up to 65,535 channels, and I and Q take {components}"));
        };
        let frequency_hz = said.and_then(|it| it.centre_frequency_hz);
        let header = WavHeader {
            encoding: if format.is_complex() { Encoding::of(format.component().real()) } else { encoding },
            channels,
            sample_rate_hz: rate_hz as u32,
            receiver: format.is_complex().then(|| (self.time_at(0), frequency_hz)),
        };
        Ok((header, encoding))
    }

    /// How many zeros a file will have that cannot say where samples are missing.
    fn missing_samples(&self, to: &Path, gaps: GapPolicy) -> Result<u64, Error> {
        let breaks = self
            .segments()
            .windows(2)
            .filter(|pair| pair[0].first_sample_index + pair[0].length_samples != pair[1].first_sample_index);
        let breaks = breaks.count();
        let refused = |what: String| Err(Error::Field { path: to.into(), what });
        match gaps {
            GapPolicy::Refuse if breaks > 0 => refused(format!(
                "samples are missing at {breaks} place{}, which this kind of file cannot mark: fill them with zeros \
                 (--gaps zeros), close them (--gaps close), or write NAME.sigmf-meta",
                if breaks == 1 { "" } else { "s" }
            )),
            GapPolicy::Zeros if self.stream_count() > 1 => refused(format!(
                "{} streams follow one another in the recording, and nothing says how long it was between them: close the gaps \
                 (--gaps close), or write NAME.sigmf-meta",
                self.stream_count()
            )),
            GapPolicy::Zeros => Ok(self.gaps().map(|gap| gap.length_samples).sum()),
            GapPolicy::Refuse | GapPolicy::Close => Ok(0),
        }
    }

    /// Samples per channel to take at a time.
    pub(crate) fn block_samples(&self) -> u64 {
        (BLOCK_BYTES / (self.format().bytes() * self.channels())) as u64
    }

    /// How many samples from `position` on have the same description.
    pub fn described_samples(&self, position: u64) -> u64 {
        let next = self.description_number(position).map_or(0, |number| number + 1);
        self.description_begin(next).map_or(u64::MAX, |begin| begin - position)
    }
}

/// Whether a name ends as those of some other kind of file do: `.flac`, `.mp3`, `.dat`. A recording is made of `run.2` and
/// `night.2026-11-26`.
fn means_another_kind(to: &Path) -> bool {
    let Some(ending) = to.extension().and_then(|it| it.to_str()) else { return false };
    let is_word = ending.len() <= ENDING_MAX && ending.chars().all(|letter| letter.is_ascii_alphanumeric());
    is_word && ending.starts_with(|letter: char| letter.is_ascii_alphabetic()) && ending != "sigmf"
}

const FOR_READERS: &str = "the options after '?' apply only to reading: remove them";
const BLOCK_BYTES: usize = 512 << 10;
/// Letters of an ending.
const ENDING_MAX: usize = 5;

#[cfg(test)]
mod tests;
