//! How each kind of recording is opened.

use std::path::{Path, PathBuf};

use grebe_frame::AnnotationEdit;

use crate::error::Error;
use crate::kinds::{Kind, is_recording, is_table, kind_of};
use crate::name_facts::Hint;
use crate::sample_file::{Annotation, AnnotationsEdited, SampleFile};
use crate::unpacked::{is_packed, plain_name};
use crate::{
    flac, folder, headerless, kinds, matlab, npy, npz, path_query, receiver_file, sigmf, sigrok, wav,
};

/// Supported formats, for the message about another one.
const KNOWN: &str = ".sigmf-meta, .sigmf-data, .sigmf-collection, .sigmf, .wav, .flac, .npy, .npz, .mat, .sr, .sdriq, .uff, raw samples (.cf32, .cu8, .s16, ... or x.bin?format=cf32), and each of them with .gz or .zst after it";

impl SampleFile {
    /// Opens a recording: `.sigmf-meta`, `.sigmf-data`, `.sigmf-collection`, a `.sigmf` archive, `.wav` or `.npy`. A
    /// recording in an archive of several is named as if the archive were a folder: `x.sigmf/one/one.sigmf-meta`. For
    /// raw samples the name states the format: `x.cu8?rate=2.4M`, `x.bin?format=cf32&channels=2&frequency=100M`.
    ///
    /// # Errors
    /// An [`Error`] that names the file, where it is missing, empty, contradicts itself, or is of a kind that cannot
    /// be read. A truncated WAV opens as far as it goes, which a note says.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        Ok(sigmf::with_those_beside(path, Self::open_alone(path)?))
    }

    /// Without the annotations in a file beside it.
    fn open_alone(path: &Path) -> Result<Self, Error> {
        match kind_of(path) {
            // An archive may be compressed; files beside each other are not.
            Some(Kind::SigMf)
                if is_packed(path) && plain_name(path).extension().is_none_or(|it| it != "sigmf") =>
            {
                Err(unknown(path))
            }
            Some(Kind::SigMf) => match path_query::split(path) {
                (plain, Some(_)) => Err(Error::Field {
                    path: path.into(),
                    what: format!("its metadata describe the samples: name it '{}' alone", plain.display()),
                }),
                (plain, None) => {
                    sigmf::open(&plain).map_err(|error| without_metadata(&plain).unwrap_or(error))
                }
            },
            Some(Kind::Wav) => wav::open(path),
            Some(Kind::NumPy) => npy::open(path),
            Some(Kind::SdrIq) => receiver_file::open_sdriq(path),
            Some(Kind::Uff) => receiver_file::open_uff(path),
            Some(Kind::Flac) => flac::open(path),
            Some(Kind::Npz) => npz::open(path),
            Some(Kind::Matlab) => matlab::open(path),
            Some(Kind::Sigrok) => sigrok::open(path),
            None if is_table(path) => {
                let (plain, _) = path_query::split(path);
                let out = plain_name(&plain).with_extension("sigmf-meta");
                let what = format!(
                    "is text, which is read once: make a recording of it first: grebe convert '{}' '{}'",
                    path.display(),
                    out.display()
                );
                Err(Error::Content { path: plain, what })
            }
            None if kinds::is_raw(path) => headerless::open(path),
            None if path.is_dir() => Err(Error::Field { path: path.into(), what: folder::what_is_in(path) }),
            None => match Self::named(path) {
                Some(named) => sigmf::open(&named),
                None => Err(unknown(path)),
            },
        }
    }

    /// The file that opens a SigMF recording of this name, with or without an extension: the collection if
    /// there is one, else the metadata. `None` if the recording does not exist.
    pub fn named(path: &Path) -> Option<PathBuf> {
        let base = sigmf::Base::of(path);
        [base.collection(), base.meta()].into_iter().find(|file| file.is_file())
    }

    /// Opens a SigMF recording whose data files are still being copied: `place` returns the path of each
    /// until it has its name, at its full length. Parts that have not arrived read as the bytes in place; the
    /// copier knows which are missing.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn open_arriving(
        path: &Path,
        place: &mut dyn FnMut(&Path) -> Option<PathBuf>,
    ) -> Result<Self, Error> {
        sigmf::open_arriving(path, place)
    }

    /// The recordings of a path, to be opened one by one: all recordings of a `.sigmf` archive of several, else the
    /// one of this [name](Self::named), else the path itself.
    ///
    /// # Errors
    /// An [`Error`] that names the archive, if it is invalid or cannot be read.
    pub fn recordings(path: &Path) -> Result<Vec<PathBuf>, Error> {
        match Self::named(path).filter(|_| !is_recording(path) && !is_table(path)) {
            Some(named) => Ok(vec![named]),
            None => sigmf::recordings(path),
        }
    }

    /// Changes the annotations of a recording in one step. Those of a SigMF recording, or of each one of a
    /// collection, are in its metadata, whose other fields stay. For other files, and if the metadata cannot be
    /// written (in an archive, read-only, being recorded), they are in `NAME.sigmf-annotations` beside it, which
    /// [`open`](Self::open) also reads.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("x.i16");
    /// # std::fs::write(&path, [0; 64])?;
    /// use grebe_recording::{Annotation, AnnotationEdit, SampleFile};
    ///
    /// let fields = [("core:label".to_owned(), "burst".into())].into_iter().collect();
    /// let burst = Annotation { position: 3, length_samples: 8, fields };
    /// SampleFile::edit_annotations(&path, &[AnnotationEdit::Add(burst.clone())])?;
    /// assert_eq!(SampleFile::open(&path)?.annotations(), [burst]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// An [`Error`] that names the file, if it cannot be written, or lacks an annotation to change. Nothing changes then.
    pub fn edit_annotations(
        path: &Path,
        edits: &[AnnotationEdit<Annotation>],
    ) -> Result<AnnotationsEdited, Error> {
        sigmf::edit_annotations(path, edits, kind_of(path) == Some(Kind::SigMf))
    }

    /// The file that [`edit_annotations`](Self::edit_annotations) adds to.
    ///
    /// # Errors
    /// As for [`edit_annotations`](Self::edit_annotations).
    pub fn annotation_place(path: &Path) -> Result<PathBuf, Error> {
        sigmf::annotation_place(path, kind_of(path) == Some(Kind::SigMf))
    }

    /// The recording of each channel in a SigMF collection of channels, whose annotations are those of its channel; none for other
    /// recordings, and where its metadata cannot be written.
    ///
    /// # Errors
    /// As for [`edit_annotations`](Self::edit_annotations).
    pub fn channel_recordings(path: &Path) -> Result<Vec<PathBuf>, Error> {
        let is_sigmf = kind_of(path) == Some(Kind::SigMf);
        if is_sigmf { sigmf::channel_metas(path) } else { Ok(Vec::new()) }
    }

    /// Removes the file of annotations beside a recording, which another has replaced.
    pub fn forget_annotations(path: &Path) {
        // Most have none.
        let _ = std::fs::remove_file(sigmf::annotations_beside(path));
    }

    /// Whether a recorder has the name of this SigMF recording now.
    pub fn has_recorder(path: &Path) -> bool {
        kind_of(path) == Some(Kind::SigMf) && sigmf::Base::of(path).is_locked()
    }

    /// Size of a file that is unpacked when opened; `None` if it is read in place.
    pub fn packed_bytes(path: &Path) -> Option<u64> {
        let (plain, _) = path_query::split(path);
        let unpacks = [Kind::Flac, Kind::Npz, Kind::Matlab, Kind::Sigrok];
        let is_unpacked = is_packed(&plain) || kind_of(path).is_some_and(|kind| unpacks.contains(&kind));
        plain.metadata().ok().filter(|file| is_unpacked && file.is_file()).map(|file| file.len())
    }

    /// The format name of a path: `SigMF`, `WAV`, `raw`; `None` if the format is not supported.
    pub fn format_name(path: &Path) -> Option<&'static str> {
        let raw = || kinds::is_raw(path).then_some("raw");
        kind_of(path).map(Kind::name).or_else(raw)
    }
}

