//! Blocks of a stream.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use grebe_frame::{Description, Header};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};

use crate::array::{Rows, empty, over};
use crate::format::dtype;
use crate::memory::{Held, Memory};
use crate::pieces::{Missing, Piece};

/// Consecutive samples of all channels of a stream, unchanged.
///
/// ``samples`` is an array of channels x samples. In a *lent* block it is read-only memory that the kernel or the
/// producer wrote. That memory returns when the block and its arrays are gone.
#[pyclass(frozen, module = "grebe")]
pub(crate) struct Block {
    /// Of the first frame.
    header: Header,
    /// Of the first sample.
    index: u64,
    samples: usize,
    missing: Missing,
    is_restart: bool,
    described: Option<Arc<Description>>,
    body: Body,
    array: PyOnceLock<Py<PyAny>>,
}

enum Body {
    Lent(Arc<Held>, usize, usize),
    /// `array` has it.
    Own,
}

/// How many samples per channel are missing before a block, and where they were lost. True where any is.
#[pyclass(frozen, eq, module = "grebe")]
#[derive(PartialEq, Eq)]
pub(crate) struct Gap(Missing);

impl Block {
    /// A block over the memory of its lease.
    pub(crate) fn of_lease(piece: Piece, at: usize, bytes: usize) -> Self {
        let Piece { held, header, samples, missing, is_restart, described, .. } = piece;
        let (index, body) = (header.first_sample_index, Body::Lent(held, at, bytes));
        Self { header, index, samples, missing, is_restart, described, body, array: PyOnceLock::new() }
    }

    /// A block with memory of its own, without the first `skip` samples of the piece.
    pub(crate) fn copied(py: Python<'_>, piece: &Piece, skip: usize) -> PyResult<Self> {
        let (header, samples) = (piece.header, piece.samples - skip);
        let array = empty(py, header.format, header.channel_count as usize, samples)?;
        let mut rows = Rows::of(&array)?;
        let mut copy = || {
            (0..rows.channels())
                .try_for_each(|channel| piece.copy_channel(channel, skip, rows.row_mut(channel)))
        };
        if samples * header.format.bytes() < DETACHED_BYTES_MIN { copy() } else { py.detach(copy) }?;
        drop(rows);
        let is_first = skip == 0;
        Ok(Self {
            header,
            index: header.first_sample_index + skip as u64,
            samples,
            missing: if is_first { piece.missing } else { Missing::default() },
            is_restart: is_first && piece.is_restart,
            described: piece.described.clone(),
            body: Body::Own,
            array: set(py, array),
        })
    }

    /// A block of samples that were read and not handed out.
    pub(crate) fn of_array(array: Bound<'_, PyAny>, header: Header, index: u64) -> PyResult<Self> {
        let (_, samples): (usize, usize) = array.getattr("shape")?.extract()?;
        let array = set(array.py(), array);
        let (missing, is_restart, described, body) = (Missing::default(), false, None, Body::Own);
        Ok(Self { header, index, samples, missing, is_restart, described, body, array })
    }

    fn array<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        let made = self.array.get_or_try_init(py, || {
            let Body::Lent(held, at, bytes) = &self.body else {
                unreachable!("an own array is there from the start")
            };
            let memory = Bound::new(py, Memory::lent(held.clone(), *at, *bytes))?;
            let array =
                over(py, &memory, self.header.format, self.header.channel_count as usize, self.samples)?;
            Ok::<_, PyErr>(array.unbind())
        })?;
        Ok(made.bind(py))
    }
}

