//! Draws the picture on the CPU: traces, spectrum and waterfall, one below the other.

use grebe_flow::monotonic_ns;
use grebe_scope::raster::{self, Axis, Cursor, Lane, Layer, Theme, Trace};

use crate::data::picture::LaneColumns;
use crate::error::Error;
use crate::model::annotations::WaterfallMark;
use crate::model::channel::ChannelSetup;
use crate::model::controls::Show;
use crate::model::harmonics::Harmonic;
use crate::model::levels::LEVEL_UNIT;
use crate::model::vertical::ValueRange;
use crate::model::view_model::ViewModel;

/// Encodes the model's present view as a PNG file of `width` x `height` pixels.
pub(crate) fn encode(model: &mut ViewModel, width: u32, height: u32) -> Result<Vec<u8>, Error> {
    let label_chars = model.label_chars();
    Ok(image(model, width, height, label_chars)?.to_png()?)
}

/// The same, as an image.
pub(super) fn image(
    model: &mut ViewModel,
    width: u32,
    height: u32,
    label_chars: usize,
) -> Result<raster::Image, Error> {
    let size = Size { width, height, label_chars };
    model.renew_hud(monotonic_ns());
    let show = model.controls.show;
    let below = parts_below(show);
    let part = part_height(show, height);
    let traces_height = height.saturating_sub(part * below).max(PART_HEIGHT_MIN);
    let mut parts = vec![draw_traces(model, Size { height: traces_height, ..size })?];
    let part = Size { height: part, ..size };
    if show.spectrum {
        parts.push(draw_spectrum(model, part)?);
    }
    if show.waterfall {
        parts.push(draw_waterfall(model, part)?);
    }
    if show.xy {
        parts.push(draw_xy(model, part)?);
    }
    Ok(raster::Image::stack(&parts)?)
}

/// Size of a part of the picture in pixels, and the width of its labels in characters.
#[derive(Clone, Copy)]
struct Size {
    width: u32,
    height: u32,
    label_chars: usize,
}

impl Size {
    fn picture<'a>(self, theme: Theme) -> raster::Picture<'a, f32> {
        let Size { width, height, label_chars } = self;
        raster::Picture { label_chars, ..raster::Picture::new(width, height, theme) }
    }
}

/// Height in pixels of each part below the traces.
pub(super) fn part_height(show: Show, height: u32) -> u32 {
    (height * 2 / 5).checked_div(parts_below(show)).map_or(0, |part| part.max(PART_HEIGHT_MIN))
}

fn parts_below(show: Show) -> u32 {
    [show.spectrum, show.waterfall, show.xy].into_iter().map(u32::from).sum()
}

fn draw_traces(model: &mut ViewModel, size: Size) -> Result<raster::Image, Error> {
    let ranges: Vec<_> = (0..model.seen.picture.lanes.len()).map(|place| model.range(place)).collect();
    let model = &*model;
    let theme = model.controls.theme.colors();
    let channels = channels(model, &ranges);
    let mut lanes: Vec<Lane<'_, f32>> = channels.iter().map(|channel| channel.lane(&theme)).collect();
    // All channels in one lane, each scaled to its own range, with the labels of the selected channel.
    let front = model.front_lane();
    let layers: Vec<Layer<'_, f32>> = match ranges.get(front) {
        Some(lane) if model.controls.show.overlay => {
            channels.iter().map(|channel| channel.layer(lane, &theme)).collect()
        }
        _ => Vec::new(),
    };
    if !layers.is_empty() {
        lanes = vec![Lane { trace: Trace::Layers(&layers), ..lanes.swap_remove(front) }];
    }
    let pieces = model.seen.hud.pieces();
    let header: Vec<&str> = pieces.iter().map(String::as_str).collect();
    let (start, end, _) = model.axis();
    let arrived = model.arrival_marks();
    // One label at the start of each range, and a second line at its end.
    let annotations = model.annotation_marks().into_iter();
    let annotations = annotations.flat_map(|it| [(it.parts[0], it.words), (it.parts[1], String::new())]);
    let mut changes = model.change_marks();
    changes.extend(annotations.filter(|(part, _)| (0.0..=1.0).contains(part)));
    let picture = raster::Picture {
        header: &header,
        lanes: &lanes,
        axis: Axis { start, end, unit: model.seen.picture.axis_unit() },
        cursors: &cursors(model, &changes, start, end),
        arrived: arrived.as_deref(),
        ..size.picture(theme)
    };
    Ok(picture.draw()?)
}

struct Channel<'a> {
    data: &'a LaneColumns,
    range: ValueRange,
    setup: ChannelSetup,
    label: String,
    /// Marked values with their names: trigger levels, cursors of the selected channel.
    levels: Vec<(f64, &'static str)>,
}

