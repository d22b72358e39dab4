//! Report at the end of a command: handled samples, and losses by place.

use std::fmt;
use std::path::Path;

use anyhow::Result;
use grebe_flow::{QueueSnapshot, Snapshot, StageSnapshot};
use grebe_frame::Refusal;
use serde_json::{Value, json};

use crate::command::info::clock_gap_words;
use crate::ending::{Ending, one_line, reported_in_json};
use crate::graph::disk_use::{DiskUse, OneDisk};
use crate::output::{self, note};
use crate::units::{counted, grouped};

/// Losses by place, from all counters of a graph.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Losses {
    /// Samples per channel that the generator could not make in time.
    pub(crate) generator_samples: u64,
    /// Lost frames and samples per channel.
    pub(crate) network_frames: u64,
    pub(crate) network_samples: u64,
    /// Datagrams that the kernel dropped because the receive buffer was full, if the system counts them.
    pub(crate) kernel_drops: Option<u64>,
    /// Frames that a full queue dropped.
    pub(crate) queue_frames: u64,
    /// Their samples per channel.
    pub(crate) queue_samples: u64,
    /// Gaps in a recording, and the samples per channel that are missing in them, whatever lost them.
    pub(crate) gaps: u64,
    pub(crate) gap_samples: u64,
    /// Time that is missing by the clock where senders began again.
    pub(crate) restart_ms: u64,
    /// Frames that arrived too late, and their samples per channel, which are missing.
    pub(crate) late_frames: u64,
    pub(crate) late_samples: u64,
    pub(crate) duplicate_frames: u64,
    pub(crate) refused_datagrams: u64,
    pub(crate) foreign_datagrams: u64,
    /// VITA-49 packets of other streams.
    pub(crate) other_stream_packets: u64,
    /// Sends that were refused because no process listens at the port.
    pub(crate) refused_sends: u64,
    /// Datagrams that the system refused.
    pub(crate) unsent_datagrams: u64,
    /// Samples dropped for slow clients of a server, and samples without a client.
    pub(crate) client_samples: u64,
    pub(crate) absent_samples: u64,
    /// Samples per channel lost with one of a recorder's disks.
    pub(crate) disk_samples: u64,
    /// Times that a radio had no samples to send.
    pub(crate) underflows: u64,
    /// Gaps of a device whose length is unknown.
    pub(crate) unknown_gaps: u64,
    /// Times that a sound device had no samples to play.
    pub(crate) underruns: u64,
    /// Lines that are not numbers.
    pub(crate) bad_lines: u64,
    /// Bytes and messages that make no whole sample, and datagrams that have none.
    pub(crate) odd_bytes: u64,
    pub(crate) odd_messages: u64,
    pub(crate) short_datagrams: u64,
    /// Samples per channel that are missing because their host was away.
    pub(crate) away_samples: u64,
    /// Samples per channel that were in flight to a host that went away.
    pub(crate) unconfirmed_samples: u64,
    /// Samples per channel that were due by the clock and did not come, about.
    pub(crate) clock_samples: u64,
    /// Samples may be missing without notice.
    pub(crate) is_unseen: bool,
}

