//! `grebe doctor`: it ends well on any machine, says the same in each form, and changes nothing.

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

fn json_names(checks: &[serde_json::Value], fix: &str) -> bool {
    checks.iter().any(|check| check["fix"] == fix)
}

#[test]
#[cfg(target_os = "linux")]
fn offload_that_is_turned_off_is_told_with_what_turns_it_on() {
    let output = crate::support::grebe(&["doctor", "--json"]).env("GREBE_NO_GSO", "1").output().unwrap();
    let checks: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    let gso = checks.iter().find(|check| check["name"].as_str().unwrap().contains("GSO")).unwrap();
    assert_eq!((gso["state"].as_str(), gso["fix"].as_str()), (Some("limited"), Some("unset GREBE_NO_GSO")));
}
