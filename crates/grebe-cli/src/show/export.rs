//! Saves the samples of a picture as a recording, in the format of their stream.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use grebe_frame::{Complex, Description, Header, Sample, SampleFormat, StreamAnnotation};
use grebe_recording::{BandCut, CutBox, Error, SampleFile, SigmfSettings, SigmfWriter};
use grebe_view::{CutBand, Extract, ExtractRun, ExtractSamples, Part};

use crate::interrupt;

/// Writes samples of a source as a recording, with the triggers as annotations, or cuts a band out of them.
pub(super) fn export(
    source: &str,
    path: &Path,
    extract: &Extract,
    band: Option<CutBand>,
) -> Result<PathBuf, String> {
    match band {
        None => export_all(path, extract),
        Some(band) => export_band(source, path, extract, band),
    }
}

/// Cuts as `grebe convert --box` does, out of a temporary recording of the samples.
fn export_band(source: &str, path: &Path, extract: &Extract, band: CutBand) -> Result<PathBuf, String> {
    if extract.rate_hz.is_nan() || extract.rate_hz <= 0.0 {
        return Err("the stream states no rate, so no band of it can be cut".into());
    }
    let first = extract.runs.first().map_or(0, |run| run.first_sample_index);
    let time = |samples: u64| Duration::from_secs_f64(samples as f64 / extract.rate_hz);
    let begin = band.samples.start.max(first);
    let part = CutBox {
        start: time(begin - first),
        duration: Some(time(band.samples.end.saturating_sub(begin))),
        centre_hz: (band.low_hz + band.high_hz) / 2.0,
        bandwidth_hz: band.high_hz - band.low_hz,
        rate_hz: None,
    };
    let beside = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = tempfile::Builder::new().prefix(".grebe-box").tempdir_in(beside);
    let folder = folder.map_err(|error| format!("cannot write to {}: {error}", beside.display()))?;
    let all = export_all(&folder.path().join("scope.sigmf-meta"), extract)?;
    let cut = || {
        let cut = BandCut::new(vec![SampleFile::open(all)?], vec![part])?.copied_from(source, first);
        cut.write(&[path.to_owned()], &AtomicU64::new(0), &interrupt::cancel())
    };
    let done = cut().map_err(|error| error.to_string())?;
    if done.iter().all(|cut| cut.samples == 0) {
        return Err("no sample of the box is held any more".into());
    }
    // Several channels are a collection.
    let collection = path.with_extension("sigmf-collection");
    Ok(if collection.exists() { collection } else { path.to_owned() })
}

fn export_all(path: &Path, extract: &Extract) -> Result<PathBuf, String> {
    let write = || -> Result<PathBuf, Error> {
        let format = format(extract);
        let rounded = match extract.is_rounded() {
            true => format!(", which rounds samples of {} to 24 bits", extract.format),
            false => String::new(),
        };
        let settings = SigmfSettings {
            channels: extract.lanes.len().max(1) / format.components(),
            format,
            sample_rate_hz: extract.rate_hz,
            description: Some(format!("Saved from a scope{rounded}")),
            ..SigmfSettings::default()
        };
        let mut writer = SigmfWriter::create(path, &settings)?;
        for run in &extract.runs {
            write_run(&mut writer, run, extract, format)?;
        }
        for annotation in &extract.annotations {
            writer.annotate_as(&within(annotation, &extract.range))?;
        }
        for &at in &extract.triggers {
            writer.annotate(at.max(0.0) as u64, 1, "trigger")?;
        }
        let files = writer.finish()?.files;
        Ok(files.into_iter().next().unwrap_or_else(|| path.into()))
    };
    write().map_err(|error| error.to_string())
}

/// The format of the stream, if the samples are unchanged.
fn format(extract: &Extract) -> SampleFormat {
    let is_complex = extract.lanes.first().is_some_and(|lane| lane.part != Part::Real);
    let own = extract.format;
    let is_short = matches!(own, SampleFormat::I8 | SampleFormat::U8 | SampleFormat::I16);
    match extract.runs.first().map(|run| &run.samples) {
        None => own,
        Some(ExtractSamples::I16(_)) if is_short => own,
        Some(ExtractSamples::I16(_)) => SampleFormat::I16,
        Some(ExtractSamples::F32(_)) if is_complex && own.is_complex() => own,
        Some(ExtractSamples::F32(_)) if is_complex => SampleFormat::Cf32,
        Some(ExtractSamples::F32(_)) if own == SampleFormat::I32 && !extract.is_rounded() => own,
        Some(ExtractSamples::F32(_)) => SampleFormat::F32,
    }
}

