//! The histories of all lanes of a stream.

use std::ops::Range;

use grebe_frame::{Frame, SampleFormat};
use grebe_scope::{Error as ScopeError, Pyramid};

use crate::data::lane::{LaneId, LaneMask, Part};
use crate::data::samples::{self, Kind};

/// Keeps every channel, with I and Q of complex ones, and the requested derived parts.
#[derive(Debug)]
pub(crate) struct Tracks<K: Kind> {
    format: SampleFormat,
    channels: usize,
    /// Full scale, if the samples have fewer bits than their format.
    bits_full_scale: Option<f64>,
    /// One lane per channel, or alternately I and Q.
    samples: Pyramid<K>,
    /// Derived from I and Q, each with one lane per channel.
    derived: Vec<(Part, Pyramid<K>)>,
    /// Memory for one derived part.
    part_budget_bytes: usize,
    /// The lanes of a frame that stores them differently, and the values derived from them.
    scratch: Vec<K>,
    /// The newest I and Q of each channel.
    last: Vec<[K; 2]>,
}

/// The history of one lane.
#[derive(Debug)]
pub(crate) struct Track<'a, K: Kind> {
    pub(crate) pyramid: &'a Pyramid<K>,
    /// The lane's place in it.
    pub(crate) place: usize,
}

impl<K: Kind> Clone for Track<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Kind> Copy for Track<'_, K> {}

impl<'a, K: Kind> Track<'a, K> {
    /// The samples of a range that are still held.
    pub(crate) fn samples(self, range: Range<u64>, each: impl FnMut(u64, &'a [K])) {
        self.pyramid.samples(self.place, range, each);
    }
}

impl<K: Kind> Tracks<K> {
    /// For a stream of `channels`, within about `budget_bytes`: a third of it for I and Q if parts may be added.
    ///
    /// # Errors
    /// [`ScopeError::Budget`] and [`ScopeError::OutOfMemory`].
    pub(crate) fn new(
        format: SampleFormat,
        channels: usize,
        budget_bytes: usize,
    ) -> Result<Tracks<K>, ScopeError> {
        let lanes = channels * format.components();
        let (own, part) = shares(format, budget_bytes);
        Ok(Tracks {
            format,
            channels,
            bits_full_scale: None,
            samples: Pyramid::new(lanes, own)?,
            derived: Vec::new(),
            part_budget_bytes: part,
            scratch: Vec::new(),
            last: Vec::new(),
        })
    }

    /// Whether it holds streams of this kind.
    pub(crate) fn is_for(&self, format: SampleFormat, channels: usize) -> bool {
        (self.format, self.channels) == (format, channels)
    }

    pub(crate) fn clear(&mut self) {
        self.samples.clear();
        self.derived.iter_mut().for_each(|(_, history)| history.clear());
        self.last.clear();
    }

    pub(crate) fn format(&self) -> SampleFormat {
        self.format
    }

    pub(crate) fn channels(&self) -> usize {
        self.channels
    }

    /// Takes the number of bits of the samples; returns whether it changed.
    pub(crate) fn set_bits_full_scale(&mut self, full_scale: Option<f64>) -> bool {
        std::mem::replace(&mut self.bits_full_scale, full_scale) != full_scale
    }

    /// Amplitude of a tone that uses the whole range.
    pub(crate) fn full_scale(&self) -> f64 {
        self.bits_full_scale.unwrap_or_else(|| samples::full_scale(self.format))
    }

    /// The range of components; `None` if unlimited.
    pub(crate) fn ends(&self) -> Option<(f64, f64)> {
        self.bits_full_scale.map(|end| (-end, end - 1.0)).or_else(|| samples::ends(self.format))
    }

    /// The history of the samples themselves.
    pub(crate) fn sampled(&self) -> &Pyramid<K> {
        &self.samples
    }

    /// The held samples, gaps included.
    pub(crate) fn held(&self) -> Range<u64> {
        let end = self.samples.next_index();
        self.samples.oldest_sample().unwrap_or(end)..end
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let derived = self.derived.iter().map(|(_, history)| history.memory_bytes());
        self.samples.memory_bytes() + derived.sum::<usize>()
    }

