use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use grebe_frame::{Component, SampleFormat};
use grebe_testing::Rng;
use proptest::prelude::*;

use super::block::{COARSE, FINE, SUMS_LOG2};
use super::builder::SummaryWriter;
use super::format::{HEAD_BYTES, Head, Stamp};
use super::maker::Writer;
use super::nodes::{Extremes, Lanes, LevelSums};
use super::*;

const STAMP: Stamp = Stamp { bytes: 1, modified_ns: 2, fingerprint: [3; 16] };

/// Samples of a format: of floating point some are infinite or not a number.
pub(super) fn bytes_of(format: SampleFormat, samples: usize, rng: &mut Rng) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..samples * format.components() {
        match format.component() {
            Component::F32 | Component::F64 => {
                let wild = [f64::NAN, f64::INFINITY, -1e300].get(rng.usize(0..3000));
                let value = wild.copied().unwrap_or((rng.f64() - 0.5) * 1e5);
                match format.component() {
                    Component::F32 => bytes.extend((value as f32).to_le_bytes()),
                    _ => bytes.extend(value.to_le_bytes()),
                }
            }
            component => bytes.extend((0..component.bytes()).map(|_| rng.u8(..))),
        }
    }
    bytes
}

/// The values of a lane, as a scope has them.
pub(super) fn values(lanes: Lanes, lane: usize, bytes: &[u8]) -> Vec<f32> {
    let component = lanes.format.component();
    let size = component.bytes();
    let is_cu8 = lanes.format == SampleFormat::Cu8;
    let of = |number: &[u8]| match component {
        Component::I8 => f32::from(number[0] as i8),
        Component::U8 => f32::from(number[0]) - if is_cu8 { 127.5 } else { 0.0 },
        Component::I16 => f32::from(i16::from_le_bytes(number.try_into().unwrap())),
        Component::I32 => i32::from_le_bytes(number.try_into().unwrap()) as f32,
        Component::F64 => f64::from_le_bytes(number.try_into().unwrap()) as f32,
        _ => f32::from_le_bytes(number.try_into().unwrap()),
    };
    bytes.chunks_exact(size).skip(lane % lanes.of_channel).step_by(lanes.of_channel).map(of).collect()
}

fn brute_force(values: &[f32]) -> (Extremes, LevelSums) {
    let (mut extremes, mut sums) = (Extremes::NONE, LevelSums::default());
    for &value in values {
        extremes.merge(Extremes { min: value, max: value });
        let finite = if value.is_finite() { f64::from(value) } else { 0.0 };
        let not_finite = u64::from(!value.is_finite());
        sums.merge(LevelSums { sum: finite, sum_sq: finite * finite, not_finite, count: 1 });
    }
    (extremes, sums)
}

/// Writes a summary of channels, in pieces of any length.
fn write(path: &Path, format: SampleFormat, channels: &[Vec<u8>], rng: &mut Rng) {
    let mut writer = SummaryWriter::create(path, format, channels.len()).unwrap();
    let (size, mut at) = (format.bytes(), 0);
    let length = channels[0].len() / size;
    while at < length {
        let now = rng.usize(1..=70_000).min(length - at);
        let piece: Vec<&[u8]> = channels.iter().map(|bytes| &bytes[at * size..(at + now) * size]).collect();
        writer.append(&piece).unwrap();
        at += now;
    }
    assert_eq!(writer.samples(), length as u64);
    writer.finish(STAMP).unwrap();
}

