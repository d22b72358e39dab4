//! Measures how fast the window draws: first without traces, then with them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use eframe::egui;
use grebe_flow::monotonic_ns;

use super::panes::ScopePanes;

/// The measured speed of a window.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct WindowBench {
    /// The window without traces, drawn as often as possible: the baseline.
    pub baseline: FrameTimes,
    /// With all traces, drawn whenever there is a new picture, at most sixty times per second.
    pub traces: FrameTimes,
    /// Pictures later than one and a half sixtieths of a second after the previous one.
    pub misses: u64,
    /// Median of the milliseconds from the production of a picture's newest sample to the end of its drawing.
    pub latency_ms_p50: f64,
    /// 99th percentile of the same.
    pub latency_ms_p99: f64,
    /// Frames lost anywhere before the scope.
    pub lost_frames: u64,
    /// Samples per channel that the generator could not make in time.
    pub generator_samples: u64,
    /// Samples per second that arrived, all channels together.
    pub samples_per_s: f64,
}

/// Frames of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct FrameTimes {
    /// Frames per second.
    pub per_s: f64,
    /// Median of the processor time per frame, in milliseconds.
    pub cpu_ms_p50: f64,
    /// 99th percentile of the same.
    pub cpu_ms_p99: f64,
    /// Median of the milliseconds from frame to frame.
    pub interval_ms_p50: f64,
    /// 99th percentile of the same.
    pub interval_ms_p99: f64,
}

pub(super) type Slot = Arc<Mutex<Option<WindowBench>>>;

pub(super) struct WindowTimer {
    slot: Slot,
    duration: Duration,
    phase: Phase,
    since: Instant,
    last_frame: Option<Instant>,
    intervals_ms: Vec<f64>,
    cpu_ms: Vec<f64>,
    latencies_ms: Vec<f64>,
    baseline: FrameTimes,
    number_taken: u64,
    counts_before: (u64, u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    WarmUp,
    Baseline,
    /// The first second with traces: buffers grow, the first picture comes.
    Settle,
    Traces,
}

impl WindowTimer {
    pub(super) fn new(slot: Slot, duration: Duration) -> WindowTimer {
        WindowTimer {
            slot,
            duration,
            phase: Phase::WarmUp,
            since: Instant::now(),
            last_frame: None,
            intervals_ms: Vec::new(),
            cpu_ms: Vec::new(),
            latencies_ms: Vec::new(),
            baseline: FrameTimes::default(),
            number_taken: 0,
            counts_before: (0, 0),
        }
    }

    /// Whether to draw traces now.
    pub(super) fn has_traces(&self) -> bool {
        matches!(self.phase, Phase::Settle | Phase::Traces)
    }

    /// Called at the end of each frame; `cpu_s` is the cost of the previous one.
    pub(super) fn frame(&mut self, ctx: &egui::Context, panes: &ScopePanes, cpu_s: Option<f32>) {
        let now = Instant::now();
        let taken = panes.model.link.pictures_taken();
        let is_new = taken > std::mem::replace(&mut self.number_taken, taken);
        match self.phase {
            // A frame without a new picture answers another event, and does not count.
            Phase::Traces if !is_new => return,
            Phase::WarmUp | Phase::Baseline => ctx.request_repaint(),
            _ => {}
        }
        if let Some(last) = self.last_frame.replace(now) {
            self.intervals_ms.push((now - last).as_secs_f64() * 1e3);
        }
        self.cpu_ms.extend(cpu_s.map(|seconds| f64::from(seconds) * 1e3));
        let picture = &panes.model.seen.picture;
        if let Some(latency) = picture.latency(monotonic_ns(), true) {
            self.latencies_ms.push(latency.seconds * 1e3);
        }
        let length = match self.phase {
            Phase::WarmUp | Phase::Settle => Duration::from_secs(1),
            _ => self.duration,
        };
        if now - self.since < length {
            return;
        }
        let times = self.times((now - self.since).as_secs_f64());
        let counts = (picture.counts.lost_frames, picture.counts.generator_samples);
        match self.phase {
            Phase::WarmUp => self.phase = Phase::Baseline,
            Phase::Baseline => (self.phase, self.baseline) = (Phase::Settle, times),
            Phase::Settle => (self.phase, self.counts_before) = (Phase::Traces, counts),
            Phase::Traces => {
                let late = self.intervals_ms.iter().filter(|&&ms| ms > 1.5 * 1e3 / 60.0).count();
                let result = WindowBench {
                    baseline: self.baseline,
                    traces: times,
                    misses: late as u64,
                    latency_ms_p50: quantile(&mut self.latencies_ms, 0.5),
                    latency_ms_p99: quantile(&mut self.latencies_ms, 0.99),
                    lost_frames: counts.0.saturating_sub(self.counts_before.0),
                    generator_samples: counts.1 - self.counts_before.1,
                    samples_per_s: picture.flow.samples_per_s,
                };
                *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
                ctx.send_viewport_cmd(egui::ViewportCommand::Close);
            }
        }
        self.since = now;
        self.last_frame = None;
        for values in [&mut self.intervals_ms, &mut self.cpu_ms, &mut self.latencies_ms] {
            values.clear();
        }
        ctx.request_repaint();
    }

    fn times(&mut self, seconds: f64) -> FrameTimes {
        FrameTimes {
            per_s: self.intervals_ms.len() as f64 / seconds,
            cpu_ms_p50: quantile(&mut self.cpu_ms, 0.5),
            cpu_ms_p99: quantile(&mut self.cpu_ms, 0.99),
            interval_ms_p50: quantile(&mut self.intervals_ms, 0.5),
            interval_ms_p99: quantile(&mut self.intervals_ms, 0.99),
        }
    }
}

/// A quantile of the values; 0 without values.
fn quantile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values
        .get(((values.len() as f64 * part) as usize).min(values.len().saturating_sub(1)))
        .copied()
        .unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_those_of_the_sorted_values() {
        let mut values: Vec<f64> = (0..100).rev().map(f64::from).collect();
        assert_eq!((quantile(&mut values, 0.5), quantile(&mut values, 0.99)), (50.0, 99.0));
        assert_eq!(quantile(&mut [], 0.5), 0.0);
    }
}