/// Writes samples with their annotations and time, if known.
fn write_run(
    writer: &mut SigmfWriter,
    run: &ExtractRun,
    extract: &Extract,
    format: SampleFormat,
) -> Result<(), Error> {
    let first = run.first_sample_index;
    let end = first + run.samples.len() as u64;
    let said = extract.descriptions.iter().filter(|it| (first..end).contains(&it.first_sample_index));
    let nothing = Description { first_sample_index: first, is_undated: true, ..Description::default() };
    let is_said = said.clone().next().is_some_and(|it| it.first_sample_index == first);
    let said: Vec<&Description> = (!is_said).then_some(&nothing).into_iter().chain(said).collect();
    let ends = said.iter().skip(1).map(|it| it.first_sample_index).chain([end]);
    for (description, end) in said.iter().zip(ends) {
        let begin = description.first_sample_index;
        let mut description = (*description).clone();
        if format != extract.format {
            description.rest.remove(Description::BITS);
        }
        writer.describe(Some(Arc::new(description)));
        let header =
            Header { first_sample_index: begin, sample_rate_hz: extract.rate_hz, ..Header::default() };
        let part = (begin - first) as usize..(end - first) as usize;
        narrow(&run.samples, part, format, Writing { writer, header })?;
    }
    Ok(())
}

/// The part of an annotation within a range.
fn within(annotation: &StreamAnnotation, range: &Range<u64>) -> StreamAnnotation {
    let first_sample_index = annotation.first_sample_index.max(range.start);
    let length_samples = annotation.end_index().min(range.end).saturating_sub(first_sample_index);
    StreamAnnotation { first_sample_index, length_samples, ..annotation.clone() }
}

struct Writing<'a> {
    writer: &'a mut SigmfWriter,
    header: Header,
}

impl Narrowed for Writing<'_> {
    type Done = Result<(), Error>;

    fn take<T: Sample>(self, channels: Vec<Vec<T>>) -> Result<(), Error> {
        self.writer.write_made(&self.header, &channels.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }
}

/// Consumer of samples in the format of their stream.
pub(super) trait Narrowed {
    type Done;

    fn take<T: Sample>(self, channels: Vec<Vec<T>>) -> Self::Done;
}

/// Converts samples of each channel to a format that can hold them.
pub(super) fn narrow<N: Narrowed>(
    samples: &ExtractSamples,
    part: Range<usize>,
    format: SampleFormat,
    to: N,
) -> N::Done {
    match (samples, format) {
        (ExtractSamples::I16(lanes), SampleFormat::I8) => to.take(each(lanes, part, |it| it as i8)),
        (ExtractSamples::I16(lanes), SampleFormat::U8) => to.take(each(lanes, part, |it| it as u8)),
        (ExtractSamples::I16(lanes), _) => to.take(each(lanes, part, |it| it)),
        (ExtractSamples::F32(lanes), SampleFormat::I32) => to.take(each(lanes, part, |it| it as i32)),
        (ExtractSamples::F32(lanes), SampleFormat::Ci8) => to.take(pairs(lanes, part, |it| it as i8)),
        (ExtractSamples::F32(lanes), SampleFormat::Cu8) => {
            to.take(pairs(lanes, part, |it| (it + CU8_ZERO) as u8))
        }
        (ExtractSamples::F32(lanes), SampleFormat::Ci16) => to.take(pairs(lanes, part, |it| it as i16)),
        (ExtractSamples::F32(lanes), SampleFormat::Cf32) => to.take(pairs(lanes, part, |it| it)),
        (ExtractSamples::F32(lanes), _) => to.take(each(lanes, part, |it| it)),
    }
}

fn each<K: Copy, T>(lanes: &[Vec<K>], part: Range<usize>, narrow: impl Fn(K) -> T) -> Vec<Vec<T>> {
    lanes.iter().map(|lane| lane[part.clone()].iter().map(|&it| narrow(it)).collect()).collect()
}

