//! Reading a table into a recording.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use grebe_frame::Component;
use grebe_ring::Cancel;

use super::columns::{Columns, NoRow, Odd};
use super::layout::{Layout, split};
use super::name::{Gaps, Name};
use super::preamble::{Preamble, after};
use super::records::{Record, Records};
use super::rows::Rows;
use super::text::Text;
use super::times::Times;
use crate::error::Error;
use crate::sample_file::RecordedAt;
use crate::sigmf::{SigmfSettings, SigmfWriter};
use crate::table::{Clock, LOOKAHEAD, Step};
use crate::unpacked;

/// How a text is read.
#[derive(Debug, Clone, Default)]
pub struct CsvOptions {
    /// Counts the bytes read, for a progress display.
    pub done_bytes: Arc<AtomicU64>,
}

/// A recording that was made of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedCsv {
    /// The file to open.
    pub path: PathBuf,
    /// Notices about the import: the reading that was chosen among several and how to choose another, and
    /// fields that are not numbers.
    pub notes: Vec<String>,
}

/// Reads a table of comma-separated values into the SigMF recording `to`: a column is a channel, a line is a
/// sample. Two columns form a complex channel if the file name has a complex format (`x.csv?format=cf32`), or
/// the columns have such names (`a_re`, `a_im`). Semicolons and tabs also separate fields; decimal commas are
/// then allowed. Lines above the table may state the rate and the trigger, and one line names the columns. A
/// time column gives the rate, the gaps and the start time.
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
/// let imported = import_csv(&text, &out, &CsvOptions::default(), &Cancel::default())?;
/// let file = SampleFile::open(&imported.path)?;
/// assert_eq!((file.channels(), file.len_samples(), file.rate_hz()), (2, 3, Some(1e3)));
/// assert_eq!(file.gaps().next().unwrap().length_samples, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// An [`Error`] names the file, the line, the column and the remedy. A field is not a number of the format, a
/// line differs from the first in its number of fields, or the times give no rate. Also errors of writing a
/// recording.
pub fn import_csv(
    from: &Path,
    to: &Path,
    options: &CsvOptions,
    cancel: &Cancel,
) -> Result<ImportedCsv, Error> {
    let name = Name::parse(from)?;
    let mut notes = Vec::new();
    let mut table = Table::open(&name, &mut notes)?;
    let sample_bytes = table.columns.format.bytes();
    let mut rows = Rows::new(table.columns.channels.len());
    table.fill(&mut rows, FIRST_BYTES, FIRST_ROWS)?;
    if rows.len() == 0 {
        return Err(Error::Empty { path: name.path });
    }
    let column = table.columns.time.as_ref();
    let clock = table.clock.as_ref();
    let mut times = Times::of(&name, column, clock, &table.preamble, &rows.times_s, &mut notes)?;
    let rate_hz = times.rate_hz;
    let settings = SigmfSettings {
        format: table.columns.format,
        channels: table.columns.channels.len(),
        sample_rate_hz: rate_hz,
        // The conversion reads the recording again at once.
        checksum: false,
        summary: false,
        ..SigmfSettings::default()
    };
    let mut out = Out {
        writer: SigmfWriter::create(to, &settings)?,
        index: 0,
        rate_hz,
        began: table.began(),
        is_u8: settings.format.component() == Component::U8,
        last: vec![Vec::new(); settings.channels],
    };
    out.writer.describe(table.columns.description(name.frequency_hz));
    if let Some(clock) = &mut table.clock {
        clock.settle();
    }
    let mut counts = Counts::default();
    while rows.len() > 0 {
        if cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        // Later times help to judge a jump.
        let judged = if table.is_over { rows.len() } else { rows.len().saturating_sub(LOOKAHEAD) };
        let mut begin = 0;
        for at in 0..judged {
            let lost = usize::from(rows.left_out.contains(&at));
            let step = if rows.times_s.is_empty() && lost == 0 {
                Step::Next
            } else if rows.times_s.is_empty() {
                Step::Gap(1)
            } else {
                times.step(&rows.times_s, at)
            };
            if step == Step::Next {
                continue;
            }
            out.write(begin..at, &rows, sample_bytes)?;
            begin = at;
            match step {
                Step::Gap(missing) => {
                    counts.gaps += 1;
                    counts.missing += missing;
                    out.leave_out(missing, name.gaps, sample_bytes, cancel)?;
                }
                Step::Doubled if name.gaps != Gaps::Close => {
                    counts.doubled.get_or_insert((0, rows.lines[at])).0 += 1;
                    begin = at + 1;
                }
                Step::Back if name.gaps != Gaps::Close => {
                    let what = format!(
                        "its time is before that of the line above: sort the lines by time, or take them as they come: {}",
                        name.typed("gaps=close")
                    );
                    return Err(name.line(rows.lines[at], &what));
                }
                _ => {}
            }
        }
        out.write(begin..judged, &rows, sample_bytes)?;
        rows.remove(judged, sample_bytes);
        options.done_bytes.store(table.done_bytes(), Ordering::Relaxed);
        table.fill(&mut rows, BLOCK_BYTES, usize::MAX)?;
    }
    table.say(&mut notes);
    counts.say(name.gaps, &mut notes);
    let mut files = out.writer.finish()?.files;
    Ok(ImportedCsv { path: files.swap_remove(0), notes })
}