impl Losses {
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let own = |name: &str| snapshot.stages.iter().filter_map(|stage| stage.own(name)).sum::<u64>();
        Self {
            generator_samples: own("generator_samples").max(own("dropped_samples")),
            network_frames: own("lost_frames"),
            network_samples: own("lost_samples"),
            kernel_drops: (own("kernel_drops_known") > 0).then(|| own("kernel_drops")),
            queue_frames: dropped(snapshot).map(|queue| queue.dropped_frames).sum(),
            queue_samples: dropped(snapshot).map(|queue| queue.dropped_samples).sum(),
            gaps: own("gaps"),
            gap_samples: recorders(snapshot).filter_map(|stage| stage.own("gap_samples")).sum(),
            restart_ms: own("restart_missing_ms"),
            late_frames: own("late_frames") + own("late_datagrams"),
            late_samples: own("late_samples"),
            duplicate_frames: own("duplicate_frames"),
            refused_datagrams: refusals(snapshot).map(|(_, count)| count).sum(),
            foreign_datagrams: own("foreign_datagrams"),
            other_stream_packets: own("other_stream_packets"),
            refused_sends: own("refused"),
            unsent_datagrams: own("unsent"),
            client_samples: own("client_dropped_samples"),
            absent_samples: own("absent_samples"),
            disk_samples: own("disk_lost_samples"),
            underflows: own("underflows"),
            unknown_gaps: own("unknown_gaps"),
            underruns: own("underruns"),
            bad_lines: own("bad_lines"),
            odd_bytes: own("odd_bytes"),
            odd_messages: own("odd_messages"),
            short_datagrams: own("short_datagrams"),
            away_samples: own("away_samples"),
            unconfirmed_samples: own("unconfirmed_samples"),
            clock_samples: own("clock_missing_samples"),
            is_unseen: own("unseen_loss") > 0,
        }
    }

    /// Whether nothing was lost or refused, as far as known.
    pub(crate) fn is_none(&self) -> bool {
        let kernel_drops = self.kernel_drops.filter(|&drops| drops == 0);
        // No reader wanted these.
        let other_stream_packets = self.other_stream_packets;
        *self == Self { kernel_drops, other_stream_packets, is_unseen: self.is_unseen, ..Self::default() }
    }

    fn json(&self) -> Value {
        json!({
            "generator_samples": self.generator_samples,
            "network_frames": self.network_frames,
            "network_samples": self.network_samples,
            "kernel_drops": self.kernel_drops,
            "queue_frames": self.queue_frames,
            "queue_samples": self.queue_samples,
            "gaps": self.gaps,
            "gap_samples": self.gap_samples,
            "restart_s": self.restart_ms as f64 / 1e3,
            "late_frames": self.late_frames,
            "late_samples": self.late_samples,
            "duplicate_frames": self.duplicate_frames,
            "foreign_datagrams": self.foreign_datagrams,
            "other_stream_packets": self.other_stream_packets,
            "refused_sends": self.refused_sends,
            "unsent_datagrams": self.unsent_datagrams,
            "client_samples": self.client_samples,
            "absent_samples": self.absent_samples,
            "disk_samples": self.disk_samples,
            "underflows": self.underflows,
            "unknown_gaps": self.unknown_gaps,
            "underruns": self.underruns,
            "bad_lines": self.bad_lines,
            "odd_bytes": self.odd_bytes,
            "odd_messages": self.odd_messages,
            "short_datagrams": self.short_datagrams,
            "away_samples": self.away_samples,
            "unconfirmed_samples": self.unconfirmed_samples,
            "clock_samples": self.clock_samples,
            "unseen": self.is_unseen,
        })
    }
}

