//! Recording on disk, as a source of a scope that reads it on demand.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use grebe_recording::{
    Error, Extremes, SampleFile, SpectralRow, SpectralSummary, SummarizedFile, Summary, SummaryState,
};
use grebe_view::{Recording, RecordingOutline, RecordingPower, RecordingSums, Stretch, samples_held};

/// Recording, with the progress of its summary.
#[derive(Debug)]
pub(crate) struct OnDisk {
    path: PathBuf,
    recording: SummarizedFile,
    /// Samples per channel to show.
    most_samples: u64,
    outline: RecordingOutline,
    progress: Progress,
    nodes: Vec<Extremes>,
    row: SpectralRow,
}

/// Line about the progress, until it is complete. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    line: Arc<Mutex<Option<String>>>,
    is_being_recorded: Arc<AtomicBool>,
}

impl Progress {
    pub(crate) fn get(&self) -> Option<String> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Without its line, for pictures that say themselves whether they are estimates.
    pub(crate) fn without_line(self) -> Self {
        Self { line: Arc::default(), ..self }
    }

    pub(super) fn set(&self, line: Option<String>) {
        *self.line.lock().unwrap_or_else(PoisonError::into_inner) = line;
    }

    pub(super) fn set_being_recorded(&self, is_being_recorded: bool) {
        self.is_being_recorded.store(is_being_recorded, Ordering::Relaxed);
    }

    /// Whether the recorder is still running.
    pub(super) fn is_being_recorded(&self) -> bool {
        self.is_being_recorded.load(Ordering::Relaxed)
    }
}

impl OnDisk {
    /// Opens a recording that is still being written, or of which a history of `history_bytes` does not hold every sample.
    /// `None` for others, and for recordings with several streams, of which a scope shows the last.
    pub(crate) fn open(path: &Path, history_bytes: usize) -> Result<Option<Self>, Error> {
        let file = SampleFile::open(path)?;
        // More memory would not make a large file appear at once.
        let held = samples_held(file.format(), file.channels(), history_bytes.min(HISTORY_BYTES));
        let is_held = span_samples(&outline(&file)) <= held;
        let is_cut_off = !file.notes().is_empty();
        if !is_one_stream(&file) || is_held && !is_cut_off {
            return Ok(None);
        }
        let recording = SummarizedFile::open(path)?;
        if is_held && !recording.is_fresh() {
            return Ok(None);
        }
        Ok(Some(Self::new(path, recording)))
    }

    /// Opens a part of a longer recording, of any size.
    pub(super) fn open_part(path: &Path) -> Result<Self, Error> {
        Ok(Self::new(path, SummarizedFile::open_part(path)?))
    }

    fn new(path: &Path, recording: SummarizedFile) -> Self {
        let outline = outline(recording.file());
        let progress = Progress::default();
        let (path, nodes, row) = (path.to_owned(), Vec::new(), SpectralRow::default());
        let on_disk = Self { path, recording, most_samples: u64::MAX, outline, progress, nodes, row };
        on_disk.report();
        on_disk
    }

    /// Limits it to the first N samples per channel.
    pub(crate) fn up_to(mut self, samples: u64) -> Self {
        self.most_samples = samples;
        end_at(&mut self.outline, samples);
        self
    }

    /// Shows nothing that is recorded from now on.
    pub(crate) fn cut_off_now(self) -> Self {
        match self.progress.is_being_recorded() {
            true => {
                let samples = self.len_samples();
                self.up_to(samples)
            }
            false => self,
        }
    }

    /// Samples per channel to show.
    pub(crate) fn len_samples(&self) -> u64 {
        self.file().len_samples().min(self.most_samples)
    }

    pub(crate) fn file(&self) -> &SampleFile {
        self.recording.file()
    }

    pub(crate) fn progress(&self) -> Progress {
        self.progress.clone()
    }

    fn report(&self) {
        // A killed recorder changes no file.
        let is_being_recorded = self.file().is_being_recorded() && SampleFile::has_recorder(&self.path);
        self.progress.set_being_recorded(is_being_recorded);
        let samples = self.len_samples().max(1);
        self.progress.set(match self.recording.state() {
            SummaryState::Whole => None,
            SummaryState::Making => {
                let percent = self.known_samples() * 100 / samples;
                let place = self.recording.other_place();
                let place =
                    place.map_or(String::new(), |place| format!("; the summary goes to {}", place.display()));
                Some(format!("wide pictures are estimates until the file is read: {percent} %{place}"))
            }
            SummaryState::Failed(why) => Some(format!("wide pictures are estimates: {why}")),
        });
    }
}

