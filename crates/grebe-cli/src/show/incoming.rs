//! Recording that is still being copied, as the source of a scope: its arrived samples, and the summary for the rest.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use grebe_recording::{Error, Extremes, SampleFile, Summary};
use grebe_tree::Arriving;
use grebe_view::{Recording, RecordingOutline, RecordingSums, WantedSamples};

use super::recording::{HISTORY_BYTES, OnDisk, Progress, is_one_stream, outline};

/// Recording of a running or interrupted progressive copy.
#[derive(Debug)]
pub(crate) struct Incoming {
    path: PathBuf,
    progress: Progress,
    state: State,
}

#[derive(Debug)]
enum State {
    Coming(Box<Coming>),
    /// Complete.
    There(Box<OnDisk>),
}

#[derive(Debug)]
struct Coming {
    file: SampleFile,
    outline: RecordingOutline,
    /// Data files that are incomplete, by their final names.
    data: Vec<(PathBuf, Arriving)>,
    /// Bytes of all data files, and the youngest modification time at their source.
    data_bytes: u64,
    modified: SystemTime,
    summary: Option<Summary>,
    /// The summary, if incomplete.
    summary_part: Option<Arriving>,
    nodes: Vec<Extremes>,
    /// Arrived samples contradict the summary.
    is_contradicted: bool,
}

impl Incoming {
    /// Opens a recording whose data files are still being copied; `None` if none is.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, Error> {
        if SampleFile::format_name(path) != Some("SigMF") {
            return Ok(None);
        }
        let (mut data, began) = (Vec::new(), Instant::now());
        let opened = loop {
            let opened = open(path, &mut data);
            // The metadata arrive before any samples.
            let may_begin = |missing: &Path| Arriving::may_begin(missing) && began.elapsed() < BEGINS_WITHIN;
            if !missing(&opened).is_some_and(may_begin) {
                break opened;
            }
            thread::sleep(LOOK_EVERY);
            data.clear();
        };
        if data.is_empty() {
            return Ok(None);
        }
        let file = opened?;
        if !is_one_stream(&file) {
            let what = "has several streams, which can be shown once it is complete".to_owned();
            return Err(Error::Content { path: path.into(), what });
        }
        let of_place = |path: &Path| match data.iter().find(|(its, _)| its == path) {
            Some((_, arriving)) => (arriving.bytes(), Some(arriving.modified())),
            None => fs::metadata(path).map_or((0, None), |file| (file.len(), file.modified().ok())),
        };
        let (data_bytes, modified) =
            file.data_files().map(of_place).fold((0, None), |all, file| (all.0 + file.0, all.1.max(file.1)));
        let coming = Coming {
            outline: outline(&file),
            file,
            data,
            data_bytes,
            modified: modified.unwrap_or(SystemTime::UNIX_EPOCH),
            summary: None,
            summary_part: None,
            nodes: Vec::new(),
            is_contradicted: false,
        };
        let mut incoming =
            Self { path: path.into(), progress: Progress::default(), state: State::Coming(Box::new(coming)) };
        incoming.refresh();
        Ok(Some(incoming))
    }

    pub(crate) fn progress(&self) -> Progress {
        self.progress.clone()
    }

    fn report(&self) {
        let words = match &self.state {
            State::There(recording) => recording.progress().get(),
            State::Coming(coming) => Some(coming.words()),
        };
        self.progress.set(words);
    }
}

/// Opens the available part, and the files that are still arriving.
fn open(path: &Path, data: &mut Vec<(PathBuf, Arriving)>) -> Result<SampleFile, Error> {
    SampleFile::open_arriving(path, &mut |file| {
        if let Some((_, known)) = data.iter().find(|(its, _)| its == file) {
            return Some(known.part().to_path_buf());
        }
        // A file with its final name is complete.
        let arriving = if file.exists() { None } else { Arriving::find(file).ok()? }?;
        let part = arriving.part().to_path_buf();
        data.push((file.to_path_buf(), arriving));
        Some(part)
    })
}

