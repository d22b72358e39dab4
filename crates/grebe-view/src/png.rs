//! The PNG front end: one picture to a file, without a display or a GPU.

mod draw;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use grebe_scope::raster;

use crate::data::lane::LaneId;
use crate::data::link::ScopeLink;
use crate::data::picture::Picture;
use crate::data::viewport::Viewport;
use crate::error::Error;
use crate::model::channel::ChannelSetup;
use crate::model::common_time::CommonTime;
use crate::model::markers::MarkerLevels;
use crate::model::options::ViewOptions;
use crate::model::view_model::ViewModel;
pub(crate) use draw::encode;

/// What to draw, how large, and when.
#[derive(Debug, Clone, PartialEq)]
pub struct PngOptions {
    /// The file that is written, for what is said of it.
    pub path: PathBuf,
    /// Width in pixels, 160 to 16384.
    pub width: u32,
    /// Height in pixels, 120 to 16384.
    pub height: u32,
    /// How long after the first sample the picture is taken, by the clock or by the stream, whichever is first; the
    /// end of the stream takes it at once.
    pub after: Duration,
    /// How long a picture of what is over may take to show every sample, as that of a recording that comes from another
    /// host; then it is taken as it is.
    pub settle: Duration,
    /// How long to wait for the first sample.
    pub wait: Duration,
    /// Whether to measure the channels: the [`Picture`] that is returned has the measurements.
    pub measure: bool,
}

impl PngOptions {
    /// 1280 x 720 pixels, two seconds after the first sample, which may take ten to come; a minute for all of a recording.
    pub fn new(path: impl Into<PathBuf>) -> PngOptions {
        PngOptions {
            path: path.into(),
            width: 1280,
            height: 720,
            after: Duration::from_secs(2),
            settle: Duration::from_secs(60),
            wait: Duration::from_secs(10),
            measure: false,
        }
    }
}

/// What was drawn, and what its numbers mean.
#[derive(Debug, Clone)]
pub struct Drawn {
    /// The picture.
    pub picture: Picture,
    /// What the numbers of each lane mean: as the options say, or the stream.
    pub setups: Vec<(LaneId, ChannelSetup)>,
    /// What the channels have at the markers of the spectrum; empty where those are off.
    pub markers: Vec<MarkerLevels>,
}

/// Waits, draws, and hands the PNG to `write`; returns what was drawn.
///
/// # Errors
/// [`Error::NothingArrived`], [`Error::Scope`] for a size out of range, [`Error::Write`].
pub fn render_png(
    link: &ScopeLink,
    options: ViewOptions,
    png: &PngOptions,
    write: impl FnOnce(&[u8]) -> std::io::Result<()>,
) -> Result<Drawn, Error> {
    let mut drawn = render_pngs(vec![(link.clone(), options)], png, write)?;
    Ok(drawn.swap_remove(0))
}

