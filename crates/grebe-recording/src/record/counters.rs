//! Counters of a recorder and of its disks.

use std::time::Duration;

use grebe_flow::Counters;

use super::Stripes;
use crate::disk::{DiskReport, WriteMethod};

/// Counter names of a recorder on `disks` disks.
pub(super) fn names(disks: usize) -> &'static [&'static str] {
    if disks > 1 { SEVERAL_DISKS } else { ONE_DISK }
}

/// Enters how the disks keep up: all of them together, and where there are several, each.
pub(super) fn set_disks(counters: &Counters, writer: &Stripes) {
    let set = |first: usize, values: &[u64]| {
        (first..).zip(values).for_each(|(counter, &value)| counters.set(counter, value));
    };
    let mut all: Option<DiskReport> = None;
    for (number, state, samples, report) in writer.disks() {
        all = Some(all.map_or(report, |all| all.beside(&report)));
        if writer.is_striped() {
            let first = FIRST_DISK + number * (DISK_VALUES + 2);
            set(first, &values(&report));
            set(first + DISK_VALUES, &[samples, state as u64]);
        }
    }
    set(DISK, &values(&all.unwrap_or_default()));
    set(LOST, &[writer.lost_samples()]);
}

fn values(disk: &DiskReport) -> [u64; DISK_VALUES] {
    let us = |time: Duration| time.as_micros() as u64;
    [
        u64::from(disk.method == WriteMethod::IoUring),
        u64::from(disk.is_direct),
        us(disk.longest_stall),
        us(disk.waited),
        disk.fill_bytes,
        disk.fill_bytes_max,
        disk.buffer_bytes,
        disk.unsummed_bytes,
        disk.lost_summaries,
        disk.lost_spectra,
    ]
}

/// Counters of a recorder with all its disks, then of each disk.
macro_rules! counters {
    ($($disk:literal)*) => {
        &[
            "recorded_samples",
            "gap_samples",
            "recorded_frames",
            "annotations",
            "left_out_annotations",
            "parts",
            "disk_io_uring",
            "disk_past_cache",
            "disk_stall_us_max",
            "disk_waited_us",
            "disk_buffer_fill_bytes",
            "disk_buffer_fill_bytes_max",
            "disk_buffer_bytes",
            "disk_unsummed_bytes",
            "disk_lost_summaries",
            "disk_lost_spectra",
            "disk_lost_samples",
            "gaps",
            "restart_missing_ms",
            $(
                concat!("disk", $disk, "_io_uring"),
                concat!("disk", $disk, "_past_cache"),
                concat!("disk", $disk, "_stall_us_max"),
                concat!("disk", $disk, "_waited_us"),
                concat!("disk", $disk, "_buffer_fill_bytes"),
                concat!("disk", $disk, "_buffer_fill_bytes_max"),
                concat!("disk", $disk, "_buffer_bytes"),
                concat!("disk", $disk, "_unsummed_bytes"),
                concat!("disk", $disk, "_lost_summaries"),
                concat!("disk", $disk, "_lost_spectra"),
                concat!("disk", $disk, "_samples"),
                concat!("disk", $disk, "_state"),
            )*
        ]
    };
}

const ONE_DISK: &[&str] = counters!();
const SEVERAL_DISKS: &[&str] = counters!(1 2 3 4 5 6 7 8);
pub(super) const DISKS_MAX: usize = 8;

/// Of each of several disks they are called after its number.
pub(super) const GAUGES: &[&str] = &[
    "disk_io_uring",
    "disk_past_cache",
    "disk_stall_us_max",
    "disk_buffer_fill_bytes",
    "disk_buffer_fill_bytes_max",
    "disk_buffer_bytes",
    "disk_unsummed_bytes",
    "disk_state",
];

pub(super) const RECORDED: usize = 0;
pub(super) const GAP: usize = 1;
pub(super) const FRAMES: usize = 2;
pub(super) const ANNOTATIONS: usize = 3;
pub(super) const LEFT_OUT: usize = 4;
pub(super) const PARTS: usize = 5;
/// Index of the first counter that each disk has, and their number.
const DISK: usize = 6;
const DISK_VALUES: usize = 10;
/// Samples that were lost with a disk.
const LOST: usize = DISK + DISK_VALUES;
/// Gaps, and the time that is missing where senders began again.
pub(super) const GAPS: usize = LOST + 1;
pub(super) const RESTART_MISSING: usize = LOST + 2;
const FIRST_DISK: usize = LOST + 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_disk_has_its_counters_where_they_are_set() {
        assert_eq!(names(1).len(), FIRST_DISK);
        assert_eq!(names(2).len(), FIRST_DISK + DISKS_MAX * (DISK_VALUES + 2));
        assert_eq!((names(1)[LOST], names(1)[GAPS]), ("disk_lost_samples", "gaps"));
        assert_eq!(names(2)[FIRST_DISK + 2 * (DISK_VALUES + 2)], "disk3_io_uring");
        assert_eq!(names(2).last(), Some(&"disk8_state"));
    }
}
