use std::fmt::Write;
use std::sync::Mutex;

use grebe_frame::SampleFormat;
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;

use super::*;
use crate::{
    Context, Count, Fault, Inputs, Kind, Outcome, Outputs, Policy, Ports, QueueOptions, RateHz, Site, Stage,
    StageError, StageName, Time,
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
    /// Ends after so many.
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
            RateHz(hz) if hz > 1e12 => Err(Fault::new("rate", "no machine makes so many")),
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
                Err(Fault::new("channel", format!("{} is asked for, {there} come in", self.channel)))
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

/// Ends at once where nothing comes in; takes what comes.
struct Anything;

impl Stage for Anything {
    fn process(
        &mut self,
        input: &mut Inputs,
        output: &mut Outputs,
        ctx: &mut Context,
    ) -> Result<Outcome, StageError> {
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

/// Valid start of a file, to which each case adds a mistake.
const GOOD: &str = r#"[[stage]]
id = "gen"
kind = "source"
params = { rate = "1M", channels = 2 }

[[stage]]
id = "end"
kind = "sink"

[[edge]]
from = "gen"
to = "end"
"#;

/// Mistakes in a graph file, and the expected messages.
const CASES: &[(&str, &str, &str)] = &[
    // (mistake, part of the valid text, replacement)
    ("text that is no TOML", "id = \"gen\"\nkind = \"source\"", "id = gen\nkind = \"source"),
    ("a key twice", "kind = \"sink\"", "kind = \"sink\"\nkind = \"sink\""),
    ("an empty file", GOOD, ""),
    ("an unknown table", "[[edge]]", "[[egde]]"),
    ("one table instead of a list", "[[edge]]", "[edge]"),
    ("a value instead of a list", GOOD, "stage = 1"),
    ("an unknown field of a stage", "kind = \"sink\"", "kind = \"sink\"\ncpus = 1"),
    ("an unknown field of an edge", "from = \"gen\"", "from = \"gen\"\npolice = \"block\""),
    ("a stage without an id", "id = \"end\"", ""),
    ("a stage without a kind", "kind = \"sink\"", ""),
    ("an edge without an end", "to = \"end\"", ""),
    ("an id that is no text", "id = \"end\"", "id = 7"),
    ("an id with a dot", "id = \"end\"", "id = \"the.end\""),
    ("two stages of one name", "id = \"end\"", "id = \"gen\""),
    ("an unknown kind", "kind = \"source\"", "kind = \"sorce\""),
    ("a kind that nothing is like", "kind = \"source\"", "kind = \"teleporter\""),
    ("parameters that are no table", "params = { rate = \"1M\", channels = 2 }", "params = 3"),
    ("an unknown parameter, and another", "channels = 2", "chanels = 2, smaples = 3"),
    ("parameters for a kind without", "kind = \"sink\"", "kind = \"sink\"\nparams = { file = \"x\" }"),
    ("a parameter that is missing", "rate = \"1M\", ", ""),
    ("a parameter of another type", "channels = 2", "channels = \"two\""),
    ("a rate that is none", "rate = \"1M\"", "rate = \"fast\""),
    ("a negative count", "channels = 2", "samples = -1"),
    ("a count that is not whole", "channels = 2", "samples = 0.5"),
    ("a time that is none", "channels = 2", "every = \"soon\""),
    ("a list where a number should be", "rate = \"1M\"", "rate = [1, 2]"),
    ("a value out of range", "rate = \"1M\"", "rate = 2e12"),
    ("a number beyond 64 bits", "channels = 2", "samples = 99999999999999999999999"),
    ("an edge from an unknown stage", "from = \"gen\"", "from = \"gem\""),
    ("an edge to an unknown stage", "to = \"end\"", "to = \"beginning\""),
    ("an unknown output", "from = \"gen\"", "from = \"gen.oot\""),
    ("an unknown input", "to = \"end\"", "to = \"end.inn\""),
    ("an input taken for an output", "from = \"gen\"", "from = \"mid.in\""),
    ("out of a sink", "from = \"gen\"", "from = \"end\""),
    ("into a source", "to = \"end\"", "to = \"gen\""),
    ("a port that must be named", "from = \"gen\"", "from = \"mid\""),
    ("an input connected twice", GOOD, "+[[edge]]\nfrom = \"gen\"\nto = \"end.in\"\n"),
    ("an input that nothing leads to", GOOD, "+[[stage]]\nid = \"mix\"\nkind = \"mix\"\n"),
    (
        "a source that leads nowhere",
        GOOD,
        "[[stage]]\nid = \"gen\"\nkind = \"source\"\nparams = { rate = 5 }\n",
    ),
    ("a cycle", GOOD, CYCLE),
    ("a stage that feeds itself", GOOD, SELF),
    ("capacity 0", "to = \"end\"", "to = \"end\"\ncapacity = 0"),
    ("a negative capacity", "to = \"end\"", "to = \"end\"\ncapacity = -4"),
    ("a capacity that is no number", "to = \"end\"", "to = \"end\"\ncapacity = true"),
    ("a capacity beyond all memory", "to = \"end\"", "to = \"end\"\ncapacity = \"1G\""),
    ("a size of 0", "to = \"end\"", "to = \"end\"\ncapacity_bytes = 0"),
    ("a size that is none", "to = \"end\"", "to = \"end\"\ncapacity_bytes = \"big\""),
    ("an unknown policy", "to = \"end\"", "to = \"end\"\npolicy = \"drop-oldest\""),
    (
        "a fused edge with a queue",
        "to = \"end\"",
        "to = \"end\"\nfuse = true\ncapacity = 8\npolicy = \"block\"",
    ),
    ("a fused second output", GOOD, FUSED_REST),
    ("a fused stage with several inputs", GOOD, FUSED_MIX),
    ("a processor that is not there", "kind = \"sink\"", "kind = \"sink\"\ncpu = 4096"),
    ("channels that do not fit", GOOD, CHANNELS),
    ("samples that a stage does not take", "channels = 2 }", FORMAT),
    ("two stages that want one thing", GOOD, CLAIMS),
    (
        "a host that ssh would take for an option",
        "kind = \"sink\"",
        "kind = \"sink\"\nhost = \"-oProxyCommand=x\"",
    ),
    ("a fused edge between two hosts", GOOD, FUSED_HOSTS),
    ("what is said of hosts is wrong", GOOD, HOSTS),
    ("several at once", GOOD, SEVERAL),
];

const CYCLE: &str = r#"+[[stage]]
id = "a"
kind = "mix"
[[stage]]
id = "b"
kind = "pick"
[[edge]]
from = "gen"
to = "a.left"
[[edge]]
from = "a"
to = "b"
[[edge]]
from = "b.out"
to = "a.right"
"#;
const SELF: &str = r#"+[[stage]]
id = "a"
kind = "pick"
[[edge]]
from = "a.out"
to = "a"
"#;
const FUSED_REST: &str = r#"+[[stage]]
id = "mid"
kind = "pick"
[[stage]]
id = "other"
kind = "sink"
[[edge]]
from = "gen"
to = "mid"
[[edge]]
from = "mid.rest"
to = "other"
fuse = true
"#;
const FUSED_MIX: &str = r#"+[[stage]]
id = "mix"
kind = "mix"
[[edge]]
from = "gen"
to = "mix.left"
fuse = true
[[edge]]
from = "gen"
to = "mix.right"
"#;
const CHANNELS: &str = r#"+[[stage]]
id = "mid"
kind = "pick"
params = { channel = 3 }
[[edge]]
from = "gen"
to = "mid"
"#;
const FORMAT: &str = r#"complex = true }
[[stage]]
id = "picker"
kind = "pick"
[[edge]]
from = "gen"
to = "picker"
"#;
const CLAIMS: &str = r#"[[stage]]
id = "one"
kind = "source"
params = { rate = 5, device = "adc0" }
[[stage]]
id = "other"
kind = "source"
params = { rate = 5, device = "adc0" }
[[stage]]
id = "mix"
kind = "mix"
[[edge]]
from = "one"
to = "mix.left"
[[edge]]
from = "other"
to = "mix.right"
"#;
const FUSED_HOSTS: &str = r#"+[[stage]]
id = "far"
kind = "sink"
host = "pi@mast3:2222"
[[edge]]
from = "gen"
to = "far"
fuse = true
"#;
const HOSTS: &str = r#"+[[stage]]
id = "far"
kind = "sink"
host = "pi@mast3"
[[edge]]
from = "gen"
to = "far"
[[host]]
name = "pi@mast"
restart = "allways"
[[host]]
name = "pi@mast3"
restrat = "no"
[[host]]
name = "pi@mast3"
"#;
const SEVERAL: &str = r#"[[stage]]
id = "gen"
kind = "sorce"
[[stage]]
id = "gen"
kind = "source"
params = { rate = "slow", chanels = 1 }
[[edge]]
from = "gne"
to = "nowhere"
capacity = 0
policy = "wait"
"#;

#[test]
fn every_mistake_is_told_at_its_place() {
    let mut told = String::new();
    for (what, part, instead) in CASES {
        let text = match instead.strip_prefix('+') {
            Some(more) => format!("{GOOD}\n{more}"),
            None if *part == GOOD => (*instead).to_owned(),
            None => {
                assert!(GOOD.contains(part), "{what}: nothing to replace");
                GOOD.replacen(part, instead, 1)
            }
        };
        // Some cases need a stage in between.
        let text = if text.contains("mid") && !text.contains("id = \"mid\"") {
            format!(
                "{text}\n[[stage]]\nid = \"mid\"\nkind = \"pick\"\n[[edge]]\nfrom = \"gen\"\nto = \"mid\"\n"
            )
        } else {
            text
        };
        let mistakes = GraphFile::parse(&text, Path::new("graph.toml"), &kinds()).expect_err(what);
        let said = mistakes.to_string();
        let here: Vec<&str> = said.lines().filter(|line| line.contains("known: 0")).collect();
        let said = here.iter().fold(said.clone(), |said, line| said.replace(line, "  = help: known: 0-N"));
        let _ = writeln!(told, "## {what}\n\n{said}\n");
    }
    insta::assert_snapshot!("mistakes", told);
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
fn what_a_kind_says_of_itself() {
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

/// Kinds with arbitrary parameters, for random files.
#[derive(JsonSchema)]
#[schemars(transparent)]
struct Any(#[allow(dead_code)] serde_json::Value);

impl<'de> Deserialize<'de> for Any {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self(serde_json::Value::Null))
    }
}

impl Kind for Any {
    const NAME: &'static str = "any";
    const PORTS: Ports = Ports { inputs: &[], outputs: &["out"] };

    fn build(self, _: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        Ok(Box::new(Anything))
    }
}

fn value() -> impl Strategy<Value = toml::Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(toml::Value::Boolean),
        any::<i64>().prop_map(toml::Value::Integer),
        any::<f64>().prop_filter("nan is not equal to itself", |n| !n.is_nan()).prop_map(toml::Value::Float),
        ".*".prop_map(toml::Value::String),
        Just(toml::Value::Datetime("1979-05-27T07:32:00Z".parse().unwrap())),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(toml::Value::Array),
            prop::collection::hash_map(".{0,8}", inner, 0..4)
                .prop_map(|fields| toml::Value::Table(fields.into_iter().collect())),
        ]
    })
}

