//! Complex samples as lanes of real ones: magnitude, phase, frequency; and their power.
//!
//! A complex sample is a place in two slices, I and Q. All functions write as many results as their shortest slice
//! has places, and allocate nothing. A value that is not finite gives one that is not finite, only in its own place
//! (and, for the frequency, in the next).

use crate::value::Value;

/// Magnitude (the envelope), in the unit of the samples.
///
/// ```
/// let mut out = [0.0; 2];
/// grebe_scope::magnitude(&[3.0, 0.0], &[4.0, -1.0], &mut out);
/// assert_eq!(out, [5.0, 1.0]);
/// ```
pub fn magnitude<V: Value>(i: &[V], q: &[V], out: &mut [f32]) {
    for (out, (i, q)) in out.iter_mut().zip(i.iter().zip(q)) {
        let (i, q) = (i.to_f32(), q.to_f32());
        *out = (i * i + q * q).sqrt();
    }
}

/// Magnitude in decibels: 0 dB is `full_scale`, -200 dB the minimum.
///
/// ```
/// let mut out = [0.0; 2];
/// grebe_scope::magnitude_db(&[16384, 0], &[0, 0], 32768.0, &mut out);
/// assert!((out[0] + 6.0206).abs() < 1e-3 && out[1] == -200.0);
/// ```
pub fn magnitude_db<V: Value>(i: &[V], q: &[V], full_scale: f64, out: &mut [f32]) {
    let scale = (1.0 / full_scale) as f32;
    for (out, (i, q)) in out.iter_mut().zip(i.iter().zip(q)) {
        let (i, q) = (i.to_f32() * scale, q.to_f32() * scale);
        let power = i * i + q * q;
        *out = if power.is_finite() { crate::spectrum::decibels(power) } else { power };
    }
}

/// Phase, -pi to pi, accurate to 0.00002 rad; 0 for a sample of 0.
///
/// ```
/// let mut out = [0.0; 2];
/// grebe_scope::phase(&[0, -5], &[7, 0], &mut out);
/// assert!((out[0] - std::f32::consts::FRAC_PI_2).abs() < 2e-5 && (out[1] - std::f32::consts::PI).abs() < 2e-5);
/// ```
pub fn phase<V: Value>(i: &[V], q: &[V], out: &mut [f32]) {
    for (out, (i, q)) in out.iter_mut().zip(i.iter().zip(q)) {
        *out = angle(q.to_f32(), i.to_f32());
    }
}

/// Instantaneous frequency, in cycles per sample from -0.5 to 0.5: the change of the phase since the previous sample.
///
/// `before` is the sample before the first, I and Q; without one, after a gap, the first result is NaN.
///
/// ```
/// let (i, q) = ([1.0, 0.0, -1.0, 0.0], [0.0, 1.0, 0.0, -1.0]);
/// let mut out = [0.0; 4];
/// grebe_scope::instantaneous_frequency(None, &i, &q, &mut out);
/// assert!(out[0].is_nan() && (out[3] - 0.25).abs() < 1e-5);
/// ```
pub fn instantaneous_frequency<V: Value>(before: Option<(V, V)>, i: &[V], q: &[V], out: &mut [f32]) {
    let turned = |(i0, q0): (V, V), (i1, q1): (V, V)| {
        let (i0, q0, i1, q1) = (i0.to_f32(), q0.to_f32(), i1.to_f32(), q1.to_f32());
        angle(q1 * i0 - i1 * q0, i1 * i0 + q1 * q0) * (1.0 / std::f32::consts::TAU)
    };
    let pairs = i.iter().copied().zip(q.iter().copied());
    if let (Some(out), Some(first)) = (out.first_mut(), pairs.clone().next()) {
        *out = before.map_or(f32::NAN, |before| turned(before, first));
    }
    for (out, (before, here)) in out.iter_mut().skip(1).zip(pairs.clone().zip(pairs.skip(1))) {
        *out = turned(before, here);
    }
}

