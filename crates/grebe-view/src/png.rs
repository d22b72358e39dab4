//! The PNG face: one picture to a file, without a display or a GPU.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use grebe_scope::raster::{self, Axis, Lane, Layer, Trace};

use crate::error::ViewError;
use crate::face::Face;
use crate::link::ScopeLink;
use crate::options::ViewOptions;
use crate::picture::Picture;
use crate::spectra::DB_A_COUNT;
use grebe_flow::monotonic_ns;

/// What to draw, and when.
#[derive(Debug, Clone, PartialEq)]
pub struct PngOptions {
    /// The file; replaced as a whole where it exists.
    pub path: PathBuf,
    /// Width in pixels, 160 to 16384.
    pub width: u32,
    /// Height in pixels, 120 to 16384.
    pub height: u32,
    /// How long after the first sample the picture is taken, by the clock or by the stream, whichever is first; the
    /// end of the stream takes it at once.
    pub after: Duration,
    /// How long to wait for the first sample.
    pub wait: Duration,
    /// Whether the picture's channels are to be measured, for whoever reads the [`Picture`] that is returned.
    pub measure: bool,
}

impl PngOptions {
    /// 1280 x 720 pixels, two seconds after the first sample, which may take ten to come.
    pub fn new(path: impl Into<PathBuf>) -> PngOptions {
        PngOptions {
            path: path.into(),
            width: 1280,
            height: 720,
            after: Duration::from_secs(2),
            wait: Duration::from_secs(10),
            measure: false,
        }
    }
}

/// Waits, draws, and writes the file; returns what was drawn. The file appears whole or not at all.
///
/// # Errors
/// [`ViewError::NothingArrived`], [`ViewError::Scope`] for a size out of range, [`ViewError::Write`].
pub fn render_png(link: &ScopeLink, options: ViewOptions, png: &PngOptions) -> Result<Picture, ViewError> {
    let mut face = Face::new(link.clone(), options);
    if png.measure {
        face.controls.set_measuring();
    }
    wait_for_picture(&mut face, png)?;
    let image = draw(&mut face, png.width, png.height)?;
    write_whole(&png.path, &image.to_png()?)
        .map_err(|source| ViewError::Write { path: png.path.clone(), source })?;
    Ok(face.picture.clone())
}

fn wait_for_picture(face: &mut Face, png: &PngOptions) -> Result<(), ViewError> {
    let begun = Instant::now();
    let mut first_seen: Option<Instant> = None;
    let columns = raster::plot_columns(png.width);
    loop {
        face.request(columns);
        std::thread::sleep(LOOK_INTERVAL);
        face.refresh();
        let picture = &face.picture;
        if picture.counts.samples > 0 {
            let seen = *first_seen.get_or_insert_with(Instant::now);
            let stream_s = picture.counts.samples as f64 / picture.rate_or_one();
            let is_reached = picture.axis_unit() == "s" && stream_s >= png.after.as_secs_f64();
            if picture.is_ended || is_reached || seen.elapsed() >= png.after || face.link.is_closed() {
                return Ok(());
            }
        } else if picture.is_ended || begun.elapsed() >= png.wait || face.link.is_closed() {
            let seconds = begun.elapsed().as_secs_f64();
            return Err(ViewError::NothingArrived { seconds, path: png.path.clone() });
        }
    }
}

/// What the face shows now, `width` x `height` pixels: the traces, and the spectrum below where it is on.
pub(crate) fn draw(face: &mut Face, width: u32, height: u32) -> Result<raster::Image, ViewError> {
    face.renew_hud(monotonic_ns());
    let show = face.controls.show;
    let below = [show.spectrum, show.waterfall].into_iter().filter(|&is_shown| is_shown).count() as u32;
    let part = (height * 2 / 5).checked_div(below).map_or(0, |part| part.max(PART_HEIGHT_MIN));
    let mut parts = vec![draw_traces(face, width, height.saturating_sub(part * below).max(PART_HEIGHT_MIN))?];
    if show.spectrum {
        parts.push(draw_spectrum(face, width, part)?);
    }
    if show.waterfall {
        parts.push(draw_waterfall(face, width, part)?);
    }
    Ok(raster::Image::stack(&parts)?)
}

