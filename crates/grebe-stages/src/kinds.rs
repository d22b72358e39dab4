//! The kinds of stages that a graph file can name.

mod streams;

use grebe_flow::Kinds;

use crate::process::{Decimate, FillGaps, Gain, Null, RateMeter, Select, Tee, Throttle};
use crate::synth::Synth;

/// All built-in kinds.
///
/// ```
/// let kinds = grebe_stages::kinds();
/// assert_eq!(kinds.get("gain").unwrap().ports().inputs, ["in"]);
/// ```
pub fn kinds() -> Kinds {
    let mut kinds = Kinds::new();
    kinds
        .add::<Synth>()
        .add::<streams::Play>()
        .add::<streams::UdpIn>()
        .add::<streams::PipeIn>()
        .add::<streams::ShmIn>();
    kinds
        .add::<streams::Record>()
        .add::<streams::UdpOut>()
        .add::<streams::PipeOut>()
        .add::<streams::ShmOut>()
        .add::<Null>();
    kinds.add::<Gain>().add::<Select>().add::<Decimate>().add::<FillGaps>();
    kinds.add::<RateMeter>().add::<Tee>().add::<Throttle>();
    kinds
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use grebe_flow::GraphFile;

    use super::*;

    fn check(stage: &str) -> Result<(), String> {
        let text = format!("[[stage]]\nid = \"x\"\n{stage}\n");
        let mistakes = match GraphFile::parse(&text, "x.toml", &kinds()) {
            Ok(_) => return Ok(()),
            Err(mistakes) => mistakes,
        };
        // Alone it is connected to nothing, which is not what is asked here.
        let said: Vec<&str> = mistakes
            .iter()
            .map(grebe_flow::Mistake::message)
            .filter(|message| !message.contains("nothing leads to") && !message.contains("leads nowhere"))
            .collect();
        if said.is_empty() { Ok(()) } else { Err(said.join("; ")) }
    }

    #[test]
    fn every_kind_and_every_parameter_says_what_it_is() {
        for kind in kinds().iter() {
            assert!(
                kind.about().ends_with('.') || kind.about().contains(". "),
                "{}: {}",
                kind.name(),
                kind.about()
            );
            for param in kind.params() {
                assert!(!param.about.is_empty(), "{}: {} says nothing", kind.name(), param.name);
            }
        }
    }

    #[test]
    fn parameters_are_read_as_people_write_them() {
        for good in [
            "kind = \"synth\"",
            "kind = \"synth\"\nparams = { channels = 2, rate = \"25M\", wave = [\"sine\", \"sawtooth\"], samples = \"1k\" }",
            "kind = \"synth\"\nparams = { rate = 48_000, frequency = [440, 1.5e3], duration = \"2s\", channels = 2 }",
            "kind = \"play\"\nparams = { file = \"x.wav\", speed = 10, repeat = true }",
            "kind = \"udp_in\"\nparams = { uri = \"udp://:5000\", idle_timeout = \"2s\", latency = \"1ms\" }",
            "kind = \"udp_out\"\nparams = { uri = \"udp://localhost:5000\", burst = 1 }",
            "kind = \"pipe_in\"",
            "kind = \"shm_in\"\nparams = { uri = \"shm://adc?policy=drop_latest\", samples = 5 }",
            "kind = \"shm_out\"\nparams = { uri = \"shm://adc?block=no\" }",
            "kind = \"pipe_out\"",
            "kind = \"record\"\nparams = { file = \"x.sigmf-meta\", overwrite = true, duration = 5 }",
            "kind = \"gain\"\nparams = { gain = [1, -0.5], offset = 3 }",
            "kind = \"select\"\nparams = { channels = [1, 3] }",
            "kind = \"decimate\"\nparams = { factor = \"1k\" }",
            "kind = \"fill_gaps\"\nparams = { with = \"hold\", longest = \"10M\" }",
            "kind = \"throttle\"\nparams = { rate = \"1M\" }",
            "kind = \"rate_meter\"\nparams = { every = \"100ms\" }",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
    }

    #[test]
    fn parameters_that_cannot_be_are_refused_without_opening_anything() {
        for (bad, says) in [
            ("kind = \"synth\"\nparams = { channels = 9 }", "1 to 8"),
            ("kind = \"synth\"\nparams = { rate = 1000, frequency = 600 }", "half the sample rate"),
            ("kind = \"synth\"\nparams = { amplitude = 1.5 }", "amplitude"),
            ("kind = \"synth\"\nparams = { wave = \"wobble\" }", "wobble"),
            ("kind = \"synth\"\nparams = { channels = 2, phase = [1, 2, 3] }", "3 values for 2 channels"),
            ("kind = \"synth\"\nparams = { samples = 5, duration = \"1s\" }", "not both"),
            ("kind = \"synth\"\nparams = { datagram_size = 10 }", "80"),
            ("kind = \"play\"\nparams = { file = \"x.wav\", speed = 0 }", "above 0"),
            ("kind = \"play\"\nparams = { file = \"x.wav\", speed = 2, free_run = true }", "not both"),
            ("kind = \"udp_in\"\nparams = { uri = \"tcp://x:1\" }", "names no stream"),
            ("kind = \"udp_in\"\nparams = { uri = \"pipe:\" }", "udp://"),
            ("kind = \"udp_in\"\nparams = { uri = \"udp://:5000\", burst = 129 }", "1 to 128"),
            ("kind = \"shm_in\"\nparams = { uri = \"udp://:1\" }", "shm://NAME"),
            ("kind = \"shm_out\"\nparams = { uri = \"shm://adc?wait=2\" }", "waits for nobody"),
            ("kind = \"udp_out\"\nparams = { uri = \"udp://x\" }", "no port"),
            ("kind = \"record\"\nparams = { file = \"\" }", "NAME.sigmf-meta"),
            ("kind = \"gain\"\nparams = { gain = [] }", "one per channel"),
            ("kind = \"select\"\nparams = { channels = [0] }", "0 is no channel"),
            ("kind = \"decimate\"\nparams = { factor = 2 }", "no more than the two"),
            ("kind = \"fill_gaps\"\nparams = { with = \"noise\" }", "noise"),
            ("kind = \"fill_gaps\"\nparams = { longest = 0 }", "fills nothing"),
            ("kind = \"rate_meter\"\nparams = { every = \"1us\" }", "10ms"),
        ] {
            let said = check(bad).expect_err(bad);
            assert!(said.contains(says), "{bad}: {said}");
        }
        assert!(!Path::new("x.sigmf-meta").exists());
    }

    #[test]
    fn channels_are_followed_through_the_graph() {
        let text = r#"
            stage = [
                { id = "gen", kind = "synth", params = { channels = 4 } },
                { id = "two", kind = "select", params = { channels = [4, 1] } },
                { id = "loud", kind = "gain", params = { gain = [1, 2, 3] } },
                { id = "end", kind = "null" },
            ]
            edge = [{ from = "gen", to = "two" }, { from = "two", to = "loud" }, { from = "loud", to = "end" }]
        "#;
        let mistakes = GraphFile::parse(text, "x.toml", &kinds()).unwrap_err();
        let said: Vec<&str> = mistakes.iter().map(grebe_flow::Mistake::message).collect();
        assert_eq!(said, ["'gain' of 'loud': 3 values for 2 channels: give one, or one per channel"]);
    }
}