impl Recording for OnDisk {
    fn outline(&self) -> &RecordingOutline {
        &self.outline
    }

    fn refresh(&mut self) -> bool {
        let changed = self.recording.refresh() && is_one_stream(self.recording.file());
        if changed {
            self.outline = outline(self.recording.file());
            end_at(&mut self.outline, self.most_samples);
        }
        self.report();
        changed
    }

    fn read(&mut self, position: u64, length: usize, out: &mut Vec<u8>) -> io::Result<()> {
        self.recording.read(position, length, out).map_err(io::Error::other)
    }

    fn known_samples(&self) -> u64 {
        self.recording.known_samples().min(self.most_samples)
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
        self.nodes.clear();
        // A node may extend beyond the end.
        let end = self.len_samples();
        let whole = if end < self.file().len_samples() { end >> log2 } else { nodes.end };
        self.recording.extremes(lane, log2, nodes.start..nodes.end.min(whole), &mut self.nodes)?;
        if nodes.end > whole {
            self.nodes.push(self.recording.extremes_up_to(lane, log2, whole, end)?);
        }
        out.extend(self.nodes.iter().map(|node| (node.min, node.max)));
        Ok(())
    }

    fn sums(&self, lane: usize, samples: Range<u64>) -> RecordingSums {
        let Some(summary) = self.recording.summary() else { return RecordingSums::default() };
        let (sums, _) = summary.sums(lane, samples);
        RecordingSums { sum: sums.sum, sum_sq: sums.sum_sq, not_finite: sums.not_finite, count: sums.count }
    }

    fn known_power_samples(&mut self) -> Option<u64> {
        // Rows reach beyond an end that is not the file's.
        if self.most_samples < self.file().len_samples() {
            return None;
        }
        let known = self.recording.spectra().map(|spectra| spectra.known_samples());
        known.or((self.recording.spectra_state() == SummaryState::Making).then_some(0))
    }

    fn power_level(&self, log2: u32) -> Option<u32> {
        SpectralSummary::level(log2)
    }

    fn power(
        &mut self,
        channel: usize,
        log2: u32,
        number: u64,
        power: &mut RecordingPower,
    ) -> io::Result<()> {
        let spectra = self.recording.spectra().ok_or(io::ErrorKind::NotFound)?;
        let read = spectra.row(channel, log2, number, &mut self.row);
        if read.is_err() {
            self.recording.remake_spectra();
        }
        read?;
        std::mem::swap(&mut power.highest, &mut self.row.highest);
        std::mem::swap(&mut power.mean, &mut self.row.mean);
        Ok(())
    }

    fn memory_bytes(&self) -> usize {
        self.recording.summary().map_or(0, |summary| summary.memory_bytes())
    }
}

pub(super) fn outline(file: &SampleFile) -> RecordingOutline {
    let stretch = |segment: &grebe_recording::Segment| Stretch {
        position: segment.position,
        length_samples: segment.length_samples,
        first_sample_index: segment.first_sample_index,
    };
    RecordingOutline {
        format: file.format(),
        channels: file.channels(),
        rate_hz: file.rate_hz().unwrap_or(0.0),
        stretches: file.segments().iter().map(stretch).collect(),
        descriptions: file.descriptions(),
        annotations: file.stream_annotations(),
    }
}

/// From the first to the last sample, gaps included.
pub(super) fn span_samples(outline: &RecordingOutline) -> u64 {
    let (first, last) = (outline.stretches.first(), outline.stretches.last());
    first
        .zip(last)
        .map_or(0, |(first, last)| last.first_sample_index + last.length_samples - first.first_sample_index)
}

/// Limits the outline to N samples per channel.
fn end_at(outline: &mut RecordingOutline, samples: u64) {
    outline.stretches.retain(|stretch| stretch.position < samples);
    if let Some(last) = outline.stretches.last_mut() {
        last.length_samples = last.length_samples.min(samples - last.position);
    }
}

/// Whether indices never decrease.
pub(super) fn is_one_stream(file: &SampleFile) -> bool {
    let follows = |pair: &[grebe_recording::Segment]| {
        pair[0]
            .first_sample_index
            .checked_add(pair[0].length_samples)
            .is_some_and(|end| pair[1].first_sample_index >= end)
    };
    file.segments().windows(2).all(follows)
}

/// Memory for the history of all scopes of a command.
pub(crate) const HISTORY_BYTES: usize = 512 << 20;
