//! Levels for comparators.

use std::fmt::Debug;
use std::ops::{Add, Sub};

use crate::simd::{IntegerThresholds, Kernels, RealThresholds};

/// Arithmetic of levels. Sums and differences may lie beyond the range of samples; they are then passed never, or always.
pub trait Levels: Kernels {
    /// Distance between two values, not negative: the type of a hysteresis.
    type Distance: Copy + Debug + Send + Default + PartialEq;
    /// A level, a distance, and sums of them.
    type Level: Copy + Debug + Send + PartialOrd + Add<Output = Self::Level> + Sub<Output = Self::Level>;
    /// A level separates the values at or above it from those below. This one has `value` above it.
    fn level(value: Self) -> Self::Level;
    /// Converts a distance to a level.
    fn distance(distance: Self::Distance) -> Self::Level;
    /// The next level: values at or above it are greater than `level`, values below it are `level` or less.
    fn next(level: Self::Level) -> Self::Level;
    /// The lowest level not below `value`, or the nearest possible one.
    fn level_up(value: f64) -> Self::Level;
    /// The highest level not above `value`, or the nearest possible one.
    fn level_down(value: f64) -> Self::Level;
    /// Above is `sample >= high`, below is `sample < low`.
    fn thresholds(high: Self::Level, low: Self::Level) -> Self::Thresholds;
    /// Whether it can be a level.
    fn is_level(value: Self) -> bool;
    /// Whether it can be a distance.
    fn is_distance(distance: Self::Distance) -> bool;
}

impl Levels for i16 {
    type Distance = u16;
    type Level = i32;

    fn level(value: i16) -> i32 {
        value.into()
    }

    fn distance(distance: u16) -> i32 {
        distance.into()
    }

    fn next(level: i32) -> i32 {
        level + 1
    }

    fn level_up(value: f64) -> i32 {
        value.ceil() as i32
    }

    fn level_down(value: f64) -> i32 {
        value.floor() as i32
    }

    fn thresholds(high: i32, low: i32) -> IntegerThresholds {
        IntegerThresholds::new(high, low)
    }

    fn is_level(_: i16) -> bool {
        true
    }

    fn is_distance(_: u16) -> bool {
        true
    }
}

impl Levels for f32 {
    type Distance = f32;
    type Level = f32;

    fn level(value: f32) -> f32 {
        value
    }

    fn distance(distance: f32) -> f32 {
        distance
    }

    fn next(level: f32) -> f32 {
        level.next_up()
    }

    fn level_up(value: f64) -> f32 {
        value as f32
    }

    fn level_down(value: f64) -> f32 {
        value as f32
    }

    fn thresholds(high: f32, low: f32) -> RealThresholds {
        RealThresholds { high, low }
    }

    fn is_level(value: f32) -> bool {
        value.is_finite()
    }

    fn is_distance(distance: f32) -> bool {
        distance.is_finite() && distance >= 0.0
    }
}
