//! Spectra one below the other: the newest at the top.

use crate::ScopeError;

/// Rows of levels, each the highest of its lines.
#[derive(Debug)]
pub struct Waterfall {
    width: usize,
    rows: usize,
    cells: Vec<f32>,
    newest: usize,
    count: u64,
}

impl Waterfall {
    /// `rows` rows of `width` cells, each 1 to 8192.
    ///
    /// # Errors
    /// [`ScopeError::Setting`] for other sizes.
    pub fn new(width: usize, rows: usize) -> Result<Waterfall, ScopeError> {
        if !(1..=8192).contains(&width) || !(1..=8192).contains(&rows) {
            let got = format!("{width} x {rows}");
            return Err(ScopeError::Setting {
                what: "size of the waterfall",
                got,
                must: "1 x 1 to 8192 x 8192 cells",
            });
        }
        Ok(Waterfall { width, rows, cells: vec![f32::NEG_INFINITY; width * rows], newest: 0, count: 0 })
    }

    /// Adds a row of `lines`, in dBFS, spread or gathered over the width. A cell of several lines shows the
    /// highest: a narrow tone does not vanish between pixels.
    pub fn push(&mut self, lines: &[f32]) {
        if lines.is_empty() {
            return;
        }
        self.newest = (self.newest + self.rows - 1) % self.rows;
        self.count += 1;
        let row = &mut self.cells[self.newest * self.width..(self.newest + 1) * self.width];
        for (x, cell) in row.iter_mut().enumerate() {
            let from = (x * lines.len() / self.width).min(lines.len() - 1);
            let to = ((x + 1) * lines.len() / self.width).max(from + 1);
            *cell = lines[from..to].iter().copied().fold(f32::NEG_INFINITY, f32::max);
        }
    }

    /// The rows, the newest first, in dBFS; those not yet filled hold negative infinity.
    pub fn rows(&self) -> impl Iterator<Item = &[f32]> {
        let (after, before) = self.cells.split_at(self.newest * self.width);
        before.chunks_exact(self.width).chain(after.chunks_exact(self.width))
    }

    /// Writes brightness 0.0 to 1.0, the newest row first, black at `floor_dbfs` and full at `top_dbfs`: what
    /// [`Trace::Intensity`](crate::raster::Trace::Intensity) draws.
    pub fn brightness(&self, floor_dbfs: f32, top_dbfs: f32, out: &mut [f32]) {
        let scale = 1.0 / (top_dbfs - floor_dbfs).max(f32::MIN_POSITIVE);
        for (out, level) in out.iter_mut().zip(self.rows().flatten()) {
            *out = ((level - floor_dbfs) * scale).clamp(0.0, 1.0);
        }
    }

    /// Cells a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows added so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Bytes reserved.
    pub fn memory_bytes(&self) -> usize {
        self.cells.len() * size_of::<f32>()
    }
}