/// The angle of a point, in a form that compilers vectorize, unlike the library's `atan2`.
#[inline(always)]
fn angle(y: f32, x: f32) -> f32 {
    let (small, large) = (x.abs().min(y.abs()), x.abs().max(y.abs()));
    let slope = if large == 0.0 { 0.0 } else { small / large };
    // NaN if a component is NaN or infinite.
    let part = slope + x * 0.0 + y * 0.0;
    let s = part * part;
    // Minimax polynomial of the arc tangent from 0 to 1.
    let series =
        -0.332_623_47 + s * (0.193_543_46 + s * (-0.116_432_87 + s * (0.052_653_32 + s * -0.011_721_2)));
    let first = part * (0.999_977_26 + s * series);
    let octant = if y.abs() > x.abs() { std::f32::consts::FRAC_PI_2 - first } else { first };
    let half = if x < 0.0 { std::f32::consts::PI - octant } else { octant };
    if y < 0.0 { -half } else { half }
}

/// Power of complex samples, added up block by block: mean, peak, and their ratio.
///
/// ```
/// let mut power = grebe_scope::PowerStats::default();
/// power.add(&[1.0, 0.0, 3.0, 0.0], &[0.0, 1.0, 0.0, -1.0]);
/// assert_eq!((power.mean(), power.peak()), (Some(3.0), Some(9.0)));
/// assert!((power.peak_to_average_db().unwrap() - 4.7712).abs() < 1e-4);
/// assert!((power.mean_dbfs(1.0).unwrap() - 4.7712).abs() < 1e-4);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PowerStats {
    sum: f64,
    peak: f64,
    count: u64,
    not_finite: u64,
}

impl PowerStats {
    /// Adds samples, as many as the shorter slice has.
    pub fn add<V: Value>(&mut self, i: &[V], q: &[V]) {
        const LANES: usize = 8;
        let len = i.len().min(q.len());
        let (mut sum, mut peak, mut not_finite) = ([0.0f64; LANES], [0.0f64; LANES], [0u64; LANES]);
        for (i, q) in i[..len].chunks(LANES).zip(q[..len].chunks(LANES)) {
            for (lane, (i, q)) in i.iter().zip(q).enumerate() {
                let (i, q) = (i.to_f64(), q.to_f64());
                let power = i * i + q * q;
                let is_finite = power < f64::INFINITY;
                let power = if is_finite { power } else { 0.0 };
                sum[lane] += power;
                peak[lane] = if power > peak[lane] { power } else { peak[lane] };
                not_finite[lane] += u64::from(!is_finite);
            }
        }
        self.sum += sum.iter().sum::<f64>();
        self.peak = peak.iter().copied().fold(self.peak, f64::max);
        let not_finite = not_finite.iter().sum::<u64>();
        self.not_finite += not_finite;
        self.count += len as u64 - not_finite;
    }

    /// Mean power, in the square of the samples' unit; `None` without finite samples.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// Highest power of a sample, in the square of the samples' unit; `None` without finite samples.
    pub fn peak(&self) -> Option<f64> {
        (self.count > 0).then_some(self.peak)
    }

    /// Mean power in decibels, 0 dB is that of a tone of magnitude `full_scale`; `None` without power.
    pub fn mean_dbfs(&self, full_scale: f64) -> Option<f64> {
        let mean = self.mean().filter(|&mean| mean > 0.0)?;
        Some(10.0 * (mean / (full_scale * full_scale)).log10())
    }

    /// Ratio of peak to mean, in decibels; `None` without power.
    pub fn peak_to_average_db(&self) -> Option<f64> {
        let mean = self.mean().filter(|&mean| mean > 0.0)?;
        Some(10.0 * (self.peak / mean).log10())
    }

    /// Finite samples added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Samples with a component that is infinite or NaN: they do not count.
    pub fn not_finite(&self) -> u64 {
        self.not_finite
    }
}

#[cfg(test)]
mod tests {
    use grebe_testing::Rng;

    use super::*;

