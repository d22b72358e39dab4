//! The peaks of a spectrum, found between lines.

use super::window::Window;

/// A peak of a spectrum.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Peak {
    /// Where, in lines, found between lines; [`Spectrum::cycles_per_sample`](crate::Spectrum::cycles_per_sample) says which frequency
    /// that is.
    pub line: f64,
    /// Level of the peak, in dBFS.
    pub dbfs: f64,
}

/// Which lines there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sides {
    /// From 0 Hz to half the rate.
    One,
    /// From minus half the rate on: after the last line comes the first again.
    Two,
}

/// The `count` highest peaks of a spectrum's levels, in descending order, as [`Spectrum::peaks`](crate::Spectrum::peaks).
pub fn find_peaks(dbfs: &[f32], sides: Sides, window: Window, count: usize, floor_dbfs: f32) -> Vec<Peak> {
    let reach = window.half_lobe_lines();
    let mut found: Vec<Peak> = Vec::with_capacity(count + 1);
    let places = match sides {
        // Not the zero line and its lobe: that is the offset.
        Sides::One => reach + 1..dbfs.len().saturating_sub(1),
        // The carrier may stand in the middle.
        Sides::Two => 0..dbfs.len(),
    };
    let last = dbfs.len() as isize;
    let neighbour = |place: usize, distance: isize| {
        let at = place as isize + distance;
        match sides {
            Sides::One => usize::try_from(at).ok().and_then(|at| dbfs.get(at)).copied(),
            Sides::Two => Some(dbfs[at.rem_euclid(last) as usize]),
        }
    };
    for place in places {
        let level = dbfs[place];
        let least = found.last().filter(|_| found.len() == count).map_or(f64::NEG_INFINITY, |p| p.dbfs);
        if level < floor_dbfs || f64::from(level) + LOSS_MAX_DB < least {
            continue;
        }
        let reach = reach as isize;
        let first_of_highest = (-reach..0).all(|d| neighbour(place, d).is_none_or(|l| l < level))
            && (1..=reach).all(|d| neighbour(place, d).is_none_or(|l| l <= level));
        if !first_of_highest {
            continue;
        }
        let [Some(before), Some(after)] = [neighbour(place, -1), neighbour(place, 1)] else { continue };
        let peak = between([before, level, after], place, window);
        let at = found.partition_point(|p| p.dbfs >= peak.dbfs);
        found.insert(at, peak);
        found.truncate(count);
    }
    found
}

/// The peak above `floor_dbfs` that a place between lines is on, or else that place and its level; `None` beside the spectrum.
///
/// ```
/// use grebe_scope::{Sides, Window, peak_at};
/// let dbfs = [-90.0, -90.0, -6.0, 0.0, -6.0, -90.0];
/// let peak = peak_at(&dbfs, Sides::One, Window::Hann, -50.0, 2.8).unwrap();
/// assert!((peak.line - 3.0).abs() < 0.01 && peak.dbfs.abs() < 0.001);
/// assert_eq!(peak_at(&dbfs, Sides::One, Window::Hann, -50.0, 1.25).unwrap().dbfs, -69.0);
/// assert_eq!(peak_at(&dbfs, Sides::One, Window::Hann, -50.0, 9.0), None);
/// ```
pub fn peak_at(dbfs: &[f32], sides: Sides, window: Window, floor_dbfs: f32, line: f64) -> Option<Peak> {
    let last = dbfs.len().checked_sub(1)?;
    if !(0.0..=last as f64).contains(&line) {
        return None;
    }
    let nearest = line.round() as usize;
    let places = [nearest, nearest.saturating_sub(1), (nearest + 1).min(last)];
    let highest = places.into_iter().max_by(|&a, &b| dbfs[a].total_cmp(&dbfs[b]))?;
    let neighbours = match sides {
        Sides::Two => Some([(highest + last) % (last + 1), (highest + 1) % (last + 1)]),
        Sides::One => (1..last).contains(&highest).then(|| [highest - 1, highest + 1]),
    };
    if let Some([before, after]) = neighbours
        && dbfs[highest] >= floor_dbfs
        && dbfs[before] < dbfs[highest]
        && dbfs[after] <= dbfs[highest]
    {
        return Some(between([dbfs[before], dbfs[highest], dbfs[after]], highest, window));
    }
    let (below, part) = (line as usize, line.fract());
    let [low, high] = [below, (below + 1).min(last)].map(|at| f64::from(dbfs[at]));
    Some(Peak { line, dbfs: low + (high - low) * part })
}

/// Where a tone must lie for its two highest lines to differ as they do, and its level there: the shape of the
/// window's main lobe is known, so this is exact for a tone alone.
fn between(dbfs: [f32; 3], place: usize, window: Window) -> Peak {
    let [a, b, c] = dbfs.map(f64::from);
    let difference = a.max(c) - b;
    let (mut near, mut far) = (0.0, 0.5);
    for _ in 0..40 {
        let middle = (near + far) / 2.0;
        if window.lobe_db(1.0 - middle) - window.lobe_db(middle) < difference {
            near = middle
        } else {
            far = middle
        }
    }
    let line = place as f64 + if c >= a { near } else { -near };
    Peak { line, dbfs: b - window.lobe_db(near) }
}

/// How far a tone may lie above its highest line at most (no window, halfway between two lines).
const LOSS_MAX_DB: f64 = 4.0;
