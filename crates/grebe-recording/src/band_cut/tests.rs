use std::f64::consts::TAU;
use std::path::Path;
use std::time::{Duration, SystemTime};

use grebe_frame::{Complex, Description, SampleFormat};
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::sigmf::{SigmfSettings, SigmfWriter};

const RATE_HZ: f64 = 1e6;

fn tone(frequency_hz: f64, index: u64) -> Complex<f32> {
    let (sin, cos) = (TAU * (frequency_hz / RATE_HZ * index as f64).fract()).sin_cos();
    Complex::new(cos as f32, sin as f32)
}

/// A tone on the air, in stretches of these indices, each tuned to a centre.
fn recorded(path: &Path, on_air_hz: f64, stretches: &[(Range<u64>, Option<f64>)]) -> PathBuf {
    let settings = SigmfSettings {
        format: SampleFormat::Cf32,
        channels: 1,
        sample_rate_hz: RATE_HZ,
        ..SigmfSettings::default()
    };
    let mut writer = SigmfWriter::create(path, &settings).unwrap();
    for (range, centre_hz) in stretches {
        let description = Description { centre_frequency_hz: *centre_hz, ..Description::default() };
        writer.describe(Some(Arc::new(description)));
        let samples: Vec<_> =
            range.clone().map(|index| tone(on_air_hz - centre_hz.unwrap_or(0.0), index)).collect();
        let began = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000) + Duration::from_micros(range.start);
        let recorded_at = crate::sample_file::RecordedAt { time: began, error_ns: Some(5), axis: None };
        writer.write_recorded(range.start, &[&samples], Some(recorded_at)).unwrap();
    }
    writer.finish().unwrap().files.remove(0)
}

fn wanted(start_us: u64, duration_us: u64, centre_hz: f64, bandwidth_hz: f64) -> CutBox {
    let us = Duration::from_micros;
    CutBox { start: us(start_us), duration: Some(us(duration_us)), centre_hz, bandwidth_hz, rate_hz: None }
}

fn cut(
    files: &[PathBuf],
    boxes: Vec<CutBox>,
    folder: &Path,
) -> Result<(Vec<BoxCut>, Vec<SampleFile>), Error> {
    let files = files.iter().map(|path| SampleFile::open(path).unwrap()).collect();
    let names: Vec<PathBuf> = (0..boxes.len()).map(|at| folder.join(format!("cut{at}.sigmf-meta"))).collect();
    let done = BandCut::new(files, boxes)?.write(&names, &AtomicU64::new(0), &Cancel::default())?;
    let open = |(path, cut): (&PathBuf, &BoxCut)| (cut.samples > 0).then(|| SampleFile::open(path).unwrap());
    let made = names.iter().zip(&done).filter_map(open).collect();
    Ok((done, made))
}

fn samples(file: &mut SampleFile) -> Vec<Complex<f32>> {
    let length = file.len_samples() as usize;
    file.block(0, length).unwrap().channel(0).unwrap().into_owned()
}

