//! Spectra in steps of 1/8 dB, and waterfalls in steps of 1/2 dB. Rows that only moved are not sent again, whichever others
//! changed: the newest row of a stream grows, and those of a recording improve.

use grebe_scope::Peak;

use crate::data::spectrum::{ChannelSpectrum, Sampled, SpectrumView, WaterfallView};
use crate::data::viewport::SpectrumSettings;
use crate::remote::bytes::{Malformed, Reader, Writer};
use crate::remote::residuals::{read_run, write_run};

/// Writes spectra. If they have more lines than a screen has pixels, the highest of several neighbours is sent.
pub(super) fn write(view: &SpectrumView, viewport: u64, out: &mut Writer) {
    let most = view.channels.iter().map(|channel| channel.dbfs.len()).max().unwrap_or(0);
    let joined = most.div_ceil(LINES_WRITTEN_MAX).next_power_of_two().min(view.size);
    out.varint(viewport);
    out.varint((view.size / joined) as u64);
    out.varint(view.transform_size() as u64);
    out.u8(u8::from(view.is_two_sided));
    out.varint(view.channels.len() as u64);
    for channel in &view.channels {
        let highest = |levels: &[f32]| -> Vec<i32> {
            // `max` ignores NaN.
            let of = |levels: &[f32]| levels.iter().copied().reduce(f32::max).unwrap_or(f32::NAN);
            levels.chunks(joined).map(|levels| steps(of(levels), EIGHTHS)).collect()
        };
        let (levels, held) = (highest(&channel.dbfs), highest(&channel.hold_dbfs));
        out.varint(channel.channel as u64);
        out.varint(levels.len() as u64);
        out.counted(&write_run(levels.iter().copied()));
        out.u8(u8::from(held.len() == levels.len() && !held.is_empty()));
        if held.len() == levels.len() && !held.is_empty() {
            out.counted(&write_run(held.iter().zip(&levels).map(|(held, level)| held - level)));
        }
        out.varint(channel.peaks.len() as u64);
        for peak in &channel.peaks {
            out.f64(peak.line / joined as f64);
            out.f64(peak.dbfs);
        }
    }
}

/// Reads spectra; `settings` are those of the viewport.
pub(super) fn read(
    from: &mut Reader<'_>,
    settings: impl Fn(u64) -> SpectrumSettings,
) -> Result<SpectrumView, Malformed> {
    let settings = settings(from.varint()?);
    let size = from.count(SIZE_MAX)?.max(2);
    let joined = (from.count(SIZE_MAX)? / size).max(1);
    let is_two_sided = from.u8()? & 1 != 0;
    let mut channels = Vec::new();
    for _ in 0..from.count(CHANNELS_MAX)? {
        let channel = from.count(CHANNELS_MAX)?;
        let lines = from.count(LINES_MAX)?;
        let levels = read_run(from.counted()?, lines)?;
        let held = match from.u8()? {
            0 => Vec::new(),
            _ => read_run(from.counted()?, lines)?,
        };
        let held = held.iter().zip(&levels).map(|(held, level)| level_of(held.wrapping_add(*level), EIGHTHS));
        let mut peaks = Vec::new();
        for _ in 0..from.count(PEAKS_MAX)? {
            peaks.push(Peak { line: from.f64()?, dbfs: from.f64()? });
        }
        channels.push(ChannelSpectrum {
            channel,
            hold_dbfs: held.collect(),
            dbfs: levels.into_iter().map(|steps| level_of(steps, EIGHTHS)).collect(),
            peaks,
        });
    }
    Ok(SpectrumView { settings, size, joined, is_two_sided, channels, waterfall: None })
}

/// The rows of the last waterfall, identical at both ends.
#[derive(Debug, Default)]
pub(super) struct Rows {
    channel: usize,
    width: usize,
    cells: Vec<i16>,
}