fn check(summary: &Summary, lanes: Lanes, channels: &[Vec<u8>]) {
    for lane in 0..lanes.count {
        let values = values(lanes, lane, &channels[lane / lanes.of_channel]);
        let samples = values.len() as u64;
        assert_eq!(summary.known_samples(), samples);
        for log2 in FINE.into_iter().chain(COARSE) {
            let expected: Vec<Extremes> = values.chunks(1 << log2).map(|part| brute_force(part).0).collect();
            let mut got = Vec::new();
            summary.extremes(lane, log2, 0..samples.div_ceil(1 << log2), &mut got).unwrap();
            assert_eq!(got, expected, "lane {lane}, 2^{log2} samples");
            let beyond = summary.extremes(lane, log2, 0..samples.div_ceil(1 << log2) + 1, &mut got);
            assert!(beyond.is_err(), "the node does not exist");
        }
        let (sums, of) = summary.sums(lane, 0..samples);
        let expected = brute_force(&values).1;
        assert_eq!((of, sums.count, sums.not_finite), (0..samples, expected.count, expected.not_finite));
        let is_close = |a: f64, b: f64| (a - b).abs() <= b.abs() * 1e-9 + 1e-3;
        assert!(
            is_close(sums.sum, expected.sum) && is_close(sums.sum_sq, expected.sum_sq),
            "{sums:?} {expected:?}"
        );
        let (_, of) = summary.sums(lane, 5..6);
        assert_eq!(of, 0..samples.min(1 << SUMS_LOG2));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(40) })]

    #[test]
    fn every_node_is_what_brute_force_finds(
        number in 0usize..10,
        channels in 1usize..=4,
        samples in prop_oneof![1usize..2000, 60_000usize..300_000],
        seed: u64,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.grebe-summary");
        let (format, mut rng) = (SampleFormat::ALL[number], Rng::with_seed(seed));
        let channels: Vec<Vec<u8>> = (0..channels).map(|_| bytes_of(format, samples, &mut rng)).collect();
        write(&path, format, &channels, &mut rng);
        let lanes = Lanes::new(format, channels.len());
        let summary = Summary::open_if(&path, |head| head.is_of(lanes, samples as u64, &STAMP)).unwrap().unwrap();
        check(&summary, lanes, &channels);
        let (data, own) = (channels.iter().map(Vec::len).sum::<usize>(), fs::metadata(&path).unwrap().len());
        prop_assert!(samples < 60_000 || own <= data as u64 / 50, "{} of {}: at most 2 %", own, data);
        prop_assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }
}

#[test]
fn blocks_follow_one_another_and_can_be_read_while_others_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.grebe-summary");
    // 64 lanes: blocks of 2^18 samples.
    let (format, mut rng, samples) = (SampleFormat::I8, Rng::with_seed(1), 700_000);
    let channels: Vec<Vec<u8>> = (0..64).map(|_| bytes_of(format, samples, &mut rng)).collect();
    let mut writer = SummaryWriter::create(&path, format, 64).unwrap();
    let part = |range: std::ops::Range<usize>| {
        channels.iter().map(|bytes| &bytes[range.clone()]).collect::<Vec<_>>()
    };
    writer.append(&part(0..600_000)).unwrap();
    let growing = std::sync::Arc::clone(writer.summary());
    assert_eq!(growing.known_samples(), 2 << 18);
    let mut nodes = Vec::new();
    growing.extremes(63, 8, 0..2048, &mut nodes).unwrap();
    let lanes = Lanes::new(format, 64);
    let expected: Vec<_> =
        values(lanes, 63, &channels[63][..2 << 18]).chunks(256).map(|part| brute_force(part).0).collect();
    assert_eq!(nodes, expected);
    writer.append(&part(600_000..samples)).unwrap();
    let whole = writer.finish(STAMP).unwrap();
    check(&whole, lanes, &channels);
    let opened = Summary::open_if(&path, |head| head.is_of(lanes, samples as u64, &STAMP)).unwrap().unwrap();
    check(&opened, lanes, &channels);
    assert_eq!(opened.coarse(), whole.coarse());
    assert!(Summary::open(&path).unwrap().is_some(), "whatever it is of");
}