impl fmt::Display for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Losses at the end of a stream, which no frame counts, have samples only.
        let lone_samples = if self.network_frames == 0 { self.network_samples } else { 0 };
        // Losses of the places above do not count twice.
        let told = self.generator_samples
            + self.network_samples
            + self.late_samples
            + self.queue_samples
            + self.disk_samples;
        let places = [
            (self.generator_samples, 0, "sample", "dropped by the generator"),
            (self.network_frames, self.network_samples, "frame", "lost on the way"),
            (lone_samples, 0, "sample", "lost on the way"),
            (self.kernel_drops.unwrap_or(0), 0, "buffer", "dropped by the kernel"),
            (self.queue_frames, self.queue_samples, "frame", "dropped by a queue"),
            (self.late_frames, self.late_samples, "late frame", "dropped"),
            (self.duplicate_frames, 0, "duplicate frame", "dropped"),
            (self.refused_datagrams, 0, "datagram", "refused"),
            (self.foreign_datagrams, 0, "datagram", "of another sender dropped"),
            (self.other_stream_packets, 0, "packet", "of other streams dropped (stream=ID selects one)"),
            (self.refused_sends, 0, "send", "refused by the destination"),
            (self.unsent_datagrams, 0, "datagram", "not sent"),
            (self.client_samples, 0, "sample", "dropped for slow clients"),
            (self.absent_samples, 0, "sample", "without a connected client"),
            (self.disk_samples, 0, "sample", "lost with a disk that failed"),
            (self.underflows, 0, "underflow", "of the radio"),
            (self.unknown_gaps, 0, "gap", "of unknown length"),
            (self.underruns, 0, "underrun", "of the sound device"),
            (self.bad_lines, 0, "invalid line", "skipped"),
            (self.odd_bytes, 0, "byte", "of incomplete samples dropped"),
            (self.odd_messages, 0, "message", "without whole samples dropped"),
            (self.short_datagrams, 0, "datagram", "without a whole sample dropped"),
            (self.away_samples, 0, "sample", "missing while their host was away"),
            (self.unconfirmed_samples, 0, "sample", "in flight to a host that went away"),
        ];
        let restart = (self.restart_ms > 0).then(|| clock_gap_words(self.restart_ms as f64 / 1e3));
        let clock = (self.clock_samples > 0)
            .then(|| format!("about {} samples missing, by the clock", grouped(self.clock_samples)));
        let gap = (self.gap_samples > told).then(|| {
            let samples = counted(self.gap_samples, "sample");
            format!("{samples} missing in {}", counted(self.gaps, "gap"))
        });
        let mut said = places
            .into_iter()
            .filter(|(count, ..)| *count > 0)
            .map(|(count, samples, one, rest)| {
                let samples = match samples {
                    0 => String::new(),
                    samples => format!(" ({})", counted(samples, "sample")),
                };
                format!("{}{samples} {rest}", counted(count, one))
            })
            .chain(gap)
            .chain(restart)
            .chain(clock);
        match said.next() {
            None if self.is_unseen => f.write_str("loss unknown here"),
            None => f.write_str("nothing lost"),
            Some(first) => {
                f.write_str(&first)?;
                said.try_for_each(|next| write!(f, ", {next}"))?;
                if self.is_unseen { f.write_str("; further loss unknown here") } else { Ok(()) }
            }
        }
    }
}

/// Reports the result of a stage: a line on standard error, or JSON on standard output. Returns the outcome of its
/// graph.
pub(crate) fn print(
    verb: &str,
    stage: &str,
    snapshot: &Snapshot,
    ending: Result<Ending>,
    written: Option<&Path>,
    as_json: bool,
) -> Result<Ending> {
    match snapshot.stage(stage) {
        Some(stage) if as_json => {
            let mut report = json(stage, snapshot, error_of(&ending));
            report["file"] = json!(written);
            output::json(&report)?;
            return ending.map_err(reported_in_json);
        }
        Some(stage) => {
            let cut = if counts(stage).1 > 0 { cut(&ending) } else { "" };
            note!("{}{cut}", summary(verb, stage, snapshot));
            if let Some(written) = written {
                note!("wrote {}", written.display());
            }
            if let Some(disk) = DiskUse::of(stage) {
                note!("{disk}");
            }
            OneDisk::all(stage).iter().for_each(|disk| note!("{disk}"));
            if let Some(trigger) = trigger_words(snapshot) {
                note!("{trigger}");
            }
        }
        None => {}
    }
    ending
}

/// Reports the result of a graph: a line per stage and one for losses, or all counters as JSON with `more` fields.
/// Returns its outcome.
pub(crate) fn print_graph<'a>(
    ends: impl Iterator<Item = &'a str>,
    snapshot: &Snapshot,
    ending: Result<Ending>,
    as_json: bool,
    more: impl FnOnce(&mut Value),
) -> Result<Ending> {
    if as_json {
        let losses = Losses::of(snapshot).json();
        let mut report = json!({ "graph": snapshot, "losses": losses, "error": error_of(&ending) });
        more(&mut report);
        output::json(&report)?;
        return ending.map_err(reported_in_json);
    }
    for stage in ends.filter_map(|name| snapshot.stage(name)) {
        note!("{}: {}", stage.name, handled(stage));
    }
    for stage in &snapshot.stages {
        let is_told = |name: &str| is_loss(name) || IS_HANDLED.contains(&name) || DiskUse::is_of(name);
        let own = stage.own.iter().filter(|(name, value)| *value > 0 && !is_told(name));
        let own: Vec<String> = own.map(|(name, value)| format!("{name} {}", grouped(*value))).collect();
        if !own.is_empty() {
            note!("{}: {}", stage.name, own.join(", "));
        }
        if let Some(disk) = DiskUse::of(stage) {
            note!("{}: {disk}", stage.name);
        }
    }
    note!("{}{}{}", Losses::of(snapshot), refused_by_reason(snapshot), cut(&ending));
    ending
}

