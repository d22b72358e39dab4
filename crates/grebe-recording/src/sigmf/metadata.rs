//! Content of a recording's metadata.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use grebe_frame::{ChannelDescription, Description, SampleFormat};
use serde_json::{Map, Value};

use super::annotations::Annotations;
use super::captured::Captured;
use super::described::{self, Tuning};
use super::layout::{
    Annotation, Base, Checksums, Collection, CollectionFile, Global, MetaOut, NOT_CLOSED, Stream, VERSION,
    datatype,
};
use super::staged::{Staged, sync_folder};
use super::stated_axis::restate;
use super::stripe_set::StripeSet;
use crate::disk::Summed;
use crate::error::Error;

/// How the metadata are written.
pub(super) struct State<'a> {
    /// Or samples are still to come.
    pub(super) is_closed: bool,
    /// Whether they must survive a loss of power from here on.
    pub(super) is_durable: bool,
    /// Sums of each data file, if any.
    pub(super) sums: &'a [Summed],
}

/// The metadata of all files of a recording.
#[derive(Debug)]
pub(super) struct Metadata {
    pub(super) format: SampleFormat,
    /// Channels of each recording.
    pub(super) channels: usize,
    /// One per channel, or one of all of them.
    pub(super) recordings: Vec<Base>,
    /// The collection, if there are several recordings.
    pub(super) collection: Option<Base>,
    pub(super) sample_rate_hz: f64,
    /// The recorder's notes, used if the stream has none.
    pub(super) notes: Option<String>,
    /// First description of the stream.
    pub(super) description: Option<Arc<Description>>,
    /// The extensions whose words captures have.
    pub(super) capture_extensions: BTreeSet<String>,
    /// Whether a capture says how far its time may be off.
    pub(super) has_errors: bool,
    pub(super) segments: Vec<Captured>,
    pub(super) annotations: Annotations,
    /// Samples per channel up to which all segments are entered.
    pub(super) known_samples: u64,
    /// Recordings that alternate with it.
    pub(super) stripes: Option<StripeSet>,
}

impl Metadata {
    /// Replaces the metadata on disk.
    pub(super) fn write(&self, state: &State<'_>) -> Result<(), Error> {
        self.commit(self.stage(state)?, state)
    }

    /// Moves the staged files to their places.
    pub(super) fn commit(&self, staged: Staged, state: &State<'_>) -> Result<(), Error> {
        staged.commit()?;
        // Until then, the durable name is that of older metadata, and the next ones replace it.
        if state.is_closed {
            sync_folder(self.recordings[0].path());
        }
        Ok(())
    }

    /// Bytes of one sample of each channel of a recording.
    pub(super) fn frame_bytes(&self) -> u64 {
        (self.format.bytes() * self.channels) as u64
    }

    /// Writes the metadata beside the existing file.
    pub(super) fn stage(&self, state: &State<'_>) -> Result<Staged, Error> {
        let mut staged = Staged::default();
        let mut streams = Vec::new();
        let durable = state.is_durable;
        let annotations = self.annotations.in_order();
        // The first channel comes last, so that its presence implies all others.
        for (number, base) in self.recordings.iter().enumerate().rev() {
            let channels = number * self.channels..(number + 1) * self.channels;
            let global = self.global(state.is_closed, state.sums.get(number), channels.clone());
            let described = self.described_channels(channels.clone());
            let meta = MetaOut {
                global: &global,
                captures: self
                    .segments
                    .iter()
                    .map(|segment| segment.capture(channels.clone(), described, self.sample_rate_hz)),
                annotations: annotations.iter().copied(),
            };
            let hash = staged.json(base.meta(), &meta, durable)?;
            streams.push(Stream::Object { name: base.name(), hash: Some(hash), axis: None });
        }
        if let Some(base) = &self.collection {
            streams.reverse();
            let (version, description) = (VERSION.into(), self.notes.clone());
            let collection = Collection { version, description, streams, ..Collection::default() };
            let file = CollectionFile { collection };
            staged.json(base.collection(), &file, durable)?;
            staged.remove_first(&base.collection())?;
        }
        Ok(staged)
    }

    /// Channel descriptions for `global` of a recording.
    fn described_channels(&self, channels: Range<usize>) -> Option<&[ChannelDescription]> {
        self.description.as_ref().map(|description| described::part(&description.channels, channels))
    }