#[test]
fn a_stale_damaged_or_incomplete_summary_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.grebe-summary");
    let (format, mut rng) = (SampleFormat::I16, Rng::with_seed(1));
    let channels = vec![bytes_of(format, 100_000, &mut rng)];
    write(&path, format, &channels, &mut rng);
    let lanes = Lanes::new(format, 1);
    let open =
        |lanes, samples, stamp| Summary::open_if(&path, |head| head.is_of(lanes, samples, &stamp)).unwrap();
    assert!(open(lanes, 100_000, STAMP).is_some());
    assert!(open(lanes, 100_001, STAMP).is_none(), "the recording grew");
    assert!(open(Lanes::new(format, 2), 100_000, STAMP).is_none());
    assert!(open(Lanes::new(SampleFormat::Ci8, 1), 100_000, STAMP).is_none());
    for other in [
        Stamp { bytes: 2, ..STAMP },
        Stamp { modified_ns: 3, ..STAMP },
        Stamp { fingerprint: [4; 16], ..STAMP },
    ] {
        assert!(open(lanes, 100_000, other).is_none());
    }
    let good = fs::read(&path).unwrap();
    for at in (0..good.len()).step_by(97) {
        let mut bad = good.clone();
        bad[at] ^= 0x40;
        fs::write(&path, &bad).unwrap();
        if let Some(summary) = open(lanes, 100_000, STAMP) {
            let read = summary.extremes(0, 8, 0..391, &mut Vec::new());
            assert_eq!(read.unwrap_err().kind(), std::io::ErrorKind::InvalidData, "byte {at}");
        }
        fs::write(&path, &good[..at]).unwrap();
        assert!(open(lanes, 100_000, STAMP).is_none(), "cut off at {at}");
    }
}

#[test]
fn a_summary_written_by_the_page_alone_is_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/summary/i16");
    let summary = Summary::open(&path).unwrap().unwrap();
    assert_eq!(summary.known_samples(), 700);
    let (mut finest, mut coarsest) = (Vec::new(), Vec::new());
    summary.extremes(0, 8, 0..3, &mut finest).unwrap();
    summary.extremes(0, 28, 0..1, &mut coarsest).unwrap();
    let mut all = Extremes::NONE;
    finest.iter().for_each(|&node| all.merge(node));
    assert_eq!(coarsest, [all]);
}

/// Two complex channels, with nothing near the largest that a sample can be.
fn ramps(samples: usize) -> Vec<Vec<u8>> {
    let value = |channel: usize, number: usize| ((number * 7 + channel * 300) % 1000) as i16;
    let channel =
        |channel| (0..samples * 2).flat_map(|number| value(channel, number).to_le_bytes()).collect();
    (0..2).map(channel).collect()
}

#[test]
fn samples_contradict_a_summary_only_where_its_nodes_can_tell() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.grebe-summary");
    let (format, samples) = (SampleFormat::Ci16, 70_100);
    let channels = ramps(samples);
    write(&path, format, &channels, &mut Rng::with_seed(1));
    let summary = Summary::open(&path).unwrap().unwrap();
    let read = |at: usize, length: usize| -> Vec<u8> {
        channels.iter().flat_map(|bytes| bytes[at * 4..(at + length) * 4].to_vec()).collect()
    };
    for (at, length) in [(0, 70_100), (1, 1_000), (256, 256), (300, 100), (69_900, 200), (0, 0)] {
        assert!(!summary.contradicts(at as u64, &read(at, length)), "{length} samples at {at}");
    }
    // 1,000 samples from 100 on: whole nodes are those from 256 to 1,024.
    for (channel, sample, is_seen) in
        [(0, 0, false), (0, 155, false), (0, 156, true), (1, 500, true), (1, 923, true), (1, 924, false)]
    {
        let mut other = read(100, 1_000);
        let at = (channel * 1_000 + sample) * 4;
        // Q of it.
        other[at + 2..at + 4].copy_from_slice(&i16::MAX.to_le_bytes());
        let is_contradicted = summary.contradicts(100, &other);
        assert_eq!(is_contradicted, is_seen, "channel {channel}, the sample {sample} after the first");
    }
    // Beyond the summary.
    assert!(!summary.contradicts(70_144, &[0x7f; 256 * 8]));
    assert!(!summary.contradicts(1 << 40, &read(0, 1_000)));
}

