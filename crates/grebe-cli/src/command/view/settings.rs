//! Settings from options: surface, channels, queues.

use std::time::Duration;

use anyhow::Result;
use grebe_view::{ChannelSetup, InitialView, LaneMask, MarkerPlaces, Part, PngOptions, StreamInfo};

use crate::cli::{self, View};
use crate::ending::Usage;
use crate::show::{Check, Surface};

/// The surface to draw on. `is_read`: files are read up to the shown position, and a picture is drawn at the end.
pub(super) fn surface(options: &View, is_read: bool) -> Surface {
    let wait = |usual| if is_read { WHOLE_FILE } else { options.after.unwrap_or(usual) };
    match &options.png {
        Some(path) => {
            let png = PngOptions {
                width: options.size.0,
                height: options.size.1,
                after: wait(AFTER),
                settle: wait(INCOMING),
                measure: options.json,
                ..PngOptions::new(path)
            };
            Surface::Png(png, check(options))
        }
        None if options.term => Surface::Terminal,
        None => Surface::Window,
    }
}

/// Refuses options for channels that no stream has.
fn check(options: &View) -> Check {
    let last = options.channels.channels.iter().map(|range| usize::from(*range.end())).max();
    let is_xy = options.xy || options.symbol_rate.is_some();
    let lane = options.trigger.lane.filter(|lane| lane.part != Part::Math);
    Box::new(move |streams| {
        let Some(most) = streams.iter().map(|stream| stream.channels).max() else { return Ok(()) };
        let has = match most {
            1 => "there is 1 channel".to_owned(),
            most => format!("there are {most} channels"),
        };
        let is_pair = |stream: &StreamInfo| stream.format.is_complex() || stream.channels > 1;
        if is_xy && !streams.iter().any(is_pair) {
            return Err(format!("--xy needs complex samples, or two channels: {has}"));
        }
        match (last.filter(|&last| last > most), lane.filter(|lane| lane.channel >= most)) {
            (Some(last), _) => Err(format!("--channels {last}: {has}")),
            (None, Some(lane)) => Err(format!("--trigger-channel {lane}: {has}")),
            (None, None) => Ok(()),
        }
    })
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

/// Settings of the channels. A single unit, scale or offset is that of all.
pub(in crate::command) fn setups(labels: &cli::ChannelLabels) -> Result<Vec<ChannelSetup>> {
    let cli::ChannelLabels { names, units, scale, offset } = labels;
    let counts = [names.len(), units.len(), scale.len(), offset.len()];
    let is_for_all = counts[1..].contains(&1);
    let count = counts.into_iter().max().unwrap_or(0).max(if is_for_all { CHANNELS_MAX } else { 0 });
    if count > CHANNELS_MAX {
        return Err(Usage(format!("settings for {count} channels: give at most 255")).into());
    }
    if scale.contains(&0.0) {
        return Err(Usage("--scale 0 is invalid: give units per count".into()).into());
    }
    let setup = |channel| ChannelSetup {
        name: names.get(channel).cloned().unwrap_or_default(),
        unit: of_channel(units, channel).cloned().unwrap_or_default(),
        scale: of_channel(scale, channel).copied().unwrap_or(1.0),
        offset: of_channel(offset, channel).copied().unwrap_or(0.0),
        ..ChannelSetup::default()
    };
    Ok((0..count).map(setup).collect())
}

/// The value of a channel; a single value is that of all.
fn of_channel<T>(values: &[T], channel: usize) -> Option<&T> {
    if let [one] = values { Some(one) } else { values.get(channel) }
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

const CHANNELS_MAX: usize = 255;
const AFTER: Duration = Duration::from_secs(2);
/// Timeout of a picture for samples that are still being copied, or come from another host.
const INCOMING: Duration = Duration::from_secs(60);
const WHOLE_FILE: Duration = Duration::from_secs(24 * 3600);
