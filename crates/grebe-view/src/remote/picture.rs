//! Pictures as messages: the columns of each lane, their place, and the place of the trigger.

use std::collections::VecDeque;

use grebe_scope::{ColumnGrid, SampleLine};

use crate::data::lane::{LaneId, Part};
use crate::data::picture::{LaneColumns, Picture};
use crate::data::trigger::{TriggerState, TriggerView};
use crate::data::viewport::{ALL_COLUMNS_MAX, Viewport};
use crate::remote::bytes::{Malformed, Reader, Writer};
use crate::remote::columns::{Placed, is_integer, turned};
use crate::remote::requests::bounded_trigger;
use crate::remote::residuals::{read_run, write_run};

/// The columns of the last picture, identical at both ends.
#[derive(Debug, Default)]
pub(crate) struct Before {
    lanes: Vec<(LaneId, Placed)>,
}

/// A decoded picture message. Facts that change seldom come in text messages.
#[derive(Debug)]
pub(crate) struct Drawn {
    /// The number of the viewport that it answers.
    pub(crate) viewport: u64,
    /// When it was made, on the server's clock.
    pub(crate) server_ns: u64,
    /// Its time stamps are of the server's clock.
    pub(crate) picture: Picture,
    pub(crate) triggered: Option<Triggered>,
}

/// The trigger's values that every picture message carries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Triggered {
    pub(crate) state: TriggerState,
    pub(crate) at: Option<f64>,
    pub(crate) level: f64,
    pub(crate) upper: f64,
}

impl Triggered {
    /// Adds these values to the rest of the trigger's state.
    pub(super) fn put_into(self, view: TriggerView) -> TriggerView {
        let Triggered { state, at, level, upper } = self;
        TriggerView { settings: bounded_trigger(view.settings), state, at, level, upper, ..view }
    }
}

impl Before {
    /// Writes a picture as its difference from the last. `viewport` is the number that it answers.
    pub(crate) fn write(&mut self, picture: &mut Picture, viewport: u64, server_ns: u64, out: &mut Writer) {
        let step = picture.grid.samples_per_column();
        let columns = picture
            .lanes
            .first()
            .map_or((picture.span_samples / step).round() as usize, |lane| lane.columns.len());
        let has_arrived = picture.newest_arrival_ns > 0;
        out.varint(viewport);
        out.u8(flag(picture.is_ended, ENDED)
            | flag(picture.is_estimated, ESTIMATED)
            | flag(picture.trigger.is_some(), TRIGGER)
            | flag(has_arrived, ARRIVED));
        out.f64(step);
        out.zigzag(picture.first_column);
        out.varint(columns as u64);
        out.varint(picture.oldest_index);
        out.varint(picture.next_index);
        out.varint(server_ns);
        if has_arrived {
            out.zigzag(server_ns.wrapping_sub(picture.newest_ts_ns) as i64);
            out.varint(picture.newest_first_index);
            out.varint(server_ns.saturating_sub(picture.newest_arrival_ns));
        }
        if let Some(trigger) = &picture.trigger {
            out.u8(STATES.iter().position(|state| *state == trigger.state).unwrap_or(0) as u8);
            out.u8(u8::from(trigger.at.is_some()));
            out.f64(trigger.level);
            out.f64(trigger.upper);
            trigger.at.into_iter().for_each(|at| out.f64(at));
        }
        out.varint(picture.lanes.len() as u64);
        let (grid, first_column) = (picture.grid, picture.first_column);
        let lanes = picture.lanes.drain(..).map(|lane| {
            let id = lane.lane;
            let before = self.lanes.iter().find(|(it, _)| *it == id).map(|(_, placed)| placed);
            (id, write_lane(lane, grid, first_column, before, out))
        });
        self.lanes = lanes.collect();
    }

