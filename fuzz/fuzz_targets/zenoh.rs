//! Messages of frames, announcements, requests, and counts of processes.
#![no_main]

use grebe_flow::telemetry::HostReport;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, &[u8], &[u8])| {
    let (choice, attachment, bytes) = input;
    match choice % 4 {
        0 => grebe_zenoh::fuzz::message(attachment, bytes),
        1 => counts(bytes),
        2 => grebe_zenoh::fuzz::request(bytes),
        _ => grebe_zenoh::fuzz::announcement("grebe/what/a1/lab/adc", bytes),
    }
});

/// Accepted reports are printable, and writing and reading again gives the same.
fn counts(json: &[u8]) {
    let Ok(told) = HostReport::parse(json) else { return };
    let stages = told.report.stages.iter().map(|stage| &stage.name);
    assert!(
        [&told.host, &told.report.name]
            .into_iter()
            .chain(&told.streams)
            .chain(stages)
            .all(|text| !text.contains(char::is_control))
    );
    let again = HostReport::parse(told.to_json().as_bytes());
    assert!(again.is_ok(), "{again:?}");
}
