//! The producing side of a run.

use std::io::Write;
use std::time::{Duration, Instant};

use grebe_frame::{BatchMut, BatchPool, HEADER_BYTES, Header};
use grebe_shm::{Publisher, PublisherOptions};

use super::join::PATIENCE;
use super::maker::Maker;
use super::options::Options;
use super::other::ChunkSender;
use super::task::{STREAM, ShmTask};
use crate::error::{Error, Result};
use crate::stream::{Faults, Made};

/// Where frames are made.
pub(super) trait FrameSink {
    /// Has so many frames made, and sends them.
    fn send(&mut self, frames: usize, maker: &mut Maker) -> Result<()>;

    /// Sends the end of the stream.
    fn end(&mut self, header: &Header) -> Result<()>;

    /// Called at each look at the clock.
    fn look(&mut self) {}
}

/// Makes the frames of the task.
pub(super) fn produce(task: &ShmTask, sink: &mut dyn FrameSink) -> Result<Made> {
    let mut maker = Maker::new(task);
    while let Some(mut left) = maker.due() {
        sink.look();
        while left > 0 {
            let frames = task.frames_max().min(left);
            sink.send(frames as usize, &mut maker)?;
            left -= frames;
        }
    }
    let made = maker.finish();
    sink.end(&maker.end())?;
    Ok(made)
}

/// Has so many frames made in a chunk.
pub(super) fn fill(batch: &mut BatchMut, frames: usize, frame_bytes: usize, maker: &mut Maker) {
    for at in (0..frames).map(|frame| frame * frame_bytes) {
        let header = maker.write(&mut batch.chunk()[at..at + frame_bytes]);
        // Fits: a chunk's table has room for a row every 64 bytes.
        let _ = batch.adopt(at, &header);
    }
}

/// A stream in shared memory.
pub(super) struct Lent {
    publisher: Publisher,
    pool: BatchPool,
    frame_bytes: usize,
}

impl Lent {
    /// Offers it to so many consumers; `rest_chunks` and two more are not shared out among them.
    pub(super) fn open(options: &Options, task: &ShmTask, consumers: usize) -> Result<Self> {
        let publisher_options = PublisherOptions {
            chunk_bytes: options.chunk_bytes,
            chunks: options.chunks,
            // One in hand, and one to spare.
            reserve_chunks: 2 + options.rest_chunks,
            rest_chunks: options.rest_chunks,
            consumers_max: consumers,
            directory: Some(task.directory.clone()),
            ..PublisherOptions::default()
        };
        let (publisher, pool) = Publisher::create(STREAM, publisher_options)?;
        Ok(Self { publisher, pool, frame_bytes: task.frame_bytes() })
    }

    pub(super) fn wait_for(&mut self, consumers: usize) -> Result<()> {
        if self.publisher.wait_for_consumers(consumers, PATIENCE) {
            return Ok(());
        }
        Err(Error::peer("consumer", "it did not come"))
    }

    pub(super) fn footprint_bytes(&self) -> usize {
        self.publisher.footprint().total_bytes()
    }

