//! Reading: checks the metadata against the data before it returns a sample.

use std::fs::File;
use std::path::{Path, PathBuf};

use grebe_frame::MAX_CHANNELS;

use super::archive::{Files, Part};
use super::captures::{annotations, segments, settle, stripes_of, times_note};
use super::checksum::Sum;
use super::collection::{Members, members};
use super::described::{self, Described};
use super::layout::{Base, Global, Meta, NOT_CLOSED, is_plain_name};
use super::metadata_text::read_meta;
use super::stripe_set::StripeSet;
use crate::bytes::Stripe;
use crate::encoding::Encoding;
use crate::error::Error;
use crate::raw::RawFile;
use crate::sample_file::{Alignment, Annotation, SampleFile, Segment};

/// An opened recording, and its turns with others.
pub(super) struct Opened {
    pub(super) file: SampleFile,
    /// With where its stripes begin, in the file and in the whole.
    pub(super) stripes: Option<Stripes>,
}

type Stripes = (StripeSet, Vec<(u64, u64)>);

/// Opens the recording or the collection that a file belongs to, and no other.
pub(super) fn open_one(files: &Files, path: &Path) -> Result<Opened, Error> {
    if let Some(members) = members(files, path)? {
        return open_collection(files, &Base::of(path).collection(), members);
    }
    open_single(files, &Base::of(path))
}

fn open_single(files: &Files, base: &Base) -> Result<Opened, Error> {
    let mut recording = Recording::open(files, base)?;
    let is_recorded = !recording.closed && base.is_locked();
    recording.say_open_end(is_recorded);
    let Recording { source, sample_rate_hz, len_samples, segments, notes, stripes, .. } = recording;
    let is_whole = recording.closed && recording.all_there;
    let file = SampleFile::new(vec![source], sample_rate_hz, len_samples, segments, notes).whole(is_whole);
    let file =
        file.being_recorded(is_recorded).described(recording.descriptions).annotated(recording.annotations);
    Ok(Opened { file, stripes })
}

/// The recordings that a recording consists of: those of a collection, or itself.
pub(super) fn collected(path: &Path) -> Result<Vec<Base>, Error> {
    Ok(members(&Files::Folder, path)?.map_or_else(|| vec![Base::of(path)], |members| members.bases))
}

fn open_collection(files: &Files, path: &Path, members: Members) -> Result<Opened, Error> {
    if members.is_aligned && !members.bases.is_empty() {
        let aligned = members.bases.iter().map(|base| Ok(open_single(files, base)?.file));
        let aligned = aligned.collect::<Result<Vec<_>, Error>>()?;
        return Ok(Opened { file: SampleFile::side_by_side(aligned, Alignment::Time)?, stripes: None });
    }
    let recordings = members.bases.iter().map(|base| Recording::open(files, base));
    let recordings = recordings.collect::<Result<Vec<_>, _>>()?;
    let channels: usize = recordings.iter().map(|recording| recording.source.channels()).sum();
    if channels == 0 || channels > MAX_CHANNELS as usize {
        let must = "there must be 1 to 255 channels in all";
        return Err(Error::field(path, "core:streams", format!("{channels} channels"), must));
    }
    join(path, recordings, members.note)
}

