//! Every pixel at ten zooms, beside all transforms of the samples: with a spectral summary and without one.

use std::io;

use grebe_frame::SampleFormat;
use grebe_scope::{PowerTransform, Window};

use super::tests::{HOP, LENGTH, NO_TIME, SIZE, chirp_and_bursts, fake, settings};
use super::*;
use crate::data::recorded::tests::Fake;
use crate::data::recording::{RecordingPower, RecordingSums};

const CELLS: usize = SIZE / 2;

/// A recording with a spectral summary by its definition: of transforms half over one another.
#[derive(Debug)]
struct Summarized {
    fake: Fake,
    /// Levels of the transform whose middle is at `SIZE / 2` times its number.
    levels: Vec<Vec<f32>>,
}

impl Recording for Summarized {
    fn outline(&self) -> &RecordingOutline {
        self.fake.outline()
    }

    fn refresh(&mut self) -> bool {
        false
    }

    fn read(&mut self, position: u64, length: usize, out: &mut Vec<u8>) -> io::Result<()> {
        self.fake.read(position, length, out)
    }

    fn known_samples(&self) -> u64 {
        0
    }

    fn level(&self, _: u32) -> Option<u32> {
        None
    }

    fn extremes(&mut self, _: usize, _: u32, _: Range<u64>, _: &mut Vec<(f32, f32)>) -> io::Result<()> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn sums(&self, _: usize, _: Range<u64>) -> RecordingSums {
        RecordingSums::default()
    }

    fn memory_bytes(&self) -> usize {
        0
    }

    fn known_power_samples(&mut self) -> Option<u64> {
        Some(LENGTH as u64)
    }

    fn power_level(&self, log2: u32) -> Option<u32> {
        (6..=32).step_by(2).take_while(|&level| level <= log2).last()
    }

    fn power(&mut self, _: usize, log2: u32, number: u64, power: &mut RecordingPower) -> io::Result<()> {
        let own = (number << log2) as usize..((number + 1) << log2) as usize;
        power.highest = highest(&self.levels, own);
        Ok(())
    }
}

/// Raises each cell to the highest of its lines.
fn raise(lines: &[f32], cells: &mut [f32]) {
    let count = cells.len();
    for (x, cell) in cells.iter_mut().enumerate() {
        let (from, to) = (x * lines.len() / count, (x + 1) * lines.len() / count);
        *cell = lines[from..to.max(from + 1)].iter().copied().fold(*cell, f32::max);
    }
}

/// Levels of a transform from `start` on; samples outside of the recording are zero.
fn levels_at(transform: &mut PowerTransform, samples: &[f32], start: i64) -> Vec<f32> {
    let at = |index: i64| usize::try_from(index).ok().and_then(|index| samples.get(index).copied());
    let own: Vec<f32> = (start..start + SIZE as i64).map(|index| at(index).unwrap_or(0.0)).collect();
    let mut power = vec![0.0; transform.lines()];
    assert!(transform.power(&own, &[], 0.0, &mut power));
    let lines: Vec<f32> = power.iter().map(|&power| 10.0 * power.max(1e-20).log10()).collect();
    let mut cells = vec![f32::NEG_INFINITY; CELLS];
    raise(&lines, &mut cells);
    cells
}

/// The highest levels of the transforms whose middle is within these samples.
fn highest(levels: &[Vec<f32>], samples: Range<usize>) -> Vec<f32> {
    let mut cells = vec![f32::NEG_INFINITY; CELLS];
    let hop = SIZE / 2;
    let numbers = samples.start.div_ceil(hop)..samples.end.div_ceil(hop).min(levels.len());
    levels[numbers].iter().for_each(|levels| raise(levels, &mut cells));
    cells
}

#[test]
fn every_pixel_at_ten_zooms_is_what_all_transforms_have() {
    let samples = chirp_and_bursts();
    let mut transform = PowerTransform::real(SIZE, Window::Rectangular).unwrap();
    transform.set_full_scale(32_768.0);
    let levels: Vec<Vec<f32>> = (0..=LENGTH * 2 / SIZE)
        .map(|number| levels_at(&mut transform, &samples, (number as i64 - 1) * SIZE as i64 / 2))
        .collect();
    let fake = fake(SampleFormat::I16, vec![samples.clone()], &[(0, LENGTH as u64)]);
    let mut recording = Summarized { fake, levels };
    let bursts: Vec<usize> = (0..5).map(|number| LENGTH / 7 * (number + 1) + 37 * number).collect();
    let mut shown = 0;
    for zoom in 0..10 {
        let span = (HOP as f64 / 1.4f64.powi(zoom)) as usize * ROWS;
        // A burst is somewhere in the window.
        let end = (bursts[zoom as usize % 5] + span * 2 / 3).clamp(span, LENGTH);
        let window = (end - span) as f64..end as f64;
        let hop = span / ROWS;
        let newest = end.div_ceil(hop) - 1;
        let look = |recording: &mut dyn Recording, is_whole: bool| {
            let (mut waterfall, mut reader) = (WideWaterfall::<i16>::default(), Reader::default());
            loop {
                let disk = &mut Disk { recording, reader: &mut reader };
                let view = waterfall.view(disk, settings(), (0, SIZE), window.clone(), NO_TIME).unwrap();
                if !is_whole || waterfall.is_exact() {
                    break view;
                }
            }
        };
        let with = look(&mut recording, false);
        assert!(with.sampled.unwrap().is_summary, "{hop} samples a row");
        let without = look(&mut recording.fake, true);
        for back in 0..ROWS {
            let Some(number) = newest.checked_sub(back) else { break };
            let row = number * hop..((number + 1) * hop).min(LENGTH);
            let [with, without] = [&with, &without].map(|view| &view.cells[back * CELLS..][..CELLS]);
            // Rows of the summary reach into their neighbours by a quarter.
            let least = highest(&recording.levels, row.clone());
            let around = row.start.saturating_sub(hop / 4)..row.end + hop / 4;
            let most = highest(&recording.levels, around);
            let mut exact = vec![f32::NEG_INFINITY; CELLS];
            for start in row.clone().step_by(SIZE).map(|at| at.min(row.end - SIZE)) {
                raise(&levels_at(&mut transform, &samples, start as i64), &mut exact);
            }
            for cell in 0..CELLS {
                let place = format!("{hop} samples a row, row {back}, cell {cell}");
                assert!(with[cell] >= least[cell] && with[cell] <= most[cell], "{place}: {}", with[cell]);
                let is_same = (without[cell] - exact[cell]).abs() < 0.02 || exact[cell] < -110.0;
                assert!(is_same, "{place}: {}, {}", without[cell], exact[cell]);
            }
            for _ in bursts.iter().filter(|&&begin| row.contains(&(begin + SIZE / 2))) {
                let cell = CELLS * 3 / 4;
                assert!(with[cell] > -13.0 && without[cell].max(exact[cell]) > -13.0, "{hop}, row {back}");
                shown += 1;
            }
        }
    }
    assert!(shown >= 20, "{shown} bursts");
}
