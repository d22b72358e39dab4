//! Reading: what the metadata claim is checked against the data before a sample is handed out.

use std::fs::File;
use std::path::{Path, PathBuf};

use grebe_frame::{MAX_CHANNELS, SampleFormat, utc_time};
use jiff::Timestamp;

use super::archive::{Files, Part, read_json};
use super::checksum::Sum;
use super::collection::{Members, members};
use super::described::{self, Described};
use super::layout::{self, Base, Capture, Global, Meta, NOT_CLOSED, is_plain_name};
use super::stripe_set::StripeSet;
use crate::encoding::{Encoding, Order};
use crate::error::Error;
use crate::headerless::FOREIGN;
use crate::raw::RawFile;
use crate::sample_file::{Alignment, Annotation, SampleFile, Segment};

/// What was opened, and how it takes turns with others.
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
    let Recording { source, sample_rate_hz, len_samples, segments, notes, closed, stripes, .. } = recording;
    let file = SampleFile::new(vec![source], sample_rate_hz, len_samples, segments, notes).whole(closed);
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
    // What ties channels together is written at the end.
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
    // Ours have the same in each, and a label of one channel cannot be told from one of all.
    let annotations = std::mem::take(&mut recordings[0].annotations);
    let described: Vec<_> = recordings
        .iter_mut()
        .map(|recording| (recording.source.channels(), std::mem::take(&mut recording.descriptions)))
        .collect();
    let sources = recordings.into_iter().map(|recording| recording.source).collect();
    let file = SampleFile::new(sources, sample_rate_hz, len_samples, segments, notes).whole(!cut_off);
    let file = file.being_recorded(is_recorded).described(described::join(&described)).annotated(annotations);
    Ok(Opened { file, stripes })
}

/// Lets recordings end where all are good. Where one was closed, that is its end: then the data of all had come.
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
    /// Those that stand in its file; behind the others, nobody may know where the gaps are.
    written_samples: u64,
    segments: Vec<Segment>,
    descriptions: Described,
    annotations: Vec<Annotation>,
    notes: Vec<String>,
    stripes: Option<Stripes>,
    /// Whether its recorder came to its end.
    closed: bool,
}

impl Recording {
    fn open(files: &Files, base: &Base) -> Result<Self, Error> {
        let path = base.meta();
        let meta: Meta = read_json(files, &path)?;
        let global = &meta.global;
        let closed = !global.recorder.as_ref().is_some_and(|recorder| recorder.ends_with(NOT_CLOSED));
        let mut notes = Vec::new();
        let encoding = encoding(&path, &global.datatype)?;
        let channels = global.num_channels.unwrap_or(1);
        if channels == 0 || channels > u64::from(MAX_CHANNELS) {
            let must = "1 to 255 channels can be read";
            return Err(Error::field(&path, "core:num_channels", channels, must));
        }
        let sample_rate_hz = sample_rate(&path, global, &mut notes)?;
        let mut data = Data::open(files, base, &meta, encoding.sample_bytes() as u64 * channels)?;
        let written_samples = data.len_samples;
        if !closed {
            // Behind that, nobody knows where the gaps are.
            data.len_samples = global.known_samples.unwrap_or(u64::MAX).min(written_samples);
        } else if data.odd_bytes > 0 {
            let why = format!(
                "it ends within a sample; cut its last {} bytes off to read the rest",
                data.odd_bytes
            );
            return Err(Error::truncated(&data.path, &why));
        }
        if data.len_samples == 0 {
            return Err(Error::Empty { path: data.path });
        }
        let segments = segments(&path, &meta, data.len_samples, closed)?;
        notes.extend(times_note(&meta));
        if closed && !files.is_arriving() {
            data.check(global)?;
        }
        let len_samples = data.len_samples;
        let source = RawFile::new(&data.path, data.file, encoding, channels as usize, data.offset_bytes);
        let descriptions = described::read(&meta, channels as usize, len_samples, &mut notes);
        let stripes = stripes_of(&meta);
        let annotations = annotations(meta, len_samples);
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
        })
    }

    /// Notes that its recorder is still at it, or did not come to its end, and what is left out for that.
    fn say_open_end(&mut self, is_recorded: bool) {
        if self.closed {
            return;
        }
        let left_out = match self.written_samples - self.len_samples {
            0 => String::new(),
            left => format!("; its last {left} samples are left out, gaps in them were not noted yet"),
        };
        let read = match is_recorded {
            true => "it is being recorded; what was written so far is read",
            false => "its recorder was cut off; what was written is read, and grebe repair closes it",
        };
        self.notes.push(format!("{}: {read}{left_out}", self.path.display()));
    }

    /// It has so many samples.
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

