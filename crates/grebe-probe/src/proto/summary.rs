//! What arrived of a train, small enough for one datagram.

use grebe_packet::{Reader, Result, Writer};

/// What arrived of a train, as its receiver's [`Tracker`](crate::proto::tracker::Tracker) saw it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Summary {
    /// Datagrams that arrived, without duplicates.
    pub(crate) received: u32,
    /// Further copies of them.
    pub(crate) duplicates: u32,
    /// Datagrams that arrived behind a later one (RFC 4737).
    pub(crate) reordered: u32,
    /// How many datagrams one of them was behind at most.
    pub(crate) reorder_extent: u32,
    /// Datagrams that did not arrive.
    pub(crate) lost: u32,
    /// Runs of neighbours that did not arrive.
    pub(crate) runs: u32,
    /// The longest run.
    pub(crate) longest_run: u32,
    /// Sum of the squares of the runs' lengths.
    pub(crate) run_squares: u64,
    /// Runs by length: 1, 2, 3-4, 5-8, 9-16, 17-32, 33-64, above.
    pub(crate) run_counts: [u32; RUN_CLASSES],
    /// Datagrams of this train that the receiver's kernel had no room for; `None` where it does not say.
    pub(crate) kernel_drops: Option<u64>,
    /// Mean time between two datagrams as they were stamped by the sender.
    pub(crate) sent_interval_ns: f64,
    /// Datagrams per second that arrived, from the first to the last.
    pub(crate) delivered_pps: f64,
    /// Its uncertainty (95 %).
    pub(crate) delivered_error_pps: f64,
    /// The shortest delay, taken from two clocks: only differences mean something.
    pub(crate) delay_min_ns: i64,
    /// Its median, 95th and 99th percentile above the shortest.
    pub(crate) delay_above_min_ns: [i64; 3],
    /// The 2nd percentile of the second half, above the shortest: above zero where a queue never ran empty.
    pub(crate) late_low_ns: i64,
    /// Median delay of the last quarter of the train less that of the first.
    pub(crate) rise_ns: i64,
    /// Its standard error.
    pub(crate) rise_error_ns: i64,
    /// Mean difference between the delays of neighbours.
    pub(crate) jitter_ns: f64,
    /// Its uncertainty (95 %).
    pub(crate) jitter_error_ns: f64,
}

impl Summary {
    /// Mean length of the run that a lost datagram is in: the design effect of runs on an estimate of loss.
    pub(crate) fn design_effect(&self) -> f64 {
        match self.lost {
            0 => 1.0,
            lost => (self.run_squares as f64 / f64::from(lost)).max(1.0),
        }
    }

    /// Datagrams lost on the way, without those that the receiver's kernel had no room for.
    pub(crate) fn lost_on_the_way(&self) -> u32 {
        self.lost.saturating_sub(u32::try_from(self.kernel_drops.unwrap_or(0)).unwrap_or(u32::MAX))
    }

    pub(crate) fn write<'a, 'b>(&self, writer: &'a mut Writer<'b>) -> &'a mut Writer<'b> {
        writer.u32(self.received).u32(self.duplicates).u32(self.reordered).u32(self.reorder_extent);
        writer.u32(self.lost).u32(self.runs).u32(self.longest_run).u64(self.run_squares);
        for count in self.run_counts {
            writer.u32(count);
        }
        writer.u64(self.kernel_drops.unwrap_or(u64::MAX)).f64(self.sent_interval_ns);
        writer.f64(self.delivered_pps).f64(self.delivered_error_pps).i64(self.delay_min_ns);
        for delay in self.delay_above_min_ns {
            writer.i64(delay);
        }
        writer.i64(self.late_low_ns).i64(self.rise_ns).i64(self.rise_error_ns);
        writer.f64(self.jitter_ns).f64(self.jitter_error_ns)
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let mut summary = Self {
            received: reader.u32()?,
            duplicates: reader.u32()?,
            reordered: reader.u32()?,
            reorder_extent: reader.u32()?,
            lost: reader.u32()?,
            runs: reader.u32()?,
            longest_run: reader.u32()?,
            run_squares: reader.u64()?,
            ..Self::default()
        };
        for count in &mut summary.run_counts {
            *count = reader.u32()?;
        }
        summary.kernel_drops = Some(reader.u64()?).filter(|&drops| drops != u64::MAX);
        summary.sent_interval_ns = reader.f64()?;
        summary.delivered_pps = reader.f64()?;
        summary.delivered_error_pps = reader.f64()?;
        summary.delay_min_ns = reader.i64()?;
        for delay in &mut summary.delay_above_min_ns {
            *delay = reader.i64()?;
        }
        summary.late_low_ns = reader.i64()?;
        summary.rise_ns = reader.i64()?;
        summary.rise_error_ns = reader.i64()?;
        summary.jitter_ns = reader.f64()?;
        summary.jitter_error_ns = reader.f64()?;
        Ok(summary)
    }
}

/// Classes of the lengths of runs.
pub(crate) const RUN_CLASSES: usize = 8;
