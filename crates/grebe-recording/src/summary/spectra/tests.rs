use std::f32::consts::TAU;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use grebe_frame::SampleFormat;
use grebe_scope::{PowerTransform, Window};
use grebe_testing::Rng;
use proptest::prelude::*;

use super::layout::{Layout, full_scale};
use super::*;
use crate::summary::format::Stamp;
use crate::summary::maker::Writer;
use crate::summary::nodes::Lanes;
use crate::summary::tests::{bytes_of, values};
use crate::{SummarizedFile, SummaryState};

const STAMP: Stamp = Stamp { bytes: 1, modified_ns: 2, fingerprint: [3; 16] };

/// Power of the transforms of a channel by the page: their middles are at every 512th sample, from the first on.
fn transforms(format: SampleFormat, bytes: &[u8]) -> Vec<Option<Vec<f32>>> {
    let lanes = Lanes::new(format, 1);
    let (full_scale, zero) = full_scale(format);
    let parts: Vec<Vec<f32>> = (0..lanes.count).map(|lane| values(lanes, lane, bytes)).collect();
    let size = if format.is_complex() { PowerTransform::complex } else { PowerTransform::real };
    let mut transform = size(1024, Window::Hann).unwrap();
    transform.set_full_scale(full_scale);
    let samples = parts[0].len() as i64;
    let at =
        |part: &[f32], index: i64| usize::try_from(index).ok().and_then(|index| part.get(index).copied());
    let of = |middle: i64| {
        let own = |part: &Vec<f32>| -> Vec<f32> {
            (middle - 512..middle + 512).map(|index| at(part, index).unwrap_or(zero)).collect()
        };
        let own: Vec<Vec<f32>> = parts.iter().map(own).collect();
        let mut power = vec![0.0; transform.lines()];
        let q = own.get(1).map_or(&[][..], |q| q);
        transform.power(&own[0], q, zero, &mut power).then(|| {
            let last = power.pop().unwrap();
            match format.is_complex() {
                true => power.push(last),
                false => power[511] = power[511].max(last),
            }
            power
        })
    };
    (0..=samples.div_euclid(512) + i64::from(samples % 512 > 0)).map(|number| number * 512).map(of).collect()
}

/// A row of some bins of these transforms.
fn row_of(transforms: &[Option<Vec<f32>>], bins: usize) -> SpectralRow {
    let there: Vec<&Vec<f32>> = transforms.iter().flatten().collect();
    let each = there.first().map_or(1, |power| power.len() / bins);
    let lines = |bin: usize| there.iter().flat_map(move |power| &power[bin * each..(bin + 1) * each]);
    let db = |power: f32| if power > 0.0 { 10.0 * power.max(1e-20).log10() } else { f32::NEG_INFINITY };
    let highest = |bin: usize| db(lines(bin).copied().fold(0.0, f32::max));
    let mean = |bin: usize| {
        db((lines(bin).map(|&power| f64::from(power)).sum::<f64>() / (there.len().max(1) * each) as f64)
            as f32)
    };
    SpectralRow { highest: (0..bins).map(highest).collect(), mean: (0..bins).map(mean).collect() }
}

#[track_caller]
fn check_row(got: &SpectralRow, should: &SpectralRow, what: &str) {
    let most = should.highest.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for (got, should) in [(&got.highest, &should.highest), (&got.mean, &should.mean)] {
        assert_eq!(got.len(), should.len(), "{what}");
        for (bin, (&got, &should)) in got.iter().zip(should).enumerate() {
            let is_low = should < most - 126.0 && got <= most - 126.0;
            let is_close = (got - should).abs() < 0.27 || got == should || is_low;
            assert!(is_close, "{what}, bin {bin}: {got}, {should} (highest {most})");
        }
    }
}

