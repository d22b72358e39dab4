//! Search of all samples that a scope has, for local and remote viewers.
//!
//! The thread of a search has the lowest priority. All searches together use at most one processor.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, bail};
use grebe_frame::{ChannelDescription, Description};
use grebe_recording::{SampleFile, ring_parts};
use grebe_scope::Scale;
use grebe_view::{Finder, Finding, FindingSide, FoundEvent, HistoryReader, ScopeLink, Sought};

use super::RingSaver;
use super::held::{BLOCK_SAMPLES, Frames, Held, lend, lower_priority, parts_of, ring_of, within};
use crate::cli::EventWords;
use crate::search::{Signal, Walk};

impl Held {
    /// The search function of this source.
    pub(crate) fn finder(self) -> Finder {
        let turn = Arc::new(Mutex::new(()));
        Finder::new(move |sought| {
            let (side, finding) = Finding::begin();
            let (held, turn) = (self.clone(), Arc::clone(&turn));
            let look = move || {
                lower_priority();
                let mut search =
                    RunningSearch { side: &side, turn: &turn, searched: 0, all: 0, events: Vec::new() };
                let words = match search.run(&held, &sought) {
                    Ok(words) => words,
                    Err(error) => format!("not searched: {error:#}"),
                };
                side.end(&words);
            };
            // Without a thread, only the end is reported.
            let _ = std::thread::Builder::new().name("grebe-find".into()).spawn(look);
            finding
        })
    }
}

/// Running search.
struct RunningSearch<'a> {
    side: &'a FindingSide,
    turn: &'a Mutex<()>,
    searched: u64,
    all: u64,
    events: Vec<FoundEvent>,
}

