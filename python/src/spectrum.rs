//! Spectra of arrays, by the scope's own arithmetic. `grebe._analysis` stands on it.

use grebe_frame::SampleFormat;
use grebe_scope::{Averaging, Band, Peak, Spectrum, Window};
use pyo3::prelude::*;

use crate::array::{Rows, empty};
use crate::error::Kind;

/// The spectrum of one channel, the mean power of the transforms so far.
#[pyclass(module = "grebe")]
pub(crate) struct ChannelSpectrum(Either);

enum Either {
    Real(Spectrum<f32, 1>),
    Complex(Spectrum<f32, 2>),
}

/// Runs a piece of code for either spectrum.
macro_rules! either {
    ($either:expr, $spectrum:ident => $body:expr) => {
        match $either {
            Either::Real($spectrum) => $body,
            Either::Complex($spectrum) => $body,
        }
    };
}

/// A peak as Python has it: its frequency in cycles per sample, and its level in dBFS.
type PeakAt = (f64, f64);

#[pymethods]
impl ChannelSpectrum {
    #[new]
    fn new(
        size: usize,
        is_complex: bool,
        window: &str,
        hop: usize,
        full_scale: f64,
        averages: bool,
    ) -> PyResult<Self> {
        let window = window_of(window)?;
        let averaging = if averages { Averaging::All } else { Averaging::None };
        let refused = |error: grebe_scope::Error| Kind::Usage.error(error.to_string());
        if !(1..=size).contains(&hop) {
            let message = format!("hop={hop}: transforms of {size} samples follow each other by 1 to {size}");
            return Err(Kind::Usage.error(message));
        }
        let mut either = if is_complex {
            Either::Complex(Spectrum::complex(size, window, averaging).map_err(refused)?)
        } else {
            Either::Real(Spectrum::new(size, window, averaging).map_err(refused)?)
        };
        either!(&mut either, spectrum => {
            spectrum.set_hop(hop);
            spectrum.set_full_scale(full_scale);
        });
        Ok(Self(either))
    }

    /// Takes the next samples: arrays of `float32`, 1 x n, the second one Q of complex samples.
    #[pyo3(signature = (index, i, q=None))]
    fn append(
        &mut self,
        py: Python<'_>,
        index: u64,
        i: &Bound<'_, PyAny>,
        q: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (i, q) = (Rows::of(i)?, q.map(Rows::of).transpose()?);
        let (i, q) = (i.numbers::<f32>(0)?, q.as_ref().map(|q| q.numbers::<f32>(0)).transpose()?);
        py.detach(|| match &mut self.0 {
            Either::Real(spectrum) => spectrum.append(index, i, |_| {}),
            Either::Complex(spectrum) => spectrum.append(index, i, q.unwrap_or_default(), |_| {}),
        });
        Ok(())
    }

    /// The lines of every transform of the samples, transforms x lines. NaN for one with an invalid sample.
    #[pyo3(signature = (i, q=None))]
    fn each<'py>(
        &mut self,
        py: Python<'py>,
        i: &Bound<'py, PyAny>,
        q: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (i, q) = (Rows::of(i)?, q.map(Rows::of).transpose()?);
        let (i, q) = (i.numbers::<f32>(0)?, q.as_ref().map(|q| q.numbers::<f32>(0)).transpose()?);
        let (size, hop, lines) =
            either!(&self.0, spectrum => (spectrum.size(), spectrum.hop(), spectrum.dbfs().len()));
        let count = if i.len() < size { 0 } else { (i.len() - size) / hop + 1 };
        let array = empty(py, SampleFormat::F32, count, lines)?;
        let mut rows = Rows::of(&array)?;
        py.detach(|| {
            for number in 0..count {
                let place = number * hop..number * hop + size;
                // One transform at a time, so that an invalid one still has its row.
                let index = (number * size * 2) as u64;
                let row = rows.row_mut(number);
                put(None, row);
                let keep = |dbfs: &[f32]| put(Some(dbfs), row);
                match (&mut self.0, q) {
                    (Either::Real(spectrum), _) => spectrum.append(index, &i[place], keep),
                    (Either::Complex(spectrum), q) => {
                        spectrum.append(index, &i[place.clone()], &q.unwrap_or_default()[place], keep)
                    }
                }
            }
        });
        Ok(array)
    }

    /// The lines in dBFS, 1 x lines.
    fn dbfs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let dbfs = either!(&self.0, spectrum => spectrum.dbfs());
        let array = empty(py, SampleFormat::F32, 1, dbfs.len())?;
        put(Some(dbfs), Rows::of(&array)?.row_mut(0));
        Ok(array)
    }

    /// Numbers of valid transforms, and of those skipped for an invalid sample.
    fn counts(&self) -> (u64, u64) {
        either!(&self.0, spectrum => (spectrum.count(), spectrum.left_out()))
    }

    fn peaks(&self, count: usize, floor_dbfs: f32) -> Vec<PeakAt> {
        either!(&self.0, spectrum => {
            let peaks = spectrum.peaks(count, floor_dbfs).into_iter();
            peaks.map(|peak| place(peak, |line| spectrum.cycles_per_sample(line))).collect()
        })
    }

    /// Bands are in cycles per sample.
    fn band_power_dbfs(&self, low: f64, high: f64) -> f64 {
        either!(&self.0, spectrum => spectrum.band_power_dbfs(Band { low, high }))
    }

    fn occupied_band(&self, part: f64, low: f64, high: f64) -> Option<(f64, f64)> {
        let found = either!(&self.0, spectrum => spectrum.occupied_band(part, Band { low, high }));
        found.map(|band| (band.low, band.high))
    }

    /// The fundamental; SNR, SINAD and THD in decibels; effective bits.
    fn tone_quality(&self, harmonics: u32) -> Option<(PeakAt, f64, f64, Option<f64>, f64)> {
        either!(&self.0, spectrum => spectrum.tone_quality(harmonics).map(|tone| {
            let fundamental = place(tone.fundamental, |line| spectrum.cycles_per_sample(line));
            (fundamental, tone.snr_db, tone.sinad_db, tone.thd_db, tone.enob)
        }))
    }
}

fn place(peak: Peak, cycles_per_sample: impl Fn(f64) -> f64) -> PeakAt {
    (cycles_per_sample(peak.line), peak.dbfs)
}

/// Writes lines as the bytes of an array's row; NaN without lines.
fn put(dbfs: Option<&[f32]>, row: &mut [u8]) {
    for (number, bytes) in row.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        *bytes = dbfs.map_or(f32::NAN, |dbfs| dbfs[number]).to_ne_bytes();
    }
}

fn window_of(name: &str) -> PyResult<Window> {
    let key = |name: &str| name.to_lowercase().replace([' ', '-', '_'], "");
    let asked = key(name);
    Window::ALL.into_iter().find(|window| key(window.name()) == asked).ok_or_else(|| {
        let known: Vec<_> =
            Window::ALL.iter().map(|window| window.name().to_lowercase().replace([' ', '-'], "_")).collect();
        Kind::Usage.error(format!("window={name:?}: there are {}", known.join(", ")))
    })
}