fn check(summary: &SpectralSummary, format: SampleFormat, channels: &[Vec<u8>]) {
    let samples = (channels[0].len() / format.bytes()) as u64;
    assert_eq!(summary.known_samples(), samples);
    let layout = Layout::new(Lanes::new(format, channels.len()));
    let mut row = SpectralRow::default();
    for (channel, bytes) in channels.iter().enumerate() {
        let all = transforms(format, bytes);
        for log2 in [14, 16, 18, 20, 32] {
            let rows = samples.div_ceil(1 << log2);
            for number in 0..rows {
                summary.row(channel, log2, number, &mut row).unwrap();
                let of = |number: u64| (number << log2) as usize / 512;
                let end = if number + 1 == rows { all.len() } else { of(number + 1) };
                let bins = layout.bins((log2 as usize - 14) / 2);
                let is_stored = log2 == 14 || samples.div_ceil(1 << (log2 - 2)) > 1;
                let should = row_of(&all[of(number)..end], bins);
                if is_stored {
                    check_row(&row, &should, &format!("channel {channel}, 2^{log2}, row {number}"));
                } else {
                    assert_eq!(row.highest.len(), bins, "one of shorter ones");
                }
            }
            let beyond = summary.row(channel, log2, rows, &mut row);
            assert_eq!(beyond.unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
        }
    }
    for (channel, log2) in [(channels.len(), 14), (0, 13), (0, 15), (0, 34)] {
        assert!(summary.row(channel, log2, 0, &mut row).is_err(), "channel {channel}, 2^{log2}");
    }
}

/// Writes a summary of channels, in pieces of any length.
fn write(path: &Path, format: SampleFormat, channels: &[Vec<u8>], rng: &mut Rng) -> Arc<SpectralSummary> {
    let mut writer = SpectraWriter::create(path, format, channels.len()).unwrap();
    let (size, mut at) = (format.bytes(), 0);
    let length = channels[0].len() / size;
    while at < length {
        let now = rng.usize(1..=40_000).min(length - at);
        let piece: Vec<&[u8]> = channels.iter().map(|bytes| &bytes[at * size..(at + now) * size]).collect();
        writer.append(&piece).unwrap();
        at += now;
    }
    assert_eq!(writer.samples(), length as u64);
    writer.finish(STAMP).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn every_row_is_what_its_transforms_have(
        number in 0usize..10,
        channels in 1usize..=3,
        samples in prop_oneof![
            1usize..2000,
            15_000usize..70_000,
            Just(16_384),
            Just(65_536),
            Just(65_537),
            Just(98_304 + 511)
        ],
        seed: u64,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.grebe-spectra");
        let (format, mut rng) = (SampleFormat::ALL[number], Rng::with_seed(seed));
        let channels: Vec<Vec<u8>> = (0..channels).map(|_| bytes_of(format, samples, &mut rng)).collect();
        let made = write(&path, format, &channels, &mut rng);
        check(&made, format, &channels);
        let lanes = Lanes::new(format, channels.len());
        let opened = SpectralSummary::open_if(&path, |head| head.is_of(lanes, samples as u64, &STAMP)).unwrap().unwrap();
        check(&opened, format, &channels);
        prop_assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }
}

/// Bytes of both summaries, as a share of the data.
#[test]
fn both_summaries_take_two_percent_of_the_data_at_most() {
    use crate::summary::builder::SummaryWriter;
    let folder = tempfile::tempdir().unwrap();
    for (format, channels) in SampleFormat::ALL.into_iter().flat_map(|format| [(format, 1), (format, 7)]) {
        let samples = (32 << 20) / format.bytes() / channels;
        let path = folder.path().join("x");
        let zeros = vec![0; samples * format.bytes()];
        let bytes: Vec<&[u8]> = (0..channels).map(|_| &zeros[..]).collect();
        let mut extremes = SummaryWriter::create(&path, format, channels).unwrap();
        extremes.append(&bytes).unwrap();
        extremes.finish(STAMP).unwrap();
        let extremes_bytes = fs::metadata(&path).unwrap().len();
        let layout = Layout::new(Lanes::new(format, channels));
        let spectra_bytes = layout.file_bytes((samples as u64).div_ceil(1 << 14));
        let data = (samples * format.bytes() * channels) as f64;
        let percent = 100.0 * (extremes_bytes + spectra_bytes) as f64 / data;
        assert!(percent <= 2.0, "{format:?} x {channels}: {percent:.3} %");
    }
}

/// Made by a program that knows nothing but the page.
#[test]
fn a_summary_written_by_the_page_alone_is_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/spectra/i16");
    let summary = SpectralSummary::open(&path).unwrap().unwrap();
    assert_eq!(summary.known_samples(), 20_000);
    let tone = (0..20_000).map(|at| if at < 10_000 { (at as f32 / 8.0 * TAU).sin() * 16_384.0 } else { 0.0 });
    let bytes: Vec<u8> = tone.flat_map(|sample: f32| (sample.round() as i16).to_le_bytes()).collect();
    check(&summary, SampleFormat::I16, &[bytes]);
    let mut row = SpectralRow::default();
    summary.row(0, 16, 0, &mut row).unwrap();
    assert_eq!((row.highest.len(), row.highest[32]), (128, -6.0));
}

