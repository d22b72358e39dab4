//! Removes from a row the spectrum of a strong burst's sudden begin or end.
//!
//! Where a tone begins or ends within a transform, its spectrum falls with the square of the distance only. That of a strong burst is
//! over the floor hundreds of lines away, and would look like bursts of its own.

use std::ops::Range;

use super::group::JOIN_LINES;
use crate::simd::{lines, min_max};

/// The row in the middle without the splatter of bands that change their power between the rows, which are two apart; `None` without any.
pub(super) fn clean(
    [before, own, after]: [&[f32]; 3],
    floor: &[f32],
    least: f32,
    is_circular: bool,
) -> Option<Vec<f32>> {
    if !lines::any_over(own, floor, least, STRONG) {
        return None;
    }
    let is_strong = |line: usize, power: f32| power > STRONG * floor[line].max(least);
    let mut cleaned = own.to_vec();
    let mut done: Vec<Range<usize>> = Vec::new();
    // From the strongest on, because splatter of a strong band is stronger than other bands.
    while done.len() < BANDS_MAX {
        let peak = highest(&cleaned, &mut done);
        let Some(peak) = peak.filter(|&peak| is_strong(peak, cleaned[peak])) else { break };
        let is_band = |line: &usize| cleaned[*line] > (cleaned[peak] * BAND).max(least);
        let (mut begin, mut end) = (peak, peak + 1);
        while let Some(next) = (end..(end + JOIN_LINES).min(own.len())).find(is_band) {
            end = next + 1;
        }
        while let Some(next) = (begin.saturating_sub(JOIN_LINES)..begin).find(is_band) {
            begin = next;
        }
        // With what a sweep reaches meanwhile, because its power only moves. A neighbour there changes no difference.
        let reach = SWEEP * (end - begin) + JOIN_LINES;
        let near = begin.saturating_sub(reach)..(end + reach).min(own.len());
        let span = |lines: &Range<usize>| {
            let sums = [before, own, after].map(|row| row[lines.clone()].iter().sum::<f32>());
            (sums[0].min(sums[1]).min(sums[2]), sums[0].max(sums[1]).max(sums[2]))
        };
        let ((low, high), (_, highest)) = (span(&near), span(&(begin..end)));
        if high - low > EDGE * highest {
            remove(&mut cleaned, begin..end, high - low, floor, is_circular);
        }
        done.push(begin..end);
    }
    Some(cleaned)
}

/// The highest line outside of bands.
fn highest(row: &[f32], bands: &mut [Range<usize>]) -> Option<usize> {
    bands.sort_unstable_by_key(|band| band.start);
    let (mut from, mut highest) = (0, (0.0, 0..0));
    let end = row.len()..row.len();
    for band in bands.iter().chain([&end]) {
        let left = from..band.start.max(from);
        let power = min_max(&row[left.clone()]).1;
        if power >= highest.0 {
            highest = (power, left);
        }
        from = from.max(band.end);
    }
    let (power, left) = highest;
    row[left.clone()].iter().rposition(|&own| own == power).map(|at| left.start + at)
}

/// Removes what a band of this power leaves beside it, beyond what is joined with it anyway.
fn remove(row: &mut [f32], band: Range<usize>, power: f32, floor: &[f32], is_circular: bool) {
    let (lines, width) = (row.len(), band.len() as f32);
    let outside = lines - band.len();
    for distance in JOIN_LINES..outside.max(JOIN_LINES) {
        let splatter = SPLATTER * power / (distance as f32 * (distance as f32 + width));
        let mut is_seen = false;
        let (below, above) = ((band.start + lines - distance) % lines, (band.end - 1 + distance) % lines);
        let sides =
            [(below, is_circular || distance <= band.start), (above, is_circular || above >= band.end)];
        for line in sides.into_iter().filter_map(|(line, is_there)| is_there.then_some(line)) {
            if splatter > SEEN * floor[line] {
                is_seen = true;
                row[line] = (row[line].sqrt() - splatter.sqrt()).max(0.0).powi(2);
            }
        }
        if !is_seen || 2 * distance > lines && is_circular {
            break;
        }
    }
}

/// Floors from which on a line may have splatter that is seen beyond the lines that are joined with it.
const STRONG: f32 = 250.0;
/// Lines of a band have this share of its highest.
const BAND: f32 = 0.01;
/// Maximum bands examined per row.
const BANDS_MAX: usize = 8;
/// A band that changes by less than this part of its power has no edge.
const EDGE: f32 = 0.75;
/// Widths of a sweep that it moves within two rows.
const SWEEP: usize = 3;
/// Power that half of Hann's window has a line away, of that of all lines of the whole one: 1 / (1.5 pi^2), and a margin of 3.
const SPLATTER: f32 = 0.2;
/// Less of a floor changes nothing.
const SEEN: f32 = 0.1;
