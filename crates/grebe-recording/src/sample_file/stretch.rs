//! A part of a recording as a recording of its own: fewer samples, fewer channels.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use grebe_frame::Description;

use super::{Annotation, RawFile, SampleFile, Segment, Window};
use crate::error::{Error, ProcessError};

impl SampleFile {
    /// The samples from `start` on, for `duration` or to the end. Both are times of the signal, which gaps extend.
    ///
    /// # Errors
    /// [`Error::Process`] if the range is empty, or the rate is unknown.
    pub fn stretch(self, start: Duration, duration: Option<Duration>) -> Result<Self, Error> {
        if start.is_zero() && duration.is_none() {
            return Ok(self);
        }
        let setting = |what, time: Duration, must| {
            Err(ProcessError::Setting { what, got: format!("{time:?}"), must }.into())
        };
        if self.sample_rate_hz <= 0.0 {
            let must = "the sample rate is unknown, and times need it: name it, as in 'x.cu8?rate=2.4M'";
            return setting("start or duration", start, must);
        }
        let samples = |time: Duration| (time.as_secs_f64() * self.sample_rate_hz).round() as u64;
        let begin = self.position_after(samples(start));
        let begin = begin.map_err(|all| begins_beyond_the_end(start, all, self.sample_rate_hz))?;
        let end =
            duration.map(|duration| self.position_after(samples(start).saturating_add(samples(duration))));
        let end = end.and_then(Result::ok).unwrap_or(self.len_samples);
        if begin >= end {
            return setting(
                "duration",
                duration.unwrap_or_default(),
                "no sample of the recording lies within it",
            );
        }
        Ok(self.part(begin..end))
    }

    /// First position at least `samples` of the signal after the first one; the length of the signal where it is too
    /// short. Gaps are part of the signal, and another stream follows at once.
    fn position_after(&self, samples: u64) -> Result<u64, u64> {
        // Of the signal, up to the segment.
        let (mut begin, mut end_index) = (0u64, self.segments[0].first_sample_index);
        for segment in &self.segments {
            begin = begin.saturating_add(segment.first_sample_index.saturating_sub(end_index));
            if samples < begin.saturating_add(segment.length_samples) {
                return Ok(segment.position + samples.saturating_sub(begin));
            }
            begin = begin.saturating_add(segment.length_samples);
            end_index = segment.first_sample_index.saturating_add(segment.length_samples);
        }
        Err(begin)
    }

    /// These samples of the file, of which there is at least one.
    pub(crate) fn part(mut self, samples: Range<u64>) -> Self {
        let clip = |from: u64, length: u64| {
            let (begin, end) = (from.max(samples.start), (from.saturating_add(length)).min(samples.end));
            (begin, end.saturating_sub(begin))
        };
        let segment = |segment: &Segment| {
            let (begin, length_samples) = clip(segment.position, segment.length_samples);
            let position = begin.saturating_sub(samples.start);
            let first_sample_index = segment.first_sample_index + (begin - segment.position);
            let recorded_at = self.time_at(begin);
            (length_samples > 0).then_some(Segment {
                position,
                length_samples,
                first_sample_index,
                recorded_at,
                recorded_axis: self.axis_at(begin),
                ..*segment
            })
        };
        let segments = self.segments.iter().filter_map(segment).collect();
        let annotation = |annotation: &Annotation| {
            let (begin, length_samples) = clip(annotation.position, annotation.length_samples);
            let is_point = annotation.length_samples == 0 && samples.contains(&annotation.position);
            (length_samples > 0 || is_point).then(|| Annotation {
                position: begin - samples.start,
                length_samples,
                fields: annotation.fields.clone(),
            })
        };
        self.annotations = self.annotations.iter().filter_map(annotation).collect();
        self.segments = segments;
        let first = self.description_number(samples.start).unwrap_or(0);
        self.descriptions.retain(|&(from, _)| from < samples.end);
        self.descriptions.drain(..first.min(self.descriptions.len()));
        for (from, _) in &mut self.descriptions {
            *from = from.saturating_sub(samples.start);
        }
        self.sources.iter_mut().for_each(|source| source.skip(samples.start));
        self.len_samples = samples.end - samples.start;
        self.skipped_samples += samples.start;
        self.reopen()
    }

