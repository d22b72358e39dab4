//! Windows, as cosine sums (Harris 1978; flat top from ISO 18431-2).

/// Weighting of the samples of a transform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Window {
    /// None: for signals with whole cycles in a transform, and for transients.
    Rectangular,
    /// The usual choice.
    #[default]
    Hann,
    /// Nearest side lobe lower than Hann's.
    Hamming,
    /// Side lobes below -58 dB.
    Blackman,
    /// Four-term Blackman-Harris: side lobes below -92 dB.
    BlackmanHarris,
    /// Levels right to 0.01 dB wherever a tone lies between lines.
    FlatTop,
}

impl Window {
    /// All, for a menu.
    pub const ALL: [Window; 6] = [
        Window::Rectangular,
        Window::Hann,
        Window::Hamming,
        Window::Blackman,
        Window::BlackmanHarris,
        Window::FlatTop,
    ];

    /// Its name in a menu.
    pub fn name(self) -> &'static str {
        match self {
            Window::Rectangular => "rectangular",
            Window::Hann => "Hann",
            Window::Hamming => "Hamming",
            Window::Blackman => "Blackman",
            Window::BlackmanHarris => "Blackman-Harris",
            Window::FlatTop => "flat top",
        }
    }

    /// Weights of `size` samples, periodic (as for spectra, not for filters).
    pub(super) fn coefficients(self, size: usize) -> Vec<f64> {
        let turn = std::f64::consts::TAU / size as f64;
        let weight = |n: usize| {
            let sum = |(k, a): (usize, &f64)| {
                let sign = if k % 2 == 0 { 1.0 } else { -1.0 };
                sign * a * ((k * n % size) as f64 * turn).cos()
            };
            self.terms().iter().enumerate().map(sum).sum()
        };
        (0..size).map(weight).collect()
    }

    /// Level of a tone's line at a distance from the tone, 0 dB at none.
    pub(super) fn lobe_db(self, lines: f64) -> f64 {
        let sinc = |x: f64| {
            if x.abs() < 1e-12 { 1.0 } else { (std::f64::consts::PI * x).sin() / (std::f64::consts::PI * x) }
        };
        let terms = self.terms();
        let sides = terms
            .iter()
            .enumerate()
            .skip(1)
            .map(|(k, a)| a / 2.0 * (sinc(lines - k as f64) + sinc(lines + k as f64)));
        let level = (terms[0] * sinc(lines) + sides.sum::<f64>()) / terms[0];
        20.0 * level.abs().max(1e-12).log10()
    }

    /// Half the width of the main lobe, in lines.
    pub(super) fn half_lobe_lines(self) -> usize {
        self.terms().len()
    }

    fn terms(self) -> &'static [f64] {
        match self {
            Window::Rectangular => &[1.0],
            Window::Hann => &[0.5, 0.5],
            Window::Hamming => &[0.54, 0.46],
            Window::Blackman => &[0.42, 0.5, 0.08],
            Window::BlackmanHarris => &[0.35875, 0.48829, 0.14128, 0.01168],
            Window::FlatTop => &[0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368],
        }
    }
}
