//! What a person sees, saved as a recording.

use std::path::{Path, PathBuf};

use grebe_stages::{Error, SigmfSettings, SigmfWriter};
use grebe_view::Extract;

/// The visible samples as a recording, with the triggers as labels.
pub(super) fn export(path: &Path, extract: &Extract) -> Result<PathBuf, String> {
    let write = || -> Result<PathBuf, Error> {
        let settings = SigmfSettings {
            channels: extract.runs.first().map_or(1, |run| run.channels.len()),
            sample_rate_hz: extract.rate_hz,
            description: Some("Saved from a scope".into()),
            ..SigmfSettings::default()
        };
        let mut writer = SigmfWriter::create(path, &settings)?;
        for run in &extract.runs {
            let channels: Vec<&[i16]> = run.channels.iter().map(Vec::as_slice).collect();
            writer.write(run.first_sample_index, &channels)?;
        }
        for &at in &extract.triggers {
            writer.annotate(at.max(0.0) as u64, 1, "trigger")?;
        }
        let files = writer.finish()?.files;
        Ok(files.into_iter().next().unwrap_or_else(|| path.into()))
    };
    write().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use grebe_stages::SampleFile;
    use grebe_view::ExtractRun;

    use super::*;

    #[test]
    fn what_is_exported_reads_back_with_its_gaps_and_triggers() {
        let folder = tempfile::tempdir().unwrap();
        let run = |first_sample_index: u64, length: i16| ExtractRun {
            first_sample_index,
            channels: vec![(0..length).map(|n| n * 3 + first_sample_index as i16).collect()],
        };
        let extract = Extract {
            rate_hz: 360.0,
            range: 1000..2000,
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
        let samples = block.channel(0).to_vec();
        assert_eq!(samples, [run(1000, 400).channels.concat(), run(1600, 400).channels.concat()].concat());
        let meta = std::fs::read_to_string(&path).unwrap();
        let meta: serde_json::Value = serde_json::from_str(&meta).unwrap();
        let annotations = meta["annotations"].as_array().unwrap();
        let places: Vec<_> = annotations.iter().map(|it| it["core:sample_start"].as_u64().unwrap()).collect();
        assert_eq!(places, [10, 500], "places in the file: the gap is not in it");
        assert!(annotations.iter().all(|it| it["core:label"] == "trigger"), "{annotations:?}");
    }
}
