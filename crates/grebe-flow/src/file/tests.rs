mod mistakes;
mod saved;

use grebe_frame::SampleFormat;
use schemars::JsonSchema;
use serde::Deserialize;

use self::mistakes::GOOD;
use super::*;
use crate::{
    Context, Count, Fault, Inputs, Kind, Outcome, Outputs, Policy, Ports, QueueOptions, RateHz, Site, Stage,
    StageError, StageName, StageResult, Time,
};

/// Makes a stream.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Source {
    /// Samples a second and channel.
    rate: RateHz,
    /// Channels, 1 to 8.
    #[serde(default = "one")]
    channels: u32,
    /// Ends after this many.
    #[allow(dead_code)]
    samples: Option<Count>,
    #[allow(dead_code)]
    every: Option<Time>,
    device: Option<String>,
    /// Whether it makes complex samples.
    #[serde(default)]
    complex: bool,
}

fn one() -> u32 {
    1
}

impl Kind for Source {
    const NAME: &'static str = "source";
    const PORTS: Ports = Ports::SOURCE;

    fn check(&self) -> Result<(), Fault> {
        match self.rate {
            RateHz(hz) if hz > 1e12 => Err(Fault::new("rate", "above any machine's rate")),
            _ => Ok(()),
        }
    }

    fn channels(&self, _: Option<u32>) -> Result<Option<u32>, Fault> {
        Ok(Some(self.channels))
    }

    fn rate_hz(&self, _: Option<f64>) -> Option<f64> {
        Some(self.rate.0)
    }

    fn format(&self, _: Option<SampleFormat>) -> Result<Option<SampleFormat>, Fault> {
        Ok(Some(if self.complex { SampleFormat::Cf32 } else { SampleFormat::I16 }))
    }

    fn claims(&self) -> Option<String> {
        self.device.as_ref().map(|device| format!("the device {device}"))
    }

    fn build(self, site: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        if let Some(device) = &self.device {
            site.note(format!("opens {device}"));
        }
        match site.shared(site.id(), || 0) {
            0 => {}
            number => site.note(format!("followed by {number}")),
        }
        Ok(Box::new(Anything))
    }
}

/// Picks a channel.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Pick {
    #[serde(default = "one")]
    channel: u32,
}

impl Kind for Pick {
    const NAME: &'static str = "pick";
    const PORTS: Ports = Ports { inputs: &["in"], outputs: &["out", "rest"] };

    fn channels(&self, incoming: Option<u32>) -> Result<Option<u32>, Fault> {
        match incoming {
            Some(there) if self.channel > there => {
                Err(Fault::new("channel", format!("channel {} of {there}", self.channel)))
            }
            _ => Ok(Some(1)),
        }
    }

    fn format(&self, incoming: Option<SampleFormat>) -> Result<Option<SampleFormat>, Fault> {
        match incoming {
            Some(format) if format.is_complex() => {
                Err(Fault::of_kind(format!("{format} samples come in, it takes real ones")))
            }
            other => Ok(other),
        }
    }

    fn build(self, site: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        site.note("as it is");
        Ok(Box::new(Anything))
    }
}

macro_rules! plain_kind {
    ($kind:ident, $name:literal, $ports:expr) => {
        #[derive(Deserialize, JsonSchema)]
        struct $kind {}

        impl Kind for $kind {
            const NAME: &'static str = $name;
            const PORTS: Ports = $ports;

            fn build(self, _: &mut Site) -> Result<Box<dyn Stage>, StageError> {
                Ok(Box::new(Anything))
            }
        }
    };
}

plain_kind!(Sink, "sink", Ports::SINK);
plain_kind!(Mix, "mix", Ports { inputs: &["left", "right"], outputs: &["out"] });

/// Ends at once without input; takes any input.
struct Anything;

impl Stage for Anything {
    fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        match input.next() {
            Some(batch) => output.send(batch, ctx),
            None if input.ports() == 0 => return Ok(Outcome::End),
            None => return Ok(Outcome::WantsInput),
        }
        Ok(Outcome::Produced)
    }

    fn ports(&self) -> Ports {
        Ports { inputs: &[], outputs: &["out", "rest"] }
    }
}

fn kinds() -> Kinds {
    let mut kinds = Kinds::new();
    kinds.add::<Source>().add::<Pick>().add::<Mix>().add::<Sink>();
    kinds
}

#[test]
fn fused_stages_are_kept_on_one_processor() {
    let there = checked_stage::processors();
    let &[one, other, ..] = there.as_slice() else {
        println!("skipped: fused stages on two processors, because this process has one");
        return;
    };
    let pinned = |other: usize| {
        let text = GOOD.replace("kind = \"sink\"", &format!("kind = \"sink\"\ncpu = {other}"));
        let text = text.replace("params", &format!("cpu = {one}\nparams")) + "fuse = true\n";
        GraphFile::parse(&text, Path::new("graph.toml"), &kinds())
    };
    let mistakes = pinned(other).unwrap_err();
    let only = mistakes.iter().next().unwrap();
    assert_eq!((mistakes.iter().len(), only.line(), only.column()), (1, 10, 7));
    assert!(only.message().contains("share a thread"), "{mistakes}");
    pinned(one).unwrap();
}