impl RunningSearch<'_> {
    /// Runs the search; returns the outcome in words.
    fn run(&mut self, held: &Held, sought: &Sought) -> Result<String> {
        let words = EventWords::parse(&sought.words).map_err(anyhow::Error::msg)?;
        match held {
            Held::File(path) => self.file(path, &words, &sought.scales),
            Held::Ring(folder) => self.ring(folder, &words, &sought.scales),
            Held::Stream(link, keeper) => self.stream(link, keeper.as_ref(), &words, &sought.scales),
        }
    }

    fn file(&mut self, path: &Path, words: &EventWords, scales: &[Scale]) -> Result<String> {
        let mut file = SampleFile::open(path)?;
        let mut walk = Walk::new(words, &in_scales(Signal::of(&file), scales))?;
        let range = words.range(file.rate_hz().unwrap_or(0.0)).map_err(anyhow::Error::msg)?;
        self.all = samples_in(&file, &range);
        self.recording(&mut file, &range, &mut walk)?;
        self.end(&mut walk);
        Ok(if range == (0..u64::MAX) { "searched everything" } else { "searched the given times" }.into())
    }

    fn ring(&mut self, folder: &Path, words: &EventWords, scales: &[Scale]) -> Result<String> {
        let parts = ring_parts(folder)?;
        let Some(signal) = parts.last().map(|newest| in_scales(Signal::of(newest), scales)) else {
            bail!("no samples yet")
        };
        let parts = parts_of(parts, &signal, u64::MAX);
        let mut walk = Walk::new(words, &signal)?;
        let range = words.range(signal.sample_rate_hz).map_err(anyhow::Error::msg)?;
        self.all = parts.iter().map(|part| samples_in(part, &range)).sum();
        self.report(0);
        let unread = self.parts(parts, &range, &mut walk, &signal);
        self.end(&mut walk);
        let times = if range == (0..u64::MAX) { "everything" } else { "the given times" };
        Ok(format!("searched {times}, {}{unread}", signal.time(self.searched)))
    }

    /// Searches the parts of a ring, and closes each after it: the recorder may have removed it. Returns words about samples that
    /// could not be read.
    fn parts(
        &mut self,
        parts: Vec<SampleFile>,
        range: &Range<u64>,
        walk: &mut Walk,
        signal: &Signal,
    ) -> String {
        let mut unread = (0, String::new());
        for mut part in parts {
            let end = self.searched + samples_in(&part, range);
            if let Err(error) = self.recording(&mut part, range, walk) {
                unread = (unread.0 + end - self.searched, error.to_string());
                self.all -= end - self.searched;
                walk.pass_over();
            }
        }
        match unread {
            (0, _) => String::new(),
            (samples, why) => format!("; {} could not be read: {why}", signal.time(samples)),
        }
    }

    /// Searches sample indices of a recording.
    fn recording(&mut self, file: &mut SampleFile, range: &Range<u64>, walk: &mut Walk) -> Result<()> {
        for segment in file.segments().to_vec() {
            let inside = within(&segment, range);
            let (mut at, end) = (inside.start, inside.end);
            while at < end && self.side.is_wanted() {
                let length = BLOCK_SAMPLES.min(end - at);
                let index = segment.first_sample_index + at;
                if walk.needs_samples() {
                    let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
                    let block = file.block(segment.position + at, length as usize)?;
                    walk.scan(index, &block, &mut self.events)?;
                } else {
                    walk.reach(index, length, &mut self.events);
                }
                at += length;
                self.report(length);
            }
        }
        Ok(())
    }

    fn stream(
        &mut self,
        link: &ScopeLink,
        keeper: Option<&RingSaver>,
        words: &EventWords,
        scales: &[Scale],
    ) -> Result<String> {
        let (reader, side) = (link.reader(), self.side);
        let goes_on = || side.is_wanted();
        let Some(picture) = reader.picture(goes_on) else { return Ok(String::new()) };
        let Some(stream) = picture.stream else { bail!("no samples yet") };
        let signal = in_scales(
            Signal {
                format: stream.format,
                channels: stream.channels,
                sample_rate_hz: stream.rate_hz,
                description: picture.description.clone(),
            },
            scales,
        );
        let mut walk = Walk::new(words, &signal)?;
        let range = words.range(stream.rate_hz).map_err(anyhow::Error::msg)?;
        let ring = keeper.map_or(Vec::new(), |keeper| ring_of(keeper, &signal, picture.next_index));
        // After the end of the ring.
        let Some(first) = reader.read(picture.next_index..picture.next_index, goes_on) else {
            return Ok(String::new());
        };
        let (held, streams) = (first.held, picture.streams);
        let in_ring: u64 = ring.iter().map(|file| samples_in(file, &range)).sum();
        let behind_ring = ring
            .last()
            .and_then(|file| file.segments().last())
            .map_or(0, |last| last.first_sample_index + last.length_samples);
        let from = held.start.max(behind_ring).max(range.start);
        let end = held.end.min(range.end);
        self.all = in_ring + end.saturating_sub(from);
        let unread = self.parts(ring, &range, &mut walk, &signal);
        if from > behind_ring {
            walk.pass_over();
        }
        let forgotten = self.memory(&reader, streams, from..end, &signal, &mut walk)?;
        self.end(&mut walk);
        let time = |samples: u64| signal.time(samples);
        let lost = match forgotten {
            0 => unread,
            _ => format!("{unread}; {} left the memory during the search", time(forgotten)),
        };
        Ok(match (in_ring > 0, held.start > picture.oldest_index.max(range.start)) {
            (false, false) if range != (0..u64::MAX) => {
                format!("searched the given times, {}{lost}", time(self.searched))
            }
            (true, _) => {
                format!("searched {}, {} of it in the ring{lost}", time(self.searched), time(in_ring))
            }
            (false, false) => format!("searched everything, {}{lost}", time(self.searched)),
            (false, true) => format!(
                "searched the last {}; older samples exist as extremes only: grebe record URI DIR --ring 30m keeps all{lost}",
                time(self.searched)
            ),
        })
    }

    /// Searches samples in the memory of a scope; returns the number that had left it.
    fn memory(
        &mut self,
        reader: &HistoryReader,
        streams: u64,
        range: Range<u64>,
        signal: &Signal,
        walk: &mut Walk,
    ) -> Result<u64> {
        let (side, mut frames, mut forgotten) = (self.side, Frames::new(signal), 0);
        let lanes = signal.channels * signal.format.components();
        lend(
            reader,
            range,
            lanes,
            || side.is_wanted(),
            |piece, extract| {
                if extract.streams != streams {
                    bail!("a new stream began: search again");
                }
                if extract.held.start > piece.start {
                    forgotten += extract.held.start.min(piece.end) - piece.start;
                    walk.pass_over();
                }
                {
                    let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
                    frames.each(extract, |first_index, block| {
                        walk.scan(first_index, block, &mut self.events)
                    })?;
                }
                self.report(piece.end - piece.start);
                Ok(())
            },
        )?;
        Ok(forgotten)
    }

    fn report(&mut self, searched: u64) {
        self.searched += searched;
        self.side.tell(&self.events, self.searched, self.all.max(self.searched));
        self.events.clear();
    }

    fn end(&mut self, walk: &mut Walk) {
        walk.end(&mut self.events);
        self.report(0);
    }
}

/// Samples of a recording in a range of sample indices.
fn samples_in(file: &SampleFile, range: &Range<u64>) -> u64 {
    file.segments().iter().map(|segment| within(segment, range)).map(|part| part.end - part.start).sum()
}

/// The signal with the viewer's units.
fn in_scales(signal: Signal, scales: &[Scale]) -> Signal {
    if scales.is_empty() {
        return signal;
    }
    let channel = |scale: &Scale| ChannelDescription {
        scale: scale.factor,
        offset: scale.offset,
        ..ChannelDescription::default()
    };
    let said = signal.description.as_deref().cloned().unwrap_or_default();
    let description = Description { channels: scales.iter().map(channel).collect(), ..said };
    Signal { description: Some(Arc::new(description)), ..signal }
}

#[cfg(test)]
mod tests;
