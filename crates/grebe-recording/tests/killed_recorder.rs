//! A recorder that is killed with SIGKILL leaves a recording.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use grebe_recording::{Error, SampleFile, SigmfSettings, SigmfWriter};

const PATH: &str = "GREBE_TEST_RECORD_TO";

fn sample(index: u64) -> i16 {
    (index.wrapping_mul(31) >> 3) as i16
}

/// Not a test, but the process that the test kills: it records for ever, with a gap of 100 samples every 100,000.
#[test]
fn record_until_killed() {
    let Some(path) = std::env::var_os(PATH).map(PathBuf::from) else { return };
    let settings = SigmfSettings { channels: 2, sample_rate_hz: 1e6, ..SigmfSettings::default() };
    let mut writer = SigmfWriter::create(&path, &settings).unwrap();
    for index in (0..).step_by(1_000) {
        let skip = if index % 100_000 == 0 { 100 } else { 0 };
        let samples: Vec<i16> = (index + skip..index + 1_000).map(sample).collect();
        writer.write(index + skip, &[&samples, &samples]).unwrap();
        std::thread::sleep(Duration::from_micros(200));
    }
}

#[test]
fn a_killed_recorder_leaves_a_recording() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("killed.sigmf-meta");
    let mut recorder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "record_until_killed", "--nocapture"])
        .env(PATH, &path)
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        assert!(Instant::now() < deadline, "the recorder wrote nothing");
        std::thread::sleep(Duration::from_millis(100));
        if SampleFile::open(&path).is_ok_and(|file| file.segments().len() > 5) {
            break;
        }
    }
    recorder.kill().unwrap();
    recorder.wait().unwrap();

    let mut file = SampleFile::open(&path).unwrap();
    assert_eq!(file.channels(), 2);
    assert!(file.notes().iter().any(|note| note.contains("its recorder was cut off")), "{:?}", file.notes());
    let segments = file.segments().to_vec();
    assert!(segments.len() > 1);
    // The gaps of the last second were not noted, so its samples are excluded: every sample that is read has
    // its correct position.
    for segment in &segments {
        let block = file.block(segment.position, segment.length_samples as usize).unwrap();
        let expected = (segment.first_sample_index..).map(sample).take(segment.length_samples as usize);
        assert!(block.channel::<i16>(0).unwrap().iter().copied().eq(expected));
        assert_eq!(block.channel_bytes(0).unwrap(), block.channel_bytes(1).unwrap());
    }
    // The name is taken until a recorder may overwrite it.
    let settings = SigmfSettings { channels: 2, ..SigmfSettings::default() };
    let error = SigmfWriter::create(&path, &settings).unwrap_err();
    assert!(matches!(error, Error::Exists { .. }));
    SigmfWriter::create(&path, &SigmfSettings { overwrite: true, ..settings }).unwrap().finish().unwrap();
}
