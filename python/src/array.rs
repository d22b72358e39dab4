//! NumPy arrays: over lent memory, over their own, and those of a caller.

use grebe_frame::SampleFormat;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::error::Kind;
use crate::format::{dtype, of};
use crate::memory::Memory;

/// An array of channels x samples over memory, without a copy.
pub(crate) fn over<'py>(
    py: Python<'py>,
    memory: &Bound<'py, Memory>,
    format: SampleFormat,
    channels: usize,
    samples: usize,
) -> PyResult<Bound<'py, PyAny>> {
    static NDARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let ndarray = NDARRAY.import(py, "numpy", "ndarray")?;
    ndarray.call1(((channels, samples), dtype(py, format)?, memory))
}

/// An array of channels x samples with its own, uninitialized memory.
pub(crate) fn empty(
    py: Python<'_>,
    format: SampleFormat,
    channels: usize,
    samples: usize,
) -> PyResult<Bound<'_, PyAny>> {
    static EMPTY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    EMPTY.import(py, "numpy", "empty")?.call1(((channels, samples), dtype(py, format)?))
}

/// The bytes of an array, one row per channel, while nothing else changes it: Rust fills it before Python sees it, or
/// reads an array of a caller.
pub(crate) struct Rows {
    view: PyUntypedBuffer,
    channels: usize,
    row_bytes: usize,
}

impl Rows {
    /// The rows of an array of channels x samples, whose samples of one channel follow one another.
    pub(crate) fn of(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        let view = PyUntypedBuffer::get(array)?;
        let shape = view.shape();
        let (channels, samples) = match shape {
            [channels, samples] => (*channels, *samples),
            _ => return Err(Kind::Usage.error("an array of channels x samples is needed")),
        };
        // A row of another layout would read foreign memory.
        if samples > 1 && view.strides()[1] != view.item_size() as isize {
            return Err(Kind::Usage
                .error("the samples of a channel do not follow one another: np.ascontiguousarray helps"));
        }
        Ok(Self { row_bytes: samples * view.item_size(), channels, view })
    }

    /// Bytes of one sample.
    pub(crate) fn item_bytes(&self) -> usize {
        self.view.item_size()
    }

    /// The samples of one channel as numbers of this type.
    ///
    /// # Errors
    /// `UsageError`: the length or the layout does not fit this type.
    pub(crate) fn numbers<N: bytemuck::AnyBitPattern>(&self, channel: usize) -> PyResult<&[N]> {
        let numbers = bytemuck::try_cast_slice(self.row(channel));
        match numbers {
            Ok(numbers) if self.item_bytes() == size_of::<N>() => Ok(numbers),
            _ => Err(Kind::Usage
                .error("the samples do not lie as numbers of their type: np.ascontiguousarray helps")),
        }
    }

    pub(crate) fn channels(&self) -> usize {
        self.channels
    }

    /// Bytes of one channel.
    pub(crate) fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    /// The bytes of one channel.
    pub(crate) fn row(&self, channel: usize) -> &[u8] {
        assert!(channel < self.channels, "a channel of the array");
        // SAFETY: the view keeps the array and its memory alive and in place. The array was checked to be channels x
        // samples, with the samples of a row contiguous. If a caller writes to the array in another thread meanwhile,
        // this reads (or sends) a part of that, as with any library that takes memory of NumPy.
        unsafe { std::slice::from_raw_parts(self.first(channel), self.row_bytes) }
    }

    /// The bytes of one channel, of an array that was made by [`empty`] and that nobody else has.
    pub(crate) fn row_mut(&mut self, channel: usize) -> &mut [u8] {
        assert!(channel < self.channels && !self.view.readonly(), "a channel of an own array");
        // SAFETY: as in `row`, and this is the only one that knows of the array.
        unsafe { std::slice::from_raw_parts_mut(self.first(channel), self.row_bytes) }
    }

    fn first(&self, channel: usize) -> *mut u8 {
        let stride = self.view.strides()[0];
        // SAFETY: within the array: its strides are those of its rows.
        unsafe { self.view.buf_ptr().cast::<u8>().offset(stride * channel as isize) }
    }
}

/// An array of a caller, as channels x samples of this format with contiguous rows. A single channel may lack its
/// axis; complex integers may have an axis of two at the end.
///
/// # Errors
/// `UsageError`: it has another format, or other channels.
pub(crate) fn from_caller<'py>(
    given: &Bound<'py, PyAny>,
    format: SampleFormat,
    channels: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let py = given.py();
    let numpy = py.import("numpy")?;
    let mut array = numpy.call_method1("asarray", (given,))?;
    let (wanted, mut kind) = (dtype(py, format)?, array.getattr("dtype")?);
    if format.is_complex() && !kind.eq(wanted)? && kind.eq(dtype(py, format.component().real())?)? {
        let shape: Vec<usize> = array.getattr("shape")?.extract()?;
        if let [rest @ .., 2] = &*shape {
            let whole = numpy.call_method1("ascontiguousarray", (&array,))?;
            let rest: Vec<usize> = rest.to_vec();
            array = whole
                .call_method1("view", (wanted,))?
                .call_method1("reshape", (pyo3::types::PyTuple::new(py, rest)?,))?;
            kind = array.getattr("dtype")?;
        }
    }
    if !kind.eq(wanted)? {
        let is = of(&kind).map_or_else(|_| kind.to_string(), |format| format.to_string());
        let advice = if format.is_complex() && format != SampleFormat::Cf32 {
            format!(
                "give {wanted}, or {} with an axis of two (I, Q) at the end",
                dtype(py, format.component().real())?
            )
        } else {
            format!("array.astype(\"{wanted}\") converts")
        };
        return Err(Kind::Usage.error(format!("the samples are {is}, and the stream is {format}: {advice}")));
    }
    let shape: Vec<usize> = array.getattr("shape")?.extract()?;
    if let ([samples], 1) = (&*shape, channels) {
        array = array.call_method1("reshape", ((1, *samples),))?;
    } else if shape.len() != 2 || shape[0] != channels {
        let message = format!("the array is {shape:?}, and {channels} channels x samples are needed");
        return Err(Kind::Usage.error(message));
    }
    let strides: Vec<isize> = array.getattr("strides")?.extract()?;
    let is_whole =
        shape.last() == Some(&0) || shape.last() == Some(&1) || strides[1] == format.bytes() as isize;
    if is_whole { Ok(array) } else { numpy.call_method1("ascontiguousarray", (array,)) }
}
