//! Levels in words: the same in axes, peaks, markers and tables.

/// The unit of levels: 0 is a sine of full scale, whatever the channel's unit is. Differences are in dB.
pub(crate) const LEVEL_UNIT: &str = "dBFS";

/// A level as beside a peak and at the pointer.
pub(crate) fn level_words(dbfs: f64) -> String {
    format!("{dbfs:.1} {LEVEL_UNIT}")
}
