//! A block that Python fills.

use std::sync::{Arc, Mutex};

use pyo3::prelude::*;

use crate::array::{empty, over};
use crate::error::Kind;
use crate::memory::Memory;
use crate::sending::Sending;
use crate::sole::Filled;
use crate::turns::locked;

/// A block to be filled: ``with out.block(n) as a: a[:] = ...`` sends it at the end; with an exception nothing is sent.
#[pyclass(frozen, module = "grebe")]
pub(crate) struct Filling {
    sending: Arc<Sending>,
    samples: usize,
    is_in_place: bool,
    /// While it is being filled.
    place: Mutex<Option<Place>>,
}

/// Where it is filled.
enum Place {
    /// Where it will be read.
    Batch(Filled),
    Copied(Py<PyAny>),
}

impl Filling {
    pub(crate) fn new(sending: Arc<Sending>, samples: usize) -> Self {
        let is_in_place = sending.fills_in_place(samples);
        Self { sending, samples, is_in_place, place: Mutex::new(None) }
    }

    fn place(&self, py: Python<'_>) -> PyResult<Place> {
        let sending = &*self.sending;
        let (format, channels) = (sending.format, sending.channels);
        let may_lie = self.is_in_place && sending.spares_a_batch();
        if !may_lie {
            return Ok(Place::Copied(empty(py, format, channels, self.samples)?.unbind()));
        }
        let batch = sending.acquire(py)?;
        let memory = Memory::to_fill(batch, channels * self.samples * format.bytes(), &sending.filled);
        let memory = memory.ok_or_else(|| Kind::General.error("the block is larger than a chunk"))?;
        let memory = Bound::new(py, memory)?;
        let hidden = over(py, &memory, format, channels, self.samples)?;
        Filled::new(hidden, memory).map(Place::Batch)
    }
}

#[pymethods]
impl Filling {
    fn __enter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let made = self.place(py)?;
        let array = match &made {
            Place::Batch(filled) => filled.array.bind(py).clone(),
            Place::Copied(array) => array.bind(py).clone(),
        };
        let refused = {
            let mut place = locked(&self.place);
            if place.is_none() { place.replace(made) } else { Some(made) }
        };
        match refused {
            None => Ok(array),
            Some(_) => Err(Kind::General.error("the block is being filled already")),
        }
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let taken = locked(&self.place).take();
        let Some(place) = taken else { return Ok(()) };
        if !kind.is_none() {
            return Ok(());
        }
        let sending = &*self.sending;
        let array = match &place {
            Place::Copied(array) => {
                array.call_method1(py, "setflags", (false,))?;
                array
            }
            Place::Batch(filled) => {
                filled.seal(py)?;
                if sending.send_filled(py, filled, self.samples)? {
                    return Ok(());
                }
                &filled.array
            }
        };
        if self.is_in_place {
            sending.count_copied();
        }
        sending.write(py, array.bind(py))
    }
}
