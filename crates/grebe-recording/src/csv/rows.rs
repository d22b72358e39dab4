//! Samples that were read and not written yet.

/// The samples of each channel, as a stream has them, and where they come from.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) channels: Vec<Vec<u8>>,
    /// Empty without a time column.
    pub(super) times_s: Vec<f64>,
    pub(super) lines: Vec<u64>,
    /// Rows before which a line was skipped.
    pub(super) left_out: Vec<usize>,
}

impl Rows {
    pub(super) fn new(channels: usize) -> Self {
        Self { channels: vec![Vec::new(); channels], ..Self::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Removes the values of an invalid row.
    pub(super) fn undo(&mut self, sample_bytes: usize) {
        let rows = self.lines.len();
        self.channels.iter_mut().for_each(|channel| channel.truncate(rows * sample_bytes));
        self.times_s.truncate(rows);
    }

    /// Removes the first rows.
    pub(super) fn remove(&mut self, rows: usize, sample_bytes: usize) {
        self.channels.iter_mut().for_each(|channel| drop(channel.drain(..rows * sample_bytes)));
        self.times_s.drain(..rows.min(self.times_s.len()));
        self.lines.drain(..rows);
        self.left_out.retain(|&at| at >= rows);
        self.left_out.iter_mut().for_each(|at| *at -= rows);
    }
}
