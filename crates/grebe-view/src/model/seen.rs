//! The newest picture, statistics over pictures, and the texts about them.

mod cpu;
pub(crate) mod hud;
pub(crate) mod stream_words;

use std::net::SocketAddr;
use std::sync::Arc;

use grebe_flow::monotonic_ns;
use grebe_frame::Description;
use grebe_scope::{Engineering, MeasurementStatistics};

use crate::data::lane::PerLane;
use crate::data::picture::Picture;
use crate::data::status::{GapPlaces, SourceStatus};
use cpu::CpuMeter;
use hud::Hud;

/// The visible state of the stream.
pub(crate) struct Seen {
    pub(crate) picture: Picture,
    /// Number of the present stream, and the first sample that was seen of it.
    pub(super) began: (u64, u64),
    /// A new picture that is not shown yet.
    pub(super) next: Option<Picture>,
    pub(crate) hud: Hud,
    /// The places of the losses.
    pub(super) gap_places: GapPlaces,
    /// The description that the lanes have.
    pub(super) heard: Option<Arc<Description>>,
    /// Statistics since the view changed.
    pub(super) statistics: PerLane<MeasurementStatistics>,
    /// The last measurement in the statistics, and its span.
    pub(super) counted: (u64, f64),
    /// When the texts around the picture were made; 0: they must be made again.
    pub(super) hud_made_ns: u64,
    /// The source's notice at that time.
    pub(super) told: Option<String>,
    /// Other senders to the same port that were already reported.
    pub(super) told_senders: Vec<SocketAddr>,
    /// Number of pictures, and the start of the count.
    pub(super) taken: (u32, u64),
    pub(super) pictures_per_s: f64,
    pub(super) cpu: CpuMeter,
    /// CPU usage of this process, as a part of one core.
    pub(super) cpu_part: Option<f64>,
}

impl Seen {
    /// The state before the first picture.
    pub(super) fn new(status: &SourceStatus) -> Seen {
        let picture = Picture::waiting();
        Seen {
            hud: Hud::new(&picture, status, false, 0.0, monotonic_ns()),
            picture,
            began: (0, 0),
            next: None,
            gap_places: GapPlaces::default(),
            heard: None,
            statistics: PerLane::default(),
            counted: (0, 0.0),
            hud_made_ns: 0,
            told: None,
            told_senders: Vec::new(),
            taken: (0, 0),
            pictures_per_s: 0.0,
            cpu: CpuMeter::default(),
            cpu_part: None,
        }
    }

    pub(super) fn count_measurements(&mut self) {
        let (count, span) = (self.picture.measured_count, self.picture.span_samples);
        if self.counted.1 != span {
            self.statistics = Default::default();
        }
        if self.counted != (count, span) {
            for measured in &self.picture.measured {
                self.statistics.or_insert_with(measured.lane, Default::default).add(&measured.set);
            }
        }
        self.counted = (count, span);
    }

    /// The costs of this scope: CPU and memory.
    pub(super) fn costs(&self) -> String {
        let history = Engineering::new(self.picture.memory_bytes as f64, "B");
        match self.cpu_part {
            _ if self.picture.memory_bytes == 0 => String::new(),
            Some(part) => format!("cpu {:.0} %  history {history}", part * 100.0),
            None => format!("history {history}"),
        }
    }

    /// Figures of the machine are not in the pictures of tests.
    #[cfg(test)]
    pub(crate) fn stop_counting(&mut self) {
        self.taken.1 = u64::MAX;
    }

    pub(super) fn count_pictures(&mut self, now_ns: u64) {
        let (taken, since_ns) = self.taken;
        let seconds = now_ns.saturating_sub(since_ns) as f64 * 1e-9;
        if seconds >= 1.0 {
            self.cpu_part = self.cpu.look(now_ns);
            self.pictures_per_s = if since_ns == 0 { 0.0 } else { f64::from(taken) / seconds };
            self.taken = (0, now_ns);
        }
    }
}
