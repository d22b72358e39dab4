//! Disk statistics of a recorder.

use std::fmt;
use std::time::Duration;

use grebe_flow::StageSnapshot;
use serde_json::{Value, json};

use crate::units::grouped;

/// Use of the disk by a recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DiskUse {
    is_io_uring: bool,
    is_past_cache: bool,
    stall_us_max: u64,
    waited_us: u64,
    fill_bytes: u64,
    fill_bytes_max: u64,
    buffer_bytes: u64,
    unsummed_bytes: u64,
    lost_summaries: u64,
    lost_spectra: u64,
}

impl DiskUse {
    /// `None` if the stage writes to no disk, or has not begun.
    pub(crate) fn of(stage: &StageSnapshot) -> Option<Self> {
        Self::named(stage, "disk")
    }

    fn named(stage: &StageSnapshot, disk: &str) -> Option<Self> {
        let own = |name: &str| stage.own(&format!("{disk}_{name}")).unwrap_or(0);
        let buffer_bytes = Some(own("buffer_bytes")).filter(|&bytes| bytes > 0)?;
        Some(Self {
            is_io_uring: own("io_uring") > 0,
            is_past_cache: own("past_cache") > 0,
            stall_us_max: own("stall_us_max"),
            waited_us: own("waited_us"),
            fill_bytes: own("buffer_fill_bytes"),
            fill_bytes_max: own("buffer_fill_bytes_max"),
            buffer_bytes,
            unsummed_bytes: own("unsummed_bytes"),
            lost_summaries: own("lost_summaries"),
            lost_spectra: own("lost_spectra"),
        })
    }

    /// Whether a counter belongs here.
    pub(crate) fn is_of(counter: &str) -> bool {
        counter.starts_with("disk")
    }

    /// Fill level of the buffer in percent.
    pub(crate) fn fill_percent(&self) -> u64 {
        percent(self.fill_bytes, self.buffer_bytes)
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "method": if self.is_io_uring { "io_uring" } else { "threads" },
            "past_page_cache": self.is_past_cache,
            "longest_stall_us": self.stall_us_max,
            "waited_us": self.waited_us,
            "buffer_fill_bytes_max": self.fill_bytes_max,
            "buffer_bytes": self.buffer_bytes,
            "unsummed_bytes": self.unsummed_bytes,
            "lost_summaries": self.lost_summaries,
            "lost_spectra": self.lost_spectra,
        })
    }
}

impl fmt::Display for DiskUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = if self.is_io_uring { "io_uring" } else { "threads" };
        let past = if self.is_past_cache { "past" } else { "through" };
        let fill = percent(self.fill_bytes_max, self.buffer_bytes);
        let (stall, megabytes) = (Duration::from_micros(self.stall_us_max), self.buffer_bytes / 1_000_000);
        write!(f, "disk: {way}, {past} the page cache; longest stall {stall:.1?}; ")?;
        write!(f, "buffer of {megabytes} MB at most {fill} % full")?;
        if self.waited_us > 0 {
            let waited = Duration::from_micros(self.waited_us);
            write!(f, "; it was full for {waited:.1?}, and the stream had to wait: increase --buffer")?;
        }
        if self.unsummed_bytes > 0 {
            let megabytes = self.unsummed_bytes / 1_000_000;
            write!(f, "; no checksum for {megabytes} MB, for lack of time")?;
        }
        if self.lost_summaries > 0 {
            write!(f, "; no summary, for lack of time; grebe view makes it later")?;
        } else if self.lost_spectra > 0 {
            write!(f, "; no spectral summary, for lack of time; grebe view makes it later")?;
        }
        Ok(())
    }
}

/// Use of one of several disks.
pub(crate) struct OneDisk {
    number: usize,
    samples: u64,
    state: &'static str,
    used: DiskUse,
}

impl OneDisk {
    /// Empty for a recorder on one disk.
    pub(crate) fn all(stage: &StageSnapshot) -> Vec<Self> {
        let one = |number: usize| {
            let name = format!("disk{number}");
            let own = |value: &str| stage.own(&format!("{name}_{value}"));
            let state = ["good", "full", "failed"].get(own("state")? as usize)?;
            Some(Self { number, samples: own("samples")?, state, used: DiskUse::named(stage, &name)? })
        };
        (1..).map_while(one).collect()
    }

    pub(crate) fn json(&self) -> Value {
        let mut value = self.used.json();
        value["samples"] = self.samples.into();
        value["state"] = self.state.into();
        value
    }
}

impl fmt::Display for OneDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, samples, used, .. } = self;
        let fill = percent(used.fill_bytes_max, used.buffer_bytes);
        let stall = Duration::from_micros(used.stall_us_max);
        write!(f, "  disk {number}: {} samples per channel", grouped(*samples))?;
        if self.state != "good" {
            write!(f, ", then {}", self.state)?;
        }
        write!(f, "; longest stall {stall:.1?}; its buffer at most {fill} % full")
    }
}

fn percent(part: u64, whole: u64) -> u64 {
    (part * 100).div_ceil(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_follow_the_summary() {
        let good = DiskUse {
            is_io_uring: true,
            is_past_cache: true,
            stall_us_max: 31_400,
            waited_us: 0,
            fill_bytes: 0,
            fill_bytes_max: 30_000_000,
            buffer_bytes: 256_000_000,
            unsummed_bytes: 0,
            lost_summaries: 0,
            lost_spectra: 0,
        };
        assert_eq!(
            good.to_string(),
            "disk: io_uring, past the page cache; longest stall 31.4ms; buffer of 256 MB at most 12 % full"
        );
        let bad = DiskUse { is_io_uring: false, is_past_cache: false, waited_us: 1_200_000, ..good };
        let said = bad.to_string();
        assert!(said.starts_with("disk: threads, through the page cache; "), "{said}");
        assert!(said.contains("; it was full for 1.2s, and the stream had to wait"), "{said}");
    }
}