fn channels<'a>(model: &'a ViewModel, ranges: &[ValueRange]) -> Vec<Channel<'a>> {
    let marks = model.trigger_marks();
    let channel = |(data, &range): (&'a LaneColumns, &ValueRange)| {
        let setup = model.setup(data.lane);
        let levels = marks.levels.iter().filter(|(lane, _)| *lane == data.lane);
        let levels = levels.map(|(_, level)| (setup.value(*level), ""));
        let cursors = model.controls.cursors.values.filter(|_| data.lane == model.selected());
        let levels = levels.chain(cursors.into_iter().flatten().zip(["A", "B"])).collect();
        let clip = if data.is_clipped { "  CLIP" } else { "" };
        Channel { data, range, label: setup.label(data.lane) + clip, setup, levels }
    };
    model.seen.picture.lanes.iter().zip(ranges).map(channel).collect()
}

impl Channel<'_> {
    fn lane(&self, theme: &Theme) -> Lane<'_, f32> {
        let columns = &self.data.columns;
        let trace =
            self.data.line.as_ref().map_or(Trace::Columns(columns), |line| Trace::Line(columns, line));
        Lane {
            levels: &self.levels,
            color: Some(self.setup.trace_color(self.data.lane, theme)),
            scale: self.setup.scale,
            offset: self.setup.offset,
            unit: &self.setup.unit,
            ..Lane::new(&self.label, trace, self.range.bottom, self.range.top)
        }
    }

    /// The trace in a lane of another range.
    fn layer(&self, lane: &ValueRange, theme: &Theme) -> Layer<'_, f32> {
        let stretch = lane.height() / self.range.height();
        Layer {
            color: self.setup.trace_color(self.data.lane, theme),
            columns: &self.data.columns,
            line: self.data.line.as_ref(),
            scale: self.setup.scale * stretch,
            offset: lane.bottom + (self.setup.offset - self.range.bottom) * stretch,
        }
    }
}

fn cursors<'a>(model: &ViewModel, changes: &'a [(f64, String)], start: f64, end: f64) -> Vec<Cursor<'a>> {
    let trigger =
        model.trigger_marks().part.map(|part| Cursor { at: start + part * (end - start), label: "T" });
    let placed = model.controls.cursors.times.into_iter().flatten().zip(["A", "B"]);
    let changes = changes.iter().map(|(part, label)| Cursor { at: start + part * (end - start), label });
    trigger.into_iter().chain(placed.map(|(at, label)| Cursor { at, label })).chain(changes).collect()
}

fn draw_spectrum(model: &mut ViewModel, size: Size) -> Result<raster::Image, Error> {
    let theme = model.controls.theme.colors();
    let range = model.spectrum_range();
    let right = levels_width(model);
    let traces = model.spectrum_traces(raster::plot_columns_beside(size.width - right, size.label_chars));
    let layers: Vec<Layer<'_, f32>> = traces
        .iter()
        .map(|trace| Layer {
            color: channel_color(model, trace.channel, &theme),
            columns: &trace.columns,
            line: None,
            scale: 1.0,
            offset: 0.0,
        })
        .collect();
    let lane = Lane {
        color: Some(theme.text_dim),
        unit: LEVEL_UNIT,
        ..Lane::new("level", Trace::Layers(&layers), range.bottom, range.top)
    };
    let peaks = model.peak_rows(if layers.len() > 1 { 1 } else { 3 });
    let peaks = peaks.into_iter().map(|row| row.cells.join(" "));
    let rows = model.cursor_rows();
    let mut header: Vec<String> =
        [format!("spectrum: {}", model.spectrum_words())].into_iter().chain(peaks).collect();
    if model.controls.markers.is_some() {
        header.extend(rows.iter().map(|row| {
            format!("{} A {} B {} \u{394} {}", row.cells[0], row.cells[1], row.cells[2], row.cells[3])
        }));
    }
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let (start, end, unit, _) = model.spectrum_axis(10);
    let harmonics = model.harmonics();
    let labels: Vec<String> = harmonics.iter().map(Harmonic::label).collect();
    let at = |part: f64| start + part * (end - start);
    let markers = model.marker_marks();
    let marks = harmonics.iter().zip(&labels).map(|(it, label)| Cursor { at: at(it.part), label });
    let marks = marks.chain(markers.iter().map(|&(part, label)| Cursor { at: at(part), label }));
    let marks: Vec<Cursor<'_>> = marks.collect();
    let picture = raster::Picture {
        right,
        cursors: &marks,
        header: &header,
        lanes: &[lane],
        axis: Axis { start, end, unit },
        ..size.picture(theme)
    };
    Ok(picture.draw()?)
}

