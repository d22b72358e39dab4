//! The texts around the traces: the same in all front ends.

use grebe_frame::SampleFormat;
use grebe_scope::Engineering;

use crate::data::picture::Picture;
use crate::data::status::SourceStatus;
use crate::data::trigger::{TriggerKind, TriggerState};
use crate::data::viewport::DIVISIONS;
use crate::model::seen::stream_words::{axis_words, centre_words, source_name, utc_at};

/// Whether the stream and the picture move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunState {
    Waiting,
    Live,
    /// The picture is held; the stream continues.
    Paused,
    /// Nothing has arrived for more than a second.
    Stale,
    Ended,
    /// A recording that is still being written.
    Recording,
}

/// One fact: its name, its value, and whether it is good or bad.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) label: &'static str,
    pub(crate) value: String,
    pub(crate) tone: Tone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Good,
    Bad,
}

/// All texts around the traces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hud {
    pub(crate) state: RunState,
    pub(crate) source: String,
    /// `4 ch × 25 MS/s`.
    pub(crate) stream: String,
    /// `10 ms`.
    pub(crate) span: String,
    /// `1 ms/div`.
    pub(crate) division: String,
    pub(crate) facts: Vec<Item>,
    /// Processor and memory; empty where unknown.
    pub(crate) costs: String,
    /// Losses, by place, in the order of the path.
    pub(crate) losses: Vec<Item>,
    pub(crate) trigger: Option<TriggerWords>,
    /// The source's notice, a missing item of the picture, or the time of a held picture.
    pub(crate) notice: Option<String>,
    /// How to send a signal, until data comes.
    pub(crate) advice: Option<String>,
}

/// A trigger in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TriggerWords {
    pub(crate) source: String,
    pub(crate) kind: TriggerKind,
    pub(crate) slope: &'static str,
    pub(crate) level: String,
    /// The width of a pulse, or the time of a dropout; empty for the other kinds.
    pub(crate) time: String,
    /// `DC`, `LF reject 1 Hz`, or `HF reject 1 kHz`.
    pub(crate) coupling: String,
    /// Empty if off.
    pub(crate) noise_reject: &'static str,
    pub(crate) holdoff: String,
    /// Empty if automatic.
    pub(crate) hysteresis: String,
    pub(crate) state: TriggerState,
}

impl TriggerWords {
    pub(crate) fn state_word(&self) -> &'static str {
        match self.state {
            TriggerState::Ready => "READY",
            TriggerState::Triggered => "TRIGGERED",
            TriggerState::Free => "FREE RUN",
            TriggerState::Stopped => "STOPPED",
        }
    }

    pub(crate) fn text(&self) -> String {
        let word = self.state_word().to_lowercase();
        let kind = if self.kind == TriggerKind::Edge { "" } else { self.kind.name() };
        let space = if kind.is_empty() { "" } else { " " };
        let time = if self.time.is_empty() { String::new() } else { format!(" {}", self.time) };
        let mut text = format!("trigger {} {}{space}{kind}{time} {}", self.source, self.slope, self.level);
        if self.coupling != DC {
            text += &format!(" {}", self.coupling);
        }
        text += self.noise_reject;
        if !self.hysteresis.is_empty() {
            text += &format!(" hysteresis {}", self.hysteresis);
        }
        if !self.holdoff.is_empty() {
            text += &format!(" holdoff {}", self.holdoff);
        }
        format!("{text} {word}")
    }
}

impl Item {
    pub(crate) fn text(&self) -> String {
        let space = if self.label.is_empty() { "" } else { " " };
        format!("{}{space}{}", self.label, self.value)
    }
}

impl RunState {
    pub(crate) fn of(picture: &Picture, status: &SourceStatus, is_paused: bool, now_ns: u64) -> RunState {
        if picture.is_ended && picture.stream.is_some() {
            return match (is_paused, status.is_being_recorded) {
                (true, _) => RunState::Paused,
                (false, true) => RunState::Recording,
                (false, false) => RunState::Ended,
            };
        }
        match picture.stream {
            None if picture.is_ended => RunState::Ended,
            None => RunState::Waiting,
            _ if is_paused => RunState::Paused,
            _ if now_ns.saturating_sub(picture.newest_arrival_ns) > STALE_NS => RunState::Stale,
            _ => RunState::Live,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            RunState::Waiting => "WAITING",
            RunState::Live => "LIVE",
            RunState::Paused => "PAUSED",
            RunState::Stale => "STALE",
            RunState::Ended => "ENDED",
            RunState::Recording => "RECORDING",
        }
    }
}

