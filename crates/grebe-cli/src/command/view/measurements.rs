//! What was measured of a picture, as JSON.

use grebe_scope::Quantity;
use grebe_view::{ChannelSetup, MATH_CHANNEL, Picture, TriggerView};
use serde_json::{Map, Value, json};

/// What was measured of a picture, for a program: values in units, seconds, hertz and parts of one.
pub(super) fn measurements(picture: &Picture, setups: &[ChannelSetup]) -> Value {
    let channels = picture.measured.iter().map(|measured| {
        let setup = setups.get(measured.channel).cloned().unwrap_or_default();
        let mut channel = Map::new();
        channel.insert("channel".into(), json!(measured.channel + 1));
        let name = if measured.channel == MATH_CHANNEL { "math" } else { &setup.name };
        channel.insert("name".into(), json!(name));
        channel.insert("unit".into(), json!(setup.unit));
        channel.insert("samples".into(), json!(measured.samples));
        for quantity in Quantity::ALL {
            channel.insert(quantity.name().replace(' ', "_"), json!(measured.set.get(quantity)));
        }
        if let Some(spectrum) = &picture.spectrum
            && let Some(levels) = spectrum.channels.iter().find(|it| it.channel == measured.channel)
        {
            let rate_hz = picture.rate_or_one();
            let peaks = levels
                .peaks
                .iter()
                .map(|peak| json!({ "hz": peak.line * rate_hz / spectrum.size as f64, "dbfs": peak.dbfs }));
            channel.insert("peaks".into(), peaks.collect());
        }
        Value::Object(channel)
    });
    json!({
        "sample_rate_hz": picture.stream.map(|stream| stream.rate_hz),
        "span_s": picture.span(),
        "lost_frames": picture.counts.lost_frames,
        "lost_samples": picture.counts.lost_samples,
        "channels": channels.collect::<Vec<_>>(),
        "trigger": picture.trigger.map(|trigger| triggers(&trigger, picture.axis_unit() == "s")),
    })
}

/// How often the trigger came; in samples where the rate is unknown.
fn triggers(trigger: &TriggerView, is_timed: bool) -> Value {
    let (rate, intervals) = (trigger.rate, trigger.rate.intervals);
    let unit = if is_timed { "s" } else { "samples" };
    let mut triggers = Map::new();
    triggers.insert("channel".into(), json!(trigger.settings.channel + 1));
    triggers.insert("found".into(), json!(trigger.found));
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