#[test]
fn a_box_has_its_times_frequencies_and_annotation() {
    let folder = tempfile::tempdir().unwrap();
    let wide = recorded(&folder.path().join("wide"), 100.21e6, &[(1_000..101_000, Some(100e6))]);
    let label = |low_hz: f64, high_hz: f64, name: &str| {
        let fields = serde_json::json!({ "core:label": name, "core:freq_lower_edge": low_hz, "core:freq_upper_edge": high_hz });
        crate::Annotation {
            position: 30_000,
            length_samples: 500,
            fields: fields.as_object().unwrap().clone(),
        }
    };
    let labels = [label(100.205e6, 100.215e6, "burst"), label(99e6, 99.1e6, "other")];
    SampleFile::edit_annotations(&wide, &labels.map(crate::AnnotationEdit::Add)).unwrap();
    let (done, mut made) = cut(&[wide], vec![wanted(20_007, 30_000, 100.2e6, 40e3)], folder.path()).unwrap();
    let file = &mut made[0];
    assert_eq!((file.rate_hz(), file.len_samples()), (Some(50e3), 1_500));
    assert_eq!(done[0].edge_samples, (0, 0));
    let began = file.time_at(0).unwrap().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    // The first sample of the recording was made at 1,000 us.
    assert_eq!(began, Duration::from_secs(1_000) + Duration::from_micros(21_007));
    assert_eq!(file.description(0).unwrap().centre_frequency_hz, Some(100.2e6));
    let text = |at: usize, name: &str| {
        file.annotations()[at].fields.get(name).and_then(Value::as_str).unwrap().to_owned()
    };
    assert_eq!((text(0, "core:label"), text(1, "core:label")), ("cut".to_owned(), "burst".to_owned()));
    assert!(
        text(0, "core:comment").contains("samples 20007 to 50007; flat to 20000 Hz"),
        "{}",
        text(0, "core:comment")
    );
    assert_eq!(file.annotations().len(), 2);
    assert_eq!((file.annotations()[1].position, file.annotations()[1].length_samples), (500, 25));
    // No edge: the filter read what lies around the box.
    let got = samples(file);
    for (n, sample) in got.iter().enumerate() {
        let (sin, cos) = (TAU * (10e3 / 50e3 * n as f64)).sin_cos();
        // The phase at the first sample is the shift's there.
        let first = got[0];
        let expected = Complex::new(
            first.re * cos as f32 - first.im * sin as f32,
            first.re * sin as f32 + first.im * cos as f32,
        );
        assert!((sample.re - expected.re).hypot(sample.im - expected.im) < 1e-4, "{n}: {sample:?}");
        assert!((sample.re.hypot(sample.im) - 1.0).abs() < 1e-3, "{n}");
    }
}

#[test]
fn boxes_of_one_pass_are_those_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let wide = recorded(&folder.path().join("wide"), 50e3, &[(0..200_000, None)]);
    let boxes = vec![
        wanted(0, 150_000, 40e3, 30e3),
        wanted(10_000, 1_000, 50e3, 100e3),
        CutBox { rate_hz: Some(12_345.6), ..wanted(50_001, 99_999, 50e3, 2e3) },
        CutBox { duration: None, ..wanted(199_000, 1, 0.0, 900e3) },
    ];
    let (done, mut together) = cut(std::slice::from_ref(&wide), boxes.clone(), folder.path()).unwrap();
    assert!(done[0].edge_samples.0 > 20 && done[0].edge_samples.1 == 0, "{done:?}");
    assert_eq!((done[1].edge_samples, done[3].samples), ((0, 0), 1_000));
    assert!(done[3].edge_samples.1 > 20, "{done:?}");
    assert_same_alone(&wide, boxes, &mut together);
}

#[test]
fn a_hundred_boxes_of_one_pass_are_those_of_a_hundred_passes() {
    let folder = tempfile::tempdir().unwrap();
    let wide = recorded(&folder.path().join("wide"), 50e3, &[(0..60_000, None)]);
    let mut rng = grebe_testing::Rng::with_seed(100);
    let boxes: Vec<CutBox> = (0..100)
        .map(|_| {
            let bandwidth_hz = 5e3 + rng.f64() * 60e3;
            let centre_hz = (rng.f64() - 0.5) * 800e3;
            wanted(rng.u64(0..50_000), rng.u64(100..20_000), centre_hz, bandwidth_hz)
        })
        .collect();
    let (_, mut together) = cut(std::slice::from_ref(&wide), boxes.clone(), folder.path()).unwrap();
    assert_eq!(together.len(), 100);
    assert_same_alone(&wide, boxes, &mut together);
}

/// Compares boxes of one pass with each in a pass of its own.
#[track_caller]
fn assert_same_alone(wide: &PathBuf, boxes: Vec<CutBox>, together: &mut [SampleFile]) {
    for (wanted, together) in boxes.into_iter().zip(together) {
        let alone = tempfile::tempdir().unwrap();
        let (_, mut made) = cut(std::slice::from_ref(wide), vec![wanted.clone()], alone.path()).unwrap();
        let (one, other) = (samples(&mut made[0]), samples(together));
        assert_eq!(one.len(), other.len(), "{wanted:?}");
        let apart = one.iter().zip(&other).map(|(a, b)| (a.re - b.re).hypot(a.im - b.im)).fold(0.0, f32::max);
        assert!(apart < 1e-4, "{wanted:?}: {apart}");
    }
}

