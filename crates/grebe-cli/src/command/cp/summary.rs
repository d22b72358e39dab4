//! Summary of a copy, for people and scripts.

use std::time::Duration;

use grebe_connection::{ConnectionStatus, Limit};
use grebe_remote::Route;
use grebe_scope::Engineering;
use serde_json::{Value, json};

use super::figures::Outcome;
use crate::transfer::size;
use crate::units::{counted, grouped};

/// Everything for the summary besides the figures.
pub(super) struct Summary<'a> {
    pub(super) outcome: &'a Outcome,
    pub(super) route: Route,
    pub(super) status: Option<&'a ConnectionStatus>,
    pub(super) is_dry: bool,
    /// Time until the other end was ready.
    pub(super) login: Duration,
    /// Rate limit of both ends.
    pub(super) limit_bits_per_s: Option<f64>,
    /// For people: `me@lab:/data`.
    pub(super) destination: &'a str,
}

/// The summary in words.
pub(super) fn summary(whole: &Summary<'_>, seconds: f64) -> Vec<String> {
    let Summary { outcome, route, is_dry, destination, .. } = whole;
    let files = |count| counted(count, "file");
    let mut first = match (is_dry, outcome.files_copied) {
        (true, count) => {
            format!("would copy {}, {}, to {destination}", files(count), size(outcome.bytes_copied))
        }
        (false, 0) => format!("nothing new for {destination}, in {seconds:.1} s"),
        (false, count) => {
            let copied = format!("copied {}, {}", files(count), size(outcome.bytes_copied));
            format!("{copied}, to {destination} in {seconds:.1} s")
        }
    };
    // Bytes that were not sent took no time, so they are listed separately.
    let rate = Engineering::new(outcome.data_bytes as f64 * 8.0 / seconds.max(1e-3), "bit/s");
    let is_all_moved = outcome.data_bytes >= outcome.bytes_copied;
    if !is_dry && outcome.bytes_copied > 0 && is_all_moved {
        first += &format!(", {rate}");
    }
    if *route != Route::Disk && !is_dry {
        first += &format!(", over {}", route.name());
    }
    let mut more = Vec::new();
    if !is_dry && !is_all_moved {
        let moved = size(outcome.data_bytes);
        more.push(format!("{moved} of it sent, {rate}"));
        if outcome.found_bytes > 0 {
            more.push(format!("{} of it found at the destination", size(outcome.found_bytes)));
        }
        if outcome.spared_bytes() > 0 {
            // Within one machine the file system may share blocks.
            let what = if *route == Route::Disk { "holes, or shared with its source" } else { "holes" };
            more.push(format!("{} of it {what}", size(outcome.spared_bytes())));
        }
    }
    if *route != Route::Disk && !is_dry {
        more.push(format!("{} on the wire", size(wire_bytes(whole))));
    }
    if outcome.files_same > 0 {
        more.push(format!("{}, {}, unchanged", files(outcome.files_same), size(outcome.bytes_same)));
    }
    let made =
        [(outcome.links_made, "link", "links"), (outcome.directories_made, "directory", "directories")];
    for (count, one, several) in made.into_iter().filter(|(count, ..)| *count > 0) {
        let word = if *is_dry { "to make" } else { "made" };
        more.push(format!("{} {} {word}", grouped(count), if count == 1 { one } else { several }));
    }
    if outcome.deleted > 0 {
        let word = if *is_dry { "to remove" } else { "removed" };
        more.push(format!("{} {word}", grouped(outcome.deleted)));
    }
    if let Some(limit) = limit(whole, seconds) {
        more.push(format!("limit: {limit}"));
    }
    let mut lines = vec![first];
    if !more.is_empty() {
        lines.push(more.join("; "));
    }
    lines
}

/// The summary for scripts.
pub(super) fn result_json(whole: &Summary<'_>, seconds: f64) -> Value {
    let Summary { outcome, route, status, .. } = whole;
    let left_out: Vec<_> =
        outcome.left_out.iter().map(|(name, why)| json!({ "path": name, "why": why })).collect();
    let mut value = json!(outcome);
    value["left_out"] = left_out.into();
    value["complete"] = (outcome.left_out_count == 0).into();
    value["route"] = json!(route);
    value["seconds"] = seconds.into();
    value["wire_bytes"] = wire_bytes(whole).into();
    value["limit"] = limit(whole, seconds).into();
    if let Some(status) = status.map(ConnectionStatus::progress) {
        value["rtt_us"] = status.rtt_us.into();
        value["loss"] = status.loss.into();
    }
    value
}

/// With headers and repeats if known, else the bytes of the stream.
fn wire_bytes(whole: &Summary<'_>) -> u64 {
    let sent = whole.status.map(|status| status.progress().wire_bytes).unwrap_or_default();
    sent.max(whole.outcome.wire_bytes)
}

