//! From triggers to records: a fixed number of samples before and after each, however the stream is cut into blocks.

use std::collections::VecDeque;

use crate::error::{Error, Result, check_block};
use crate::trigger::{Trigger, TriggerEvent};
use crate::value::Value;

/// One record, lent for the time of the call.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a, V: Value = i16> {
    /// Its trigger.
    pub trigger: TriggerEvent<V>,
    /// Index of the record's first sample.
    pub first_sample_index: u64,
    source: Source<'a, V>,
    /// Its channels, ascending.
    kept: &'a [usize],
    len: usize,
}

#[derive(Debug, Clone, Copy)]
enum Source<'a, V> {
    /// A part of the appended block, from this place.
    Block(&'a [&'a [V]], usize),
    /// Joined samples: the kept channels, side by side.
    Joined(&'a [V]),
}

impl<'a, V: Value> Record<'a, V> {
    /// Samples of one channel; empty for a channel that is not kept.
    pub fn samples(&self, channel: usize) -> &'a [V] {
        let Ok(place) = self.kept.binary_search(&channel) else { return &[] };
        match self.source {
            Source::Block(block, from) => &block[channel][from..from + self.len],
            Source::Joined(samples) => samples.chunks_exact(self.len).nth(place).unwrap_or(&[]),
        }
    }
}

/// Takes records of some channels around the triggers of one.
///
/// Every trigger gets its record, even where records overlap. Triggers too near to a gap or to the start of the stream
/// have none. The length of a record bounds the memory.
///
/// ```
/// use grebe_scope::{Acquisition, Condition, Slope, Trigger};
/// let trigger = Trigger::new(Condition::Edge { slope: Slope::Rising, level: 5, hysteresis: 0 }, 0)?;
/// let mut acquisition = Acquisition::new(1, &[0], 0, trigger, 2, 4)?;
/// let mut records = Vec::new();
/// for first in [0, 4, 8] {
///     let block = [first, first + 1, first + 2, first + 3];
///     acquisition.append(first as u64, &[&block], |record| records.push(record.samples(0).to_vec()))?;
/// }
/// assert_eq!(records, [[3, 4, 5, 6]]);
/// # Ok::<(), grebe_scope::Error>(())
/// ```
#[derive(Debug)]
pub struct Acquisition<V: Value = i16> {
    trigger: Trigger<V>,
    trigger_channel: usize,
    recorder: Recorder<V>,
    next: Option<u64>,
}

impl<V: Value> Acquisition<V> {
    /// Creates records of `record_samples` (1 to 2^24), with `pre_samples` (fewer) before the trigger of `trigger_channel`.
    /// Blocks have `channels` channels; records have the `kept` ones (in ascending order).
    ///
    /// # Errors
    /// [`Error::Setting`] for numbers out of range, and [`Error::OutOfMemory`].
    pub fn new(
        channels: usize,
        kept: &[usize],
        trigger_channel: usize,
        trigger: Trigger<V>,
        pre_samples: u64,
        record_samples: u64,
    ) -> Result<Acquisition<V>> {
        let refuse = |what, got: u64, must| Err(Error::Setting { what, got: got.to_string(), must });
        if let Some(&channel) = kept.iter().find(|&&channel| channel >= channels) {
            return refuse("kept channel", channel as u64, "one of the channels, counted from 0");
        }
        if let Some(pair) = kept.windows(2).find(|pair| pair[0] >= pair[1]) {
            return refuse("kept channel", pair[1] as u64, "above the one before it");
        }
        if trigger_channel >= channels {
            return refuse("trigger channel", trigger_channel as u64, "one of the channels, counted from 0");
        }
        if !(1..=1 << 24).contains(&record_samples) {
            return refuse("record length in samples", record_samples, "between 1 and 2^24");
        }
        if pre_samples >= record_samples {
            return refuse("pre-trigger in samples", pre_samples, "less than the record length");
        }
        let asked = Self::memory_bytes(kept.len(), record_samples).unwrap_or(usize::MAX);
        if Vec::<u8>::new().try_reserve_exact(asked).is_err() {
            return Err(Error::OutOfMemory { asked });
        }
        let recorder = Recorder::new(channels, kept, pre_samples, record_samples);
        Ok(Acquisition { trigger, trigger_channel, recorder, next: None })
    }

    /// Memory for records of `kept` channels and `record_samples` samples, in bytes; `None` on overflow.
    pub fn memory_bytes(kept: usize, record_samples: u64) -> Option<usize> {
        let record = usize::try_from(record_samples).ok()?;
        let samples = record.checked_mul(kept)?.checked_mul(3 * size_of::<V>())?;
        let waiting = record.checked_add(1)?.checked_mul(size_of::<TriggerEvent<V>>())?;
        samples.checked_add(waiting)
    }

