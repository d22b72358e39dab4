//! The scope's triggers and its search of bursts, over arrays. `grebe._analysis` stands on it.

use std::ops::Range;

use grebe_scope::{Burst, BurstDetector, BurstSettings, Condition, Passage, Polarity, Slope, Trigger};
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

/// Start, length, centre and bandwidth in cycles per sample, power in dBFS, SNR in dB, whether it is cut.
type BurstAt = (u64, u64, f64, f64, f64, f64, bool);

/// The bursts of a row of `float32`; `q` of complex samples. They come in the order of their ends.
#[pyfunction]
#[pyo3(signature = (i, q, *, size, false_alarms, full_scale, longest))]
pub(crate) fn burst_row(
    py: Python<'_>,
    i: &Bound<'_, PyAny>,
    q: Option<&Bound<'_, PyAny>>,
    size: usize,
    false_alarms: f64,
    full_scale: f64,
    longest: u64,
) -> PyResult<Vec<BurstAt>> {
    let settings = BurstSettings { size, false_alarms, longest_samples: longest, ..BurstSettings::default() };
    let make = if q.is_some() { BurstDetector::complex } else { BurstDetector::real };
    let refused = |error: grebe_scope::Error| Kind::Usage.error(error.to_string());
    let mut detector = make(settings, full_scale).map_err(refused)?;
    let (i, q) = (Rows::of(i)?, q.map(Rows::of).transpose()?);
    let i = i.numbers::<f32>(0)?;
    let q = q.as_ref().map(|q| q.numbers::<f32>(0)).transpose()?.unwrap_or_default();
    let mut found = Vec::new();
    let mut take = |it: Burst| {
        let place = (it.first_sample_index, it.length_samples);
        found.push((place.0, place.1, it.centre, it.bandwidth, it.power_dbfs, it.snr_db, it.is_cut));
    };
    py.detach(|| {
        for Range { start, end } in detector.pieces(i.len() as u64) {
            let own = start as usize..end as usize;
            detector.learn(&i[own.clone()], q.get(own).unwrap_or_default());
        }
        let mut q = q.chunks(AT_ONCE);
        for (number, i) in i.chunks(AT_ONCE).enumerate() {
            detector.append((number * AT_ONCE) as u64, i, q.next().unwrap_or_default(), &mut take);
        }
        detector.end(&mut take);
    });
    Ok(found)
}

/// Samples that a search of bursts takes at once.
const AT_ONCE: usize = 1 << 18;

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