    /// The existing lanes of a mask.
    pub(crate) fn lanes(&self, shown: LaneMask) -> impl Iterator<Item = LaneId> + '_ {
        let lanes = shown.lanes(self.channels, self.format.is_complex());
        lanes.filter(|&lane| self.place(lane).is_some())
    }

    pub(crate) fn track(&self, lane: LaneId) -> Option<Track<'_, K>> {
        let place = self.place(lane)?;
        let own = self.samples.channels();
        let Some(behind) = place.checked_sub(own) else {
            return Some(Track { pyramid: &self.samples, place });
        };
        let (_, pyramid) = self.derived.get(behind / self.channels)?;
        Some(Track { pyramid, place: behind % self.channels })
    }

    /// The lane's place in the blocks that [`append`](Tracks::append) passes on.
    pub(crate) fn place(&self, lane: LaneId) -> Option<usize> {
        let channel = Some(lane.channel).filter(|&channel| channel < self.channels)?;
        match (lane.part, self.format.is_complex()) {
            (Part::Real, false) => Some(channel),
            (Part::I, true) => Some(channel * 2),
            (Part::Q, true) => Some(channel * 2 + 1),
            (part, true) => {
                let derived = self.derived.iter().position(|(it, _)| *it == part)?;
                Some(self.samples.channels() + derived * self.channels + channel)
            }
            _ => None,
        }
    }

    /// Number of lanes in those blocks.
    pub(crate) fn places(&self) -> usize {
        self.samples.channels() + self.derived.len() * self.channels
    }

    /// Takes a frame of this stream. `see` gets all its lanes, in the order of their [places](Tracks::place).
    ///
    /// # Errors
    /// As [`Pyramid::append`], except for the index of a damaged header: such a frame is skipped.
    pub(crate) fn append(
        &mut self,
        frame: &Frame<'_>,
        first: u64,
        see: impl FnOnce(&[&[K]]),
    ) -> Result<(), ScopeError> {
        let block = frame.header().block_length_samples as usize;
        if block == 0 {
            return Ok(());
        }
        let borrowed = self.decode(frame, first == self.samples.next_index());
        let Tracks { samples, derived, scratch, channels, .. } = self;
        let all = borrowed.unwrap_or(scratch);
        let (own, channels) = (samples.channels(), *channels);
        if all.len() != (own + derived.len() * channels) * block {
            return Ok(());
        }
        with_lanes(all, block, |lanes| {
            see(lanes);
            let (sampled, rest) = lanes.split_at(own);
            let mut done = samples.append(first, sampled);
            for ((_, history), lanes) in derived.iter_mut().zip(rest.chunks(channels)) {
                done = done.and(history.append(first, lanes));
            }
            match done {
                // The tracker lets no index pass that goes back; an index beyond the range is a damaged header.
                Err(ScopeError::IndexWentBack { .. } | ScopeError::IndexTooLarge { .. }) => Ok(()),
                other => other,
            }
        })
    }

    /// Passes on all lanes of a frame, as [`append`](Tracks::append) does, and keeps none. `follows`: the last frame was
    /// the one before it.
    pub(crate) fn see(&mut self, frame: &Frame<'_>, follows: bool, see: impl FnOnce(&[&[K]])) {
        let block = frame.header().block_length_samples as usize;
        if block == 0 {
            return;
        }
        let all = self.decode(frame, follows).unwrap_or(&self.scratch);
        if all.len() == self.places() * block {
            with_lanes(all, block, see);
        }
    }

    /// The derived parts, in the order of their places.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Part> {
        self.derived.iter().map(|&(part, _)| part)
    }

    /// All lanes of a frame, if it stores them that way. Else `scratch` gets them, with the derived ones after them.
    fn decode<'a>(&mut self, frame: &Frame<'a>, follows: bool) -> Option<&'a [K]> {
        let borrowed = K::borrowed(frame);
        if borrowed.is_none() {
            K::decode(frame, &mut self.scratch);
            self.derive(frame.header().block_length_samples as usize, follows);
        }
        borrowed
    }

    /// Marks all samples up to an index as missing, unless they are there.
    pub(crate) fn reach(&mut self, index: u64) {
        let none: Vec<&[K]> = vec![&[]; self.samples.channels()];
        // An index that goes back was reached before.
        let _ = self.samples.append(index, &none);
        for (_, history) in &mut self.derived {
            let _ = history.append(index, &none[..self.channels]);
        }
    }

    /// Keeps the requested parts and no others; returns whether that changed. A new part is computed from the newest
    /// held samples, or from all of them.
    pub(crate) fn keep_parts(&mut self, is_wanted: impl Fn(Part) -> bool, is_whole: bool) -> bool {
        if !self.format.is_complex() {
            return false;
        }
        let before = self.derived.len();
        self.derived.retain(|(part, _)| is_wanted(*part));
        let mut is_other = self.derived.len() != before;
        for part in Part::DERIVED.into_iter().filter(|&part| is_wanted(part)) {
            if self.derived.iter().any(|(kept, _)| *kept == part) {
                continue;
            }
            // Without memory, the lane does not exist.
            let Ok(history) = self.made_of_held(part, is_whole) else { continue };
            self.derived.push((part, history));
            is_other = true;
        }
        is_other
    }

    /// Derives all parts of the frame in `scratch`, after its lanes.
    fn derive(&mut self, block: usize, follows: bool) {
        if !self.format.is_complex() || self.scratch.len() != self.samples.channels() * block {
            return;
        }
        let follows = follows && self.last.len() == self.channels;
        let sampled = self.scratch.len();
        self.scratch.resize(sampled + self.derived.len() * self.channels * block, K::default());
        let full_scale = self.full_scale();
        let (sampled, derived) = self.scratch.split_at_mut(sampled);
        let pairs = sampled.chunks_exact(block * 2).enumerate();
        let pairs = pairs.map(|(channel, pair)| (channel, pair.split_at(block)));
        for (out, (part, _)) in derived.chunks_exact_mut(block * self.channels).zip(&self.derived) {
            for (out, (channel, (i, q))) in out.chunks_exact_mut(block).zip(pairs.clone()) {
                let before = self.last.get(channel).copied().filter(|_| follows);
                K::derive(*part, before, full_scale, [i, q], out);
            }
        }
        self.last.clear();
        self.last.extend(pairs.map(|(_, (i, q))| [i[block - 1], q[block - 1]]));
    }

    fn made_of_held(&self, part: Part, is_whole: bool) -> Result<Pyramid<K>, ScopeError> {
        let mut history = Pyramid::new(self.channels, self.part_budget_bytes)?;
        let end = self.samples.next_index();
        let from = if is_whole { 0 } else { end.saturating_sub(FILL_SAMPLES) };
        let full_scale = self.full_scale();
        let mut copied: Vec<[Runs<K>; 2]> = Vec::new();
        copied.resize_with(self.channels, Default::default);
        let mut last: Option<(u64, Vec<[K; 2]>)> = None;
        let mut out = Vec::new();
        let mut start = from.max(self.samples.oldest().unwrap_or(end));
        while start < end {
            let range = start..end.min(start + FILL_STEP);
            start = range.end;
            for (channel, pair) in copied.iter_mut().enumerate() {
                for (component, runs) in pair.iter_mut().enumerate() {
                    let track = Track { pyramid: &self.samples, place: channel * 2 + component };
                    runs.copy(track, range.clone());
                }
            }
            let mut pairs: Vec<_> = copied.iter().map(|[i, q]| i.iter().zip(q.iter())).collect();
            loop {
                // A gap is in all channels at the same time.
                let run: Vec<_> = pairs.iter_mut().filter_map(Iterator::next).collect();
                let Some(&((first, i), _)) = run.first() else { break };
                let block = i.len();
                out.clear();
                out.resize(block * self.channels, K::default());
                for ((channel, ((_, i), (_, q))), out) in
                    run.iter().enumerate().zip(out.chunks_exact_mut(block))
                {
                    let before = last.as_ref().filter(|(next, _)| *next == first);
                    let before = before.and_then(|(_, last)| last.get(channel)).copied();
                    K::derive(part, before, full_scale, [i, q], out);
                }
                let ends = run.iter().map(|((_, i), (_, q))| [i[block - 1], q[block - 1]]);
                last = Some((first + block as u64, ends.collect()));
                with_lanes(&out, block, |lanes| history.append(first, lanes))?;
            }
        }
        Ok(history)
    }
}