fn draw_traces(face: &mut Face, width: u32, height: u32) -> Result<raster::Image, ViewError> {
    let theme = face.controls.theme().theme();
    let ranges: Vec<_> = (0..face.picture.channels.len()).map(|place| face.range(place)).collect();
    let setups: Vec<_> = face.picture.channels.iter().map(|data| (data, face.setup(data.channel))).collect();
    let names: Vec<String> = setups.iter().map(|(data, setup)| setup.label(data.channel)).collect();
    let marks = face.trigger_marks();
    let levels: Vec<Vec<(f64, &str)>> = setups
        .iter()
        .map(|(data, setup)| {
            let levels = marks.levels.iter().filter(|(channel, _)| *channel == data.channel);
            let levels = levels.map(|(_, level)| (setup.value(*level), ""));
            // Those of the selected channel.
            let cursors = face.controls.value_cursors().filter(|_| data.channel == face.controls.selected);
            let cursors = cursors.into_iter().flatten().zip(["A", "B"]);
            levels.chain(cursors).collect()
        })
        .collect();
    let mut lanes: Vec<Lane<'_>> = setups
        .iter()
        .zip(&names)
        .zip(&ranges)
        .zip(&levels)
        .map(|((((data, setup), name), range), levels)| Lane {
            levels,
            color: Some(setup.trace_color(data.channel, &theme)),
            scale: setup.scale,
            offset: setup.offset,
            unit: &setup.unit,
            ..Lane::new(name, Trace::Columns(&data.columns), range.bottom, range.top)
        })
        .collect();
    // All in one lane, labelled for the selected channel; each fills it by its own range.
    let front = setups.iter().position(|(data, _)| data.channel == face.controls.selected).unwrap_or(0);
    let layers: Vec<Layer<'_>> = match ranges.get(front) {
        Some(lane) if face.controls.show.overlay => setups
            .iter()
            .zip(&ranges)
            .map(|((data, setup), range)| {
                let stretch = lane.height() / range.height();
                Layer {
                    color: setup.trace_color(data.channel, &theme),
                    columns: &data.columns,
                    scale: setup.scale * stretch,
                    offset: lane.bottom + (setup.offset - range.bottom) * stretch,
                }
            })
            .collect(),
        _ => Vec::new(),
    };
    if !layers.is_empty() {
        lanes = vec![Lane { trace: Trace::Layers(&layers), ..lanes.swap_remove(front) }];
    }
    let pieces = face.hud.pieces();
    let header: Vec<&str> = pieces.iter().map(String::as_str).collect();
    let (start, end, _) = face.axis();
    let axis = Axis { start, end, unit: face.picture.axis_unit() };
    let mut cursors: Vec<_> = marks
        .part
        .map(|part| raster::Cursor { at: start + part * (end - start), label: "T" })
        .into_iter()
        .collect();
    let placed = face.controls.cursors().into_iter().flatten().zip(["A", "B"]);
    cursors.extend(placed.map(|(at, label)| raster::Cursor { at, label }));
    let picture = raster::Picture {
        header: &header,
        lanes: &lanes,
        axis,
        cursors: &cursors,
        ..raster::Picture::new(width, height, theme)
    };
    Ok(picture.draw()?)
}

fn draw_spectrum(face: &mut Face, width: u32, height: u32) -> Result<raster::Image, ViewError> {
    let theme = face.controls.theme().theme();
    let range = face.spectrum_range();
    let traces = face.spectrum_traces(raster::plot_columns(width));
    let layers: Vec<Layer<'_>> = traces
        .iter()
        .map(|trace| Layer {
            color: face.setup(trace.channel).trace_color(trace.channel, &theme),
            columns: &trace.columns,
            scale: DB_A_COUNT,
            offset: 0.0,
        })
        .collect();
    let lane = Lane {
        color: Some(theme.text_dim),
        unit: "dB",
        ..Lane::new("dBFS", Trace::Layers(&layers), range.bottom, range.top)
    };
    let peaks = face.peak_rows(if layers.len() > 1 { 1 } else { 3 });
    let peaks = peaks.into_iter().map(|row| row.cells.join(" "));
    let header: Vec<String> =
        [format!("spectrum: {}", face.spectrum_words())].into_iter().chain(peaks).collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let (start, end, unit, _) = face.spectrum_axis(10);
    let picture = raster::Picture {
        header: &header,
        lanes: &[lane],
        axis: Axis { start, end, unit },
        ..raster::Picture::new(width, height, theme)
    };
    Ok(picture.draw()?)
}

