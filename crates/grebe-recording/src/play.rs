//! A recording as a source.

mod schedule;

use std::sync::Arc;
use std::time::Duration;

use grebe_flow::{Context, Inputs, Outcome, Outputs, Stage, StageResult};
use grebe_frame::{BatchMut, BatchPool, Description, Header};

pub use self::schedule::Schedule;
use grebe_process::stream::{CHUNK_BYTES, Pacer, block_length};

use crate::error::Error;
use crate::labels::Labels;
use crate::sample_file::{RecordedAt, SampleFile};
use crate::sigmf::is_misread;

/// How a recording is played.
#[derive(Debug, Clone, Copy)]
pub struct PlayOptions {
    /// Times the recorded rate; `None`: as fast as the consumers take it.
    pub speed: Option<f64>,
    /// Restart at the end, without limit; the sample index continues.
    pub repeat: bool,
    /// Ends after this many samples per channel, or with the file.
    pub samples: Option<u64>,
    /// Bytes of the datagrams the frames should fit into.
    pub datagram_bytes: usize,
    /// The longest that a finished block waits for others to travel with.
    pub flush_every: Duration,
}

/// Plays a recording with its recorded gaps, and sends the file's description, sample times and annotations.
/// A gap is a jump in the sample index; the frames mark those samples as dropped by the source.
///
/// Frames keep the recorded rate at any speed, and their stamps are send times by this machine's clock.
/// Descriptions do not relate those to UTC, because that would make a recording look live. If the file has no
/// sample times, the description says so.
///
/// A file can wait, so slow consumers lose nothing.
#[derive(Debug)]
pub struct FileSource {
    file: SampleFile,
    options: PlayOptions,
    pool: Option<BatchPool>,
    pacer: Option<Pacer>,
    block_samples: u64,
    sequence: u64,
    /// Position of the next frame in the file, and its segment.
    position: u64,
    segment: usize,
    /// Samples of earlier rounds of a file that is repeated, in the file and in the stream.
    rounds_samples: u64,
    index_offset: u64,
    next_index: u64,
    gaps_samples: u64,
    /// Index of the last description sent.
    described: Option<usize>,
    labels: Labels,
    /// A sample of the stream that is sent, and when it was made, as far as the file says.
    taken: Option<(u64, RecordedAt)>,
    /// The segment that `taken` speaks of.
    entered: Option<usize>,
    /// Whether the description changes at the next sample.
    says_anew: bool,
    /// Schedule shared with other recordings; gaps then take their time.
    schedule: Option<Schedule>,
    /// How often it has begun again.
    round: u64,
}

impl FileSource {
    /// Plays `file` with these options; returns a notice about metadata that are not sent.
    pub fn new(mut file: SampleFile, options: PlayOptions) -> (Self, Option<String>) {
        let samples =
            0..options.samples.filter(|_| !options.repeat).unwrap_or(u64::MAX).min(file.len_samples());
        file.expect(samples, options.repeat);
        let (labels, note) = Labels::of(&file);
        let next_index = file.segments().first().map_or(0, |segment| segment.first_sample_index);
        // Played faster, a block of 10 ms holds more samples.
        let rate_hz = options.speed.zip(file.rate_hz()).map_or(0.0, |(speed, rate_hz)| rate_hz * speed);
        let bytes = options.datagram_bytes.min(CHUNK_BYTES);
        let source = Self {
            block_samples: u64::from(block_length(bytes, file.channels(), file.format(), rate_hz)),
            file,
            options,
            pool: None,
            pacer: None,
            sequence: 0,
            position: 0,
            segment: 0,
            rounds_samples: 0,
            index_offset: 0,
            next_index,
            gaps_samples: 0,
            described: None,
            labels,
            taken: None,
            entered: None,
            says_anew: true,
            schedule: None,
            round: 0,
        };
        (source, note)
    }

    /// Keeps step with others.
    pub fn in_step(self, schedule: Schedule) -> Self {
        Self { schedule: Some(schedule), ..self }
    }

    /// Number of the next sample, as the pacer counts.
    fn due_sample(&self) -> u64 {
        self.due_sample_at(self.position, self.round)
    }

