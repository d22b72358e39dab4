//! From lines to levels: power, its average, decibels, and the highest so far.

use realfft::num_complex::Complex;

/// How successive spectra are averaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Averaging {
    /// Each stands alone.
    #[default]
    None,
    /// Mean power of all so far.
    All,
    /// Exponential mean of the power: each new spectrum has the weight of one in this many (at least 1).
    Exponential(u32),
}

#[derive(Debug)]
pub(super) struct Levels {
    averaging: Averaging,
    pub(super) power: Vec<f32>,
    pub(super) dbfs: Vec<f32>,
    pub(super) hold_dbfs: Option<Vec<f32>>,
    pub(super) count: u64,
}

impl Levels {
    pub(super) fn new(lines: usize, averaging: Averaging) -> Levels {
        Levels { averaging, power: vec![0.0; lines], dbfs: vec![FLOOR_DB; lines], hold_dbfs: None, count: 0 }
    }

    pub(super) fn set_peak_hold(&mut self, on: bool) {
        self.hold_dbfs = on.then(|| vec![FLOOR_DB; self.power.len()]);
    }

    /// Adds a transform, the lines in two parts one after the other.
    pub(super) fn add(&mut self, [first, second]: [&[Complex<f32>]; 2]) {
        let share = match self.averaging {
            Averaging::None => 1.0,
            Averaging::All => 1.0 / (self.count + 1) as f32,
            Averaging::Exponential(parts) => 1.0 / (self.count + 1).min(u64::from(parts.max(1))) as f32,
        };
        self.count += 1;
        // Alone, a quiet line after a loud one would vanish in the rounding of their difference.
        let joined = |power: f32, new: f32| if share < 1.0 { power + (new - power) * share } else { new };
        let mut from = 0;
        for lines in [first, second] {
            let to = from + lines.len();
            let levels = self.power[from..to].iter_mut().zip(&mut self.dbfs[from..to]);
            for ((power, dbfs), line) in levels.zip(lines) {
                *power = joined(*power, line.norm_sqr());
                *dbfs = decibels(*power);
            }
            from = to;
        }
        if let Some(hold) = &mut self.hold_dbfs {
            for (hold, &dbfs) in hold.iter_mut().zip(&self.dbfs) {
                *hold = hold.max(dbfs);
            }
        }
    }
}

/// `10 log10(power)` to 0.00002 dB, in a form that compilers vectorise (`log10` of the library they do not).
pub fn decibels(power: f32) -> f32 {
    let power = power.max(POWER_MIN);
    let bits = power.to_bits();
    // power = 2^exponent * mantissa, the mantissa from 0.7 to 1.4 so that its logarithm is a short series.
    let shifted = bits.wrapping_sub(0x3f33_3333);
    let exponent = (shifted as i32) >> 23;
    let mantissa = f32::from_bits(bits.wrapping_sub((exponent << 23) as u32));
    // ln(m) = 2 artanh((m - 1) / (m + 1)).
    let z = (mantissa - 1.0) / (mantissa + 1.0);
    let z2 = z * z;
    let ln = 2.0 * z * (1.0 + z2 * (1.0 / 3.0 + z2 * (1.0 / 5.0 + z2 * (1.0 / 7.0))));
    (exponent as f32 * std::f32::consts::LN_2 + ln) * (10.0 / std::f32::consts::LN_10)
}

/// The level of a line without power.
pub(super) const FLOOR_DB: f32 = -200.0;
const POWER_MIN: f32 = 1e-20;