#[test]
fn gaps_stay_at_their_times_and_parts_of_a_ring_are_one() {
    let folder = tempfile::tempdir().unwrap();
    let ranges = [0..30_000u64, 30_000..50_000, 60_000..100_000];
    let parts: Vec<PathBuf> = ranges
        .iter()
        .enumerate()
        .map(|(at, range)| {
            recorded(&folder.path().join(format!("part{at}")), 100.21e6, &[(range.clone(), Some(100e6))])
        })
        .collect();
    let (done, mut made) = cut(&parts, vec![wanted(10_000, 80_000, 100.2e6, 40e3)], folder.path()).unwrap();
    let segments: Vec<_> =
        made[0].segments().iter().map(|it| (it.position, it.length_samples, it.first_sample_index)).collect();
    assert_eq!(segments, [(0, 2_000, 0), (2_000, 1_500, 2_500)]);
    let began = made[0].time_at(2_000).unwrap().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(began, Duration::from_secs(1_000) + Duration::from_millis(60));
    assert_eq!(done[0].edge_samples, (0, 0));
    // Across the border of two parts nothing is to be seen.
    let around = &samples(&mut made[0])[900..1_100];
    assert!(around.iter().all(|sample| (sample.re.hypot(sample.im) - 1.0).abs() < 1e-3));
}

#[test]
fn a_receiver_that_is_tuned_elsewhere_for_a_while_leaves_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    let stretches =
        [(0..20_000, Some(100e6)), (20_000..40_000, Some(200e6)), (40_000..60_000, Some(100.1e6))];
    let wide = recorded(&folder.path().join("wide"), 100.2e6, &stretches);
    let (done, mut made) =
        cut(std::slice::from_ref(&wide), vec![wanted(0, 60_000, 100.2e6, 40e3)], folder.path()).unwrap();
    assert_eq!((done[0].samples, done[0].outside_samples), (2_000, 20_000));
    let segments: Vec<_> = made[0].segments().iter().map(|it| (it.position, it.first_sample_index)).collect();
    assert_eq!(segments, [(0, 0), (1_000, 2_000)]);
    assert!(samples(&mut made[0])[100..900].iter().all(|it| (it.re.hypot(it.im) - 1.0).abs() < 1e-3));
    let refused =
        |wanted| cut(std::slice::from_ref(&wide), vec![wanted], folder.path()).unwrap_err().to_string();
    let said = refused(wanted(0, 10_000, 10e3, 40e3));
    assert!(said.contains("lies outside") && said.contains("the recording's centre is 100 MHz"), "{said}");
    assert!(refused(wanted(60_000, 10, 100e6, 40e3)).contains("before the end"));
    assert!(refused(wanted(0, 0, 100e6, 40e3)).contains("shorter than a sample"));
    assert!(
        refused(CutBox { rate_hz: Some(10e3), ..wanted(0, 1_000, 100e6, 40e3) }).contains("at least 42 kS/s")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_box_has_exact_times_or_is_refused(
        start_us in 0u64..70_000, duration_us in 0u64..70_000, centre_hz in -600e3..600e3f64, bandwidth_hz in 100.0..1.1e6f64,
        rate_hz in prop::option::of(1e3..2e6f64),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let wide = recorded(&folder.path().join("wide"), 0.0, &[(5..30_000, None), (40_000..60_000, None)]);
        let wanted = CutBox { rate_hz, ..wanted(start_us, duration_us, centre_hz, bandwidth_hz) };
        let Ok((done, made)) = cut(&[wide], vec![wanted], folder.path()) else { return Ok(()) };
        let Some(file) = made.first() else { return Ok(()) };
        let start = Duration::from_micros(start_us);
        prop_assert_eq!(file.rate_hz(), Some(done[0].rate_hz));
        for segment in file.segments() {
            let began = segment.recorded_at.unwrap().duration_since(SystemTime::UNIX_EPOCH).unwrap();
            let index = Duration::from_secs_f64(segment.first_sample_index as f64 / file.rate_hz().unwrap());
            let expected = Duration::from_secs(1_000) + Duration::from_micros(5) + start + index;
            prop_assert!(began.abs_diff(expected) <= Duration::from_nanos(2), "{:?} {:?}", began, expected);
        }
    }
}
