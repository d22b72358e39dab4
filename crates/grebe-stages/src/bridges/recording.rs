//! Recordings as sources and sinks: `file:PATH`, `x.sigmf-meta`, `x.cu8?rate=2.4M`.

mod kind;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use grebe_flow::Kinds;
use grebe_process::stream::{DATAGRAM_BYTES_MAX, check_datagram_bytes};
use grebe_recording::{
    Alignment, FileSource, PlayOptions, RecordOptions, SampleFile, Schedule, SigmfSink, is_recording,
    is_table, make_ring_folder,
};
use kind::{Play, Record};

use crate::error::Error;
use crate::open::{Notice, Notify, OpenSink, OpenSource, SinkOptions, SourceOptions};
use crate::scheme::{End, Scheme, Traits};

impl Scheme for PathBuf {
    const WRITTEN: &'static str = "file:PATH";
    const OTHERWISE: &'static str = "is not a recording: write NAME.sigmf-meta, or file:PATH";

    fn parse(name: &str) -> Option<Result<Self, String>> {
        if let Some(path) = path_of_uri(name, cfg!(windows)) {
            return Some(if path.is_empty() { Err("names no file".to_owned()) } else { Ok(path.into()) });
        }
        // Accepts folders and unknown files too: the error on opening names the right form.
        let path = Path::new(name);
        let is_there = || path.exists() || SampleFile::named(path).is_some();
        let is_one = !name.is_empty() && (is_recording(path) || is_table(path) || is_there());
        is_one.then(|| Ok(name.into()))
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "file:{}", self.display())
    }

    fn traits(&self) -> Traits {
        Traits { is_live: false, is_shared: false, ..Traits::LIVE }
    }

    fn claim(&self, end: End) -> Option<String> {
        (end == End::Sink).then(|| format!("the file {}", self.display()))
    }

    fn open_source(&self, options: SourceOptions, notify: Notify<'_>) -> Result<OpenSource, Error> {
        open_file(SampleFile::open(self)?, &options, notify)
    }

    fn open_sink(&self, options: &SinkOptions, _: Notify<'_>) -> Result<OpenSink, Error> {
        Ok(OpenSink::of(sink(self, options.recording.clone())?))
    }

    fn kinds(kinds: &mut Kinds) {
        kinds.add::<Play>().add::<Record>();
    }
}

/// The path of a file as a user gives it: a path, or `file:PATH`. A file that is called so is meant itself.
///
/// ```
/// use grebe_stages::file_path;
///
/// assert_eq!(file_path("file:///data/x.wav".into()), file_path("/data/x.wav".into()));
/// ```
pub fn file_path(given: OsString) -> PathBuf {
    let path = given.to_str().and_then(|name| path_of_uri(name, cfg!(windows)));
    match path {
        Some(path) if !path.is_empty() && !Path::new(&given).exists() => path.into(),
        _ => given.into(),
    }
}

/// The path in `file:PATH`. On Windows a drive follows the third slash of `file:///C:/x.wav`.
fn path_of_uri(name: &str, is_windows: bool) -> Option<&str> {
    let path = name.strip_prefix("file:")?;
    let path = path.strip_prefix("//").unwrap_or(path);
    let drive = path.strip_prefix('/').filter(|path| is_windows && path.as_bytes().get(1) == Some(&b':'));
    Some(drive.unwrap_or(path))
}

