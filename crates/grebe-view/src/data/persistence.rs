//! Persistence: the density of all triggered records, one over the other.

use std::sync::Arc;

use grebe_scope::{Acquisition, Density, Engineering, Error as ScopeError};

use crate::data::lane::LaneId;
use crate::data::samples::Kind;
use crate::data::tracks::Tracks;
use crate::data::trigger::{TriggerSearch, TriggerSettings};
use crate::data::viewport::{CountRange, Ranges};

/// How often the trace of one lane crossed each cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LaneDensity {
    pub(crate) lane: LaneId,
    pub(crate) width: usize,
    /// Brightness, row after row from the top: 0 never, 255 most often.
    pub(crate) cells: Vec<u8>,
}

/// The densities at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PersistenceView {
    pub(crate) lanes: Vec<LaneDensity>,
    pub(crate) records: u64,
    /// Part of the triggers since the last picture that was added. Below 1, the density is a sample.
    pub(crate) fraction: f64,
    /// Grows with each view, so that a front end detects a new one.
    pub(crate) number: u64,
}

/// Adds a record around each trigger to the densities.
#[derive(Debug)]
pub(crate) struct Persistence<K: Kind> {
    ranges: Ranges,
    trigger: TriggerSettings,
    span_samples: f64,
    acquisition: Acquisition<K>,
    /// Memory for records.
    memory_bytes: usize,
    /// Each with the place of its lane in a block.
    densities: Vec<(usize, LaneId, Density<K>)>,
    view: Option<Arc<PersistenceView>>,
    resolved_ns: u64,
    number: u64,
}

impl<K: Kind> Persistence<K> {
    /// Limits the records to `room_bytes`.
    ///
    /// # Errors
    /// If they need more, or a setting is out of range: the reason, in words for the viewer.
    pub(crate) fn new(
        ranges: &Ranges,
        trigger: TriggerSettings,
        run: &TriggerSearch<K>,
        span_samples: f64,
        tracks: &Tracks<K>,
        room_bytes: usize,
    ) -> Result<Persistence<K>, String> {
        let record_samples = (span_samples.round() as u64).max(2);
        let pre_samples = ((trigger.position * span_samples) as u64).min(record_samples - 1);
        let there = ranges.iter().filter_map(|(lane, range)| Some((tracks.place(lane)?, lane, *range)));
        let mut there: Vec<_> = there.collect();
        there.sort_by_key(|(place, ..)| *place);
        // Checked before memory is reserved, because a viewer chooses span and lanes.
        let memory_bytes = Acquisition::<K>::memory_bytes(there.len(), record_samples);
        let Some(memory_bytes) = memory_bytes.filter(|bytes| *bytes <= room_bytes) else {
            let (samples, room) =
                (Engineering::new(record_samples as f64, ""), Engineering::new(room_bytes as f64, "B"));
            return Err(format!(
                "no persistence: {} lanes of {samples} samples do not fit into {room}, the share of --history that is left for it; \
                 show less time or fewer lanes",
                there.len()
            ));
        };
        let refused = |error: ScopeError| format!("no persistence: {error}");
        let triggering = tracks.place(run.lane()).unwrap_or(0);
        let places: Vec<usize> = there.iter().map(|(place, ..)| *place).collect();
        let search = run.another().map_err(refused)?;
        let acquisition =
            Acquisition::new(tracks.places(), &places, triggering, search, pre_samples, record_samples);
        let density = |(place, lane, range): (usize, LaneId, CountRange)| {
            let mut density = Density::new(WIDTH, HEIGHT, range.low, range.high)?;
            density.limit_per_picture((SAMPLES_PER_PICTURE / record_samples).max(4));
            Ok((place, lane, density))
        };
        let densities: Result<Vec<_>, ScopeError> = there.into_iter().map(density).collect();
        Ok(Persistence {
            ranges: Arc::clone(ranges),
            trigger,
            span_samples,
            acquisition: acquisition.map_err(refused)?,
            memory_bytes,
            densities: densities.map_err(refused)?,
            view: None,
            resolved_ns: 0,
            number: 0,
        })
    }

    /// Memory of its records, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Whether it can continue with these settings. Ranges that moved a little but kept their height follow a mean,
    /// as under AC coupling: the present density stays in its place, and new records use the new ranges.
    pub(crate) fn adopt(&mut self, ranges: &Ranges, trigger: &TriggerSettings, span_samples: f64) -> bool {
        if (&self.trigger, self.span_samples) != (trigger, span_samples) {
            return false;
        }
        if self.ranges == *ranges {
            return true;
        }
        let (before, now) = (self.ranges.iter(), ranges.iter());
        if before.len() != now.len()
            || !before
                .zip(now)
                .all(|((a, from), (b, to))| a == b && is_moved((from.low, from.high), (to.low, to.high)))
        {
            return false;
        }
        for (_, lane, density) in &mut self.densities {
            if let Some(range) = ranges.get(*lane) {
                density.set_bottom(range.low);
            }
        }
        self.ranges = Arc::clone(ranges);
        true
    }

    pub(crate) fn append(&mut self, first_sample_index: u64, block: &[&[K]]) {
        let densities = &mut self.densities;
        // The history counts and refuses the same samples.
        let _ = self.acquisition.append(first_sample_index, block, |record| {
            let fraction = record.trigger.fraction();
            for (place, _, density) in densities.iter_mut() {
                density.add(record.samples(*place), fraction);
            }
        });
    }

