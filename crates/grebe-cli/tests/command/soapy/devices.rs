//! Output of `grebe devices`.

use std::process::Stdio;

use serde_json::Value;

use super::radio::{module, run, with_radio};
use crate::support::{finish, grebe, text};

/// The URIs of a bridge.
fn listed(output: &std::process::Output, bridge: &str) -> Vec<String> {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let bridges: Value = serde_json::from_slice(&output.stdout).unwrap();
    let bridge =
        bridges.as_array().unwrap().iter().find(|it| it["bridge"].as_str().unwrap().contains(bridge));
    let devices = bridge.unwrap()["devices"].as_array().unwrap();
    devices.iter().map(|it| it["uri"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_radio_is_listed_while_it_is_there_and_can_be_opened_as_it_is_listed() {
    let Some(_) = module() else { return };
    let uri = "soapy:driver=grebe_test,serial=77";
    assert!(listed(&run(&["devices", "--json"]), "radios").contains(&uri.to_owned()));
    let table = text(&run(&["devices"]).stdout);
    assert!(table.contains(&format!("  '{uri}'")) && table.contains("  A radio that counts"), "{table}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.sigmf-meta");
    let recorded = run(&["record", uri, file.to_str().unwrap(), "--samples", "1k"]);
    assert_eq!(recorded.status.code(), Some(0), "{}", text(&recorded.stderr));
    let unplugged =
        with_radio(&["devices", "--json"]).env("GREBE_TEST_PLUG", folder.path().join("none")).spawn();
    assert!(!listed(&finish(unplugged.unwrap()), "radios").contains(&uri.to_owned()));
}

#[test]
fn streams_in_shared_memory_are_listed_while_they_are_made() {
    let name = format!("shm://listed-{}", std::process::id());
    let mut maker = grebe(&["sg", "--rate", "10k", "--to", &name]).stderr(Stdio::null()).spawn().unwrap();
    let began = std::time::Instant::now();
    let list = || {
        finish(grebe(&["devices", "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    };
    while !listed(&list(), "shared memory").contains(&name) {
        assert!(began.elapsed().as_secs() < 60 && maker.try_wait().unwrap().is_none(), "it is not listed");
    }
    maker.kill().unwrap();
    maker.wait().unwrap();
    assert!(!listed(&list(), "shared memory").contains(&name));
}

#[test]
fn doctor_reports_whether_soapysdr_is_installed() {
    let output =
        finish(grebe(&["doctor", "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let checks: Value = serde_json::from_slice(&output.stdout).unwrap();
    let soapy = checks.as_array().unwrap().iter().find(|it| it["name"] == "SoapySDR").unwrap();
    if soapy["state"] != "missing" {
        println!("skipped: the message without SoapySDR, because it is installed");
        return;
    }
    assert!(soapy["fix"].as_str().unwrap().contains("libsoapysdr0.8"), "{soapy}");
    let output = finish(
        grebe(&["view", "soapy:", "--png", "x.png"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("install SoapySDR 0.8"), "{said}");
}