#[pymethods]
impl Block {
    /// The samples, channels x samples, in the stream's own format.
    #[getter]
    fn samples<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.array(py).cloned()
    }

    /// Index of the first sample, counted per channel since the stream began, lost ones included.
    #[getter]
    pub(crate) fn index(&self) -> u64 {
        self.index
    }

    /// Gap before the block.
    #[getter]
    fn gap(&self) -> Gap {
        Gap(self.missing)
    }

    /// Whether another stream begins here: the producer began again, or changed its channels or its format.
    #[getter]
    fn restarted(&self) -> bool {
        self.is_restart
    }

    /// UTC time of the first sample, as ``numpy.datetime64`` in nanoseconds; ``None`` if the stream does not state it.
    #[getter]
    fn time<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(unix_ns) = self.unix_time_ns() else { return Ok(None) };
        py.import("numpy")?.getattr("datetime64")?.call1((unix_ns, "ns")).map(Some)
    }

    /// The same in nanoseconds since 1970.
    #[getter]
    fn time_ns(&self) -> Option<i64> {
        self.unix_time_ns()
    }

    /// Samples per second and channel; 0 where the stream does not say.
    #[getter]
    fn rate(&self) -> f64 {
        self.header.sample_rate_hz
    }

    /// Channels.
    #[getter]
    fn channels(&self) -> u32 {
        self.header.channel_count
    }

    /// The name of the format: ``"i16"``, ``"cf32"``, ...
    #[getter]
    fn format(&self) -> &'static str {
        self.header.format.name()
    }

    /// The format as a ``numpy.dtype``.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dtype(py, self.header.format).cloned()
    }

    /// The producer's description, with SigMF's keys; possibly empty.
    #[getter]
    fn description<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        as_dict(py, self.described.as_deref())
    }

    /// Whether both blocks have the same description, without comparing it.
    fn _is_described_as(&self, other: &Self) -> bool {
        match (&self.described, &other.described) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        }
    }

    /// Whether the samples lie in the memory of the kernel or the producer, which they keep from being used again.
    #[getter]
    fn lent(&self) -> bool {
        matches!(self.body, Body::Lent(..))
    }

    /// The samples as an array of its own, which may be changed and kept.
    fn copy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.array(py)?.call_method1("copy", ("C",))
    }

    fn __len__(&self) -> usize {
        self.samples
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = self.array(py)?;
        match (dtype, copy) {
            (None, Some(true)) => array.call_method0("copy"),
            (None, _) => Ok(array.clone()),
            (Some(dtype), copy) => {
                let arguments = PyDict::new(py);
                arguments.set_item("copy", copy.unwrap_or(false))?;
                array.call_method("astype", (dtype,), Some(&arguments))
            }
        }
    }

    #[pyo3(signature = (**arguments))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        arguments: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.array(py)?.call_method("__dlpack__", (), arguments)
    }

    fn __dlpack_device__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.array(py)?.call_method0("__dlpack_device__")
    }

    fn _repr_png_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let header = slf.get().__repr__();
        let header = header.trim_matches(['<', '>']);
        slf.py().import("grebe._picture")?.call_method1("blocks_png", ([slf], header))
    }

    fn __repr__(&self) -> String {
        let (Header { channel_count, format, sample_rate_hz, .. }, index) = (self.header, self.index);
        let mut text = format!("<Block {channel_count} x {} {format} at {index}", self.samples);
        if sample_rate_hz > 0.0 {
            text += &format!(", {sample_rate_hz} Hz");
        }
        if self.missing.samples() > 0 {
            text += &format!(", {} missing before it", self.missing.samples());
        }
        text + ">"
    }
}

impl Block {
    fn unix_time_ns(&self) -> Option<i64> {
        let described = self.described.as_ref()?;
        let time = described.time_of(&self.header, self.index)?;
        match time.duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_nanos()).ok(),
            Err(before) => i64::try_from(before.duration().as_nanos()).ok().map(|ns| -ns),
        }
    }
}

#[pymethods]
impl Gap {
    /// Samples per channel, in all.
    #[getter]
    fn samples(&self) -> u64 {
        self.0.samples()
    }

    /// Samples that the producer never made because it was too slow, according to its frames.
    #[getter]
    fn source(&self) -> u64 {
        self.0.source
    }

    /// Samples lost in transit: in a network, in a kernel, or dropped by the producer for this reader.
    #[getter]
    fn transit(&self) -> u64 {
        self.0.transit
    }

    /// Those that were dropped here, because this reader was too slow.
    #[getter]
    fn reader(&self) -> u64 {
        self.0.reader
    }

    fn __bool__(&self) -> bool {
        self.0.samples() > 0
    }

    fn __int__(&self) -> u64 {
        self.0.samples()
    }

    fn __repr__(&self) -> String {
        let Missing { source, transit, reader } = self.0;
        format!(
            "<Gap of {} samples: {source} at the source, {transit} in transit, {reader} at this reader>",
            self.0.samples()
        )
    }
}

fn set(py: Python<'_>, array: Bound<'_, PyAny>) -> PyOnceLock<Py<PyAny>> {
    let lock = PyOnceLock::new();
    // It is new.
    let _ = lock.set(py, array.unbind());
    lock
}

/// A description as a dict; a fresh one for who changes it.
pub(crate) fn as_dict<'py>(
    py: Python<'py>,
    description: Option<&Description>,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(description) = description else { return Ok(PyDict::new(py).into_any()) };
    let text = serde_json::to_string(description).unwrap_or_default();
    py.import("json")?.call_method1("loads", PyTuple::new(py, [text])?)
}

/// Copying less than this takes less time than others might wait for the interpreter.
const DETACHED_BYTES_MIN: usize = 64 << 10;