#[test]
fn the_bytes_of_some_samples_are_those_that_their_nodes_are_read_from() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.grebe-summary");
    // 64 lanes: blocks of 2^18 samples, of which the last one is shorter.
    let (format, samples, block) = (SampleFormat::I8, 700_000, 1 << 18);
    let mut rng = Rng::with_seed(1);
    let channels: Vec<Vec<u8>> = (0..64).map(|_| bytes_of(format, samples as usize, &mut rng)).collect();
    write(&path, format, &channels, &mut rng);
    let good = fs::read(&path).unwrap();
    let head = Head::decode(good.first_chunk().unwrap()).unwrap();
    let blocks = HEAD_BYTES as u64..head.coarse_at();
    let whole = Summary::open(&path).unwrap().unwrap();
    assert_eq!(whole.bytes_of(0..samples), blocks);
    assert_eq!(whole.bytes_of(0..u64::MAX), blocks, "there is no more");
    assert!(whole.bytes_of(0..0).is_empty());
    for (wanted, known) in [
        (0..1, 0..1),
        (block - 1..block, 0..1),
        (block - 1..block + 1, 0..2),
        (block..2 * block, 1..2),
        (samples - 1..samples, 2..3),
        (5..samples, 0..3),
    ] {
        let here = whole.bytes_of(wanted.clone());
        // Nothing else has come.
        let mut part = good.clone();
        part[blocks.start as usize..here.start as usize].fill(0);
        part[here.end as usize..blocks.end as usize].fill(0);
        fs::write(&path, &part).unwrap();
        let summary = Summary::open(&path).unwrap().expect("what is behind the blocks is there");
        for number in 0..3 {
            let read = summary.extremes(63, 8, number << 10..(number << 10) + 1, &mut Vec::new());
            assert_eq!(read.is_ok(), known.contains(&number), "block {number}, samples {wanted:?}");
        }
    }
}

#[test]
fn a_summary_that_arrives_is_taken_where_all_that_is_known_fits() {
    use crate::SampleFile;
    let folder = tempfile::tempdir().unwrap();
    let (data, path) = (folder.path().join("x.s16"), folder.path().join("x.grebe-summary"));
    let mut rng = Rng::with_seed(2);
    let (format, samples) = (SampleFormat::I16, 100_000);
    let channels = [bytes_of(format, samples, &mut rng)];
    fs::write(&data, &channels[0]).unwrap();
    let modified = SystemTime::UNIX_EPOCH + Duration::from_nanos(1_700_000_000_123_456_789);
    // Its fingerprint cannot be compared yet.
    let stamp = Stamp { bytes: 200_000, modified_ns: 1_700_000_000_123_456_789, fingerprint: [9; 16] };
    let mut writer = SummaryWriter::create(&path, format, 1).unwrap();
    writer.append(&[&channels[0]]).unwrap();
    writer.finish(stamp).unwrap();
    let file = SampleFile::open(&data).unwrap();
    let open =
        |file: &SampleFile, bytes, modified| Summary::open_arriving(&path, file, bytes, modified).unwrap();
    check(&open(&file, 200_000, modified).unwrap(), Lanes::new(format, 1), &channels);
    assert!(open(&file, 200_001, modified).is_none());
    assert!(open(&file, 200_000, modified + Duration::from_nanos(100)).is_none());
    assert!(open(&file, 200_000, SystemTime::UNIX_EPOCH - Duration::from_secs(1)).is_none());
    let other = folder.path().join("y.s16");
    fs::write(&other, &channels[0][..199_998]).unwrap();
    assert!(open(&SampleFile::open(&other).unwrap(), 200_000, modified).is_none(), "a sample less");

    let good = fs::read(&path).unwrap();
    let head = Head::decode(good.first_chunk().unwrap()).unwrap();
    let coarse_at = head.coarse_at() as usize;
    // Only both ends of it have come.
    let mut part = good.clone();
    part[HEAD_BYTES..coarse_at].fill(0);
    fs::write(&path, &part).unwrap();
    let summary = open(&file, 200_000, modified).unwrap();
    summary.extremes(0, 16, 0..2, &mut Vec::new()).unwrap();
    assert!(summary.extremes(0, 14, 0..1, &mut Vec::new()).is_err());
    // One end of it has not.
    for missing in [0, HEAD_BYTES - 1, coarse_at, good.len() - 1] {
        let mut part = good.clone();
        part[missing] ^= 1;
        fs::write(&path, &part).unwrap();
        assert!(open(&file, 200_000, modified).is_none(), "byte {missing}");
    }
}