/// A text that is being read.
struct Table<'a> {
    name: &'a Name,
    reader: Records<Text>,
    columns: Columns,
    clock: Option<Clock>,
    preamble: Preamble,
    record: Record,
    bytes_per_byte: u64,
    /// The last line that was read is too short, and may be the last of all.
    short: Option<(u64, String)>,
    is_over: bool,
    odd: Odd,
    /// Kinds of skipped lines, with their count and the first line.
    comments: u64,
    headings: u64,
    invalid: Option<(u64, u64, String)>,
    cut_line: Option<u64>,
}

impl<'a> Table<'a> {
    fn open(name: &'a Name, notes: &mut Vec<String>) -> Result<Self, Error> {
        let path = &name.path;
        let file = unpacked::open(path)?;
        let open = || Text::new(file.try_clone()?);
        let failed = Error::file("open", path);
        let mut head = Vec::new();
        open().and_then(|text| text.take(HEAD_BYTES).read_to_end(&mut head)).map_err(&failed)?;
        let is_cut = head.len() as u64 == HEAD_BYTES;
        let head = String::from_utf8_lossy(&head).replace('\0', "");
        let mut lines: Vec<&str> = head.lines().take(HEAD_LINES).collect();
        if is_cut && lines.len() > 1 && lines.len() < HEAD_LINES {
            lines.pop();
        }
        if lines.iter().all(|line| line.trim().is_empty()) {
            return Err(Error::Empty { path: path.clone() });
        }
        let is_chosen = name.channels.is_some() || name.skips_invalid;
        let layout = Layout::of(&lines, name.skip, is_chosen).or_else(|| {
            Layout::of(&lines, name.skip, true).filter(|layout| are_rows(&lines[layout.skip..], layout))
        });
        let layout = layout.ok_or_else(|| no_table(name, &lines))?;
        let (skip, first, delimiter) = (layout.skip, layout.first, layout.delimiter);
        let preamble = Preamble::of(&layout.preamble, &layout.names, &layout.units, layout.columns);
        let rows: Vec<Vec<String>> = lines[skip..]
            .iter()
            .filter(|line| !line.trim().is_empty() && !line.trim().starts_with(['#', ';']))
            .take(HEAD_ROWS)
            .map(|line| split(line, delimiter).split_off(first))
            .collect();
        let columns = Columns::of(name, layout, &preamble, &rows, notes)
            .map_err(|what| name.line(skip.max(1) as u64, &what))?;
        let text = open().map_err(&failed)?;
        let bytes_per_byte = text.bytes_per_byte();
        let mut reader = Records::new(text, delimiter);
        reader.skip(skip).map_err(Error::file("read", path))?;
        Ok(Self {
            name,
            reader,
            clock: columns.clock(),
            columns,
            preamble,
            record: Record::default(),
            bytes_per_byte,
            short: None,
            is_over: false,
            odd: Odd::default(),
            comments: 0,
            headings: 0,
            invalid: None,
            cut_line: None,
        })
    }

    fn done_bytes(&self) -> u64 {
        self.reader.done_bytes() * self.bytes_per_byte
    }

    /// When the first sample was made.
    fn began(&self) -> Option<SystemTime> {
        let clock = self.clock.as_ref();
        let by_trigger = || {
            let first_s = clock.and_then(Clock::first_s).or(self.preamble.start_s).unwrap_or(0.0);
            after(self.preamble.triggered?, first_s)
        };
        clock.and_then(Clock::began).or_else(by_trigger)
    }

