//! So many samples at a time, whatever blocks they come in.
//!
//! ```text
//!   pieces --gap?--> filler, samples --> an array of channels x n, which is kept where the caller was interrupted
//! ```

use std::str::FromStr;

use grebe_frame::{Component, Header, SampleFormat};
use pyo3::prelude::*;

use crate::array::{Rows, empty};
use crate::block::Block;
use crate::error::{Kind, raise};
use crate::pieces::Piece;
use crate::reader::Reader;

/// Handling of missing samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gaps {
    Raise,
    Nan,
    Zero,
    Skip,
}

/// Result of a step of reading.
pub(crate) enum Step<'py> {
    /// All requested samples.
    Whole(Bound<'py, PyAny>),
    /// The samples before the end of the stream.
    Ended(Bound<'py, PyAny>),
    /// More has to come.
    Wants,
}

/// Samples taken from the reader and not returned yet.
#[derive(Default)]
pub(crate) struct Exact {
    staged: Option<Staged>,
    rest: Option<Rest>,
    /// Header for an array without samples.
    last: Option<Header>,
}

/// An array that is not full yet.
struct Staged {
    array: Py<PyAny>,
    rows: Rows,
    /// Number of samples per channel so far, and at the end.
    filled: usize,
    length: usize,
    /// Of the frame of the first sample, and its index.
    header: Header,
    index: u64,
}

/// A piece of which only a part was read.
struct Rest {
    piece: Piece,
    /// Samples per channel that were read of it.
    skip: usize,
    /// Samples per channel that are missing before it, and are still to be filled in.
    filler: u64,
}

impl Exact {
    /// Takes available samples, up to `length` per channel.
    ///
    /// # Errors
    /// `GapError` under [`Gaps::Raise`], with the samples before the gap. The next step continues after it.
    pub(crate) fn step<'py>(
        &mut self,
        py: Python<'py>,
        reader: &mut Reader,
        length: usize,
        gaps: Gaps,
    ) -> PyResult<Step<'py>> {
        if let Some(staged) = &self.staged
            && staged.length != length
        {
            self.resize(py, length)?;
        }
        loop {
            if let Some(staged) = self.staged.take_if(|staged| staged.filled == length) {
                return Ok(Step::Whole(staged.array.into_bound(py)));
            }
            if self.rest.is_none() {
                let Some(piece) = reader.take()? else {
                    let is_ended = reader.is_ended()?;
                    return if is_ended { self.cut(py).map(Step::Ended) } else { Ok(Step::Wants) };
                };
                let fills = matches!(gaps, Gaps::Nan | Gaps::Zero);
                let missing = piece.missing.samples();
                let filler = if fills { missing } else { 0 };
                let rest = self.rest.insert(Rest { piece, skip: 0, filler });
                if gaps == Gaps::Raise && missing > 0 {
                    let (missing, index) = (rest.piece.missing, rest.piece.header.first_sample_index);
                    let before = self.cut(py)?.unbind();
                    let whose = (missing.source, missing.transit, missing.reader);
                    return Err(raise("_gap_error", (before, index, whose)));
                }
            }
            let Some(rest) = &mut self.rest else { continue };
            let header = rest.piece.header;
            if gaps == Gaps::Nan && rest.filler > 0 && !header.format.is_float() {
                let message = format!(
                    "gaps=\"nan\" needs samples that can be NaN, and these are {}: use \"zero\" or \"skip\"",
                    header.format
                );
                return Err(Kind::Usage.error(message));
            }
            let is_other = |staged: &Staged| {
                let (was, is) = (&staged.header, &header);
                rest.piece.is_restart && rest.skip == 0
                    || (was.format, was.channel_count) != (is.format, is.channel_count)
            };
            if self.staged.as_ref().is_some_and(is_other) {
                return self.cut(py).map(Step::Whole);
            }
            self.last = Some(header);
            let staged = match &mut self.staged {
                Some(staged) => staged,
                none => {
                    let index = header.first_sample_index + rest.skip as u64
                        - rest.filler.min(header.first_sample_index);
                    none.insert(Staged::new(py, header, index, length)?)
                }
            };
            rest.filler -= staged.fill(rest.filler, gaps);
            if rest.filler == 0 {
                rest.skip += py.detach(|| staged.copy(&rest.piece, rest.skip))?;
            }
            if rest.skip == rest.piece.samples {
                self.rest = None;
            }
        }
    }

    /// The samples taken so far, as a block, for callers that continue by block.
    pub(crate) fn take_rest(&mut self, py: Python<'_>) -> PyResult<Option<Block>> {
        if self.staged.is_none() && self.rest.is_none() {
            return Ok(None);
        }
        if let Some(staged) = &self.staged {
            let (header, index) = (staged.header, staged.index);
            let array = self.cut(py)?;
            return Block::of_array(array, header, index).map(Some);
        }
        let Some(rest) = self.rest.take() else { return Ok(None) };
        Block::copied(py, &rest.piece, rest.skip).map(Some)
    }

    /// The samples so far, as an array.
    fn cut<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Some(staged) = self.staged.take() else {
            let (format, channels) =
                self.last.map_or((SampleFormat::I16, 0), |last| (last.format, last.channel_count as usize));
            return empty(py, format, channels, 0);
        };
        staged.part(py)
    }

    fn resize(&mut self, py: Python<'_>, length: usize) -> PyResult<()> {
        let Some(staged) = self.staged.take() else { return Ok(()) };
        if staged.filled > length {
            self.staged = Some(staged);
            let message = "an interrupted read has taken more samples than requested now: read as many as before, or continue with blocks";
            return Err(Kind::Usage.error(message));
        }
        let mut longer = Staged::new(py, staged.header, staged.index, length)?;
        let bytes = staged.filled * staged.header.format.bytes();
        for channel in 0..longer.rows.channels() {
            longer.rows.row_mut(channel)[..bytes].copy_from_slice(&staged.rows.row(channel)[..bytes]);
        }
        longer.filled = staged.filled;
        self.staged = Some(longer);
        Ok(())
    }
}