/// Waits until the summary is there.
fn made(recording: &SummarizedFile) {
    let begun = Instant::now();
    while recording.state() == SummaryState::Making {
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_recording_without_a_summary_gets_one_and_one_that_changed_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.s16");
    let mut rng = Rng::with_seed(5);
    let samples = 20_000_000;
    fs::write(&path, bytes_of(SampleFormat::I16, samples, &mut rng)).unwrap();
    let mut recording = SummarizedFile::open(&path).unwrap();
    assert_eq!(recording.state(), SummaryState::Making);
    made(&recording);
    assert_eq!((recording.state(), recording.known_samples()), (SummaryState::Whole, samples as u64));
    let place = folder.path().join("x.s16.grebe-summary");
    let first = fs::read(&place).unwrap();
    assert!(first.len() <= samples * 2 / 50);
    let again = SummarizedFile::open(&path).unwrap();
    assert_eq!((again.state(), again.known_samples()), (SummaryState::Whole, samples as u64), "it is used");

    // Half as long, and something else at its end.
    let mut bytes = fs::read(&path).unwrap();
    bytes.truncate(samples / 2 * 2);
    bytes[samples - 2..].fill(0);
    fs::write(&path, &bytes).unwrap();
    assert!(recording.refresh());
    assert_eq!(recording.file().len_samples(), samples as u64 / 2);
    // A short range is read as a whole.
    assert_eq!(recording.state(), SummaryState::Whole);
    assert!(recording.read(samples as u64 / 2 - 1, 2, &mut Vec::new()).is_err());
    drop(recording);
    bytes.resize(40_000_000, 1);
    fs::write(&path, &bytes).unwrap();
    let recording = SummarizedFile::open(&path).unwrap();
    assert_eq!(recording.state(), SummaryState::Making, "the old one is stale");
    made(&recording);
    assert_ne!(fs::read(&place).unwrap(), first);
}

#[test]
fn a_recording_has_its_summary_when_it_is_closed_and_so_has_each_part() {
    use crate::SigmfSettings;
    use crate::sigmf::{Base, SigmfWriter, prepare};
    let folder = tempfile::tempdir_in(".").unwrap();
    let place = |name: &str| folder.path().join(name);
    // Half of the memory holds all of it, so that the summary is never too late.
    let settings = SigmfSettings {
        channels: 2,
        sample_rate_hz: 1e6,
        buffer_bytes: 256 << 20,
        ..SigmfSettings::default()
    };
    let mut writer = SigmfWriter::create(&place("x"), &settings).unwrap();
    let mut rng = Rng::with_seed(3);
    let samples: Vec<i16> = (0..70_000).map(|_| rng.u32(..) as i16).collect();
    let mut index = 0;
    let mut fill = |writer: &mut SigmfWriter, blocks: usize| {
        for block in 0..blocks {
            let skip = (block * 37) % 1000;
            index += if block % 50 == 0 { 7 } else { 0 };
            writer
                .write(index, &[&samples[skip..69_000 + skip], &samples[1000 - skip..70_000 - skip]])
                .unwrap();
            index += 69_000;
        }
    };
    fill(&mut writer, 130);
    let base = Base::to_record(&place("y")).unwrap();
    let name = base.lock().unwrap();
    let next = prepare(&base, &settings, writer.is_past_cache()).unwrap();
    let closing = writer.rotate(next, name).unwrap();
    fill(&mut writer, 140);
    closing.join().unwrap();
    let disk = writer.finish().unwrap().disk;
    assert_eq!(disk.lost_summaries, 0);
    for (name, blocks) in [("x", 130), ("y", 140)] {
        let mut recording = SummarizedFile::open(&place(&format!("{name}.sigmf-collection"))).unwrap();
        let samples = blocks * 69_000;
        assert_eq!((recording.state(), recording.known_samples()), (SummaryState::Whole, samples), "{name}");
        assert!(place(&format!("{name}.grebe-summary")).exists());
        let (mut bytes, mut nodes) = (Vec::new(), Vec::new());
        recording.read(0, samples as usize, &mut bytes).unwrap();
        let lanes = Lanes::new(SampleFormat::I16, 2);
        for lane in 0..2 {
            let values = values(lanes, lane, &bytes[lane * samples as usize * 2..][..samples as usize * 2]);
            let expected: Vec<_> = values.chunks(1 << 16).map(|part| brute_force(part).0).collect();
            nodes.clear();
            recording.extremes(lane, 16, 0..samples.div_ceil(1 << 16), &mut nodes).unwrap();
            assert!(nodes == expected, "{name}, lane {lane}");
        }
    }
    let hidden =
        fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
    let hidden: Vec<String> = hidden.filter(|name| name.starts_with('.')).collect();
    assert!(hidden.is_empty(), "{hidden:?}");
}

#[test]
fn a_summary_that_comes_too_late_is_given_up_and_leaves_nothing() {
    use crate::SigmfSettings;
    use crate::sigmf::SigmfWriter;
    let folder = tempfile::tempdir_in(".").unwrap();
    let settings = SigmfSettings { sample_rate_hz: 1e6, buffer_bytes: 1 << 20, ..SigmfSettings::default() };
    let mut writer = SigmfWriter::create(&folder.path().join("x"), &settings).unwrap();
    writer.lose_summary();
    let samples = vec![1i16; 1 << 20];
    for index in 0..20u64 {
        writer.write(index << 20, &[&samples]).unwrap();
    }
    let summary = writer.finish().unwrap();
    assert_eq!((summary.len_samples, summary.disk.lost_summaries), (20 << 20, 1));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "the recording, and nothing else");
    let small = SigmfSettings { buffer_bytes: 256 << 20, ..settings };
    let mut writer = SigmfWriter::create(&folder.path().join("y"), &small).unwrap();
    writer.write(0, &[&samples]).unwrap();
    writer.finish().unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4, "what is small needs none");
}