/// The same of several scopes, one above the other in one picture, on one axis of time where their streams say how their times relate: each
/// has an equal part of the height.
///
/// # Errors
/// As for [`render_png`]; [`Error::NothingArrived`] where nothing came from any of them, or there is none.
pub fn render_pngs(
    scopes: Vec<(ScopeLink, ViewOptions)>,
    png: &PngOptions,
    write: impl FnOnce(&[u8]) -> std::io::Result<()>,
) -> Result<Vec<Drawn>, Error> {
    let height = png.height.checked_div(scopes.len() as u32).unwrap_or(png.height);
    let model = |(link, options): (ScopeLink, ViewOptions)| {
        let mut model = ViewModel::new(link, options, encode);
        model.controls.is_measuring |= png.measure;
        let show = model.controls.show;
        if show.xy {
            model.xy_size = Some(draw::xy_size(png.width, draw::part_height(show, height)));
        }
        model
    };
    let mut models: Vec<ViewModel> = scopes.into_iter().map(model).collect();
    let mut models: Vec<&mut ViewModel> = models.iter_mut().collect();
    let mut common = CommonTime::default();
    wait_for_pictures(&mut models, &mut common, png)?;
    common.stay(&mut models);
    models.iter_mut().for_each(|model| analyse(model, png.width, 0));
    // All plots begin at one place, beside the longest label.
    let label_chars = models.iter_mut().map(|model| model.label_chars()).max().unwrap_or(0);
    for model in &mut models {
        analyse(model, png.width, label_chars);
        model.place_markers(true);
    }
    let parts = models.iter_mut().map(|model| draw::image(model, png.width, height, label_chars));
    let bytes = raster::Image::stack(&parts.collect::<Result<Vec<_>, _>>()?)?.to_png()?;
    write(&bytes).map_err(|source| Error::Write { path: png.path.clone(), source })?;
    let drawn = |model: &&mut ViewModel| {
        let lanes =
            model.seen.picture.stream.into_iter().flat_map(|stream| stream.lanes(model.controls.shown));
        let setups = lanes.map(|lane| (lane, model.unresolved_setup(lane))).collect();
        Drawn { picture: model.seen.picture.clone(), setups, markers: model.marker_levels() }
    };
    Ok(models.iter().map(drawn).collect())
}

fn wait_for_pictures(
    models: &mut [&mut ViewModel],
    common: &mut CommonTime,
    png: &PngOptions,
) -> Result<(), Error> {
    let begun = Instant::now();
    let mut first_seen: Vec<Option<Instant>> = vec![None; models.len()];
    let columns = raster::plot_columns(png.width);
    loop {
        for model in models.iter_mut() {
            model.request(columns);
        }
        std::thread::sleep(LOOK_INTERVAL);
        common.refresh(models);
        let mut is_done = true;
        for (model, first_seen) in models.iter().zip(&mut first_seen) {
            let picture = &model.seen.picture;
            is_done &= model.link.is_closed()
                || match picture.counts.samples {
                    0 => picture.is_ended || begun.elapsed() >= png.wait,
                    _ => is_reached(picture, first_seen.get_or_insert_with(Instant::now).elapsed(), png),
                };
        }
        if is_done {
            break;
        }
    }
    match models.iter().any(|model| model.seen.picture.counts.samples > 0) {
        true => Ok(()),
        false => {
            Err(Error::NothingArrived { seconds: begun.elapsed().as_secs_f64(), path: png.path.clone() })
        }
    }
}

/// Whether a picture is to be taken, of a stream of which the first sample was seen so long ago.
fn is_reached(picture: &Picture, since: Duration, png: &PngOptions) -> bool {
    let stream_s = picture.counts.samples as f64 / picture.rate_or_one();
    // Of what is over, all has been reached.
    let is_running = !picture.is_ended && picture.axis_unit() == "s";
    let is_whole = picture.is_ended && !picture.is_estimated;
    let limit = if picture.is_ended { png.settle } else { png.after };
    is_whole || is_running && stream_s >= png.after.as_secs_f64() || since >= limit
}

/// Takes the picture that the settings describe, with all of its analysis: what was seen until here was made while data came.
fn analyse(model: &mut ViewModel, width: u32, label_chars: usize) {
    let columns = raster::plot_columns_beside(width, label_chars);
    if let Some((across, _)) = &mut model.xy_size {
        *across = columns;
    }
    let begun = Instant::now();
    loop {
        // What is asked for depends on what was seen: the trigger's mode on the span, densities on the ranges of their lanes.
        for place in 0..model.seen.picture.lanes.len() {
            model.range(place);
        }
        let viewport = Viewport { is_exact: true, ..model.viewport(columns) };
        if model.seen.picture.answers.as_ref() == Some(&viewport) || begun.elapsed() > ANALYSIS_MAX {
            return;
        }
        model.link.request(viewport);
        if !model.refresh() {
            std::thread::sleep(LOOK_INTERVAL);
        }
    }
}

/// A source that hangs does not hold the picture up for ever.
const ANALYSIS_MAX: Duration = Duration::from_secs(60);
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests;
