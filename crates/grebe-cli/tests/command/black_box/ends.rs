//! Events that begin before the ring does, and at the end of the recording.

use super::*;

/// Plays a recording into a ring with a search: the report, the notes, and the saves.
fn watched(source: &Path, ring: &Path, more: &[&str]) -> (Value, String, Vec<SampleFile>) {
    let mut player = grebe(&["play", source.to_str().unwrap(), "--speed", "8", "--to", "pipe:"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let arguments = [&["record", "pipe:", ring.to_str().unwrap(), "--json", "--on-trigger", "level"], more];
    let recorder = grebe(&arguments.concat())
        .stdin(player.stdout.take().unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = finish(recorder);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    // A recording with a --duration ends before the player.
    let _ = player.kill();
    player.wait().unwrap();
    (serde_json::from_slice(&output.stdout).unwrap(), said, saves(ring, "level"))
}

fn recorded(folder: &Path, samples: &[i16], rate_hz: f64) -> PathBuf {
    let path = folder.join("x.sigmf-meta");
    let settings = SigmfSettings { sample_rate_hz: rate_hz, ..SigmfSettings::default() };
    let mut writer = SigmfWriter::create(&path, &settings).unwrap();
    writer.write(0, &[samples]).unwrap();
    writer.finish().unwrap();
    path
}

#[test]
fn an_event_longer_than_the_ring_is_saved_from_where_the_ring_begins() {
    let folder = folder();
    let source = recorded(folder.path(), &[20_000; 120_000], 10e3);
    let conditions = ["--ring", "4s", "--level", "10000", "--before", "1s", "--after", "1s"];
    let (report, said, kept) = watched(&source, &folder.path().join("ring"), &conditions);
    let trigger = &report["trigger"];
    if trigger["skipped_frames"] != 0 {
        println!("skipped: no time to search everything");
        return;
    }
    assert_eq!((&trigger["events"], &trigger["saves"]), (&1.into(), &1.into()), "{trigger}: {said}");
    let first = kept[0].segments()[0].first_sample_index;
    let length = kept[0].len_samples();
    assert!(first > 0 && length >= 40_000 && first + length == 120_000, "{length} samples from {first} on");
    let [label] = kept[0].annotations() else { panic!("{:?}", kept[0].annotations()) };
    assert_eq!((label.position, label.length_samples), (0, length));
    let comment = format!("channel 1, began {first} samples before this recording");
    assert_eq!(label.fields["core:comment"], comment);
    // The second before the event, and its samples that the ring had no room for.
    let seconds = (10_000 + first) as f64 / 10e3;
    assert!(said.contains(&format!("the first {seconds} s are missing")), "{said}");
    assert!(!said.contains("was not written"), "{said}");
}

#[test]
fn events_after_the_duration_are_not_counted_and_end_with_the_recording() {
    let folder = folder();
    let mut samples = vec![0i16; 80_000];
    for pulse in [50_000..50_020, 59_990..60_005, 60_010..60_020] {
        samples[pulse].fill(20_000);
    }
    let source = recorded(folder.path(), &samples, 100e3);
    let conditions = ["--ring", "4s", "--level", "10000", "--before", "5ms", "--after", "5ms"];
    let conditions = [&conditions[..], &["--duration", "600ms"]].concat();
    let (report, said, kept) = watched(&source, &folder.path().join("ring"), &conditions);
    assert_eq!(report["samples"], 60_000, "{report}");
    let trigger = &report["trigger"];
    if trigger["skipped_frames"] == 0 {
        assert_eq!((&trigger["events"], &trigger["saves"]), (&2.into(), &2.into()), "{trigger}: {said}");
        let lengths: Vec<u64> = kept.iter().map(|file| file.annotations()[0].length_samples).collect();
        assert_eq!(lengths, [20, 10]);
    }
    assert!(!said.contains("not saved") && !said.contains("was not written"), "{said}");
}
