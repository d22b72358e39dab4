//! Times of samples by the clocks of hosts.

use std::collections::VecDeque;

use grebe_frame::AxisTime;

/// A sample with its time by the clock of a host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AxisPoint {
    /// Its absolute index.
    pub index: u64,
    /// The time at which it was made.
    pub time: AxisTime,
}

/// Samples of one stream with known times, in the order in which the times arrived.
#[derive(Debug, Default)]
pub(crate) struct AxisPoints(VecDeque<AxisPoint>);

impl AxisPoints {
    pub(crate) fn note(&mut self, point: AxisPoint) {
        if self.0.len() == POINTS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(point);
    }

    /// For each clock, the point nearest to a sample: a distant point says less about it.
    pub(crate) fn near(&self, index: f64) -> Vec<AxisPoint> {
        let away = |point: &AxisPoint| (point.index as f64 - index).abs();
        let mut nearest: Vec<AxisPoint> = Vec::new();
        for point in &self.0 {
            match nearest.iter().position(|it| it.time.clock == point.time.clock) {
                // Of two points at the same distance, prefer the newer one: it is more exact.
                Some(at) if away(point) <= away(&nearest[at]) => nearest[at] = *point,
                None if nearest.len() < CLOCKS_MAX => nearest.push(*point),
                _ => {}
            }
        }
        nearest
    }
}

/// A quarter of an hour, at four points per second.
const POINTS_MAX: usize = 4_096;

/// A stream involves the clocks of its sender and its receiver.
const CLOCKS_MAX: usize = 4;
