//! The kinds of stages that a graph file can name.

use grebe_flow::Kinds;

use crate::bridges::add_kinds;

/// All built-in kinds.
///
/// ```
/// let kinds = grebe_stages::kinds();
/// assert_eq!(kinds.get("gain").unwrap().ports().inputs, ["in"]);
/// ```
pub fn kinds() -> Kinds {
    let mut kinds = Kinds::new();
    add_kinds(&mut kinds);
    grebe_process::add_kinds(&mut kinds);
    kinds
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use grebe_flow::GraphFile;

    use super::*;

    fn check(stage: &str) -> Result<(), String> {
        let text = format!("[[stage]]\nid = \"x\"\n{stage}\n");
        let mistakes = match GraphFile::parse(&text, Path::new("x.toml"), &kinds()) {
            Ok(_) => return Ok(()),
            Err(mistakes) => mistakes,
        };
        // Ignores that the stage is not connected.
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
            "kind = \"vita49_in\"\nparams = { uri = \"vrt://:4991?stream=7\", samples = \"1M\" }",
            "kind = \"vita49_out\"\nparams = { uri = \"vrt://localhost:4991?profile=difi\", datagram_size = 8972 }",
            "kind = \"shm_in\"\nparams = { uri = \"shm://adc?policy=drop_latest\", samples = 5 }",
            "kind = \"shm_out\"\nparams = { uri = \"shm://adc?block=no\" }",
            "kind = \"shm_out\"\nparams = { uri = \"shm://adc?wait=2&readers=2\" }",
            "kind = \"pipe_out\"",
            "kind = \"rtl_tcp_in\"\nparams = { uri = \"rtl_tcp://pi:1234?gain=auto\", samples = \"1M\" }",
            "kind = \"zmq_in\"\nparams = { uri = \"zmq://x:1?format=cf32&tags\" }",
            "kind = \"named_in\"\nparams = { name = \"lab/mast3/adc?route=udp\", idle_timeout = \"5s\" }",
            "kind = \"named_out\"\nparams = { name = \"lab/mast3/adc\", routes = [\"shm://adc?wait=1\"] }",
            "kind = \"zenoh_in\"\nparams = { uri = \"zenoh://site/adc?reconnect\", samples = 5 }",
            "kind = \"zenoh_out\"\nparams = { uri = \"zenoh://adc?policy=block\" }",
            "kind = \"zmq_out\"\nparams = { uri = \"zmq://:1?format=cf32&type=push&listen\" }",
            "kind = \"rtl_tcp_out\"\nparams = { uri = \"rtl_tcp://:1234?listen\" }",
            "kind = \"soapy_in\"\nparams = { uri = \"soapy:driver=rtlsdr, serial=1?gain=auto&channels=0,1\", samples = 5 }",
            "kind = \"soapy_out\"\nparams = { uri = \"soapy:driver=hackrf?frequency=433.92M&gain.VGA=20\" }",
            "kind = \"record\"\nparams = { file = \"x.sigmf-meta\", overwrite = true, duration = 5 }",
            "kind = \"gain\"\nparams = { gain = [1, -0.5], offset = 3 }",
            "kind = \"select\"\nparams = { channels = [1, 3] }",
            "kind = \"decimate\"\nparams = { factor = \"1k\" }",
            "kind = \"fill_gaps\"\nparams = { with = \"hold\", longest = \"10M\" }",
            "kind = \"synth\"\nparams = { format = \"cf32\", wave = \"qpsk\", symbol_rate = \"100k\", roll_off = 0.2, snr = 20, seed = 7 }",
            "kind = \"synth\"\nparams = { format = \"cu8\", wave = \"two_tone\", frequency = \"-10k\", second = -2.5e4 }",
            "kind = \"convert\"\nparams = { to = \"f32\", scale = \"counts\" }",
            "kind = \"magnitude\"\nparams = { unit = \"db\" }",
            "kind = \"mix\"\nparams = { frequency = \"-100k\" }",
            "kind = \"fir\"\nparams = { taps = [0.5, -1, 2] }",
            "kind = \"decimate_filtered\"\nparams = { factor = 10 }",
            "kind = \"cut\"\nparams = { center = \"433.92M\", bandwidth = \"200k\", rate = 250e3 }",
            "kind = \"demodulate\"\nparams = { mode = \"wfm\", center = \"-100k\", de_emphasis = \"75us\", rate = 44100 }",
            "kind = \"throttle\"\nparams = { rate = \"1M\" }",
            "kind = \"rate_meter\"\nparams = { every = \"100ms\" }",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
    }

    #[test]
    fn parameters_that_cannot_be_are_refused_without_opening_anything() {
        for (bad, says) in [
            ("kind = \"synth\"\nparams = { channels = 256 }", "1 to 255"),
            ("kind = \"synth\"\nparams = { rate = 1000, frequency = 600 }", "half the sample rate"),
            ("kind = \"synth\"\nparams = { amplitude = 1.5 }", "amplitude"),
            ("kind = \"synth\"\nparams = { wave = \"wobble\" }", "wobble"),
            ("kind = \"synth\"\nparams = { channels = 2, phase = [1, 2, 3] }", "3 values for 2 channels"),
            ("kind = \"synth\"\nparams = { samples = 5, duration = \"1s\" }", "not both"),
            ("kind = \"synth\"\nparams = { datagram_size = 10 }", "80"),
            ("kind = \"play\"\nparams = { file = \"x.wav\", speed = 0 }", "above 0"),
            ("kind = \"play\"\nparams = { file = \"x.wav\", speed = 2, free_run = true }", "not both"),
            (
                "kind = \"udp_in\"\nparams = { uri = \"http://x:1\" }",
                "carries no frames over UDP: write udp://HOST:PORT",
            ),
            ("kind = \"udp_in\"\nparams = { uri = \"pipe:\" }", "udp://"),
            ("kind = \"udp_in\"\nparams = { uri = \"udp://:5000\", burst = 129 }", "1 to 128"),
            ("kind = \"raw_in\"\nparams = { uri = \"tcp://x:1\" }", "add format="),
            (
                "kind = \"raw_in\"\nparams = { uri = \"upd://x:1?format=i16\" }",
                "is not a stream of plain samples",
            ),
            (
                "kind = \"raw_in\"\nparams = { uri = \"zmq://x:1?format=i16\" }",
                "is not a stream of plain samples",
            ),
            ("kind = \"udp_in\"\nparams = { uri = \"udp://:5000?colour=red\" }", "unknown 'colour'"),
            ("kind = \"synth\"\nparams = { wave = \"sin\" }", "unknown 'sin' - did you mean 'sine'?"),
            ("kind = \"raw_out\"\nparams = { uri = \"udp://x:1\" }", "add format="),
            ("kind = \"rtl_tcp_in\"\nparams = { uri = \"tcp://x:1?format=cu8\" }", "rtl_tcp://HOST:PORT"),
            ("kind = \"rtl_tcp_out\"\nparams = { uri = \"rtl_tcp://:1?wait=x\" }", "give 0 to 64"),
            ("kind = \"soapy_in\"\nparams = { uri = \"soapy:?gain=loud\" }", "give dB"),
            ("kind = \"soapy_out\"\nparams = { uri = \"udp://:1\" }", "soapy:driver=rtlsdr"),
            ("kind = \"vita49_in\"\nparams = { uri = \"udp://:1\" }", "vrt://HOST:PORT"),
            ("kind = \"vita49_out\"\nparams = { uri = \"vrt://x:1\", datagram_size = 10 }", "80"),
            (
                "kind = \"zmq_in\"\nparams = { uri = \"zmq://x:1?format=cf32&type=req\" }",
                "sub, pull, pub or push",
            ),
            ("kind = \"named_in\"\nparams = { name = \"adc\" }", "lab/mast3/adc"),
            (
                "kind = \"named_out\"\nparams = { name = \"lab/adc\", routes = [\"pipe:\"] }",
                "not a route to a stream",
            ),
            ("kind = \"zenoh_in\"\nparams = { uri = \"zenoh://a/**\" }", "not a Zenoh key"),
            ("kind = \"zenoh_out\"\nparams = { uri = \"udp://:1\" }", "zenoh://WORD/WORD"),
            ("kind = \"shm_in\"\nparams = { uri = \"udp://:1\" }", "shm://NAME"),
            ("kind = \"shm_in\"\nparams = { uri = \"shm://adc?wait=2\" }", "shm_out"),
            ("kind = \"shm_out\"\nparams = { uri = \"shm://adc?wait=some\" }", "give a number"),
            ("kind = \"shm_out\"\nparams = { uri = \"shm://adc?wait=5\" }", "add readers=5"),
            ("kind = \"udp_out\"\nparams = { uri = \"udp://x\" }", "no port"),
            ("kind = \"record\"\nparams = { file = \"\" }", "NAME.sigmf-meta"),
            ("kind = \"gain\"\nparams = { gain = [] }", "one per channel"),
            ("kind = \"select\"\nparams = { channels = [0] }", "invalid channel 0"),
            ("kind = \"decimate\"\nparams = { factor = 2 }", "no more than the two"),
            ("kind = \"fill_gaps\"\nparams = { with = \"noise\" }", "noise"),
            ("kind = \"fill_gaps\"\nparams = { longest = 0 }", "fills nothing"),
            ("kind = \"synth\"\nparams = { wave = \"qpsk\" }", "needs a complex one"),
            ("kind = \"synth\"\nparams = { frequency = -5 }", "half the sample rate"),
            ("kind = \"synth\"\nparams = { format = \"cf64\" }", "ci16 and cf32"),
            ("kind = \"convert\"", "needs"),
            ("kind = \"mix\"\nparams = { frequency = \"fast\" }", "give a frequency"),
            ("kind = \"fir\"", "file"),
            ("kind = \"decimate_filtered\"\nparams = { factor = 1 }", "2 to 1000"),
            ("kind = \"cut\"\nparams = { center = 0, bandwidth = 100, rate = 100 }", "1.05 times"),
            ("kind = \"cut\"\nparams = { bandwidth = 100 }", "center"),
            ("kind = \"demodulate\"\nparams = { mode = \"ssb\" }", "usb"),
            ("kind = \"demodulate\"\nparams = { mode = \"lsb\", rate = \"4k\" }", "at least 6.7 kS/s"),
            ("kind = \"rate_meter\"\nparams = { every = \"1us\" }", "10ms"),
        ] {
            let said = check(bad).expect_err(bad);
            assert!(said.contains(says), "{bad}: {said}");
        }
        assert!(!Path::new("x.sigmf-meta").exists());
    }

    #[test]
    fn formats_are_followed_through_the_graph() {
        let said = |middle: &str, params: &str| {
            let text = format!(
                r#"
                stage = [
                    {{ id = "gen", kind = "synth", params = {{ format = "ci16" }} }},
                    {{ id = "first", {middle} }},
                    {{ id = "second", {params} }},
                    {{ id = "end", kind = "null" }},
                ]
                edge = [{{ from = "gen", to = "first" }}, {{ from = "first", to = "second" }}, {{ from = "second", to = "end" }}]
                "#
            );
            let mistakes = GraphFile::parse(&text, Path::new("x.toml"), &kinds()).err();
            mistakes.map(|mistakes| {
                mistakes.iter().map(|it| it.message().to_owned()).collect::<Vec<_>>().join("; ")
            })
        };
        let decimate = r#"kind = "decimate", params = { factor = 10 }"#;
        let wrong = said(r#"kind = "gain""#, decimate).unwrap();
        assert!(
            wrong.starts_with("'second': ci16 samples come in") && wrong.contains("magnitude"),
            "{wrong}"
        );
        assert_eq!(said(r#"kind = "magnitude""#, decimate), None);
        let wrong = said(r#"kind = "convert", params = { to = "f32" }"#, decimate).unwrap();
        assert!(wrong.starts_with("'to' of 'first': ci16 samples are complex"), "{wrong}");
        let wrong = said(r#"kind = "magnitude""#, r#"kind = "mix", params = { frequency = 1 }"#).unwrap();
        assert!(wrong.starts_with("'second': f32 samples come in"), "{wrong}");
    }

    #[test]
    fn unsupported_input_of_a_sink_or_a_merge_is_an_error_before_the_start() {
        let said = |sources: &str, sink: &str| {
            let text = format!(
                r#"
                stage = [{sources}, {{ id = "both", kind = "merge" }}, {{ id = "end", {sink} }}]
                edge = [
                    {{ from = "a", to = "both.first" }}, {{ from = "b", to = "both.second" }},
                    {{ from = "both", to = "end" }},
                ]
                "#
            );
            let mistakes = GraphFile::parse(&text, Path::new("x.toml"), &kinds()).err();
            mistakes.map(|mistakes| {
                mistakes.iter().map(|it| it.message().to_owned()).collect::<Vec<_>>().join("; ")
            })
        };
        let of = |format: [&str; 2], channels: [u32; 2]| {
            let one = |id: &str, at: usize| {
                let params = format!("format = \"{}\", channels = {}", format[at], channels[at]);
                format!(r#"{{ id = "{id}", kind = "synth", params = {{ {params} }} }}"#)
            };
            format!("{}, {}", one("a", 0), one("b", 1))
        };
        let null = r#"kind = "null""#;
        let gfh2 = r#"kind = "udp_out", params = { uri = "udp://127.0.0.1:5000?wire=gfh2" }"#;
        let record = |name: &str| format!(r#"kind = "record", params = {{ file = "{name}" }}"#);
        assert_eq!(said(&of(["ci16", "ci16"], [3, 4]), null), None);
        let wrong = said(&of(["ci16", "f32"], [1, 1]), null).unwrap();
        assert!(wrong.starts_with("'both': samples of ci16 and of f32 come in"), "{wrong}");
        let wrong = said(&of(["i16", "i16"], [200, 100]), null).unwrap();
        assert!(wrong.starts_with("'both': 200 + 100 channels come in"), "{wrong}");
        assert_eq!(said(&of(["i16", "i16"], [4, 4]), gfh2), None);
        for (format, channels) in [("i16", [5, 4]), ("ci8", [1, 1])] {
            let wrong = said(&of([format; 2], channels), gfh2).unwrap();
            assert!(wrong.starts_with("'uri' of 'end': "), "{wrong}");
        }
        assert_eq!(said(&of(["ci8"; 2], [20, 30]), &record("x.sigmf-meta")), None);
        let wrong = said(&of(["ci8"; 2], [1, 1]), &record("x.wav")).unwrap();
        assert!(wrong.starts_with("'file' of 'end': ") && wrong.contains("NAME.sigmf-meta"), "{wrong}");
    }

    #[test]
    fn two_stages_cannot_have_the_same_port_or_pipe() {
        let said = |from: &str, to: &str| {
            let stage = |id: &str, kind: &str, uri: &str| {
                format!(r#"{{ id = "{id}", kind = "{kind}", params = {{ uri = "{uri}" }} }}"#)
            };
            let text = format!(
                r#"
                stage = [{}, {}, {{ id = "b", kind = "raw_in", params = {{ uri = "pipe:?format=u8" }} }}, {{ id = "n", kind = "null" }}]
                edge = [{{ from = "a", to = "end" }}, {{ from = "b", to = "n" }}]
                "#,
                stage("a", "text_in", from),
                stage("end", "text_out", to)
            );
            let mistakes = GraphFile::parse(&text, Path::new("x.toml"), &kinds()).err();
            mistakes.map(|mistakes| {
                mistakes.iter().map(|it| it.message().to_owned()).collect::<Vec<_>>().join("; ")
            })
        };
        assert_eq!(said("serial:ttyA", "serial:ttyB"), None);
        let port = said("serial:ttyA?baud=9600", "serial:///dev/ttyA").unwrap();
        assert_eq!(port, "two stages want the serial port /dev/ttyA for themselves");
        let pipe = said("pipe:?format=text", "pipe:?format=text").unwrap();
        assert_eq!(pipe, "two stages want standard input for themselves");
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
        let mistakes = GraphFile::parse(text, Path::new("x.toml"), &kinds()).unwrap_err();
        let said: Vec<&str> = mistakes.iter().map(grebe_flow::Mistake::message).collect();
        assert_eq!(said, ["'gain' of 'loud': 3 values for 2 channels: give one, or one per channel"]);
    }
}
