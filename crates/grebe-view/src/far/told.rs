//! What is said of the stream and of its pictures in words and numbers: JSON, of which only what changed is said again.

use std::sync::Arc;

use grebe_frame::{Description, StreamAnnotation, TrackerCounts};
use grebe_scope::{Band, Measurements, Peak, Quantity, Running, Scale, ToneQuality};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::data::lane::LaneId;
use crate::data::measure::LaneMeasurements;
use crate::data::picture::{Flow, GapMark, Picture, StreamInfo};
use crate::data::signal::SignalMeasurements;
use crate::data::status::SourceStatus;
use crate::data::told::{Change, ChangeMark};
use crate::data::trigger::{TriggerRate, TriggerView};
use crate::far::FarMessage;
use crate::far::asked::{FarTrigger, first_source};
use crate::far::control::Offered;
use crate::far::picture::Triggered;
use crate::model::receiver::Tuned;

/// A message of a server but pictures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Said {
    Welcome(Welcome),
    Refused(String),
    Pong {
        at: f64,
        server_ns: u64,
    },
    Status(Box<FarStatus>),
    /// Keys of [`Facts`].
    Told(Map<String, Value>),
    #[serde(rename = "said")]
    Note {
        words: String,
    },
    /// What became of a stretch that was to be kept.
    Kept {
        number: u64,
        words: String,
    },
}

impl Said {
    pub(crate) fn message(&self) -> FarMessage {
        // Names and numbers: it cannot fail.
        FarMessage::Text(serde_json::to_string(self).unwrap_or_default())
    }
}

/// The answer to a viewer that may look.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Welcome {
    pub(crate) protocol: u32,
    pub(crate) program: String,
    pub(crate) name: String,
    pub(crate) may_control: bool,
    pub(crate) controls: Offered,
    pub(crate) channels: Vec<ChannelMeaning>,
    /// Which of the sources it is, from 1. Servers that have one alone said nothing of it once.
    #[serde(default = "first_source")]
    pub(crate) source: usize,
    /// What each of the sources is called that this server shows.
    pub(crate) sources: Vec<String>,
    /// Whether it searches all that is held. Older servers do not know of it.
    pub(crate) finds: bool,
}

/// What only the server knows of its source, and what its receiver is tuned to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct FarStatus {
    #[serde(flatten)]
    pub(crate) source: SourceStatus,
    pub(crate) tuned: Option<Tuned>,
}

/// What the numbers of a channel mean, as the server was told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChannelMeaning {
    /// What it is called; empty: its number.
    pub name: String,
    /// Unit without prefix; empty: counts.
    pub unit: String,
    /// Units per count.
    pub scale: f64,
    /// Units at a count of zero.
    pub offset: f64,
}