/// The data file and where its samples stand.
struct Data {
    path: PathBuf,
    file: File,
    /// Where its first byte stands in `file`, and how many it has.
    begin: u64,
    file_bytes: u64,
    /// Where sample 0 stands in `file`.
    offset_bytes: u64,
    len_samples: u64,
    /// Of a last sample that is not complete.
    odd_bytes: u64,
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
        let later = meta.captures.iter().skip(1).position(|capture| capture.header_bytes.unwrap_or(0) > 0);
        if let Some(position) = later {
            let must = "bytes between samples cannot be read; only before the first capture";
            let name = format!("captures[{}].core:header_bytes", position + 1);
            return Err(Error::field(&meta_path, &name, "above 0", must));
        }
        let offset_bytes = meta.captures.first().and_then(|capture| capture.header_bytes).unwrap_or(0);
        let Part { file, offset_bytes: begin, bytes: file_bytes } = files.open(&path)?;
        let around = offset_bytes.saturating_add(global.trailing_bytes.unwrap_or(0));
        let Some(bytes) = file_bytes.checked_sub(around) else {
            let why = format!(
                "its {file_bytes} bytes are fewer than the {around} that should surround its samples"
            );
            return Err(Error::truncated(&path, &why));
        };
        let (len_samples, odd_bytes) = (bytes / frame_bytes, bytes % frame_bytes);
        Ok(Self { path, file, begin, file_bytes, offset_bytes: begin + offset_bytes, len_samples, odd_bytes })
    }

    /// Small files are summed before a sample is handed out: only so is a file found that was truncated between two samples.
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

/// Where the samples of a recording are.
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

/// What the list of captures says of the file's samples; one segment where it says nothing.
fn segments(path: &Path, meta: &Meta, len_samples: u64, closed: bool) -> Result<Vec<Segment>, Error> {
    let offset = meta.global.offset.unwrap_or(0);
    let mut segments: Vec<Segment> = Vec::with_capacity(meta.captures.len().max(1));
    for (number, capture) in meta.captures.iter().enumerate() {
        let start = |must| {
            let name = format!("captures[{number}].core:sample_start");
            Err(Error::field(path, &name, capture.sample_start, must))
        };
        let Some(position) = capture.sample_start.checked_sub(offset) else {
            return start("it must not be below core:offset");
        };
        if segments.last().is_some_and(|before| before.position > position) {
            return start("captures must be in the order of the file; sort them by core:sample_start");
        }
        if position > len_samples && closed {
            return start(
                "it lies behind the end of the data; the data file is truncated or belongs to another recording",
            );
        }
        let first_sample_index = capture.global_index.unwrap_or(capture.sample_start);
        if first_sample_index > INDEX_MAX {
            let name = format!("captures[{number}].core:global_index");
            return Err(Error::field(path, &name, first_sample_index, "it must be below 2^63"));
        }
        if number == 0 && position > 0 {
            let first_sample_index = first_sample_index.saturating_sub(position);
            segments.push(segment(0, first_sample_index, &Capture::default()));
        }
        segments.push(segment(position, first_sample_index, capture));
    }
    if segments.is_empty() {
        segments.push(segment(0, offset, &Capture::default()));
    }
    let ends: Vec<u64> = segments.iter().skip(1).map(|segment| segment.position).collect();
    for (segment, end) in segments.iter_mut().zip(ends.into_iter().chain([len_samples])) {
        segment.length_samples = end.min(len_samples).saturating_sub(segment.position);
    }
    // Of several captures at one place the last one holds; one at the very end says nothing.
    segments.retain(|segment| segment.length_samples > 0);
    Ok(segments)
}

fn segment(position: u64, first_sample_index: u64, capture: &Capture) -> Segment {
    let recorded_at = capture.datetime.as_deref().and_then(utc_time);
    let recorded_error_ns = recorded_at.and(capture.datetime_error_ns);
    let recorded_axis = recorded_at.and(capture.axis);
    Segment { position, length_samples: 0, first_sample_index, recorded_at, recorded_error_ns, recorded_axis }
}

