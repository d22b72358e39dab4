//! Mistakes in graph files, with their messages.

use std::fmt::Write;

use super::*;

/// Valid start of a file, to which each case adds a mistake.
pub(super) const GOOD: &str = r#"[[stage]]
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
    ("a path of Windows", "rate = \"1M\"", r#"rate = "C:\Temp\1M""#),
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
    ("an id that is not text", "id = \"end\"", "id = 7"),
    ("an id with a dot", "id = \"end\"", "id = \"the.end\""),
    ("two stages of one name", "id = \"end\"", "id = \"gen\""),
    ("an unknown kind", "kind = \"source\"", "kind = \"sorce\""),
    ("a kind that nothing is like", "kind = \"source\"", "kind = \"teleporter\""),
    ("parameters that are not a table", "params = { rate = \"1M\", channels = 2 }", "params = 3"),
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
    ("a capacity that is not a number", "to = \"end\"", "to = \"end\"\ncapacity = true"),
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
    ("wrong settings of hosts", GOOD, HOSTS),
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
fn every_mistake_is_reported_at_its_place() {
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
