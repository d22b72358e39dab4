//! A stream's description in SigMF metadata: constant fields in `global`, fields that may change in the
//! captures.

use std::ops::Range;
use std::sync::Arc;

use grebe_frame::{ChannelDescription, Description};
use serde_json::{Map, Value, json};

use super::layout::{Capture, Meta};

/// Descriptions by their first position in a file.
pub(super) type Described = Vec<(u64, Arc<Description>)>;

/// Capture fields that describe its samples.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Tuning<'a> {
    frequency_hz: Option<f64>,
    bandwidth_hz: Option<f64>,
    gain_db: Option<f64>,
    channels: Option<&'a [ChannelDescription]>,
    /// Fields of other programs.
    rest: Option<&'a Map<String, Value>>,
}

impl<'a> Tuning<'a> {
    /// `channels` are those of the data file.
    pub(super) fn of(description: Option<&'a Description>, channels: Range<usize>) -> Self {
        description.map_or_else(Self::default, |description| Self {
            frequency_hz: description.centre_frequency_hz,
            bandwidth_hz: description.bandwidth_hz,
            gain_db: description.gain_db,
            channels: Some(part(&description.channels, channels)),
            rest: description.rest.get(CAPTURE).and_then(Value::as_object),
        })
    }

    fn read(capture: &'a Capture) -> Self {
        Self {
            frequency_hz: capture.frequency,
            bandwidth_hz: capture.bandwidth,
            gain_db: capture.gain,
            channels: capture.channels.as_deref(),
            rest: Some(&capture.rest).filter(|rest| !rest.is_empty()),
        }
    }

    /// Whether this requires a new capture after one with `before`.
    pub(super) fn differs(&self, before: &Self) -> bool {
        let numbers = |tuning: &Self| (tuning.frequency_hz, tuning.bandwidth_hz, tuning.gain_db);
        let has_other_channels =
            before.channels.is_some() && self.channels.is_some() && before.channels != self.channels;
        numbers(self) != numbers(before) || has_other_channels || self.rest != before.rest
    }

    /// Into a capture, beside channels that `global` names already.
    pub(super) fn write(&self, global: Option<&[ChannelDescription]>, capture: &mut Capture) {
        capture.frequency = self.frequency_hz;
        capture.bandwidth = self.bandwidth_hz;
        capture.gain = self.gain_db;
        capture.channels = self.channels.filter(|&own| Some(own) != global).map(<[_]>::to_vec);
        capture.rest = self.rest.cloned().unwrap_or_default();
    }

    /// The names of the extensions whose words it has.
    pub(super) fn extensions(&self) -> impl Iterator<Item = &str> {
        let has_details = self.bandwidth_hz.is_some() || self.gain_db.is_some();
        let others = self.rest.into_iter().flatten().filter_map(|(key, _)| Some(key.split_once(':')?.0));
        has_details.then_some("capture_details").into_iter().chain(others)
    }
}

/// The channels of a data file, as far as they are described.
pub(super) fn part(all: &[ChannelDescription], channels: Range<usize>) -> &[ChannelDescription] {
    &all[channels.start.min(all.len())..channels.end.min(all.len())]
}

/// The fields of `global` beside those that the recorder knows itself.
pub(super) fn global(
    description: Option<&Description>,
    notes: Option<&String>,
    channels: Range<usize>,
    uses: &[&str],
) -> Map<String, Value> {
    let mut fields = match description {
        None => Map::new(),
        Some(description) => {
            let own = Description {
                channels: part(&description.channels, channels).to_vec(),
                centre_frequency_hz: None,
                bandwidth_hz: None,
                gain_db: None,
                // It refers to the producer's clock, which is gone; the captures have the time.
                clock: None,
                recorded_at: None,
                recorded_error_ns: None,
                recorded_axis: None,
                is_undated: false,
                clock_port: None,
                measured: None,
                annotations: Vec::new(),
                ..description.clone()
            };
            // Numbers and strings with names: none of it can fail.
            let Ok(Value::Object(mut fields)) = serde_json::to_value(own) else { return Map::new() };
            fields.retain(|name, _| !RECORDERS_OWN.contains(&name.as_str()));
            fields
        }
    };
    if let Some(notes) = notes {
        fields.entry("core:description").or_insert_with(|| json!(notes));
    }
    declare(&mut fields, uses);
    fields
}

/// Names the extensions that the fields come from, beside those that are named already.
fn declare(fields: &mut Map<String, Value>, uses: &[&str]) {
    let mut names: Vec<String> = uses.iter().map(|&name| name.to_owned()).collect();
    names.extend(fields.keys().filter_map(|key| key.split_once(':')).map(|(name, _)| name.to_owned()));
    let mut extensions = match fields.remove("core:extensions") {
        Some(Value::Array(extensions)) => extensions,
        _ => Vec::new(),
    };
    for name in names {
        if name != "core" && !extensions.iter().any(|extension| extension["name"] == name.as_str()) {
            let version = if name == "grebe" { env!("CARGO_PKG_VERSION") } else { "1.0.0" };
            extensions.push(json!({ "name": name, "version": version, "optional": true }));
        }
    }
    if !extensions.is_empty() {
        fields.insert("core:extensions".into(), extensions.into());
    }
}

