//! Names and metadata of files can neither control a terminal nor hide text.
#![cfg(unix)]

use std::fs;

use crate::support::{path, run, text};
use serde_json::{Value, json};

/// Colours, a letter that turns others around, the one-byte escape, two that are not seen, and another line.
const EVIL: &str = "\u{1b}[31mx\u{202e}\u{9b}2J\u{2066}\u{200b}\u{ad}\ngrebe: all is well";

/// All output, in visible characters and lines.
fn said(arguments: &[&str]) -> String {
    let output = run(arguments);
    let said = text(&output.stdout) + &text(&output.stderr);
    let unseen = |letter: char| {
        let is_format = matches!(letter, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}');
        letter != '\n' && (letter.is_control() || is_format)
    };
    assert!(!said.contains(unseen), "{arguments:?}: {said:?}");
    assert!(!said.lines().any(|line| line == "grebe: all is well"), "{arguments:?}: {said}");
    said
}

fn metadata(global: &Value) -> String {
    json!({ "global": global, "captures": [{ "core:sample_start": 0 }], "annotations": [] }).to_string()
}

#[test]
fn errors_about_files_show_every_letter_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let write = |name: &str, contents: &[u8]| {
        fs::write(at(name), contents).unwrap();
        at(name)
    };
    let datatype = write(
        "datatype.sigmf-meta",
        metadata(&json!({ "core:datatype": EVIL, "core:version": "1.0.0" })).as_bytes(),
    );
    let global = json!({ "core:datatype": "ri16_le", "core:version": "1.0.0", "core:dataset": format!("no{EVIL}.bin") });
    let dataset = write("dataset.sigmf-meta", metadata(&global).as_bytes());
    let mut header =
        format!("{{'descr': '<i2{EVIL}', 'fortran_order': False, 'shape': (4,), }}\n").into_bytes();
    let length = (header.len() as u16).to_le_bytes();
    let mut npy = b"\x93NUMPY\x01\0".to_vec();
    npy.extend(length);
    npy.append(&mut header);
    let npy = write("a.npy", &[&npy[..], &[0; 8]].concat());
    let named = write(&format!("a{EVIL}.sigmf-meta").replace('\n', "\r"), b"{");
    for file in [&datatype, &dataset, &npy, &named] {
        let said = said(&["info", path(file)]);
        assert!(said.contains("\\u{1b}[31mx\\u{202e}\\u{9b}2J\\u{2066}\\u{200b}\\u{ad}"), "{file:?}: {said}");
        let printed = text(&run(&["info", "--json", path(file)]).stdout);
        assert!(!printed.contains(['\u{202e}', '\u{9b}', '\u{200b}']), "{printed:?}");
        let value: Value = serde_json::from_str(&printed).unwrap();
        assert!(value["error"].as_str().unwrap().contains("\u{1b}[31mx\u{202e}\u{9b}2J\u{2066}"), "{value}");
    }
    said(&["info", "--verify", path(&named)]);
    let evil = EVIL.replace('\n', "");
    let csv = write("a.csv", format!("a{evil},b\n1,2\n3,{evil}\n").as_bytes());
    let said = said(&["convert", path(&csv), path(&at("a.wav"))]);
    assert!(said.contains("line 3") && said.contains("\\u{1b}[31mx\\u{202e}"), "{said}");
}

#[test]
fn texts_of_a_recording_are_shown_escaped_and_unchanged_in_json() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.sigmf-meta");
    let global = json!({
        "core:datatype": "ri16_le", "core:version": "1.0.0", "core:sample_rate": 1e3, "core:num_channels": 1,
        "core:description": EVIL, "core:author": EVIL, "core:hw": EVIL,
    });
    fs::write(&file, metadata(&global)).unwrap();
    fs::write(file.with_extension("sigmf-data"), [0; 64]).unwrap();
    let said = said(&["info", path(&file)]);
    assert!(said.contains("\\u{1b}[31mx\\u{202e}") && said.contains("\\ngrebe: all is well"), "{said}");
}

#[test]
fn a_list_of_copied_files_shows_every_character_and_so_does_json() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    fs::create_dir(&from).unwrap();
    let name = format!("a{EVIL}").replace('/', "");
    fs::write(from.join(&name), b"1").unwrap();
    let words = said(&["cp", "-rv", path(&from), path(&to)]);
    assert!(words.contains("a\\u{1b}[31mx\\u{202e}\\u{9b}2J\\u{2066}\\u{200b}\\u{ad}\\ngrebe"), "{words}");
    let printed = said(&["cp", "-rv", "--json", path(&from), path(&folder.path().join("more"))]);
    let mut lines = printed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let is_named = |line: Value| line["file"]["name"].as_str().is_some_and(|it| it.ends_with(&name));
    assert!(lines.any(is_named), "{printed}");
}

#[test]
fn a_word_of_the_command_line_that_is_refused_is_shown_whole() {
    let words = said(&["info", "--no\u{202e}such"]);
    assert!(words.contains("--no\\u{202e}such"), "{words}");
}
