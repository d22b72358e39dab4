//! Small inputs of every kind through the built command: each is read correctly, read with a note, or refused with a
//! suggestion that works. docs/file-kinds.md has the counts by kind.

mod files;
mod lines;
mod made;
mod tables;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{finish, grebe, run, text};

/// An input and the expected result.
pub(super) struct Input {
    kind: &'static str,
    /// The typed name: a file, or the query of `pipe:` for lines.
    typed: String,
    files: Vec<(String, Vec<u8>)>,
    way: Way,
    came: Came,
}

/// The command that reads it.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Way {
    /// A recording of its own: `info`.
    File,
    /// A text that is read once: `convert`.
    Table,
    /// Standard input: `record pipe:`.
    Lines,
}

pub(super) enum Came {
    Right(Is),
    /// With this in one of its notes.
    Noted(Is, &'static str),
    /// With these words. The suggestion, in the last quotes or after the last colon, gives this result.
    Refused(&'static str, Option<Is>),
}

/// Rate, samples and channels; 0: unknown rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Is(pub(super) f64, pub(super) u64, pub(super) usize);

/// Inputs of a kind.
pub(super) struct Inputs {
    kind: &'static str,
    list: Vec<Input>,
}

impl Inputs {
    pub(super) fn new(kind: &'static str) -> Self {
        Self { kind, list: Vec::new() }
    }

    pub(super) fn right(&mut self, typed: &str, content: impl Into<Vec<u8>>, is: Is) {
        self.add(typed, content, Came::Right(is));
    }

    pub(super) fn noted(&mut self, typed: &str, content: impl Into<Vec<u8>>, is: Is, note: &'static str) {
        self.add(typed, content, Came::Noted(is, note));
    }

    pub(super) fn refused(
        &mut self,
        typed: &str,
        content: impl Into<Vec<u8>>,
        words: &'static str,
        then: Option<Is>,
    ) {
        self.add(typed, content, Came::Refused(words, then));
    }

    fn add(&mut self, typed: &str, content: impl Into<Vec<u8>>, came: Came) {
        let name = typed.split(['?', '&']).next().filter(|name| !name.is_empty());
        self.files(typed, vec![(name.unwrap_or("lines"), content.into())], came);
    }

    pub(super) fn files(&mut self, typed: &str, files: Vec<(&str, Vec<u8>)>, came: Came) {
        let is_table = |name: &str| [".csv", ".tsv", ".txt"].iter().any(|ending| name.contains(ending));
        let way = match files[0].0 {
            "lines" => Way::Lines,
            name if is_table(name) => Way::Table,
            _ => Way::File,
        };
        let files = files.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect();
        self.list.push(Input { kind: self.kind, typed: typed.to_owned(), files, way, came });
    }
}

/// The command's result for an input, with all messages; or its error.
fn tried(folder: &Path, way: Way, typed: &str) -> Result<(Is, String), String> {
    let out = folder.join("out.sigmf-meta").display().to_string();
    let read = |path: &str| {
        let output = run(&["info", "--json", path]);
        let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let Some(channels) = said["channels"].as_array().map(Vec::len) else {
            return Err(text(&output.stderr));
        };
        let is = Is(
            said["sample_rate_hz"].as_f64().unwrap_or(0.0),
            said["samples"].as_u64().unwrap_or(0),
            channels,
        );
        Ok((is, said["notes"].to_string()))
    };
    let made = |output: Output| {
        let said = text(&output.stderr);
        if !output.status.success() {
            return Err(said);
        }
        let collection = folder.join("out.sigmf-collection");
        let opened = if collection.exists() { collection.display().to_string() } else { out.clone() };
        read(&opened).map(|(is, _)| (is, said))
    };
    match way {
        Way::File => read(typed),
        Way::Table => made(run(&["convert", typed, &out, "--overwrite"])),
        Way::Lines => made(fed(&format!("pipe:?format=text{typed}"), &out, &folder.join("lines"))),
    }
}

fn fed(uri: &str, out: &str, lines: &Path) -> Output {
    let mut child = grebe(&["record", uri, out, "--overwrite"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = fs::read(lines).unwrap();
    let writing = std::thread::spawn(move || drop(stdin.write_all(&bytes)));
    let output = finish(child);
    writing.join().unwrap();
    output
}

/// The name that a refusal says to type.
fn suggested(said: &str) -> Option<String> {
    let quoted = said.trim_end().rsplit('\'').nth(1).filter(|name| name.contains('?'));
    quoted.map(str::to_owned)
}

/// A WAV or a SigMF recording as a picture, as SigMF, and of a WAV as a WAV again: what is not as it should be.
fn elsewhere(input: &Input, folder: &Path, typed: &str, right: Is) -> Result<(), String> {
    let at = |name: &str| folder.join(name).display().to_string();
    let drawn = run(&["view", typed, "--png", &at("out.png"), "--json"]);
    let shown: Value = serde_json::from_slice(&drawn.stdout).map_err(|_| text(&drawn.stderr))?;
    let parts = shown["channels"].as_array().map_or(0, Vec::len);
    if !drawn.status.success()
        || !parts.is_multiple_of(right.2)
        || parts == 0
        || shown["missing_samples"] != 0
    {
        return Err(format!("the picture has {parts} channels: {}", text(&drawn.stderr)));
    }
    let (is, _) = tried(folder, Way::Table, typed)?;
    if is != right {
        return Err(format!("as SigMF it is {is:?}"));
    }
    // A WAV of no rate, and of a fraction of a hertz, is refused in words.
    if input.kind.contains("WAV") {
        let collection = at("out.sigmf-collection");
        let made = if Path::new(&collection).exists() { collection } else { at("out.sigmf-meta") };
        let back = run(&["convert", &made, &at("back.wav"), "--overwrite"]);
        let said = run(&["info", "--json", &at("back.wav")]);
        let said: Value = serde_json::from_slice(&said.stdout).map_err(|_| text(&back.stderr))?;
        if said["samples"] != right.1 || said["sample_rate_hz"] != right.0 {
            return Err(format!("back as a WAV it is {said}"));
        }
    }
    Ok(())
}

/// `None` if the result is as expected.
fn wrong(input: &Input) -> Option<String> {
    let folder = TempDir::new().unwrap();
    for (name, bytes) in &input.files {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    let typed = match input.way {
        Way::Lines => input.typed.clone(),
        _ => folder.path().join(&input.typed).display().to_string(),
    };
    let came = tried(folder.path(), input.way, &typed);
    let is_said = |said: &str| !said.contains("[]") && said.len() > 2;
    let fault = match (&input.came, &came) {
        (Came::Right(right), Ok((is, said))) => {
            let is_quiet = input.way != Way::File || !is_said(said);
            (is != right || !is_quiet).then(|| format!("{is:?} with {said}, and not {right:?}"))
        }
        (Came::Noted(right, note), Ok((is, said))) => (is != right || !said.contains(note))
            .then(|| format!("{is:?} with {said}, and not {right:?} with '{note}'")),
        (Came::Refused(words, then), Err(said)) => {
            let again = then.map(|right| {
                let name = suggested(said).ok_or_else(|| "the message suggests no name".to_owned())?;
                let (is, _) = tried(folder.path(), input.way, &name)?;
                if is == right { Ok(()) } else { Err(format!("the suggestion gives {is:?}")) }
            });
            let fails = again.and_then(Result::err);
            (!said.contains(words) || fails.is_some()).then(|| format!("{said} {fails:?}"))
        }
        (_, came) => Some(format!("{came:?}")),
    };
    let fault = fault.or_else(|| match input.came {
        Came::Right(right) | Came::Noted(right, _) if KINDS_ELSEWHERE.contains(&input.kind) => {
            elsewhere(input, folder.path(), &typed, right).err()
        }
        _ => None,
    });
    fault.map(|fault| format!("{}: {}: {fault}", input.kind, input.typed))
}

#[test]
fn inputs_of_every_kind_are_right_or_noted_or_refused_with_words_that_work() {
    let inputs: Vec<Input> =
        [files::inputs(), tables::inputs(), lines::inputs()].into_iter().flatten().collect();
    assert!(inputs.len() >= 120, "{}", inputs.len());
    let halves = inputs.split_at(inputs.len() / 2);
    let wrong = std::thread::scope(|scope| {
        let first = scope.spawn(|| halves.0.iter().filter_map(wrong).collect::<Vec<_>>());
        let second: Vec<String> = halves.1.iter().filter_map(wrong).collect();
        [first.join().unwrap(), second].concat()
    });
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), inputs.len(), wrong.join("\n"));
    let mut counts: BTreeMap<&str, [u32; 3]> = BTreeMap::new();
    for input in &inputs {
        let place = match input.came {
            Came::Right(_) => 0,
            Came::Noted(..) => 1,
            Came::Refused(..) => 2,
        };
        counts.entry(input.kind).or_default()[place] += 1;
    }
    let mut told = String::from(
        "\n| kind | right | right, with a note | refused, with what to type |\n|---|---|---|---|\n",
    );
    for (kind, [right, noted, refused]) in &counts {
        told += &format!("| {kind} | {right} | {noted} | {refused} |\n");
    }
    crate::support::check_page("file-kinds.md", "inputs", &told);
}

const KINDS_ELSEWHERE: [&str; 2] = ["WAV, RF64, BW64", "SigMF"];