/// Error for a file of unknown kind: it is missing, or needs its format in the name.
fn unknown(written: &Path) -> Error {
    let (path, _) = path_query::split(written);
    if kinds::is_stream(written) {
        let what = format!(
            "is a stream, and a recording is wanted: grebe record '{}' NAME.sigmf-meta makes one",
            written.display()
        );
        return Error::Field { path: written.into(), what };
    }
    if let Err(source) = path.metadata() {
        return Error::file("open", &path)(source);
    }
    if let Err(error) = headerless::check_query(written) {
        return error;
    }
    let (name, hint) = (path.display(), Hint::new(written));
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let known = |what: &str| format!("{what}: {}", convert(&ending, &name.to_string()).unwrap_or_default());
    let what = match ending.as_str() {
        "gz" | "zst" | "xz" | "bz2" => known("is compressed, and is read once it is unpacked"),
        "mp3" | "ogg" | "opus" | "m4a" | "w64" | "aif" | "aiff" | "au" => {
            known("is sound of a kind that is not read: make a WAV of it")
        }
        "h5" | "hdf5" => known("is not read: save its array for NumPy"),
        "zip" => known("is an archive: unpack it and name the samples"),
        _ => format!(
            "unknown kind of file; where you know its samples, name them, as in {}; known are {KNOWN}",
            hint.adding("format=cf32&rate=2.4M")
        ),
    };
    Error::Field { path, what }
}

