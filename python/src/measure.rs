//! The quantities of the scope's table, over arrays. `grebe._analysis` stands on it.

use grebe_scope::{Measurer, Quantity, Scale};
use pyo3::prelude::*;

use crate::array::Rows;
use crate::error::Kind;

/// The quantities of each row of an array of `int16` or `float32`, in the order of [`Quantity::ALL`] without those that
/// compare channels; not-a-number where the signal does not have one.
#[pyfunction]
pub(crate) fn measure_rows(py: Python<'_>, rows: &Bound<'_, PyAny>, rate: f64) -> PyResult<Vec<Vec<f64>>> {
    let rows = Rows::of(rows)?;
    if rate.is_nan() || rate < 0.0 {
        return Err(
            Kind::Usage.error(format!("rate={rate}: give samples per second, or 0 where there is none"))
        );
    }
    py.detach(|| {
        let channels = 0..rows.channels();
        match rows.item_bytes() {
            2 => {
                let mut measurer = Measurer::new();
                channels.map(|row| Ok(listed(&mut measurer, rows.numbers::<i16>(row)?, rate))).collect()
            }
            _ => {
                let mut measurer = Measurer::new();
                channels.map(|row| Ok(listed(&mut measurer, rows.numbers::<f32>(row)?, rate))).collect()
            }
        }
    })
}

fn listed<V: grebe_scope::Value>(measurer: &mut Measurer<V>, samples: &[V], rate_hz: f64) -> Vec<f64> {
    let found = measurer.measure(&[samples], rate_hz, Scale::COUNTS);
    let of_one_channel = Quantity::ALL.into_iter().filter(|quantity| !quantity.needs_reference());
    of_one_channel.map(|quantity| found.get(quantity).unwrap_or(f64::NAN)).collect()
}
