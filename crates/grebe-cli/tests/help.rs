//! What the command says of itself: help, manual pages, completions, units.

mod support;

use std::process::Stdio;

use support::{finish, grebe, run, text};

fn said(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn completions_and_manual_pages_are_shown_and_every_page_that_is_named_exists() {
    let help = said(&["--help"]);
    assert!(help.contains("completions") && help.contains("manual page"), "{help}");
    assert!(help.contains("3 the other side fell silent or is gone"), "{help}");
    assert!(said(&["completions", "bash"]).contains("_grebe"));
    let mut pages = vec![Vec::<String>::new()];
    let mut count = 0;
    while let Some(words) = pages.pop() {
        let arguments: Vec<&str> = ["man"].into_iter().chain(words.iter().map(String::as_str)).collect();
        let page = said(&arguments).replace("\\-", "-");
        count += 1;
        let name =
            ["grebe"].into_iter().chain(words.iter().map(String::as_str)).collect::<Vec<_>>().join("-");
        assert!(page.contains(&format!(".TH {name} ")), "{name}: {page}");
        let more =
            page.lines().filter_map(|line| line.strip_prefix(&format!("{name}-"))?.strip_suffix("(1)"));
        // `help` is no page of its own: it is this text.
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
    assert!(said.contains("good once and for 1 h;"), "{said}");
}

/// In a terminal of its own, which `script` lends.
#[cfg(target_os = "linux")]
#[test]
fn a_terminal_that_cannot_go_back_in_a_line_gets_no_bar() {
    if !std::path::Path::new("/usr/bin/script").is_file() {
        return println!("skipped: no script to lend a terminal");
    }
    let bytes = |term: &str| {
        let line = format!("'{}' bench transfer --parts shares --repeats 1", env!("CARGO_BIN_EXE_grebe"));
        let child = std::process::Command::new("/usr/bin/script")
            .args(["-qec", &line, "/dev/null"])
            .env("TERM", term)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        finish(child).stdout
    };
    assert!(bytes("xterm").contains(&0x1b), "there is a bar where it can be");
    let said = bytes("dumb");
    assert!(!said.contains(&0x1b) && text(&said).contains("CUBIC"), "{}", text(&said));
}
