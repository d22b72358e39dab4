//! Counters of the arrival of frames at a source.

use grebe_flow::Counters;
use grebe_frame::{Refusal, Refusals, StreamTracker};

/// Counters with the same names in every source that receives frames.
#[derive(Debug)]
pub struct ArrivalCounters {
    shared: Counters,
}

impl Default for ArrivalCounters {
    fn default() -> Self {
        Self { shared: Counters::new(NAMES).with_gauges(&["kernel_drops_known", "clock_error_ns"]) }
    }
}

impl ArrivalCounters {
    /// Counters for the graph.
    pub fn shared(&self) -> Counters {
        self.shared.clone()
    }

    /// Publishes arrivals and losses of the stream.
    pub fn publish(&self, tracker: &StreamTracker) {
        let counts = tracker.counts();
        self.shared.set_all([
            counts.lost_frames,
            counts.lost_samples,
            counts.generator_samples,
            counts.late_frames,
            counts.late_samples,
            counts.duplicate_frames,
            counts.streams,
        ]);
    }

    /// Publishes refusals by reason.
    pub fn publish_refusals(&self, refusals: &Refusals) {
        for reason in Refusal::ALL {
            self.shared.set(REFUSED + reason as usize, refusals.count(reason));
        }
    }

    /// Publishes datagrams dropped by the kernel. `None`: unknown, which differs from zero.
    pub fn publish_kernel_drops(&self, drops: Option<u64>) {
        self.shared.set(KERNEL, drops.unwrap_or(0));
        self.shared.set(KERNEL_KNOWN, u64::from(drops.is_some()));
    }

    /// Publishes foreign datagrams and copied frames.
    pub fn publish_socket(&self, foreign_datagrams: u64, copied_frames: u64) {
        self.shared.set(FOREIGN, foreign_datagrams);
        self.shared.set(COPIED, copied_frames);
    }

    /// Publishes the uncertainty of times by this host's clock; `None` if it is not measured.
    pub fn publish_clock(&self, error_ns: Option<u64>) {
        self.shared.set(CLOCK_ERROR, error_ns.unwrap_or(0));
    }
}

const NAMES: &[&str] = &[
    "lost_frames",
    "lost_samples",
    "generator_samples",
    "late_frames",
    "late_samples",
    "duplicate_frames",
    "streams",
    "refused_short",
    "refused_magic",
    "refused_header_bytes",
    "refused_channel_count",
    "refused_payload_bytes",
    "refused_truncated",
    "refused_trailing",
    "refused_crc",
    "refused_rate",
    "refused_sample_format",
    "refused_kind",
    "refused_description",
    "kernel_drops",
    // 1 if the system reports drops.
    "kernel_drops_known",
    "foreign_datagrams",
    "copied_frames",
    // 0 if it is not measured.
    "clock_error_ns",
];
const REFUSED: usize = 7;
const KERNEL: usize = REFUSED + Refusal::ALL.len();
const KERNEL_KNOWN: usize = KERNEL + 1;
const FOREIGN: usize = KERNEL + 2;
const COPIED: usize = KERNEL + 3;
const CLOCK_ERROR: usize = KERNEL + 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_count_stands_under_its_name() {
        let counters = ArrivalCounters::default();
        let mut refusals = Refusals::default();
        for (times, reason) in Refusal::ALL.into_iter().enumerate() {
            (0..=times).for_each(|_| refusals.add(reason));
        }
        counters.publish_refusals(&refusals);
        for reason in Refusal::ALL {
            let name = format!("refused_{}", reason.name());
            assert_eq!(counters.shared().get(&name), Some(refusals.count(reason)), "{name}");
        }
        counters.publish_kernel_drops(Some(3));
        counters.publish_socket(5, 7);
        let shared = counters.shared();
        let named = ["kernel_drops", "kernel_drops_known", "foreign_datagrams", "copied_frames"];
        assert_eq!(named.map(|name| shared.get(name)), [Some(3), Some(1), Some(5), Some(7)]);
    }
}
