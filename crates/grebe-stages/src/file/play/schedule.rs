//! When the samples of recordings are due that are played in step, each as a stream of its own.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::error::Error;
use crate::file::sample_file::{Alignment, SampleFile, Timeline, samples_in, stepped_back};
use crate::stream::Moment;

/// The place of a recording in the time of all that are played with it.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// When all of them began: the moment at which the first of them was asked for a sample.
    began: Arc<OnceLock<Moment>>,
    /// Where its segments begin, in samples of its own.
    begins: Vec<u64>,
    /// After how many of them all begin again.
    round_samples: f64,
}

impl Schedule {
    /// Of each recording what lies `start` behind the earliest sample of all, and no more than `length` of it. What a person should know
    /// goes to `note`.
    ///
    /// # Errors
    /// Those of [`Timeline::of`]; [`Error::Field`] where a recording has nothing there, or says no rate.
    pub(crate) fn of(
        files: Vec<SampleFile>,
        alignment: Alignment,
        start: Duration,
        length: Option<Duration>,
        note: &mut dyn FnMut(String),
    ) -> Result<Vec<(SampleFile, Self)>, Error> {
        let timelines = Timeline::of(&files, alignment)?;
        let began = Arc::new(OnceLock::new());
        let (mut cut, mut round_s) = (Vec::new(), 0f64);
        for (file, timeline) in files.into_iter().zip(timelines) {
            let field = |what: &str| Error::Field { path: file.name().into(), what: what.to_owned() };
            let rate_hz = file.sample_rate_hz();
            if rate_hz <= 0.0 {
                return Err(field("nothing says its sample rate, without which it keeps step with nothing"));
            }
            let first = samples_in(start, rate_hz);
            let behind = length.map_or(u64::MAX, |length| first.saturating_add(samples_in(length, rate_hz)));
            let positions = timeline.positions(&file, first..behind);
            if positions.is_empty() {
                return Err(field("has no samples in that stretch of the recordings: leave it out"));
            }
            if timeline.steps_back {
                note(stepped_back(file.name()));
            }
            round_s = round_s.max((behind.min(timeline.end(&file)) - first) as f64 / rate_hz);
            let skipped = positions.start;
            let begin = |at: u64| timeline.of_position(&file, skipped + at) - first;
            let is_all = positions == (0..file.len_samples());
            let kept = file.segments().iter().filter(|it| {
                it.position < positions.end && it.position + it.length_samples > positions.start
            });
            let begins = kept.map(|it| begin(it.position.saturating_sub(skipped))).collect();
            let file = if is_all { file } else { file.part(positions) };
            cut.push((file, begins));
        }
        let of = |(file, begins): (SampleFile, Vec<u64>)| {
            let round_samples = round_s * file.sample_rate_hz();
            (file, Self { began: began.clone(), begins, round_samples })
        };
        Ok(cut.into_iter().map(of).collect())
    }

    /// When sample 0 of all of them was due.
    pub(super) fn began(&self) -> Moment {
        *self.began.get_or_init(Moment::now)
    }

