//! How a recording ends: closed, in parts, or by a disk that fails.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::{SigmfSummary, SigmfWriter, summaries};
use crate::disk::DiskFile;
use crate::error::Error;
use crate::output::NameLock;
use crate::sigmf::create::{Begun, Prepared};
use crate::sigmf::metadata_writer::{Closed, Event, MetadataWriter};
use crate::summary::RecordingSummaries;

/// A recording that got its last sample, and is being closed.
#[derive(Debug)]
pub(crate) struct Closing {
    metadata: Option<MetadataWriter>,
    summaries: Option<RecordingSummaries>,
    /// The path that opens it.
    path: PathBuf,
    data: Vec<Arc<DiskFile>>,
    /// Until then no other recorder can use this name.
    _name: NameLock,
}

impl Closing {
    /// Waits until it is closed.
    ///
    /// # Errors
    /// As for [`SigmfWriter::finish`].
    pub(crate) fn join(mut self) -> Result<(), Error> {
        let Some(metadata) = self.metadata.take() else { return Ok(()) };
        let closed = metadata.join();
        let len_samples = closed.as_ref().ok().map(|closed| closed.len_samples);
        if let Some(summaries) = self.summaries.take() {
            summaries.finish(&self.path, len_samples);
        }
        let good_samples = closed?.len_samples;
        match self.data.iter().find_map(|file| Some((file.path().to_owned(), file.failure()?))) {
            Some((path, source)) => Err(Error::Write { path, source, good_samples }),
            None => Ok(()),
        }
    }
}

impl SigmfWriter {
    /// Continues in another recording of the same settings with the next sample; joining the result closes
    /// the previous files. Makes no request to the disk. If the system gives no thread, nothing changes.
    pub(crate) fn rotate(&mut self, next: Prepared, name: NameLock) -> Result<Closing, Error> {
        let Begun { mut parts, metadata, files } = next.begin()?;
        let summarize = || summaries(&mut parts, self.format, &self.disk, &files[0], true);
        let summaries = self.makes_summary.then(summarize);
        let mut before = std::mem::replace(&mut self.parts, parts);
        before.iter_mut().for_each(|part| part.end.finish(&self.disk));
        self.tell(Event::Finish);
        let metadata = self.metadata.replace(metadata);
        let data = before.iter().map(|part| part.end.file().clone()).collect();
        self.lost_summaries = self.lost();
        // Its last block has come.
        drop(before);
        let summaries = std::mem::replace(&mut self.summaries, summaries);
        let name = std::mem::replace(&mut self.name, name);
        let path = std::mem::replace(&mut self.files, files).swap_remove(0);
        self.next_sample_index = None;
        (self.taken_samples, self.segments, self.annotations) = (0, 0, 0);
        Ok(Closing { metadata, summaries, path, data, _name: name })
    }

    /// Hands buffered data to the system, and waits until it has written them.
    ///
    /// # Errors
    /// [`Error::Write`], as for [`write`](Self::write).
    pub fn flush(&mut self) -> Result<(), Error> {
        for part in 0..self.parts.len() {
            let cut = self.parts[part].end.cut(&mut self.disk);
            cut.map_err(|source| self.fall_back(part, source))?;
        }
        self.parts.iter().for_each(|part| part.end.file().settle());
        match self.failed() {
            Some((part, source)) => Err(self.fall_back(part, source)),
            None => Ok(()),
        }
    }

    /// For a stream that pauses: data that have waited long enough go to the disk.
    ///
    /// # Errors
    /// [`Error::Write`], as for [`write`](Self::write).
    pub(crate) fn pause(&mut self) -> Result<(), Error> {
        if self.has_ended { Ok(()) } else { self.cut_if_due() }
    }

