//! When the samples of recordings are due that are played in step, each as a stream of its own.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use grebe_process::stream::Moment;

use crate::error::Error;
use crate::sample_file::{
    Alignment, Run, SampleFile, Segment, Timeline, common_clock, runs_by, samples_in, stepped_back,
};

/// The place of a recording in the time of all that are played with it.
///
/// If one clock relates all recordings, each sample is due by that clock, at the real rate of its recording:
/// recordings stay in step to their end without skipped samples.
#[derive(Debug)]
pub struct Schedule {
    /// Common begin: the moment of the first request for a sample from any of them.
    began: Arc<OnceLock<Moment>>,
    /// Places of its segments.
    places: Vec<Place>,
    /// After how many of them all begin again.
    round_samples: f64,
}

/// Place of a segment.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// Its first sample, in samples of the rate that its file states,
    begin: u64,
    /// and a part of one.
    fraction: f64,
    /// How much further apart its samples really are, as a share.
    stretch: f64,
}

impl Place {
    /// Position of the segment if it began `samples` later.
    fn after(self, samples: u64) -> Self {
        let later = self.fraction + samples as f64 * self.stretch;
        let whole = later.round();
        let begin = self.begin.saturating_add(samples).saturating_add_signed(whole as i64);
        Self { begin, fraction: later - whole, ..self }
    }

    fn of_sample(self, into_segment: u64) -> u64 {
        self.after(into_segment).begin
    }
}

impl Schedule {
    /// From each recording takes at most `length`, from `start` after the earliest sample of all. Notices go
    /// to `note`.
    ///
    /// # Errors
    /// [`Error::Field`] if a file lacks the times for the alignment, has no samples in the range, or no rate.
    pub fn of(
        files: Vec<SampleFile>,
        alignment: Alignment,
        start: Duration,
        length: Option<Duration>,
        note: &mut dyn FnMut(String),
    ) -> Result<Vec<(SampleFile, Self)>, Error> {
        let timelines = Timeline::of(&files, alignment)?;
        let places = places(&files, &timelines, alignment);
        let began = Arc::new(OnceLock::new());
        let (mut cut, mut round_s) = (Vec::new(), 0f64);
        for ((file, timeline), places) in files.into_iter().zip(timelines).zip(places) {
            let field = |what: &str| Error::Field { path: file.name().into(), what: what.to_owned() };
            let Some(rate_hz) = file.rate_hz() else {
                return Err(field("its sample rate is unknown, and playing in step needs it"));
            };
            let first = samples_in(start, rate_hz);
            let behind = length.map_or(u64::MAX, |length| first.saturating_add(samples_in(length, rate_hz)));
            let positions = position(&file, &places, first)..position(&file, &places, behind);
            if positions.is_empty() {
                return Err(field("has no samples in that stretch of the recordings: leave it out"));
            }
            if timeline.steps_back {
                note(stepped_back(file.name()));
            }
            // All begin again when the last of them has ended.
            let all = places.last().zip(file.segments().last());
            let end = all.map_or(0, |(place, segment)| place.of_sample(segment.length_samples));
            round_s = round_s.max(behind.min(end).saturating_sub(first) as f64 / rate_hz);
            let (mut kept, mut later) = (Vec::new(), 0f64);
            for (segment, place) in file.segments().iter().zip(places) {
                let (from, to) = (segment.position.max(positions.start), segment.end().min(positions.end));
                if from >= to {
                    continue;
                }
                later += (to - from) as f64 * place.stretch;
                let place = place.after(from - segment.position);
                kept.push(Place { begin: place.begin.saturating_sub(first), ..place });
            }
            rate_words(file.name(), later, positions.end - positions.start).into_iter().for_each(&mut *note);
            let is_all = positions == (0..file.len_samples());
            let file = if is_all { file } else { file.part(positions) };
            cut.push((file, kept));
        }
        let of = |(file, places): (SampleFile, Vec<Place>)| {
            let round_samples = round_s * file.rate_hz().unwrap_or(0.0);
            (file, Self { began: began.clone(), places, round_samples })
        };
        Ok(cut.into_iter().map(of).collect())
    }

    /// When sample 0 of all of them was due.
    pub(super) fn began(&self) -> Moment {
        *self.began.get_or_init(Moment::now)
    }

    /// Sample of the schedule for this position in the segment of this number, in this round.
    pub(super) fn due(&self, into_segment: u64, segment: usize, round: u64) -> u64 {
        (round as f64 * self.round_samples).round() as u64 + self.places[segment].of_sample(into_segment)
    }
}

/// Places of the segments of each, in its own samples since the earliest sample of all: by a clock common to
/// all, if there is one.
fn places(files: &[SampleFile], timelines: &[Timeline], alignment: Alignment) -> Vec<Vec<Place>> {
    let clock = common_clock(files).filter(|_| alignment == Alignment::Time);
    let runs = clock.and_then(|clock| files.iter().map(|file| runs_by(file, clock)).collect());
    let Some(runs): Option<Vec<Vec<Run>>> = runs else {
        let place = |&begin: &u64| Place { begin, fraction: 0.0, stretch: 0.0 };
        return timelines.iter().map(|timeline| timeline.begins.iter().map(place).collect()).collect();
    };
    let origin_ns = runs.iter().flatten().map(|run| run.begin_ns).min().unwrap_or(0);
    let places = |(file, runs): (&SampleFile, Vec<Run>)| {
        let (rate_hz, mut end) = (file.rate_hz().unwrap_or(0.0), 0);
        let place = |(run, segment): (&Run, &Segment)| {
            let since = run.begin_ns.saturating_sub(origin_ns) as f64 * 1e-9 * rate_hz;
            let stretch = run.ns_per_sample * 1e-9 * rate_hz - 1.0;
            let begun = Place { begin: since.round() as u64, fraction: since - since.round(), stretch };
            // A segment that steps back plays as soon as possible.
            let place = if begun.begin < end { Place { begin: end, fraction: 0.0, stretch } } else { begun };
            end = place.of_sample(segment.length_samples);
            place
        };
        runs.iter().zip(file.segments()).map(place).collect()
    };
    files.iter().zip(runs).map(places).collect()
}

