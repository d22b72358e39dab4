//! The producing side of a run.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use grebe_frame::{BatchPool, HEADER_BYTES};
use grebe_shm::{Publisher, PublisherOptions};

use super::make::{Made, Maker};
use super::plan::{Job, Plan};
use super::run::STREAM;
use crate::{Error, Result};

/// A stream that is there, and waits for its consumers.
pub(super) struct Lending {
    publisher: Publisher,
    pool: BatchPool,
    consumers: usize,
}

impl Lending {
    /// For as many consumers; `plan.rest_chunks` and two more are not shared out among them.
    pub(super) fn open(plan: &Plan, consumers: usize, directory: &Path) -> Result<Self> {
        let options = PublisherOptions {
            chunk_bytes: plan.chunk_bytes,
            chunks: plan.chunks,
            // One in hand, and one to spare.
            reserve_chunks: 2 + plan.rest_chunks,
            rest_chunks: plan.rest_chunks,
            consumers_max: consumers,
            directory: Some(directory.to_owned()),
            ..PublisherOptions::default()
        };
        let (publisher, pool) = Publisher::create(STREAM, options)?;
        Ok(Self { publisher, pool, consumers })
    }

    pub(super) fn footprint_bytes(&self) -> usize {
        self.publisher.footprint().total_bytes()
    }

    /// Chunks that are not home, of those that should be once everybody is gone.
    pub(super) fn leftover_chunks(&mut self, plan: &Plan) -> usize {
        let until = Instant::now() + Duration::from_secs(1);
        loop {
            self.publisher.reap();
            let left = (plan.chunks - plan.rest_chunks).saturating_sub(self.pool.available());
            if left == 0 || Instant::now() > until {
                return left;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Makes the frames of the job where the consumers read them; `look` is called at each look at the clock.
    pub(super) fn produce(&mut self, job: &Job, mut look: impl FnMut(&Publisher)) -> Result<Made> {
        if !self.publisher.wait_for_consumers(self.consumers, Duration::from_secs(10)) {
            return Err(Error::Peer { side: "consumer", reason: "it did not come".to_owned() });
        }
        let (frame_bytes, chunk_bytes) = (job.frame_bytes(), self.pool.chunk_bytes());
        let mut maker = Maker::new(job);
        while let Some(due) = maker.due() {
            look(&self.publisher);
            let mut left = due;
            while left > 0 {
                let Some(mut batch) = self.pool.acquire() else {
                    // Cannot be: the quotas leave two chunks. What was returned may not have been looked at.
                    self.publisher.reap();
                    continue;
                };
                let frames = ((chunk_bytes / frame_bytes) as u64).min(left) as usize;
                for at in (0..frames).map(|frame| frame * frame_bytes) {
                    let header = maker.write(&mut batch.chunk()[at..at + frame_bytes]);
                    // Fits: a chunk's table has room for a row every 64 bytes.
                    let _ = batch.adopt(at, &header);
                }
                self.publisher.send(&batch.freeze(), || false)?;
                if due == u64::MAX {
                    break;
                }
                left -= frames as u64;
            }
        }
        let made = maker.finish();
        self.publisher.end(Some(&maker.end()));
        Ok(made)
    }
}

/// Makes the frames of the job, and writes them to a byte stream, as many a call as a chunk holds.
pub(super) fn write_all(job: &Job, chunk_bytes: usize, mut to: impl Write) -> Result<Made> {
    let frame_bytes = job.frame_bytes();
    let mut chunk = vec![0; (chunk_bytes / frame_bytes).max(1) * frame_bytes];
    let mut maker = Maker::new(job);
    while let Some(due) = maker.due() {
        let mut left = due;
        while left > 0 {
            let frames = ((chunk.len() / frame_bytes) as u64).min(left) as usize;
            for place in chunk.chunks_exact_mut(frame_bytes).take(frames) {
                maker.write(place);
            }
            to.write_all(&chunk[..frames * frame_bytes]).map_err(Error::io("write the stream"))?;
            if due == u64::MAX {
                break;
            }
            left -= frames as u64;
        }
    }
    let made = maker.finish();
    let mut end = [0; HEADER_BYTES];
    maker.end().write(&mut end);
    to.write_all(&end).map_err(Error::io("write the end of the stream"))?;
    Ok(made)
}
