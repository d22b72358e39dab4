//! Columns of one zoom, straight from the blocks: for roll mode, and to reduce a stream at its source.

use crate::block;
use crate::{Column, ColumnGrid, Coverage, ScopeError, min_max};

/// The newest columns of one grid, without keeping samples.
///
/// Yields what a [`Pyramid`](crate::Pyramid) would for the same grid, in a few bytes a column.
///
/// ```
/// use grebe_scope::{Column, ColumnGrid, Envelope};
/// let mut envelope = Envelope::new(1, ColumnGrid::new(4.0), 100)?;
/// envelope.append(0, &[&[3, 1, 4, 1, 5, 9]])?;
/// let mut columns = [Column::OUTSIDE; 2];
/// envelope.columns(0, 0, &mut columns);
/// assert_eq!((columns[0].min, columns[0].max), (1, 4));
/// assert!(columns[0].is_complete() && !columns[1].is_complete());
/// # Ok::<(), grebe_scope::ScopeError>(())
/// ```
#[derive(Debug)]
pub struct Envelope {
    grid: ColumnGrid,
    /// One ring of columns a channel, side by side; coverage says `Gap` or `Complete` while it is filled.
    rings: Vec<Column>,
    capacity: usize,
    channels: usize,
    begin: Option<u64>,
    next: u64,
    /// First column of the stream, and the newest one that holds anything.
    first_column: u64,
    tip: u64,
}

impl Envelope {
    /// Keeps the newest `capacity` columns (1 to 2^24) of `channels` channels (1 to 64) on `grid`.
    ///
    /// # Errors
    /// [`ScopeError::Setting`] for numbers out of range, and for a grid of less than one sample a column.
    pub fn new(channels: usize, grid: ColumnGrid, capacity: usize) -> Result<Envelope, ScopeError> {
        let refuse = |what, got: String, must| Err(ScopeError::Setting { what, got, must });
        if !(1..=64).contains(&channels) {
            return refuse("channels", channels.to_string(), "between 1 and 64");
        }
        if !(1..=1 << 24).contains(&capacity) {
            return refuse("columns kept", capacity.to_string(), "between 1 and 2^24");
        }
        if grid.samples_per_column() < 1.0 {
            return refuse("samples a column", grid.samples_per_column().to_string(), "at least 1");
        }
        Ok(Envelope {
            grid,
            rings: vec![Column::OUTSIDE; capacity * channels],
            capacity,
            channels,
            begin: None,
            next: 0,
            first_column: 0,
            tip: 0,
        })
    }

    /// Takes the next block, as [`Pyramid::append`](crate::Pyramid::append) does.
    ///
    /// # Errors
    /// Another number of channels, channels of different lengths, an index that moves back, or one beyond 2^62.
    pub fn append(&mut self, first_sample_index: u64, block: &[&[i16]]) -> Result<(), ScopeError> {
        let len = block::check(block, self.channels, first_sample_index, self.begin.map(|_| self.next))?;
        if self.begin.is_none() {
            self.begin = Some(first_sample_index);
            self.next = first_sample_index;
            self.first_column = self.grid.column_at(first_sample_index);
            self.tip = self.first_column;
            self.open(self.tip, FRESH);
        } else if first_sample_index > self.next {
            self.skip_to(first_sample_index);
        }
        let (start, end, tip) = (self.next, self.next + len as u64, self.tip);
        // One channel after the other: memory is read in one stream.
        for (samples, ring) in block.iter().zip(self.rings.chunks_exact_mut(self.capacity)) {
            let (mut at, mut number) = (start, tip);
            while at < end {
                let mut span = self.grid.span(number);
                if at >= span.end {
                    number += 1;
                    span = self.grid.span(number);
                    ring[(number % self.capacity as u64) as usize] = FRESH;
                }
                let to = span.end.min(end);
                let (min, max) = min_max(&samples[(at - start) as usize..(to - start) as usize]);
                let column = &mut ring[(number % self.capacity as u64) as usize];
                column.min = column.min.min(min);
                column.max = column.max.max(max);
                at = to;
            }
            self.tip = number;
        }
        self.next = end;
        Ok(())
    }

