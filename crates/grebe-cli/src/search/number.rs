//! Levels between samples, per format.

use grebe_scope::{Value, stats};

/// Sample type with levels between its values.
pub(super) trait Number: Value {
    fn hysteresis(value: f64) -> Self::Distance;
    /// The lowest value at or above the level.
    fn up(value: f64) -> Self;
    /// The highest value at or below the level.
    fn down(value: f64) -> Self;
    /// The highest value below the level.
    fn below(value: f64) -> Self;
    /// The lowest value above the level.
    fn above(value: f64) -> Self;
    /// Sum of the squares of finite samples.
    fn squares(samples: &[Self]) -> f64;
}

impl Number for i16 {
    fn hysteresis(value: f64) -> u16 {
        value.floor() as u16
    }

    fn up(value: f64) -> i16 {
        value.ceil() as i16
    }

    fn down(value: f64) -> i16 {
        value.floor() as i16
    }

    fn below(value: f64) -> i16 {
        (value.ceil() - 1.0) as i16
    }

    fn above(value: f64) -> i16 {
        (value.floor() + 1.0) as i16
    }

    fn squares(samples: &[i16]) -> f64 {
        stats(samples).sums.sum_sq as f64
    }
}

impl Number for f32 {
    fn hysteresis(value: f64) -> f32 {
        value as f32
    }

    fn up(value: f64) -> f32 {
        value as f32
    }

    fn down(value: f64) -> f32 {
        value as f32
    }

    fn below(value: f64) -> f32 {
        (value as f32).next_down()
    }

    fn above(value: f64) -> f32 {
        (value as f32).next_up()
    }

    fn squares(samples: &[f32]) -> f64 {
        stats(samples).sums.sum_sq
    }
}
