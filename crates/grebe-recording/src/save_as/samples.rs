//! Files of contiguous samples: divides them into runs, and writes them.

use std::path::Path;
use std::sync::atomic::Ordering;

use grebe_frame::SampleFormat;
use grebe_ring::Cancel;

use super::options::{GapPolicy, SaveOptions};
use super::part::Part;
use crate::csv::CsvWriter;
use crate::encoding::Encoding;
use crate::error::Error;
use crate::kinds::{Kind, kind_of};
use crate::path_query;
use crate::sample_file::{Block, SampleFile, file_identity};

/// Layout of samples in the file.
#[derive(Debug)]
pub(super) enum Coding {
    Binary(Encoding),
    Csv(CsvWriter),
}

/// Samples that follow one another in the file that is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    /// Position in the recording; `None` for zeros.
    position: Option<u64>,
    /// Samples of the signal before them, gaps included.
    index: u64,
    samples: u64,
}

impl SampleFile {
    /// Writes a header and samples into the file that will be `to`.
    pub(super) fn save_samples(
        &mut self,
        to: &Path,
        mut coding: Coding,
        header: &[u8],
        options: &SaveOptions,
        cancel: &Cancel,
    ) -> Result<(), Error> {
        let runs = self.runs(options.gaps);
        let mut made_from = self.identity()?;
        if let Some(path) = &options.made_from {
            made_from["files"] = vec![file_identity(&path_query::split(path).0)].into();
        }
        // Options that change the result.
        if let Some(made_as) = &options.made_as {
            made_from["made_as"] = made_as.as_str().into();
        }
        made_from["gaps"] = format!("{:?}", options.gaps).into();
        made_from["as"] = coding.words().into();
        let samples: u64 = runs.iter().map(|run| run.samples).sum();
        let bytes = match &coding {
            Coding::Binary(encoding) => {
                Some(header.len() as u64 + samples * (self.channels() * encoding.sample_bytes()) as u64)
            }
            Coding::Csv(_) => None,
        };
        let (mut part, good) = Part::begin(to, made_from, bytes, options.overwrite)?;
        options.resumed_samples.store(good.samples, Ordering::Relaxed);
        #[cfg(test)]
        part.limit(tests::room_bytes());
        if good.samples == 0 {
            part.write(header)?;
        }
        let (mut skip, mut written) = (good.samples, good.samples);
        for run in runs {
            let mut done = skip.min(run.samples);
            skip -= done;
            while done < run.samples {
                if cancel.is_cancelled() {
                    part.leave(written);
                    return Err(Error::Cancelled);
                }
                let length = self.block_samples().min(run.samples - done);
                let saved = match run.position {
                    Some(position) => {
                        let block = self.block(position + done, length as usize)?;
                        coding.write(&block, run.index + done, &mut part)?
                    }
                    None => coding.write_zeros(self.channels(), length, run.index + done, &mut part)?,
                };
                if let Err(sample) = saved {
                    let at = run.position.unwrap_or(0) + done + sample as u64;
                    let what = format!(
                        "sample {at} does not fit into the 24 bits that the recording names (grebe:bits)"
                    );
                    part.remove();
                    return Err(Error::Field { path: to.into(), what });
                }
                done += length;
                written += length;
                part.note(written);
                options.done_samples.store(run.position.unwrap_or(0) + done, Ordering::Relaxed);
            }
        }
        if let Coding::Binary(encoding) = coding
            && kind_of(to) == Some(Kind::Wav)
            && written * (self.channels() * encoding.sample_bytes()) as u64 % 2 == 1
        {
            part.write(&[0])?;
        }
        part.publish()
    }

    /// Content of the file, in order.
    fn runs(&self, gaps: GapPolicy) -> Vec<Run> {
        let mut runs = Vec::new();
        let (mut index, mut end_index) = (0, self.segments()[0].first_sample_index);
        for segment in self.segments() {
            let missing = segment.first_sample_index.saturating_sub(end_index);
            if gaps == GapPolicy::Zeros && missing > 0 {
                runs.push(Run { position: None, index, samples: missing });
            }
            index += missing;
            runs.push(Run { position: Some(segment.position), index, samples: segment.length_samples });
            index += segment.length_samples;
            end_index = segment.first_sample_index + segment.length_samples;
        }
        runs
    }
}

impl Coding {
    /// Text that identifies this coding, for comparison.
    fn words(&self) -> String {
        match self {
            Self::Binary(encoding) => format!("{encoding:?}"),
            Self::Csv(csv) => csv.words(),
        }
    }

    /// Writes a block; the number of a sample of it that does not fit.
    fn write(&mut self, block: &Block<'_>, index: u64, part: &mut Part) -> Result<Result<(), usize>, Error> {
        match self {
            Self::Binary(encoding) => write_binary(block, *encoding, part),
            Self::Csv(csv) => {
                csv.rows(block, index, |bytes| part.write(bytes))?;
                Ok(Ok(()))
            }
        }
    }

    fn write_zeros(
        &mut self,
        channels: usize,
        samples: u64,
        index: u64,
        part: &mut Part,
    ) -> Result<Result<(), usize>, Error> {
        match self {
            Self::Binary(encoding) => {
                let zero =
                    if matches!(encoding.format, SampleFormat::U8 | SampleFormat::Cu8) { 128 } else { 0 };
                part.write(&vec![zero; samples as usize * channels * encoding.sample_bytes()])?;
            }
            Self::Csv(csv) => csv.zeros(samples, index, |bytes| part.write(bytes))?,
        }
        Ok(Ok(()))
    }
}

/// Puts the samples of a block side by side, straight into memory that the disk writes; the number of one that does not fit.
fn write_binary(block: &Block<'_>, encoding: Encoding, part: &mut Part) -> Result<Result<(), usize>, Error> {
    let channels = block.channels();
    let (frame_bytes, sample_bytes) = (channels * encoding.sample_bytes(), encoding.format.bytes());
    let mut done = 0;
    while done < block.len_samples() {
        let count = (part.room() / frame_bytes).min(block.len_samples() - done);
        if count == 0 {
            part.make_room()?;
            continue;
        }
        let place = part.extend(count * frame_bytes);
        for channel in 0..channels {
            // The block has these channels.
            let samples = block.channel_bytes(channel).unwrap_or_default();
            let samples = &samples[done * sample_bytes..(done + count) * sample_bytes];
            if encoding == Encoding::I24
                && let Some(at) = samples.as_chunks::<4>().0.iter().position(is_wide)
            {
                return Ok(Err(done + at));
            }
            if channels == 1 && encoding.is_as_streamed() {
                place.copy_from_slice(samples);
            } else {
                encoding.put(samples, channel, channels, place);
            }
        }
        done += count;
    }
    Ok(Ok(()))
}

/// Whether a number needs more than 24 bits.
fn is_wide(sample: &[u8; 4]) -> bool {
    let value = i32::from_le_bytes(*sample);
    value << 8 >> 8 != value
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::Cell;

    thread_local! {
        /// Simulates a disk that is full for this thread after this number of bytes.
        static ROOM_BYTES: Cell<u64> = const { Cell::new(u64::MAX) };
    }

    pub(in crate::save_as) fn room_bytes() -> u64 {
        ROOM_BYTES.get()
    }

    pub(in crate::save_as) fn with_room<T>(bytes: u64, work: impl FnOnce() -> T) -> T {
        ROOM_BYTES.set(bytes);
        let result = work();
        ROOM_BYTES.set(u64::MAX);
        result
    }
}