#[test]
fn a_good_file_becomes_a_graph_that_runs() {
    let text = format!(
        "{GOOD}{}",
        r#"capacity = "1k"
capacity_bytes = "4M"
policy = "drop_oldest"
[[stage]]
id = "mid"
kind = "pick"
params = { channel = 2 }
[[stage]]
id = "last"
kind = "sink"
[[edge]]
from = "gen.out"
to = "mid.in"
fuse = true
[[edge]]
from = "mid.rest"
to = "last.in"
"#
    );
    let file = GraphFile::parse(&text, Path::new("graph.toml"), &kinds()).unwrap();
    let queue =
        QueueOptions { capacity_batches: 1000, capacity_bytes: Some(4 << 20), policy: Policy::DropOldest };
    assert_eq!(file.edges()[0].queue, Some(queue));
    assert_eq!(file.edges()[1].queue, None);
    assert_eq!(file.ends().map(|stage| stage.id.as_str()).collect::<Vec<_>>(), ["end", "last"]);
    let mut notes = Vec::new();
    let graph = file.build(&kinds(), &Cancel::default(), &mut |note| notes.push(note)).unwrap();
    assert_eq!(notes, ["mid: as it is"]);
    graph.check().unwrap();
    let snapshot = graph.start().unwrap().wait().unwrap();
    assert_eq!(snapshot.stages.len(), 4);
}

/// Shares a number with the source that it names.
#[derive(Deserialize, JsonSchema)]
struct Follower {
    of: String,
}

impl Kind for Follower {
    const NAME: &'static str = "follower";
    const PORTS: Ports = Ports::SINK;

    fn names(&self) -> Option<StageName<'_>> {
        Some(StageName { param: "of", id: &self.of, kinds: &["source"] })
    }

    fn build(self, site: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        let number = site.shared(&self.of, || 7);
        site.note(format!("number {number}"));
        Ok(Box::new(Anything))
    }
}

#[test]
fn stages_share_what_goes_by_the_name_of_one_which_must_be_there() {
    let text = |of: &str| {
        format!(
            r#"
        stage = [
            {{ id = "adc", kind = "source", params = {{ rate = 1 }} }},
            {{ id = "end", kind = "follower", params = {{ of = "{of}" }} }},
        ]
        edge = [{{ from = "adc", to = "end" }}]
    "#
        )
    };
    let mut kinds = kinds();
    kinds.add::<Follower>();
    let parse = |of: &str| GraphFile::parse(&text(of), Path::new("graph.toml"), &kinds);
    let mut notes = Vec::new();
    parse("adc").unwrap().build(&kinds, &Cancel::default(), &mut |note| notes.push(note)).unwrap();
    assert_eq!(notes, ["end: number 7", "adc: followed by 7"]);
    for (of, says) in [
        ("dac", "'of' of 'end': unknown stage 'dac': name a stage of source"),
        ("end", "'of' of 'end': 'end' is follower: name a stage of source"),
    ] {
        let mistakes = parse(of).unwrap_err();
        assert_eq!(mistakes.iter().map(crate::Mistake::message).collect::<Vec<_>>(), [says]);
    }
}

/// Waits until it is cancelled.
#[derive(Deserialize, JsonSchema)]
struct Patient {}

impl Kind for Patient {
    const NAME: &'static str = "patient";
    const PORTS: Ports = Ports::SINK;

    fn build(self, site: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        site.note("waiting");
        while !site.cancel().is_cancelled() {
            std::thread::yield_now();
        }
        Err("cancelled".into())
    }
}

#[test]
fn a_stage_that_waits_says_so_at_once_is_cancelled_and_keeps_no_source_open() {
    let text = r#"
        stage = [
            { id = "early", kind = "source", params = { rate = 1, device = "adc" } },
            { id = "end", kind = "patient" },
        ]
        edge = [{ from = "early", to = "end" }]
    "#;
    let mut kinds = kinds();
    kinds.add::<Patient>();
    let file = GraphFile::parse(text, Path::new("graph.toml"), &kinds).unwrap();
    let (cancel, mut notes) = (Cancel::default(), Vec::new());
    let mut notify = |note| {
        notes.push(note);
        cancel.cancel();
    };
    let error = file.build(&kinds, &cancel, &mut notify).unwrap_err();
    assert_eq!(error.to_string(), "end: cancelled");
    // The source would have noted that it opens its device.
    assert_eq!(notes, ["end: waiting"]);
}

#[test]
fn a_kind_describes_its_ports_and_parameters() {
    let kinds = kinds();
    let source = kinds.get("source").unwrap();
    assert_eq!(source.about(), "Makes a stream.");
    let params = source.params();
    let names: Vec<&str> = params.iter().map(|param| param.name).collect();
    assert_eq!(names, ["channels", "complex", "device", "every", "rate", "samples"]);
    assert_eq!((params[0].about, params[0].default.as_deref()), ("Channels, 1 to 8.", Some("1")));
    assert!(params[4].is_required && !params[5].is_required);
    assert_eq!(source.schema()["properties"]["rate"]["type"][1], "string");
}

#[test]
fn a_file_that_cannot_be_had_is_named() {
    let error = GraphFile::load(Path::new("/no/such/graph.toml"), &kinds()).unwrap_err().to_string();
    assert!(error.starts_with("cannot read /no/such/graph.toml: "), "{error}");
}

#[test]
#[should_panic(expected = "there is a kind 'source' already")]
fn a_kind_replaces_another_only_by_replace() {
    let mut kinds = kinds();
    kinds.replace::<Source>();
    kinds.add::<Source>();
}