/// A missing data file without which the recording cannot be opened.
fn missing(opened: &Result<SampleFile, Error>) -> Option<&Path> {
    match opened {
        Err(Error::File { path, source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            path.extension().is_some_and(|end| end == "sigmf-data").then_some(path)
        }
        _ => None,
    }
}

impl Coming {
    fn words(&self) -> String {
        let here: u64 = self.data.iter().map(|(_, arriving)| arriving.come_bytes()).sum();
        let all: u64 = self.data.iter().map(|(_, arriving)| arriving.bytes()).sum();
        let came = format!("{:.1} % of the samples have arrived", here as f64 * 100.0 / all.max(1) as f64);
        match (&self.summary, self.is_contradicted) {
            (_, true) => {
                format!("{came}; the summary does not match them and is ignored")
            }
            (Some(_), _) => format!("{came}; the rest is drawn from the summary"),
            (None, _) => format!("{came}; nothing is known of the rest yet"),
        }
    }

    /// Checks for arrived data; returns whether there is any.
    fn poll(&mut self, path: &Path) -> bool {
        let mut is_more = false;
        for (_, arriving) in &mut self.data {
            is_more |= arriving.refresh().unwrap_or(false);
        }
        if is_more {
            // Discards zeros that were read ahead of arrived data.
            if let Ok(file) = open(path, &mut self.data) {
                self.file = file;
            }
        }
        if let Some(part) = &mut self.summary_part {
            is_more |= part.refresh().unwrap_or(false);
        }
        if self.summary.is_none() && !self.is_contradicted {
            is_more |= self.find_summary(path);
        }
        is_more
    }

    fn find_summary(&mut self, path: &Path) -> bool {
        let place = Summary::place(path);
        if self.summary_part.is_none() && !place.is_file() {
            self.summary_part = Arriving::find(&place).ok().flatten();
        }
        let at = match &self.summary_part {
            Some(part) if part.part().exists() => part.part(),
            _ => &place,
        };
        // Incomplete until both of its ends have arrived.
        self.summary = Summary::open_arriving(at, &self.file, self.data_bytes, self.modified).ok().flatten();
        self.summary.is_some()
    }

    /// Bytes of incomplete files that hold these samples.
    fn bytes_of(&self, positions: &Range<u64>) -> impl Iterator<Item = (&Arriving, Range<u64>)> {
        let of = |(path, bytes): (&Path, Range<u64>)| {
            let (_, arriving) = self.data.iter().find(|(its, _)| its == path)?;
            Some((arriving, bytes))
        };
        self.file.bytes_of(positions.clone()).filter_map(of)
    }

    /// Contiguous range of available samples.
    fn readable(&self, positions: Range<u64>) -> Range<u64> {
        let mut here = positions.clone();
        for ((arriving, bytes), (_, one)) in
            self.bytes_of(&positions).zip(self.bytes_of(&(positions.start..positions.start + 1)))
        {
            let sample_bytes = (one.end - one.start).max(1);
            let stretch = bytes.start + (here.start - positions.start) * sample_bytes
                ..bytes.start + (here.end - positions.start) * sample_bytes;
            let come = arriving.first_here(&stretch);
            let start = positions.start + (come.start - bytes.start).div_ceil(sample_bytes);
            let end = positions.start + (come.end - bytes.start) / sample_bytes;
            here = start.min(here.end)..end.clamp(start.min(here.end), here.end);
        }
        here
    }

    /// Whether the nodes below the coarse ones have arrived for these samples.
    fn has_fine_nodes(&self, positions: &Range<u64>) -> bool {
        match (&self.summary, &self.summary_part) {
            (Some(summary), Some(part)) => part.is_here(&summary.bytes_of(positions.clone())),
            (summary, _) => summary.is_some(),
        }
    }
}

impl Recording for Incoming {
    fn outline(&self) -> &RecordingOutline {
        match &self.state {
            State::Coming(coming) => &coming.outline,
            State::There(recording) => recording.outline(),
        }
    }

    fn refresh(&mut self) -> bool {
        let changed = match &mut self.state {
            State::There(recording) => recording.refresh(),
            State::Coming(coming) => {
                let is_more = coming.poll(&self.path);
                let is_over = coming.data.iter().all(|(_, arriving)| arriving.is_over());
                // A short recording stays open as it is, because it is complete.
                let there =
                    if is_over { OnDisk::open(&self.path, HISTORY_BYTES).ok().flatten() } else { None };
                if let Some(there) = there {
                    self.state = State::There(Box::new(there));
                    true
                } else {
                    is_more
                }
            }
        };
        self.report();
        changed
    }

    fn read(&mut self, position: u64, length: usize, out: &mut Vec<u8>) -> io::Result<()> {
        let coming = match &mut self.state {
            State::There(recording) => return recording.read(position, length, out),
            State::Coming(coming) => coming,
        };
        let positions = position..position + length as u64;
        if coming.readable(positions.clone()) != positions {
            return Err(io::ErrorKind::NotFound.into());
        }
        coming.file.read(position, length, out).map_err(io::Error::other)?;
        if coming.summary.as_ref().is_some_and(|summary| summary.contradicts(position, out)) {
            // A wrong summary must not be shown.
            coming.summary = None;
            coming.is_contradicted = true;
            self.report();
        }
        Ok(())
    }

    fn known_samples(&self) -> u64 {
        match &self.state {
            State::There(recording) => recording.known_samples(),
            State::Coming(coming) => coming.summary.as_ref().map_or(0, Summary::known_samples),
        }
    }

    fn level(&self, log2: u32) -> Option<u32> {
        Summary::level(log2)
    }

    fn extremes(
        &mut self,
        lane: usize,
        log2: u32,
        nodes: Range<u64>,
        out: &mut Vec<(f32, f32)>,
    ) -> io::Result<()> {
        let coming = match &mut self.state {
            State::There(recording) => return recording.extremes(lane, log2, nodes, out),
            State::Coming(coming) => coming,
        };
        let summary = coming.summary.as_ref().ok_or(io::ErrorKind::NotFound)?;
        coming.nodes.clear();
        summary.extremes(lane, log2, nodes, &mut coming.nodes)?;
        out.extend(coming.nodes.iter().map(|node| (node.min, node.max)));
        Ok(())
    }

    fn sums(&self, lane: usize, samples: Range<u64>) -> RecordingSums {
        match &self.state {
            State::There(recording) => recording.sums(lane, samples),
            State::Coming(coming) => {
                let Some(summary) = &coming.summary else { return RecordingSums::default() };
                let (sums, _) = summary.sums(lane, samples);
                RecordingSums {
                    sum: sums.sum,
                    sum_sq: sums.sum_sq,
                    not_finite: sums.not_finite,
                    count: sums.count,
                }
            }
        }
    }

    fn memory_bytes(&self) -> usize {
        match &self.state {
            State::There(recording) => recording.memory_bytes(),
            State::Coming(coming) => coming.summary.as_ref().map_or(0, Summary::memory_bytes),
        }
    }

    fn arrived(&self, positions: Range<u64>) -> Option<f32> {
        let State::Coming(coming) = &self.state else { return None };
        let of =
            |(arriving, bytes): (&Arriving, Range<u64>)| (arriving.come_of(&bytes), bytes.end - bytes.start);
        let (here, all) =
            coming.bytes_of(&positions).map(of).fold((0, 0), |sum, file| (sum.0 + file.0, sum.1 + file.1));
        Some(if all == 0 { 1.0 } else { here as f32 / all as f32 })
    }

    fn readable(&self, positions: Range<u64>) -> Range<u64> {
        match &self.state {
            State::There(_) => positions,
            State::Coming(coming) => coming.readable(positions),
        }
    }

    fn want(&mut self, wanted: &WantedSamples) {
        let State::Coming(coming) = &mut self.state else { return };
        let needs_nodes =
            is_too_coarse(COARSE_LOG2, wanted.node_log2) && !coming.has_fine_nodes(&wanted.shown);
        let has_nodes = coming.summary.is_some() || coming.summary_part.is_some();
        // Without a summary, fetch some samples of the whole view.
        let stretches = match wanted.singly.is_empty() && !has_nodes {
            true => spread(&wanted.shown),
            false => vec![wanted.singly.clone()],
        };
        let mut singly: Vec<(PathBuf, Range<u64>)> = Vec::new();
        for stretch in stretches {
            singly.extend(coming.file.bytes_of(stretch).map(|(path, bytes)| (path.to_path_buf(), bytes)));
        }
        for (path, arriving) in &mut coming.data {
            let own = singly.iter().filter(|(its, bytes)| its == path && !bytes.is_empty());
            let own: Vec<Range<u64>> = own.map(|(_, bytes)| bytes.clone()).collect();
            // Without this request, the range arrives in its turn.
            let _ = arriving.want(&own);
        }
        if let (Some(summary), Some(part)) = (&coming.summary, &mut coming.summary_part) {
            let own = if needs_nodes { vec![summary.bytes_of(wanted.shown.clone())] } else { Vec::new() };
            let _ = part.want(&own);
        }
    }

    fn level_of(&mut self, log2: u32, positions: Range<u64>) -> Option<(u32, bool)> {
        let level = Summary::level(log2)?;
        let State::Coming(coming) = &self.state else { return Some((level, true)) };
        if level >= COARSE_LOG2 || coming.has_fine_nodes(&positions) {
            return Some((level, true));
        }
        Some((COARSE_LOG2, !is_too_coarse(COARSE_LOG2, log2)))
    }
}

/// Short ranges at equal distances.
fn spread(positions: &Range<u64>) -> Vec<Range<u64>> {
    let step = (positions.end - positions.start).div_ceil(STRETCHES).max(1);
    let at = |number: u64| positions.start + number * step;
    (0..STRETCHES).map(at).take_while(|&at| at < positions.end).map(|at| at..at + 1).collect()
}

/// Whether nodes are longer than a quarter of a column, of which `wanted_log2` is a sixteenth.
fn is_too_coarse(level: u32, wanted_log2: u32) -> bool {
    level > wanted_log2 + 2
}

/// Maximum ranges to request of a file.
const STRETCHES: u64 = 64;
/// Smallest nodes at the end of a summary, which arrive with its head.
const COARSE_LOG2: u32 = 16;
/// Time until the first samples of a copy.
const BEGINS_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);
