//! Settings from options: surface, channels, queues.

use std::time::Duration;

use anyhow::Result;
use grebe_view::{ChannelSetup, InitialView, LaneMask, MarkerPlaces, Part, PngOptions};

use crate::cli::{self, View};
use crate::ending::Usage;
use crate::show::Surface;

/// The surface to draw on. `is_read`: files are read up to the shown position, and a picture is drawn at the end.
pub(super) fn surface(options: &View, is_read: bool) -> Surface {
    let wait = |usual| if is_read { WHOLE_FILE } else { options.after.unwrap_or(usual) };
    match &options.png {
        Some(path) => Surface::Png(PngOptions {
            width: options.size.0,
            height: options.size.1,
            after: wait(AFTER),
            settle: wait(INCOMING),
            measure: options.json,
            ..PngOptions::new(path)
        }),
        None if options.term => Surface::Terminal,
        None => Surface::Window,
    }
}

/// The view to begin with, as the options say.
pub(super) fn initial(options: &View) -> Result<InitialView> {
    let markers = options.markers.map(|at| at.map_or(MarkerPlaces::Peaks, |(a, b)| MarkerPlaces::At(a, b)));
    Ok(InitialView {
        channels: setups(&options.channels.labels)?,
        lanes: lanes(&options.channels)?,
        span: options.span.map(|span| span.as_secs_f64()),
        theme: options.theme,
        spectrum: options.spectrum || options.band.is_some() || markers.is_some(),
        waterfall: options.waterfall
            || options.levels.is_some()
            || options.detector.is_some()
            || options.time_frequency_box.is_some(),
        levels_db: options.levels,
        detector: options.detector,
        xy: options.xy || options.symbol_rate.is_some(),
        symbol_rate_hz: options.symbol_rate,
        band_hz: options.band,
        markers,
        time_frequency_box: options
            .time_frequency_box
            .map(|it| [it.start.as_secs_f64(), it.end.as_secs_f64(), it.low_hz, it.high_hz]),
        trigger: options.trigger.options(),
    })
}

/// Settings of the channels.
pub(in crate::command) fn setups(labels: &cli::ChannelLabels) -> Result<Vec<ChannelSetup>> {
    let cli::ChannelLabels { names, units, scale, offset } = labels;
    let count = names.len().max(units.len()).max(scale.len()).max(offset.len());
    if count > 255 {
        return Err(Usage(format!("settings for {count} channels: give at most 255")).into());
    }
    if scale.contains(&0.0) {
        return Err(Usage("--scale 0 is invalid: give units per count".into()).into());
    }
    let text = |list: &[String], channel: usize| list.get(channel).cloned().unwrap_or_default();
    let setup = |channel| ChannelSetup {
        name: text(names, channel),
        unit: text(units, channel),
        scale: scale.get(channel).copied().unwrap_or(1.0),
        offset: offset.get(channel).copied().unwrap_or(0.0),
        ..ChannelSetup::default()
    };
    Ok((0..count).map(setup).collect())
}

/// Lanes to show, if limited.
fn lanes(channels: &cli::Channels) -> Result<Option<LaneMask>> {
    let cli::Channels { channels: shown, parts, .. } = channels;
    if shown.is_empty() && parts.is_empty() {
        return Ok(None);
    }
    let mut mask = LaneMask::ALL;
    if !shown.is_empty() {
        mask = mask.only(shown.iter().flat_map(|range| range.clone()).map(|number| usize::from(number) - 1));
    }
    if !parts.is_empty() {
        let is_other = |part: &Part| parts.contains(part) != mask.has_part(*part);
        mask = Part::COMPLEX.into_iter().filter(is_other).fold(mask, LaneMask::part_toggled);
    }
    Ok(Some(mask))
}

const AFTER: Duration = Duration::from_secs(2);
/// Timeout of a picture for samples that are still being copied, or come from another host.
const INCOMING: Duration = Duration::from_secs(60);
const WHOLE_FILE: Duration = Duration::from_secs(24 * 3600);