    /// Called several times a second: data that have waited long enough go to the disk. This also detects a
    /// file that cannot be written any more, although its next block is far from full.
    #[inline]
    pub(super) fn cut_if_due(&mut self) -> Result<(), Error> {
        if !self.metadata.as_ref().is_some_and(MetadataWriter::is_cut_due) {
            return Ok(());
        }
        self.parts.iter_mut().for_each(|part| part.end.cut_if_idle(&mut self.disk));
        match self.failed() {
            Some((part, source)) => Err(self.fall_back(part, source)),
            None => Ok(()),
        }
    }

    /// Writes the rest, waits until it is on the disk, and closes the recording with complete metadata.
    ///
    /// # Errors
    /// [`Error::Write`] if the rest cannot be written (the samples before it are closed all the same), or
    /// [`Error::File`] if the metadata cannot be written: the recording is then readable, and counts as not
    /// closed.
    pub fn finish(mut self) -> Result<SigmfSummary, Error> {
        self.parts.iter_mut().for_each(|part| part.end.finish(&self.disk));
        self.tell(Event::Finish);
        let Some(metadata) = self.metadata.take() else { return Err(self.ended()) };
        let closed = metadata.join();
        let disk = self.disk_report();
        self.end_summaries(closed.as_ref().ok().map(|closed| closed.len_samples));
        let Closed { len_samples, segments } = closed?;
        if !self.has_ended
            && let Some((part, source)) = self.failed()
        {
            let path = self.parts[part].end.file().path().to_owned();
            return Err(Error::Write { path, source, good_samples: len_samples });
        }
        let files = std::mem::take(&mut self.files);
        Ok(SigmfSummary { len_samples, segments, files, disk })
    }

    /// The first file that cannot be written any further, and why.
    pub(super) fn failed(&self) -> Option<(usize, io::Error)> {
        self.parts.iter().enumerate().find_map(|(part, data)| Some((part, data.end.file().failure()?)))
    }

    /// A write failed: all channels end where the last one succeeded for all.
    #[cold]
    pub(super) fn fall_back(&mut self, part: usize, source: io::Error) -> Error {
        self.has_ended = true;
        for part in &mut self.parts {
            part.end.discard();
            part.end.file().settle();
        }
        let good = self.parts.iter().map(|part| part.end.file().good_bytes() / part.frame_bytes() as u64);
        self.taken_samples = good.min().unwrap_or(0);
        let path = self.parts[part].end.file().path().to_owned();
        Error::Write { path, source, good_samples: self.taken_samples }
    }

    #[cold]
    pub(super) fn ended(&self) -> Error {
        let source = io::Error::other("an earlier write failed");
        let path = self.parts[0].end.file().path().to_owned();
        Error::Write { path, source, good_samples: self.taken_samples }
    }

    /// Names the summaries if they cover the recording, which is closed and has `len_samples` samples per
    /// channel.
    pub(super) fn end_summaries(&mut self, len_samples: Option<u64>) {
        self.parts.iter_mut().for_each(|part| part.end.untap());
        if let Some(summaries) = self.summaries.take() {
            summaries.finish(&self.files[0], len_samples);
        }
    }
}

impl Drop for SigmfWriter {
    fn drop(&mut self) {
        if let Some(metadata) = self.metadata.take() {
            self.parts.iter_mut().for_each(|part| part.end.finish(&self.disk));
            let _ = metadata.join();
            self.end_summaries(None);
        }
    }
}

#[cfg(test)]
impl SigmfWriter {
    /// Hands over the data of one file, as if there were no memory for more.
    pub(crate) fn cut(&mut self, part: usize) {
        self.parts[part].end.cut(&mut self.disk).unwrap();
    }

    /// Simulates a disk that is full after this number of bytes of a data file.
    pub(crate) fn limit(&self, part: usize, bytes: u64) {
        self.parts[part].end.file().limit(bytes);
    }

    /// The summary lags behind.
    pub(crate) fn lose_summary(&self) {
        self.summaries.as_ref().unwrap().lose();
    }
}
