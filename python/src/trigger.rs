//! The scope's triggers, over arrays. `grebe._analysis` stands on it.

use grebe_scope::{Condition, Passage, Polarity, Slope, Trigger};
use pyo3::prelude::*;

use crate::array::Rows;
use crate::error::Kind;

/// Where a row of `float32` triggers, in samples with fraction. Times are samples; `low` and `high` are those of runts and windows.
#[pyfunction]
#[pyo3(signature = (row, kind, *, slope, level, low, high, hysteresis, least, most, holdoff))]
#[allow(clippy::too_many_arguments, reason = "keywords of Python")]
pub(crate) fn trigger_row(
    py: Python<'_>,
    row: &Bound<'_, PyAny>,
    kind: &str,
    slope: &str,
    level: f32,
    low: f32,
    high: f32,
    hysteresis: f32,
    least: u64,
    most: u64,
    holdoff: u64,
) -> PyResult<Vec<f64>> {
    let slope = slope_of(slope)?;
    let falls = slope == Slope::Falling;
    let polarity = if falls { Polarity::Negative } else { Polarity::Positive };
    let condition = match kind {
        "edge" => Condition::Edge { slope, level, hysteresis },
        "pulse" => Condition::PulseWidth { polarity, level, hysteresis, samples: least..=most },
        "runt" => Condition::Runt { polarity, low, high },
        "window" => {
            let passage = if falls { Passage::Enters } else { Passage::Leaves };
            Condition::Window { passage, low, high, hysteresis }
        }
        "dropout" => Condition::Dropout { level, hysteresis, samples: least },
        _ => {
            let known = "\"edge\", \"pulse\", \"runt\", \"window\" and \"dropout\"";
            return Err(Kind::Usage.error(format!("kind={kind:?}: there are {known}")));
        }
    };
    let refused = |error: grebe_scope::Error| Kind::Usage.error(error.to_string());
    let mut trigger = Trigger::new(condition, holdoff).map_err(refused)?;
    let rows = Rows::of(row)?;
    let samples = rows.numbers::<f32>(0)?;
    let mut found = Vec::new();
    py.detach(|| trigger.scan(0, samples, |event| found.push(event.position())));
    Ok(found)
}

/// # Errors
/// `UsageError`: unknown slope.
pub(crate) fn slope_of(name: &str) -> PyResult<Slope> {
    match name {
        "rising" => Ok(Slope::Rising),
        "falling" => Ok(Slope::Falling),
        "either" => Ok(Slope::Either),
        _ => {
            Err(Kind::Usage
                .error(format!("slope={name:?}: there are \"rising\", \"falling\" and \"either\"")))
        }
    }
}
