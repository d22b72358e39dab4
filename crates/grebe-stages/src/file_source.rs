//! A recording as a source.

use std::path::Path;
use std::time::Duration;

use grebe_flow::{Context, Inputs, Outcome, Outputs, Stage, StageError};
use grebe_frame::{BatchMut, BatchPool, Header};

use crate::generate::CHUNK_BYTES;
use crate::pace::Pacer;
use crate::{DATAGRAM_BYTES_MAX, SampleFile, StagesError, block_length};

/// How a recording is played.
#[derive(Debug, Clone, Copy)]
pub struct FileSourceOptions {
    /// Times the recorded rate; `None`: as fast as the consumers take it.
    pub speed: Option<f64>,
    /// Begins again at the end, for ever; the sample index goes on.
    pub repeat: bool,
    /// Ends after this many samples a channel, or with the file.
    pub samples: Option<u64>,
    /// Bytes of the datagrams the frames should fit into.
    pub datagram_bytes: usize,
    /// The longest that a finished block waits for others to travel with.
    pub flush_every: Duration,
}

impl Default for FileSourceOptions {
    fn default() -> Self {
        Self {
            speed: None,
            repeat: false,
            samples: None,
            datagram_bytes: DATAGRAM_BYTES_MAX,
            flush_every: Duration::from_micros(125),
        }
    }
}

/// Plays a recording with the gaps that were recorded: a jump in the sample index, which the frames say the source dropped.
///
/// The frames keep the recorded rate whatever the speed. A file can wait, so nothing is left out where consumers are slow.
#[derive(Debug)]
pub struct FileSource {
    file: SampleFile,
    options: FileSourceOptions,
    pool: Option<BatchPool>,
    pacer: Option<Pacer>,
    block_samples: u64,
    sequence: u64,
    /// Where in the file the next frame begins, and in which of its segments.
    position: u64,
    segment: usize,
    /// Samples of earlier rounds of a file that is repeated, in the file and in the stream.
    rounds_samples: u64,
    index_offset: u64,
    next_index: u64,
    gaps_samples: u64,
}

impl FileSource {
    /// Opens a recording; everything that is wrong with it is said here.
    ///
    /// # Errors
    /// The file is missing, empty, truncated, or no recording.
    pub fn open(path: &Path) -> Result<Self, StagesError> {
        let file = SampleFile::open(path)?;
        let next_index = file.segments().first().map_or(0, |segment| segment.first_sample_index);
        let mut source = Self {
            file,
            options: FileSourceOptions::default(),
            pool: None,
            pacer: None,
            block_samples: 1,
            sequence: 0,
            position: 0,
            segment: 0,
            rounds_samples: 0,
            index_offset: 0,
            next_index,
            gaps_samples: 0,
        };
        source.set(FileSourceOptions::default());
        Ok(source)
    }

    /// How to play it; to be said before the graph starts.
    pub fn set(&mut self, options: FileSourceOptions) {
        self.options = options;
        // Played faster, a block of 10 ms holds more samples.
        let rate_hz = options.speed.map_or(0.0, |speed| self.file.sample_rate_hz() * speed);
        let bytes = options.datagram_bytes.min(CHUNK_BYTES);
        self.block_samples = u64::from(block_length(bytes, self.file.channels(), rate_hz));
    }

    /// What a person should know of how the file is read.
    pub fn notes(&self) -> &[String] {
        self.file.notes()
    }

    /// Samples a second and channel; 0 where the file does not say.
    pub fn sample_rate_hz(&self) -> f64 {
        self.file.sample_rate_hz()
    }

    /// Samples a channel.
    pub fn len_samples(&self) -> u64 {
        self.file.len_samples()
    }

    fn played_samples(&self) -> u64 {
        self.rounds_samples + self.position
    }

    /// Moves to the segment that holds the next sample, and says what was missing before it.
    fn enter_segment(&mut self) {
        let segments = self.file.segments();
        while self.segment + 1 < segments.len() && segments[self.segment + 1].position <= self.position {
            self.segment += 1;
        }
        let segment = segments[self.segment];
        let index = segment.first_sample_index + (self.position - segment.position) + self.index_offset;
        match index.checked_sub(self.next_index) {
            Some(gap) => self.gaps_samples += gap,
            // Another stream was recorded behind the first: so it is here.
            None => self.sequence = 0,
        }
        self.next_index = index;
    }

    /// Samples of the next frame: a frame does not cross a gap.
    fn next_block(&self) -> u64 {
        let segment = self.file.segments()[self.segment];
        self.block_samples
            .min(segment.position + segment.length_samples - self.position)
            .min(self.samples_left())
    }

    fn samples_left(&self) -> u64 {
        self.options.samples.unwrap_or(u64::MAX).saturating_sub(self.played_samples())
    }

    fn fill(&mut self, batch: &mut BatchMut, due_samples: u64) -> Result<(), StagesError> {
        while self.position < self.file.len_samples() && self.samples_left() > 0 {
            self.enter_segment();
            let block = self.next_block();
            if due_samples.saturating_sub(self.played_samples()) < block {
                break;
            }
            let header = Header {
                sequence: self.sequence,
                producer_ts_ns: self.stamp_ns(),
                channel_count: self.file.channels() as u32,
                block_length_samples: block as u32,
                sample_rate_hz: self.file.sample_rate_hz(),
                sg_drops_total: self.gaps_samples,
                first_sample_index: self.next_index,
            };
            let samples = self.file.block(self.position, block as usize)?;
            if batch.push(&header, |channel, out| out.copy_from_slice(samples.channel(channel))).is_err() {
                break;
            }
            self.sequence += 1;
            self.position += block;
            self.next_index += block;
        }
        Ok(())
    }

    /// When the next sample was due.
    fn stamp_ns(&self) -> u64 {
        self.pacer.as_ref().map_or(0, |pacer| pacer.stamp_ns(self.played_samples()))
    }

    /// At the end of the file: begins again, or says that this was all.
    fn rewind(&mut self) -> bool {
        if !self.options.repeat {
            return false;
        }
        let first = self.file.segments().first().map_or(0, |segment| segment.first_sample_index);
        self.rounds_samples += self.position;
        self.index_offset = self.next_index - first;
        (self.position, self.segment) = (0, 0);
        true
    }
}

impl Stage for FileSource {
    fn process(
        &mut self,
        _: &mut Inputs,
        output: &mut Outputs,
        ctx: &mut Context,
    ) -> Result<Outcome, StageError> {
        if self.samples_left() == 0 || self.position >= self.file.len_samples() && !self.rewind() {
            return Ok(Outcome::End);
        }
        let rate_hz = self.options.speed.map_or(0.0, |speed| self.file.sample_rate_hz() * speed);
        let next = self.played_samples() + self.next_block();
        let left = self.file.len_samples() - self.position;
        let interval = ((rate_hz * self.options.flush_every.as_secs_f64()) as u64).min(left);
        let together = next.max(self.played_samples() + interval);
        let pacer = self.pacer.get_or_insert_with(|| Pacer::start(rate_hz, 0));
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
}