impl Rows {
    pub(super) fn write(&mut self, view: &WaterfallView, out: &mut Writer) {
        let width = view.width.max(1);
        let rows = view.cells.len() / width;
        let cells: Vec<i16> = view.cells.iter().map(|&level| steps(level, HALVES) as i16).collect();
        let is_like = (self.channel, self.width, self.cells.len()) == (view.channel, width, cells.len());
        // Rows are anchored to the sample index, so most old rows only move.
        let is_kept = |row: usize, moved: usize| {
            let own = &cells[row * width..][..width];
            is_like && row >= moved && *own == self.cells[(row - moved) * width..][..width]
        };
        let kept = |moved: usize| (0..rows).filter(|&row| is_kept(row, moved)).count();
        let moved = (0..rows).rev().max_by_key(|&moved| kept(moved)).unwrap_or(0);
        let new: Vec<usize> = (0..rows).filter(|&row| !is_kept(row, moved)).collect();
        out.varint(view.channel as u64);
        out.varint(width as u64);
        out.varint(rows as u64);
        [view.span_samples, view.band.0, view.band.1].into_iter().for_each(|value| out.f64(value));
        out.varint(view.number);
        out.u8(view.sampled.map_or(0, |sampled| 1 + u8::from(sampled.is_summary)));
        if let Some(Sampled { done, all, .. }) = view.sampled {
            out.varint(done);
            out.varint(all);
        }
        out.varint(moved as u64);
        let mut bits = vec![0u8; rows.div_ceil(8)];
        new.iter().for_each(|row| bits[row / 8] |= 1 << (row % 8));
        bits.into_iter().for_each(|bits| out.u8(bits));
        let along = new.iter().map(|row| &cells[row * width..][..width]).flat_map(|row| {
            // Each row starts from zero: the previous row ends at another frequency.
            let before = std::iter::once(0).chain(row.iter().copied());
            row.iter().zip(before).map(|(now, before)| i32::from(*now) - i32::from(before))
        });
        out.counted(&write_differences(along));
        *self = Rows { channel: view.channel, width, cells };
    }

    pub(super) fn read(&mut self, from: &mut Reader<'_>, number: u64) -> Result<WaterfallView, Malformed> {
        let channel = from.count(CHANNELS_MAX)?;
        let (width, rows) = (from.count(WIDTH_MAX)?.max(1), from.count(ROWS_MAX)?);
        let (span_samples, band) = (from.f64()?, (from.f64()?, from.f64()?));
        let _number = from.varint()?;
        let sampled = match from.u8()? {
            0 => None,
            how => Some(Sampled { done: from.varint()?, all: from.varint()?, is_summary: how == 2 }),
        };
        let moved = from.count(rows)?;
        let bits = (0..rows.div_ceil(8)).map(|_| from.u8()).collect::<Result<Vec<_>, _>>()?;
        let is_new = |row: usize| bits[row / 8] >> (row % 8) & 1 != 0;
        let new = (0..rows).filter(|&row| is_new(row)).count();
        let differences = read_differences(from.counted()?, new * width)?;
        let mut differences = differences.chunks_exact(width);
        let is_like = (self.channel, self.width) == (channel, width);
        let mut cells = Vec::with_capacity(rows * width);
        for row in 0..rows {
            if let Some(row) = is_new(row).then(|| differences.next()).flatten() {
                let mut level = 0i32;
                cells.extend(row.iter().map(|difference| {
                    level = level.wrapping_add(*difference);
                    level as i16
                }));
                continue;
            }
            let kept = row.checked_sub(moved).filter(|_| is_like);
            let kept = kept.and_then(|row| self.cells.get(row * width..(row + 1) * width));
            cells.extend_from_slice(kept.ok_or(Malformed("its waterfall continues from an unknown one"))?);
        }
        let levels = cells.iter().map(|&steps| level_of(steps.into(), HALVES)).collect();
        *self = Rows { channel, width, cells };
        Ok(WaterfallView { channel, width, band, cells: levels, span_samples, sampled, number })
    }
}

fn write_differences(values: impl Iterator<Item = i32>) -> Vec<u8> {
    use crate::remote::residuals::{BitWriter, Context};
    let (mut out, mut context) = (BitWriter::default(), Context::default());
    values.for_each(|value| context.write_signed(value, &mut out));
    out.finish()
}

fn read_differences(bytes: &[u8], count: usize) -> Result<Vec<i32>, Malformed> {
    use crate::remote::residuals::{BitReader, Context};
    let (mut from, mut context) = (BitReader::new(bytes), Context::default());
    from.has_room_for(count)?;
    (0..count).map(|_| context.read_signed(&mut from)).collect()
}

/// Converts a level to integer steps, `per_db` steps per decibel.
fn steps(level: f32, per_db: f32) -> i32 {
    match level {
        level if level.is_nan() => NOT_A_NUMBER,
        f32::NEG_INFINITY => NOTHING,
        level => ((level * per_db).round() as i32).clamp(NOTHING + 1, NOT_A_NUMBER - 1),
    }
}

fn level_of(steps: i32, per_db: f32) -> f32 {
    match steps {
        NOT_A_NUMBER => f32::NAN,
        NOTHING => f32::NEG_INFINITY,
        steps => steps as f32 / per_db,
    }
}