/// What is known beside the columns.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Facts {
    pub(crate) stream: Option<StreamInfo>,
    pub(crate) streams: u64,
    pub(crate) description: Option<FarDescription>,
    changes: Vec<FarChange>,
    annotations: Vec<StreamAnnotation>,
    gaps: Vec<GapMark>,
    counts: TrackerCounts,
    flow: Flow,
    transit_min_ns: i64,
    triggers: Vec<f64>,
    trigger: Option<FarTriggerView>,
    math: Option<FarScale>,
    measured_count: u64,
    measured: Vec<FarMeasured>,
    signals: Vec<FarSignal>,
    memory_bytes: usize,
    refused: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct FarDescription {
    first_sample_index: u64,
    #[serde(flatten)]
    description: Description,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct FarChange {
    index: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_hz: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    centre_frequency_hz: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct FarTriggerView {
    #[serde(flatten)]
    settings: FarTrigger,
    #[serde(default)]
    hysteresis_used: f64,
    found: u64,
    searched_samples: u64,
    rate: FarRate,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
struct FarRate {
    count: u64,
    min: Option<f64>,
    max: Option<f64>,
    mean: Option<f64>,
    deviation: Option<f64>,
    gaps: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct FarScale {
    factor: f64,
    offset: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct FarMeasured {
    lane: String,
    values: Vec<Option<f64>>,
    samples: u64,
    level_samples: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct FarSignal {
    channel: usize,
    power_dbfs: Option<f64>,
    peak_to_average_db: Option<f64>,
    within: (f64, f64),
    channel_power_dbfs: Option<f64>,
    occupied: Option<(f64, f64)>,
    channel_snr_db: Option<f64>,
    tone: Option<FarTone>,
    samples: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct FarTone {
    line: f64,
    dbfs: f64,
    #[serde(with = "or_word")]
    snr_db: f64,
    #[serde(with = "or_word")]
    sinad_db: f64,
    thd_db: Option<f64>,
    enob: f64,
}

impl Facts {
    pub(crate) fn of(picture: &Picture) -> Facts {
        Facts {
            stream: picture.stream,
            streams: picture.streams,
            description: picture.description.as_ref().map(|description| FarDescription {
                first_sample_index: description.first_sample_index,
                description: Description::clone(description),
            }),
            changes: picture.changes.iter().map(FarChange::of).collect(),
            annotations: picture.annotations.iter().map(|it| StreamAnnotation::clone(it)).collect(),
            gaps: picture.gaps.clone(),
            counts: picture.counts,
            flow: picture.flow,
            transit_min_ns: picture.transit_min_ns,
            triggers: picture.triggers.clone(),
            trigger: picture.trigger.as_ref().map(FarTriggerView::of),
            math: picture.math.map(|scale| FarScale { factor: scale.factor, offset: scale.offset }),
            measured_count: picture.measured_count,
            measured: picture.measured.iter().map(FarMeasured::of).collect(),
            signals: picture.signals.iter().map(FarSignal::of).collect(),
            memory_bytes: picture.memory_bytes,
            refused: picture.refused.clone(),
        }
    }

    /// Its keys.
    pub(crate) fn keys(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(keys)) => keys,
            // Names and numbers: it cannot fail.
            _ => Map::new(),
        }
    }

    /// Puts them into a picture.
    pub(crate) fn put_into(&self, picture: &mut Picture, triggered: Option<Triggered>) {
        picture.stream = self.stream.map(|stream| StreamInfo {
            channels: stream.channels.min(CHANNELS_MAX),
            rate_hz: stream.rate_hz.max(0.0),
            ..stream
        });
        picture.streams = self.streams;
        picture.changes = self.changes.iter().take(LIST_MAX).map(FarChange::mark).collect();
        picture.annotations = self.annotations.iter().take(LIST_MAX).cloned().map(Arc::new).collect();
        picture.gaps = self.gaps.iter().take(LIST_MAX).copied().collect();
        picture.counts = self.counts;
        picture.flow = self.flow;
        picture.transit_min_ns = self.transit_min_ns;
        picture.triggers = self.triggers.iter().take(LIST_MAX).copied().collect();
        picture.trigger = self.trigger.as_ref().zip(triggered).map(|(view, now)| view.view(now));
        picture.math = self.math.as_ref().map(|it| Scale { factor: it.factor, offset: it.offset });
        picture.measured_count = self.measured_count;
        picture.measured = self.measured.iter().filter_map(FarMeasured::measured).collect();
        picture.signals = self.signals.iter().map(FarSignal::measured).collect();
        picture.memory_bytes = self.memory_bytes;
        picture.refused.clone_from(&self.refused);
    }

    /// What the stream says of itself.
    pub(crate) fn description(&self) -> Option<Arc<Description>> {
        let FarDescription { first_sample_index, description } = self.description.clone()?;
        Some(Arc::new(Description { first_sample_index, ..description }))
    }
}

impl FarChange {
    fn of(mark: &ChangeMark) -> FarChange {
        let (rate_hz, centre_frequency_hz) = match mark.change {
            Change::Rate { hz } => (Some(hz), None),
            Change::CentreFrequency { hz } => (None, hz),
        };
        FarChange { index: mark.index, rate_hz, centre_frequency_hz }
    }

    fn mark(&self) -> ChangeMark {
        let centre = Change::CentreFrequency { hz: self.centre_frequency_hz };
        ChangeMark { index: self.index, change: self.rate_hz.map_or(centre, |hz| Change::Rate { hz }) }
    }
}

impl FarTriggerView {
    fn of(view: &TriggerView) -> FarTriggerView {
        let intervals = &view.rate.intervals;
        FarTriggerView {
            settings: FarTrigger::new(&view.settings),
            hysteresis_used: view.hysteresis,
            found: view.found,
            searched_samples: view.searched_samples,
            rate: FarRate {
                count: intervals.count(),
                min: intervals.min(),
                max: intervals.max(),
                mean: intervals.mean(),
                deviation: intervals.deviation(),
                gaps: view.rate.gaps,
            },
        }
    }

    fn view(&self, now: Triggered) -> TriggerView {
        let FarRate { count, min, max, mean, deviation, gaps } = &self.rate;
        let known = min.zip(*max).zip(*mean);
        let intervals = known
            .map(|((min, max), mean)| Running::known(*count, (min, mean, max), deviation.unwrap_or(0.0)));
        TriggerView {
            settings: self.settings.settings(),
            level: now.level,
            upper: now.upper,
            hysteresis: self.hysteresis_used,
            state: now.state,
            at: now.at,
            found: self.found,
            searched_samples: self.searched_samples,
            rate: TriggerRate { intervals: intervals.unwrap_or_default(), gaps: *gaps },
        }
    }
}

impl FarMeasured {
    fn of(measured: &LaneMeasurements) -> FarMeasured {
        FarMeasured {
            lane: measured.lane.to_string(),
            values: Quantity::ALL.into_iter().map(|quantity| measured.set.get(quantity)).collect(),
            samples: measured.samples,
            level_samples: measured.level_samples,
        }
    }

    fn measured(&self) -> Option<LaneMeasurements> {
        let lane: LaneId = self.lane.parse().ok()?;
        let value = |quantity: Quantity| self.values.get(quantity as usize).copied().flatten();
        Some(LaneMeasurements {
            lane,
            set: Measurements::known(value),
            samples: self.samples,
            level_samples: self.level_samples,
        })
    }
}

impl FarSignal {
    fn of(measured: &SignalMeasurements) -> FarSignal {
        FarSignal {
            channel: measured.channel,
            power_dbfs: measured.power_dbfs,
            peak_to_average_db: measured.peak_to_average_db,
            within: (measured.within.low, measured.within.high),
            channel_power_dbfs: measured.channel_power_dbfs,
            occupied: measured.occupied.map(|band| (band.low, band.high)),
            channel_snr_db: measured.channel_snr_db,
            tone: measured.tone.map(|tone| FarTone {
                line: tone.fundamental.line,
                dbfs: tone.fundamental.dbfs,
                snr_db: tone.snr_db,
                sinad_db: tone.sinad_db,
                thd_db: tone.thd_db,
                enob: tone.enob,
            }),
            samples: measured.samples,
        }
    }

    fn measured(&self) -> SignalMeasurements {
        let band = |(low, high): (f64, f64)| Band { low, high };
        SignalMeasurements {
            channel: self.channel,
            power_dbfs: self.power_dbfs,
            peak_to_average_db: self.peak_to_average_db,
            within: band(self.within),
            channel_power_dbfs: self.channel_power_dbfs,
            occupied: self.occupied.map(band),
            channel_snr_db: self.channel_snr_db,
            tone: self.tone.as_ref().map(|tone| ToneQuality {
                fundamental: Peak { line: tone.line, dbfs: tone.dbfs },
                snr_db: tone.snr_db,
                sinad_db: tone.sinad_db,
                thd_db: tone.thd_db,
                enob: tone.enob,
            }),
            samples: self.samples,
        }
    }
}

/// A number that may be infinite, as the harmonics of a tone that has none are: JSON has only a word for that.
mod or_word {
    use serde::{Deserialize, Deserializer, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum NumberOrWord {
        Number(f64),
        Word(String),
    }

    pub(super) fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        if value.is_finite() { to.serialize_f64(*value) } else { to.collect_str(value) }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        match NumberOrWord::deserialize(from)? {
            NumberOrWord::Number(value) => Ok(value),
            NumberOrWord::Word(word) => word.parse().map_err(serde::de::Error::custom),
        }
    }
}

const CHANNELS_MAX: usize = 255;
/// Marks of each kind that one picture has.
const LIST_MAX: usize = 256;
