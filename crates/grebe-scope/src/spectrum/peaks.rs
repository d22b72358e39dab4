//! The table of peaks.

use super::window::Window;

/// A peak of a spectrum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Peak {
    /// Where, in lines, found between lines.
    pub line: f64,
    /// Level of the peak, in dBFS.
    pub dbfs: f64,
}

pub(super) fn find(dbfs: &[f32], window: Window, count: usize, floor_dbfs: f32) -> Vec<Peak> {
    let reach = window.half_lobe_lines();
    let mut found: Vec<Peak> = Vec::with_capacity(count + 1);
    // Not the zero line and its lobe: that is the offset.
    for place in reach + 1..dbfs.len().saturating_sub(1) {
        let level = dbfs[place];
        let least = found.last().filter(|_| found.len() == count).map_or(f64::NEG_INFINITY, |p| p.dbfs);
        if level < floor_dbfs || f64::from(level) + LOSS_MAX_DB < least {
            continue;
        }
        let around = &dbfs[place - reach..dbfs.len().min(place + reach + 1)];
        let first_of_highest =
            around[..reach].iter().all(|&l| l < level) && around[reach..].iter().all(|&l| l <= level);
        if !first_of_highest {
            continue;
        }
        let peak = between(dbfs, place, window);
        let at = found.partition_point(|p| p.dbfs >= peak.dbfs);
        found.insert(at, peak);
        found.truncate(count);
    }
    found
}

/// Where a tone must lie for its two highest lines to differ as they do, and its level there: the shape of the
/// window's main lobe is known, so this is exact for a tone alone.
fn between(dbfs: &[f32], place: usize, window: Window) -> Peak {
    let [a, b, c] = [dbfs[place - 1], dbfs[place], dbfs[place + 1]].map(f64::from);
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