/// Opens a recording that was opened already as a source, such as a combined one. [`open_source`](crate::open_source)
/// does the
/// same with a path.
///
/// ```no_run
/// use grebe_recording::{Alignment, SampleFile};
/// use grebe_stages::{SourceOptions, open_file};
///
/// let receivers = ["north.sigmf-meta", "south.sigmf-meta"];
/// let files = receivers.iter().map(SampleFile::open).collect::<Result<Vec<_>, _>>()?;
/// let both = SampleFile::side_by_side(files, Alignment::Time)?;
/// let source = open_file(both, &SourceOptions::default(), &mut |notice| eprintln!("{notice}"))?;
/// # Ok::<(), grebe_stages::Error>(())
/// ```
///
/// # Errors
/// [`Error::Recording`] if the requested range lies outside the recording, or the datagram size is out of range.
pub fn open_file(
    file: SampleFile,
    options: &SourceOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<OpenSource, Error> {
    file.notes().iter().for_each(|note| notify(Notice::Recording(note.clone())));
    let file = file.stretch(options.start, options.length)?;
    player(file, None, options, notify)
}

/// Opens recordings as sources that keep step by one clock.
///
/// Each source sends its samples when they are due: at its own rate, or by the recorded clock of its host. Gaps take
/// their time, and later recordings wait. With `repeat`, all start over after the last has ended. `options.start` and
/// `length` count from the earliest sample of all. Without a speed the sources do not keep step.
///
/// # Errors
/// [`Error::Recording`] if a file lacks the metadata that the alignment needs (see [`Alignment`]), has no rate, or has
/// no samples in that range.
pub fn open_in_step(
    files: Vec<SampleFile>,
    alignment: Alignment,
    options: &SourceOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<Vec<OpenSource>, Error> {
    for note in files.iter().flat_map(SampleFile::notes) {
        notify(Notice::Recording(note.clone()));
    }
    let note = &mut |note| notify(Notice::Recording(note));
    let files = Schedule::of(files, alignment, options.start, options.length, note)?;
    files.into_iter().map(|(file, schedule)| player(file, Some(schedule), options, notify)).collect()
}

fn player(
    file: SampleFile,
    schedule: Option<Schedule>,
    options: &SourceOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<OpenSource, Error> {
    let datagram_bytes = options.transport.datagram_bytes.unwrap_or(DATAGRAM_BYTES_MAX);
    check_datagram_bytes(datagram_bytes)?;
    let rate_hz = file.rate_hz();
    let of_duration = |duration: Duration| (duration.as_secs_f64() * rate_hz.unwrap_or(0.0)) as u64;
    let asked = options.samples.or(options.duration.map(of_duration));
    let samples = asked.unwrap_or(u64::MAX).min(file.len_samples());
    let play = PlayOptions {
        speed: options.speed,
        repeat: options.repeat,
        samples: asked,
        datagram_bytes,
        flush_every: options.transport.flush_every(),
    };
    let missing = file.segments().windows(2).filter(|pair| pair[1].position < samples).map(|pair| {
        let end = pair[0].first_sample_index.saturating_add(pair[0].length_samples);
        // A capture before the previous one belongs to another stream.
        pair[1].first_sample_index.saturating_sub(end)
    });
    let span_samples = Some(missing.fold(samples, u64::saturating_add));
    let (source, note) = FileSource::new(file, play);
    note.into_iter().for_each(|note| notify(Notice::Recording(note)));
    let source = OpenSource::of(match schedule {
        Some(schedule) => source.in_step(schedule),
        None => source,
    });
    Ok(OpenSource { rate_hz, samples: Some(samples), span_samples, ..source })
}

fn sink(path: &Path, options: RecordOptions) -> Result<SigmfSink, Error> {
    let ring = options.ring.map(|_| make_ring_folder(path)).transpose()?;
    Ok(SigmfSink::create(ring.as_deref().unwrap_or(path), options)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_follows_the_third_slash_on_windows() {
        for (name, there, windows) in [
            ("file:///C:/x.wav", "/C:/x.wav", "C:/x.wav"),
            ("file:C:/x.wav", "C:/x.wav", "C:/x.wav"),
            ("file:///data/x.wav", "/data/x.wav", "/data/x.wav"),
            ("file:x.wav", "x.wav", "x.wav"),
        ] {
            assert_eq!((path_of_uri(name, false), path_of_uri(name, true)), (Some(there), Some(windows)));
        }
        assert_eq!(path_of_uri("x.wav", true), None);
    }
}