    /// Appends rows until `bytes` or `rows_max` is reached.
    fn fill(&mut self, rows: &mut Rows, bytes: usize, rows_max: usize) -> Result<(), Error> {
        let row_bytes = self.columns.format.bytes() * rows.channels.len();
        let most = (bytes / row_bytes).clamp(2 * LOOKAHEAD, rows_max);
        while !self.is_over && rows.len() < most {
            if self.short.is_none()
                && let Some(bytes) = self.columns.take_plain(self.reader.rest(), &mut self.clock, rows)
            {
                rows.lines.push(self.reader.pass_line(bytes));
                continue;
            }
            let read = self.reader.read(&mut self.record);
            if !read.map_err(|error| self.broken(error))? {
                self.is_over = true;
                self.cut_line = self.short.take().map(|(line, _)| line);
                break;
            }
            let line = self.record.line();
            if let Some((line, what)) = self.short.take() {
                return Err(self.refused(line, &what));
            }
            match self.columns.take(&self.record, &mut self.clock, rows, &mut self.odd) {
                Ok(()) => rows.lines.push(line),
                Err(why) => self.leave_out(why, line, rows)?,
            }
        }
        Ok(())
    }

    fn leave_out(&mut self, why: NoRow, line: u64, rows: &mut Rows) -> Result<(), Error> {
        match why {
            NoRow::Comment => self.comments += 1,
            NoRow::Names => self.headings += 1,
            NoRow::NoTime(what) if rows.len() == 0 => {
                let pairs = format!("channels={}&time=none&rate=1k", self.columns.all_channels());
                let typed = self.name.typed(&pairs);
                return Err(self.name.line(line, &format!("{what}; without its column: {typed}")));
            }
            NoRow::Short(what) | NoRow::Wrong(what) | NoRow::NoTime(what) if self.name.skips_invalid => {
                self.invalid.get_or_insert((0, line, what)).0 += 1;
                rows.left_out.push(rows.len());
            }
            // It may be the last line of a killed program.
            NoRow::Short(what) => self.short = Some((line, what)),
            NoRow::Wrong(what) | NoRow::NoTime(what) => {
                let chosen = self.columns.others_than(&self.record);
                let chosen = chosen.map(|names| self.name.typed(&format!("channels={names}")));
                return Err(match chosen {
                    None => self.refused(line, &what),
                    Some(typed) if rows.len() == 0 => {
                        self.name.line(line, &format!("{what}; without such columns: {typed}"))
                    }
                    Some(typed) => self.refused(line, &format!("{what}; without such columns: {typed}")),
                });
            }
        }
        Ok(())
    }

    fn refused(&self, line: u64, what: &str) -> Error {
        let skipped = self.name.typed("invalid=skip");
        self.name.line(line, &format!("{what}; without such lines: {skipped}"))
    }

    fn broken(&self, error: io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::InvalidData => self.name.line(self.reader.line() + 1, &error.to_string()),
            _ => Error::file("read", &self.name.path)(error),
        }
    }

    /// Notes each place where the reading differs from the text.
    fn say(&self, notes: &mut Vec<String>) {
        let mut say = |count: u64, one: &str, more: &str| {
            if count > 0 {
                notes.push(format!("{count} {}", if count == 1 { one } else { more }));
            }
        };
        say(self.odd.empty, "field is empty: read as NaN", "fields are empty: read as NaN");
        say(
            self.odd.absent,
            "field means a missing value: read as NaN",
            "fields mean a missing value: read as NaN",
        );
        say(self.comments, "comment within the table: ignored", "comments within the table: ignored");
        say(self.headings, "repeated line of names: ignored", "repeated lines of names: ignored");
        if let Some((count, line, what)) = &self.invalid {
            let lines = if *count == 1 { "line" } else { "lines" };
            notes.push(format!("{count} invalid {lines} ignored, such as line {line}: {what}"));
        }
        if let Some(line) = self.cut_line {
            notes.push(format!("line {line}, the last one, is cut off: ignored"));
        }
    }
}

/// The recording that is being made.
struct Out {
    writer: SigmfWriter,
    index: u64,
    rate_hz: f64,
    began: Option<SystemTime>,
    is_u8: bool,
    /// The newest sample of each channel.
    last: Vec<Vec<u8>>,
}

impl Out {
    fn write(&mut self, part: std::ops::Range<usize>, rows: &Rows, sample_bytes: usize) -> Result<(), Error> {
        if part.is_empty() {
            return Ok(());
        }
        for (last, channel) in self.last.iter_mut().zip(&rows.channels) {
            last.clear();
            last.extend_from_slice(&channel[(part.end - 1) * sample_bytes..part.end * sample_bytes]);
        }
        let length = part.len() as u64;
        self.append(part, &rows.channels)?;
        self.index = self.index.saturating_add(length);
        Ok(())
    }

