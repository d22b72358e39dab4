//! Spectra of real and of complex samples as one, and the samples of a transform.

use grebe_frame::SampleFormat;
use grebe_scope::{Averaging, Peak, Pyramid, Spectrum};

use crate::data::lane::{LaneId, Part};
use crate::data::samples::{self, Kind};
use crate::data::tracks::{Runs, Tracks};
use crate::data::viewport::SpectrumSettings;

/// The samples of one transform: of a real channel, or I and Q.
#[derive(Debug, Default)]
pub(super) struct Samples<K> {
    pub(super) first: Runs<K>,
    q: Runs<K>,
}

/// A spectrum of real or of complex samples.
#[derive(Debug)]
pub(crate) enum Transform<K: Kind> {
    Real(Spectrum<K, 1>),
    Complex(Spectrum<K, 2>),
}

impl<K: Kind> Samples<K> {
    /// Copies the `size` samples of a channel before `end`; returns whether none is missing.
    pub(super) fn copy(&mut self, tracks: &Tracks<K>, channel: usize, end: u64, size: usize) -> bool {
        let Some(start) = end.checked_sub(size as u64) else { return false };
        let is_complex = tracks.format().is_complex();
        let Some(track) = tracks.track(LaneId::first_of(channel, is_complex)) else { return false };
        self.first.copy(track, start..end);
        if let Some(track) = tracks.track(LaneId { channel, part: Part::Q }) {
            self.q.copy(track, start..end);
        }
        self.first.samples.len() == size
    }
}

impl<K: Kind> Transform<K> {
    pub(crate) fn new(
        format: SampleFormat,
        full_scale: f64,
        settings: SpectrumSettings,
        size: usize,
        averaging: Averaging,
    ) -> Option<Transform<K>> {
        if format.is_complex() {
            let mut spectrum = Spectrum::complex(size, settings.window, averaging).ok()?;
            spectrum.set_hop(size);
            spectrum.set_full_scale(full_scale);
            return Some(Transform::Complex(spectrum));
        }
        let mut spectrum = Spectrum::new(size, settings.window, averaging).ok()?;
        spectrum.set_hop(size);
        spectrum.set_full_scale(full_scale);
        spectrum.set_zero(samples::silence(format));
        Some(Transform::Real(spectrum))
    }

    pub(super) fn append(&mut self, first: u64, samples: &Samples<K>, each: impl FnMut(&[f32])) {
        self.append_samples(first, &samples.first.samples, &samples.q.samples, each);
    }

    /// Takes samples; real ones have an empty second component.
    pub(crate) fn append_samples(&mut self, first: u64, samples: &[K], q: &[K], each: impl FnMut(&[f32])) {
        match self {
            Transform::Real(spectrum) => spectrum.append(first, samples, each),
            Transform::Complex(spectrum) => spectrum.append(first, samples, q, each),
        }
    }

    pub(super) fn set_peak_hold(&mut self, on: bool) {
        match self {
            Transform::Real(spectrum) => spectrum.set_peak_hold(on),
            Transform::Complex(spectrum) => spectrum.set_peak_hold(on),
        }
    }

    pub(super) fn size(&self) -> usize {
        match self {
            Transform::Real(spectrum) => spectrum.size(),
            Transform::Complex(spectrum) => spectrum.size(),
        }
    }

    pub(super) fn dbfs(&self) -> &[f32] {
        match self {
            Transform::Real(spectrum) => spectrum.dbfs(),
            Transform::Complex(spectrum) => spectrum.dbfs(),
        }
    }

    pub(super) fn hold_dbfs(&self) -> Option<&[f32]> {
        match self {
            Transform::Real(spectrum) => spectrum.hold_dbfs(),
            Transform::Complex(spectrum) => spectrum.hold_dbfs(),
        }
    }

    pub(super) fn peaks(&self, count: usize, floor_dbfs: f32) -> Vec<Peak> {
        match self {
            Transform::Real(spectrum) => spectrum.peaks(count, floor_dbfs),
            Transform::Complex(spectrum) => spectrum.peaks(count, floor_dbfs),
        }
    }
}

/// Whether some of the `size` samples before `end` were sent and never arrived.
pub(super) fn was_lost<K: Kind>(pyramid: &Pyramid<K>, end: u64, size: u64) -> bool {
    let start = end.saturating_sub(size);
    let found = pyramid.range_stats(0, start..end);
    pyramid.oldest().is_some_and(|oldest| start >= oldest)
        && found.count < found.range.end - found.range.start
}
