//! A block that Python fills.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::sync::MutexExt as _;

use crate::array::{empty, over};
use crate::error::Kind;
use crate::memory::Memory;
use crate::publisher::Publisher;

/// A block to be filled: ``with out.block(n) as a: a[:] = ...`` sends it at the end; with an exception nothing is sent.
#[pyclass(frozen, module = "grebe")]
pub(crate) struct Filling {
    publisher: Py<Publisher>,
    samples: usize,
    is_in_place: bool,
    /// While it is being filled: the array.
    array: Mutex<Option<Py<PyAny>>>,
}

impl Filling {
    pub(crate) fn new(publisher: Py<Publisher>, samples: usize, is_in_place: bool) -> Self {
        Self { publisher, samples, is_in_place, array: Mutex::new(None) }
    }

    fn place<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let publisher = self.publisher.get();
        let (format, channels) = (publisher.format, publisher.channels);
        if !self.is_in_place {
            return empty(py, format, channels, self.samples);
        }
        let batch = publisher.acquire(py)?;
        let memory = Memory::to_fill(batch, channels * self.samples * format.bytes());
        let memory = memory.ok_or_else(|| Kind::General.error("the block is larger than a chunk"))?;
        over(py, memory, format, channels, self.samples)
    }
}

#[pymethods]
impl Filling {
    fn __enter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let array = self.place(py)?;
        let mut slot = self.array.lock_py_attached(py).unwrap_or_else(|poisoned| poisoned.into_inner());
        if slot.is_some() {
            return Err(Kind::General.error("the block is being filled already"));
        }
        *slot = Some(array.clone().unbind());
        Ok(array)
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let taken = self.array.lock_py_attached(py).unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        let Some(array) = taken else { return Ok(()) };
        let array = array.into_bound(py);
        if !kind.is_none() {
            return Ok(());
        }
        let publisher = self.publisher.get();
        if !self.is_in_place {
            return self.publisher.bind(py).call_method1("write", (array,)).map(drop);
        }
        // What was sent is read by others: who keeps the array may look at it.
        array.call_method1("setflags", (false,))?;
        let base = array.getattr("base")?;
        let memory = base.cast::<Memory>().map_err(|_| Kind::General.error("the block's memory is gone"))?;
        memory.get().finish(|batch| publisher.send_filled(py, batch, self.samples))
    }
}