    fn append(&mut self, part: std::ops::Range<usize>, channels: &[Vec<u8>]) -> Result<(), Error> {
        let since_s = if self.rate_hz > 0.0 { self.index as f64 / self.rate_hz } else { 0.0 };
        let time = self.began.filter(|_| self.rate_hz > 0.0 || self.index == 0);
        let recorded_at = time.and_then(|began| after(began, since_s)).map(|time| RecordedAt {
            time,
            error_ns: None,
            axis: None,
        });
        self.writer.write_bytes(self.index, part, channels, recorded_at)
    }

    /// Samples are missing here.
    fn leave_out(
        &mut self,
        missing: u64,
        gaps: Gaps,
        sample_bytes: usize,
        cancel: &Cancel,
    ) -> Result<(), Error> {
        if gaps == Gaps::Close {
            return Ok(());
        }
        if gaps == Gaps::Keep {
            self.index = self.index.saturating_add(missing);
            return Ok(());
        }
        let most = (BLOCK_BYTES / sample_bytes / self.last.len().max(1)).max(1);
        // The middle of u8 is 128.
        let zero = if self.is_u8 { 128 } else { 0 };
        let of = |last: &Vec<u8>| if gaps == Gaps::Hold { last.clone() } else { vec![zero; sample_bytes] };
        let samples: Vec<Vec<u8>> = self.last.iter().map(of).collect();
        let block: Vec<Vec<u8>> = samples
            .iter()
            .map(|sample| sample.repeat(most.min(usize::try_from(missing).unwrap_or(most))))
            .collect();
        let mut left = missing;
        while left > 0 {
            if cancel.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let length = left.min(most as u64) as usize;
            self.append(0..length, &block)?;
            self.index += length as u64;
            left -= length as u64;
        }
        Ok(())
    }
}

/// Findings from the times.
#[derive(Debug, Default)]
struct Counts {
    gaps: u64,
    missing: u64,
    /// How many lines have the time of another, and the first.
    doubled: Option<(u64, u64)>,
}

impl Counts {
    fn say(&self, gaps: Gaps, notes: &mut Vec<String>) {
        if self.gaps > 0 {
            let done = match gaps {
                Gaps::Keep => "",
                Gaps::Close => ": closed",
                Gaps::Zeros => ": zeros stand for them",
                Gaps::Hold => ": the values before stand for them",
            };
            let samples = if self.missing == 1 { "sample is" } else { "samples are" };
            let gaps = if self.gaps == 1 { "gap" } else { "gaps" };
            let (missing, count) = (self.missing, self.gaps);
            notes.push(format!("by the times, {missing} {samples} missing in {count} {gaps}{done}"));
        }
        if let Some((count, line)) = self.doubled {
            let plural = if count == 1 { "line has" } else { "lines have" };
            notes.push(format!("{count} {plural} the time of another, such as line {line}: ignored"));
        }
    }
}

/// Whether most lines have the fields of the first: a message among other lines is not a table.
fn are_rows(lines: &[&str], layout: &Layout) -> bool {
    let lines = || lines.iter().filter(|line| !line.trim().is_empty());
    let rows = lines().filter(|line| split(line, layout.delimiter).len() >= layout.first + layout.columns);
    rows.count() * 2 > lines().count()
}

fn no_table(name: &Name, lines: &[&str]) -> Error {
    let at = lines.iter().position(|line| !line.trim().is_empty()).unwrap_or(0);
    let shown: String = lines[at].trim().chars().take(60).collect();
    let skip = lines.len().min(12);
    name.refused(format!(
        "no table of numbers is found; line {} is '{shown}'. Where it begins below other lines, say how many: {}. \
         Lines as boards print them are read by: grebe record 'pipe:?format=text' OUT < {}",
        at + 1,
        name.typed(&format!("skip={skip}&rate=1M")),
        name.path.display()
    ))
}

/// The table must begin within these limits.
const HEAD_BYTES: u64 = 256 << 10;
const HEAD_LINES: usize = 2_000;
const HEAD_ROWS: usize = 64;
/// Bytes of all channels from which the rate is determined, and the size of later reads.
const FIRST_BYTES: usize = 32 << 20;
const FIRST_ROWS: usize = 1 << 18;
const BLOCK_BYTES: usize = 1 << 20;
