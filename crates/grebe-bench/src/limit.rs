//! The limit of the machine for a stream: the simplest transfer of frames from one core to another.
//!
//! Two threads, each on its core, share a ring of chunks with two indices. One writes the frames of a run, the other
//! does the consumers' work. Nothing sleeps, counts or calls the system. For techniques that go through the kernel, the
//! consumer first copies each chunk, as the kernel must. The distance of a technique from this limit is its own cost;
//! other differences are the machine's.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::stream::{
    Checker, FrameSender, Frames, Made, Maker, Plan, RunOf, Seen, Stream, StreamRun, Work, measured,
};
use crate::system;

/// The name of the limit among the techniques of a run.
pub(crate) const TECHNIQUE: &str = "limit";

/// How frames get from one core to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handling {
    /// They are read where they were written.
    HandOff,
    /// They are copied out before they are read.
    Copy,
}

/// The fastest of the [`RINGS`]; each runs the stream without its rate for `duration`, or [`RUN_MAX`] where that is
/// shorter.
pub(crate) fn run(
    stream: Stream,
    block: u32,
    duration: Duration,
    works: &[Work],
    handling: Handling,
) -> Result<StreamRun> {
    let mut plan = Plan {
        format: stream.format,
        channels: stream.channels,
        block,
        target_msps: None,
        duration: duration.min(RUN_MAX),
        tick: Duration::ZERO,
        late_max: Duration::ZERO,
        burst_max: None,
        frames_max: 1,
    };
    plan.frames_max = (CHUNK_BYTES / plan.frame_bytes()).max(1);
    let of = RunOf { label: stream.label, technique: TECHNIQUE, plan: &plan, works };
    let runs = RINGS.map(|chunks| measured(of, || handed(&plan, works, handling, chunks)));
    let runs = runs.into_iter().collect::<Result<Vec<_>>>()?;
    let fastest = runs.into_iter().max_by(|a, b| a.throughput_msps.total_cmp(&b.throughput_msps));
    fastest.ok_or_else(|| Error::peer("limit", "it was not run"))
}

fn handed(plan: &Plan, works: &[Work], handling: Handling, chunks: usize) -> Result<(Made, Vec<Seen>)> {
    let cores = system::two_cores();
    let checker = |&work: &Work| Checker::new(plan.format, plan.channels, plan.block, work);
    let checkers: Vec<Checker> = works.iter().map(checker).collect::<Result<_>>()?;
    let ring = Ring::new(plan.frames_max * plan.frame_bytes(), chunks);
    thread::scope(|scope| {
        let consumer = scope.spawn(|| {
            system::stay_on(cores.map(|(_, last)| last));
            consume(&ring, checkers, handling)
        });
        let before = system::stay_on(cores.map(|(first, _)| first));
        let mut maker = Maker::new(plan);
        let mut sender = Handing { ring: &ring, tail: 0 };
        let made = maker.run(&mut sender);
        let ended = sender.end(&maker.end());
        system::go_back(before);
        let seen = consumer.join().map_err(|_| Error::peer("limit", "its consumer panicked"))?;
        ended?;
        Ok((made?, seen))
    })
}

/// Chunks in a ring. Their locks are never contended, because the indices assign each to one side.
struct Ring {
    chunks: Vec<Mutex<Chunk>>,
    chunk_bytes: usize,
    /// Number of chunks written, and read, on separate cache lines.
    tail: Line,
    head: Line,
}

#[repr(align(128))]
struct Line(AtomicU64);

struct Chunk {
    memory: Vec<u8>,
    /// Bytes before the first aligned one.
    skip: usize,
    /// Bytes of frames.
    filled: usize,
}

impl Chunk {
    fn new(bytes: usize) -> Self {
        let memory = vec![0; bytes + 64];
        let skip = memory.as_ptr().align_offset(64).min(64);
        Self { memory, skip, filled: 0 }
    }
}

impl Ring {
    fn new(chunk_bytes: usize, chunks: usize) -> Self {
        let chunks = (0..chunks).map(|_| Mutex::new(Chunk::new(chunk_bytes))).collect();
        Self { chunks, chunk_bytes, tail: Line(AtomicU64::new(0)), head: Line(AtomicU64::new(0)) }
    }

    fn with<T>(&self, position: u64, act: impl FnOnce(&mut Chunk) -> T) -> T {
        let chunk = &self.chunks[position as usize % self.chunks.len()];
        // A poisoned chunk is of a run that has failed already.
        act(&mut chunk.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }
}

/// Waits for another thread, on this core only if it is the only one.
fn until(is_so: impl Fn() -> bool) {
    let mut spins = 0_u32;
    while !is_so() {
        std::hint::spin_loop();
        spins += 1;
        if spins.is_multiple_of(1 << 12) {
            thread::yield_now();
        }
    }
}

struct Handing<'a> {
    ring: &'a Ring,
    tail: u64,
}

impl FrameSender for Handing<'_> {
    fn send(&mut self, frames: &Frames<'_>) -> Result<()> {
        until(|| self.tail - self.ring.head.0.load(Ordering::Acquire) < self.ring.chunks.len() as u64);
        self.ring.with(self.tail, |chunk| {
            chunk.filled = frames.bytes();
            frames.write(&mut chunk.memory[chunk.skip..]);
        });
        self.tail += 1;
        self.ring.tail.0.store(self.tail, Ordering::Release);
        Ok(())
    }
}

fn consume(ring: &Ring, mut checkers: Vec<Checker>, handling: Handling) -> Vec<Seen> {
    let mut copy = Chunk::new(ring.chunk_bytes);
    let mut head = 0;
    while checkers.iter().any(|checker| !checker.is_ended()) {
        until(|| ring.tail.0.load(Ordering::Acquire) > head);
        ring.with(head, |chunk| {
            let mut bytes = &chunk.memory[chunk.skip..][..chunk.filled];
            if handling == Handling::Copy {
                let to = &mut copy.memory[copy.skip..][..chunk.filled];
                to.copy_from_slice(bytes);
                bytes = to;
            }
            let now_ns = Checker::now_ns();
            for checker in &mut checkers {
                checker.frames(bytes, now_ns);
            }
        });
        head += 1;
        ring.head.0.store(head, Ordering::Release);
    }
    checkers.into_iter().map(Checker::finish).collect()
}

/// A limit is a speed: it needs no long run.
const RUN_MAX: Duration = Duration::from_millis(100);
/// Bytes of frames that are handed over at a time.
const CHUNK_BYTES: usize = 64 << 10;
/// Chunks in the ring, 1 to 16 MiB in total. The best number depends on the machine: memory that the other core has
/// read is fast to write only once it has left that core's own cache, and slow again once it has left the shared one.
const RINGS: [usize; 4] = [16, 48, 96, 256];

#[cfg(test)]
mod tests {
    use grebe_frame::SampleFormat;

    use super::*;

    #[test]
    fn every_frame_is_seen_by_every_work_either_way() {
        for (handling, bytes) in [(Handling::HandOff, 64_960), (Handling::Copy, 1_400)] {
            let stream = Stream {
                label: "test",
                format: SampleFormat::I16,
                channels: 2,
                block: None,
                target_msps: Some(1.0),
            };
            let block = stream.block_for(bytes, 32).unwrap();
            let works = [Work::MinMax, Work::CopyOut];
            let run = run(stream, block, Duration::from_millis(2), &works, handling).unwrap();
            assert_eq!((run.corrupt, run.lost(), run.consumers.len()), (0, 0, 2), "{handling:?}");
            assert!(run.frames_sent > 0 && run.throughput_mbps > 0.0, "{handling:?}");
        }
    }
}