    /// The present densities, faded by the time since the last ones.
    pub(crate) fn view(&mut self, now_ns: u64) -> Option<Arc<PersistenceView>> {
        let elapsed_ns = now_ns.saturating_sub(self.resolved_ns);
        if elapsed_ns < INTERVAL_NS && self.view.is_some() {
            return self.view.clone();
        }
        let decay = 0.5f64.powf(elapsed_ns as f64 / HALF_LIFE_NS) as f32;
        self.resolved_ns = now_ns;
        let first = self.densities.first().map(|(.., density)| density);
        let (fraction, records) = first.map_or((1.0, 0), |first| (first.fraction(), first.records()));
        let mut brightness = vec![0.0f32; WIDTH * HEIGHT];
        let lanes = self.densities.iter_mut().map(|(_, lane, density)| {
            density.resolve(decay);
            density.brightness(&mut brightness);
            let cells = brightness.iter().map(|&bright| (bright * 255.0) as u8).collect();
            LaneDensity { lane: *lane, width: WIDTH, cells }
        });
        let lanes = lanes.collect();
        self.number += 1;
        self.view = Some(Arc::new(PersistenceView { lanes, records, fraction, number: self.number }));
        self.view.clone()
    }
}

/// Whether a range has the previous height, and is near it.
pub(super) fn is_moved(before: (f64, f64), now: (f64, f64)) -> bool {
    let (height, other) = (before.1 - before.0, now.1 - now.0);
    (height - other).abs() <= height.abs() * 1e-6 && (now.0 - before.0).abs() <= height.abs() * MOVED_MAX
}

/// As a part of the range's height, per picture.
const MOVED_MAX: f64 = 0.05;
/// Cells of the map: enough for a lane, and a few milliseconds for eight lanes.
const WIDTH: usize = 960;
const HEIGHT: usize = 192;
/// Bounds the time of a picture on the data path: one or two milliseconds per channel.
const SAMPLES_PER_PICTURE: u64 = 1 << 21;
const INTERVAL_NS: u64 = 40_000_000;
/// Time after which a single trace is half as bright.
const HALF_LIFE_NS: f64 = 7e8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::core::ScopeCore;
    use crate::data::trigger::TriggerMode;
    use crate::data::viewport::Viewport;
    use crate::testing::batch;

    #[test]
    fn every_trigger_is_laid_upon_the_others_where_the_trace_passed() {
        let mut core = ScopeCore::new(1 << 22);
        // 100 samples a period, low for the first half; every fifth period is taller.
        let value = |_: usize, index: u64| match (index % 100 >= 50, index / 100 % 5) {
            (false, _) => -1000,
            (true, 0) => 9000,
            (true, _) => 1000,
        };
        let ranges = Arc::new(
            [(LaneId::real(0), CountRange { low: -10_000.0, high: 10_000.0 })].into_iter().collect(),
        );
        let viewport = Viewport {
            span: Some(0.1),
            trigger: Some(TriggerSettings { level: Some(0.0), ..TriggerSettings::new(TriggerMode::Normal) }),
            persistence: Some(ranges),
            ..Viewport::latest(100)
        };
        core.ingest(&batch(0, 1, 100, 1e3, value), 1).unwrap();
        assert_eq!(core.answer(&viewport, 1).persistence.unwrap().records, 0);
        for block in 1..60 {
            core.ingest(&batch(block * 100, 1, 100, 1e3, value), 1).unwrap();
        }
        let view = core.answer(&viewport, 50_000_000).persistence.unwrap();
        assert!((55..=59).contains(&view.records), "{}", view.records);
        assert_eq!(view.fraction, 1.0);
        let cells = &view.lanes[0].cells;
        let row = |count: f64| ((10_000.0 - count) / 20_000.0 * (HEIGHT - 1) as f64).round() as usize;
        let at = |count: f64, part: f64| cells[row(count) * WIDTH + (part * WIDTH as f64) as usize];
        assert!(at(1000.0, 0.75) > at(9000.0, 0.75) && at(9000.0, 0.75) > 0, "the rare one is fainter");
        assert_eq!(at(5000.0, 0.75), 0);
        assert_eq!(at(1000.0, 0.25), 0, "low before the trigger");
    }

    #[test]
    fn records_stay_while_the_mean_moves() {
        // Under AC coupling the range of each picture lies a little higher, as the signal does.
        let value = |_: usize, index: u64| if index % 100 < 50 { -1000 } else { 1000 } + (index / 100) as i16;
        let viewport = |moved: f64| Viewport {
            span: Some(0.1),
            trigger: Some(TriggerSettings { level: Some(0.0), ..TriggerSettings::new(TriggerMode::Normal) }),
            persistence: Some(Arc::new(
                [(LaneId::real(0), CountRange { low: moved - 10_000.0, high: moved + 10_000.0 })]
                    .into_iter()
                    .collect(),
            )),
            ..Viewport::latest(100)
        };
        let mut core = ScopeCore::new(1 << 22);
        for block in 0..40 {
            core.ingest(&batch(block * 100, 1, 100, 1e3, value), 1).unwrap();
            core.answer(&viewport(block as f64), 1 + block * 50_000_000);
        }
        let view = core.answer(&viewport(40.0), 3_000_000_000).persistence.unwrap();
        assert!(view.records >= 36, "{} of 40 records", view.records);
        // Another lane starts again.
        assert_eq!(core.answer(&viewport(5_000.0), 3_100_000_000).persistence.unwrap().records, 0);
    }
}
