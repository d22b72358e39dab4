//! Formats of samples as NumPy has them.
//!
//! Complex floats are `complex64`. NumPy has no complex integers: a sample of `ci16` is a structure of `re` and `im`, so that an
//! array is channels x samples whatever the format.

use grebe_frame::SampleFormat;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyList;

use crate::error::Kind;

/// The `dtype` of samples of a format: little-endian, as they lie in memory.
pub(crate) fn dtype(py: Python<'_>, format: SampleFormat) -> PyResult<&Bound<'_, PyAny>> {
    static DTYPES: PyOnceLock<Vec<Py<PyAny>>> = PyOnceLock::new();
    let all = DTYPES.get_or_try_init(py, || {
        let dtype = py.import("numpy")?.getattr("dtype")?;
        let make = |format: SampleFormat| -> PyResult<Py<PyAny>> {
            let made = match format {
                SampleFormat::Cf32 => dtype.call1(("<c8",)),
                format if format.is_complex() => {
                    let part = code(format.component().real());
                    dtype.call1((PyList::new(py, [("re", part), ("im", part)])?,))
                }
                format => dtype.call1((code(format),)),
            };
            Ok(made?.unbind())
        };
        SampleFormat::ALL.into_iter().map(make).collect::<PyResult<Vec<_>>>()
    })?;
    Ok(all[format as usize].bind(py))
}

/// The format of a name (`"ci16"`) or of a NumPy `dtype`.
///
/// # Errors
/// `UsageError`: unknown format.
pub(crate) fn of(named: &Bound<'_, PyAny>) -> PyResult<SampleFormat> {
    let py = named.py();
    if let Ok(name) = named.extract::<String>()
        && let Ok(format) = name.parse()
    {
        return Ok(format);
    }
    let unknown = || {
        let known = "i8, u8, i16, i32, f32, f64, ci8, cu8, ci16 and cf32";
        Kind::Usage.error(format!("unknown sample format {named}; supported: {known}"))
    };
    let asked = py.import("numpy")?.getattr("dtype")?.call1((named,)).map_err(|_| unknown())?;
    for format in SampleFormat::ALL {
        if dtype(py, format)?.eq(&asked)? {
            return Ok(format);
        }
    }
    Err(unknown())
}

fn code(format: SampleFormat) -> &'static str {
    match format {
        SampleFormat::I8 => "<i1",
        SampleFormat::U8 => "<u1",
        SampleFormat::I16 => "<i2",
        SampleFormat::I32 => "<i4",
        SampleFormat::F32 => "<f4",
        // No complex format has another part.
        _ => "<f8",
    }
}