    fn global(&self, is_closed: bool, sums: Option<&Summed>, channels: Range<usize>) -> Global {
        let sha512 = sums.filter(|_| is_closed).and_then(|sums| sums.sha512.clone());
        let checksums = sums.filter(|sums| sha512.is_none() && !sums.xxh3.is_empty()).map(Checksums::of);
        let is_ours = !is_closed || self.has_errors || checksums.is_some() || self.stripes.is_some();
        let own = is_ours.then_some("grebe").into_iter();
        let of_captures = self.capture_extensions.iter().map(String::as_str);
        let uses: Vec<&str> = own.chain(of_captures).chain(self.annotations.extensions()).collect();
        let description = self.description.as_deref();
        let state = if is_closed { "" } else { NOT_CLOSED };
        Global {
            datatype: datatype(self.format),
            sample_rate: Some(self.sample_rate_hz).filter(|&rate_hz| rate_hz > 0.0),
            version: VERSION.into(),
            num_channels: Some(self.channels as u64),
            recorder: Some(format!("grebe {}{state}", env!("CARGO_PKG_VERSION"))),
            collection: self.collection.as_ref().map(Base::name),
            dataset: None,
            metadata_only: None,
            offset: None,
            trailing_bytes: None,
            known_samples: (!is_closed).then_some(self.known_samples),
            sha512,
            checksums,
            stripes: self.stripes.clone(),
            rest: described::global(description, self.notes.as_ref(), channels, &uses),
        }
    }

    /// Enters where samples go on.
    pub(super) fn enter(&mut self, segment: Captured) {
        self.describe(segment.description.as_ref());
        self.has_errors |= segment.recorded_at.is_some_and(|at| at.error_ns.is_some());
        let end_index = self.segments.last().map_or(0, |before| {
            before.first_sample_index.saturating_add(segment.position.saturating_sub(before.position))
        });
        let goes_on = segment.first_sample_index >= end_index;
        if goes_on {
            restate(&mut self.segments, &segment, self.sample_rate_hz);
            self.describe_earlier(&segment);
        }
        self.annotations.interrupt(segment.position, goes_on.then_some(segment.first_sample_index));
        self.segments.push(segment);
    }

    /// Describes the captures before the first description that arrived, as far back as it applies: UDP senders repeat it
    /// once a second.
    fn describe_earlier(&mut self, arrived: &Captured) {
        let Some(description) = &arrived.description else { return };
        let mut next_index = arrived.first_sample_index;
        for capture in self.segments.iter_mut().rev() {
            let applies = (description.first_sample_index..=next_index).contains(&capture.first_sample_index);
            if !applies || capture.description.is_some() {
                return;
            }
            next_index = capture.first_sample_index;
            capture.description = Some(description.clone());
        }
    }

    /// Notes the description of the stream: the first one applies to all of it.
    pub(super) fn describe(&mut self, description: Option<&Arc<Description>>) {
        let channels = 0..self.channels * self.recordings.len();
        for name in Tuning::of(description.map(Arc::as_ref), channels).extensions() {
            if !self.capture_extensions.contains(name) {
                self.capture_extensions.insert(name.to_owned());
            }
        }
        self.description = self.description.take().or_else(|| description.cloned());
    }

    /// Enters a stretch of the stream at its position in the file, without the parts in gaps.
    pub(super) fn annotate(
        &mut self,
        first_sample_index: u64,
        length_samples: u64,
        rest: Map<String, Value>,
    ) {
        let sample_start = self.position(first_sample_index);
        let end_index = first_sample_index.saturating_add(length_samples);
        let sample_count = Some(self.position(end_index).saturating_sub(sample_start));
        self.annotations.open(Annotation { sample_start, sample_count, rest }, end_index);
    }

    /// Position of a stream sample in the file, or of the first one after it. Newest segments first: those of
    /// a restarted stream hide older ones, and most notes concern recent samples.
    fn position(&self, index: u64) -> u64 {
        let mut end = u64::MAX;
        for segment in self.segments.iter().rev() {
            if segment.first_sample_index <= index {
                return segment.position.saturating_add(index - segment.first_sample_index).min(end);
            }
            end = segment.position;
        }
        0
    }

    /// Sets the other stripes; `None`: the recording is the whole.
    pub(super) fn set_stripes(&mut self, stripes: Option<StripeSet>) {
        if stripes.is_none() {
            self.segments.iter_mut().for_each(|segment| segment.stripe_start = None);
        }
        self.stripes = stripes;
    }

    /// Removes entries after the end.
    pub(super) fn cut(&mut self, len_samples: u64) {
        self.segments.retain(|segment| segment.position < len_samples);
        self.annotations.cut(len_samples);
    }
}