fn draw_waterfall(model: &mut ViewModel, size: Size) -> Result<raster::Image, Error> {
    let theme = model.controls.theme.colors();
    let range = model.waterfall_range();
    let (start, end, unit, _) = model.spectrum_axis(10);
    let words = model.waterfall_words();
    let channel = model.selected().channel;
    let (name, color) = (model.channel_label(channel), channel_color(model, channel, &theme));
    let bright = |db: f32| ((f64::from(db) - range.bottom) / range.height()).clamp(0.0, 1.0) as f32;
    let times = model.waterfall_times().unwrap_or(ValueRange { bottom: 0.0, top: 0.0 });
    let marks = model.waterfall_marks();
    let names = marks.iter().map(|mark| mark.words.as_str()).filter(|words| !words.is_empty());
    let header: Vec<&str> = words.as_deref().into_iter().chain(names.take(NAMES_MAX)).collect();
    let lane = |trace| Lane {
        color: Some(color),
        unit: model.seen.picture.axis_unit(),
        ..Lane::new(&name, trace, times.bottom, times.top)
    };
    let lanes: [Lane<'_, f32>; 1] = [lane(Trace::Columns(&[]))];
    let mut picture = raster::Picture {
        levels: Some(Axis { start: range.bottom, end: range.top, unit: LEVEL_UNIT }),
        right: levels_width(model),
        header: &header,
        lanes: &lanes,
        axis: Axis { start, end, unit },
        ..size.picture(theme)
    };
    let (columns, rows) = picture.lane_size();
    let levels = model.waterfall_pixels((columns, rows)).unwrap_or_default().into_iter();
    let mut cells: Vec<f32> = levels.map(|db| if db.is_nan() { f32::NAN } else { bright(db) }).collect();
    marks.iter().for_each(|mark| outline(&mut cells, columns, mark));
    let lanes = [lane(Trace::Intensity { width: columns, cells: &cells })];
    picture.lanes = &lanes;
    Ok(picture.draw()?)
}

/// Room for the level bar, so that spectrum and waterfall share one axis.
fn levels_width(model: &ViewModel) -> u32 {
    if model.controls.show.waterfall { raster::LEVELS_WIDTH } else { 0 }
}

/// Draws the edges of a box into the cells of a waterfall.
fn outline(cells: &mut [f32], columns: usize, mark: &WaterfallMark) {
    let rows = cells.len() / columns.max(1);
    if rows == 0 {
        return;
    }
    let place = |part: f64, count: usize| ((part * count as f64) as usize).min(count - 1);
    let [top, bottom] = mark.rows.map(|part| place(part, rows));
    let [left, right] = mark.parts.map(|part| place(part, columns));
    for row in top..=bottom {
        let is_edge = row == top || row == bottom;
        let cells = &mut cells[row * columns..][left..=right];
        let last = cells.len() - 1;
        cells
            .iter_mut()
            .enumerate()
            .filter(|(at, _)| is_edge || *at == 0 || *at == last)
            .for_each(|(_, cell)| *cell = 1.0);
    }
}

/// Draws one lane over another, as wide as the other plots. Its axes extend so that circles are round.
fn draw_xy(model: &ViewModel, size: Size) -> Result<raster::Image, Error> {
    let theme = model.controls.theme.colors();
    let [x, y] = model.xy_axes(model.xy_size.unwrap_or(pixels(size.width, size.height)));
    let mut cells = Vec::new();
    let mut columns = 1;
    if let Some(view) = &model.seen.picture.xy {
        cells = view.cells.iter().map(|&cell| f32::from(cell) / 255.0).collect();
        columns = view.settings.size.0;
    }
    let words = format!("XY: {}", model.xy_words());
    let lane: Lane<'_, f32> = Lane {
        color: Some(model.setup(y.lane).trace_color(y.lane, &theme)),
        unit: &y.unit,
        ..Lane::new(&y.label, Trace::Intensity { width: columns, cells: &cells }, y.range.bottom, y.range.top)
    };
    let picture = raster::Picture {
        header: &[&words],
        lanes: &[lane],
        axis: Axis { start: x.range.bottom, end: x.range.top, unit: &x.unit },
        ..size.picture(theme)
    };
    Ok(picture.draw()?)
}

/// Pixels of the plot in a part of a picture.
pub(super) fn pixels(width: u32, height: u32) -> (usize, usize) {
    (raster::plot_columns(width), (height.saturating_sub(FRAME) as usize).max(1))
}

/// Maximum names of boxes above a waterfall.
const NAMES_MAX: usize = 8;
/// Pixels above and below the plot of a part.
const FRAME: u32 = 56;

/// The colour of a whole channel.
fn channel_color(model: &ViewModel, channel: usize, theme: &Theme) -> raster::Color {
    let lane = model.channel_lane(channel);
    model.setup(lane).trace_color(lane, theme)
}

/// Minimum height of a part, in pixels.
const PART_HEIGHT_MIN: u32 = 120;