    /// These channels, numbered from 0, in this order.
    ///
    /// # Errors
    /// [`Error::Process`] if a channel does not exist, or none is named.
    pub fn select(mut self, channels: &[usize]) -> Result<Self, Error> {
        let setting = |what, got: String, must| Err(ProcessError::Setting { what, got, must }.into());
        if channels.is_empty() {
            return setting("the selection of channels", "empty".to_owned(), "name at least one");
        }
        if let Some(channel) = channels.iter().find(|&&channel| channel >= self.channels) {
            let got = format!("{}, and the last one is {}", channel + 1, self.channels);
            return setting("the selected channel", got, "name channels that the recording has");
        }
        if !channels.iter().copied().eq(0..self.channels) {
            self.sources = self.sources_of(channels)?;
            self.channels = channels.len();
            for (_, description) in &mut self.descriptions {
                let all = &description.channels;
                let of = |&channel: &usize| all.get(channel).cloned().unwrap_or_default();
                let said = if all.is_empty() { Vec::new() } else { channels.iter().map(of).collect() };
                *description = Arc::new(Description { channels: said, ..(**description).clone() });
            }
        }
        Ok(self.reopen())
    }

    /// A source for each run of channels that lie in one file.
    fn sources_of(&self, channels: &[usize]) -> Result<Vec<RawFile>, Error> {
        let mut firsts = Vec::new();
        let mut first = 0;
        for source in &self.sources {
            firsts.push(first);
            first += source.channels();
        }
        let source_of = |channel: usize| firsts.partition_point(|&first| first <= channel) - 1;
        let runs = channels.chunk_by(|&one, &next| source_of(one) == source_of(next));
        let select = |run: &[usize]| {
            let source = source_of(run[0]);
            let inside: Vec<usize> = run.iter().map(|channel| channel - firsts[source]).collect();
            self.sources[source].select(&inside)
        };
        runs.map(select).collect()
    }

    /// With an empty window for the current layout.
    pub(super) fn reopen(mut self) -> Self {
        self.window = Window::new(self.format.bytes(), self.channels, self.len_samples);
        let samples = 0..self.len_samples;
        self.expect(samples, false);
        self
    }
}

/// The error of a start at which a signal of `all_samples` has ended.
pub(crate) fn begins_beyond_the_end(start: Duration, all_samples: u64, rate_hz: f64) -> Error {
    let all = Duration::try_from_secs_f64(all_samples as f64 / rate_hz).unwrap_or(Duration::MAX);
    let got = format!("{start:?}, but the recording has {all:?} of signal");
    ProcessError::Setting { what: "start", got, must: "it must lie before the end" }.into()
}

#[cfg(test)]
mod tests {
    use super::begins_beyond_the_end;
    use std::time::Duration;

    use crate::SampleFile;
    use crate::sigmf::{SigmfSettings, SigmfWriter};

    /// Channels of 10 samples, 90 missing after the fourth, labelled; interleaved if more than 8.
    fn recorded(folder: &std::path::Path, channels: usize) -> SampleFile {
        let settings = SigmfSettings { channels, sample_rate_hz: 1e3, ..SigmfSettings::default() };
        let mut writer = SigmfWriter::create(&folder.join("x"), &settings).unwrap();
        let samples: Vec<Vec<i16>> =
            (0..channels).map(|channel| (0..10).map(|at| 100 * channel as i16 + at).collect()).collect();
        let of = |range: std::ops::Range<usize>| -> Vec<&[i16]> {
            samples.iter().map(|samples| &samples[range.clone()]).collect()
        };
        writer.write(5, &of(0..4)).unwrap();
        writer.write(99, &of(4..10)).unwrap();
        writer.annotate(6, 95, "across").unwrap();
        writer.annotate(101, 2, "there").unwrap();
        writer.finish().unwrap();
        let name = if channels <= 8 { "x.sigmf-collection" } else { "x.sigmf-meta" };
        SampleFile::open(folder.join(name)).unwrap()
    }

