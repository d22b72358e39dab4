//! The PNG front end: one picture to a file, without a display or a GPU.

mod draw;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use grebe_scope::raster;

use crate::data::lane::LaneId;
use crate::data::link::ScopeLink;
use crate::data::picture::{Picture, StreamInfo};
use crate::data::viewport::Viewport;
use crate::error::Error;
use crate::model::channel::ChannelSetup;
use crate::model::common_time::CommonTime;
use crate::model::markers::MarkerLevels;
use crate::model::options::ViewOptions;
use crate::model::view_model::ViewModel;
pub(crate) use draw::encode;

/// Size, time and file of a picture.
#[derive(Debug, Clone, PartialEq)]
pub struct PngOptions {
    /// The file's path, for messages.
    pub path: PathBuf,
    /// Width in pixels, 160 to 16384.
    pub width: u32,
    /// Height in pixels, 120 to 16384.
    pub height: u32,
    /// When to take the picture, after the first sample: by the clock or by the stream, whichever is first. The end of the
    /// stream takes it at once.
    pub after: Duration,
    /// How long to wait until a picture of an ended stream shows every sample, such as one that arrives from another host.
    /// Then the picture is taken as it is.
    pub settle: Duration,
    /// How long to wait for the first sample.
    pub wait: Duration,
    /// Whether to measure the channels. The returned [`Picture`] has the measurements.
    pub measure: bool,
}

impl PngOptions {
    /// 1280 x 720 pixels, 2 s after the first sample, at most 10 s until that, and 60 s for a whole recording.
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

/// The drawn picture, and the meaning of its numbers.
#[derive(Debug, Clone)]
pub struct Drawn {
    /// The picture.
    pub picture: Picture,
    /// The meaning of each lane's numbers, from the options or the stream.
    pub setups: Vec<(LaneId, ChannelSetup)>,
    /// Levels of the channels at the spectrum's markers; empty if the markers are off.
    pub markers: Vec<MarkerLevels>,
    /// The box on the waterfall: begin and end in seconds since the first sample, lower and upper frequency in hertz. The picture
    /// has its measurements.
    pub time_frequency_box: Option<[f64; 4]>,
    /// The command that cuts the box out of the recording.
    pub box_command: Option<String>,
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
    let mut drawn = render_pngs(vec![(link.clone(), options)], png, |_| Ok(()), write)?;
    Ok(drawn.swap_remove(0))
}

/// The same for several scopes, one above the other, each with an equal part of the height. They share one time axis if the
/// streams' times are related. `check` gets the streams once they are known; its error is one line for a person.
///
/// # Errors
/// As for [`render_png`]; [`Error::NothingArrived`] if no scope received anything, or `models` is empty; [`Error::Refused`]
/// by `check`.
pub fn render_pngs(
    scopes: Vec<(ScopeLink, ViewOptions)>,
    png: &PngOptions,
    check: impl FnOnce(&[StreamInfo]) -> Result<(), String>,
    write: impl FnOnce(&[u8]) -> std::io::Result<()>,
) -> Result<Vec<Drawn>, Error> {
    let height = png.height.checked_div(scopes.len() as u32).unwrap_or(png.height);
    let model = |(link, options): (ScopeLink, ViewOptions)| {
        let mut model = ViewModel::new(link, options, encode);
        model.controls.is_measuring |= png.measure;
        let show = model.controls.show;
        if show.xy {
            model.xy_size = Some(draw::pixels(png.width, draw::part_height(show, height)));
        }
        model
    };
    let mut models: Vec<ViewModel> = scopes.into_iter().map(model).collect();
    let mut models: Vec<&mut ViewModel> = models.iter_mut().collect();
    let mut common = CommonTime::default();
    wait_for_pictures(&mut models, &mut common, png, check)?;
    common.stay(&mut models);
    models.iter_mut().for_each(|model| analyse(model, png.width, 0));
    // All plots begin at the same x, beside the longest label.
    let label_chars = models.iter_mut().map(|model| model.label_chars()).max().unwrap_or(0);
    for model in &mut models {
        analyse(model, png.width, label_chars);
        model.place_markers(true);
        if model.seen.picture.is_estimated {
            model.seen.hud.notice.get_or_insert_with(|| ESTIMATED.to_owned());
        }
    }
    let parts = models.iter_mut().map(|model| draw::image(model, png.width, height, label_chars));
    let bytes = raster::Image::stack(&parts.collect::<Result<Vec<_>, _>>()?)?.to_png()?;
    write(&bytes).map_err(|source| Error::Write { path: png.path.clone(), source })?;
    let drawn = |model: &&mut ViewModel| {
        let lanes =
            model.seen.picture.stream.into_iter().flat_map(|stream| stream.lanes(model.controls.shown));
        let setups = lanes.map(|lane| (lane, model.unresolved_setup(lane))).collect();
        Drawn {
            picture: model.seen.picture.clone(),
            setups,
            markers: model.marker_levels(),
            time_frequency_box: model.box_place(),
            box_command: model.box_command(),
        }
    };
    Ok(models.iter().map(drawn).collect())
}

fn wait_for_pictures(
    models: &mut [&mut ViewModel],
    common: &mut CommonTime,
    png: &PngOptions,
    check: impl FnOnce(&[StreamInfo]) -> Result<(), String>,
) -> Result<(), Error> {
    let mut check = Some(check);
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
        let streams: Vec<_> = models.iter().filter_map(|model| model.seen.picture.stream).collect();
        if let Some(check) = check.take_if(|_| is_done || streams.len() == models.len()) {
            check(&streams).map_err(|why| Error::Refused { why })?;
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

/// Whether to take the picture, `since` after the first sample.
fn is_reached(picture: &Picture, since: Duration, png: &PngOptions) -> bool {
    let stream_s = picture.counts.samples as f64 / picture.rate_or_one();
    // An ended stream has reached every time.
    let is_running = !picture.is_ended && picture.axis_unit() == "s";
    let is_whole = picture.is_ended && !picture.is_estimated;
    let limit = if picture.is_ended { png.settle } else { png.after };
    is_whole || is_running && stream_s >= png.after.as_secs_f64() || since >= limit
}

/// Takes the picture that the settings describe, with a complete analysis. Until now, pictures were made while data came.
fn analyse(model: &mut ViewModel, width: u32, label_chars: usize) {
    let columns = raster::plot_columns_beside(width, label_chars);
    if let Some((across, _)) = &mut model.xy_size {
        *across = columns;
    }
    let begun = Instant::now();
    // If the wait for exact columns was given up, they are not waited for again.
    let is_exact = !model.seen.picture.is_estimated;
    loop {
        // Requests depend on the previous picture: the trigger's mode on the span, densities on the lanes' ranges.
        for place in 0..model.seen.picture.lanes.len() {
            model.range(place);
        }
        let viewport = Viewport { is_exact: true, ..model.viewport(columns) };
        let picture = &model.seen.picture;
        let is_final = !picture.is_estimated || !is_exact || model.link.is_closed();
        if picture.answers.as_ref() == Some(&viewport) && is_final || begun.elapsed() > ANALYSIS_MAX {
            return;
        }
        model.link.request(viewport);
        if !model.refresh() {
            std::thread::sleep(LOOK_INTERVAL);
        }
    }
}

const ESTIMATED: &str = "estimated: not all samples were read";
/// A hung source must not delay the picture for ever.
const ANALYSIS_MAX: Duration = Duration::from_secs(60);
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests;
