//! `grebe doctor --disk`: sustainable recording rate of a disk.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use grebe_recording::{DiskMeasure, WriteMethod, measure_disk};
use grebe_scope::Engineering;
use serde_json::json;

use crate::ending::{Ending, Usage};
use crate::interrupt;
use crate::output;

pub(super) fn run(folder: &Path, size_bytes: Option<usize>, as_json: bool) -> Result<Ending> {
    if size_bytes == Some(0) {
        return Err(Usage("0 bytes measure nothing: give a larger --size, for example 10G".to_owned()).into());
    }
    let (cancel, bar) = (interrupt::cancel(), output::bar(None));
    let mut progress = |bytes: u64, time: Duration| {
        let rate = Engineering::new(bytes as f64 / time.as_secs_f64(), "B/s");
        bar.set_message(format!("{}  {rate}  {:.0?}", Engineering::new(bytes as f64, "B"), time));
    };
    // --size determines the amount, whatever the time.
    let duration = if size_bytes.is_some() { Duration::MAX } else { DURATION };
    let found = measure_disk(folder, duration, size_bytes.map(|bytes| bytes as u64), &cancel, &mut progress);
    bar.finish_and_clear();
    let found = match found {
        Err(error) if error.is_full() => {
            let help = "the measurement did not fit on the disk: free some space, or give a smaller --size";
            return Err(error).context(help);
        }
        found => found?,
    };
    if as_json {
        output::json(&as_values(&found))?;
    } else {
        output::text(&verdict(folder, &found))?;
    }
    Ok(Ending::Good)
}

fn verdict(folder: &Path, found: &DiskMeasure) -> String {
    let rate = |bytes_s: f64| Engineering::new(bytes_s, "B/s").to_string();
    let size = |bytes: f64| Engineering::new(bytes, "B").to_string();
    let DiskMeasure { bytes, time, rates_bytes_s, report } = found;
    let by = if report.method == WriteMethod::IoUring { "io_uring" } else { "threads" };
    let past = if report.is_direct { "past" } else { "through" };
    let (slowest, safe) = (found.slowest_bytes_s(), safe_bytes_s(found));
    let mut text = format!(
        "{}: {by}, {past} the page cache; {} in {:.1} s\n",
        folder.display(),
        size(*bytes as f64),
        time.as_secs_f64()
    );
    text += &format!(
        "  first second {}, slowest second {}, longest stall {:.1?}\n",
        rate(rates_bytes_s[0]),
        rate(slowest),
        report.longest_stall
    );
    text += &format!(
        "  safe recording rate: {}, or {} of 16 bits in all channels\n",
        rate(safe),
        Engineering::new(safe / 2.0, "S/s")
    );
    let buffer = safe * report.longest_stall.as_secs_f64() * 2.0;
    if buffer > report.buffer_bytes as f64 {
        text += &format!("  with --buffer {}M: twice the data of its longest stall\n", (buffer / 1e6).ceil());
    }
    if *bytes < CACHE_BYTES {
        text += &format!(
            "  {} may fit into a cache of the disk, after which it is slower; --size 100G exceeds most caches\n",
            size(*bytes as f64)
        );
    }
    if !report.is_direct {
        text += "  this includes the system's page cache; the sustained rate of the disk may be a fraction of it\n";
    }
    text
}

fn as_values(found: &DiskMeasure) -> serde_json::Value {
    json!({
        "bytes": found.bytes,
        "seconds": found.time.as_secs_f64(),
        "rates_bytes_s": found.rates_bytes_s,
        "slowest_bytes_s": found.slowest_bytes_s(),
        "safe_bytes_s": safe_bytes_s(found),
        "longest_stall_us": found.report.longest_stall.as_micros() as u64,
        "method": if found.report.method == WriteMethod::IoUring { "io_uring" } else { "threads" },
        "past_page_cache": found.report.is_direct,
        "beyond_caches": found.bytes >= CACHE_BYTES && found.report.is_direct,
    })
}

/// 80 % of the rate in the slowest second.
fn safe_bytes_s(found: &DiskMeasure) -> f64 {
    found.slowest_bytes_s() * 0.8
}

const DURATION: Duration = Duration::from_secs(20);
/// Drives with flash memory first write tens of GB into a faster area.
const CACHE_BYTES: u64 = 64_000_000_000;

#[cfg(test)]
mod tests {
    use grebe_recording::DiskReport;

    use super::*;

    #[test]
    fn the_safe_rate_follows_the_slowest_second_and_unmeasured_caches_are_named() {
        let report = DiskReport {
            method: WriteMethod::IoUring,
            is_direct: true,
            longest_stall: Duration::from_millis(400),
            buffer_bytes: 256 << 20,
            ..DiskReport::default()
        };
        let rates_bytes_s = vec![1.8e9, 1.0e9, 1.6e9];
        let found = DiskMeasure { bytes: 4_400_000_000, time: Duration::from_secs(3), rates_bytes_s, report };
        let text = verdict(Path::new("/data"), &found);
        assert!(text.starts_with("/data: io_uring, past the page cache; 4.4"), "{text}");
        assert!(text.contains("safe recording rate: 800 MB/s, or 400 MS/s of 16 bits"), "{text}");
        assert!(text.contains("with --buffer 640M"), "{text}");
        assert!(text.contains("may fit into a cache of the disk"), "{text}");
        let told = as_values(&found);
        assert_eq!(
            (told["beyond_caches"].as_bool(), told["safe_bytes_s"].as_f64()),
            (Some(false), Some(8e8))
        );
    }
}