    fn samples(file: &mut SampleFile) -> Vec<Vec<i16>> {
        let (length, channels) = (file.len_samples() as usize, file.channels());
        let block = file.block(0, length).unwrap();
        (0..channels).map(|channel| block.channel::<i16>(channel).unwrap().into_owned()).collect()
    }

    #[test]
    fn a_range_keeps_indices_gaps_times_and_annotations() {
        let folder = tempfile::tempdir().unwrap();
        let whole = recorded(folder.path(), 3);
        let began = whole.time_at(0).unwrap();
        let ms = Duration::from_millis;
        let mut part = whole.stretch(ms(2), Some(ms(95))).unwrap();
        assert_eq!(
            samples(&mut part),
            [0, 100, 200].map(|base| vec![base + 2, base + 3, base + 4, base + 5, base + 6])
        );
        let segments: Vec<_> = part
            .segments()
            .iter()
            .map(|it| (it.position, it.length_samples, it.first_sample_index))
            .collect();
        assert_eq!(segments, [(0, 2, 7), (2, 3, 99)]);
        let apart = part.time_at(0).unwrap().duration_since(began).unwrap_or_default();
        assert!(apart.abs_diff(ms(2)) < Duration::from_micros(2), "{apart:?}");
        let labels: Vec<_> = part.annotations().iter().map(|it| (it.position, it.length_samples)).collect();
        assert_eq!(labels, [(0, 4), (4, 1)]);
        // In a gap, the range starts after it.
        let mut behind = recorded(&emptied(folder.path(), "b"), 3).stretch(ms(50), None).unwrap();
        assert_eq!(samples(&mut behind)[0], [4, 5, 6, 7, 8, 9]);
        assert_eq!(behind.segments()[0].first_sample_index, 99);
        let again = || recorded(&emptied(folder.path(), "c"), 3);
        let error = again().stretch(ms(100), None).unwrap_err().to_string();
        assert!(
            error.contains(
                "start is 100ms, but the recording has 100ms of signal: it must lie before the end"
            ),
            "{error}"
        );
        let error = again().stretch(ms(10), Some(ms(20))).unwrap_err().to_string();
        assert!(error.contains("no sample of the recording lies within it"), "{error}");
    }

    #[test]
    fn channels_are_taken_in_the_order_that_they_are_named() {
        let folder = tempfile::tempdir().unwrap();
        for channels in [3, 9] {
            let file = || recorded(&emptied(folder.path(), "x"), channels);
            let mut some = file().select(&[2, 0, 0]).unwrap();
            let expected: Vec<Vec<i16>> =
                [200, 0, 0].map(|base| (base..base + 10).collect()).into_iter().collect();
            assert_eq!(samples(&mut some), expected);
            let mut part = file().select(&[1]).unwrap().stretch(Duration::from_millis(95), None).unwrap();
            assert_eq!(samples(&mut part), [vec![105, 106, 107, 108, 109]]);
            let error = file().select(&[channels]).unwrap_err().to_string();
            assert!(
                error.contains(&format!("channel is {}, and the last one is {channels}", channels + 1)),
                "{error}"
            );
        }
    }

    #[test]
    fn a_file_without_a_rate_has_no_times() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.u8");
        std::fs::write(&path, [1, 2, 3]).unwrap();
        let error = SampleFile::open(&path).unwrap().stretch(Duration::from_secs(1), None).unwrap_err();
        assert!(error.to_string().contains("name it, as in 'x.cu8?rate=2.4M'"), "{error}");
    }

    fn emptied(folder: &std::path::Path, name: &str) -> std::path::PathBuf {
        let inside = folder.join(name);
        let _ = std::fs::remove_dir_all(&inside);
        std::fs::create_dir_all(&inside).unwrap();
        inside
    }

    #[test]
    fn a_signal_of_any_length_has_an_error() {
        for (samples, rate_hz) in [(u64::MAX, 1e-9), (0, 0.0), (0, f64::NAN)] {
            let error = begins_beyond_the_end(Duration::MAX, samples, rate_hz).to_string();
            assert!(error.contains("before the end"), "{error}");
        }
    }
}
