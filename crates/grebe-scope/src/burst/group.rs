//! Cells that touch: open bursts.

use std::ops::Range;

/// A burst that has not ended.
#[derive(Debug)]
pub(super) struct Open {
    id: u64,
    pub(super) first_row: u64,
    /// The last row with one of its cells, and with its power.
    pub(super) last_cell: u64,
    pub(super) last_row: u64,
    pub(super) lines: Range<usize>,
    /// Whether it has several frequencies in turn, so that all cells between them are its own.
    is_keyed: bool,
    /// Its begin, in rows, once it is too old for its first rows to be held.
    pub(super) begin: Option<(f64, bool)>,
    /// Sums of the lines of the rows that lie `BEFORE_ROWS` before it.
    pub(super) sums_before: Vec<f64>,
}

impl Open {
    /// Its lines, with those that its flanks reach into.
    pub(super) fn band(&self, lines: usize) -> Range<usize> {
        self.lines.start.saturating_sub(FLANK_LINES)..(self.lines.end + FLANK_LINES).min(lines)
    }
}

/// All open bursts.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) open: Vec<Open>,
    /// By line: the burst whose cell was there last, and its row.
    last: Vec<Option<(u64, u64)>>,
    next_id: u64,
    touched: Vec<u64>,
}

impl Group {
    pub(super) fn new(lines: usize) -> Self {
        Self { open: Vec::new(), last: vec![None; lines], next_id: 0, touched: Vec::new() }
    }

    /// Forgets all bursts.
    pub(super) fn clear(&mut self) {
        self.open.clear();
        self.last.fill(None);
    }

    /// Adds the cells of a row to the bursts that they touch, or begins others.
    pub(super) fn join(&mut self, cells: &[bool], row: u64, sums_before: &[f64]) {
        let mut line = 0;
        while let Some(begin) = cells[line..].iter().position(|&is_cell| is_cell).map(|at| line + at) {
            let mut end = begin + 1;
            while let Some(more) =
                cells[end..(end + JOIN_LINES).min(cells.len())].iter().position(|&is_cell| is_cell)
            {
                end += more + 1;
            }
            line = end;
            self.add(begin..end, row, sums_before);
        }
    }

    fn add(&mut self, run: Range<usize>, row: u64, sums_before: &[f64]) {
        let near = run.start.saturating_sub(JOIN_LINES)..(run.end + JOIN_LINES).min(self.last.len());
        self.touched.clear();
        for &(id, last) in self.last[near].iter().flatten() {
            let is_open = || self.open.iter().any(|open| open.id == id);
            if row - last <= JOIN_ROWS && !self.touched.contains(&id) && is_open() {
                self.touched.push(id);
            }
        }
        // One that goes on by its power alone, or at another frequency.
        let goes_on = |open: &&Open| {
            (open.last_row > open.last_cell || open.is_keyed)
                && open.lines.start < run.end
                && run.start < open.lines.end
        };
        let going_on = self.open.iter().filter(goes_on).map(|open| open.id);
        self.touched.extend(going_on);
        self.touched.sort_unstable();
        self.touched.dedup();
        let id = match self.touched.first() {
            Some(&oldest) => oldest,
            None => self.begin(run.clone(), row, sums_before),
        };
        while self.touched.len() > 1
            && let Some(younger) = self.touched.pop()
        {
            self.merge(id, younger);
        }
        self.last[run.clone()].fill(Some((id, row)));
        if let Some(open) = self.open.iter_mut().find(|open| open.id == id) {
            open.lines = open.lines.start.min(run.start)..open.lines.end.max(run.end);
            (open.last_cell, open.last_row) = (row, row);
        }
    }

    fn begin(&mut self, lines: Range<usize>, row: u64, sums_before: &[f64]) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.open.push(Open {
            id,
            first_row: row,
            last_cell: row,
            last_row: row,
            lines,
            is_keyed: false,
            begin: None,
            sums_before: sums_before.to_vec(),
        });
        id
    }

    /// Gives the lines of a burst that has ended to an open one, of the same shift keying; whether there is such a one.
    pub(super) fn join_keyed(&mut self, ended: &Open, is_of: impl Fn(&Open, &Open) -> bool) -> bool {
        let Some(at) = self.open.iter().position(|open| is_of(ended, open)) else { return false };
        let own = &self.open[at];
        let lines = own.lines.start.min(ended.lines.start)..own.lines.end.max(ended.lines.end);
        let is_between = |(other, open): (usize, &Open)| {
            other != at && open.lines.start < lines.end && lines.start < open.lines.end
        };
        if self.open.iter().enumerate().any(is_between) {
            return false;
        }
        let own = &mut self.open[at];
        if ended.first_row < own.first_row {
            own.first_row = ended.first_row;
            own.begin = ended.begin;
            own.sums_before.clone_from(&ended.sums_before);
        }
        own.lines = lines;
        own.is_keyed = true;
        own.last_cell = own.last_cell.max(ended.last_cell);
        own.last_row = own.last_row.max(ended.last_row);
        true
    }

    /// The older of two bursts takes the other.
    fn merge(&mut self, id: u64, younger: u64) {
        let Some(younger) = self.open.iter().position(|open| open.id == younger) else { return };
        let younger = self.open.swap_remove(younger);
        let Some(own) = self.open.iter_mut().find(|open| open.id == id) else { return };
        own.lines = own.lines.start.min(younger.lines.start)..own.lines.end.max(younger.lines.end);
        own.is_keyed |= younger.is_keyed;
        own.last_cell = own.last_cell.max(younger.last_cell);
        own.last_row = own.last_row.max(younger.last_row);
        self.last.iter_mut().flatten().filter(|(id, _)| *id == younger.id).for_each(|(id, _)| *id = own.id);
    }
}

/// Maximum distance of neighbouring cells of one burst.
pub(super) const JOIN_ROWS: u64 = 6;
pub(super) const JOIN_LINES: usize = 4;
/// Lines beside a tone's own that its window spreads it to.
const FLANK_LINES: usize = 2;
