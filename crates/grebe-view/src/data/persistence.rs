//! Persistence: all triggered records on top of each other, by how often the trace passed each cell.

use std::sync::Arc;

use grebe_scope::{Acquisition, Density, Error as ScopeError, Pyramid};

use crate::data::trigger::{TriggerSearch, TriggerSettings};

/// Lowest and highest raw count that the densities cover, by channel.
pub(crate) type Ranges = [(i16, i16); 8];

/// How often the trace of one channel passed each cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChannelDensity {
    pub(crate) channel: usize,
    pub(crate) width: usize,
    /// Brightness, row after row from the top: 0 never, 255 most often.
    pub(crate) cells: Vec<u8>,
}

/// The densities of one moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PersistenceView {
    pub(crate) channels: Vec<ChannelDensity>,
    pub(crate) records: u64,
    /// The part of the triggers since the last picture that was added; below 1 the density is a sample of them.
    pub(crate) fraction: f64,
    /// Grows with each view: a front end sees by it whether it has drawn this one.
    pub(crate) number: u64,
}

/// Adds a record around each trigger to the densities.
#[derive(Debug)]
pub(crate) struct Persistence {
    ranges: Ranges,
    trigger: TriggerSettings,
    span_samples: f64,
    acquisition: Acquisition,
    densities: Vec<Density>,
    view: Option<Arc<PersistenceView>>,
    resolved_ns: u64,
    number: u64,
}

impl Persistence {
    /// # Errors
    /// [`ScopeError::Setting`] where the span holds more samples than a record can.
    pub(crate) fn new(
        ranges: Ranges,
        trigger: TriggerSettings,
        run: &TriggerSearch,
        span_samples: f64,
        pyramid: &Pyramid,
    ) -> Result<Persistence, ScopeError> {
        let record_samples = (span_samples.round() as u64).max(2);
        let pre_samples = ((trigger.position * span_samples) as u64).min(record_samples - 1);
        let acquisition =
            Acquisition::new(pyramid.channels(), run.channel(), run.another()?, pre_samples, record_samples)?;
        let densities: Result<Vec<_>, _> = (0..pyramid.channels())
            .map(|channel| {
                let (bottom, top) = ranges[channel % 8];
                let mut density = Density::new(WIDTH, HEIGHT, bottom, top.max(bottom.saturating_add(1)))?;
                density.limit_per_picture((SAMPLES_PER_PICTURE / record_samples).max(4));
                Ok(density)
            })
            .collect();
        Ok(Persistence {
            ranges,
            trigger,
            span_samples,
            acquisition,
            densities: densities?,
            view: None,
            resolved_ns: 0,
            number: 0,
        })
    }

    pub(crate) fn is_for(&self, ranges: &Ranges, trigger: &TriggerSettings, span_samples: f64) -> bool {
        (&self.ranges, &self.trigger, self.span_samples) == (ranges, trigger, span_samples)
    }

    pub(crate) fn append(&mut self, first_sample_index: u64, block: &[&[i16]]) {
        let densities = &mut self.densities;
        // What is refused here is refused and counted by the history too.
        let _ = self.acquisition.append(first_sample_index, block, |record| {
            let fraction = record.trigger.fraction();
            for (channel, density) in densities.iter_mut().enumerate() {
                density.add(record.samples(channel), fraction);
            }
        });
    }

    /// The densities now, faded by the time since the last ones.
    pub(crate) fn view(&mut self, now_ns: u64) -> Option<Arc<PersistenceView>> {
        let elapsed_ns = now_ns.saturating_sub(self.resolved_ns);
        if elapsed_ns < INTERVAL_NS && self.view.is_some() {
            return self.view.clone();
        }
        let decay = 0.5f64.powf(elapsed_ns as f64 / HALF_LIFE_NS) as f32;
        self.resolved_ns = now_ns;
        let fraction = self.densities.first().map_or(1.0, Density::fraction);
        let records = self.densities.first().map_or(0, Density::records);
        let mut brightness = vec![0.0f32; WIDTH * HEIGHT];
        let channels = self.densities.iter_mut().enumerate().map(|(channel, density)| {
            density.resolve(decay);
            density.brightness(&mut brightness);
            let cells = brightness.iter().map(|&bright| (bright * 255.0) as u8).collect();
            ChannelDensity { channel, width: WIDTH, cells }
        });
        let channels = channels.collect();
        self.number += 1;
        self.view = Some(Arc::new(PersistenceView { channels, records, fraction, number: self.number }));
        self.view.clone()
    }
}

/// Cells of the map: enough for a lane, and a few milliseconds for eight.
const WIDTH: usize = 960;
const HEIGHT: usize = 192;
/// Bounds the time that a picture takes from the data path: one or two milliseconds per channel.
const SAMPLES_PER_PICTURE: u64 = 1 << 21;
const INTERVAL_NS: u64 = 40_000_000;
/// A trace that came once is half as bright after this long.
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
        let ranges = [(-10_000, 10_000); 8];
        let viewport = Viewport {
            span: Some(0.1),
            trigger: Some(TriggerSettings { level: Some(0), ..TriggerSettings::new(TriggerMode::Normal) }),
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
        let cells = &view.channels[0].cells;
        let row = |count: f64| ((10_000.0 - count) / 20_000.0 * (HEIGHT - 1) as f64).round() as usize;
        let at = |count: f64, part: f64| cells[row(count) * WIDTH + (part * WIDTH as f64) as usize];
        assert!(at(1000.0, 0.75) > at(9000.0, 0.75) && at(9000.0, 0.75) > 0, "the rare one is fainter");
        assert_eq!(at(5000.0, 0.75), 0);
        assert_eq!(at(1000.0, 0.25), 0, "low before the trigger");
    }
}