/// Complex tones of a frequency over faint noise, in these places.
fn bursts(samples: usize, places: &[Range<usize>], cycles: f32) -> Vec<u8> {
    let mut rng = Rng::with_seed(9);
    let mut noise = || (rng.f32() - 0.5) * 1e-4;
    let value = |at: usize| {
        let is_on = places.iter().any(|place| place.contains(&at));
        let level = if is_on { 0.5 } else { 0.0 };
        let (sin, cos) = (TAU * (cycles * at as f32).fract()).sin_cos();
        [level * cos + noise(), level * sin + noise()]
    };
    (0..samples).flat_map(value).flat_map(f32::to_le_bytes).collect()
}

#[test]
fn a_burst_of_a_quarter_of_a_transform_stands_in_every_level_wherever_it_lies() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.grebe-spectra");
    let (samples, mut rng) = (70_000, Rng::with_seed(4));
    for begin in (16_384 - 300..16_384 + 600).step_by(37).chain([0, samples - 256]) {
        let bytes = bursts(samples, std::slice::from_ref(&(begin..begin + 256)), 0.25);
        let summary = write(&path, SampleFormat::Cf32, &[bytes], &mut rng);
        let mut row = SpectralRow::default();
        for log2 in [14, 16, 18] {
            // Within one transform of its own row.
            let near = begin.saturating_sub(512)..=(begin + 255 + 512).min(samples - 1);
            let rows = near.start() >> log2..=near.end() >> log2;
            let level = rows.map(|number| {
                summary.row(0, log2, number as u64, &mut row).unwrap();
                row.highest[row.highest.len() * 3 / 4]
            });
            let level = level.fold(f32::NEG_INFINITY, f32::max);
            // Half a full scale, a quarter of the time, half of the window at least.
            assert!(level > -6.02 - 12.3, "at {begin}, 2^{log2}: {level}");
        }
    }
}

#[test]
fn rows_can_be_read_while_others_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.grebe-spectra");
    let places = [20_000..21_000, 100_000..100_300];
    let bytes = bursts(150_000, &places, 0.125);
    let mut writer = SpectraWriter::create(&path, SampleFormat::Cf32, 1).unwrap();
    let growing = Arc::clone(writer.summary());
    let mut row = SpectralRow::default();
    let mut last = 0;
    for piece in bytes.chunks(9_000 * 8) {
        writer.append(&[piece]).unwrap();
        let known = growing.known_samples();
        assert!(known >= last && known <= writer.samples() && known.is_multiple_of(1 << 14));
        last = known;
        for log2 in [14, 16, 18] {
            for number in 0..known.div_ceil(1 << log2) {
                growing.row(0, log2, number, &mut row).unwrap();
                let own = number << log2..((number + 1) << log2).min(known);
                let is_in = places
                    .iter()
                    .any(|place| (place.start as u64 + 600) < own.end && own.start < place.end as u64 - 100);
                let level = row.highest[row.highest.len() * 5 / 8];
                let is_near = places
                    .iter()
                    .any(|place| (place.start as u64) < own.end + 600 && own.start < place.end as u64 + 600);
                assert!((level > -20.0 || !is_in) && (level < -60.0 || is_near), "{own:?}: {level}");
            }
        }
    }
    assert!(last > 140_000 - (1 << 14));
    let whole = writer.finish(STAMP).unwrap();
    check(&whole, SampleFormat::Cf32, &[bytes]);
}

