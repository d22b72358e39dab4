//! Metadata of the stream and of its pictures: JSON, of which only changed keys are sent.

use std::sync::Arc;

use grebe_frame::{Description, StreamAnnotation, TrackerCounts};
use grebe_scope::Scale;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::data::annotations::AnnotationList;
use crate::data::descriptions::ChangeMark;
use crate::data::measure::LaneMeasurements;
use crate::data::picture::{Flow, GapMark, Picture, StreamInfo};
use crate::data::region::RegionMeasurements;
use crate::data::signal::SignalMeasurements;
use crate::data::status::SourceStatus;
use crate::data::trigger::TriggerView;
use crate::model::receiver::Tuned;
use crate::remote::ScopeMessage;
use crate::remote::control::Offered;
use crate::remote::picture::Triggered;
use crate::remote::requests::first_source;

/// A text message of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    Welcome(Welcome),
    Refused(String),
    Pong {
        at: f64,
        server_ns: u64,
    },
    Status(Box<RemoteStatus>),
    /// Keys of [`Facts`].
    Told(Map<String, Value>),
    #[serde(rename = "said")]
    Note {
        words: String,
    },
    /// The outcome of a save.
    Kept {
        number: u64,
        words: String,
    },
}

impl Reply {
    pub(crate) fn message(&self) -> ScopeMessage {
        // Names and numbers always serialize.
        ScopeMessage::Text(serde_json::to_string(self).unwrap_or_default())
    }
}

/// The answer to an accepted viewer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Welcome {
    pub(crate) protocol: u32,
    pub(crate) program: String,
    pub(crate) name: String,
    pub(crate) may_control: bool,
    pub(crate) controls: Offered,
    pub(crate) channels: Vec<ChannelMeaning>,
    /// The number of the source, from 1. Early servers had one source and did not send it.
    #[serde(default = "first_source")]
    pub(crate) source: usize,
    /// Names of the server's sources.
    pub(crate) sources: Vec<String>,
    /// Whether the server can search its history. Older servers do not send it.
    pub(crate) finds: bool,
}

/// State of the source that only the server knows, and its receiver's tuning.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RemoteStatus {
    #[serde(flatten)]
    pub(crate) source: SourceStatus,
    pub(crate) tuned: Option<Tuned>,
}

/// Meaning of a channel's numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChannelMeaning {
    /// Name; empty: its number.
    pub name: String,
    /// Unit without prefix; empty: counts.
    pub unit: String,
    /// Units per count.
    pub scale: f64,
    /// Units at a count of zero.
    pub offset: f64,
}

/// Declares facts, each a key, and the encoding of changed keys.
macro_rules! facts {
    ($(#[$about:meta])* pub(crate) struct Facts { $($visible:vis $key:ident: $kind:ty,)* }) => {
        $(#[$about])*
        pub(crate) struct Facts { $($visible $key: $kind,)* }

        impl Facts {
            /// Encodes changed keys; returns their number.
            fn encode(&self, before: Option<&Facts>, keys: &mut Map<String, Value>) -> usize {
                let mut encoded = 0;
                $(if before.is_none_or(|before| before.$key != self.$key) {
                    // Names and numbers always serialize.
                    let value = serde_json::to_value(&self.$key).unwrap_or_default();
                    keys.insert(stringify!($key).to_owned(), value);
                    encoded += 1;
                })*
                encoded
            }
        }
    };
}

facts! {
/// Metadata beside the columns.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Facts {
    pub(crate) stream: Option<StreamInfo>,
    pub(crate) streams: u64,
    pub(crate) description: Option<RemoteDescription>,
    changes: Vec<ChangeMark>,
    annotations: Vec<StreamAnnotation>,
    listed: Option<AnnotationList>,
    gaps: Vec<GapMark>,
    counts: TrackerCounts,
    flow: Flow,
    transit_min_ns: i64,
    triggers: Vec<f64>,
    trigger: Option<TriggerView>,
    math: Option<Scale>,
    measured_count: u64,
    measured: Vec<LaneMeasurements>,
    signals: Vec<SignalMeasurements>,
    region: Option<RegionMeasurements>,
    memory_bytes: usize,
    refused: Option<String>,
}
}

/// The metadata of the newest picture, with its changed keys encoded.
#[derive(Debug, Default)]
pub(crate) struct EncodedFacts {
    facts: Option<Facts>,
    pub(crate) keys: Map<String, Value>,
}

impl EncodedFacts {
    /// Takes the metadata of the next picture; returns the number of encoded keys.
    pub(crate) fn take(&mut self, facts: Facts) -> usize {
        let encoded = facts.encode(self.facts.as_ref(), &mut self.keys);
        self.facts = Some(facts);
        encoded
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RemoteDescription {
    first_sample_index: u64,
    #[serde(flatten)]
    description: Description,
}

impl Facts {
    pub(crate) fn of(picture: &Picture) -> Facts {
        Facts {
            stream: picture.stream,
            streams: picture.streams,
            description: picture.description.as_ref().map(|description| RemoteDescription {
                first_sample_index: description.first_sample_index,
                description: Description::clone(description),
            }),
            changes: picture.changes.clone(),
            annotations: picture.annotations.iter().map(|it| StreamAnnotation::clone(it)).collect(),
            listed: picture.listed.as_deref().cloned(),
            gaps: picture.gaps.clone(),
            counts: picture.counts,
            flow: picture.flow,
            transit_min_ns: picture.transit_min_ns,
            triggers: picture.triggers.clone(),
            trigger: picture.trigger,
            math: picture.math,
            measured_count: picture.measured_count,
            measured: picture.measured.clone(),
            signals: picture.signals.clone(),
            region: picture.region.clone(),
            memory_bytes: picture.memory_bytes,
            refused: picture.refused.clone(),
        }
    }

    /// Puts the metadata into a picture.
    pub(crate) fn put_into(&self, picture: &mut Picture, triggered: Option<Triggered>) {
        picture.stream = self.stream.map(|stream| StreamInfo {
            channels: stream.channels.min(CHANNELS_MAX),
            rate_hz: stream.rate_hz.max(0.0),
            ..stream
        });
        picture.streams = self.streams;
        picture.changes = self.changes.iter().take(LIST_MAX).copied().collect();
        picture.annotations = self.annotations.iter().take(LIST_MAX).cloned().map(Arc::new).collect();
        picture.listed = self.listed.clone().map(|mut list| {
            list.rows.truncate(AnnotationList::ROWS_MAX);
            Arc::new(list)
        });
        picture.gaps = self.gaps.iter().take(LIST_MAX).copied().collect();
        picture.counts = self.counts;
        picture.flow = self.flow;
        picture.transit_min_ns = self.transit_min_ns;
        picture.triggers = self.triggers.iter().take(LIST_MAX).copied().collect();
        picture.trigger = self.trigger.zip(triggered).map(|(view, now)| now.put_into(view));
        picture.math = self.math;
        picture.measured_count = self.measured_count;
        picture.measured = self.measured.clone();
        picture.signals = self.signals.clone();
        picture.region.clone_from(&self.region);
        picture.memory_bytes = self.memory_bytes;
        picture.refused.clone_from(&self.refused);
    }

    /// The stream's description.
    pub(crate) fn description(&self) -> Option<Arc<Description>> {
        let RemoteDescription { first_sample_index, description } = self.description.clone()?;
        Some(Arc::new(Description { first_sample_index, ..description }))
    }
}

const CHANNELS_MAX: usize = 255;
/// Maximum marks of each kind in one picture.
const LIST_MAX: usize = 256;
