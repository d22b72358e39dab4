//! Rows as frames, and gaps between them.

use std::io::Read;

use grebe_flow::{Context, Outcome, Outputs, StageResult};
use grebe_frame::{BatchPool, Header};
use grebe_process::stream::CHUNK_BYTES;
use grebe_recording::table::Step;

use super::TextSource;

impl<R: Read + Send + 'static> TextSource<R> {
    /// Hands on the pending rows, up to a chunk.
    pub(super) fn hand_on(&mut self, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        if let Some(clock) = self.clock.renewed(self.read_ns) {
            self.describe(|description| description.clock = Some(clock));
        }
        let pool = self.pool.get_or_insert_with(|| {
            let mut pool = BatchPool::new(ctx.batches_in_flight(), CHUNK_BYTES);
            pool.wake_on_return(ctx.signal().clone());
            pool
        });
        let Some(mut batch) = ctx.acquire(pool) else { return Ok(Outcome::Produced) };
        batch.describe(self.description.as_ref());
        if let Some(steps) = &mut self.steps {
            self.rows.judge(steps);
        }
        while !self.rows.rest().is_empty() {
            if !self.leave_out_before_next() {
                continue;
            }
            let length = self.run_length();
            let rest = self.rows.rest();
            let header = Header {
                block_length_samples: length as u32,
                producer_ts_ns: self.stamp_of(rest.len()),
                ..self.next
            };
            let rows = rest.start..rest.start + length;
            let put = |channel, out: &mut [u8]| self.rows.put(rows.clone(), channel, header.format, out);
            if batch.push_bytes(&header, put).is_err() {
                // The chunk is full: the rest goes into the next one.
                break;
            }
            self.stamp_ns = header.producer_ts_ns;
            self.rows.went(length);
            self.next.sequence += 1;
            self.next.first_sample_index += length as u64;
        }
        if !batch.is_empty() {
            self.limit.send(batch.freeze(), output, ctx);
        }
        Ok(if self.limit.is_reached() { Outcome::End } else { Outcome::Produced })
    }

    /// Time of the first of the last `rows` rows, by the rate: the last one came with the newest read.
    fn stamp_of(&self, rows: usize) -> u64 {
        let rate_hz = self.next.sample_rate_hz;
        let age_ns = if rate_hz > 0.0 { (rows - 1) as f64 / rate_hz * 1e9 } else { 0.0 };
        self.read_ns.saturating_sub(age_ns as u64).max(self.stamp_ns)
    }

    /// Marks the rows missing before the next one by its time. Returns `false` for a row to skip, because its
    /// time repeats.
    fn leave_out_before_next(&mut self) -> bool {
        let next = self.rows.rest().start;
        match self.rows.step(next) {
            Step::Next => return true,
            Step::Gap(samples) => self.leave_out(samples),
            Step::Back => {
                self.counters.time_resets.add(1);
                self.leave_out(1);
            }
            Step::Doubled => {
                self.counters.doubled_lines.add(1);
                self.rows.went(1);
                return false;
            }
        }
        // Marks it even if the row does not fit now.
        self.rows.mark(next);
        true
    }

    /// Rows of the next frame: without a gap between them.
    fn run_length(&self) -> usize {
        let rest = self.rows.rest();
        let length = rest.len().min(self.block_samples);
        let next = rest.start + 1..rest.start + length;
        next.clone().position(|at| self.rows.step(at) != Step::Next).map_or(length, |at| at + 1)
    }

    /// Marks a gap.
    pub(super) fn leave_out(&mut self, gap_samples: u64) {
        if self.next.channel_count == 0 {
            return;
        }
        self.next.sequence += 1;
        self.next.first_sample_index = self.next.first_sample_index.wrapping_add(gap_samples);
        self.counters.lost_frames.add(1);
        self.counters.lost_samples.add(gap_samples);
    }
}