fn cut(ending: &Result<Ending>) -> &'static str {
    if ending.is_err() { "; an error ended it: what came after is missing" } else { "" }
}

fn error_of(ending: &Result<Ending>) -> Option<String> {
    ending.as_ref().err().map(one_line)
}

/// Whether a counter is a loss.
fn is_loss(name: &str) -> bool {
    let told = [
        "lost_",
        "late_",
        "duplicate_",
        "kernel_",
        "foreign_",
        "generator_",
        "dropped_",
        "refused",
        "unsent",
        "client_dropped",
        "absent_",
        "underflows",
        "unknown_",
        "underruns",
        "bad_lines",
        "odd_",
        "short_datagrams",
        "away_",
        "unconfirmed_",
        "unseen_",
        "clock_missing_",
        "gaps",
        "gap_samples",
        "restart_missing_",
        "streams",
    ];
    told.iter().any(|start| name.starts_with(start))
}

/// Line for people: handled samples, and losses.
fn summary(verb: &str, stage: &StageSnapshot, snapshot: &Snapshot) -> String {
    format!("{verb} {}; {}{}", handled(stage), Losses::of(snapshot), refused_by_reason(snapshot))
}

/// Frames and samples per channel; of a recorder, those in the recording.
fn counts(stage: &StageSnapshot) -> (u64, u64) {
    let passed = (stage.frames_in.max(stage.frames_out), stage.samples_in.max(stage.samples_out));
    stage.own("recorded_frames").zip(stage.own("recorded_samples")).unwrap_or(passed)
}

/// Counters that [`handled`] includes.
const IS_HANDLED: [&str; 3] = ["recorded_frames", "recorded_samples", "parts"];

fn handled(stage: &StageSnapshot) -> String {
    let (frames, samples) = counts(stage);
    let parts = stage.own("parts").filter(|&parts| parts > 0);
    let parts = parts.map(|parts| format!(", {}", counted(parts, "part")));
    format!(
        "{} samples per channel in {} frames{}",
        grouped(samples),
        grouped(frames),
        parts.unwrap_or_default()
    )
}

fn refused_by_reason(snapshot: &Snapshot) -> String {
    let refused: Vec<String> = refusals(snapshot)
        .filter(|(_, count)| *count > 0)
        .map(|(reason, count)| format!("{} {count}", reason.name()))
        .collect();
    if refused.is_empty() { String::new() } else { format!(" (by reason: {})", refused.join(", ")) }
}

/// Report for programs.
fn json(stage: &StageSnapshot, snapshot: &Snapshot, error: Option<String>) -> Value {
    let (frames, samples) = counts(stage);
    let refused: serde_json::Map<String, Value> =
        refusals(snapshot).map(|(reason, count)| (reason.name().to_owned(), json!(count))).collect();
    json!({
        "frames": frames,
        "samples": samples,
        "error": error,
        "copied_frames": snapshot.stages.iter().filter_map(|stage| stage.own("copied_frames")).sum::<u64>(),
        "losses": Losses::of(snapshot).json(),
        "refused_datagrams": refused,
        "parts": stage.own("parts").filter(|&parts| parts > 0),
        "disk": DiskUse::of(stage).map(|disk| disk.json()),
        "disks": Some(OneDisk::all(stage)).filter(|all| !all.is_empty()).map(|all| all.iter().map(OneDisk::json).collect::<Value>()),
        "trigger": trigger_counts(snapshot),
    })
}

