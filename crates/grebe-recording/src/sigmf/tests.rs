//! Runs `sigmf_validate` (from PyPI's `sigmf`) if it is in `PATH` or named by `SIGMF_VALIDATE`. To run it:
//! `python3 -m venv v && v/bin/pip install sigmf`,
//! `SIGMF_VALIDATE=v/bin/sigmf_validate cargo test -p grebe-recording`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use grebe_frame::{BatchPool, Complex, Header, SampleFormat};
use proptest::prelude::*;
use ring::digest::{SHA512, digest};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::layout::Base;
use crate::hexadecimal::hex;
use crate::{Error, SampleFile, Segment, SigmfSettings, SigmfWriter};

mod annotated;
mod archives;
mod descriptions;
mod foreign;
mod formats;
mod full_disk;
mod killed;
mod names;
mod refusals;
mod times;

const ECG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/ecg.sigmf-meta");

fn scratch(name: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    (folder, path)
}

fn settings(channels: usize) -> SigmfSettings {
    SigmfSettings { channels, sample_rate_hz: 1e6, ..SigmfSettings::default() }
}

fn names(folder: &TempDir) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn channel(file: &mut SampleFile, channel: usize) -> Vec<i16> {
    let length = file.len_samples() as usize;
    file.block(0, length).unwrap().channel::<i16>(channel).unwrap().to_vec()
}

/// Position, length and stream index of each segment.
fn stretches(file: &SampleFile) -> Vec<(u64, u64, u64)> {
    let stretch = |s: &Segment| (s.position, s.length_samples, s.first_sample_index);
    file.segments().iter().map(stretch).collect()
}

