//! Help, manual pages, completions, units.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::support::{Good, finish, grebe, run, text};

fn said(arguments: &[&str]) -> String {
    let output = run(arguments).good();
    text(&output.stdout)
}

#[test]
fn completions_and_manual_pages_are_shown_and_every_page_that_is_named_exists() {
    let help = said(&["--help"]);
    assert!(help.contains("completions") && help.contains("manual page"), "{help}");
    assert!(help.contains("3 the other side was silent or is gone"), "{help}");
    let completions = said(&["completions", "bash"]);
    assert!(completions.contains("_grebe") && completions.contains("cf32"), "values are completed, too");
    let mut pages = vec![Vec::<String>::new()];
    let mut count = 0;
    while let Some(words) = pages.pop() {
        let arguments: Vec<&str> = ["man"].into_iter().chain(words.iter().map(String::as_str)).collect();
        let page = said(&arguments).replace("\\-", "-");
        count += 1;
        let name =
            ["grebe"].into_iter().chain(words.iter().map(String::as_str)).collect::<Vec<_>>().join("-");
        assert!(page.contains(&format!(".TH {name} ")), "{name}: {page}");
        assert!(page.contains("Examples:"), "{name} has no examples: {page}");
        let more =
            page.lines().filter_map(|line| line.strip_prefix(&format!("{name}-"))?.strip_suffix("(1)"));
        // `help` has no page; it is this text.
        for more in more.filter(|more| *more != "help") {
            pages.push(words.iter().cloned().chain([more.to_owned()]).collect());
        }
    }
    assert!(count > 15, "{count} pages: the commands and the benches");
}

#[test]
fn times_and_sizes_have_units_that_people_use() {
    let mut child = grebe(&["recv", "--listen", "127.0.0.1:0", "."]);
    let folder = tempfile::tempdir().unwrap();
    let mut child = child.current_dir(&folder).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The ticket stands below the words.
    let mut first = [0];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
    child.kill().unwrap();
    let said = text(&finish(child).stderr);
    assert!(said.contains("once and within 1 h:"), "{said}");
}

/// Output of the command to a terminal, which `script` provides if installed.
#[cfg(target_os = "linux")]
fn in_terminal(term: &str, locale: &str, arguments: &str) -> Option<Vec<u8>> {
    let script = std::path::Path::new("/usr/bin/script");
    if !script.is_file() {
        println!("skipped: no script to lend a terminal");
        return None;
    }
    let line = format!("exec '{}' {arguments}", env!("CARGO_BIN_EXE_grebe"));
    let mut command = std::process::Command::new(script);
    command.args(["-qec", &line, "/dev/null"]).env("TERM", term).env("LC_ALL", locale);
    Some(finish(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()).stdout)
}

#[cfg(target_os = "linux")]
#[test]
fn a_terminal_that_cannot_move_its_cursor_gets_no_bar_and_no_screen() {
    let bench = "bench shm --parts pipe --scenario 1ch_1GSPS --duration 200ms --repeats 1";
    let Some(with_bar) = in_terminal("xterm", "C.UTF-8", bench) else { return };
    assert!(with_bar.contains(&0x1b), "there is a bar where it can be");
    for (arguments, says) in [(bench, "1ch_1GSPS"), ("view synth: --term", "TERM is dumb"), ("top", "--once")]
    {
        let said = in_terminal("dumb", "C.UTF-8", arguments).unwrap();
        assert!(!said.contains(&0x1b) && text(&said).contains(says), "{arguments}: {}", text(&said));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_terminal_without_utf_8_gets_ascii() {
    let bench = "bench shm --parts pipe --scenario 1ch_1GSPS --duration 200ms --repeats 1";
    let Some(plain) = in_terminal("xterm", "C", bench) else { return };
    assert!(plain.is_ascii() && plain.contains(&0x1b), "{}", text(&plain));
    let today = in_terminal("xterm", "C.UTF-8", bench).unwrap();
    assert!(!today.is_ascii(), "the bar has other signs where it can: {}", text(&today));
}

#[test]
fn receiving_commands_have_no_option_for_the_datagram_size() {
    for command in ["record", "view"] {
        let help = said(&[command, "--help"]);
        assert!(help.contains("--latency") && !help.contains("--datagram-size"), "{help}");
        assert!(!help.contains("--burst"), "{help}");
    }
}

/// Text of the Rust files below a folder that have tests.
fn tested(folder: &Path, all: &mut String) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            tested(&path, all);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let code = fs::read_to_string(path).unwrap();
            *all += if code.contains("#[test]") { &code } else { "" };
        }
    }
}

#[test]
fn every_promise_on_the_page_on_security_has_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/security.md")).unwrap();
    let (promises, tests) = page.split_once("\n## Tests\n").unwrap();
    let mut code = HashMap::<&str, String>::new();
    let mut rows = 0;
    for row in tests.lines().filter_map(|line| line.strip_prefix("| ")) {
        let Some((number, row)) = row.split_once(" | ") else { continue };
        if number.parse::<u32>().is_err() {
            continue;
        }
        rows += 1;
        assert_eq!(number, rows.to_string(), "rows count from 1");
        assert!(promises.contains(&format!("[{number}]")), "no promise has {number}");
        let names: Vec<_> = row.split('`').skip(1).step_by(2).filter(|name| !name.starts_with('-')).collect();
        assert!(names.iter().any(|name| name.contains("::")), "{row}");
        for name in names {
            let Some((krate, test)) = name.split_once("::") else {
                assert!(root.join(name).is_file(), "{name} is missing");
                continue;
            };
            let code = code.entry(krate).or_insert_with(|| {
                let mut all = String::new();
                tested(&root.join("crates").join(krate), &mut all);
                all
            });
            assert!(code.contains(&format!("fn {test}(")), "{name} is missing");
        }
    }
    let numbers = promises.split('[').skip(1).filter_map(|text| text.split_once(']')?.0.parse::<u32>().ok());
    let last =
        numbers.inspect(|number| assert!((1..=rows).contains(number), "[{number}] has no row")).count();
    assert!(rows > 50 && last >= rows as usize, "{rows} rows, {last} promises");
    for target in
        tests.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split('|').nth(1))
    {
        for target in target.split('`').skip(1).step_by(2) {
            assert!(root.join(format!("fuzz/fuzz_targets/{target}.rs")).is_file(), "{target} is missing");
        }
    }
}