    /// Chunks that are not home, of those that should be once everybody is gone.
    pub(super) fn leftover_chunks(&mut self, options: &Options) -> usize {
        let until = Instant::now() + Duration::from_secs(1);
        loop {
            self.publisher.reap();
            let left = (options.chunks - options.rest_chunks).saturating_sub(self.pool.available());
            if left == 0 || Instant::now() > until {
                return left;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl FrameSink for Lent {
    fn send(&mut self, frames: usize, maker: &mut Maker) -> Result<()> {
        let mut batch = loop {
            if let Some(batch) = self.pool.acquire() {
                break batch;
            }
            // Cannot be: the quotas leave two chunks. What was returned may not have been looked at.
            self.publisher.reap();
        };
        fill(&mut batch, frames, self.frame_bytes, maker);
        self.publisher.send(&batch.freeze(), || false)?;
        Ok(())
    }

    fn end(&mut self, header: &Header) -> Result<()> {
        self.publisher.end(Some(header));
        Ok(())
    }
}

/// A stream in shared memory, of whose consumers one is stopped and one killed.
pub(super) struct Beset<'a> {
    pub lent: &'a mut Lent,
    pub havoc: Havoc<'a>,
}

impl FrameSink for Beset<'_> {
    fn send(&mut self, frames: usize, maker: &mut Maker) -> Result<()> {
        self.lent.send(frames, maker)
    }

    fn end(&mut self, header: &Header) -> Result<()> {
        self.lent.end(header)
    }

    fn look(&mut self) {
        self.havoc.look(&self.lent.publisher);
    }
}

/// Stops one process after a quarter of the run, and kills another in the middle.
pub(super) struct Havoc<'a> {
    stop: Option<&'a mut dyn FnMut()>,
    kill: Option<&'a mut dyn FnMut()>,
    began: Instant,
    duration: Duration,
    killed: Option<Instant>,
    pub faults: Faults,
}

impl<'a> Havoc<'a> {
    pub(super) fn new(duration: Duration, stop: &'a mut dyn FnMut(), kill: &'a mut dyn FnMut()) -> Self {
        Self {
            stop: Some(stop),
            kill: Some(kill),
            began: Instant::now(),
            duration,
            killed: None,
            faults: Faults::default(),
        }
    }

    /// Called by the producer between batches.
    pub(super) fn look(&mut self, publisher: &Publisher) {
        let elapsed = self.began.elapsed();
        if elapsed > self.duration / 4
            && let Some(stop) = self.stop.take()
        {
            stop();
        }
        if elapsed > self.duration / 2
            && let Some(kill) = self.kill.take()
        {
            self.killed = Some(Instant::now());
            kill();
        }
        if let Some(killed) = self.killed
            && self.faults.noticed_ms.is_none()
        {
            let totals = publisher.totals();
            if totals.hung_up > 0 {
                self.faults.noticed_ms = Some(killed.elapsed().as_secs_f64() * 1e3);
            }
            self.faults.stopped_dropped = totals.dropped_frames;
        }
    }
}

/// A byte stream that frames are written to, several per call.
pub(super) struct Written<W> {
    to: W,
    chunk: Vec<u8>,
    frame_bytes: usize,
}

impl<W: Write> Written<W> {
    pub(super) fn new(task: &ShmTask, to: W) -> Self {
        let frame_bytes = task.frame_bytes();
        Self { to, chunk: vec![0; task.frames_max() as usize * frame_bytes], frame_bytes }
    }
}

impl<W: Write> FrameSink for Written<W> {
    fn send(&mut self, frames: usize, maker: &mut Maker) -> Result<()> {
        let chunk = &mut self.chunk[..frames * self.frame_bytes];
        chunk.chunks_exact_mut(self.frame_bytes).for_each(|place| _ = maker.write(place));
        self.to.write_all(chunk).map_err(Error::io("write the stream"))
    }

    fn end(&mut self, header: &Header) -> Result<()> {
        self.to.write_all(&bytes_of(header)).map_err(Error::io("write the end of the stream"))
    }
}

/// Another program's stream.
pub(super) struct ByOther {
    pub sender: Box<dyn ChunkSender>,
    pub frame_bytes: usize,
}

impl FrameSink for ByOther {
    fn send(&mut self, frames: usize, maker: &mut Maker) -> Result<()> {
        let frame_bytes = self.frame_bytes;
        self.sender.send(frames * frame_bytes, &mut |chunk| {
            chunk.chunks_exact_mut(frame_bytes).for_each(|place| _ = maker.write(place));
        })
    }

    fn end(&mut self, header: &Header) -> Result<()> {
        let end = bytes_of(header);
        self.sender.send(end.len(), &mut |chunk| chunk.copy_from_slice(&end))
    }
}

fn bytes_of(header: &Header) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    header.write(&mut bytes);
    bytes
}
