//! Samples in place, as memory that NumPy reads or Python fills.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use grebe_frame::{Batch, BatchMut, HEADER_BYTES};
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::fork::Own;
use crate::turns::locked;

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

/// The memory of an array, which is the array's ``base``.
#[pyclass(frozen, module = "grebe")]
pub(crate) struct Memory {
    kind: Lies,
}

enum Lies {
    /// The payload of a frame: where it begins in the chunk, and its bytes.
    Lent(Arc<Held>, usize, usize),
    /// The payload of a frame that is yet to be made.
    Filled { batch: Own<Mutex<Fill>>, place: Place, is_sealed: AtomicBool, _count: Count },
}

/// Where Python writes.
#[derive(Clone, Copy)]
struct Place {
    first: *mut u8,
    bytes: usize,
}

// SAFETY: an address. Only NumPy reads or writes there, under its own rules. The owner of the memory is beside it.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

/// Owner of the memory that Python fills, while an array of it exists.
enum Fill {
    Building(BatchMut),
    Frozen(#[expect(dead_code, reason = "it keeps the memory")] Batch),
    /// For a moment, under the lock.
    Taken,
}

/// Counts one while it exists.
struct Count(Arc<AtomicUsize>);

impl Drop for Count {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Memory {
    /// The payload of a frame, which begins at this offset of the batch's chunk.
    pub(crate) fn lent(held: Arc<Held>, offset: usize, bytes: usize) -> Self {
        Self { kind: Lies::Lent(held, offset, bytes) }
    }

    /// The place of the first frame's payload in an empty batch, counted in `filled` until it is dropped; `None` if
    /// it is too small.
    pub(crate) fn to_fill(mut batch: BatchMut, bytes: usize, filled: &Arc<AtomicUsize>) -> Option<Self> {
        let first = batch.chunk().get_mut(HEADER_BYTES..HEADER_BYTES + bytes)?.as_mut_ptr();
        filled.fetch_add(1, Ordering::Relaxed);
        let batch = Own::new(Mutex::new(Fill::Building(batch)));
        let (is_sealed, _count) = (AtomicBool::new(false), Count(filled.clone()));
        Some(Self { kind: Lies::Filled { batch, place: Place { first, bytes }, is_sealed, _count } })
    }

    /// Makes it read-only for who asks from now on.
    pub(crate) fn seal(&self) {
        if let Lies::Filled { is_sealed, .. } = &self.kind {
            is_sealed.store(true, Ordering::Relaxed);
        }
    }

    /// The filled batch, to be sent after `push` adds its frame. No writable array may be left. The memory stays here,
    /// too.
    ///
    /// # Errors
    /// The error of `push`. `None`: it was sent before, or this process is a fork.
    pub(crate) fn freeze<E>(
        &self,
        push: impl FnOnce(&mut BatchMut) -> Result<(), E>,
    ) -> Result<Option<Batch>, E> {
        let Lies::Filled { batch, .. } = &self.kind else { return Ok(None) };
        let Ok(fill) = batch.get() else { return Ok(None) };
        let mut fill = locked(fill);
        match std::mem::replace(&mut *fill, Fill::Taken) {
            Fill::Building(mut batch) => match push(&mut batch) {
                Ok(()) => {
                    let batch = batch.freeze();
                    *fill = Fill::Frozen(batch.clone());
                    Ok(Some(batch))
                }
                Err(error) => {
                    *fill = Fill::Building(batch);
                    Err(error)
                }
            },
            other => {
                *fill = other;
                Ok(None)
            }
        }
    }
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
            Lies::Filled { batch, place, is_sealed, .. } => {
                batch.get()?;
                (place.first, place.bytes, c_int::from(is_sealed.load(Ordering::Relaxed)))
            }
        };
        // SAFETY: the interpreter passes a view to fill in. The memory lives as long as `slf`, which the view keeps
        // alive: a lease refers to memory of a pool, which lives as long as its leases. Lent samples are read-only
        // for the view. Memory to fill belongs to this object until `freeze`, whose caller ensures that no view can
        // be written.
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