    /// Reads the next picture; `viewports` are the recent requests.
    pub(crate) fn read(
        &mut self,
        from: &mut Reader<'_>,
        viewports: &VecDeque<(u64, Viewport)>,
    ) -> Result<Drawn, Malformed> {
        let viewport = from.varint()?;
        let answers =
            viewports.iter().find(|(number, _)| *number == viewport).map(|(_, viewport)| viewport.clone());
        let flags = from.u8()?;
        let step = from.f64()?;
        if !(step > 0.0 && step.is_finite()) {
            return Err(Malformed("its columns have no width"));
        }
        let grid = ColumnGrid::new(step);
        let first_column = from.zigzag()?;
        let columns = from.count(COLUMNS_MAX)?;
        // Twice the range of any scope, and far from overflow.
        let edge = first_column.unsigned_abs().saturating_add(columns as u64);
        if edge > 1 << 62 || edge as f64 * step > INDEX_MAX {
            return Err(Malformed("its columns lie beyond all there can be"));
        }
        let (oldest_index, next_index) = (from.varint()?, from.varint()?);
        let server_ns = from.varint()?;
        let has_arrived = flags & ARRIVED != 0;
        let (newest_ts_ns, newest_first_index, newest_arrival_ns) = match has_arrived {
            true => {
                let newest_ts_ns = server_ns.wrapping_sub(from.zigzag()? as u64);
                // A time of 0 means that nothing arrived yet.
                (newest_ts_ns, from.varint()?, server_ns.saturating_sub(from.varint()?).max(1))
            }
            false => (0, 0, 0),
        };
        let triggered = if flags & TRIGGER != 0 { Some(read_trigger(from)?) } else { None };
        let lanes = from.count(LANES_MAX)?;
        if lanes * columns > ALL_COLUMNS_MAX {
            return Err(Malformed("it has more columns than a picture can have"));
        }
        let interpolation = answers.as_ref().map(|viewport| viewport.interpolation).unwrap_or_default();
        let mut next = Before::default();
        let mut shown = Vec::with_capacity(lanes);
        for _ in 0..lanes {
            let lane = read_lane_id(from)?;
            let before = self.lanes.iter().find(|(it, _)| *it == lane).map(|(_, placed)| placed);
            let flags = from.u8()?;
            let mean = from.f64()?;
            let at_cursors =
                [CURSOR_A, CURSOR_B].map(|it| if flags & it != 0 { Some(from.f64()) } else { None });
            let [a, b] = at_cursors;
            let at_cursors = [a.transpose()?, b.transpose()?];
            let placed = Placed::read((grid, first_column, columns), flags & WHOLE != 0, before, from)?;
            let line_runs = if flags & LINE != 0 { read_runs(from)? } else { Vec::new() };
            let line = (flags & LINE != 0).then(|| line_of(&placed, &line_runs, interpolation));
            shown.push(LaneColumns {
                lane,
                columns: placed.columns.clone(),
                line,
                line_runs,
                is_clipped: flags & CLIPPED != 0,
                mean,
                at_cursors,
            });
            next.lanes.push((lane, placed));
        }
        *self = next;
        let picture = Picture {
            answers,
            is_ended: flags & ENDED != 0,
            is_estimated: flags & ESTIMATED != 0,
            grid,
            first_column,
            left_index: first_column as f64 * grid.samples_per_column(),
            span_samples: columns as f64 * grid.samples_per_column(),
            lanes: shown,
            oldest_index,
            next_index: next_index.max(oldest_index),
            newest_ts_ns,
            newest_first_index,
            newest_arrival_ns,
            ..Picture::default()
        };
        Ok(Drawn { viewport, server_ns, picture, triggered })
    }
}

fn write_lane(
    lane: LaneColumns,
    grid: ColumnGrid,
    first_column: i64,
    before: Option<&Placed>,
    out: &mut Writer,
) -> Placed {
    let placed = Placed::new(grid, first_column, lane.columns);
    write_lane_id(lane.lane, out);
    let [a, b] = lane.at_cursors;
    out.u8(flag(lane.is_clipped, CLIPPED)
        | flag(lane.line.is_some(), LINE)
        | flag(placed.is_whole, WHOLE)
        | flag(a.is_some(), CURSOR_A)
        | flag(b.is_some(), CURSOR_B));
    out.f64(lane.mean);
    a.into_iter().chain(b).for_each(|value| out.f64(value));
    placed.write(before, out);
    if lane.line.is_some() {
        write_runs(&lane.line_runs, out);
    }
    placed
}

pub(crate) fn write_lane_id(lane: LaneId, out: &mut Writer) {
    out.varint(lane.channel as u64);
    out.u8(PARTS.iter().position(|part| *part == lane.part).unwrap_or(0) as u8);
}

pub(crate) fn read_lane_id(from: &mut Reader<'_>) -> Result<LaneId, Malformed> {
    let channel = from.count(CHANNEL_MAX)?;
    let part = *PARTS.get(usize::from(from.u8()?)).ok_or(Malformed("it has an unknown part of a channel"))?;
    Ok(LaneId { channel, part })
}

