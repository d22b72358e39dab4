//! Graph files through the built command: results, errors, ends.

#[cfg(unix)]
mod direct;
#[cfg(unix)]
mod hosts;
#[cfg(unix)]
mod restart;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use crate::support::{Good, check_page, finish, grebe, run, text};
use grebe::flow::{GraphFile, Ports};
use grebe::frame::{DescriptionReader, Frame, HEADER_BYTES, Header};
use serde_json::Value;

/// Writes a graph file and runs it.
fn run_graph(folder: &Path, graph: &str, more: &[&str]) -> Output {
    let path = folder.join("graph.toml");
    fs::write(&path, graph.replace("FOLDER", &folder.to_str().unwrap().replace('\\', "/"))).unwrap();
    let mut arguments = vec!["run", path.to_str().unwrap()];
    arguments.extend(more);
    run(&arguments)
}

/// The file in the help of the command, which is all that an installed command has.
#[test]
fn the_graph_in_the_help_runs() {
    let folder = tempfile::tempdir().unwrap();
    let help = text(&run(&["run", "--help"]).good().stdout);
    let (_, graph) = help.split_once("A graph file with three stages:\n").unwrap();
    let (graph, _) = graph.split_once("\n\n").unwrap();
    let graph = graph
        .replace("half.sigmf-meta", "FOLDER/half.sigmf-meta")
        .replace("\"1M\"", "\"1M\", free_run = true");
    let said = text(&run_graph(folder.path(), &graph, &[]).good().stderr);
    assert!(said.contains("disk: 3,000,000 samples per channel"), "{said}");
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

const FAN_OUT: &str = r#"
[[stage]]
id = "generator"
kind = "synth"
params = { channels = 2, rate = "1M", wave = ["sine", "noise"], samples = "300k", free_run = true }

[[stage]]
id = "plain"
kind = "record"
params = { file = 'FOLDER/plain.sigmf-meta' }

[[stage]]
id = "half"
kind = "gain"
params = { gain = [1, 0.5] }

[[stage]]
id = "quiet"
kind = "record"
params = { file = 'FOLDER/quiet.sigmf-meta' }

[[stage]]
id = "nowhere"
kind = "null"

[[edge]]
from = "generator"
to = "plain"

[[edge]]
from = "generator.out"
to = "half.in"
capacity = 16

[[edge]]
from = "half"
to = "quiet"

[[edge]]
from = "half"
to = "nowhere"
fuse = true
"#;

#[test]
fn a_graph_makes_the_bytes_that_the_generator_makes() {
    let folder = tempfile::tempdir().unwrap();
    let output = run_graph(folder.path(), FAN_OUT, &["--json"]).good();
    let file = folder.path().join("direct.sigmf-meta");
    let to = format!("file:{}", file.display());
    let waves = ["--channels", "2", "--wave", "sine,noise", "--samples", "300k", "--free-run", "--to", &to];
    run(&[&["sg", "--rate", "1M"], &waves[..]].concat()).good();
    let data = |name: &str| fs::read(folder.path().join(format!("{name}.sigmf-data"))).unwrap();
    for channel in ["ch1", "ch2"] {
        assert_eq!(data(&format!("plain_{channel}")), data(&format!("direct_{channel}")), "{channel}");
    }
    // A change in one branch does not affect the other.
    assert_eq!(data("quiet_ch1"), data("plain_ch1"));
    let samples = |name: &str| -> Vec<i16> {
        data(name).chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect()
    };
    let halves =
        samples("plain_ch2").into_iter().map(|sample| (f32::from(sample) * 0.5).round_ties_even() as i16);
    assert_eq!(samples("quiet_ch2"), halves.collect::<Vec<_>>());

    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let stages = report["graph"]["stages"].as_array().unwrap();
    assert_eq!(stages.len(), 5);
    assert!(stages.iter().all(|stage| stage["samples_in"] == 300_000 || stage["samples_out"] == 300_000));
    assert_eq!(report["losses"]["queue_frames"], 0);
}

#[test]
fn the_report_has_the_share_of_each_end_and_the_stage_counters() {
    let folder = tempfile::tempdir().unwrap();
    let graph = FAN_OUT.replace("gain = [1, 0.5]", "gain = 2").replace("300k", "10_000");
    let output = run_graph(folder.path(), &graph, &[]);
    let said = text(&output.stderr);
    assert!(output.status.success() && output.stdout.is_empty(), "{said}");
    for part in [
        "plain: 10,000 samples per channel in",
        "quiet: 10,000",
        "nowhere: 10,000",
        "clipped_samples",
        "nothing lost",
    ] {
        assert!(said.contains(part), "no '{part}' in: {said}");
    }
}

#[test]
fn two_streams_become_one_with_the_channels_of_both() {
    let folder = tempfile::tempdir().unwrap();
    let graph = r#"
        stage = [
            { id = "one", kind = "synth", params = { samples = "90k", rate = "1M", free_run = true } },
            { id = "two", kind = "synth", params = { samples = "100k", channels = 2, wave = "noise", free_run = true } },
            { id = "three", kind = "merge" },
            { id = "take", kind = "record", params = { file = 'FOLDER/three.sigmf-meta' } },
        ]
        edge = [
            { from = "one", to = "three.first" },
            { from = "two", to = "three.second" },
            { from = "three", to = "take" },
        ]
    "#;
    let output = run_graph(folder.path(), graph, &["--json"]).good();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["losses"]["network_samples"], 0, "{report}");
    for (name, uri) in [("a", "synth:?channels=1"), ("b", "synth:noise?channels=2")] {
        let file = folder.path().join(format!("{name}.sigmf-meta"));
        let uri = format!("{uri}&free_run&samples=90k");
        assert!(run(&["record", &uri, file.to_str().unwrap()]).status.success());
    }
    let data = |name: &str| fs::read(folder.path().join(format!("{name}.sigmf-data"))).unwrap();
    assert_eq!(data("three_ch1"), data("a"));
    assert_eq!(data("three_ch2"), data("b_ch1"));
    assert_eq!(data("three_ch3"), data("b_ch2"));

    let rates = graph.replace("rate = \"1M\"", "rate = \"2M\"").replace("three.sigmf", "apart.sigmf");
    let output = run_graph(folder.path(), &rates, &[]);
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("three: the rate of a merged stream"), "{}", text(&output.stderr));
}

