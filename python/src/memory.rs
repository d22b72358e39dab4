//! Samples where they lie, as memory that NumPy reads, and that Python fills.

use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grebe_frame::{Batch, BatchMut, HEADER_BYTES};
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::error::Kind;
use crate::fork::Own;

/// A batch that Python may keep. It goes back to who made it when the last block and the last array of it are gone.
#[derive(Debug)]
pub(crate) struct Held {
    batch: Own<Batch>,
    leases: Arc<AtomicUsize>,
}

impl Held {
    /// Counted in `leases` until it is dropped.
    pub(crate) fn new(batch: Batch, leases: &Arc<AtomicUsize>) -> Arc<Self> {
        leases.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self { batch: Own::new(batch), leases: leases.clone() })
    }

    /// # Errors
    /// This process is a fork of the one that read it.
    pub(crate) fn batch(&self) -> PyResult<&Batch> {
        self.batch.get()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.leases.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The memory that an array lies in; what an array's ``base`` is.
#[pyclass(frozen, module = "grebe")]
pub(crate) struct Memory {
    kind: Lies,
}

enum Lies {
    /// The payload of a frame: where it begins in the chunk, and its bytes.
    Lent(Arc<Held>, usize, usize),
    /// The payload of a frame that is yet to be made.
    Filled(Own<Mutex<Fill>>, Place),
}

/// Where Python writes.
#[derive(Clone, Copy)]
struct Place {
    first: *mut u8,
    bytes: usize,
}

// SAFETY: an address; who reads or writes there is NumPy, under its own rules. What keeps the memory is beside it.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

/// What keeps the memory that Python fills.
enum Fill {
    Building(BatchMut),
    /// It was sent; an array of it may still be there.
    Sent(#[expect(dead_code, reason = "it keeps the memory")] Batch),
    Taken,
}

impl Memory {
    /// The payload of a frame, which begins at this offset of the batch's chunk.
    pub(crate) fn lent(held: Arc<Held>, offset: usize, bytes: usize) -> Self {
        Self { kind: Lies::Lent(held, offset, bytes) }
    }

    /// The place of the payload of the first frame in an empty batch; `None` where it is too small.
    pub(crate) fn to_fill(mut batch: BatchMut, bytes: usize) -> Option<Self> {
        let first = batch.chunk().get_mut(HEADER_BYTES..HEADER_BYTES + bytes)?.as_mut_ptr();
        let place = Place { first, bytes };
        Some(Self { kind: Lies::Filled(Own::new(Mutex::new(Fill::Building(batch))), place) })
    }

    /// The batch that was filled: what `send` makes of it is kept as long as there is an array.
    ///
    /// # Errors
    /// It was sent before, or this process is a fork.
    pub(crate) fn finish(&self, send: impl FnOnce(BatchMut) -> PyResult<Batch>) -> PyResult<()> {
        let taken = match &self.kind {
            Lies::Lent(..) => Fill::Taken,
            Lies::Filled(fill, _) => std::mem::replace(&mut *lock(fill.get()?), Fill::Taken),
        };
        let Fill::Building(batch) = taken else {
            return Err(Kind::General.error("the block was sent already"));
        };
        let sent = send(batch)?;
        if let Lies::Filled(fill, _) = &self.kind {
            *lock(fill.get()?) = Fill::Sent(sent);
        }
        Ok(())
    }
}

fn lock(fill: &Mutex<Fill>) -> MutexGuard<'_, Fill> {
    // Each change is one assignment.
    fill.lock().unwrap_or_else(PoisonError::into_inner)
}

#[pymethods]
impl Memory {
    /// # Safety
    /// Called by the interpreter, with a view to be filled in.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let (first, bytes, is_read_only) = match &slf.get().kind {
            Lies::Lent(held, offset, bytes) => {
                let payload = held.batch()?.chunk().get(*offset..*offset + *bytes);
                let payload = payload.ok_or_else(|| PyBufferError::new_err("behind the chunk"))?;
                (payload.as_ptr().cast_mut(), *bytes, 1)
            }
            Lies::Filled(fill, place) => {
                fill.get()?;
                (place.first, place.bytes, 0)
            }
        };
        // SAFETY: the interpreter hands over a view to fill in. The memory stays as long as `slf` does, which the view keeps: a
        // lease lies in memory of a pool, which lives as long as a lease of it. Samples that are lent are read-only for the view;
        // where they are filled, the batch is this object's own, and no reference to its bytes is made while it can be written.
        let failed = unsafe {
            ffi::PyBuffer_FillInfo(
                view,
                slf.as_ptr(),
                first.cast(),
                bytes as ffi::Py_ssize_t,
                is_read_only,
                flags,
            )
        };
        if failed < 0 { Err(PyErr::fetch(slf.py())) } else { Ok(()) }
    }
}