/// Descriptions in the metadata by position in the file; empty if there are none.
pub(super) fn read(meta: &Meta, channels: usize, len_samples: u64, notes: &mut Vec<String>) -> Described {
    let mut fields = meta.global.rest.clone();
    fields.retain(|name, _| !NOT_OF_ALL.contains(&name.as_str()));
    let mut whole: Description = serde_json::from_value(Value::Object(fields)).unwrap_or_else(|error| {
        notes.push(format!("the stream's metadata cannot be read, and are ignored: {error}"));
        Description::default()
    });
    if whole.channels.len() > channels {
        notes.push(format!("grebe:channels describes more channels than the {channels} of the file"));
        whole.channels.truncate(channels);
    }
    let mut found: Described = Vec::new();
    let mut last = None;
    let offset = meta.global.offset.unwrap_or(0);
    for capture in &meta.captures {
        let position = capture.sample_start.saturating_sub(offset);
        let tuning = Tuning::read(capture);
        if position >= len_samples || last.as_ref() == Some(&tuning) {
            continue;
        }
        let own = tuning.channels.filter(|own| own.len() <= channels);
        let mut rest = whole.rest.clone();
        rest.extend(tuning.rest.map(|fields| (CAPTURE.to_owned(), Value::Object(fields.clone()))));
        let description = Description {
            rest,
            centre_frequency_hz: tuning.frequency_hz,
            bandwidth_hz: tuning.bandwidth_hz,
            gain_db: tuning.gain_db,
            channels: own.map_or_else(|| whole.channels.clone(), <[_]>::to_vec),
            ..whole.clone()
        };
        last = Some(tuning);
        // The last of several captures at one position wins.
        found.pop_if(|(before, _)| *before == position);
        found.push((position, Arc::new(description)));
    }
    if found.first().is_none_or(|&(position, _)| position > 0) {
        found.insert(0, (0, Arc::new(whole)));
    }
    found.retain_mut({
        let mut is_described = false;
        move |(_, description)| {
            is_described |= **description != Description::default();
            is_described
        }
    });
    found
}

/// Says how many bits the numbers in the file have, where others are read.
pub(super) fn say_bits(described: &mut Described, bits: u32) {
    if described.is_empty() {
        described.push((0, Arc::default()));
    }
    for (_, description) in described {
        let said = Arc::make_mut(description);
        said.rest.entry(Description::BITS).or_insert_with(|| bits.into());
    }
}

/// Joins the descriptions of a collection whose recordings have the given numbers of channels: all channels,
/// with the other fields of the first.
pub(super) fn join(recordings: &[(usize, Described)]) -> Described {
    let mut places: Vec<u64> = recordings.iter().flat_map(|(_, found)| found.iter().map(|it| it.0)).collect();
    places.sort_unstable();
    places.dedup();
    let at = |position: u64| {
        let (mut joined, mut channels) = (None, Vec::new());
        for (count, found) in recordings {
            let end = channels.len() + count;
            if let Some((_, here)) = found.iter().rev().find(|(before, _)| *before <= position) {
                channels.extend(here.channels.iter().cloned());
                joined.get_or_insert_with(|| (**here).clone());
            }
            channels.resize_with(end, ChannelDescription::default);
        }
        if channels.iter().all(|channel| *channel == ChannelDescription::default()) {
            channels.clear();
        }
        (position, Arc::new(Description { channels, ..joined.unwrap_or_default() }))
    };
    places.into_iter().map(at).collect()
}

/// Key under which a description carries capture fields unknown to grebe.
const CAPTURE: &str = "grebe:capture";

/// Fields that the recorder sets itself, whatever the stream contains.
const RECORDERS_OWN: [&str; 15] = [
    CAPTURE,
    "core:datatype",
    "core:sample_rate",
    "core:version",
    "core:num_channels",
    "core:recorder",
    "core:collection",
    "core:dataset",
    "core:metadata_only",
    "core:offset",
    "core:trailing_bytes",
    "core:sha512",
    "grebe:known_samples",
    "grebe:checksums",
    "core:sample_start",
];
/// Fields of a moment, or of the file; in `global` of another program they mean something else.
const NOT_OF_ALL: [&str; 10] = [
    CAPTURE,
    "core:extensions",
    "core:datetime",
    "grebe:datetime_error_ns",
    "grebe:axis",
    "grebe:undated",
    "grebe:clock",
    "grebe:clock_port",
    "grebe:measured_clock",
    "annotations",
];