/// What a person should know of the times of captures.
fn times_note(meta: &Meta) -> Option<String> {
    let times = || meta.captures.iter().filter_map(|capture| capture.datetime.as_deref());
    if let Some(other) = times().find(|text| utc_time(text).is_none()) {
        return Some(format!("core:datetime of a capture is no time, and is left out: {other:?}"));
    }
    let is_zoned = |text: &&str| text.parse::<Timestamp>().is_ok();
    let other = times().find(|text| !is_zoned(text))?;
    Some(format!("core:datetime of a capture says no time zone, and is read as UTC: {other:?}"))
}

/// Which recordings take turns with it, and where its captures stand in what they are together.
fn stripes_of(meta: &Meta) -> Option<Stripes> {
    let set = meta.global.stripes.as_ref().filter(|set| set.is_valid())?;
    let offset = meta.global.offset.unwrap_or(0);
    let begin = |capture: &Capture| Some((capture.sample_start.checked_sub(offset)?, capture.stripe_start?));
    let begins: Vec<(u64, u64)> = meta.captures.iter().filter_map(begin).collect();
    (!begins.is_empty()).then(|| (set.clone(), begins))
}

/// What lies in the file, in its order.
fn annotations(meta: Meta, len_samples: u64) -> Vec<Annotation> {
    let offset = meta.global.offset.unwrap_or(0);
    let of_file = meta.annotations.into_iter().filter_map(|annotation| {
        let position = annotation.sample_start.checked_sub(offset).filter(|&at| at < len_samples)?;
        let left = len_samples - position;
        let length_samples = annotation.sample_count.unwrap_or(left).min(left);
        Some(Annotation { position, length_samples, fields: annotation.rest })
    });
    let mut annotations: Vec<Annotation> = of_file.collect();
    annotations.sort_by_key(|annotation| annotation.position);
    annotations
}

/// The samples of a `core:datatype`.
fn encoding(path: &Path, datatype: &str) -> Result<Encoding, Error> {
    let refused = |must: &str| Err(Error::field(path, "core:datatype", datatype, must));
    let (name, order) = match datatype.split_once('_') {
        None => (datatype, None),
        Some((name, "le")) => (name, Some(Order::Little)),
        Some((name, "be")) => (name, Some(Order::Big)),
        Some(_) => return refused(KNOWN),
    };
    let foreign = FOREIGN.iter().find(|foreign| name.strip_prefix('r').unwrap_or(name) == foreign.name);
    if let (Some(foreign), Some(order)) = (foreign, order) {
        let order = if order == Order::Big { '>' } else { '<' };
        let name = layout::datatype(foreign.to);
        return refused(&foreign.conversion("in.sigmf-data", order, &name, "out.sigmf-data"));
    }
    let format = name.strip_prefix('r').filter(|name| !name.starts_with('c')).unwrap_or(name).parse();
    let format = format.ok().filter(|&format: &SampleFormat| name.starts_with('c') == format.is_complex());
    match (format, order) {
        (Some(format), Some(order)) if name.starts_with(['r', 'c']) => Ok(Encoding::new(format, order)),
        (Some(format), None) if name.starts_with(['r', 'c']) && format.component().bytes() == 1 => {
            Ok(Encoding::of(format))
        }
        _ => refused(KNOWN),
    }
}

fn sample_rate(path: &Path, global: &Global, notes: &mut Vec<String>) -> Result<f64, Error> {
    match global.sample_rate {
        Some(rate_hz) if rate_hz > 0.0 && rate_hz.is_finite() => Ok(rate_hz),
        Some(rate_hz) => Err(Error::field(path, "core:sample_rate", rate_hz, "it must be above 0")),
        None => {
            notes.push("the metadata do not say the sample rate".into());
            Ok(0.0)
        }
    }
}

const KNOWN: &str = "it must be one of ri8 ru8 ri16 ri32 rf32 rf64 ci8 cu8 ci16 cf32, and from 16 bits on end in _le or _be, as in ri16_le";
/// A tenth of a second of summing.
const CHECKED_BYTES_MAX: u64 = 64 << 20;
/// What SigMF allows.
const INDEX_MAX: u64 = i64::MAX as u64;
