//! A generator as a URI says it: `synth:sine,square?frequency=1k&amplitude=0.5`, in the words of `grebe sg` and of graph files.

use std::fmt;

use grebe_flow::Kind as _;
use serde_json::{Map, Value};

use super::settings::Synth;

/// What stands behind `synth:`.
pub(crate) struct Query<'a>(pub(crate) &'a Synth);

/// Reads what stands behind `synth:`.
pub(crate) fn parse(text: &str) -> Result<Synth, String> {
    let (waves, query) = text.split_once('?').unwrap_or((text, ""));
    let waves = Some(("wave", waves)).filter(|(_, waves)| !waves.is_empty());
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let mut params = Map::from_iter([("channels".to_owned(), CHANNELS.into())]);
    let mut given = Vec::new();
    for (name, text) in waves.into_iter().chain(pairs) {
        if !PARAMS.contains(&name) {
            return Err(format!("has an unknown '{name}': known are {}", PARAMS.join(", ")));
        }
        if given.contains(&name) {
            return Err(format!("says '{name}' twice"));
        }
        given.push(name);
        let value = value(name, text);
        // Alone, so that what is wrong has a name.
        let alone = Map::from_iter([(name.to_owned(), value.clone())]);
        serde_json::from_value::<Synth>(Value::Object(alone))
            .map_err(|error| format!("has a wrong {name}: {error}"))?;
        params.insert(name.to_owned(), value);
    }
    let synth: Synth = serde_json::from_value(Value::Object(params)).map_err(|error| error.to_string())?;
    synth.check().map_err(|fault| format!("has a wrong {fault}"))?;
    Ok(synth)
}

/// As a graph file would say it.
fn value(name: &str, text: &str) -> Value {
    let one = |text: &str| match name {
        "channels" | "seed" => text.parse::<u64>().map_or(text.into(), Value::from),
        "phase" | "amplitude" | "offset" | "roll_off" | "snr" => {
            text.parse::<f64>().map_or(text.into(), Value::from)
        }
        "free_run" => match text {
            "" | "yes" => true.into(),
            "no" => false.into(),
            _ => text.into(),
        },
        _ => text.into(),
    };
    if text.contains(',') { text.split(',').map(one).collect() } else { one(text) }
}

impl fmt::Display for Query<'_> {
    /// What differs from the generator that is had without a word.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (synth, plain) = (self.0, generator());
        if synth.wave != plain.wave {
            let names: Vec<&str> = synth.wave.values().iter().map(|wave| wave.name()).collect();
            f.write_str(&names.join(","))?;
        }
        let numbers = |values: &crate::per_channel::PerChannel<f64>| join(values.values());
        let pairs = [
            (synth.channels != plain.channels).then(|| ("channels", synth.channels.to_string())),
            (synth.format != plain.format).then(|| ("format", synth.format.to_string())),
            (synth.rate != plain.rate).then(|| ("rate", synth.rate.to_string())),
            synth.frequency.as_ref().map(|values| ("frequency", join(values.values()))),
            synth.second.as_ref().map(|values| ("second", join(values.values()))),
            synth.symbol_rate.map(|rate| ("symbol_rate", rate.to_string())),
            (synth.roll_off != plain.roll_off).then(|| ("roll_off", synth.roll_off.to_string())),
            synth.snr.map(|snr_db| ("snr", snr_db.to_string())),
            (synth.seed != plain.seed).then(|| ("seed", synth.seed.to_string())),
            (synth.phase != plain.phase).then(|| ("phase", numbers(&synth.phase))),
            (synth.amplitude != plain.amplitude).then(|| ("amplitude", numbers(&synth.amplitude))),
            (synth.offset != plain.offset).then(|| ("offset", numbers(&synth.offset))),
            synth.samples.map(|samples| ("samples", samples.to_string())),
            synth.duration.map(|duration| ("duration", duration.to_string())),
            synth.free_run.then(|| ("free_run", "yes".to_owned())),
        ];
        for (place, (name, value)) in pairs.into_iter().flatten().enumerate() {
            write!(f, "{}{name}={value}", if place == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}

/// What `synth:` alone makes.
fn generator() -> Synth {
    Synth { channels: CHANNELS, ..Synth::default() }
}

fn join(values: &[impl ToString]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// All but those of the transport.
const PARAMS: [&str; 16] = [
    "wave",
    "channels",
    "format",
    "rate",
    "frequency",
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

const CHANNELS: u32 = 4;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use grebe_flow::{Count, RateHz, Time};

    use super::super::WaveName;
    use super::*;
    use crate::format::FrequencyHz;

    #[test]
    fn a_generator_is_read_as_a_command_and_a_graph_file_have_it() {
        let two = Synth {
            channels: 2,
            rate: RateHz(25e6),
            wave: vec![WaveName::Sine, WaveName::Saw].into(),
            frequency: Some(vec![FrequencyHz(1e3), FrequencyHz(2.5e6)].into()),
            phase: vec![-90.0].into(),
            amplitude: vec![0.5, 0.25].into(),
            offset: vec![-0.125].into(),
            samples: Some(Count(10_000_000)),
            free_run: true,
            ..Synth::default()
        };
        let text = "sine,sawtooth?channels=2&rate=25M&frequency=1k,2.5M&phase=-90&amplitude=0.5,0.25&offset=-0.125\
                    &samples=10M&free_run";
        let seconds = Synth { duration: Some(Time(Duration::from_millis(1500))), ..generator() };
        for (text, synth) in
            [("", generator()), ("?", generator()), (text, two), ("?duration=1500ms&free_run=no", seconds)]
        {
            assert_eq!(parse(text), Ok(synth.clone()), "{text}");
            assert_eq!(parse(&Query(&synth).to_string()), Ok(synth), "{text}");
        }
        assert_eq!(Query(&generator()).to_string(), "");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, says) in [
            ("wobble", "has a wrong wave: unknown variant `wobble`, expected one of `sine`"),
            ("?colour=red", "unknown 'colour': known are wave, channels, format, rate, frequency"),
            ("?latency=1ms", "unknown 'latency'"),
            ("sine?wave=saw", "says 'wave' twice"),
            ("?frequency=fast", "has a wrong frequency: 'fast': give a frequency in hertz"),
            ("?frequency=600k", "has a wrong frequency: frequency is 600000: give 0 to half the sample rate"),
            ("?frequency=1,2,3", "has a wrong frequency: 3 values for 4 channels"),
            ("?amplitude=loud", "has a wrong amplitude: "),
            ("?amplitude=2", "amplitude is 2: give 0 to 1"),
            ("?channels=256", "256 channels: give 1 to 255"),
            ("?channels=two", "has a wrong channels: "),
            ("?rate=", "has a wrong rate: "),
            ("?samples=1&duration=1s", "not both"),
            ("?free_run=often", "has a wrong free_run: "),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
