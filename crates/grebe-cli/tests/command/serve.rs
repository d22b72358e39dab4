//! `grebe serve` and its viewers: pictures, admission, control, search.

mod admission;
mod control;
#[cfg(unix)]
mod ends;
mod searching;
pub(crate) mod served;

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::support::{Good, example, finish, grebe, run, text};
use serde_json::Value;
use served::serve;

/// A picture of a served source with its measurements; of a recording once it is complete.
fn picture(link: &str, file: &Path, more: &[&str]) -> Value {
    let arguments = [&["view", link, "--png", file.to_str().unwrap(), "--json"], more].concat();
    let output = run(&arguments).good();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_remote_picture_of_a_recording_equals_the_local_one_to_the_pixel() {
    let folder = tempfile::tempdir().unwrap();
    let (far, near) = (folder.path().join("far.png"), folder.path().join("near.png"));
    let recording = example("ecg.sigmf-meta");
    let recording = recording.to_str().unwrap();
    let served = serve(&[recording, "--names", "ECG", "--units", "V", "--scale", "5u"]);
    let look = ["--span", "9s", "--size", "900x500"];
    let numbers = picture(&served.link, &far, &look);
    let near_look = ["--names", "ECG", "--units", "V", "--scale", "5u"];
    let arguments =
        [&["view", recording, "--png", near.to_str().unwrap(), "--json"], &look[..], &near_look[..]].concat();
    let output = run(&arguments);
    let expected: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(numbers["channels"], expected["channels"]);
    assert_eq!(numbers["channels"][0]["name"], "ECG");
    assert_eq!(numbers["trigger"]["found"], expected["trigger"]["found"]);
    let [far, near] = [far, near].map(|path| fs::read(path).unwrap());
    assert!(far == near, "the pictures differ: {} and {} bytes", far.len(), near.len());
}

#[test]
fn two_viewers_see_different_ranges_and_the_server_lists_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut served = serve(&["synth:sine,square?channels=2&rate=1M&frequency=1k"]);
    let link = served.link.clone();
    let (one, other) = (folder.path().join("one.png"), folder.path().join("other.png"));
    let (wide, narrow) = std::thread::scope(|scope| {
        let wide = scope.spawn(|| picture(&link, &one, &["--span", "100ms"]));
        let narrow = picture(&link, &other, &["--span", "2ms", "--channels", "2", "--spectrum"]);
        (wide.join().unwrap(), narrow)
    });
    let frequency = |numbers: &Value| numbers["channels"][0]["frequency"].as_f64().unwrap();
    assert_eq!(
        (wide["channels"].as_array().unwrap().len(), narrow["channels"].as_array().unwrap().len()),
        (2, 1)
    );
    assert!(
        (frequency(&wide) - 1000.0).abs() < 1.0 && (frequency(&narrow) - 1000.0).abs() < 5.0,
        "{wide} {narrow}"
    );
    let peak = narrow["channels"][0]["peaks"][0]["hz"].as_f64().unwrap();
    assert!((peak - 1000.0).abs() < 130.0, "{peak}");
    assert!(served.says("connected (2 now)").contains("127.0.0.1"));
    served.says("left (0 now)");
}

#[test]
fn each_viewer_sees_the_source_that_its_link_names() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let recording = example("ecg.sigmf-meta");
    let square = "synth:square?channels=2&rate=1M&frequency=2k";
    let mut served =
        serve(&["synth:sine?channels=1&rate=1M&frequency=1k", square, recording.to_str().unwrap()]);
    let link = |source: usize| format!("{}&source={source}", served.link);
    let (first, second, third) = (served.link.clone(), link(2), link(3));
    let (beyond, look) = (link(4), ["--span", "10ms"]);
    let [first, second, third] = std::thread::scope(|scope| {
        let second = scope.spawn(|| picture(&second, &at("2.png"), &look));
        let third = scope.spawn(|| picture(&third, &at("3.png"), &["--span", "9s"]));
        [picture(&first, &at("1.png"), &look), second.join().unwrap(), third.join().unwrap()]
    });
    let frequency = |numbers: &Value| numbers["channels"][0]["frequency"].as_f64().unwrap();
    let channels = |numbers: &Value| numbers["channels"].as_array().unwrap().len();
    assert_eq!((channels(&first), channels(&second)), (1, 2));
    assert!((frequency(&first) - 1000.0).abs() < 1.0 && (frequency(&second) - 2000.0).abs() < 5.0);
    assert_eq!(third["sample_rate_hz"], 360.0);
    let output = run(&["view", &beyond, "--png", "-"]);
    let said = text(&output.stderr);
    assert!(
        !output.status.success() && said.contains("no source 4") && said.contains("2 synth:square"),
        "{said}"
    );
    served.says("connected at synth:square");
}

#[test]
fn impossible_options_are_errors_before_the_server_runs() {
    for (arguments, words) in [
        (
            vec![
                "serve",
                "synth:",
                "--listen",
                "127.0.0.1:0",
                "--tls-cert",
                "nowhere.pem",
                "--tls-key",
                "nowhere.key",
            ],
            "nowhere.pem",
        ),
        (vec!["serve", "synth:", "--listen", "192.0.2.1:1"], "cannot listen on 192.0.2.1:1"),
        (vec!["serve", "synth:", "--stdio"], "cannot be used with"),
        (vec!["serve", "synth:", "nowhere.sigmf-meta"], "nowhere.sigmf-meta"),
        (vec!["serve", "nowhere.sigmf-meta"], "nowhere.sigmf-meta"),
        (vec!["view", "serve://mast", "--png", "-"], "port is missing"),
        (vec!["view", "ssh://mast", "--png", "-"], "no stream after the host"),
        (
            vec!["view", "serve://a:1?token=x", "synth:", "--term"],
            "cannot show local and remote streams together",
        ),
        (
            vec!["view", "serve://a:1?token=x", "--ring", "/data/box", "--term"],
            "give it to grebe serve instead",
        ),
        (
            vec!["view", "serve://a:1?token=x", "--history", "1G", "--png", "-"],
            "give it to grebe serve instead",
        ),
    ] {
        let output = finish(grebe(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains(words), "{arguments:?}: {said}");
    }
}