#[test]
fn a_stale_damaged_or_incomplete_summary_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.grebe-spectra");
    let (format, mut rng) = (SampleFormat::I16, Rng::with_seed(1));
    let channels = vec![bytes_of(format, 100_000, &mut rng)];
    write(&path, format, &channels, &mut rng);
    let lanes = Lanes::new(format, 1);
    let open = |lanes, samples, stamp| {
        SpectralSummary::open_if(&path, |head| head.is_of(lanes, samples, &stamp)).unwrap()
    };
    assert!(open(lanes, 100_000, STAMP).is_some());
    assert!(open(lanes, 100_001, STAMP).is_none(), "the recording grew");
    assert!(open(Lanes::new(format, 2), 100_000, STAMP).is_none());
    assert!(open(lanes, 100_000, Stamp { modified_ns: 3, ..STAMP }).is_none());
    let good = fs::read(&path).unwrap();
    for at in (0..good.len()).step_by(41) {
        let mut bad = good.clone();
        bad[at] ^= 0x40;
        fs::write(&path, &bad).unwrap();
        if let Some(summary) = open(lanes, 100_000, STAMP) {
            let mut rows = [(14, 7), (16, 2), (18, 1)]
                .into_iter()
                .flat_map(|(log2, rows)| (0..rows).map(move |number| (log2, number)));
            let is_noticed = rows.any(|(log2, number)| {
                let read = summary.row(0, log2, number, &mut SpectralRow::default());
                read.is_err_and(|error| error.kind() == std::io::ErrorKind::InvalidData)
            });
            assert!(is_noticed, "byte {at}");
        }
        fs::write(&path, &good[..at]).unwrap();
        assert!(open(lanes, 100_000, STAMP).is_none(), "cut off at {at}");
    }
    assert!(crate::Summary::open(&path).unwrap().is_none(), "one of another kind");
}

#[test]
fn silence_and_what_is_not_finite_have_no_power() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.grebe-spectra");
    let mut rng = Rng::with_seed(1);
    let u8s = write(&path, SampleFormat::U8, &[vec![128; 40_000]], &mut rng);
    let mut row = SpectralRow::default();
    u8s.row(0, 14, 1, &mut row).unwrap();
    assert!(row.highest.iter().chain(&row.mean).all(|&level| level == f32::NEG_INFINITY));
    let nan: Vec<u8> = std::iter::repeat_n(f32::NAN.to_le_bytes(), 40_000).flatten().collect();
    write(&path, SampleFormat::F32, &[nan], &mut rng).row(0, 16, 0, &mut row).unwrap();
    assert!(row.highest.iter().chain(&row.mean).all(|&level| level == f32::NEG_INFINITY));
}

#[test]
fn a_recording_has_the_same_spectra_by_its_recorder_as_by_its_first_viewer() {
    use crate::SigmfSettings;
    use crate::sigmf::SigmfWriter;
    let folder = tempfile::tempdir_in(".").unwrap();
    // Half of the memory holds all of it, so that the summary is never too late.
    let settings = SigmfSettings { sample_rate_hz: 1e6, buffer_bytes: 128 << 20, ..SigmfSettings::default() };
    let path = folder.path().join("x");
    let mut writer = SigmfWriter::create(&path, &settings).unwrap();
    let mut rng = Rng::with_seed(3);
    let samples: Vec<i16> = (0..1 << 16).map(|_| rng.u32(..) as i16).collect();
    for block in 0..320u64 {
        writer.write(block << 16, &[&samples]).unwrap();
    }
    assert_eq!(writer.finish().unwrap().disk.lost_spectra, 0);
    let place = folder.path().join("x.grebe-spectra");
    let by_recorder = fs::read(&place).unwrap();
    assert!(by_recorder.len() < (320 << 17) / 100);
    let meta = folder.path().join("x.sigmf-meta");
    let mut recording = SummarizedFile::open(&meta).unwrap();
    assert!(recording.spectra().is_some_and(|spectra| spectra.known_samples() == 320 << 16));
    assert_eq!(recording.spectra_state(), SummaryState::Whole);
    fs::remove_file(&place).unwrap();
    let mut recording = SummarizedFile::open(&meta).unwrap();
    assert!(!place.exists(), "nobody asked for it");
    recording.spectra();
    let begun = Instant::now();
    while recording.spectra_state() == SummaryState::Making {
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(fs::read(&place).unwrap() == by_recorder);
}
