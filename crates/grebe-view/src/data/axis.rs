//! When samples were made by the clocks of hosts.

use std::collections::VecDeque;

use grebe_frame::AxisTime;

/// A sample whose time by the clock of a host is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AxisPoint {
    /// Its absolute index.
    pub index: u64,
    /// When it was made.
    pub time: AxisTime,
}

/// Samples of one stream whose times are known, as they were told.
#[derive(Debug, Default)]
pub(crate) struct AxisPoints(VecDeque<AxisPoint>);

impl AxisPoints {
    pub(crate) fn note(&mut self, point: AxisPoint) {
        if self.0.len() == POINTS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(point);
    }

    /// Of each clock the one that is nearest to a sample: what was made at another time says less of it.
    pub(crate) fn near(&self, index: f64) -> Vec<AxisPoint> {
        let away = |point: &AxisPoint| (point.index as f64 - index).abs();
        let mut nearest: Vec<AxisPoint> = Vec::new();
        for point in &self.0 {
            match nearest.iter().position(|it| it.time.clock == point.time.clock) {
                // Of two that are as near, what was told later is surer.
                Some(at) if away(point) <= away(&nearest[at]) => nearest[at] = *point,
                None if nearest.len() < CLOCKS_MAX => nearest.push(*point),
                _ => {}
            }
        }
        nearest
    }
}

/// A quarter of an hour of a stream that is measured four times a second.
const POINTS_MAX: usize = 4_096;

/// A stream is of one host, and received by another.
const CLOCKS_MAX: usize = 4;