    /// Takes the next block and calls `each` with every record that it completes, in order.
    ///
    /// # Errors
    /// Another number of channels, channels of different lengths, an index that moves back, or one beyond 2^62.
    pub fn append(
        &mut self,
        first_sample_index: u64,
        block: &[&[V]],
        mut each: impl FnMut(Record<'_, V>),
    ) -> Result<()> {
        let len = check_block(block, self.recorder.channels, first_sample_index, self.next)?;
        if len == 0 {
            return Ok(());
        }
        let Acquisition { trigger, recorder, .. } = self;
        if self.next != Some(first_sample_index) {
            recorder.break_off(first_sample_index);
        }
        let place = Block { first: first_sample_index, channels: block };
        // In pieces of a record, so that the ring of waiting triggers has a bound.
        let piece_max = recorder.record_samples as usize;
        for from in (0..len).step_by(piece_max) {
            let to = (from + piece_max).min(len);
            let at = first_sample_index + from as u64;
            trigger.scan(at, &block[self.trigger_channel][from..to], |event| {
                recorder.take(place, event, &mut each)
            });
            recorder.give_out(place, first_sample_index + to as u64, &mut each);
        }
        recorder.keep_tail(block, len);
        self.next = Some(first_sample_index + len as u64);
        Ok(())
    }
}

/// The block at hand.
#[derive(Clone, Copy)]
struct Block<'a, V> {
    first: u64,
    channels: &'a [&'a [V]],
}

/// Everything but the trigger itself.
#[derive(Debug)]
struct Recorder<V: Value> {
    /// Channels of a block.
    channels: usize,
    /// Channels of a record, in ascending order.
    kept: Vec<usize>,
    pre_samples: u64,
    record_samples: u64,
    /// The newest samples without a gap, at least a record of them where there are; kept channels side by side, each
    /// with room for two records, so that moving them to the front costs little per sample.
    tail: Vec<V>,
    tail_start: usize,
    tail_end: usize,
    joined: Vec<V>,
    /// Triggers whose records are not complete, oldest first: one per sample at worst.
    waiting: VecDeque<TriggerEvent<V>>,
    /// First index of the newest run without a gap.
    unbroken_since: u64,
}

impl<V: Value> Recorder<V> {
    fn new(channels: usize, kept: &[usize], pre_samples: u64, record_samples: u64) -> Recorder<V> {
        let record = record_samples as usize;
        Recorder {
            channels,
            kept: kept.to_vec(),
            pre_samples,
            record_samples,
            tail: vec![V::default(); 2 * record * kept.len()],
            tail_start: 0,
            tail_end: 0,
            joined: vec![V::default(); record * kept.len()],
            waiting: VecDeque::with_capacity(record + 1),
            unbroken_since: 0,
        }
    }

    /// A gap: no record may cross it.
    fn break_off(&mut self, index: u64) {
        self.waiting.clear();
        (self.tail_start, self.tail_end) = (0, 0);
        self.unbroken_since = index;
    }

    fn take(&mut self, block: Block<V>, event: TriggerEvent<V>, each: &mut impl FnMut(Record<'_, V>)) {
        self.give_out(block, event.index, each);
        if self.unbroken_since + self.pre_samples <= event.index {
            self.waiting.push_back(event);
        }
    }

    /// Passes on the records that are complete with the samples before `seen`.
    fn give_out(&mut self, block: Block<V>, seen: u64, each: &mut impl FnMut(Record<'_, V>)) {
        let post = self.record_samples - self.pre_samples;
        while let Some(&event) = self.waiting.front()
            && event.index + post <= seen
        {
            self.waiting.pop_front();
            if let Some(record) = self.record(block, event.index - self.pre_samples, event) {
                each(record);
            }
        }
    }

    /// The record from `start`, from the block, or joined from the tail and the block; `None` if samples are gone, which no
    /// caller asks for.
    fn record<'a>(
        &'a mut self,
        block: Block<'a, V>,
        start: u64,
        trigger: TriggerEvent<V>,
    ) -> Option<Record<'a, V>> {
        let len = self.record_samples as usize;
        if start >= block.first {
            let source = Source::Block(block.channels, (start - block.first) as usize);
            return Some(Record { trigger, first_sample_index: start, source, kept: &self.kept, len });
        }
        let missing = (block.first - start) as usize;
        let from_block = len.checked_sub(missing)?;
        let kept_len = self.tail_end - self.tail_start;
        let tails = self.tail.chunks_exact(2 * len);
        for ((&channel, tail), joined) in self.kept.iter().zip(tails).zip(self.joined.chunks_exact_mut(len)) {
            let samples = block.channels[channel];
            let from_tail =
                tail[self.tail_start..self.tail_end].split_at_checked(kept_len.checked_sub(missing)?)?.1;
            joined[..missing].copy_from_slice(from_tail);
            joined[missing..].copy_from_slice(&samples[..from_block]);
        }
        let (source, kept) = (Source::Joined(&self.joined), &self.kept[..]);
        Some(Record { trigger, first_sample_index: start, source, kept, len })
    }

    /// Keeps the newest samples that a later record may need.
    fn keep_tail(&mut self, block: &[&[V]], len: usize) {
        let record = self.record_samples as usize;
        let new = len.min(record);
        let (start, end) = (self.tail_start, self.tail_end);
        let room = 2 * record - end >= new;
        let kept = (end - start).min(record - new);
        for (&channel, tail) in self.kept.iter().zip(self.tail.chunks_exact_mut(2 * record)) {
            let samples = block[channel];
            let at = if room { end } else { kept };
            if !room {
                tail.copy_within(end - kept..end, 0);
            }
            tail[at..at + new].copy_from_slice(&samples[len - new..]);
        }
        self.tail_end = if room { end } else { kept } + new;
        self.tail_start = if room { end - kept } else { 0 };
    }
}

#[cfg(test)]
mod tests;