    #[test]
    fn angles_are_those_of_the_library() {
        let mut rng = Rng::with_seed(3);
        let near = |y: f32, x: f32| {
            let (got, expected) = (angle(y, x), y.atan2(x));
            let apart = (got - expected).abs();
            // Just above and just below the cut are the same.
            assert!(apart.min((apart - std::f32::consts::TAU).abs()) < 2e-5, "{y} {x}: {got} {expected}");
        };
        for x in [-2.0f32, -1.0, -0.5, 0.0, 0.5, 1.0, 1e-20, 1e20] {
            for y in [-2.0f32, -1.0, -0.5, 0.0, 0.5, 1.0, 1e-20, 1e20] {
                near(y, x);
            }
        }
        for _ in 0..100_000 {
            near(rng.f64() as f32 - 0.5, rng.f64() as f32 - 0.5);
        }
        assert!(angle(f32::NAN, 1.0).is_nan() && angle(1.0, f32::NAN).is_nan());
    }

    #[test]
    fn a_chirp_has_its_frequency_at_every_sample_whatever_the_blocks() {
        let phase_of = |n: usize| std::f64::consts::TAU * (n as f64 * -0.4 + (n * n) as f64 * 2e-5);
        let i: Vec<f32> = (0..20_000).map(|n| (phase_of(n).cos() * 0.3) as f32).collect();
        let q: Vec<f32> = (0..20_000).map(|n| (phase_of(n).sin() * 0.3) as f32).collect();
        let mut whole = vec![0.0; i.len()];
        instantaneous_frequency(None, &i, &q, &mut whole);
        for (n, &got) in whole.iter().enumerate().skip(1) {
            let expected = -0.4 + (2 * n - 1) as f64 * 2e-5;
            assert!((f64::from(got) - expected).abs() < 1e-5, "{n}: {got} {expected}");
        }
        let mut pieces = vec![0.0; i.len()];
        for from in (0..i.len()).step_by(777) {
            let to = (from + 777).min(i.len());
            let before = from.checked_sub(1).map(|at| (i[at], q[at]));
            instantaneous_frequency(before, &i[from..to], &q[from..to], &mut pieces[from..to]);
        }
        assert_eq!(pieces[1..], whole[1..]);
    }

    #[test]
    fn integers_and_reals_have_the_same_lanes_and_holes_stay_in_their_places() {
        let mut rng = Rng::with_seed(4);
        let [i, q]: [Vec<i16>; 2] = std::array::from_fn(|_| (0..500).map(|_| rng.i16(..)).collect());
        let [mut real_i, real_q] = [&i, &q].map(|c| c.iter().map(|&s| f32::from(s)).collect::<Vec<_>>());
        type Lane<V> = fn(&[V], &[V], &mut [f32]);
        let integers: [Lane<i16>; 4] = [
            magnitude,
            phase,
            |i, q, out| magnitude_db(i, q, 32768.0, out),
            |i, q, out| instantaneous_frequency(Some((0, 0)), i, q, out),
        ];
        let reals: [Lane<f32>; 4] = [
            magnitude,
            phase,
            |i, q, out| magnitude_db(i, q, 32768.0, out),
            |i, q, out| instantaneous_frequency(Some((0.0, 0.0)), i, q, out),
        ];
        let (mut a, mut b) = ([0.0; 500], [0.0; 500]);
        for (integer, real) in integers.into_iter().zip(reals) {
            integer(&i, &q, &mut a);
            real(&real_i, &real_q, &mut b);
            assert_eq!(a, b);
        }
        let mut power = PowerStats::default();
        power.add(&i, &q);
        let mut real_power = PowerStats::default();
        real_power.add(&real_i, &real_q);
        assert_eq!(power, real_power);
        real_i[7] = f32::NAN;
        real_i[8] = f32::INFINITY;
        for (place, real) in reals.into_iter().enumerate() {
            real(&real_i, &real_q, &mut b);
            let holes: Vec<usize> = (0..500).filter(|&at| !b[at].is_finite()).collect();
            assert_eq!(holes, if place == 3 { vec![7, 8, 9] } else { vec![7, 8] });
        }
        let mut holed = PowerStats::default();
        holed.add(&real_i, &real_q);
        assert_eq!((holed.count(), holed.not_finite()), (498, 2));
        assert!((holed.mean().unwrap() / power.mean().unwrap() - 1.0).abs() < 0.01);
        assert_eq!(PowerStats::default().peak_to_average_db(), None);
    }
}
