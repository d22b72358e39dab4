//! The program finds the peaks of the signal, and the docs page quotes the code.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::Command;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_graph_file_names_the_crates_own_kinds() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("peaks.csv");
    let graph = fs::read_to_string(here().join("alarm.toml")).unwrap();
    let graph = graph.replace("\"peaks.csv\"", &format!("'{}'", csv.display()));
    let path = folder.path().join("alarm.toml");
    fs::write(&path, &graph).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_my-stage"))
        .arg(&path)
        .current_dir(here().join("../.."))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("level: 108000 samples, rms "), "{said}");

    let data = fs::read(here().join("../data/ecg.sigmf-data")).unwrap();
    let samples: Vec<i16> = data.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect();
    let mut expected = String::from("first_sample_index,length_samples,peak\n");
    let mut at = 0;
    for stretch in samples.chunk_by(|one, next| (*one >= 300) == (*next >= 300)) {
        if stretch[0] >= 300 {
            let peak = stretch.iter().max().unwrap();
            expected.push_str(&format!("{at},{},{peak}\n", stretch.len()));
        }
        at += stretch.len();
    }
    assert!(expected.lines().count() > 200);
    assert_eq!(fs::read_to_string(csv).unwrap(), expected);

    fs::write(&path, graph.replace("level = 300", "level = \"high\"")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_my-stage")).arg(&path).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("level = \"high\""), "{said}");
}

#[test]
fn the_limiter_records_the_limited_signal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limit.toml");
    let graph = fs::read_to_string(here().join("limit.toml")).unwrap();
    let recording = folder.path().join("limited.sigmf-meta");
    fs::write(&path, graph.replace("\"limited.sigmf-meta\"", &format!("'{}'", recording.display()))).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_limiter"))
        .arg(&path)
        .current_dir(here().join("../.."))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let samples = |path: &Path| -> Vec<i16> {
        fs::read(path).unwrap().chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect()
    };
    let heart = samples(&here().join("../data/ecg.sigmf-data"));
    let expected: Vec<i16> = heart.iter().map(|&sample| sample.clamp(-200, 200)).collect();
    assert_ne!(heart, expected);
    assert_eq!(samples(&recording.with_extension("sigmf-data")), expected);
}

/// Checks that the pages show exactly the files compiled here, so that pasted code compiles.
#[test]
fn the_pages_quote_the_code() {
    let stages = ["src/lib.rs", "src/rms.rs", "src/threshold.rs", "src/main.rs"];
    for (page, files) in [("write-a-stage.md", &["src/bin/limiter.rs"][..]), ("stage-reference.md", &stages)]
    {
        let text = fs::read_to_string(here().join("../../docs").join(page)).unwrap();
        let mut code = HashSet::new();
        for file in files {
            let text_of_file = fs::read_to_string(here().join(file)).unwrap();
            let shown = text_of_file.split("#[cfg(test)]").next().unwrap().trim_end();
            assert!(text.contains(&format!("```rust\n{shown}\n```")), "docs/{page} lacks {file} as it is");
            code.extend(text_of_file.lines().map(|line| plain(line).to_owned()));
        }
        let quoted = text.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next());
        for line in quoted.flat_map(str::lines) {
            assert!(
                code.contains(plain(line)),
                "docs/{page} shows a line that is not in the example: {line}"
            );
        }
    }
}

/// A line without its comment.
fn plain(line: &str) -> &str {
    let code =
        if line.trim_start().starts_with("///") { line } else { line.split("//").next().unwrap_or("") };
    code.trim()
}
