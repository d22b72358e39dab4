//! Pipes that are cut off, or carry something else, and streams of nothing.

use super::*;

#[test]
fn a_reader_that_goes_away_ends_the_pipe_without_an_error() {
    let mut generator = grebe(&["sg", "--rate", "1M", "--to", "pipe:"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = generator.stdout.take().unwrap();
    std::io::Read::read_exact(&mut pipe, &mut [0; 64]).unwrap();
    drop(pipe);
    let output = finish(generator);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

/// `grebe record pipe: FILE --json` with these bytes: exit status, JSON, messages.
fn record_pipe(bytes: &[u8], name: &str) -> (Option<i32>, serde_json::Value, String) {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("input");
    fs::write(&input, bytes).unwrap();
    let file = folder.path().join(name);
    let recorder = grebe(&["record", "pipe:", file.to_str().unwrap(), "--json"])
        .stdin(fs::File::open(&input).unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = finish(recorder);
    let report = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code(), report, text(&output.stderr))
}

#[test]
fn a_lost_writer_is_distinguished_from_a_finished_one() {
    let (datagrams, _) = stream(5);
    let (status, report, said) = record_pipe(&datagrams.concat(), "ended");
    assert_eq!((status, report["samples"].as_u64()), (Some(0), Some(5 * 64)), "{said}");
    assert_eq!(report["error"], serde_json::Value::Null);
    let (status, report, said) = record_pipe(&datagrams[..5].concat(), "gone");
    assert_eq!((status, report["samples"].as_u64()), (Some(3), Some(5 * 64)), "{said}");
    assert!(report["error"].as_str().unwrap().contains("without an end of stream"), "{report}");
}

#[test]
fn a_stream_without_a_sample_leaves_no_recording_and_no_good_status() {
    let end = Header {
        channel_count: 1,
        sample_rate_hz: 1e3,
        sg_drops_total: 1_000,
        first_sample_index: 1_000,
        ..Header::default()
    };
    let mut bytes = [0; HEADER_BYTES];
    end.write(&mut bytes);
    for (bytes, expected, drops) in [(&bytes[..], 1, 1_000), (&[], 3, 0)] {
        let (status, report, said) = record_pipe(bytes, "x.sigmf-meta");
        assert_eq!(status, Some(expected), "{said}");
        for said in [&*said, report["error"].as_str().unwrap()] {
            assert!(
                said.contains("no sample was recorded: ") && said.contains("x.sigmf-meta was not written"),
                "{said}"
            );
        }
        let told = (report["samples"].as_u64(), report["losses"]["generator_samples"].as_u64());
        assert_eq!(told, (Some(0), Some(drops)), "a generator that was held up for its whole stream says so");
    }
}

#[test]
fn a_stream_without_a_reader_is_not_reported_as_complete() {
    // A port that was free a moment ago.
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let output = crate::support::run(&["sg", "--samples", "10k", "--to", &format!("udp://{nobody}")]);
    let said = text(&output.stderr);
    assert!(said.contains("sends refused by the destination"), "{said}");
    let output = crate::support::run(&["sg", "--samples", "10k", "--to", "udp://127.0.0.1:0"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
}

#[test]
fn a_pipe_that_carries_something_else_is_refused_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.sigmf-meta");
    let noise = folder.path().join("noise");
    fs::write(&noise, [0x55; 4096]).unwrap();
    let recorder = grebe(&["record", "pipe:", file.to_str().unwrap()])
        .stdin(fs::File::open(&noise).unwrap())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = finish(recorder);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("invalid frame at byte 0 of the pipe"), "{}", text(&output.stderr));
    assert!(!file.exists());
}
