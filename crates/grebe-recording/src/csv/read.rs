//! Reading lines into a recording.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use csv::{ByteRecord, Reader, ReaderBuilder};
use grebe_frame::{ChannelDescription, Component, Description, MAX_CHANNELS, SampleFormat};
use grebe_process::query::Query;
use grebe_ring::Cancel;

use super::{COMPLEX, TIME};
use crate::error::{Error, ProcessError};
use crate::headerless;
use crate::sigmf::{SigmfSettings, SigmfWriter};

/// How a text is read.
#[derive(Debug, Clone, Default)]
pub struct CsvOptions {
    /// Counts the bytes that were read, for whoever shows it.
    pub done_bytes: Arc<AtomicU64>,
}

/// Reads comma-separated values into a SigMF recording that will be `to`: a column a channel, a line a sample; two columns where its
/// name says a complex format (`x.csv?format=cf32`), or theirs do (`a_re`, `a_im`). Semicolons and tabs separate as well. A line of names
/// may come first; where the first of them is `time` or `time_s`, that column says the rate, and where samples are missing. The file to
/// open.
///
/// Samples are `f64`, complex ones `cf32`, unless the name says another format: `x.csv?format=i16&rate=48k`.
///
/// ```
/// use grebe_recording::{Cancel, CsvOptions, SampleFile, import_csv};
///
/// let folder = tempfile::tempdir()?;
/// let text = folder.path().join("x.csv");
/// std::fs::write(&text, "time_s,a,b\n0,1,-1\n0.001,2,-2\n0.005,3,-3\n")?;
/// let out = folder.path().join("x.sigmf-meta");
/// let file = SampleFile::open(&import_csv(&text, &out, &CsvOptions::default(), &Cancel::default())?)?;
/// assert_eq!((file.channels(), file.len_samples(), file.sample_rate_hz()), (2, 3, 1e3));
/// assert_eq!(file.gaps().next().unwrap().length_samples, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// An [`Error`] that names the file, the line and the column: a field is no number of the format, a line has other fields than the
/// first; those of writing a recording.
pub fn import_csv(from: &Path, to: &Path, options: &CsvOptions, cancel: &Cancel) -> Result<PathBuf, Error> {
    let name = Name::parse(from)?;
    let file = File::open(&name.path).map_err(Error::file("open", &name.path))?;
    let mut lines = Lines::open(&name, file)?;
    let mut rows = Rows::default();
    lines.fill(&mut rows)?;
    if rows.samples() == 0 {
        return Err(Error::Empty { path: name.path });
    }
    let rate_hz = if name.rate_hz > 0.0 { name.rate_hz } else { rate_of(&rows.times) };
    let settings = SigmfSettings {
        format: lines.columns.format,
        channels: lines.columns.channels.len(),
        sample_rate_hz: rate_hz,
        ..SigmfSettings::default()
    };
    let mut writer = SigmfWriter::create(to, &settings)?;
    writer.describe(lines.columns.description(name.frequency_hz));
    let (mut index, mut last) = (0, None);
    while rows.samples() > 0 {
        if cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let mut begin = 0;
        for at in 0..rows.times.len() {
            let time = rows.times[at];
            let steps = last.map_or(1.0, |last: f64| ((time - last) * rate_hz).round());
            if !(1.0..1e15).contains(&steps) {
                let line = rows.first_line + at as u64;
                return Err(name.line(line, format!("time {time} is no step behind the one before it")));
            }
            let missing = steps as u64 - 1;
            if missing > 0 {
                writer.write_bytes(index, begin..at, &rows.channels)?;
                index += (at - begin) as u64 + missing;
                begin = at;
            }
            last = Some(time);
        }
        writer.write_bytes(index, begin..rows.samples(), &rows.channels)?;
        index += (rows.samples() - begin) as u64;
        options.done_bytes.store(lines.done_bytes(), Ordering::Relaxed);
        lines.fill(&mut rows)?;
    }
    let mut files = writer.finish()?.files;
    Ok(files.swap_remove(0))
}

/// What the name of a text says.
#[derive(Debug)]
struct Name {
    path: PathBuf,
    format: Option<SampleFormat>,
    rate_hz: f64,
    frequency_hz: Option<f64>,
}

/// What the columns are.
#[derive(Debug)]
struct Columns {
    format: SampleFormat,
    has_time: bool,
    /// By channel; empty where nothing says it.
    channels: Vec<String>,
    /// As they are called in messages.
    names: Vec<String>,
}

/// A text that is being read.
struct Lines<'a> {
    name: &'a Name,
    reader: Reader<BufReader<File>>,
    columns: Columns,
    /// The first line, where that is one of samples.
    first: Option<ByteRecord>,
    record: ByteRecord,
}

/// Samples that were read: of each channel, as a stream has them.
#[derive(Debug, Default)]
struct Rows {
    channels: Vec<Vec<u8>>,
    times: Vec<f64>,
    samples: usize,
    first_line: u64,
}