/// Writes ranges of samples without a gap, each with its first index.
fn write_runs(runs: &[(u64, Vec<f32>)], out: &mut Writer) {
    out.varint(runs.len() as u64);
    for (first, samples) in runs {
        out.varint(*first);
        out.varint(samples.len() as u64);
    }
    write_values(runs.iter().flat_map(|(_, samples)| samples).copied(), out);
}

fn read_runs(from: &mut Reader<'_>) -> Result<Vec<(u64, Vec<f32>)>, Malformed> {
    let runs = from.count(SAMPLES_MAX)?;
    let (mut lengths, mut all) = (Vec::new(), 0);
    for _ in 0..runs {
        let (first, length) = (from.varint()?, from.count(SAMPLES_MAX - all)?);
        if first.checked_add(length as u64).is_none() {
            return Err(Malformed("its samples lie beyond all there can be"));
        }
        all += length;
        lengths.push((first, length));
    }
    let mut values = read_values(from, all)?.into_iter();
    Ok(lengths.into_iter().map(|(first, length)| (first, values.by_ref().take(length).collect())).collect())
}

/// Writes values that change slowly: as integers if all are.
pub(crate) fn write_values(values: impl Iterator<Item = f32> + Clone, out: &mut Writer) {
    let is_whole = values.clone().all(is_integer);
    out.u8(flag(is_whole, WHOLE));
    let number = |value: f32| if is_whole { value as i32 } else { turned(value.to_bits() as i32) };
    out.counted(&write_run(values.map(number)));
}

pub(crate) fn read_values(from: &mut Reader<'_>, count: usize) -> Result<Vec<f32>, Malformed> {
    let is_whole = from.u8()? & WHOLE != 0;
    let numbers = read_run(from.counted()?, count)?;
    let value = |number: i32| if is_whole { number as f32 } else { f32::from_bits(turned(number) as u32) };
    Ok(numbers.into_iter().map(value).collect())
}

fn read_trigger(from: &mut Reader<'_>) -> Result<Triggered, Malformed> {
    let state =
        *STATES.get(usize::from(from.u8()?)).ok_or(Malformed("its trigger is in an unknown state"))?;
    let has_at = from.u8()? != 0;
    let (level, upper) = (from.f64()?, from.f64()?);
    let at = if has_at { Some(from.f64()?) } else { None };
    Ok(Triggered { state, at, level, upper })
}

/// The line through the samples. The same arithmetic as at the server gives the same line.
fn line_of(
    placed: &Placed,
    runs: &[(u64, Vec<f32>)],
    interpolation: grebe_scope::Interpolation,
) -> SampleLine<f32> {
    let before = usize::try_from(-placed.first_column).unwrap_or(0).min(placed.columns.len());
    let (first, columns) = (placed.first_column.max(0) as u64, &placed.columns[before..]);
    let held_from = runs.first().map_or(u64::MAX, |(first, _)| *first);
    let mut line = SampleLine::new(columns.len());
    for ((span, column), number) in line.spans.iter_mut().zip(columns).zip(first..) {
        if !column.is_empty() && placed.grid.span(number).start < held_from {
            *span = Some((column.min, column.max));
        }
    }
    for (from, samples) in runs {
        line.add(placed.grid, first, *from, samples, interpolation);
    }
    line.shift_right(before);
    line
}

fn flag(is_set: bool, bit: u8) -> u8 {
    if is_set { bit } else { 0 }
}

/// Flags of a picture.
const ENDED: u8 = 1;
const ESTIMATED: u8 = 2;
const TRIGGER: u8 = 4;
const ARRIVED: u8 = 8;
/// Flags of a lane.
const CLIPPED: u8 = 1;
const LINE: u8 = 2;
pub(crate) const WHOLE: u8 = 4;
const CURSOR_A: u8 = 8;
const CURSOR_B: u8 = 16;
const STATES: [TriggerState; 4] =
    [TriggerState::Ready, TriggerState::Triggered, TriggerState::Free, TriggerState::Stopped];
const PARTS: [Part; 8] = [
    Part::Real,
    Part::I,
    Part::Q,
    Part::Magnitude,
    Part::MagnitudeDb,
    Part::Phase,
    Part::Frequency,
    Part::Math,
];
/// Limits on the memory that a message can claim at its reader.
pub(crate) const COLUMNS_MAX: usize = 16_384;
pub(crate) const LANES_MAX: usize = 2048;
const INDEX_MAX: f64 = (1u64 << 63) as f64;
const SAMPLES_MAX: usize = 4 * COLUMNS_MAX;
const CHANNEL_MAX: usize = 255;