#[test]
fn a_check_opens_nothing_and_a_bad_file_is_shown_at_its_lines() {
    let folder = tempfile::tempdir().unwrap();
    let output = run_graph(folder.path(), FAN_OUT, &["--check"]).good();
    assert!(text(&output.stderr).contains("is valid: 5 stages, 4 edges"));
    assert!(!folder.path().join("plain.sigmf-meta").exists());

    let bad = FAN_OUT.replace("kind = \"gain\"", "kind = \"gian\"").replace("capacity = 16", "capacity = 0");
    for more in [&["--check"][..], &[]] {
        let output = run_graph(folder.path(), &bad, more);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        for part in
            ["graph.toml:14:8", "did you mean 'gain'?", "14 | kind = \"gian\"", "capacity 0", "has 2 errors"]
        {
            assert!(said.contains(part), "no '{part}' in: {said}");
        }
    }
    let missing = run(&["run", "no-such-graph.toml"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("cannot read no-such-graph.toml"), "{}", text(&missing.stderr));
}

#[test]
fn a_stage_that_cannot_be_had_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let graph = FAN_OUT.replace("FOLDER/quiet", "FOLDER/none/quiet");
    let output = run_graph(folder.path(), &graph, &[]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("quiet: cannot create"), "{said}");
    assert!(!folder.path().join("plain_ch1.sigmf-data").exists(), "nothing has run");
}