impl Name {
    fn parse(written: &Path) -> Result<Self, Error> {
        let (path, query) = headerless::split(written);
        let read = || {
            let mut query = Query::new(query.unwrap_or_default())?;
            let format = query.format("format")?;
            let rate_hz = query.rate_hz()?.unwrap_or(0.0);
            let frequency_hz = query.hertz("frequency")?;
            query.end()?;
            Ok(Self { path: path.clone(), format, rate_hz, frequency_hz })
        };
        read().map_err(|reason: String| {
            ProcessError::Name { name: written.display().to_string(), reason }.into()
        })
    }

    fn line(&self, line: u64, what: String) -> Error {
        Error::Field { path: self.path.clone(), what: format!("line {line}: {what}") }
    }
}

impl Columns {
    /// Of the first line, and whether that is one of names.
    fn of(name: &Name, first: &ByteRecord) -> Result<(Self, bool), Error> {
        let texts: Vec<String> =
            first.iter().map(|field| String::from_utf8_lossy(field.trim_ascii()).into_owned()).collect();
        let is_named = texts.iter().any(|text| text.parse::<f64>().is_err());
        let has_time = is_named && matches!(texts[0].to_ascii_lowercase().as_str(), "time" | TIME);
        let values = &texts[usize::from(has_time)..];
        let pair = |pair: &[String]| match pair {
            [re, im] => {
                let name = re.strip_suffix(COMPLEX[0]).or((re == "re").then_some(""))?;
                let other = im.strip_suffix(COMPLEX[1]).or((im == "im").then_some(""))?;
                (name == other).then(|| name.to_owned())
            }
            _ => None,
        };
        let pairs: Option<Vec<String>> = values.chunks(2).map(pair).collect();
        let pairs = pairs.filter(|_| is_named);
        let is_complex = name.format.map_or(pairs.is_some(), SampleFormat::is_complex);
        let refused = |what: String| Err(name.line(1, what));
        if is_complex && values.len() % 2 == 1 {
            return refused(format!(
                "complex samples stand in two columns each, and there are {}",
                values.len()
            ));
        }
        let channels = if is_complex {
            pairs.unwrap_or_else(|| vec![String::new(); values.len() / 2])
        } else if is_named {
            values.to_vec()
        } else {
            vec![String::new(); values.len()]
        };
        if !(1..=MAX_CHANNELS as usize).contains(&channels.len()) {
            return refused(format!(
                "it has columns of {} channels: give 1 to {MAX_CHANNELS}",
                channels.len()
            ));
        }
        let format = name.format.unwrap_or(if is_complex { SampleFormat::Cf32 } else { SampleFormat::F64 });
        let number = |at: usize| format!("column {}", at + 1);
        let named = |at: usize| {
            let text = &texts[at];
            if is_named { format!("column {} ({text})", at + 1) } else { number(at) }
        };
        let names = (0..texts.len()).map(named).collect();
        Ok((Self { format, has_time, channels, names }, is_named))
    }

    fn description(&self, frequency_hz: Option<f64>) -> Option<Arc<Description>> {
        // Names that only count say nothing.
        let is_number = |(at, name): (usize, &String)| name.is_empty() || *name == format!("ch{}", at + 1);
        let is_named = !self.channels.iter().enumerate().all(is_number);
        let channel = |name: &String| ChannelDescription { name: name.clone(), ..Default::default() };
        let channels = self.channels.iter().filter(|_| is_named).map(channel).collect();
        let description =
            Description { channels, centre_frequency_hz: frequency_hz, ..Description::default() };
        (is_named || frequency_hz.is_some()).then(|| Arc::new(description))
    }
}

impl<'a> Lines<'a> {
    fn open(name: &'a Name, file: File) -> Result<Self, Error> {
        let failed = |source| Error::file("read", &name.path)(source);
        let mut file = BufReader::with_capacity(BUFFER_BYTES, file);
        let begin = file.fill_buf().map_err(failed)?;
        let mark = if begin.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let first = begin[mark..].split(|byte| *byte == b'\n').next().unwrap_or_default();
        let count = |byte: u8| first.iter().filter(|other| **other == byte).count();
        let delimiter = [b',', b';', b'\t'].into_iter().max_by_key(|byte| (count(*byte), *byte == b','));
        file.consume(mark);
        let mut builder = ReaderBuilder::new();
        builder.has_headers(false).flexible(true).delimiter(delimiter.unwrap_or(b','));
        let mut reader = builder.from_reader(file);
        let mut first = ByteRecord::new();
        if !reader.read_byte_record(&mut first).map_err(|error| name.broken(&error))? {
            return Err(Error::Empty { path: name.path.clone() });
        }
        let (columns, is_named) = Columns::of(name, &first)?;
        let first = (!is_named).then_some(first);
        Ok(Self { name, reader, columns, first, record: ByteRecord::new() })
    }

