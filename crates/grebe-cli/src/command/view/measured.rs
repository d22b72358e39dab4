//! Measurements of a picture, for `--json`.

use grebe_scope::{Band, Quantity};
use grebe_view::{Drawn, MarkerLevels, Part, SignalMeasurements, TriggerView};
use serde_json::{Map, Value, json};

/// Measurements of a picture: values in units, seconds, hertz and fractions.
pub(super) fn measurements(drawn: &Drawn) -> Value {
    let Drawn { picture, setups, markers, .. } = drawn;
    // Only I and Q have frequencies relative to the receiver's.
    let is_two_sided = picture.spectrum.as_ref().is_some_and(|spectrum| spectrum.is_two_sided);
    let centre_hz = picture.description.as_ref().and_then(|it| it.centre_frequency_hz);
    let centre_hz = centre_hz.filter(|_| is_two_sided).unwrap_or(0.0);
    let channels = picture.measured.iter().map(|measured| {
        let lane = measured.lane;
        let setup = setups.iter().find(|(it, _)| *it == lane).map(|(_, setup)| setup.clone());
        let setup = setup.unwrap_or_default();
        let mut channel = Map::new();
        channel.insert("channel".into(), json!(lane.channel + 1));
        if !matches!(lane.part, Part::Real | Part::Math) {
            channel.insert("part".into(), json!(lane.part.name()));
        }
        let name = if lane.part == Part::Math { "math" } else { &setup.name };
        channel.insert("name".into(), json!(name));
        channel.insert("unit".into(), json!(setup.unit));
        let rate_hz = picture.rate_or_one();
        channel.insert("samples".into(), json!(measured.samples));
        channel.insert("samples_span_s".into(), json!(measured.samples as f64 / rate_hz));
        channel.insert("level_samples".into(), json!(measured.level_samples));
        channel.insert("level_span_s".into(), json!(measured.level_samples as f64 / rate_hz));
        for quantity in Quantity::ALL {
            channel.insert(quantity.name().replace(' ', "_"), json!(measured.set.get(quantity)));
        }
        if let Some(spectrum) = &picture.spectrum
            && matches!(lane.part, Part::Real | Part::I)
            && let Some(levels) = spectrum.channels.iter().find(|it| it.channel == lane.channel)
        {
            channel.insert("spectrum_samples".into(), json!(spectrum.transform_size()));
            let peaks = levels.peaks.iter().map(|peak| {
                let hz = centre_hz + spectrum.cycles_per_sample(peak.line) * rate_hz;
                json!({ "hz": hz, "dbfs": peak.dbfs })
            });
            channel.insert("peaks".into(), peaks.collect());
        }
        Value::Object(channel)
    });
    let waterfall = picture.spectrum.as_ref().and_then(|view| view.waterfall_sampled());
    json!({
        "name": picture.description.as_ref().and_then(|it| it.name.clone()),
        "sample_rate_hz": picture.stream.map(|stream| stream.rate_hz),
        "centre_frequency_hz": picture.description.as_ref().and_then(|it| it.centre_frequency_hz),
        "span_s": picture.span(),
        "left_index": picture.left_index,
        "axes": picture.axis_times(picture.left_index),
        "exact": !picture.is_estimated,
        "waterfall": waterfall.map(|(made, all)| json!({ "spectra": made, "of": all })),
        "lost_frames": picture.counts.lost_frames,
        "lost_samples": picture.counts.lost_samples,
        "generator_samples": picture.counts.generator_samples,
        "missing_samples": picture.counts.lost_samples + picture.counts.generator_samples,
        "channels": channels.collect::<Vec<_>>(),
        "signals": picture.signals.iter().map(|it| signal(it, picture.rate_or_one(), centre_hz)).collect::<Vec<_>>(),
        "box": drawn.time_frequency_box.map(|place| time_frequency_box(drawn, place, centre_hz)),
        "markers": markers.iter().map(marker).collect::<Vec<_>>(),
        "trigger": picture.trigger.map(|trigger| triggers(&trigger, picture.axis_unit() == "s")),
    })
}