/// The limit of the rate, if the copy took long enough.
fn limit(whole: &Summary<'_>, seconds: f64) -> Option<&'static str> {
    if seconds < 1.0 || whole.is_dry {
        return None;
    }
    if whole.status.is_some_and(|status| status.progress().limit == Limit::Bandwidth) {
        return Some("--bwlimit");
    }
    if whole.login.as_secs_f64() >= seconds / 2.0 {
        return Some("logging in by ssh");
    }
    let [(sender_stream, sender_disk), (receiver_stream, receiver_disk)] = whole.outcome.waits_ms;
    // An end that waits for the stream may wait for the other end. The path was the limit only if both waited.
    let path = sender_stream.min(receiver_stream);
    let reasons = [(path, "the path"), (sender_disk, "reading"), (receiver_disk, "writing")];
    let (waited_ms, reason) = reasons.into_iter().max_by_key(|(ms, _)| *ms)?;
    let waited = if waited_ms as f64 >= 300.0 * seconds { reason } else { "the processors" };
    // Near its end a copy has less to send than the limit allows.
    let copying_s = (seconds - whole.login.as_secs_f64()).max(1e-3);
    let rate_bits_per_s = wire_bytes(whole) as f64 * 8.0 / copying_s;
    let is_told = whole.limit_bits_per_s.is_some_and(|limit| rate_bits_per_s >= 0.7 * limit);
    Some(if waited == "the path" && is_told { "--bwlimit" } else { waited })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(outcome: &Outcome) -> Summary<'_> {
        let login = Duration::from_secs(1);
        let (route, limit_bits_per_s) = (Route::Udp, None);
        Summary {
            outcome,
            route,
            status: None,
            is_dry: false,
            login,
            limit_bits_per_s,
            destination: "lab:/data",
        }
    }

    #[test]
    fn the_summary_has_copied_and_unchanged_files_and_the_limit() {
        let outcome = Outcome {
            files_copied: 2_000,
            bytes_copied: 8_192_000,
            data_bytes: 8_192_000,
            files_same: 1,
            bytes_same: 10,
            directories_made: 1,
            wire_bytes: 8_300_000,
            waits_ms: [(4_000, 10), (3_900, 20)],
            ..Outcome::default()
        };
        let lines = summary(&whole(&outcome), 4.9);
        assert!(
            lines[0].starts_with("copied 2,000 files, 8.19 MB, to lab:/data in 4.9 s, 13.4 Mbit/s"),
            "{lines:?}"
        );
        assert!(lines[0].ends_with("over UDP"), "{lines:?}");
        for words in ["8.3 MB on the wire", "1 file, 10 B, unchanged", "1 directory made", "limit: the path"]
        {
            assert!(lines[1].contains(words), "{words} in {lines:?}");
        }
        assert!(!lines[1].contains("of it"), "all of it was sent: {lines:?}");
        let told = |limit| Summary { limit_bits_per_s: Some(limit), ..whole(&outcome) };
        assert_eq!(limit(&told(20e6), 4.9), Some("--bwlimit"), "17 Mbit/s, once both ends were there");
        assert_eq!(limit(&told(100e6), 4.9), Some("the path"));
        let slow_disk = Outcome { waits_ms: [(4_000, 10), (100, 3_000)], ..outcome.clone() };
        assert_eq!(limit(&whole(&slow_disk), 4.9), Some("writing"));
        let busy = Outcome { waits_ms: [(400, 10), (100, 300)], ..outcome };
        assert_eq!(limit(&whole(&busy), 4.9), Some("the processors"));
        let late = Summary { login: Duration::from_secs(3), ..whole(&busy) };
        assert_eq!(limit(&late, 4.9), Some("logging in by ssh"));
        let dry = Outcome { files_copied: 1, deleted: 2, links_made: 1, ..Outcome::default() };
        let lines = summary(&Summary { is_dry: true, ..whole(&dry) }, 4.9).join("\n");
        assert!(lines.starts_with("would copy 1 file"), "{lines}");
        assert!(lines.contains("1 link to make; 2 to remove"), "{lines}");
    }

    #[test]
    fn bytes_that_did_not_travel_are_listed_separately_and_not_in_the_rate() {
        let sparse = Outcome {
            files_copied: 1,
            bytes_copied: 10_000_000_000,
            data_bytes: 1_000_000,
            found_bytes: 2_000_000,
            ..Outcome::default()
        };
        let lines = summary(&whole(&sparse), 0.5);
        assert_eq!(lines[0], "copied 1 file, 10 GB, to lab:/data in 0.5 s, over UDP");
        let words = "1 MB of it sent, 16 Mbit/s; 2 MB of it found at the destination; 10 GB of it holes";
        assert!(lines[1].starts_with(words), "{lines:?}");
        let shared = Outcome { data_bytes: 0, found_bytes: 0, ..sparse };
        let lines = summary(&Summary { route: Route::Disk, ..whole(&shared) }, 0.5);
        let words = "0 B of it sent, 0 bit/s; 10 GB of it holes, or shared with its source";
        assert_eq!(lines[1], words, "{lines:?}");
    }
}