#[test]
fn a_viewer_has_the_summary_when_the_recorder_ends_and_learns_what_is_added_later() {
    use crate::{Annotation, AnnotationEdit, SampleFile, SigmfSettings, SigmfWriter};
    let folder = tempfile::tempdir_in(".").unwrap();
    let path = folder.path().join("x.sigmf-meta");
    let settings = SigmfSettings { sample_rate_hz: 1e6, buffer_bytes: 256 << 20, ..SigmfSettings::default() };
    let mut writer = SigmfWriter::create(&path, &settings).unwrap();
    let (samples, blocks) = (vec![1_i16; 1 << 20], 24);
    (0..blocks).for_each(|block| writer.write(block << 20, &[&samples]).unwrap());
    writer.flush().unwrap();
    let mut recording = SummarizedFile::open_part(&path).unwrap();
    assert_eq!(recording.state(), SummaryState::Making);
    writer.finish().unwrap();
    assert!(recording.refresh() && !recording.refresh());
    made(&recording);
    assert_eq!((recording.state(), recording.known_samples()), (SummaryState::Whole, blocks << 20));
    // In its metadata, and beside a file that has none.
    let plain = folder.path().join("y.i16");
    fs::write(&plain, [0; 64]).unwrap();
    for (path, mut recording) in [(&path, recording), (&plain, SummarizedFile::open(&plain).unwrap())] {
        let annotation = Annotation { position: 5, length_samples: 9, fields: serde_json::Map::new() };
        SampleFile::edit_annotations(path, &[AnnotationEdit::Add(annotation)]).unwrap();
        assert!(recording.refresh() && !recording.refresh());
        assert_eq!(recording.file().annotations().len(), 1);
    }
}

#[test]
fn a_damaged_summary_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.s16");
    let samples = 17 << 20;
    fs::write(&path, bytes_of(SampleFormat::I16, samples, &mut Rng::with_seed(6))).unwrap();
    made(&SummarizedFile::open(&path).unwrap());
    let place = folder.path().join("x.s16.grebe-summary");
    let good = fs::read(&place).unwrap();
    let mut damaged = good.clone();
    damaged[good.len() / 2] ^= 1;
    fs::write(&place, damaged).unwrap();
    let mut recording = SummarizedFile::open(&path).unwrap();
    assert_eq!(recording.state(), SummaryState::Whole);
    let log2 = Summary::level(8).unwrap();
    recording.extremes(0, log2, 0..samples as u64 >> log2, &mut Vec::new()).unwrap_err();
    made(&recording);
    assert!(fs::read(&place).unwrap() == good);
    recording.extremes(0, log2, 0..samples as u64 >> log2, &mut Vec::new()).unwrap();
}