    /// Which sample of the schedule it is that stands at this place of the file, in the segment of this number, in that round.
    pub(super) fn due(&self, into_segment: u64, segment: usize, round: u64) -> u64 {
        (round as f64 * self.round_samples).round() as u64 + self.begins[segment] + into_segment
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use grebe_flow::StageBench;
    use grebe_frame::{Batch, Header};
    use serde_json::json;

    use super::*;
    use crate::file::{FileSource, PlayOptions};

    /// A recording of bytes: captures by their index, their length, and when they began, in milliseconds.
    fn recorded(folder: &Path, name: &str, rate_hz: u64, captures: &[(u64, u64, u64)]) -> PathBuf {
        let mut position = 0;
        let mut capture = |&(index, length, at_ms): &(u64, u64, u64)| {
            let datetime = format!("2026-01-02T03:04:05.{at_ms:03}Z");
            let begin = position;
            position += length;
            json!({ "core:sample_start": begin, "core:global_index": index, "core:datetime": datetime })
        };
        let captures: Vec<_> = captures.iter().map(&mut capture).collect();
        let global = json!({ "core:datatype": "ri8", "core:sample_rate": rate_hz, "core:version": "1.2.0" });
        std::fs::write(folder.join(format!("{name}.sigmf-data")), vec![1; position as usize]).unwrap();
        let path = folder.join(format!("{name}.sigmf-meta"));
        std::fs::write(
            &path,
            json!({ "global": global, "captures": captures, "annotations": [] }).to_string(),
        )
        .unwrap();
        path
    }

    /// The heads of all frames, of each recording.
    fn played(
        paths: &[PathBuf],
        stretch: (Duration, Option<Duration>),
        repeat: bool,
        samples: Option<u64>,
    ) -> Vec<Vec<Header>> {
        let files = paths.iter().map(|path| SampleFile::open(path).unwrap()).collect();
        let note = &mut |note| panic!("{note}");
        let files = Schedule::of(files, Alignment::Time, stretch.0, stretch.1, note).unwrap();
        let options = PlayOptions {
            speed: Some(SPEED),
            repeat,
            samples,
            datagram_bytes: 1_400,
            flush_every: Duration::ZERO,
        };
        let play = |(file, schedule): (SampleFile, Schedule)| {
            let source = FileSource::new(file, options).0.in_step(schedule);
            let batches: Vec<Batch> = StageBench::new(source).unwrap().end().unwrap();
            batches.iter().flat_map(Batch::frames).map(|frame| frame.header()).collect()
        };
        files.into_iter().map(play).collect()
    }

    const SPEED: f64 = 50.0;

    /// When each frame was due, in microseconds of the signal since `origin_ns`, and its index.
    fn due(headers: &[Header], origin_ns: u64) -> Vec<(i64, u64)> {
        let us = |header: &Header| {
            ((header.producer_ts_ns as i64 - origin_ns as i64) as f64 * SPEED / 1e3).round() as i64
        };
        headers.iter().map(|header| (us(header), header.first_sample_index)).collect()
    }

    #[test]
    fn each_sample_is_due_when_it_was_made_and_gaps_take_their_time() {
        let folder = tempfile::tempdir().unwrap();
        let a = recorded(folder.path(), "a", 1_000, &[(0, 100, 0), (150, 100, 150)]);
        let b = recorded(folder.path(), "b", 2_000, &[(7, 300, 120)]);
        let heads = played(&[a.clone(), b.clone()], (Duration::ZERO, None), false, None);
        let origin_ns = heads[0][0].producer_ts_ns;
        for (us, index) in due(&heads[0], origin_ns) {
            assert_eq!(us, index as i64 * 1_000);
        }
        for (us, index) in due(&heads[1], origin_ns) {
            assert_eq!(us, 120_000 + (index as i64 - 7) * 500);
        }
        let samples =
            |heads: &[Header]| heads.iter().map(|it| u64::from(it.block_length_samples)).sum::<u64>();
        assert_eq!((samples(&heads[0]), samples(&heads[1])), (200, 300));

        // From 90 ms to 130 ms: of A ten samples before its gap, of B ten milliseconds.
        let part = (Duration::from_millis(90), Some(Duration::from_millis(40)));
        let heads = played(&[a, b], part, false, None);
        let origin_ns = heads[0][0].producer_ts_ns;
        assert_eq!((samples(&heads[0]), samples(&heads[1])), (10, 20));
        assert_eq!((heads[0][0].first_sample_index, due(&heads[1], origin_ns)[0]), (90, (30_000, 7)));
    }

    #[test]
    fn all_begin_again_together_when_the_last_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let a = recorded(folder.path(), "a", 1_000, &[(0, 100, 0)]);
        let b = recorded(folder.path(), "b", 1_000, &[(0, 100, 60)]);
        let heads = played(&[a.clone(), b], (Duration::ZERO, None), true, Some(250));
        let origin_ns = heads[0][0].producer_ts_ns;
        for (heads, later_us) in heads.iter().zip([0, 60_000]) {
            // The 60 samples between the end of a round and the next begin are missing, as in any gap.
            for (us, index) in due(heads, origin_ns) {
                assert_eq!(us - later_us, index as i64 * 1_000);
                assert!(index % 160 < 100, "{index}");
            }
        }
        // Alone, or with others as long, there is no seam.
        let heads = played(&[a.clone(), a], (Duration::ZERO, None), true, Some(250));
        for heads in &heads {
            let ends = heads.windows(2).map(|pair| (pair[0].next_sample_index(), pair[1].first_sample_index));
            assert!(ends.into_iter().all(|(end, next)| end == next));
            assert_eq!(heads.last().map(Header::next_sample_index), Some(250));
        }
    }
}
