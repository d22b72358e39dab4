//! What was seen: the newest picture, what was counted over pictures, and the words for it.

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

/// What came of the stream so far, as far as it is shown.
pub(crate) struct Seen {
    pub(crate) picture: Picture,
    /// One that came, and is not shown yet.
    pub(super) next: Option<Picture>,
    pub(crate) hud: Hud,
    /// In which place the gaps were lost.
    pub(super) gap_places: GapPlaces,
    /// What the stream said of itself, as far as the lanes know it.
    pub(super) heard: Option<Arc<Description>>,
    /// Since the view changed.
    pub(super) statistics: PerLane<MeasurementStatistics>,
    /// The last measurement that is in the statistics, and of which span.
    pub(super) counted: (u64, f64),
    /// When the words around the picture were made; 0: they are due.
    pub(super) hud_made_ns: u64,
    /// What the source said when the words were made.
    pub(super) told: Option<String>,
    /// Senders to the same port that were told of.
    pub(super) told_senders: Vec<SocketAddr>,
    /// Pictures taken, and since when.
    pub(super) taken: (u32, u64),
    pub(super) pictures_per_s: f64,
    pub(super) cpu: CpuMeter,
    /// Part of one core that this process uses.
    pub(super) cpu_part: Option<f64>,
}

impl Seen {
    /// Before the first picture.
    pub(super) fn new(status: &SourceStatus) -> Seen {
        let picture = Picture::waiting();
        Seen {
            hud: Hud::new(&picture, status, false, 0.0, monotonic_ns()),
            picture,
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

    /// The costs of this scope: processor and history.
    pub(super) fn costs(&self) -> String {
        let history = Engineering::new(self.picture.memory_bytes as f64, "B");
        match self.cpu_part {
            _ if self.picture.memory_bytes == 0 => String::new(),
            Some(part) => format!("cpu {:.0} %  history {history}", part * 100.0),
            None => format!("history {history}"),
        }
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
