//! Whether a filled block can be sent in place: no other object may be able to write to its memory.
//!
//! ```text
//!   variable of the caller --> array --> hidden array --> Memory
//!             views, exports ----------------^---------------^
//! ```
//!
//! NumPy does not count the users of an array's memory, but each keeps an object alive: a view keeps the hidden array
//! (a base is the innermost array of its type), and a `memoryview` or a tensor keeps its source. So reference counts
//! decide: the array may have the reference of the caller's variable, which becomes read-only with it; the other two
//! may only have each other's.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::memory::Memory;

/// An array handed to Python to be filled.
pub(crate) struct Filled {
    pub(crate) array: Py<PyAny>,
    hidden: Py<PyAny>,
    pub(crate) memory: Py<Memory>,
}

impl Filled {
    /// `hidden`: an array over the memory, of which `array` becomes a view.
    pub(crate) fn new(hidden: Bound<'_, PyAny>, memory: Bound<'_, Memory>) -> PyResult<Self> {
        let array = hidden.call_method0("view")?.unbind();
        Ok(Self { array, hidden: hidden.unbind(), memory: memory.unbind() })
    }

    /// Makes the array read-only, for good.
    pub(crate) fn seal(&self, py: Python<'_>) -> PyResult<()> {
        self.memory.get().seal();
        for array in [&self.hidden, &self.array] {
            array.call_method1(py, "setflags", (false,))?;
        }
        Ok(())
    }

    /// Whether nobody can write to the memory of the sealed array any more. For the one thread that has the
    /// interpreter, until Python runs again.
    pub(crate) fn is_sole(&self, py: Python<'_>) -> PyResult<bool> {
        if !has_gil(py)? || references(&self.memory) > 2 || references(&self.hidden) > 2 {
            return Ok(false);
        }
        Ok(references(&self.array) == 1 || is_only_a_variable(self.array.bind(py))?)
    }
}

/// Whether only one variable of the calling function refers to the object, beside this caller.
fn is_only_a_variable(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    // SAFETY: this thread has the interpreter; both answers are borrowed, or null.
    let (locals, frame) = unsafe {
        let (locals, frame) = (ffi::PyEval_GetLocals(), ffi::PyEval_GetFrame());
        (Bound::from_borrowed_ptr_or_opt(py, locals), Bound::from_borrowed_ptr_or_opt(py, frame.cast()))
    };
    let (Some(locals), Some(frame)) = (locals, frame) else {
        drop(PyErr::take(py));
        return Ok(false);
    };
    let Ok(locals) = locals.cast_into::<PyDict>() else { return Ok(false) };
    let flags: u32 = frame.getattr("f_code")?.getattr("co_flags")?.extract()?;
    // The variables of a function are copied into a dict, which the frame keeps; those of a module are in one.
    let is_copy = flags & CO_OPTIMIZED != 0;
    let variables = locals.iter().filter(|(_, value)| value.is(object)).count();
    let is_only = variables == 1 && references(object.as_unbound()) == 2 + isize::from(is_copy);
    if is_copy && references(locals.as_unbound()) == 2 {
        // Nothing else refers to the dict, and its content would live as long as the frame.
        locals.clear();
    }
    Ok(is_only)
}

fn references<T>(object: &Py<T>) -> isize {
    // SAFETY: an object that is alive.
    unsafe { ffi::Py_REFCNT(object.as_ptr()) }
}

/// Whether this interpreter runs one thread at a time, which alone sees what references there are.
fn has_gil(py: Python<'_>) -> PyResult<bool> {
    static HAS_GIL: PyOnceLock<bool> = PyOnceLock::new();
    let found = HAS_GIL.get_or_try_init(py, || {
        let sys = py.import("sys")?;
        let Some(is_enabled) = sys.getattr_opt("_is_gil_enabled")? else { return Ok(true) };
        is_enabled.call0()?.is_truthy()
    });
    found.copied()
}

/// Of a code object: its variables have fixed places (`inspect.CO_OPTIMIZED`).
const CO_OPTIMIZED: u32 = 1;