fn queue() -> impl Strategy<Value = Option<QueueOptions>> {
    let policy = prop::sample::select(Policy::ALL.to_vec());
    prop::option::of((1usize..65_536, prop::option::of(1usize..1 << 40), policy).prop_map(
        |(capacity_batches, capacity_bytes, policy)| QueueOptions {
            capacity_batches,
            capacity_bytes,
            policy,
        },
    ))
}

static KINDS: Mutex<Option<Kinds>> = Mutex::new(None);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Any parameters, ids and queues: a saved file parses to the same graph, and saves as the same text.
    #[test]
    fn what_is_saved_reads_the_same(
        sources in prop::collection::vec(
            (prop::collection::hash_map(".{0,8}", value(), 0..4), queue(), prop::option::of(0usize..1)), 1..5),
        names in prop::collection::hash_set("[a-zA-Z0-9_äß-]{1,12}", 10),
        hosts in prop::collection::vec(prop::option::of(prop::bool::ANY), 5),
    ) {
        let mut names = names.into_iter();
        let mut file = GraphFile::default();
        for (at, (params, queue, cpu)) in sources.into_iter().enumerate() {
            let (Some(from), Some(to)) = (names.next(), names.next()) else { break };
            let params = params.into_iter().collect();
            let host = hosts[at].map(|_| format!("lab{at}"));
            if let (Some(name), Some(restarts)) = (host.clone(), hosts[at]) {
                let restart = if restarts { Restart::Always } else { Restart::No };
                file.hosts.push(FileHost { name, restart });
            }
            file.stages.push(FileStage { id: from.clone(), kind: "any".into(), params, cpu, host: host.clone() });
            file.stages.push(FileStage { id: to.clone(), kind: "sink".into(), params: toml::Table::new(), cpu: None, host });
            file.edges.push(FileEdge { from: (from, "out".into()), to: (to, "in".into()), queue });
        }
        let mut kinds_once = KINDS.lock().unwrap();
        let kinds = kinds_once.get_or_insert_with(|| {
            let mut kinds = kinds();
            kinds.add::<Any>();
            kinds
        });
        let text = file.to_toml();
        let again = GraphFile::parse(&text, Path::new("saved.toml"), kinds);
        prop_assert!(again.is_ok(), "{}\n{text}", again.unwrap_err());
        let again = again.unwrap();
        prop_assert_eq!(&again, &file);
        prop_assert_eq!(again.to_toml(), text);
    }

    #[test]
    fn no_text_panics(text in "(\\[\\[stage\\]\\]|\\[\\[edge\\]\\]|\\[\\[host\\]\\]|host|restart|id|kind|from|to|params|cpu| = |\"a\"|\"source\"|1|\n|.){0,60}") {
        if let Err(mistakes) = GraphFile::parse(&text, Path::new("any.toml"), &kinds()) {
            prop_assert!(!mistakes.to_string().is_empty());
        }
    }
}

#[test]
#[should_panic(expected = "there is a kind 'source' already")]
fn a_kind_does_not_replace_another_unasked() {
    let mut kinds = kinds();
    kinds.replace::<Source>();
    kinds.add::<Source>();
}