    fn due_sample_at(&self, position: u64, round: u64) -> u64 {
        let Some(schedule) = &self.schedule else { return self.rounds_samples + position };
        let segments = self.file.segments();
        let number = segments.partition_point(|segment| segment.position <= position).max(1) - 1;
        schedule.due(position - segments[number].position, number, round)
    }

    fn played_samples(&self) -> u64 {
        self.rounds_samples + self.position
    }

    /// Moves to the segment of the next sample, and marks the samples missing before it.
    fn enter_segment(&mut self) {
        let segments = self.file.segments();
        while self.segment + 1 < segments.len() && segments[self.segment + 1].position <= self.position {
            self.segment += 1;
        }
        let segment = segments[self.segment];
        let index = segment.first_sample_index + (self.position - segment.position) + self.index_offset;
        match index.checked_sub(self.next_index) {
            Some(gap) => self.gaps_samples += gap,
            // Another stream was recorded after the first, and plays as another stream.
            None => {
                self.sequence = 0;
                self.taken = None;
                self.says_anew = true;
            }
        }
        self.next_index = index;
        if self.entered.replace(self.segment) != Some(self.segment)
            && let Some(recorded) = segment.recorded()
        {
            let begin = segment.first_sample_index + self.index_offset;
            if !self.agrees(begin, recorded) {
                self.take_time(Some((begin, recorded)));
            }
        }
    }

    fn take_time(&mut self, taken: Option<(u64, RecordedAt)>) {
        self.says_anew |= taken != self.taken;
        self.taken = taken;
    }

    /// Whether a sample's time fits the previous statement, within the resolution of a file.
    fn agrees(&self, index: u64, recorded: RecordedAt) -> bool {
        let Some(expected) = self.time_at(index).filter(|it| it.error_ns == recorded.error_ns) else {
            return false;
        };
        if expected.axis.zip(recorded.axis).is_some_and(|(read, now)| is_misread(read, now)) {
            return false;
        }
        let (earlier, later) = (expected.time.min(recorded.time), expected.time.max(recorded.time));
        let apart = later.duration_since(earlier).unwrap_or_default();
        apart <= DIGIT.max(Duration::from_secs_f64(0.5 / self.file.rate_hz().unwrap_or(0.0).max(1.0)))
    }

    /// When a sample of the stream was made.
    fn time_at(&self, index: u64) -> Option<RecordedAt> {
        let (first_sample_index, recorded) = self.taken?;
        let said = Description {
            first_sample_index,
            recorded_at: Some(recorded.time),
            recorded_axis: recorded.axis,
            ..Description::default()
        };
        let header = Header { sample_rate_hz: self.file.rate_hz().unwrap_or(0.0), ..Header::default() };
        let axis = said.axis_time_of(&header, index);
        Some(RecordedAt { time: said.time_of(&header, index)?, axis, ..recorded })
    }

    /// Adds the current description; returns whether this batch has room for it.
    fn describe(&mut self, batch: &mut BatchMut) -> bool {
        let number = self.file.description_number(self.position);
        let is_labelled_anew = self.labels.due().is_some_and(|due| due <= self.position);
        if number == self.described && !self.says_anew && !is_labelled_anew {
            return true;
        }
        if !batch.is_empty() {
            return false;
        }
        let said = self.file.description(self.position).map(|description| (**description).clone());
        let recorded = self.time_at(self.next_index);
        let description = Description {
            recorded_at: recorded.map(|recorded| recorded.time),
            recorded_error_ns: recorded.and_then(|recorded| recorded.error_ns),
            recorded_axis: recorded.and_then(|recorded| recorded.axis),
            is_undated: recorded.is_none(),
            annotations: self.labels.around(self.position, self.segment, self.index_offset),
            ..said.unwrap_or_default()
        };
        let description = Some(Arc::new(Description { first_sample_index: self.next_index, ..description }));
        batch.describe(description.as_ref());
        if let Some(pool) = &mut self.pool {
            pool.describe(description);
        }
        (self.described, self.says_anew) = (number, false);
        true
    }

    /// Samples of the next frame: a frame crosses neither a gap nor a position where annotations are due.
    fn next_block(&self) -> u64 {
        let segment = self.file.segments()[self.segment];
        let until_due = self.labels.due().and_then(|due| due.checked_sub(self.position));
        self.block_samples
            .min(until_due.filter(|&samples| samples > 0).unwrap_or(u64::MAX))
            .min(segment.position + segment.length_samples - self.position)
            .min(self.samples_left())
    }