impl Hud {
    pub(crate) fn new(
        picture: &Picture,
        status: &SourceStatus,
        is_paused: bool,
        pictures_per_s: f64,
        now_ns: u64,
    ) -> Hud {
        let state = RunState::of(picture, status, is_paused, now_ns);
        let unit = picture.axis_unit();
        let divisions = Engineering::new(picture.span() / DIVISIONS, unit);
        let held = is_paused.then(|| {
            let right = Engineering::new(picture.right_index() / picture.rate_or_one(), unit).digits(9);
            format!("right edge at {right} of the stream")
        });
        Hud {
            state,
            source: source_name(picture.description.as_ref(), &status.name),
            stream: stream_text(picture),
            span: Engineering::new(picture.span(), unit).to_string(),
            division: format!("{divisions}/div"),
            facts: facts(picture, status, state, pictures_per_s, now_ns),
            costs: String::new(),
            losses: losses(picture, status),
            trigger: None,
            notice: status.notice.clone().or_else(|| picture.refused.clone()).or(held),
            advice: status.advice.clone().filter(|_| state == RunState::Waiting),
        }
    }

    /// All texts, most important first.
    pub(crate) fn pieces(&self) -> Vec<String> {
        let head = [self.source.clone(), self.stream.clone(), format!("span {}", self.span)];
        let losses: Vec<_> = self.losses.iter().map(Item::text).collect();
        let losses = format!("lost: {}", losses.join(", "));
        let facts = self.facts.iter().map(Item::text);
        let pieces = head.into_iter().chain(facts).chain([losses]);
        let pieces = pieces.chain(self.trigger.as_ref().map(TriggerWords::text)).chain(self.notice.clone());
        pieces.filter(|piece| !piece.is_empty()).collect()
    }
}

pub(crate) fn stream_text(picture: &Picture) -> String {
    let Some(stream) = picture.stream else { return "no data yet".into() };
    let rate = match stream.rate_hz > 0.0 {
        true => Engineering::new(stream.rate_hz, "S/s").digits(4).to_string(),
        false => "unknown rate".into(),
    };
    let samples = match stream.format {
        SampleFormat::I16 => rate,
        format => format!("{rate} {format}"),
    };
    let stream = match stream.channels {
        1 => samples,
        channels => format!("{channels} \u{d7} {samples}"),
    };
    match centre_words(picture.description.as_ref()) {
        Some(centre) => format!("{stream}, {centre}"),
        None => stream,
    }
}

fn facts(
    picture: &Picture,
    status: &SourceStatus,
    state: RunState,
    pictures_per_s: f64,
    now_ns: u64,
) -> Vec<Item> {
    let plain = |label, value: String| Item { label, value, tone: Tone::Plain };
    let total = Engineering::new(picture.counts.frames as f64, "frames");
    let utc = utc_at(picture, picture.right_index().min(picture.next_index as f64));
    let utc = utc.map(|time| plain("right edge", time));
    let utc = utc.into_iter().chain(axis_words(picture).map(|error| plain("time axis", error)));
    // An ended stream has no rate, held or not.
    if picture.is_ended {
        let samples = Engineering::new(picture.counts.samples as f64, "S");
        let came = match (picture.counts.frames, picture.counts.samples) {
            // A recording that is read from disk.
            (0, 1..) => plain("holds", format!("{samples} a channel")),
            _ => plain("received", format!("{total}, {samples} a channel")),
        };
        return [came].into_iter().chain(utc).collect();
    }
    let flow = picture.flow;
    let latency = match picture.latency(now_ns, status.is_same_boot) {
        Some(latency) if state == RunState::Live => {
            let relative = if latency.is_relative { " relative" } else { "" };
            format!("{}{relative}", Engineering::new(latency.seconds, "s").digits(2))
        }
        _ => "--".into(),
    };
    let mut facts = vec![
        plain("", Engineering::new(flow.frames_per_s, "frames/s").to_string()),
        plain("", Engineering::new(flow.samples_per_s, "S/s").to_string()),
        plain("", Engineering::new(flow.bytes_per_s * 8.0, "bit/s").to_string()),
        plain("latency", latency),
    ];
    facts.extend(utc);
    if pictures_per_s > 0.0 && state == RunState::Live {
        facts.push(plain("", format!("{pictures_per_s:.0} fps")));
    }
    facts
}

fn losses(picture: &Picture, status: &SourceStatus) -> Vec<Item> {
    let item = |label, count: u64, unit: &str| Item {
        label,
        value: match count {
            0 => "0".into(),
            count => Engineering::new(count as f64, unit).to_string(),
        },
        tone: if count == 0 { Tone::Good } else { Tone::Bad },
    };
    let counts = &picture.counts;
    let mut items = vec![item("generator", counts.generator_samples, "S")];
    if status.is_recording {
        items[0].label = "in the recording";
        return items;
    }
    match (status.network, status.shared_memory) {
        (Some(network), _) => items.push(item("network", network.frames, "frames")),
        (None, Some(missed)) => items.push(item("shared memory", missed.frames, "frames")),
        // If the source does not count, only the sum of all losses is known.
        (None, None) => items.push(item("on the way", counts.lost_frames, "frames")),
    }
    items.extend(status.kernel_datagrams.map(|count| item("kernel", count, "datagrams")));
    items.extend(status.queue.map(|loss| item("queue", loss.frames, "frames")));
    let rare = [
        ("refused", status.refused_datagrams, "datagrams"),
        ("of another sender", status.foreign_datagrams, "datagrams"),
        ("late", counts.late_frames, "frames"),
        ("twice", counts.duplicate_frames, "frames"),
    ];
    items.extend(
        rare.into_iter()
            .filter(|&(_, count, _)| count > 0)
            .map(|(label, count, unit)| item(label, count, unit)),
    );
    items
}