#[test]
fn a_pipe_at_each_end_and_a_limit_on_its_samples() {
    let folder = tempfile::tempdir().unwrap();
    let graph = r#"
        stage = [
            { id = "in", kind = "pipe_in", params = { samples = 1_000 } },
            { id = "second", kind = "select", params = { channels = [2] } },
            { id = "out", kind = "pipe_out" },
        ]
        edge = [{ from = "in", to = "second", fuse = true }, { from = "second", to = "out", fuse = true }]
    "#;
    let path = folder.path().join("graph.toml");
    fs::write(&path, graph).unwrap();
    let mut source = grebe(&["sg", "--channels", "2", "--wave", "sine,saw", "--free-run", "--to", "pipe:"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let relay = grebe(&["run", path.to_str().unwrap()])
        .stdin(source.stdout.take().unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = finish(relay).good();
    source.wait().unwrap();
    let (mut rest, mut samples) = (output.stdout.as_slice(), Vec::new());
    let description_bytes = DescriptionReader::frame_bytes(rest).unwrap();
    let said = DescriptionReader::default().take(&rest[..description_bytes]).unwrap();
    assert!(said.unwrap().clock.is_some(), "what the generator says is handed on");
    rest = &rest[description_bytes..];
    while !rest.is_empty() {
        let header = Header::parse(rest).unwrap();
        let (frame, after) = rest.split_at(header.frame_bytes());
        assert_eq!((header.channel_count, header.first_sample_index), (1, samples.len() as u64));
        samples.extend(Frame::parse(frame).unwrap().channel::<i16>(0).unwrap().into_owned());
        rest = after;
        assert!(rest.len() >= HEADER_BYTES || header.is_end_of_stream(), "the end of the stream is reported");
    }
    assert_eq!(samples.len(), 1_000);
    // The second channel is the sawtooth, which rises; the first would not.
    assert!(samples[..600].windows(2).all(|pair| pair[0] <= pair[1]));

    let both = run(&["run", path.to_str().unwrap(), "--json"]);
    assert_eq!(both.status.code(), Some(2));
    assert!(text(&both.stderr).contains("standard output"), "{}", text(&both.stderr));
}

#[cfg(unix)]
#[test]
fn ctrl_c_drains_and_leaves_a_good_recording() {
    let folder = tempfile::tempdir().unwrap();
    let graph = FAN_OUT.replace(", samples = \"300k\", free_run = true", "");
    let path = folder.path().join("graph.toml");
    fs::write(&path, graph.replace("FOLDER", folder.path().to_str().unwrap())).unwrap();
    let child =
        grebe(&["run", path.to_str().unwrap()]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // It runs once the first frame has made the recorder create its files.
    let data = ["plain", "quiet"].map(|name| folder.path().join(format!("{name}_ch1.sigmf-data")));
    crate::support::wait_until("it does not record", || data.iter().all(|path| path.exists()));
    crate::support::signal("-INT", child.id());
    let output = finish(child);
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("nothing lost"), "{}", text(&output.stderr));
    let lengths = data.map(|path| fs::metadata(path).unwrap().len());
    assert!(lengths[0] > 0 && lengths[0] == lengths[1], "{lengths:?}: what was made is in both");
    let file = grebe::recording::SampleFile::open(folder.path().join("plain.sigmf-collection")).unwrap();
    assert!(file.notes().is_empty(), "{:?}", file.notes());
}

#[test]
fn kinds_are_listed_with_their_parameters_and_schemas() {
    let listed = text(&run(&["run", "--kinds"]).stdout);
    for kind in grebe::stages::kinds().iter() {
        assert!(listed.contains(&format!("  {:<12}", kind.name())), "no {} in {listed}", kind.name());
        assert!(kind.params().iter().all(|param| listed.contains(&format!("    {:<16}", param.name))));
    }
    let schema: Value = serde_json::from_slice(&run(&["run", "--kinds", "synth"]).stdout).unwrap();
    assert_eq!(schema["properties"]["channels"]["default"], 1);
    assert_eq!(schema["additionalProperties"], false);
    let all: Value = serde_json::from_slice(&run(&["run", "--kinds", "--json"]).stdout).unwrap();
    assert!(all["record"]["properties"]["file"].is_object());
    let unknown = run(&["run", "--kinds", "teleporter"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert_eq!(run(&["run"]).status.code(), Some(2));
}

#[test]
fn every_example_is_good() {
    let kinds = grebe::stages::kinds();
    let mut examples = 0;
    for entry in fs::read_dir(repository().join("examples/graphs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let file = GraphFile::load(&path, &kinds).unwrap_or_else(|error| panic!("{error}"));
            let again = GraphFile::parse(&file.to_toml(), Path::new("saved"), &kinds).unwrap();
            assert_eq!(again, file, "{}", path.display());
            examples += 1;
        }
    }
    assert!(examples >= 3);
}

/// The graphs on the pages are valid, and the reference describes every kind.
#[test]
fn the_page_tells_every_kind_as_it_is() {
    let kinds = grebe::stages::kinds();
    for page in ["docs/graphs.md", "docs/kinds.md"] {
        let text = fs::read_to_string(repository().join(page)).unwrap();
        let graphs: Vec<_> =
            text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        assert!(!graphs.is_empty(), "{page}");
        for graph in graphs {
            if let Err(mistakes) = GraphFile::parse(graph, Path::new(page), &kinds) {
                panic!("{mistakes}");
            }
        }
    }
    check_page("kinds.md", "kinds", &reference());
}

/// A heading, and which ports a kind under it has.
type Role = (&'static str, fn(Ports) -> bool);

fn reference() -> String {
    let on_one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
    let mut text = String::from("\n");
    let roles: [Role; 3] = [
        ("Sources", |ports| ports.inputs.is_empty()),
        ("Processing", |ports| !ports.inputs.is_empty() && !ports.outputs.is_empty()),
        ("Sinks", |ports| ports.outputs.is_empty()),
    ];
    for (title, is_role) in roles {
        text.push_str(&format!("\n### {title}\n"));
        for kind in grebe::stages::kinds().iter().filter(|kind| is_role(kind.ports())) {
            text.push_str(&format!("\n**`{}`** {}\n", kind.name(), on_one_line(kind.about())));
            if kind.ports().outputs.len() > 1 {
                text.push_str(&format!("Outputs: `{}`.\n", kind.ports().outputs.join("`, `")));
            }
            if !kind.params().is_empty() {
                text.push_str("\n| parameter | what it is | if not given |\n|---|---|---|\n");
            }
            for param in kind.params() {
                let default = match (param.is_required, param.default) {
                    (true, _) => "must be given".to_owned(),
                    (false, Some(default)) => format!("`{default}`"),
                    (false, None) => String::new(),
                };
                text.push_str(&format!("| `{}` | {} | {default} |\n", param.name, on_one_line(param.about)));
            }
        }
    }
    text.push('\n');
    text
}
