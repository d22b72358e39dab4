//! What a scope keeps in files: its settings between two times it is used, and what a person saves of the picture.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use grebe_frame::{Complex, SampleFormat};
use grebe_stages::{Error, SigmfSettings, SigmfWriter, write_whole};
use grebe_view::{Extract, ExtractSamples, Part, Session};

/// The file of a source: in the folder that the system has for the state of programs.
pub(crate) fn session_of_source(name: &str) -> Option<PathBuf> {
    let home = |variable: &str| std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
    let state = home("XDG_STATE_HOME").filter(|path| path.is_absolute());
    let state =
        state.or_else(|| home("LOCALAPPDATA")).or_else(|| Some(home("HOME")?.join(".local/state")))?;
    Some(state.join("grebe").join("sessions").join(file_name(name)))
}

/// The session in the file; `None` where there is no file. A device may have no end, and a FIFO no beginning.
pub(super) fn read_session(path: &Path) -> Result<Option<Session>> {
    if fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        return Ok(None);
    }
    match fs::read_to_string(path) {
        Ok(text) => {
            let session = Session::from_toml(&text);
            Ok(Some(session.with_context(|| format!("{}", path.display()))?))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Writes the session.
pub(super) fn write_session(path: &Path, session: &Session) -> Result<()> {
    let failed = || format!("cannot keep the settings in {}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(failed)?;
    }
    let text = format!("# Settings of a scope: grebe view --session FILE\n{}", session.to_toml());
    write_whole(path, text.as_bytes()).with_context(failed)
}

/// Letters and digits of the name, and a number that tells apart what is then the same.
fn file_name(name: &str) -> String {
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let plain: String = plain.trim_matches('-').chars().rev().take(60).collect();
    let plain: String = plain.chars().rev().collect();
    // FNV-1a: the same on every machine and in every version.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{plain}-{:08x}.toml", hash >> 32)
}

/// The visible samples as a recording, with the triggers as labels.
pub(super) fn export(path: &Path, extract: &Extract) -> Result<PathBuf, String> {
    let write = || -> Result<PathBuf, Error> {
        let is_complex = extract.lanes.first().is_some_and(|lane| lane.part != Part::Real);
        let format = match extract.runs.first().map(|run| &run.samples) {
            Some(ExtractSamples::F32(_)) if is_complex => SampleFormat::Cf32,
            Some(ExtractSamples::F32(_)) => SampleFormat::F32,
            _ => SampleFormat::I16,
        };
        let settings = SigmfSettings {
            channels: extract.lanes.len().max(1) / if is_complex { 2 } else { 1 },
            format,
            sample_rate_hz: extract.rate_hz,
            description: Some("Saved from a scope".into()),
            ..SigmfSettings::default()
        };
        let mut writer = SigmfWriter::create(path, &settings)?;
        for run in &extract.runs {
            match &run.samples {
                ExtractSamples::I16(lanes) => writer.write(run.first_sample_index, &slices(lanes))?,
                ExtractSamples::F32(lanes) if is_complex => {
                    let of = |(&re, &im): (&f32, &f32)| Complex { re, im };
                    let channels = lanes.chunks_exact(2);
                    let channels = channels.map(|iq| iq[0].iter().zip(&iq[1]).map(of).collect());
                    let channels: Vec<Vec<Complex<f32>>> = channels.collect();
                    writer.write(run.first_sample_index, &slices(&channels))?;
                }
                ExtractSamples::F32(lanes) => writer.write(run.first_sample_index, &slices(lanes))?,
            }
        }
        for &at in &extract.triggers {
            writer.annotate(at.max(0.0) as u64, 1, "trigger")?;
        }
        let files = writer.finish()?.files;
        Ok(files.into_iter().next().unwrap_or_else(|| path.into()))
    };
    write().map_err(|error| error.to_string())
}

fn slices<T>(lanes: &[Vec<T>]) -> Vec<&[T]> {
    lanes.iter().map(Vec::as_slice).collect()
}

#[cfg(test)]
mod tests {
    use grebe_stages::SampleFile;
    use grebe_view::{ExtractRun, LaneId};

    use super::*;

    #[test]
    fn sources_have_files_of_their_own() {
        let names = ["udp://:5000", "udp://:5001", "udp:::5000", "/data/a b.wav", &"x/".repeat(500)];
        let files: Vec<String> = names.iter().map(|name| file_name(name)).collect();
        for (place, file) in files.iter().enumerate() {
            assert!(file.len() < 100 && !file.contains(['/', ':', ' ', '\\']), "{file}");
            assert!(!files[..place].contains(file), "{file}");
        }
    }

    #[test]
    fn a_session_is_kept_and_found_again_and_a_damaged_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/one.toml");
        assert!(read_session(&path).unwrap().is_none());
        let session = Session::from_toml("span_s = 0.5").unwrap();
        write_session(&path, &session).unwrap();
        assert_eq!(read_session(&path).unwrap(), Some(session));
        fs::write(&path, "span_s = [").unwrap();
        let error = format!("{:#}", read_session(&path).unwrap_err());
        assert!(error.contains("one.toml"), "{error}");
    }

    #[test]
    fn what_is_exported_reads_back_with_its_gaps_and_triggers() {
        let folder = tempfile::tempdir().unwrap();
        let values =
            |first: u64, length: i16| (0..length).map(|n| n * 3 + first as i16).collect::<Vec<i16>>();
        let run = |first_sample_index: u64, length: i16| ExtractRun {
            first_sample_index,
            samples: ExtractSamples::I16(vec![values(first_sample_index, length)]),
        };
        let extract = Extract {
            rate_hz: 360.0,
            range: 1000..2000,
            lanes: vec![LaneId::real(0)],
            runs: vec![run(1000, 400), run(1600, 400)],
            triggers: vec![1010.5, 1700.0],
        };
        let path = export(&folder.path().join("seen.sigmf-meta"), &extract).unwrap();
        let mut file = SampleFile::open(&path).unwrap();
        assert_eq!((file.sample_rate_hz(), file.channels(), file.len_samples()), (360.0, 1, 800));
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
}