const EIGHTHS: f32 = 8.0;
const HALVES: f32 = 2.0;
const NOTHING: i32 = i16::MIN as i32;
const NOT_A_NUMBER: i32 = i16::MAX as i32;
const LINES_WRITTEN_MAX: usize = 4096;
/// Limits for received messages.
const LINES_MAX: usize = 1 << 15;
const SIZE_MAX: usize = 1 << 20;
const CHANNELS_MAX: usize = 256;
const PEAKS_MAX: usize = 64;
const WIDTH_MAX: usize = 4096;
const ROWS_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn view(lines: usize) -> SpectrumView {
        let level = |line: usize| match line {
            3 => f32::NEG_INFINITY,
            5 => f32::NAN,
            line => -100.0 + (line * 7 % 13) as f32,
        };
        SpectrumView {
            settings: SpectrumSettings::default(),
            size: lines * 2,
            joined: 1,
            is_two_sided: false,
            channels: vec![ChannelSpectrum {
                channel: 2,
                dbfs: (0..lines).map(level).collect(),
                hold_dbfs: (0..lines).map(|line| -80.0 + line as f32 % 4.0).collect(),
                peaks: vec![Peak { line: 100.5, dbfs: -20.25 }],
            }],
            waterfall: None,
        }
    }

    #[test]
    fn spectra_come_as_they_are_and_of_many_lines_the_highest() {
        let again = |view: &SpectrumView| {
            let mut out = Writer::default();
            write(view, 4, &mut out);
            let mut from = Reader::new(&out.bytes);
            let read =
                read(&mut from, |number| SpectrumSettings { averages: number as u32, ..view.settings });
            from.end().unwrap();
            read.unwrap()
        };
        let (small, read) = (view(512), again(&view(512)));
        assert_eq!(read.settings.averages, 4);
        let [was, is] = [&small, &read].map(|view| view.channels[0].clone());
        let bits = |levels: &[f32]| levels.iter().map(|level| level.to_string()).collect::<Vec<_>>();
        assert_eq!(bits(&is.dbfs), bits(&was.dbfs));
        assert_eq!((is.hold_dbfs.len(), is.peaks, read.size), (512, was.peaks, 1024));
        let large = again(&view(65_536));
        let channel = &large.channels[0];
        assert_eq!((large.size, large.transform_size(), channel.dbfs.len()), (8192, 131_072, 4096));
        assert_eq!(channel.peaks[0].line, 100.5 / 16.0);
        assert_eq!(channel.dbfs[100], -88.0, "the highest of sixteen");
        assert_eq!(large.cycles_per_sample(channel.peaks[0].line), 100.5 / 131_072.0);
    }

    #[test]
    fn rows_that_only_moved_are_not_said_again() {
        let rows = |from: u64, changed: &[u64]| {
            let cell = |row: u64, x: u64| {
                let number = from.wrapping_sub(row);
                let mixed = (number * 256 + x + u64::from(changed.contains(&row)))
                    .wrapping_mul(0x9e37_79b9_7f4a_7c15);
                -90.0 + (mixed >> 60) as f32 * 0.5
            };
            let cells = (0..128u64).flat_map(|row| (0..256u64).map(move |x| cell(row, x)));
            WaterfallView {
                channel: 1,
                width: 256,
                band: (-0.125, 0.25),
                cells: cells.collect(),
                span_samples: 1e6,
                sampled: Some(Sampled { done: 3, all: 9, is_summary: true }),
                number: from,
            }
        };
        let (mut there, mut here) = (Rows::default(), Rows::default());
        let mut lengths = Vec::new();
        // The newest row grows; a row in the middle improves.
        let views = [(1000, &[][..]), (1003, &[]), (1003, &[]), (1003, &[0]), (1004, &[0, 70]), (5000, &[])];
        for (from, changed) in views {
            let (view, mut out) = (rows(from, changed), Writer::default());
            there.write(&view, &mut out);
            lengths.push(out.bytes.len());
            let mut reader = Reader::new(&out.bytes);
            assert_eq!(here.read(&mut reader, from).unwrap(), view);
            reader.end().unwrap();
        }
        let row = (lengths[0] - lengths[2]) / 128;
        assert!(lengths[2] < 80 && lengths[5] > lengths[0] / 2, "{lengths:?}");
        // Three new rows; one that grew; the one before as it became, a new one, and one in the middle.
        for (length, rows) in [(lengths[1], 3), (lengths[3], 1), (lengths[4], 3)] {
            assert!(length <= lengths[2] + rows * row + rows * row / 4, "{lengths:?}");
        }
        // A row of a waterfall that is not known.
        let (mut out, mut other) = (Writer::default(), Rows::default());
        there.write(&rows(5001, &[]), &mut out);
        assert!(other.read(&mut Reader::new(&out.bytes), 1).is_err());
    }
}