/// Calls `see` with slices of `block` samples each. The slices are on the stack, in a few sizes: no frame costs an
/// allocation, and a frame of few lanes costs less.
fn with_lanes<K: Kind, R>(all: &[K], block: usize, see: impl FnOnce(&[&[K]]) -> R) -> R {
    fn up_to<const MAX: usize, K: Kind, R>(all: &[K], block: usize, see: impl FnOnce(&[&[K]]) -> R) -> R {
        let mut lanes: [&[K]; MAX] = [&[]; MAX];
        let mut count = 0;
        for (lane, samples) in lanes.iter_mut().zip(all.chunks_exact(block)) {
            *lane = samples;
            count += 1;
        }
        see(&lanes[..count])
    }
    match all.len() / block {
        0..=8 => up_to::<8, K, R>(all, block, see),
        9..=64 => up_to::<64, K, R>(all, block, see),
        // 255 complex channels with all of their parts.
        _ => up_to::<1536, K, R>(all, block, see),
    }
}

/// A copy of the samples of one lane.
#[derive(Debug)]
pub(super) struct Runs<K> {
    pub(super) samples: Vec<K>,
    /// First index and length of each run without a gap.
    runs: Vec<(u64, usize)>,
}

impl<K> Default for Runs<K> {
    fn default() -> Runs<K> {
        Runs { samples: Vec::new(), runs: Vec::new() }
    }
}