/// Error for samples whose metadata are lost.
fn without_metadata(path: &Path) -> Option<Error> {
    let is_data = path.extension()? == "sigmf-data" && path.is_file();
    let meta = path.with_extension("sigmf-meta");
    let hint = Hint::new(path).with("format=ci16&rate=2.4M");
    let what = format!(
        "its metadata, {}, are missing; where you know its samples, name them, as in {hint}",
        meta.display()
    );
    (is_data && !meta.exists()).then(|| Error::Field { path: path.into(), what })
}

/// The line that makes of a file something that is read.
fn convert(ending: &str, name: &str) -> Option<String> {
    let stem = name.strip_suffix(&format!(".{ending}")).unwrap_or(name);
    let python = |load: &str| {
        format!("python3 -c \"{load}; numpy.save('{stem}.npy', x)\", then open '{stem}.npy?rate=1M'")
    };
    Some(match ending {
        "gz" => format!("gunzip -k '{name}'"),
        "zst" => format!("zstd -d '{name}'"),
        "xz" => format!("unxz -k '{name}'"),
        "bz2" => format!("bunzip2 -k '{name}'"),
        "h5" | "hdf5" => {
            python(&format!("import numpy, h5py; f = h5py.File('{name}'); x = f[list(f)[0]][()].squeeze()"))
        }
        "zip" => format!("unzip '{name}'"),
        _ => format!("ffmpeg -i '{name}' '{stem}.wav'"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_read_is_refused_with_the_line_that_makes_one_that_is() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        for (name, line) in [
            ("x.sigmf-meta.gz", "gunzip -k 'PLACE/x.sigmf-meta.gz'"),
            ("x.cu8.xz", "unxz -k 'PLACE/x.cu8.xz'"),
            ("x.mp3", "ffmpeg -i 'PLACE/x.mp3' 'PLACE/x.wav'"),
            ("x.mat", "scipy.io.loadmat('PLACE/x.mat')"),
            ("x.h5", "h5py.File('PLACE/x.h5')"),
            ("x.iq", "'PLACE/x.iq?format=cf32&rate=2.4M'"),
            ("x", "'PLACE/x?format=cf32&rate=2.4M'"),
            ("y.iq?rate=1k", "'PLACE/y.iq?rate=1k&format=cf32'"),
            ("y.iq?formt=cf32", "unknown 'formt'"),
        ] {
            std::fs::write(place(name.split('?').next().unwrap()), [7; 64]).unwrap();
            let error = SampleFile::open(place(name)).unwrap_err().to_string();
            let line = line.replace("PLACE", &folder.path().display().to_string());
            assert!(error.contains(&line), "{error}\n{line}");
        }
        for name in ["gone", "gone.gz", "gone.iq", "gone.wav", "gone.cu8", "gone.sigmf-meta"] {
            let error = SampleFile::open(place(name)).unwrap_err().to_string();
            assert!(error.starts_with("cannot open ") && error.contains("No such file"), "{error}");
        }
    }

    #[test]
    fn every_spelling_of_a_recording_is_one_name() {
        let folder = tempfile::tempdir().unwrap();
        let settings =
            crate::SigmfSettings { channels: 2, sample_rate_hz: 1e3, ..crate::SigmfSettings::default() };
        for name in ["out", "rec.iq", "night.2026-11-26"] {
            let path = folder.path().join(name);
            let mut writer = crate::SigmfWriter::create(&path, &settings).unwrap();
            writer.write(0, &[&[1i16, 2], &[3, 4]]).unwrap();
            writer.finish().unwrap();
            assert_eq!(SampleFile::open(&path).unwrap().channels(), 2, "{name}");
        }
    }
}