fn sample(channel: usize, index: u64) -> i16 {
    (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as i16 ^ channel as i16
}

/// Writes blocks of (index, length) of the stream that `sample` makes.
fn record(path: &Path, settings: &SigmfSettings, blocks: &[(u64, usize)]) -> SigmfWriter {
    let mut writer = SigmfWriter::create(path, settings).unwrap();
    for &(index, length) in blocks {
        write(&mut writer, settings.channels, index, length);
    }
    writer
}

fn write(writer: &mut SigmfWriter, channels: usize, index: u64, length: usize) {
    try_write(writer, channels, index, length).unwrap();
}

fn try_write(writer: &mut SigmfWriter, channels: usize, index: u64, length: usize) -> Result<(), Error> {
    let samples: Vec<Vec<i16>> = (0..channels)
        .map(|channel| (index..index + length as u64).map(|index| sample(channel, index)).collect())
        .collect();
    let views: Vec<&[i16]> = samples.iter().map(Vec::as_slice).collect();
    writer.write(index, &views)
}

fn validate(path: &Path) {
    let command = std::env::var("SIGMF_VALIDATE").unwrap_or("sigmf_validate".into());
    match Command::new(&command).arg(path).output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        Err(error) => eprintln!("skipped: {command} cannot be run ({error}); pip install sigmf"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_recording_is_read_back_bit_for_bit_with_its_gaps(
        channels in 1usize..=8,
        start in prop_oneof![Just(0u64), 0u64..1 << 40],
        steps in prop::collection::vec((prop_oneof![3 => Just(0u64), 1 => 1u64..1 << 33], 1usize..900), 1..20),
        reads in prop::collection::vec((0.0..1.0f64, 0.0..1.0f64), 1..6),
    ) {
        let (folder, path) = scratch("take.v2");
        let (mut blocks, mut indexes, mut expected, mut next) = (vec![], vec![], vec![], start);
        for (step, (gap, length)) in steps.into_iter().enumerate() {
            next += gap;
            if gap > 0 || step == 0 {
                expected.push((indexes.len() as u64, 0, next));
            }
            expected.last_mut().unwrap().1 += length as u64;
            blocks.push((next, length));
            indexes.extend(next..next + length as u64);
            next += length as u64;
        }
        let summary = record(&path, &settings(channels), &blocks).finish().unwrap();
        prop_assert_eq!(summary.len_samples, indexes.len() as u64);
        prop_assert_eq!(summary.segments, expected.len() as u64);
        prop_assert_eq!(names(&folder).len(), summary.files.len());

        let mut file = SampleFile::open(&summary.files[0]).unwrap();
        prop_assert_eq!((file.channels(), file.rate_hz()), (channels, Some(1e6)));
        prop_assert_eq!(stretches(&file), expected);
        prop_assert!(file.notes().is_empty());
        for (position, share) in reads {
            let position = (position * indexes.len() as f64) as usize;
            let length = (share * (indexes.len() - position) as f64) as usize;
            let block = file.block(position as u64, length).unwrap();
            for channel in 0..channels {
                let expected: Vec<i16> =
                    indexes[position..position + length].iter().map(|&index| sample(channel, index)).collect();
                prop_assert_eq!(block.channel::<i16>(channel).unwrap(), expected);
            }
        }
    }

    /// A recorder that was killed: any length of any channel's file, the metadata of an earlier moment.
    #[test]
    fn a_recording_of_a_killed_recorder_is_read(
        channels in 1usize..=4,
        cuts in prop::collection::vec(0u64..2_401, 4),
    ) {
        let (folder, path) = scratch("cut.sigmf-meta");
        let writer = record(&path, &settings(channels), &[(5, 500), (700, 700)]);
        // Dropped, not finished: the state after a flush and a kill.
        drop(writer);
        let mut common = u64::MAX;
        for name in names(&folder).iter().filter(|name| name.ends_with("data")).enumerate() {
            let file = fs::OpenOptions::new().write(true).open(folder.path().join(name.1)).unwrap();
            prop_assert_eq!(file.metadata().unwrap().len(), 2_400);
            file.set_len(cuts[name.0]).unwrap();
            common = common.min(cuts[name.0] / 2);
        }
        match SampleFile::open(&path) {
            Ok(mut file) => {
                prop_assert_eq!(file.len_samples(), common);
                let mut expected = vec![(0, common.min(500), 5)];
                expected.extend((common > 500).then(|| (500, common - 500, 700)));
                prop_assert_eq!(stretches(&file), expected);
                for number in 0..channels {
                    let expected: Vec<i16> =
                        (5..505).chain(700..).take(common as usize).map(|index| sample(number, index)).collect();
                    prop_assert_eq!(channel(&mut file, number), expected);
                }
                prop_assert!(file.notes()[0].contains("its recorder was cut off"), "{:?}", file.notes());
            }
            Err(error) => {
                prop_assert_eq!(common, 0);
                prop_assert!(matches!(error, Error::Empty { .. }), "{}", error);
            }
        }
    }

    #[test]
    fn no_metadata_make_the_reader_panic(
        numbers in prop::collection::vec(prop_oneof![0u64..12, any::<u64>()], 9),
        datatype in prop_oneof!["ri16_le", "cf32_be", "ru8", "[rc][iuf][0-9]{1,2}(_le|_be)?"],
        bytes in 0usize..40,
    ) {
        let (_folder, path) = scratch("x.sigmf-meta");
        let capture = |at: usize| json!({"core:sample_start": numbers[at], "core:global_index": numbers[at + 1]});
        let meta = json!({
            "global": {
                "core:datatype": datatype, "core:version": "1.2.0", "core:offset": numbers[4],
                "core:num_channels": numbers[5] % 10, "core:trailing_bytes": numbers[6],
            },
            "captures": [capture(0), capture(2)],
        });
        fs::write(&path, meta.to_string()).unwrap();
        fs::write(path.with_extension("sigmf-data"), vec![1; bytes]).unwrap();
        if let Ok(mut file) = SampleFile::open(&path) {
            let covered: u64 = file.segments().iter().map(|segment| segment.length_samples).sum();
            prop_assert_eq!(covered, file.len_samples());
            let sample_bytes = file.format().bytes() as u64;
            let block = file.block(0, covered as usize).unwrap();
            prop_assert_eq!(block.channel_bytes(0).unwrap().len() as u64, covered * sample_bytes);
        }
    }
}

#[test]
fn a_recording_in_progress_is_not_called_truncated() {
    for channels in [1, 3] {
        let (_folder, path) = scratch("live.sigmf-meta");
        drop(record(&path, &settings(channels), &[(0, 500)]));
        let cut = SampleFile::open(&path).unwrap();
        assert!(!cut.is_whole() && !cut.is_being_recorded(), "{channels}");
        assert!(cut.notes().iter().any(|note| note.contains("grebe repair")), "{:?}", cut.notes());
        // As a recorder has it until its end.
        let name = Base::of(&path).lock().unwrap();
        let live = SampleFile::open(&path).unwrap();
        assert!(!live.is_whole() && live.is_being_recorded(), "{channels}");
        let is_said = |note: &String| note.contains("it is being recorded") && !note.contains("repair");
        assert!(!live.notes().is_empty() && live.notes().iter().all(is_said), "{:?}", live.notes());
        drop(name);
    }
}

#[test]
fn the_electrocardiogram_is_read() {
    let mut file = SampleFile::open(ECG).unwrap();
    assert_eq!((file.rate_hz(), file.channels(), file.len_samples()), (Some(360.0), 1, 108_000));
    assert_eq!(stretches(&file), [(0, 108_000, 0)]);
    let mut wav = SampleFile::open(ECG.replace(".sigmf-meta", ".wav")).unwrap();
    assert_eq!(channel(&mut file, 0), channel(&mut wav, 0));
}

#[test]
fn metadata_say_what_the_specification_wants() {
    let (folder, path) = scratch("four.sigmf-meta");
    let before = SystemTime::now();
    let settings = SigmfSettings { description: Some("a test".into()), ..settings(4) };
    let mut writer = record(&path, &settings, &[(100, 50), (200, 50)]);
    writer.annotate(140, 70, "over the gap").unwrap();
    writer.annotate(100, 1, "first").unwrap();
    writer.finish().unwrap();
    let mut expected = vec!["four.sigmf-collection".to_string()];
    for channel in 1..=4 {
        expected.extend([format!("four_ch{channel}.sigmf-data"), format!("four_ch{channel}.sigmf-meta")]);
    }
    assert_eq!(names(&folder), expected);

    let collection = read_json(&path.with_extension("sigmf-collection"));
    assert_eq!(collection["collection"]["core:version"], "1.2.0");
    for number in 1..=4 {
        let meta = folder.path().join(format!("four_ch{number}.sigmf-meta"));
        let sum = |path: &Path| hex(digest(&SHA512, &fs::read(path).unwrap()).as_ref());
        let stream = &collection["collection"]["core:streams"][number - 1];
        assert_eq!(*stream, json!({"name": format!("four_ch{number}"), "hash": sum(&meta)}));
        let mut value = read_json(&meta);
        let captures = value["captures"].take();
        let data = meta.with_extension("sigmf-data");
        assert_eq!(
            value,
            json!({
                "global": {
                    "core:datatype": "ri16_le",
                    "core:sample_rate": 1_000_000,
                    "core:version": "1.2.0",
                    "core:num_channels": 1,
                    "core:description": "a test",
                    "core:recorder": concat!("grebe ", env!("CARGO_PKG_VERSION")),
                    "core:collection": "four",
                    "core:sha512": sum(&data),
                },
                "captures": null,
                "annotations": [
                    {"core:sample_start": 0, "core:sample_count": 1, "core:label": "first"},
                    {"core:sample_start": 40, "core:sample_count": 20, "core:label": "over the gap"},
                ],
            })
        );
        for (capture, (start, index)) in captures.as_array().unwrap().iter().zip([(0, 100), (50, 200)]) {
            assert_eq!(capture["core:sample_start"], start);
            assert_eq!(capture["core:global_index"], index);
            assert!(capture["core:datetime"].as_str().unwrap().ends_with('Z'));
        }
        validate(&meta);
    }
    let file = SampleFile::open(&path).unwrap();
    let recorded_at = file.segments()[1].recorded_at.unwrap();
    let second = Duration::from_secs(1);
    assert!(before - second < recorded_at && recorded_at < SystemTime::now() + second);
}

#[test]
fn a_frame_is_recorded_as_its_samples_are() {
    let (_folder, path) = scratch("frames.sigmf-meta");
    let mut batch = BatchPool::new(1, 65_536).acquire().unwrap();
    for (sequence, first_sample_index) in [(0, 0), (1, 700), (3, 2_100)] {
        let block_length_samples = 700;
        let header = Header {
            sequence,
            channel_count: 2,
            block_length_samples,
            first_sample_index,
            ..Header::default()
        };
        let fill = |channel: usize, samples: &mut [i16]| {
            for (index, place) in (first_sample_index..).zip(samples) {
                *place = sample(channel, index);
            }
        };
        batch.push::<i16>(&header, fill).unwrap();
    }
    let mut writer = SigmfWriter::create(&path, &settings(2)).unwrap();
    for frame in batch.freeze().frames() {
        writer.write_frame(&frame).unwrap();
    }
    writer.finish().unwrap();
    let mut file = SampleFile::open(&path).unwrap();
    assert_eq!(stretches(&file), [(0, 1_400, 0), (1_400, 700, 2_100)]);
    let expected: Vec<i16> = (0..1_400).chain(2_100..2_800).map(|index| sample(1, index)).collect();
    assert_eq!(channel(&mut file, 1), expected);
}

#[test]
fn a_recording_longer_than_its_buffers_is_summed_and_bit_exact() {
    for sample_rate_hz in [1e6, 1e9] {
        let (_folder, path) = scratch("long.sigmf-meta");
        let settings = SigmfSettings { sample_rate_hz, ..settings(1) };
        let blocks: Vec<(u64, usize)> = (0..30).map(|block| (block * 100_003, 100_003)).collect();
        record(&path, &settings, &blocks).finish().unwrap();
        // Opening checks the sum.
        let mut file = SampleFile::open(&path).unwrap();
        assert_eq!(stretches(&file), [(0, 3_000_090, 0)]);
        assert!(channel(&mut file, 0).into_iter().eq((0..3_000_090).map(|index| sample(0, index))));
        validate(&path);
    }
}

#[test]
fn closing_a_fast_recording_does_not_read_it_again() {
    let (_folder, path) = scratch("fast.sigmf-meta");
    // 68 MB, without checksums while recording.
    let mut writer =
        SigmfWriter::create(&path, &SigmfSettings { sample_rate_hz: 1e9, ..settings(1) }).unwrap();
    let block = vec![1_i16; 1 << 20];
    for number in 0..33 {
        writer.write(number << 20, &[&block]).unwrap();
    }
    writer.finish().unwrap();
    let global = read_json(&path)["global"].clone();
    assert_eq!(global.get("core:sha512"), None, "{global}");
    assert_eq!(SampleFile::open(&path).unwrap().len_samples(), 33 << 20);
    validate(&path);
}

#[test]
fn samples_after_the_last_known_gap_are_skipped_with_a_note() {
    let (_folder, path) = scratch("doubt.sigmf-meta");
    drop(record(&path, &settings(1), &[(0, 500), (700, 100)]));
    let mut meta = read_json(&path);
    assert_eq!(meta["global"]["grebe:known_samples"], 600);
    // As a kill leaves it that came before the second gap was noted.
    meta["global"]["grebe:known_samples"] = json!(500);
    meta["captures"].as_array_mut().unwrap().truncate(1);
    fs::write(&path, meta.to_string()).unwrap();
    let file = SampleFile::open(&path).unwrap();
    assert_eq!(stretches(&file), [(0, 500, 0)]);
    assert!(file.notes()[0].contains("its last 100 samples are ignored"), "{:?}", file.notes());
}

#[test]
fn a_slow_stream_is_on_the_disk_within_seconds_and_readable_meanwhile() {
    let (folder, path) = scratch("slow.sigmf-meta");
    let mut writer = SigmfWriter::create(&path, &settings(2)).unwrap();
    let deadline = SystemTime::now() + Duration::from_secs(30);
    let mut index = 0;
    let file = loop {
        assert!(SystemTime::now() < deadline, "nothing was written");
        write(&mut writer, 2, index, 10);
        // A gap after each block: the metadata change all the time.
        index += 20;
        std::thread::sleep(Duration::from_millis(20));
        match SampleFile::open(&path) {
            Ok(file) if file.segments().len() > 1 => break file,
            _ => {}
        }
    };
    assert_eq!(file.segments()[1].first_sample_index, 20);
    for name in names(&folder).iter().filter(|name| name.ends_with("-meta")) {
        validate(&folder.path().join(name));
    }
    writer.finish().unwrap();
}

#[test]
fn another_stream_is_a_segment_whose_index_steps_back() {
    let (_folder, path) = scratch("again.sigmf-meta");
    let mut writer = record(&path, &settings(1), &[(1_000, 10), (0, 10)]);
    writer.annotate(0, 5, "again").unwrap();
    writer.finish().unwrap();
    assert_eq!(stretches(&SampleFile::open(&path).unwrap()), [(0, 10, 1_000), (10, 10, 0)]);
    assert_eq!(read_json(&path)["annotations"][0]["core:sample_start"], 10);
}

#[test]
fn channels_that_go_to_the_disk_apart_stay_the_same() {
    let (_folder, path) = scratch("x.sigmf-meta");
    let mut writer =
        SigmfWriter::create(&path, &SigmfSettings { buffer_bytes: 1 << 20, ..settings(2) }).unwrap();
    let samples: Vec<i16> = (0..700_000).map(|index| (index % 30_011) as i16).collect();
    for (number, block) in samples.chunks(7_000).enumerate() {
        writer.write(7_000 * number as u64, &[block, block]).unwrap();
        if number % 5 == 0 {
            writer.cut(0);
        }
    }
    writer.finish().unwrap();
    let mut file = SampleFile::open(&path).unwrap();
    let block = file.block(0, samples.len()).unwrap();
    assert!([0, 1].map(|channel| *block.channel::<i16>(channel).unwrap() == *samples) == [true; 2]);
}

#[test]
fn blocks_of_another_shape_are_refused() {
    let (_folder, path) = scratch("x.sigmf-meta");
    let mut writer = SigmfWriter::create(&path, &settings(2)).unwrap();
    let error = writer.write(0, &[&[1i16]]).unwrap_err().to_string();
    assert_eq!(error, "channels of the block: 1 where 2 is expected");
    let error = writer.write(0, &[&[1i16], &[1, 2]]).unwrap_err().to_string();
    assert_eq!(error, "samples of a channel: 2 where 1 is expected");
    let error = writer.write(0, &[&[1f32], &[1.0]]).unwrap_err().to_string();
    assert_eq!(error, "the samples are f32, but i16 is needed: put a convert stage before this one");
    assert_eq!(writer.len_samples(), 0);
}

#[test]
fn recordings_of_other_programs_are_read() {
    let (_folder, path) = scratch("x.sigmf-meta");
    let open = |global: Value, captures: Value, data: &[u8]| {
        fs::write(&path, json!({"global": global, "captures": captures}).to_string()).unwrap();
        fs::write(path.with_extension("sigmf-data"), data).unwrap();
        SampleFile::open(&path).unwrap()
    };
    // Interleaved, from the middle of a longer stream, with a header and a trailer without samples.
    let mut file = open(
        json!({
            "core:datatype": "ri16_be", "core:version": "1.0.0", "core:num_channels": 2, "core:offset": 1_000,
            "core:trailing_bytes": 1, "core:unknown": [1],
        }),
        json!([{"core:sample_start": 1_001, "core:header_bytes": 2}]),
        &[9, 9, 0, 1, 0, 2, 0, 3, 0, 4, 9],
    );
    assert_eq!([channel(&mut file, 0), channel(&mut file, 1)], [[1, 3], [2, 4]]);
    assert_eq!(stretches(&file), [(0, 1, 1_000), (1, 1, 1_001)]);
    assert_eq!(
        (file.rate_hz(), file.notes()),
        (None, &["the metadata do not say the sample rate".into()][..])
    );

    let mut file = open(
        json!({"core:datatype": "cu8", "core:version": "1.2.0", "core:sample_rate": 2.4e6}),
        json!([{"core:sample_start": 0, "core:datetime": "2026-01-02T03:04:05Z"}, {"core:sample_start": 2}]),
        &[128, 0, 255, 128],
    );
    let (block, sample) = (file.block(0, 2).unwrap(), Complex::new);
    assert_eq!(block.channel::<Complex<u8>>(0).unwrap().as_ref(), [sample(128, 0), sample(255, 128)]);
    assert_eq!((file.channels(), file.format(), file.notes().len()), (1, SampleFormat::Cu8, 0));
    assert_eq!(stretches(&file), [(0, 2, 0)]);
    let recorded_at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_323_045);
    assert_eq!(file.segments()[0].recorded_at, Some(recorded_at));
}