/// Queues that may have lost samples of the result.
fn dropped(snapshot: &Snapshot) -> impl Iterator<Item = &QueueSnapshot> {
    snapshot.queues.iter().filter(|queue| queue.to != TRIGGER)
}

fn recorders(snapshot: &Snapshot) -> impl Iterator<Item = &StageSnapshot> {
    snapshot.stages.iter().filter(|stage| stage.own("recorded_samples").is_some())
}

/// Frames that the search skipped for lack of time; they are recorded.
fn skipped_frames(snapshot: &Snapshot) -> u64 {
    let to_trigger = snapshot.queues.iter().filter(|queue| queue.to == TRIGGER);
    to_trigger.map(|queue| queue.dropped_frames).sum()
}

/// Counters of the search, by name.
fn trigger_counts(snapshot: &Snapshot) -> Option<serde_json::Map<String, Value>> {
    let stage = snapshot.stage(TRIGGER)?;
    let own = stage.own.iter().map(|(name, value)| (name.to_string(), json!(value)));
    Some(own.chain([("skipped_frames".to_owned(), json!(skipped_frames(snapshot)))]).collect())
}

/// Counters of the search, for people.
fn trigger_words(snapshot: &Snapshot) -> Option<String> {
    let counts = trigger_counts(snapshot)?;
    let said = |(name, words): (&str, &str)| {
        let count = counts.get(name).and_then(Value::as_u64).filter(|&count| count > 0)?;
        Some(format!("{} {words}", grouped(count)))
    };
    let more: Vec<String> = [
        ("saves", "saved"),
        ("within", "within a saved range"),
        ("left_out", "skipped by --saves-per-minute"),
        ("failed", "not saved, see above"),
        ("skipped_frames", "frames not searched, for lack of time"),
    ]
    .into_iter()
    .filter_map(said)
    .collect();
    let events = counts.get("events").and_then(Value::as_u64).unwrap_or(0);
    Some(format!(
        "trigger: {}{}",
        counted(events, "event"),
        more.iter().map(|it| format!("; {it}")).collect::<String>()
    ))
}

fn refusals(snapshot: &Snapshot) -> impl Iterator<Item = (Refusal, u64)> + '_ {
    Refusal::ALL.into_iter().map(|reason| {
        let name = format!("refused_{}", reason.name());
        (reason, snapshot.stages.iter().filter_map(|stage| stage.own(&name)).sum())
    })
}

/// Stage that searches for events to save.
pub(super) const TRIGGER: &str = "trigger";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_losses_are_reported_and_unknown_is_not_zero() {
        let none = Losses::default();
        assert!(none.is_none());
        assert_eq!(none.to_string(), "nothing lost");
        assert!(Losses { kernel_drops: Some(0), ..none }.is_none());
        let some = Losses { network_frames: 1_200, late_frames: 3, kernel_drops: Some(7), ..none };
        assert!(!some.is_none());
        assert_eq!(
            some.to_string(),
            "1,200 frames lost on the way, 7 buffers dropped by the kernel, 3 late frames dropped"
        );
        let queue = Losses { queue_frames: 9_484, queue_samples: 1_517_440, foreign_datagrams: 1, ..none };
        assert_eq!(
            queue.to_string(),
            "9,484 frames (1,517,440 samples) dropped by a queue, 1 datagram of another sender dropped"
        );
        let gap = Losses { gaps: 1, gap_samples: 403_872, ..none };
        assert_eq!(gap.to_string(), "403,872 samples missing in 1 gap");
        let explained = Losses { network_frames: 2, network_samples: 403_872, ..gap };
        assert_eq!(explained.to_string(), "2 frames (403,872 samples) lost on the way");
        let restart = Losses { restart_ms: 1_520, ..none };
        assert_eq!(restart.to_string(), "about 1.52 s missing, by the clock: the sender began again");
        let clock = Losses { clock_samples: 240_000, is_unseen: true, ..none };
        assert!(!clock.is_none());
        assert_eq!(
            clock.to_string(),
            "about 240,000 samples missing, by the clock; further loss unknown here"
        );
    }
}
