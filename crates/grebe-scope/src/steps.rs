//! Steps of 1-2-5, and powers of ten that are exact.

/// The smallest of ..., 1, 2, 5, 10, 20, 50, ... that is at least `value`; 1 where `value` is not a positive number.
///
/// ```
/// assert_eq!(grebe_scope::step_125_up(3.0), 5.0);
/// assert_eq!(grebe_scope::step_125_up(2e-6), 2e-6);
/// ```
pub fn step_125_up(value: f64) -> f64 {
    if !(value > 0.0 && value.is_finite()) {
        return 1.0;
    }
    let exponent = value.log10().floor() as i32;
    let steps = (exponent - 1..=exponent + 1).flat_map(|e| [1.0, 2.0, 5.0].map(|m| m * power_of_ten(e)));
    // A millionth below counts as reached: 0.1 + 0.2 is not a new step.
    steps.into_iter().find(|step| *step >= value * (1.0 - 1e-6)).unwrap_or(power_of_ten(exponent + 1))
}

/// The largest of ..., 1, 2, 5, 10, ... that is at most `value`; 1 where `value` is not a positive number.
///
/// ```
/// assert_eq!(grebe_scope::step_125_down(3.0), 2.0);
/// // One click finer and one click coarser than 1 ms per division:
/// assert_eq!(grebe_scope::step_125_down(1e-3 * 0.9), 5e-4);
/// assert_eq!(grebe_scope::step_125_up(1e-3 * 1.1), 2e-3);
/// ```
pub fn step_125_down(value: f64) -> f64 {
    if !(value > 0.0 && value.is_finite()) {
        return 1.0;
    }
    let exponent = value.log10().floor() as i32;
    let steps = (exponent - 1..=exponent + 1).flat_map(|e| [1.0, 2.0, 5.0].map(|m| m * power_of_ten(e)));
    steps.into_iter().rfind(|step| *step <= value * (1.0 + 1e-6)).unwrap_or(power_of_ten(exponent))
}

pub(crate) fn round_to(value: f64, decimals: u32) -> f64 {
    let scale = power_of_ten(decimals as i32);
    (value * scale).round() / scale
}

/// Exact where a decimal literal would be: `powi` of 0.1 would not.
pub(crate) fn power_of_ten(exponent: i32) -> f64 {
    if exponent >= 0 { 10f64.powi(exponent) } else { 1.0 / 10f64.powi(exponent.saturating_neg()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_go_round_in_both_directions() {
        let mut step = 1e-12;
        let mut seen = Vec::new();
        while step < 1e12 {
            seen.push(step);
            step = step_125_up(step * 1.1);
        }
        assert_eq!(seen.len(), 72);
        for pair in seen.windows(2) {
            assert_eq!(step_125_down(pair[1] * 0.9), pair[0]);
            assert_eq!(step_125_up(pair[0]), pair[0]);
            assert_eq!(step_125_down(pair[0]), pair[0]);
        }
        assert_eq!(step_125_up(f64::NAN), 1.0);
        assert_eq!(step_125_down(-3.0), 1.0);
    }
}
