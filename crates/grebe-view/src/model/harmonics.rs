//! The harmonics of the selected channel's highest peak, at their places in the spectrum.

use crate::data::spectrum::ChannelSpectrum;
use crate::model::view_model::ViewModel;

/// A multiple of the fundamental.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Harmonic {
    /// 1 is the fundamental.
    pub(crate) number: u32,
    /// Frequency where it appears, in cycles per sample: 0.0 to 0.5, of complex samples -0.5 to 0.5.
    pub(crate) cycles: f64,
    /// Its place in the shown part of the spectrum: 0.0 left edge, 1.0 right edge.
    pub(crate) part: f64,
    /// Whether it is an alias from beyond half the rate.
    pub(crate) is_folded: bool,
}

impl Harmonic {
    pub(crate) fn is_shown(&self) -> bool {
        (0.0..=1.0).contains(&self.part)
    }

    /// Its number, in brackets for an alias.
    pub(crate) fn label(&self) -> String {
        if self.is_folded { format!("({})", self.number) } else { self.number.to_string() }
    }
}

impl ViewModel {
    /// The fundamental and its harmonics, if they are marked and there is a peak.
    pub(crate) fn harmonics(&self) -> Vec<Harmonic> {
        let (Some(view), true) = (&self.seen.picture.spectrum, self.controls.show.harmonics) else {
            return Vec::new();
        };
        let Some(peak) = self.selected_spectrum().and_then(|spectrum| spectrum.peaks.first()) else {
            return Vec::new();
        };
        let is_two_sided = view.is_two_sided;
        let fundamental = view.cycles_per_sample(peak.line);
        let harmonic = |number: u32| {
            let cycles = fundamental * f64::from(number);
            let seen = folded(cycles, is_two_sided);
            let part = self.part_of_cycles(seen);
            Harmonic { number, cycles: seen, part, is_folded: cycles.abs() > 0.5 }
        };
        (1..=HARMONICS).map(harmonic).collect()
    }

    /// The channel of the harmonics and of the markers.
    pub(crate) fn harmonics_channel(&self) -> usize {
        self.selected_spectrum().map_or(0, |spectrum| spectrum.channel)
    }

    /// The spectrum of the selected channel, or of the first that has one.
    pub(super) fn selected_spectrum(&self) -> Option<&ChannelSpectrum> {
        let spectra = &self.seen.picture.spectrum.as_ref()?.channels;
        let selected = self.selected().channel;
        spectra.iter().find(|spectrum| spectrum.channel == selected).or(spectra.first())
    }
}

/// The alias of a frequency, both in cycles per sample.
fn folded(cycles: f64, is_two_sided: bool) -> f64 {
    let turned = cycles - cycles.round();
    if is_two_sided { turned } else { turned.abs() }
}

/// The fundamental and nine more.
const HARMONICS: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::feed::ScopeFeed;
    use crate::data::status::SourceStatus;
    use crate::model::action::Action;
    use crate::model::options::ViewOptions;
    use crate::testing::batch;

    /// A square wave of 1100 Hz at 16,384 Hz: its odd harmonics from the ninth on are folded.
    fn model() -> ViewModel {
        let (mut feed, link) = ScopeFeed::new(4 << 20);
        let square = |_: usize, index: u64| {
            let phase = (index as f64 * 1100.0 / 16_384.0).fract();
            if phase < 0.5 { 10_000 } else { -10_000 }
        };
        feed.ingest(&batch(0, 1, 16_384, 16_384.0, square)).unwrap();
        feed.finish();
        let mut options = ViewOptions::new(SourceStatus::default);
        options.initial.spectrum = true;
        let mut model = ViewModel::new(link, options, crate::png::encode);
        model.request(500);
        model.refresh();
        model
    }

    #[test]
    fn harmonics_stand_where_the_spectrum_has_them_folded_ones_too() {
        let mut model = model();
        assert_eq!(model.harmonics(), []);
        model.act(Action::Harmonics);
        let harmonics = model.harmonics();
        assert_eq!(harmonics.len(), 10);
        let view = model.seen.picture.spectrum.clone().unwrap();
        let dbfs = &view.channels[0].dbfs;
        for harmonic in &harmonics {
            let truth = 1100.0 * f64::from(harmonic.number);
            let truth = if truth > 8192.0 { 16_384.0 - truth } else { truth };
            assert!((harmonic.cycles * 16_384.0 - truth).abs() < 2.0, "{harmonic:?}");
            assert_eq!(harmonic.is_folded, harmonic.number > 7);
            if harmonic.number % 2 == 1 {
                let line = (harmonic.cycles * view.size as f64).round() as usize;
                let level = dbfs[line - 1..=line + 1].iter().copied().fold(f32::MIN, f32::max);
                assert!(level > -40.0, "{harmonic:?} {level}");
            }
        }
        assert_eq!((harmonics[0].label(), harmonics[8].label()), ("1".into(), "(9)".into()));
        model.controls.spectrum_zoom = (0.0, 0.2);
        let shown: Vec<u32> =
            model.harmonics().iter().filter(|it| it.is_shown()).map(|it| it.number).collect();
        assert_eq!(shown, [1], "15 appears at 116 Hz and would be shown, but only ten are marked");
    }

    #[test]
    fn what_lies_beyond_half_the_rate_is_folded_as_often_as_it_takes() {
        for (cycles, seen) in [(0.1, 0.1), (0.6, 0.4), (1.1, 0.1), (1.6, 0.4), (2.25, 0.25)] {
            assert!((folded(cycles, false) - seen).abs() < 1e-12);
        }
    }
}
