//! Streams that are announced, found, read and lost, each end in a process of its own.
#![cfg(unix)]

#[cfg(target_os = "linux")]
mod hosts;
mod with_zenoh;

use crate::support::{run, text};

#[cfg(not(feature = "zenoh"))]
#[test]
fn without_zenoh_a_name_says_how_to_build_it_in() {
    for arguments in [
        &["ls"][..],
        &["view", "lab/mast3/adc", "--png", "x.png"],
        &["sg", "--name", "lab/mast3/adc", "--samples", "10"],
        &["sg", "--to", "zenoh://adc", "--samples", "10"],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let said = text(&output.stderr);
        assert!(said.contains("built without Zenoh") && said.contains("--features zenoh"), "{said}");
    }
}

#[test]
fn an_invalid_stream_name_is_refused_before_anything_is_opened() {
    for (arguments, reason) in [
        (&["sg", "--name", "adc"][..], "slashes between"),
        (&["ls", "a*"], "not a pattern of names"),
        (&["ls", "--router", "udp/x:1"], "write tcp/HOST:7447"),
        (&["ls", "--router", "x:1", "--scout"], "cannot be used with"),
        (&["view", "zenoh://a/**"], "not a Zenoh key"),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(reason), "{arguments:?}: {}", text(&output.stderr));
    }
}