/// I and Q of a channel as complex samples.
fn pairs<T>(lanes: &[Vec<f32>], part: Range<usize>, narrow: impl Fn(f32) -> T) -> Vec<Vec<Complex<T>>> {
    let of = |(&re, &im): (&f32, &f32)| Complex { re: narrow(re), im: narrow(im) };
    lanes
        .chunks_exact(2)
        .map(|iq| iq[0][part.clone()].iter().zip(&iq[1][part.clone()]).map(of).collect())
        .collect()
}

/// Offset that the scope subtracts from cu8.
const CU8_ZERO: f32 = 127.5;

#[cfg(test)]
mod tests {
    use grebe_view::LaneId;

    use super::*;

    #[test]
    fn no_band_is_cut_of_samples_without_a_rate() {
        let band = CutBand { samples: 0..10, low_hz: 0.1, high_hz: 0.2 };
        let error = export("x", Path::new("x.sigmf-meta"), &Extract::default(), Some(band)).unwrap_err();
        assert!(error.contains("no rate"), "{error}");
    }

    #[test]
    fn a_band_is_cut_as_convert_cuts_it_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        // A tone at 100 kHz of 0.5, and one at -300 kHz, from sample 1,000 on.
        let turn = |at: usize, hz: f64| (std::f64::consts::TAU * (hz / 1e6 * at as f64).fract()).sin_cos();
        let tones = |at: usize| {
            let ((sin, cos), (other_sin, other_cos)) = (turn(at, 100e3), turn(at, -300e3));
            ((0.5 * cos + 0.4 * other_cos) as f32, (0.5 * sin + 0.4 * other_sin) as f32)
        };
        let (i, q): (Vec<f32>, Vec<f32>) = (1_000..41_000).map(tones).unzip();
        let run = ExtractRun { first_sample_index: 1_000, samples: ExtractSamples::F32(vec![i, q]) };
        let extract = Extract {
            rate_hz: 1e6,
            format: SampleFormat::Cf32,
            range: 0..41_000,
            lanes: vec![LaneId { channel: 0, part: Part::I }, LaneId { channel: 0, part: Part::Q }],
            runs: vec![run],
            ..Extract::default()
        };
        let band = |samples| Some(CutBand { samples, low_hz: 80e3, high_hz: 120e3 });
        let out = folder.path().join("box.sigmf-meta");
        let path = export("udp://:5000", &out, &extract, band(11_000..31_000)).unwrap();
        let mut file = SampleFile::open(&path).unwrap();
        assert_eq!((file.rate_hz(), file.len_samples()), (Some(50e3), 1_000));
        assert_eq!(file.description(0).unwrap().centre_frequency_hz, Some(100e3));
        let said = file.annotations()[0].fields["core:comment"].as_str().unwrap_or_default();
        assert!(said.starts_with("cut from udp://:5000, samples 11000 to 31000;"), "{said}");
        let sizes = |file: &mut SampleFile| {
            let length = file.len_samples() as usize;
            let samples = file.block(0, length).unwrap().channel::<Complex<f32>>(0).unwrap().into_owned();
            samples.iter().map(|it| it.re.hypot(it.im)).collect::<Vec<f32>>()
        };
        let cut = sizes(&mut file);
        assert!(cut.iter().all(|size| (size - 0.5).abs() < 1e-3), "{cut:?}");
        // The part of the box that is held, and none.
        let path = export("x", &folder.path().join("early.sigmf-meta"), &extract, band(0..2_000)).unwrap();
        assert_eq!(SampleFile::open(&path).unwrap().len_samples(), 50);
        assert!(export("x", &folder.path().join("late"), &extract, band(50_000..60_000)).is_err());
        let names = std::fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name());
        let others: Vec<_> = names.filter(|it| it.to_string_lossy().starts_with('.')).collect();
        assert!(others.is_empty(), "{others:?}");
    }

    #[test]
    fn an_export_reads_back_with_gaps_and_triggers() {
        let folder = tempfile::tempdir().unwrap();
        let values =
            |first: u64, length: i16| (0..length).map(|n| n * 3 + first as i16).collect::<Vec<i16>>();
        let run = |first_sample_index: u64, length: i16| ExtractRun {
            first_sample_index,
            samples: ExtractSamples::I16(vec![values(first_sample_index, length)]),
        };
        let extract = Extract {
            rate_hz: 360.0,
            format: SampleFormat::I16,
            range: 1000..2000,
            lanes: vec![LaneId::real(0)],
            runs: vec![run(1000, 400), run(1600, 400)],
            triggers: vec![1010.5, 1700.0],
            ..Extract::default()
        };
        let path = export("x", &folder.path().join("seen.sigmf-meta"), &extract, None).unwrap();
        let mut file = SampleFile::open(&path).unwrap();
        assert_eq!((file.rate_hz(), file.channels(), file.len_samples()), (Some(360.0), 1, 800));
        let segments: Vec<_> =
            file.segments().iter().map(|it| (it.position, it.first_sample_index)).collect();
        assert_eq!(segments, [(0, 1000), (400, 1600)]);
        let block = file.block(0, 800).unwrap();
        let samples = block.channel::<i16>(0).unwrap().to_vec();
        assert_eq!(samples, [values(1000, 400), values(1600, 400)].concat());
        let meta = std::fs::read_to_string(&path).unwrap();
        let meta: serde_json::Value = serde_json::from_str(&meta).unwrap();
        let annotations = meta["annotations"].as_array().unwrap();
        let places: Vec<_> = annotations.iter().map(|it| it["core:sample_start"].as_u64().unwrap()).collect();
        assert_eq!(places, [10, 500], "places in the file: the gap is not in it");
        assert!(annotations.iter().all(|it| it["core:label"] == "trigger"), "{annotations:?}");
    }

    fn saved<T: Sample>(
        format: SampleFormat,
        lanes: &[LaneId],
        samples: ExtractSamples,
    ) -> (SampleFormat, Vec<T>) {
        let folder = tempfile::tempdir().unwrap();
        let extract = Extract {
            rate_hz: 1e3,
            format,
            range: 0..10,
            lanes: lanes.to_vec(),
            runs: vec![ExtractRun { first_sample_index: 0, samples }],
            triggers: Vec::new(),
            ..Extract::default()
        };
        let path = export("x", &folder.path().join("seen.sigmf-meta"), &extract, None).unwrap();
        let mut file = SampleFile::open(&path).unwrap();
        let (length, format) = (file.len_samples() as usize, file.format());
        let block = file.block(0, length).unwrap();
        (format, block.channel::<T>(0).unwrap().to_vec())
    }

    #[test]
    fn samples_are_saved_as_they_were_in_their_stream() {
        let real = [LaneId::real(0)];
        let short = |values: &[i16]| ExtractSamples::I16(vec![values.to_vec()]);
        let long = |values: &[f32]| ExtractSamples::F32(vec![values.to_vec()]);
        assert_eq!(
            saved(SampleFormat::I8, &real, short(&[-128, 127])),
            (SampleFormat::I8, vec![-128i8, 127])
        );
        assert_eq!(saved(SampleFormat::U8, &real, short(&[0, 255])), (SampleFormat::U8, vec![0u8, 255]));
        let exact = [-16_777_215.0, 5.0];
        assert_eq!(saved(SampleFormat::I32, &real, long(&exact)), (SampleFormat::I32, vec![-16_777_215, 5]));
        let rounded = [-16_777_216.0f32, 5.0];
        assert_eq!(saved(SampleFormat::I32, &real, long(&rounded)), (SampleFormat::F32, rounded.to_vec()));
        assert_eq!(saved(SampleFormat::F64, &real, long(&[0.5])), (SampleFormat::F32, vec![0.5f32]));
        let iq = [LaneId { channel: 0, part: Part::I }, LaneId { channel: 0, part: Part::Q }];
        let two = |i: &[f32], q: &[f32]| ExtractSamples::F32(vec![i.to_vec(), q.to_vec()]);
        let centred = two(&[-127.5, -0.5], &[127.5, 0.5]);
        let expected = vec![Complex { re: 0u8, im: 255 }, Complex { re: 127, im: 128 }];
        assert_eq!(saved(SampleFormat::Cu8, &iq, centred), (SampleFormat::Cu8, expected));
        let expected = vec![Complex { re: -3i16, im: 4 }];
        assert_eq!(saved(SampleFormat::Ci16, &iq, two(&[-3.0], &[4.0])), (SampleFormat::Ci16, expected));
        let expected = vec![Complex { re: -3i8, im: 4 }];
        assert_eq!(saved(SampleFormat::Ci8, &iq, two(&[-3.0], &[4.0])), (SampleFormat::Ci8, expected));
    }
}