/// Measurements of a channel's signal: decibels and hertz.
fn signal(measured: &SignalMeasurements, rate_hz: f64, centre_hz: f64) -> Value {
    let hz = |cycles: f64| centre_hz + cycles * rate_hz;
    let band = |band: Band| json!([hz(band.low), hz(band.high)]);
    json!({
        "channel": measured.channel + 1,
        "samples": measured.samples,
        "power_dbfs": measured.power_dbfs,
        "peak_to_average_db": measured.peak_to_average_db,
        "within_hz": band(measured.within),
        "channel_power_dbfs": measured.channel_power_dbfs,
        "channel_snr_db": measured.channel_snr_db,
        "occupied_hz": measured.occupied.map(band),
        "occupied_bandwidth_hz": measured.occupied.map(|it| it.width() * rate_hz),
        "tone": measured.tone.map(|tone| json!({
            "snr_db": tone.snr_db,
            "sinad_db": tone.sinad_db,
            "thd_db": tone.thd_db,
            "enob": tone.enob,
        })),
    })
}

/// The box on the waterfall: seconds since the first sample, hertz, decibels, and the burst in it.
fn time_frequency_box(drawn: &Drawn, [start_s, end_s, low_hz, high_hz]: [f64; 4], centre_hz: f64) -> Value {
    let measured = drawn.picture.region.as_ref();
    let rate_hz = drawn.picture.rate_or_one();
    let hz = |cycles: f64| centre_hz + cycles * rate_hz;
    json!({
        "start_s": start_s,
        "end_s": end_s,
        "low_hz": low_hz,
        "high_hz": high_hz,
        "signal": measured.map(|it| signal(&it.signal, rate_hz, centre_hz)),
        "peak": measured.and_then(|it| it.peak).map(|(cycles, dbfs)| json!({ "hz": hz(cycles), "dbfs": dbfs })),
        "burst": measured.and_then(|it| {
            let (burst, from) = (it.burst.as_ref()?, it.region.samples.start);
            let time_s = |index: u64| start_s + (index as f64 - from as f64) / rate_hz;
            Some(json!({
                "start_s": time_s(burst.samples.start),
                "end_s": time_s(burst.samples.end),
                "low_hz": hz(burst.band.low),
                "high_hz": hz(burst.band.high),
            }))
        }),
        "command": drawn.box_command,
    })
}

/// Levels of a channel at the markers of the spectrum, and their difference.
fn marker(levels: &MarkerLevels) -> Value {
    let [(a_hz, a_dbfs), (b_hz, b_dbfs)] = levels.at;
    json!({
        "channel": levels.channel + 1,
        "a": { "hz": a_hz, "dbfs": a_dbfs },
        "b": { "hz": b_hz, "dbfs": b_dbfs },
        "difference": { "hz": b_hz - a_hz, "db": b_dbfs - a_dbfs },
    })
}

/// Rate of triggers; in samples if the sample rate is unknown.
fn triggers(trigger: &TriggerView, is_timed: bool) -> Value {
    let (rate, intervals) = (trigger.rate, trigger.rate.intervals);
    let unit = if is_timed { "s" } else { "samples" };
    let mut triggers = Map::new();
    triggers.insert("channel".into(), json!(trigger.settings.lane.channel + 1));
    if !matches!(trigger.settings.lane.part, Part::Real | Part::Math) {
        triggers.insert("part".into(), json!(trigger.settings.lane.part.name()));
    }
    triggers.insert("hysteresis_counts".into(), json!(trigger.hysteresis));
    triggers.insert("found".into(), json!(trigger.found));
    triggers.insert("searched_samples".into(), json!(trigger.searched_samples));
    triggers.insert("intervals".into(), json!(intervals.count()));
    triggers.insert("intervals_across_gaps".into(), json!(rate.gaps));
    triggers.insert(format!("interval_{unit}"), json!(intervals.mean()));
    triggers.insert(format!("interval_deviation_{unit}"), json!(intervals.deviation()));
    if is_timed {
        triggers.insert("rate_hz".into(), json!(rate.rate_hz()));
        triggers.insert("rate_per_minute".into(), json!(rate.per_minute()));
    }
    Value::Object(triggers)
}
