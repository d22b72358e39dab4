//! The summary of a recording in progress: a separate thread makes it from the blocks that go to the disk.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::{Builder, JoinHandle};

use grebe_frame::SampleFormat;

use super::builder::SummaryWriter;
use super::place;
use super::summarized::{SMALL_BYTES, give_way, stamp};
use crate::disk::{Lag, Tapped};
use crate::sample_file::SampleFile;

/// A summary that is being made.
#[derive(Debug)]
pub(crate) struct RecordingSummary {
    thread: JoinHandle<Option<SummaryWriter>>,
    lag: Arc<Lag>,
}

/// Blocks of a channel, and how much of each was taken.
type Waiting = VecDeque<(Tapped, usize)>;

impl RecordingSummary {
    /// Begins the summary of the recording that `path` opens, with one file per channel; `gives_way` yields
    /// to threads that a stream waits for. `None` if the system gives no thread: then the first viewer makes
    /// a summary.
    pub(crate) fn start(
        path: &Path,
        format: SampleFormat,
        channels: usize,
        blocks: Receiver<Tapped>,
        lag: Arc<Lag>,
        gives_way: bool,
    ) -> Option<Self> {
        let (place, own) = (place::beside(path), lag.clone());
        let work = move || {
            if gives_way {
                give_way();
            }
            // In this thread, because a disk may be slow.
            let made = SummaryWriter::create(&place, format, channels)
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

    /// Whether it was given up: the processor had no time for it, or the disk no room.
    pub(crate) fn is_lost(&self) -> bool {
        self.lag.is_lost()
    }

    #[cfg(test)]
    pub(crate) fn lose(&self) {
        self.lag.lose();
    }

    /// Waits for its end after the last block, and names it if it matches the recording at `path`, which is
    /// closed and has `len_samples` samples per channel. The first viewer makes a missing one.
    pub(crate) fn finish(self, path: &Path, len_samples: Option<u64>) {
        // A panic of the thread was printed.
        let Ok(Some(writer)) = self.thread.join() else { return };
        if Some(writer.samples()) != len_samples || writer.data_bytes() < SMALL_BYTES {
            return;
        }
        let Ok(mut file) = SampleFile::open(path) else { return };
        if let Ok(stamp) = stamp(&mut file) {
            let _ = writer.finish(stamp);
        }
    }
}

/// Takes blocks of all channels until none come any more; `None` where that was given up.
fn summarize(
    mut writer: SummaryWriter,
    blocks: &Receiver<Tapped>,
    lag: &Lag,
    channels: usize,
) -> Option<SummaryWriter> {
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
