//! `grebe doctor` succeeds on any machine, reports the same in each form, and changes nothing.

use crate::support::{Good, run, text};

#[test]
fn every_form_tells_of_the_same_machine() {
    let json = run(&["doctor", "--json"]).good();
    let checks: Vec<serde_json::Value> = serde_json::from_slice(&json.stdout).unwrap();
    assert!(checks.len() >= 10, "{checks:?}");
    for check in &checks {
        let state = check["state"].as_str().unwrap();
        assert!(["ok", "limited", "missing"].contains(&state), "{check}");
        assert_eq!(state == "ok", check["costs"].is_null(), "what is not good has a price: {check}");
    }
    let table = run(&["doctor"]);
    let table = text(&table.stdout);
    for check in &checks {
        let name = check["name"].as_str().unwrap();
        assert!(table.contains(&format!("  {name}: ")), "{name} in {table}");
    }
    let fixes = run(&["doctor", "--fix"]);
    assert!(fixes.status.success());
    for line in text(&fixes.stdout).lines() {
        assert!(table.contains(line) || json_names(&checks, line), "{line}");
    }
}

#[test]
fn a_report_has_the_build_and_no_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.txt");
    let output = crate::support::grebe(&["doctor", "--report", path.to_str().unwrap()])
        .envs([("USER", "annabell"), ("HOME", "/home/annabell"), ("LANG", "annabell.UTF-8")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = std::fs::read_to_string(&path).unwrap();
    assert!(report.contains(env!("CARGO_PKG_VERSION")) && report.contains("features: "), "{report}");
    assert!(report.contains("receive buffer"), "{report}");
    assert!(!report.contains("annabell") && report.contains("LANG=USER.UTF-8"), "{report}");
}

#[test]
fn the_version_has_the_build() {
    let long = run(&["--version"]);
    let (short, long) = (run(&["-V"]), text(&long.stdout));
    assert_eq!(text(&short.stdout), format!("grebe {}\n", env!("CARGO_PKG_VERSION")));
    assert!(long.contains(" build for ") && long.contains("\nfeatures: "), "{long}");
    let checks = run(&["doctor"]);
    let features = long.lines().find_map(|line| line.strip_prefix("features: ")).unwrap();
    assert!(text(&checks.stdout).contains(&format!("features: {features}")), "{features}");
}

#[test]
fn every_manual_page_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(&["man", "--all", folder.path().to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for page in ["grebe.1", "grebe-view.1", "grebe-bench-udp.1"] {
        let content = std::fs::read_to_string(folder.path().join(page)).unwrap();
        assert!(content.contains(".SH NAME"), "{page}");
    }
    let single = run(&["man", "bench", "udp"]);
    assert_eq!(
        text(&single.stdout),
        std::fs::read_to_string(folder.path().join("grebe-bench-udp.1")).unwrap()
    );
}

fn json_names(checks: &[serde_json::Value], fix: &str) -> bool {
    checks.iter().any(|check| check["fix"] == fix)
}

#[test]
#[cfg(target_os = "linux")]
fn disabled_offload_is_reported_with_the_command_that_enables_it() {
    let output = crate::support::grebe(&["doctor", "--json"]).env("GREBE_NO_GSO", "1").output().unwrap();
    let checks: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    let gso = checks.iter().find(|check| check["name"].as_str().unwrap().contains("GSO")).unwrap();
    assert_eq!((gso["state"].as_str(), gso["fix"].as_str()), (Some("limited"), Some("unset GREBE_NO_GSO")));
}