/// Makes one file of a recording per channel: of the same rate, length and gaps.
fn join(path: &Path, mut recordings: Vec<Recording>, note: Option<String>) -> Result<Opened, Error> {
    let cut_off = recordings.iter().any(|recording| !recording.closed);
    let all_there = recordings.iter().all(|recording| recording.all_there);
    if cut_off {
        // The recorder was stopped between two channels: what all of them have is good.
        recordings_end_together(&mut recordings);
    }
    let is_recorded = cut_off && Base::of(path).is_locked();
    let len_samples = recordings.iter().map(|recording| recording.len_samples).min().unwrap_or(0);
    // The metadata of one channel may have been written a moment before those of another.
    let segment_count = |position: &usize| recordings[*position].segments.len();
    let fullest = if cut_off { (0..recordings.len()).max_by_key(segment_count).unwrap_or(0) } else { 0 };
    let segments = std::mem::take(&mut recordings[fullest].segments);
    let stripes = recordings[fullest].stripes.take();
    let (format, sample_rate_hz) = (recordings[0].source.encoding().format, recordings[0].sample_rate_hz);
    // The collection is written at the end.
    let mut notes: Vec<String> = note.into_iter().filter(|_| !is_recorded).collect();
    for (position, recording) in recordings.iter_mut().enumerate() {
        let differs = |what, got: String| {
            let must = "it must be the same for all recordings of a collection; open them one by one";
            Err(Error::field(path, &format!("{what} of core:streams[{position}]"), got, must))
        };
        if recording.source.encoding().format != format {
            return differs("the datatype", recording.source.encoding().format.to_string());
        }
        if recording.sample_rate_hz != sample_rate_hz {
            return differs("the sample rate", recording.sample_rate_hz.to_string());
        }
        if recording.len_samples != len_samples && !cut_off {
            return differs("the number of samples", recording.len_samples.to_string());
        }
        let same = |(a, b): (&Segment, &Segment)| {
            (a.position, a.first_sample_index) == (b.position, b.first_sample_index)
        };
        let lengths = recording.segments.len() == segments.len() || position == fullest || cut_off;
        if !lengths || !recording.segments.iter().zip(&segments).all(same) {
            return differs("the list of captures", format!("{} segments", recording.segments.len()));
        }
        recording.say_open_end(is_recorded);
        for note in recording.notes.drain(..) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    if len_samples == 0 {
        return Err(Error::Empty { path: path.into() });
    }
    let each = recordings.iter_mut().map(|recording| std::mem::take(&mut recording.annotations));
    let annotations = of_all_channels(each);
    let described: Vec<_> = recordings
        .iter_mut()
        .map(|recording| (recording.source.channels(), std::mem::take(&mut recording.descriptions)))
        .collect();
    let sources = recordings.into_iter().map(|recording| recording.source).collect();
    let file =
        SampleFile::new(sources, sample_rate_hz, len_samples, segments, notes).whole(!cut_off && all_there);
    let file = file.being_recorded(is_recorded).described(described::join(&described)).annotated(annotations);
    Ok(Opened { file, stripes })
}

/// Annotations by position. One of all channels is in each of their files, one of a channel in its own.
fn of_all_channels(each: impl Iterator<Item = Vec<Annotation>>) -> Vec<Annotation> {
    let all = each.enumerate().flat_map(|(file, own)| own.into_iter().map(move |it| (file, it)));
    let mut all: Vec<(usize, Annotation)> = all.collect();
    all.sort_by_key(|(_, it)| it.position);
    let mut kept: Vec<(usize, Annotation)> = Vec::with_capacity(all.len());
    for (file, it) in all {
        let same = kept.iter().rev().take_while(|(_, other)| other.position == it.position);
        if !same.filter(|(other, _)| *other != file).any(|(_, other)| *other == it) {
            kept.push((file, it));
        }
    }
    kept.into_iter().map(|(_, it)| it).collect()
}

/// Ends all recordings where all are good. A closed one determines the end, because all data had arrived
/// then.
fn recordings_end_together(recordings: &mut [Recording]) {
    let closed =
        recordings.iter().filter(|recording| recording.closed).map(|recording| recording.len_samples);
    let written = recordings.iter().map(|recording| recording.written_samples).min().unwrap_or(0);
    let known = recordings.iter().map(|recording| recording.len_samples).min().unwrap_or(0);
    let len_samples = closed.min().filter(|&closed| closed <= written).unwrap_or(known);
    recordings.iter_mut().for_each(|recording| recording.end_at(len_samples));
}

/// A metadata file and its data file, found to agree.
struct Recording {
    path: PathBuf,
    source: RawFile,
    sample_rate_hz: f64,
    len_samples: u64,
    /// Samples in its file; after these, gaps may be unknown.
    written_samples: u64,
    segments: Vec<Segment>,
    descriptions: Described,
    annotations: Vec<Annotation>,
    notes: Vec<String>,
    stripes: Option<Stripes>,
    /// Whether its recorder came to its end.
    closed: bool,
    /// Whether the data have all that the metadata speak of.
    all_there: bool,
}

impl Recording {
    fn open(files: &Files, base: &Base) -> Result<Self, Error> {
        let path = base.meta();
        let (mut meta, mut notes) = read_meta(files, &path)?;
        settle(&mut meta, &mut notes);
        let global = &meta.global;
        let closed = !global.recorder.as_ref().is_some_and(|recorder| recorder.ends_with(NOT_CLOSED));
        let encoding = encoding(&path, &global.datatype)?;
        let channels = global.num_channels.unwrap_or(1);
        if channels == 0 || channels > u64::from(MAX_CHANNELS) {
            let must = "1 to 255 channels can be read";
            return Err(Error::field(&path, "core:num_channels", channels, must));
        }
        let sample_rate_hz = sample_rate(global, &mut notes);
        let mut data = Data::open(files, base, &meta, encoding.sample_bytes() as u64 * channels)?;
        let written_samples = data.len_samples;
        if !closed {
            // Later gaps are unknown.
            data.len_samples = global.known_samples.unwrap_or(u64::MAX).min(written_samples);
        } else if data.odd_bytes > 0 {
            notes.push(format!(
                "the data end within a sample: their last {} bytes are ignored",
                data.odd_bytes
            ));
        }
        if data.len_samples == 0 {
            return Err(Error::Empty { path: data.path });
        }
        let (segments, behind) = segments(&path, &meta, data.len_samples)?;
        if closed && behind > 0 {
            notes.push(format!(
                "captures after the end of the data are ignored: {behind}; the data are truncated, or of another recording"
            ));
        }
        let all_there = data.odd_bytes == 0 && behind == 0;
        notes.extend(times_note(&meta));
        notes.extend(encoding.read_as());
        if closed && !files.is_arriving() {
            data.check(global)?;
        }
        let len_samples = data.len_samples;
        let mut source = RawFile::new(&data.path, data.file, encoding, channels as usize, data.offset_bytes);
        if !data.stretches.is_empty() {
            source = source.scattered(data.stretches);
        }
        let mut descriptions = described::read(&meta, channels as usize, len_samples, &mut notes);
        if let Some(bits) = encoding.bits() {
            described::say_bits(&mut descriptions, bits);
        }
        let stripes = stripes_of(&meta);
        let annotations = annotations(meta, len_samples, closed, &mut notes);
        Ok(Self {
            path,
            source,
            sample_rate_hz,
            len_samples,
            written_samples,
            segments,
            descriptions,
            annotations,
            notes,
            stripes,
            closed,
            all_there,
        })
    }

    /// Notes that its recorder is still running, or did not finish, and the part excluded for that.
    fn say_open_end(&mut self, is_recorded: bool) {
        if self.closed {
            return;
        }
        let left_out = match self.written_samples - self.len_samples {
            0 => String::new(),
            left => format!("; its last {left} samples are ignored, gaps in them were not noted yet"),
        };
        let read = match is_recorded {
            true => "it is being recorded; the written part is read",
            false => "its recorder was cut off; what was written is read, and grebe repair closes it",
        };
        self.notes.push(format!("{}: {read}{left_out}", self.path.display()));
    }

    /// Sets its length.
    fn end_at(&mut self, len_samples: u64) {
        self.segments.retain(|segment| segment.position < len_samples);
        if let Some(last) = self.segments.last_mut() {
            last.length_samples = len_samples - last.position;
        }
        self.descriptions.retain(|&(position, _)| position < len_samples);
        self.annotations.retain(|annotation| annotation.position < len_samples);
        self.len_samples = len_samples;
    }
}

/// The data file and the position of its samples.
struct Data {
    path: PathBuf,
    file: File,
    /// Begin in `file`, and length.
    begin: u64,
    file_bytes: u64,
    /// Position of sample 0 in `file`.
    offset_bytes: u64,
    len_samples: u64,
    /// Bytes of an incomplete last sample.
    odd_bytes: u64,
    /// Stretches of samples, if other bytes lie between them.
    stretches: Vec<Stripe>,
}

impl Data {
    fn open(files: &Files, base: &Base, meta: &Meta, frame_bytes: u64) -> Result<Self, Error> {
        let meta_path = base.meta();
        let global = &meta.global;
        if global.metadata_only == Some(true) {
            let must = "the recording has no data to read";
            return Err(Error::field(&meta_path, "core:metadata_only", true, must));
        }
        let path = data_path(base, global)?;
        let Part { file, offset_bytes: begin, bytes: file_bytes } = files.open(&path)?;
        let headers = || meta.captures.iter().map(|capture| capture.header_bytes.unwrap_or(0));
        let offset_bytes = headers().next().unwrap_or(0);
        let all_headers = headers().fold(0, u64::saturating_add);
        let around = all_headers.saturating_add(global.trailing_bytes.unwrap_or(0));
        let Some(bytes) = file_bytes.checked_sub(around) else {
            let why = format!(
                "its {file_bytes} bytes are fewer than the {around} that should surround its samples"
            );
            return Err(Error::truncated(&path, &why));
        };
        let (len_samples, odd_bytes) = (bytes / frame_bytes, bytes % frame_bytes);
        let offset_bytes = begin.saturating_add(offset_bytes);
        let stretches = if headers().skip(1).any(|bytes| bytes > 0) {
            stretches(meta, begin, frame_bytes, len_samples)
        } else {
            Vec::new()
        };
        Ok(Self { path, file, begin, file_bytes, offset_bytes, len_samples, odd_bytes, stretches })
    }

    /// Small files are summed before a sample is handed out: only so is a file found that was truncated between two
    /// samples.
    fn check(&self, global: &Global) -> Result<(), Error> {
        let Some(expected) = global.sha512.as_ref().filter(|_| self.file_bytes <= CHECKED_BYTES_MAX) else {
            return Ok(());
        };
        let sum = self.file.try_clone().and_then(|file| Sum::from(file, self.begin).finish(self.file_bytes));
        let sum = sum.map_err(Error::file("read", &self.path))?;
        if sum.eq_ignore_ascii_case(expected) {
            Ok(())
        } else {
            let what = "does not match core:sha512 in its metadata: it was truncated or changed; remove core:sha512 to read it as it is";
            Err(Error::Content { path: self.path.clone(), what: what.to_owned() })
        }
    }
}

/// Stretches of samples, for captures with header bytes.
fn stretches(meta: &Meta, begin: u64, frame_bytes: u64, len_samples: u64) -> Vec<Stripe> {
    let offset = meta.global.offset.unwrap_or(0);
    let mut stretches: Vec<Stripe> = Vec::new();
    let (mut headers, mut at) = (begin, 0);
    let ends = meta.captures.iter().skip(1).map(|capture| capture.sample_start.saturating_sub(offset));
    for (capture, end) in meta.captures.iter().zip(ends.chain([len_samples])) {
        headers = headers.saturating_add(capture.header_bytes.unwrap_or(0));
        let bytes = (end.min(len_samples) * frame_bytes).saturating_sub(at);
        if bytes > 0 {
            stretches.push(Stripe { at, file: 0, from: headers.saturating_add(at), bytes });
        }
        at += bytes;
    }
    stretches
}

/// The file with the samples of a recording.
pub(super) fn data_path(base: &Base, global: &Global) -> Result<PathBuf, Error> {
    match &global.dataset {
        None => Ok(base.data()),
        Some(name) if is_plain_name(name) => Ok(base.meta().with_file_name(name)),
        Some(name) => {
            let must = "it must name a file in the same folder";
            Err(Error::field(&base.meta(), "core:dataset", name, must))
        }
    }
}

/// The samples of a `core:datatype`: `ri16_le`, `cf32_be`, `ru8`.
fn encoding(path: &Path, datatype: &str) -> Result<Encoding, Error> {
    let lower = datatype.to_ascii_lowercase();
    let (name, order) = match lower.split_once('_') {
        Some((name, order @ ("le" | "be"))) => (name, order),
        None => (lower.as_str(), "le"),
        Some(_) => ("", ""),
    };
    let plain = name.strip_prefix('r').unwrap_or(name);
    let is_named = name.starts_with(['r', 'c']) && plain.starts_with(['i', 'u', 'f', 'c']);
    let encoding = Encoding::named(&format!("{plain}{order}")).filter(|encoding| {
        let bytes = encoding.sample_bytes() / encoding.format.components();
        let is_plain = matches!(bytes, 1 | 2 | 4 | 8) && (bytes == 1 || lower.contains('_'));
        is_named && is_plain && name.starts_with('c') == encoding.format.is_complex()
    });
    encoding.ok_or_else(|| Error::field(path, "core:datatype", datatype, KNOWN))
}

/// Samples per second; 0 if unknown.
fn sample_rate(global: &Global, notes: &mut Vec<String>) -> f64 {
    match global.sample_rate {
        Some(rate_hz) if rate_hz > 0.0 && rate_hz.is_finite() => return rate_hz,
        Some(rate_hz) => {
            notes.push(format!("core:sample_rate is {rate_hz}, which is invalid: the rate is unknown"))
        }
        None => notes.push("the metadata do not say the sample rate".into()),
    }
    0.0
}

const KNOWN: &str = "it must be one of ri8 ru8 ri16 ru16 ri32 ru32 ri64 ru64 rf32 rf64 ci8 cu8 ci16 cu16 ci32 cu32 cf32 cf64, and from 16 bits on end in _le or _be, as in ri16_le";
/// A tenth of a second of summing.
const CHECKED_BYTES_MAX: u64 = 64 << 20;