impl Staged {
    fn new(py: Python<'_>, header: Header, index: u64, length: usize) -> PyResult<Self> {
        let array = empty(py, header.format, header.channel_count as usize, length)?;
        Ok(Self { rows: Rows::of(&array)?, array: array.unbind(), filled: 0, length, header, index })
    }

    /// Fills in what is missing, as far as there is room; how many samples.
    fn fill(&mut self, missing: u64, gaps: Gaps) -> u64 {
        let samples = (self.length - self.filled).min(usize::try_from(missing).unwrap_or(usize::MAX));
        let format = self.header.format;
        let place = self.filled * format.bytes()..(self.filled + samples) * format.bytes();
        for channel in 0..self.rows.channels() {
            let to = &mut self.rows.row_mut(channel)[place.clone()];
            match (gaps, format.component()) {
                (Gaps::Nan, Component::F32) => {
                    to.chunks_exact_mut(4).for_each(|at| at.copy_from_slice(&f32::NAN.to_le_bytes()))
                }
                (Gaps::Nan, Component::F64) => {
                    to.chunks_exact_mut(8).for_each(|at| at.copy_from_slice(&f64::NAN.to_le_bytes()))
                }
                _ => to.fill(0),
            }
        }
        self.filled += samples;
        samples as u64
    }

    /// Copies samples of a piece, as far as there is room; how many.
    fn copy(&mut self, piece: &Piece, skip: usize) -> PyResult<usize> {
        let samples = (self.length - self.filled).min(piece.samples - skip);
        let bytes = self.header.format.bytes();
        let place = self.filled * bytes..(self.filled + samples) * bytes;
        for channel in 0..self.rows.channels() {
            piece.copy_channel(channel, skip, &mut self.rows.row_mut(channel)[place.clone()])?;
        }
        self.filled += samples;
        Ok(samples)
    }

    fn part(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let array = self.array.into_bound(py);
        if self.filled == self.length {
            return Ok(array);
        }
        let all = pyo3::types::PySlice::full(py);
        let part = pyo3::types::PySlice::new(py, 0, self.filled as isize, 1);
        array.get_item((all, part))
    }
}

impl FromStr for Gaps {
    type Err = PyErr;

    fn from_str(name: &str) -> PyResult<Self> {
        match name {
            "raise" => Ok(Gaps::Raise),
            "nan" => Ok(Gaps::Nan),
            "zero" => Ok(Gaps::Zero),
            "skip" => Ok(Gaps::Skip),
            _ => Err(Kind::Usage
                .error(format!("gaps={name:?}: there are \"raise\", \"nan\", \"zero\" and \"skip\""))),
        }
    }
}