impl<K: Kind> Runs<K> {
    /// Takes the samples of `range` that are still held.
    pub(super) fn copy(&mut self, track: Track<'_, K>, range: Range<u64>) {
        self.clear();
        self.add(track, range);
    }

    pub(super) fn clear(&mut self) {
        self.samples.clear();
        self.runs.clear();
    }

    /// Takes more of them, later ones.
    pub(super) fn add(&mut self, track: Track<'_, K>, range: Range<u64>) {
        track.samples(range, |first, piece| {
            self.samples.extend_from_slice(piece);
            match self.runs.last_mut() {
                // A piece also ends where the pyramid's ring wraps, without a gap.
                Some((begin, length)) if *begin + *length as u64 == first => *length += piece.len(),
                _ => self.runs.push((first, piece.len())),
            }
        });
    }

    /// The runs without a gap, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &[K])> {
        let mut rest = &self.samples[..];
        self.runs.iter().map(move |&(first, length)| (first, rest.split_off(..length).unwrap_or_default()))
    }
}

/// On a live stream, a new part starts this far back: a few tens of milliseconds of work.
const FILL_SAMPLES: u64 = 1 << 22;
const FILL_STEP: u64 = 1 << 16;
/// Samples per channel that the history of a scope keeps singly, within `history_bytes`. Of older ones it keeps extremes.
pub fn samples_held(format: SampleFormat, channels: usize, history_bytes: usize) -> u64 {
    let lanes = channels * format.components();
    let (own, _) = shares(format, history_bytes);
    let held = match samples::is_short(format) {
        true => Pyramid::<i16>::samples_within(lanes, own),
        false => Pyramid::<f32>::samples_within(lanes, own),
    };
    held.unwrap_or(0)
}

/// Memory for the samples, and for each derived part of complex ones.
fn shares(format: SampleFormat, budget_bytes: usize) -> (usize, usize) {
    if format.is_complex() { (budget_bytes / 3, budget_bytes / 6) } else { (budget_bytes, 0) }
}
