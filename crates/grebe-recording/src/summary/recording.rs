//! The summary of a recording in progress: a separate thread makes it from the blocks that go to the disk.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::{Builder, JoinHandle};

use grebe_frame::SampleFormat;

use super::builder::SummaryWriter;
use super::maker::{SMALL_BYTES, Writer, give_way, stamp};
use super::place;
use super::spectra::SpectraWriter;
use crate::disk::{Lag, Tapped};
use crate::sample_file::SampleFile;

/// The summaries of a recording that are being made; each is given up by itself.
#[derive(Debug)]
pub(crate) struct RecordingSummaries {
    extremes: Option<Summarizer<SummaryWriter>>,
    spectra: Option<Summarizer<SpectraWriter>>,
}

/// Blocks of the data files on their way to the disk, and how far their reader is behind.
pub(crate) type Blocks = (Receiver<Tapped>, Arc<Lag>);

/// A thread that makes a summary.
#[derive(Debug)]
struct Summarizer<W> {
    thread: JoinHandle<Option<W>>,
    lag: Arc<Lag>,
}

/// Blocks of a channel, and how much of each was taken.
type Waiting = VecDeque<(Tapped, usize)>;

impl RecordingSummaries {
    /// Begins the summaries of the recording that `path` opens, with one file per channel; `gives_way` yields
    /// to threads that a stream waits for. One whose thread the system refuses is missing: then the first
    /// viewer makes it.
    pub(crate) fn start(
        path: &Path,
        format: SampleFormat,
        channels: usize,
        [extremes, spectra]: [Blocks; 2],
        gives_way: bool,
    ) -> Self {
        Self {
            extremes: Summarizer::start(path, format, channels, extremes, gives_way),
            spectra: Summarizer::start(path, format, channels, spectra, gives_way),
        }
    }

    /// How many were given up of extremes and of spectra: the processor had no time, or the disk no room.
    pub(crate) fn lost(&self) -> [u64; 2] {
        let is_lost = |lag: Option<&Arc<Lag>>| u64::from(lag.is_some_and(|lag| lag.is_lost()));
        [is_lost(self.extremes.as_ref().map(|it| &it.lag)), is_lost(self.spectra.as_ref().map(|it| &it.lag))]
    }

    /// Waits for their end after the last block, and names those that match the recording at `path`, which is
    /// closed and has `len_samples` samples per channel. The first viewer makes a missing one.
    pub(crate) fn finish(self, path: &Path, len_samples: Option<u64>) {
        // Both end, even without a result.
        let (extremes, spectra) = (
            self.extremes.and_then(|extremes| extremes.end(len_samples)),
            self.spectra.and_then(|spectra| spectra.end(len_samples)),
        );
        if extremes.is_none() && spectra.is_none() {
            return;
        }
        let Ok(mut file) = SampleFile::open(path) else { return };
        let size = file.len_samples() * (file.format().bytes() * file.channels()) as u64;
        if size >= SMALL_BYTES
            && let Ok(stamp) = stamp(&mut file)
        {
            let _ = extremes.map(|extremes| extremes.finish(stamp));
            let _ = spectra.map(|spectra| spectra.finish(stamp));
        }
    }

    #[cfg(test)]
    pub(crate) fn lose(&self) {
        self.extremes.as_ref().unwrap().lag.lose();
    }
}

impl<W: Writer> Summarizer<W> {
    fn start(
        path: &Path,
        format: SampleFormat,
        channels: usize,
        (blocks, lag): Blocks,
        gives_way: bool,
    ) -> Option<Self> {
        let (place, own) = (place::beside(path, W::KIND), lag.clone());
        let work = move || {
            if gives_way {
                give_way();
            }
            // In this thread, because a disk may be slow.
            let made = W::create(&place, format, channels)
                .ok()
                .and_then(|writer| summarize(writer, &blocks, &own, channels));
            if made.is_none() {
                own.lose();
            }
            made
        };
        let thread = Builder::new().name("summary".to_owned()).spawn(work).ok()?;
        Some(Self { thread, lag })
    }

    /// The summary of all `len_samples`.
    fn end(self, len_samples: Option<u64>) -> Option<W> {
        // A panic of the thread was printed.
        self.thread.join().ok().flatten().filter(|writer| Some(writer.samples()) == len_samples)
    }
}

/// Takes blocks of all channels until the last; `None` if given up.
fn summarize<W: Writer>(mut writer: W, blocks: &Receiver<Tapped>, lag: &Lag, channels: usize) -> Option<W> {
    let mut waiting: Vec<Waiting> = (0..channels).map(|_| Waiting::new()).collect();
    while let Ok(block) = blocks.recv() {
        if lag.is_lost() {
            return None;
        }
        waiting[block.file].push_back((block, 0));
        // As far as there are samples of all channels.
        while let Some(step) = waiting.iter().map(left_of_first).min().filter(|&step| step > 0) {
            let first = waiting.iter().filter_map(Waiting::front);
            let channels: Vec<&[u8]> =
                first.map(|(block, done)| &block.bytes()[*done..*done + step]).collect();
            if writer.append(&channels).is_err() {
                return None;
            }
            for channel in &mut waiting {
                if let Some((block, done)) = channel.front_mut() {
                    *done += step;
                    if *done == block.bytes().len() {
                        channel.pop_front();
                    }
                }
            }
        }
    }
    (!lag.is_lost()).then_some(writer)
}

fn left_of_first(channel: &Waiting) -> usize {
    channel.front().map_or(0, |(block, done)| block.bytes().len() - done)
}
