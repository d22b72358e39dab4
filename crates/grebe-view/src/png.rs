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
    /// How long to wait for the first sample.
    pub wait: Duration,
    /// Whether to measure the channels: the [`Picture`] that is returned has the measurements.
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

/// Waits, draws, and hands the PNG to `write`; returns what was drawn, and what the numbers of each lane mean in it: as the
/// options say, or the stream.
///
/// # Errors
/// [`Error::NothingArrived`], [`Error::Scope`] for a size out of range, [`Error::Write`].
pub fn render_png(
    link: &ScopeLink,
    options: ViewOptions,
    png: &PngOptions,
    write: impl FnOnce(&[u8]) -> std::io::Result<()>,
) -> Result<(Picture, Vec<(LaneId, ChannelSetup)>), Error> {
    let mut model = ViewModel::new(link.clone(), options, encode);
    if png.measure {
        model.controls.is_measuring = true;
    }
    let show = model.controls.show;
    if show.xy {
        model.xy_size = Some(draw::xy_size(png.width, draw::part_height(show, png.height)));
    }
    wait_for_picture(&mut model, png)?;
    analyse(&mut model, raster::plot_columns(png.width));
    let bytes = encode(&mut model, png.width, png.height)?;
    write(&bytes).map_err(|source| Error::Write { path: png.path.clone(), source })?;
    let lanes = model.picture.stream.into_iter().flat_map(|stream| stream.lanes(model.controls.shown));
    let setups = lanes.map(|lane| (lane, model.unresolved_setup(lane))).collect();
    Ok((model.picture.clone(), setups))
}

fn wait_for_picture(model: &mut ViewModel, png: &PngOptions) -> Result<(), Error> {
    let begun = Instant::now();
    let mut first_seen: Option<Instant> = None;
    let columns = raster::plot_columns(png.width);
    loop {
        model.request(columns);
        std::thread::sleep(LOOK_INTERVAL);
        model.refresh();
        let picture = &model.picture;
        if picture.counts.samples > 0 {
            let seen = *first_seen.get_or_insert_with(Instant::now);
            let stream_s = picture.counts.samples as f64 / picture.rate_or_one();
            // Of what is over, all has been reached.
            let is_running = !picture.is_ended && picture.axis_unit() == "s";
            let is_reached = is_running && stream_s >= png.after.as_secs_f64();
            let is_whole = picture.is_ended && !picture.is_estimated;
            if is_whole || is_reached || seen.elapsed() >= png.after || model.link.is_closed() {
                return Ok(());
            }
        } else if picture.is_ended || begun.elapsed() >= png.wait || model.link.is_closed() {
            let seconds = begun.elapsed().as_secs_f64();
            return Err(Error::NothingArrived { seconds, path: png.path.clone() });
        }
    }
}

/// Takes the picture that the settings describe, with all of its analysis: what was seen until here was made while data came.
fn analyse(model: &mut ViewModel, columns: usize) {
    let begun = Instant::now();
    loop {
        // What is asked for depends on what was seen: the trigger's mode on the span, densities on the ranges of their lanes.
        for place in 0..model.picture.lanes.len() {
            model.range(place);
        }
        let viewport = Viewport { is_exact: true, ..model.viewport(columns) };
        if model.picture.answers.as_ref() == Some(&viewport) || begun.elapsed() > ANALYSIS_MAX {
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