    /// Fills `out` with the columns `first_column..`; those not kept are [`Column::OUTSIDE`].
    pub fn columns(&self, channel: usize, first_column: u64, out: &mut [Column]) {
        for (column, number) in out.iter_mut().zip(first_column..) {
            *column = self.column(channel, number);
        }
    }

    /// The grid the columns lie on.
    pub fn grid(&self) -> ColumnGrid {
        self.grid
    }

    /// Index that would follow without a gap; 0 before the first block.
    pub fn next_index(&self) -> u64 {
        self.next
    }

    /// Number of the newest column that holds anything, still being filled; `None` before the first block.
    pub fn newest_column(&self) -> Option<u64> {
        self.begin.map(|_| self.tip)
    }

    /// Forgets everything; the memory stays reserved.
    pub fn clear(&mut self) {
        self.begin = None;
        self.next = 0;
    }

    /// Bytes reserved.
    pub fn memory_bytes(&self) -> usize {
        self.rings.len() * size_of::<Column>()
    }

    fn column(&self, channel: usize, number: u64) -> Column {
        let Some(begin) = self.begin else { return Column::OUTSIDE };
        let oldest = self.first_column.max((self.tip + 1).saturating_sub(self.capacity as u64));
        if channel >= self.channels || !(oldest..=self.tip).contains(&number) {
            return Column::OUTSIDE;
        }
        let kept = self.rings[channel * self.capacity + (number % self.capacity as u64) as usize];
        let span = self.grid.span(number);
        if kept.coverage == Coverage::Gap {
            kept
        } else if kept.is_empty() {
            Column::OUTSIDE
        } else if span.start < begin || span.end > self.next {
            Column { coverage: Coverage::Partial, ..kept }
        } else {
            kept
        }
    }

    /// Marks all columns up to `index` as lost, the one that holds `index` only if some of it was.
    fn skip_to(&mut self, index: u64) {
        let last = self.grid.column_at(index - 1);
        let skipped = (last - self.tip).saturating_sub(self.capacity as u64);
        if skipped > 0 {
            self.tip += skipped;
        }
        let mut at = self.next.max(self.grid.span(self.tip).start);
        while at < index {
            let span_end = self.advance(at);
            let slot = (self.tip % self.capacity as u64) as usize;
            for channel in 0..self.channels {
                self.rings[channel * self.capacity + slot].coverage = Coverage::Gap;
            }
            at = span_end;
        }
        self.next = index;
    }

    /// Moves to the lost column that holds `at`, if that is a new one, and returns the end of its span.
    fn advance(&mut self, at: u64) -> u64 {
        let span = self.grid.span(self.tip);
        if at < span.end {
            return span.end;
        }
        self.tip += 1;
        self.open(self.tip, LOST);
        self.grid.span(self.tip).end
    }

    fn open(&mut self, number: u64, fresh: Column) {
        let slot = (number % self.capacity as u64) as usize;
        for channel in 0..self.channels {
            self.rings[channel * self.capacity + slot] = fresh;
        }
    }
}

/// Columns `first_column..` of `grid` over one piece of samples that begins at `first_sample_index`.
pub fn columns_of(
    samples: &[i16],
    first_sample_index: u64,
    grid: ColumnGrid,
    first_column: u64,
    out: &mut [Column],
) {
    let end = first_sample_index + samples.len() as u64;
    for (column, number) in out.iter_mut().zip(first_column..) {
        let span = grid.span(number);
        let (from, to) = (span.start.max(first_sample_index), span.end.min(end));
        *column = if from >= to {
            Column::OUTSIDE
        } else {
            let piece = &samples[(from - first_sample_index) as usize..(to - first_sample_index) as usize];
            let (min, max) = min_max(piece);
            let whole = (from..to) == span;
            Column { min, max, coverage: if whole { Coverage::Complete } else { Coverage::Partial } }
        };
    }
}

const FRESH: Column = Column { coverage: Coverage::Complete, ..Column::OUTSIDE };
const LOST: Column = Column { coverage: Coverage::Gap, ..Column::OUTSIDE };