fn draw_waterfall(face: &mut Face, width: u32, height: u32) -> Result<raster::Image, ViewError> {
    let theme = face.controls.theme().theme();
    let range = face.spectrum_range();
    let (start, end, unit, _) = face.spectrum_axis(10);
    let mut cells = Vec::new();
    let (mut columns, mut name, mut color) = (1, String::new(), theme.text);
    let mut seconds = 0.0;
    if let Some(waterfall) = face.picture.spectrum.as_ref().and_then(|view| view.waterfall.as_ref()) {
        let bright = |&db: &f32| ((f64::from(db) - range.bottom) / range.height()).clamp(0.0, 1.0) as f32;
        // Not-a-number, where samples are missing, stays dark.
        cells = waterfall.cells.iter().map(|db| if db.is_nan() { 0.0 } else { bright(db) }).collect();
        let setup = face.setup(waterfall.channel);
        columns = waterfall.width;
        name = setup.label(waterfall.channel);
        color = setup.trace_color(waterfall.channel, &theme);
        seconds = waterfall.span_samples / face.picture.rate_or_one();
    }
    let lane = Lane {
        color: Some(color),
        unit: face.picture.axis_unit(),
        ..Lane::new(&name, Trace::Intensity { width: columns, cells: &cells }, -seconds, 0.0)
    };
    let picture = raster::Picture {
        lanes: &[lane],
        axis: Axis { start, end, unit },
        ..raster::Picture::new(width, height, theme)
    };
    Ok(picture.draw()?)
}

/// Beside the file first, then in its place.
fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let name = path.file_name().ok_or(std::io::ErrorKind::InvalidInput)?.to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let written = fs::write(&beside, bytes).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // Already failing: what is left of the attempt is not worth another message.
        let _ = fs::remove_file(&beside);
    }
    written
}

const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// Of a part of the picture, in pixels.
const PART_HEIGHT_MIN: u32 = 120;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ScopeFeed, SourceStatus, ThemeChoice, testing};

    fn options() -> ViewOptions {
        ViewOptions::new(|| SourceStatus { name: "test".into(), ..SourceStatus::default() })
    }

    #[test]
    fn an_ended_stream_is_drawn_at_once_and_nothing_half_written_is_left() {
        let folder = std::env::temp_dir().join(format!("grebe-view-png-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (mut feed, link) = ScopeFeed::new(1 << 20);
        feed.ingest(&testing::sine_batch(0, 2, 2000, 1e3)).unwrap();
        feed.finish();
        let path = folder.join("scope.png");
        let picture = render_png(&link, options(), &PngOptions::new(&path)).unwrap();
        assert_eq!(picture.channels.len(), 2);
        assert!(fs::read(&path).unwrap().starts_with(b"\x89PNG"));
        let missing = render_png(&link, options(), &PngOptions::new(folder.join("no/such.png")));
        assert!(matches!(missing, Err(ViewError::Write { .. })), "{missing:?}");
        let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["scope.png"]);
        fs::remove_dir_all(&folder).unwrap();
    }

    /// No driver draws these: they are the same on every machine.
    #[test]
    fn pictures_are_as_they_were_designed() {
        let mut results = egui_kittest::SnapshotResults::new();
        for (theme, name) in [(ThemeChoice::Dark, "dark"), (ThemeChoice::Light, "light")] {
            let (mut feed, link) = ScopeFeed::new(1 << 20);
            for block in (0..40).filter(|block| !(20..24).contains(block)) {
                feed.ingest(&testing::sine_batch(block * 50, 3, 50, 1e3)).unwrap();
            }
            feed.finish();
            let mut options = options();
            (options.theme, options.span) = (Some(theme), Some(2.0));
            let mut face = Face::new(link, options);
            for (keys, what) in [("v", "traces"), ("mc", "trigger"), ("fw", "spectrum")] {
                for key in keys.chars() {
                    face.act(crate::keys::char_action(key).unwrap());
                }
                face.request(raster::plot_columns(640));
                face.refresh();
                let png = draw(&mut face, 640, 420).unwrap().to_png().unwrap();
                let image = image::load_from_memory(&png).unwrap().to_rgba8();
                results.add(egui_kittest::try_image_snapshot(&image, format!("png_{what}_{name}")));
            }
        }
    }

    #[test]
    fn a_silent_source_is_an_error_that_names_the_file() {
        let (_feed, link) = ScopeFeed::new(1 << 20);
        let png = PngOptions { wait: Duration::from_millis(20), ..PngOptions::new("never.png") };
        let error = render_png(&link, options(), &png).unwrap_err();
        assert!(error.to_string().contains("never.png"), "{error}");
        assert!(!Path::new("never.png").exists());
    }
}