    fn done_bytes(&self) -> u64 {
        self.reader.position().byte()
    }

    /// Reads the next samples; none at the end.
    fn fill(&mut self, rows: &mut Rows) -> Result<(), Error> {
        let format = self.columns.format;
        rows.channels.resize_with(self.columns.channels.len(), Vec::new);
        rows.channels.iter_mut().for_each(Vec::clear);
        rows.times.clear();
        rows.samples = 0;
        let samples_max = (ROWS_BYTES / (format.bytes() * self.columns.channels.len())).max(2);
        while rows.samples < samples_max {
            match self.first.take() {
                Some(first) => self.record = first,
                None => {
                    let read = self.reader.read_byte_record(&mut self.record);
                    if !read.map_err(|error| self.name.broken(&error))? {
                        break;
                    }
                }
            }
            let line = self.record.position().map_or(0, csv::Position::line);
            if rows.samples == 0 {
                rows.first_line = line;
            }
            self.columns.take(&self.record, rows).map_err(|what| self.name.line(line, what))?;
            rows.samples += 1;
        }
        Ok(())
    }
}

impl Columns {
    /// Appends the numbers of a line.
    fn take(&self, record: &ByteRecord, rows: &mut Rows) -> Result<(), String> {
        if record.len() != self.names.len() {
            return Err(format!("{} fields, and the first line has {}", record.len(), self.names.len()));
        }
        let mut fields = record.iter().enumerate();
        if self.has_time
            && let Some((at, field)) = fields.next()
        {
            let time = text(field).and_then(|text| text.parse::<f64>().ok()).filter(|time| time.is_finite());
            rows.times.push(time.ok_or_else(|| self.no_number(at, field))?);
        }
        let components = self.format.components();
        for (number, (at, field)) in fields.enumerate() {
            let channel = &mut rows.channels[number / components];
            parse(self.format, field, channel).ok_or_else(|| self.no_number(at, field))?;
        }
        Ok(())
    }

    fn no_number(&self, at: usize, field: &[u8]) -> String {
        let shown: String = String::from_utf8_lossy(field).chars().take(SHOWN_CHARS).collect();
        let time = at == 0 && self.has_time;
        let wanted = if time { "time in seconds" } else { self.format.component().real().name() };
        format!("{} is '{shown}', which is no {wanted}", self.names[at])
    }
}

impl Name {
    fn broken(&self, error: &csv::Error) -> Error {
        let line = error.position().map_or(0, csv::Position::line);
        match error.kind() {
            csv::ErrorKind::Io(source) => {
                let source = io::Error::new(source.kind(), source.to_string());
                Error::file("read", &self.path)(source)
            }
            _ => self.line(line, error.to_string()),
        }
    }
}

impl Rows {
    fn samples(&self) -> usize {
        self.samples
    }
}

fn text(field: &[u8]) -> Option<&str> {
    std::str::from_utf8(field.trim_ascii()).ok()
}

/// Appends a number as a stream has it; `None` where it is none of the format.
fn parse(format: SampleFormat, field: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let text = text(field)?;
    match format.component() {
        Component::I8 => out.push(i8::try_from(integer(text)?).ok()? as u8),
        Component::U8 => out.push(u8::try_from(integer(text)?).ok()?),
        Component::I16 => {
            out.extend_from_slice(&i16::try_from(integer(text)?).ok()?.to_le_bytes());
        }
        Component::I32 => out.extend_from_slice(&i32::try_from(integer(text)?).ok()?.to_le_bytes()),
        Component::F32 => {
            out.extend_from_slice(&text.parse::<f32>().ok()?.to_le_bytes());
        }
        Component::F64 => out.extend_from_slice(&text.parse::<f64>().ok()?.to_le_bytes()),
    }
    Some(())
}

/// A whole number, however it is written.
fn integer(text: &str) -> Option<i64> {
    text.parse().ok().or_else(|| {
        let number = text.parse::<f64>().ok().filter(|number| number.fract() == 0.0)?;
        (number.abs() < 1e15).then_some(number as i64)
    })
}

/// Samples a second, by the times of samples of which the first ones follow each other.
fn rate_of(times: &[f64]) -> f64 {
    let [first, second, ..] = times else { return 0.0 };
    let step = second - first;
    let follows = |pair: &[f64]| ((pair[1] - pair[0]) / step - 1.0).abs() < 0.25;
    let count = times.windows(2).take_while(|pair| follows(pair)).count();
    let Some(last) = times.get(count).filter(|last| *last > first) else { return 0.0 };
    let rate_hz = count as f64 / (last - first);
    // Times have been rounded: 47999.9999999 is 48000.
    format!("{rate_hz:.8e}").parse().unwrap_or(rate_hz)
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const BUFFER_BYTES: usize = 1 << 20;
/// Of all channels, at a time.
const ROWS_BYTES: usize = 512 << 10;
const SHOWN_CHARS: usize = 40;
