//! URIs of generators: `synth:sine,square?frequency=1k&amplitude=0.5`, with the parameters of `grebe sg`.

use grebe_flow::{Kind as _, plain_words};
use serde_json::{Map, Value};

use grebe_process::query::{Pairs, Query};
use grebe_process::synth::Synth;

/// Parses the part after `synth:`.
pub(crate) fn parse(text: &str) -> Result<Synth, String> {
    let (waves, mut query) = Query::split(text)?;
    let mut params = Map::new();
    for name in PARAMS {
        let given = match query.take(name) {
            Some(_) if name == "wave" && !waves.is_empty() => return Err("has 'wave' twice".to_owned()),
            None if name == "wave" => Some(waves).filter(|waves| !waves.is_empty()),
            given => given,
        };
        let Some(text) = given else { continue };
        let value = value(name, text);
        // Each value is parsed alone, so that an error names it.
        let alone = Map::from_iter([(name.to_owned(), value.clone())]);
        serde_json::from_value::<Synth>(Value::Object(alone))
            .map_err(|error| format!("has a wrong {name}: {}", plain_words(&error.to_string())))?;
        params.insert(name.to_owned(), value);
    }
    query.end()?;
    let synth: Synth = serde_json::from_value(Value::Object(params)).map_err(|error| error.to_string())?;
    synth.check().map_err(|fault| format!("has a wrong {fault}"))?;
    Ok(synth)
}

/// A value as in a graph file.
fn value(name: &str, text: &str) -> Value {
    let one = |text: &str| match name {
        "channels" | "seed" => text.parse::<u64>().map_or(text.into(), Value::from),
        "phase" | "amplitude" | "offset" | "roll_off" | "snr" => {
            text.parse::<f64>().map_or(text.into(), Value::from)
        }
        "free_run" => match text {
            "" | "yes" | "true" => true.into(),
            "no" | "false" => false.into(),
            _ => text.into(),
        },
        _ => text.into(),
    };
    if text.contains(',') { text.split(',').map(one).collect() } else { one(text) }
}

/// Writes the part after `synth:`: the settings that differ from the default.
pub(crate) fn write(synth: &Synth) -> String {
    let plain = Synth::default();
    let waves = match synth.wave != plain.wave {
        true => synth.wave.values().iter().map(|wave| wave.name()).collect::<Vec<_>>().join(","),
        false => String::new(),
    };
    let pairs = Pairs::default()
        .add("channels", Some(synth.channels).filter(|&channels| channels != plain.channels))
        .add("format", Some(synth.format).filter(|&format| format != plain.format))
        .add("rate", Some(synth.rate).filter(|&rate| rate != plain.rate))
        .add("frequency", synth.frequency.as_ref().map(|values| join(values.values())))
        .add("center", synth.center)
        .add("second", synth.second.as_ref().map(|values| join(values.values())))
        .add("symbol_rate", synth.symbol_rate)
        .add("roll_off", Some(synth.roll_off).filter(|&roll_off| roll_off != plain.roll_off))
        .add("snr", synth.snr)
        .add("seed", Some(synth.seed).filter(|&seed| seed != plain.seed))
        .add("phase", (synth.phase != plain.phase).then(|| join(synth.phase.values())))
        .add("amplitude", (synth.amplitude != plain.amplitude).then(|| join(synth.amplitude.values())))
        .add("offset", (synth.offset != plain.offset).then(|| join(synth.offset.values())))
        .add("samples", synth.samples)
        .add("duration", synth.duration)
        .add("free_run", synth.free_run.then_some("yes"));
    format!("{waves}{pairs}")
}

fn join(values: &[impl ToString]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// Parameters without those of the transport.
const PARAMS: [&str; 17] = [
    "wave",
    "channels",
    "format",
    "rate",
    "frequency",
    "center",
    "second",
    "symbol_rate",
    "roll_off",
    "snr",
    "seed",
    "phase",
    "amplitude",
    "offset",
    "samples",
    "duration",
    "free_run",
];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use grebe_flow::{Count, RateHz, Time};
    use grebe_process::FrequencyHz;
    use grebe_process::synth::WaveName;

    use super::*;

    #[test]
    fn a_generator_is_read_as_a_command_and_a_graph_file_have_it() {
        let two = Synth {
            channels: 2,
            rate: RateHz(25e6),
            wave: vec![WaveName::Sine, WaveName::Saw].into(),
            frequency: Some(vec![FrequencyHz(1e3), FrequencyHz(2.5e6)].into()),
            center: Some(FrequencyHz(433.92e6)),
            phase: vec![-90.0].into(),
            amplitude: vec![0.5, 0.25].into(),
            offset: vec![-0.125].into(),
            samples: Some(Count(10_000_000)),
            free_run: true,
            ..Synth::default()
        };
        let text = "sine,sawtooth?channels=2&rate=25M&frequency=1k,2.5M&center=433.92M&phase=-90&amplitude=0.5,0.25&offset=-0.125\
                    &samples=10M&free_run";
        let seconds = Synth { duration: Some(Time(Duration::from_millis(1500))), ..Synth::default() };
        for (text, synth) in [
            ("", Synth::default()),
            ("?", Synth::default()),
            (text, two),
            ("?duration=1500ms&free_run=no", seconds),
        ] {
            assert_eq!(parse(text), Ok(synth.clone()), "{text}");
            assert_eq!(parse(&write(&synth)), Ok(synth), "{text}");
        }
        assert_eq!(write(&Synth::default()), "");
    }

    #[test]
    fn a_wrong_synth_option_is_named() {
        for (text, says) in [
            ("wobble", "has a wrong wave: unknown 'wobble'; known: sine, square, triangle"),
            ("?colour=red", "unknown 'colour'; known: wave, channels, format, rate, frequency"),
            ("?latency=1ms", "unknown 'latency'"),
            ("sine?wave=saw", "has 'wave' twice"),
            ("?frequency=fast", "has a wrong frequency: 'fast': give a frequency in hertz"),
            ("?frequency=600k", "has a wrong frequency: frequency is 600000: give 0 to half the sample rate"),
            ("?frequency=1,2,3", "has a wrong frequency: 3 values for 1 channel"),
            ("?amplitude=loud", "has a wrong amplitude: 'loud': give "),
            ("?amplitude=2", "amplitude is 2: give 0 to 1"),
            ("?channels=256", "256 channels: give 1 to 255"),
            ("?channels=two", "has a wrong channels: 'two': give a whole number from 0 on"),
            ("?rate=", "has a wrong rate: "),
            ("?samples=1&duration=1s", "not both"),
            ("?free_run=often", "has a wrong free_run: 'often': give true or false"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