/// Name of DC coupling.
pub(crate) const DC: &str = "DC";
/// A stream without data for this long is stale.
pub(crate) const STALE_NS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use grebe_frame::TrackerCounts;

    use super::*;
    use crate::data::picture::{Flow, StreamInfo};
    use crate::data::status::Loss;

    fn picture() -> Picture {
        Picture {
            stream: Some(StreamInfo {
                channels: 4,
                format: SampleFormat::I16,
                rate_hz: 25e6,
                block_samples: 160,
                generator_drops: 0,
            }),
            span_samples: 250_000.0,
            next_index: 1_000_000,
            counts: TrackerCounts { generator_samples: 1200, lost_frames: 5, ..TrackerCounts::default() },
            flow: Flow { frames_per_s: 149_700.0, samples_per_s: 1e8, bytes_per_s: 2e8 },
            newest_ts_ns: 90_000_000,
            newest_arrival_ns: 100_000_000,
            transit_min_ns: 8_000_000,
            ..Picture::waiting()
        }
    }

    fn status() -> SourceStatus {
        SourceStatus { name: "udp://:5000".into(), is_same_boot: true, ..SourceStatus::default() }
    }

    #[test]
    fn it_says_what_there_is() {
        let hud = Hud::new(&picture(), &status(), false, 59.7, 101_000_000);
        assert_eq!(
            hud.pieces(),
            [
                "udp://:5000",
                "4 \u{d7} 25 MS/s",
                "span 10 ms",
                "150 kframes/s",
                "100 MS/s",
                "1.6 Gbit/s",
                "latency 11 ms",
                "60 fps",
                "lost: generator 1.2 kS, on the way 5 frames",
            ]
        );
        assert_eq!((hud.state, hud.division.as_str()), (RunState::Live, "1 ms/div"));
    }

    #[test]
    fn places_the_source_knows_are_told_apart() {
        let status = SourceStatus {
            network: Some(Loss { frames: 3, samples: 480 }),
            kernel_datagrams: Some(0),
            queue: Some(Loss { frames: 2, samples: 320 }),
            refused_datagrams: 7,
            foreign_datagrams: 11,
            ..status()
        };
        let losses = Hud::new(&picture(), &status, false, 0.0, 0).losses;
        let told: Vec<_> = losses.iter().map(|item| (item.label, item.value.as_str(), item.tone)).collect();
        assert_eq!(
            told,
            [
                ("generator", "1.2 kS", Tone::Bad),
                ("network", "3 frames", Tone::Bad),
                ("kernel", "0", Tone::Good),
                ("queue", "2 frames", Tone::Bad),
                ("refused", "7 datagrams", Tone::Bad),
                ("of another sender", "11 datagrams", Tone::Bad),
            ]
        );
        let status = SourceStatus { network: None, shared_memory: status.network, ..status };
        let losses = Hud::new(&picture(), &status, false, 0.0, 0).losses;
        assert_eq!((losses[1].label, losses[1].value.as_str()), ("shared memory", "3 frames"));
    }

    #[test]
    fn what_is_missing_in_a_recording_was_not_lost_by_a_generator() {
        let status = SourceStatus { is_recording: true, queue: Some(Loss::default()), ..status() };
        let losses = Hud::new(&picture(), &status, false, 0.0, 0).losses;
        let told: Vec<_> = losses.iter().map(|item| (item.label, item.value.as_str(), item.tone)).collect();
        assert_eq!(told, [("in the recording", "1.2 kS", Tone::Bad)]);
    }

    #[test]
    fn a_stream_turns_stale_and_ends() {
        let mut status = SourceStatus::default();
        let state =
            |picture: &Picture, paused, now| RunState::of(picture, &SourceStatus::default(), paused, now);
        assert_eq!(state(&Picture::waiting(), false, 0), RunState::Waiting);
        assert_eq!(state(&picture(), false, 1_000_000_000), RunState::Live);
        assert_eq!(state(&picture(), false, 1_200_000_000), RunState::Stale);
        assert_eq!(state(&picture(), true, 1_200_000_000), RunState::Paused);
        let ended = Picture { is_ended: true, ..picture() };
        assert_eq!(state(&ended, false, 0), RunState::Ended);
        // A recording that is still being written grows.
        status.is_being_recorded = true;
        assert_eq!(RunState::of(&ended, &status, false, 0), RunState::Recording);
    }

    #[test]
    fn another_machines_clock_gives_a_relative_latency() {
        let status = SourceStatus { is_same_boot: false, ..status() };
        let hud = Hud::new(&picture(), &status, false, 0.0, 101_000_000);
        assert_eq!(hud.facts[3].value, "3 ms relative");
    }
}
