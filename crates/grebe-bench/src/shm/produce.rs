//! The producing side of a run.

use std::io::Write;
use std::process::Child;
use std::time::{Duration, Instant};

use grebe_frame::{BatchMut, BatchPool, Header};
use grebe_shm::{Publisher, PublisherOptions};

use super::options::{Options, PATIENCE, STREAM, ShmTask};
use crate::error::{Error, Result};
use crate::peer::Peer;
use crate::stream::{Faults, FrameSender, Frames};

/// Writes frames into a chunk.
pub(super) fn fill(batch: &mut BatchMut, frames: &Frames) {
    let (bytes, frame_bytes) = (frames.bytes(), frames.frame_bytes());
    frames.write(&mut batch.chunk()[..bytes]);
    for at in (0..bytes).step_by(frame_bytes) {
        if let Ok(header) = Header::parse(&batch.chunk()[at..]) {
            // Fits: a chunk's table has room for a row every 64 bytes.
            let _ = batch.adopt(at, &header);
        }
    }
}

/// A stream in shared memory.
pub(super) struct Lent {
    publisher: Publisher,
    pool: BatchPool,
    resting_chunks: usize,
    pub havoc: Option<Havoc>,
}

impl Lent {
    /// Offers the stream to `consumers`. The resting chunks and two more are not shared out among them.
    pub(super) fn open(options: &Options, task: &ShmTask, consumers: usize) -> Result<Self> {
        let publisher_options = PublisherOptions {
            chunk_bytes: options.chunk_size,
            chunks: options.chunks,
            // One in hand, and one to spare.
            reserve_chunks: 2,
            rest_chunks: options.rest,
            consumers_max: consumers,
            directory: Some(task.directory.clone()),
            ..PublisherOptions::default()
        };
        let resting_chunks = publisher_options.resting_chunks();
        let (publisher, pool) = Publisher::create(STREAM, publisher_options)?;
        Ok(Self { publisher, pool, resting_chunks, havoc: None })
    }

    pub(super) fn footprint_bytes(&self) -> usize {
        self.publisher.footprint().total_bytes()
    }

    /// Results of the stopped and killed consumers, after all have ended.
    pub(super) fn faults(&mut self, options: &Options) -> Option<Faults> {
        let mut havoc = self.havoc.take()?;
        let until = Instant::now() + Duration::from_secs(1);
        // A short run may end before the kill is noticed.
        while havoc.killed_at.is_some() && havoc.faults.noticed_ms.is_none() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
            havoc.check(&self.publisher);
        }
        let mut faults = havoc.faults;
        drop(havoc);
        loop {
            self.publisher.reap();
            faults.leftover_chunks =
                (options.chunks - self.resting_chunks).saturating_sub(self.pool.available());
            if faults.leftover_chunks == 0 || Instant::now() > until {
                return Some(faults);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl FrameSender for Lent {
    fn wait_for(&mut self, consumers: usize) -> Result<()> {
        let came = self.publisher.wait_for_consumers(consumers, PATIENCE);
        if came { Ok(()) } else { Err(Error::peer("consumer", "it did not come")) }
    }

    fn send(&mut self, frames: &Frames<'_>) -> Result<()> {
        let mut batch = loop {
            if let Some(batch) = self.pool.acquire() {
                break batch;
            }
            // Unreachable: the quotas leave two chunks. Returned ones may not have been collected.
            self.publisher.reap();
        };
        fill(&mut batch, frames);
        self.publisher.send(&batch.freeze(), || false)?;
        self.havoc.iter_mut().for_each(|havoc| havoc.check(&self.publisher));
        Ok(())
    }

    fn end(&mut self, end: &Frames<'_>) -> Result<()> {
        let header = end.iter().next().and_then(|(header, _)| Header::parse(header).ok());
        self.publisher.end(header.as_ref());
        Ok(())
    }
}

/// Stops one process after a quarter of the run, and kills another in the middle.
pub(super) struct Havoc {
    duration: Duration,
    began: Option<Instant>,
    /// The process that is to be stopped.
    running: Option<Peer>,
    stopped: Option<Peer>,
    killed: Peer,
    killed_at: Option<Instant>,
    faults: Faults,
}

impl Havoc {
    pub(super) fn new(duration: Duration, to_stop: Peer, to_kill: Peer) -> Self {
        let faults = Faults::default();
        let (running, killed) = (Some(to_stop), to_kill);
        Self { duration, began: None, running, stopped: None, killed, killed_at: None, faults }
    }

    /// Called by the producer after each batch.
    fn check(&mut self, publisher: &Publisher) {
        let elapsed = self.began.get_or_insert_with(Instant::now).elapsed();
        if elapsed > self.duration / 4
            && let Some(peer) = self.running.take()
        {
            suspend(&peer.child);
            self.stopped = Some(peer);
        }
        if elapsed > self.duration / 2 && self.killed_at.is_none() {
            self.killed_at = Some(Instant::now());
            // If it is already gone, the row does not show a noticed end.
            let _ = self.killed.child.kill();
        }
        if let Some(killed_at) = self.killed_at
            && self.faults.noticed_ms.is_none()
        {
            let totals = publisher.totals();
            self.faults.noticed_ms = (totals.hung_up > 0).then(|| killed_at.elapsed().as_secs_f64() * 1e3);
            self.faults.stopped_dropped = totals.dropped_frames;
        }
    }
}

#[cfg(unix)]
fn suspend(child: &Child) {
    use rustix::process::{Pid, Signal, kill_process};
    let _ = kill_process(Pid::from_child(child), Signal::STOP);
}

/// Never called: where this is compiled, no stream is in shared memory.
#[cfg(not(unix))]
fn suspend(_: &Child) {}

/// A byte stream that frames are written to, several per call.
pub(super) struct Written<W> {
    pub to: W,
    pub chunk: Vec<u8>,
}

impl<W: Write> FrameSender for Written<W> {
    fn send(&mut self, frames: &Frames<'_>) -> Result<()> {
        self.chunk.resize(frames.bytes(), 0);
        frames.write(&mut self.chunk);
        self.to.write_all(&self.chunk).map_err(Error::io("write the stream"))
    }
}