    fn samples_left(&self) -> u64 {
        self.options.samples.unwrap_or(u64::MAX).saturating_sub(self.played_samples())
    }

    fn fill(&mut self, batch: &mut BatchMut, due_samples: u64) -> Result<(), Error> {
        while self.position < self.file.len_samples() && self.samples_left() > 0 {
            self.enter_segment();
            if !self.describe(batch) {
                break;
            }
            let block = self.next_block();
            if due_samples.saturating_sub(self.due_sample()) < block {
                break;
            }
            let header = self.header(block as u32);
            let samples = self.file.block(self.position, block as usize)?;
            let pushed = batch.push_bytes(&header, |channel, out| {
                // The file has the channels that the header names, and the block their samples.
                out.copy_from_slice(samples.channel_bytes(channel).unwrap_or_default());
            });
            if pushed.is_err() {
                break;
            }
            self.sequence += 1;
            self.position += block;
            self.next_index += block;
        }
        Ok(())
    }

    /// Header of a frame with the next `block_samples` samples; 0 at the end of the stream.
    fn header(&self, block_samples: u32) -> Header {
        Header {
            sequence: self.sequence,
            producer_ts_ns: self.stamp_ns(),
            channel_count: self.file.channels() as u32,
            format: self.file.format(),
            block_length_samples: block_samples,
            sample_rate_hz: self.file.rate_hz().unwrap_or(0.0),
            sg_drops_total: self.gaps_samples,
            first_sample_index: self.next_index,
        }
    }

    /// When the next sample was due.
    fn stamp_ns(&self) -> u64 {
        self.pacer.as_ref().map_or(0, |pacer| pacer.stamp_ns(self.due_sample()))
    }

    /// At the end of the file: begins again where that is wanted; whether it did.
    fn rewind(&mut self) -> bool {
        if !self.options.repeat {
            return false;
        }
        let first = self.file.segments().first().map_or(0, |segment| segment.first_sample_index);
        // Until the others restart as well, there is a gap.
        let waits = match self.schedule {
            Some(_) => self.due_sample_at(0, self.round + 1).saturating_sub(self.due_sample()),
            None => 0,
        };
        self.round += 1;
        self.rounds_samples += self.position;
        self.index_offset = self.next_index + waits - first;
        (self.position, self.segment) = (0, 0);
        self.labels.rewind();
        self.entered = None;
        self.take_time(None);
        true
    }
}

/// Resolution of times in a file with microseconds.
const DIGIT: Duration = Duration::from_micros(1);

impl Stage for FileSource {
    fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        if self.samples_left() == 0 || self.position >= self.file.len_samples() && !self.rewind() {
            return Ok(Outcome::End);
        }
        let rate_hz =
            self.options.speed.zip(self.file.rate_hz()).map_or(0.0, |(speed, rate_hz)| rate_hz * speed);
        let due = self.due_sample();
        let next = due + self.next_block();
        let left = match self.schedule {
            // Frames do not span a gap.
            Some(_) => self.file.segment_at(self.position).end() - self.position,
            None => self.file.len_samples() - self.position,
        };
        let interval = ((rate_hz * self.options.flush_every.as_secs_f64()) as u64).min(left);
        let together = next.max(due + interval);
        let pacer = self.pacer.get_or_insert_with(|| match &self.schedule {
            Some(schedule) => Pacer::start_at(schedule.began(), rate_hz),
            None => Pacer::start(rate_hz, 0),
        });
        let Some(due_samples) = pacer.due_samples(next, together) else {
            pacer.sleep_until_due(together, ctx);
            return Ok(Outcome::Produced);
        };
        let pool = self.pool.get_or_insert_with(|| {
            let mut pool = BatchPool::new(ctx.batches_in_flight(), CHUNK_BYTES);
            pool.wake_on_return(ctx.signal().clone());
            pool
        });
        let Some(mut batch) = ctx.acquire(pool) else { return Ok(Outcome::Produced) };
        self.fill(&mut batch, due_samples)?;
        if !batch.is_empty() {
            output.send(batch.freeze(), ctx);
        }
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        ctx.set_end_of_stream(self.header(0));
        Ok(())
    }
}