/// The sample of a file at this place, or the next one.
fn position(file: &SampleFile, places: &[Place], at: u64) -> u64 {
    let Some(number) = places.partition_point(|place| place.begin <= at).checked_sub(1) else { return 0 };
    let (place, segment) = (places[number], file.segments()[number]);
    let since = (at - place.begin) as f64 / (1.0 + place.stretch);
    segment.position + (since.round() as u64).min(segment.length_samples)
}

/// Notice about a recording whose samples arrived `later` samples later in total than its rate implies.
fn rate_words(name: &Path, later: f64, samples: u64) -> Option<String> {
    let (ppm, how) = (later / samples as f64 * 1e6, if later < 0.0 { "fast" } else { "slow" });
    let name = name.display();
    (later.abs() >= 1.0).then(|| {
        format!("{name}: by the clock of a host its samples are {:.2} ppm {how}: they are sent at that rate, in time with the others", ppm.abs())
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use grebe_flow::StageBench;
    use grebe_frame::{Batch, Header};
    use serde_json::json;

    use super::*;
    use crate::{FileSource, PlayOptions};

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

    /// States the times of a recording by a host's clock: captures by first sample and time in microseconds.
    fn stated(path: &Path, captures: &[(u64, i64)], drift_ppb: i64) {
        let mut meta: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let capture = |&(sample, us): &(u64, i64)| {
            let clock = "00000000000000aa";
            json!({
                "core:sample_start": sample, "core:global_index": sample, "core:datetime": "2026-01-02T03:04:05Z",
                "grebe:axis": { "clock": clock, "ns": us * 1_000, "error_ns": 100, "drift_ppb": drift_ppb, "drift_error_ppb": 10 },
            })
        };
        meta["captures"] = captures.iter().map(capture).collect();
        std::fs::write(path, meta.to_string()).unwrap();
    }

    /// The heads of all frames, of each recording.
    fn played(
        paths: &[PathBuf],
        stretch: (Duration, Option<Duration>),
        repeat: bool,
        samples: Option<u64>,
    ) -> Vec<Vec<Header>> {
        let files = paths.iter().map(|path| SampleFile::open(path).unwrap()).collect();
        let mut notes = Vec::new();
        let note = &mut |note| notes.push(note);
        let files = Schedule::of(files, Alignment::Time, stretch.0, stretch.1, note).unwrap();
        let is_stated = |(file, _): &(SampleFile, Schedule)| file.segments()[0].recorded_axis.is_some();
        assert_eq!(notes.is_empty(), !files.iter().any(is_stated), "{notes:?}");
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
    fn recordings_whose_clocks_run_apart_are_in_step_to_their_end() {
        let folder = tempfile::tempdir().unwrap();
        let a = recorded(folder.path(), "a", 10_000, &[(0, 40_000, 0)]);
        let b = recorded(folder.path(), "b", 10_000, &[(0, 40_000, 0)]);
        // A is right. B begins 50 ms later, and is 1,000 ppm fast, as one line or as two knots say; it ends as much
        // earlier.
        stated(&a, &[(0, 0)], 0);
        let fast_us = |sample: i64| 50_000 + sample * 100 - sample / 10;
        for captures in [&[(0, fast_us(0))][..], &[(0, fast_us(0)), (30_000, fast_us(30_000))]] {
            stated(&b, captures, 1_000_000);
            let heads = played(&[a.clone(), b.clone()], (Duration::ZERO, None), false, None);
            let origin_ns = heads[0][0].producer_ts_ns;
            for (us, index) in due(&heads[0], origin_ns) {
                assert_eq!(us, index as i64 * 100);
            }
            for (us, index) in due(&heads[1], origin_ns) {
                // To half a sample.
                assert!((us - fast_us(index as i64)).abs() <= 51, "{index} at {us}");
            }
            let samples: u64 = heads[1].iter().map(|it| u64::from(it.block_length_samples)).sum();
            assert_eq!(samples, 40_000, "every sample is played");
        }
        // From its middle on, too; by their begins alone they are as their rates say.
        let part = (Duration::from_secs(2), Some(Duration::from_secs(1)));
        let heads = played(&[a.clone(), b], part, false, None);
        let origin_ns = heads[0][0].producer_ts_ns as i64 - (2_000_000.0 * 1e3 / SPEED) as i64;
        for (us, index) in due(&heads[1], origin_ns as u64) {
            assert!((us - fast_us(index as i64)).abs() <= 51, "{index} at {us}");
        }
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
        // Alone, or with others of equal length, it has no break.
        let heads = played(&[a.clone(), a], (Duration::ZERO, None), true, Some(250));
        for heads in &heads {
            let ends = heads.windows(2).map(|pair| (pair[0].next_sample_index(), pair[1].first_sample_index));
            assert!(ends.into_iter().all(|(end, next)| end == next));
            assert_eq!(heads.last().map(Header::next_sample_index), Some(250));
        }
    }
}
