//! Distributes incoming messages to the threads that handle them.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};

use crate::error::{Error, Result};
use crate::name::words;
use crate::progress::add;
use crate::receive::basis::ToSign;
use crate::receive::comparing::chunk_sizes;
use crate::receive::frames::Frames;
use crate::receive::parts::{Piece, ToParts, is_large};
use crate::receive::pending::Pending;
use crate::receive::shared::Receiving;
use crate::receive::signing::{FinerRequest, queue};
use crate::receive::small::{Batch, Content};
use crate::wire::{DataFrame, EntryId, FinerRange, Kind, Note, RecordKind, Refine, SenderEnd, Shift};

/// Destinations of incoming messages.
pub(super) struct Dispatch<'a> {
    pub(super) receiving: &'a Receiving,
    pub(super) listings: Sender<Vec<u8>>,
    pub(super) small: Sender<Batch>,
    pub(super) pieces: Sender<ToParts>,
    pub(super) to_sign: Sender<ToSign>,
    pub(super) again: Sender<FinerRequest>,
    /// Files that arrive in pieces, of which some have arrived.
    pub(super) large: HashSet<EntryId>,
}

impl Dispatch<'_> {
    pub(super) fn run(mut self, frames: &mut Frames) -> Result<()> {
        let receiving = self.receiving;
        loop {
            let frame = match frames.next(&receiving.cancel, || receiving.is_stopped()) {
                Ok(frame) => frame,
                // Another thread has reported the reason.
                Err(Error::Cancelled) => return Ok(()),
                Err(error) => return Err(error),
            };
            receiving.progress.stream_bytes.store(frames.read_bytes, Ordering::Relaxed);
            match frame.kind {
                Kind::Listing => {
                    receiving.pending.listing_came();
                    // The thread is gone only after a failure.
                    let _ = self.listings.send(frame.body);
                }
                Kind::Data => self.data(DataFrame::open(frame.body)?)?,
                Kind::Refine => {
                    let _ = self.again.send(FinerRequest::Refine(Refine::decode(&frame.body)?));
                }
                Kind::FinerRange => {
                    let _ = self.again.send(FinerRequest::FinerRange(FinerRange::decode(&frame.body)?));
                }
                Kind::Shift => {
                    let Shift { id, bytes } = Shift::decode(&frame.body)?;
                    receiving.along.shift(id, bytes);
                }
                Kind::LeftOut => {
                    let note = Note::decode(&frame.body)?;
                    receiving.is_lacking.store(true, Ordering::Release);
                    receiving.left_out.add(&receiving.progress, note.name, note.words);
                }
                Kind::End => {
                    frames.sender_end = Some(SenderEnd::decode(&frame.body)?);
                    // The sender did not wait for confirmation and will send another end.
                    if self.awaits_more() {
                        frames.go_on();
                        continue;
                    }
                    receiving.progress.is_scanned.store(true, Ordering::Release);
                    return Ok(());
                }
                Kind::Failed => return Err(Error::Peer { what: words(&frame.body) }),
                _ => return Err(Error::Malformed { what: "a message at the wrong time" }),
            }
        }
    }

    fn data(&mut self, frame: DataFrame) -> Result<()> {
        let body = Arc::new(frame.body);
        let mut files = Vec::new();
        for record in frame.records {
            let id = record.id;
            if let RecordKind::Early { offset, content } = record.kind {
                let (done, shown) = (&self.receiving.done, &self.receiving.progress);
                for counter in [&done.data_bytes, &shown.data_bytes, &shown.bytes_done] {
                    add(counter, content.len() as u64);
                }
                if !self.receiving.along.early(id, &body, content.clone(), offset) {
                    self.piece(id, None, &body, RecordKind::Early { offset, content });
                }
                continue;
            }
            if let RecordKind::Piece { content, .. } | RecordKind::Whole { content, .. } = &record.kind {
                add(&self.receiving.done.data_bytes, content.len() as u64);
                add(&self.receiving.progress.data_bytes, content.len() as u64);
                if matches!(record.kind, RecordKind::Piece { .. }) {
                    add(&self.receiving.progress.bytes_done, content.len() as u64);
                }
            }
            if self.large.contains(&id) {
                if matches!(record.kind, RecordKind::End { .. } | RecordKind::Failed { .. }) {
                    self.large.remove(&id);
                }
                self.piece(id, None, &body, record.kind);
                continue;
            }
            // Refused content still arrives and is discarded.
            let Some(file) = self.receiving.take(id)? else { continue };
            let content = match record.kind {
                RecordKind::Whole { content, later_ns } => {
                    self.receiving.bases.done(id);
                    Content::Bytes { range: content, later_ns }
                }
                RecordKind::Same => Content::Same,
                RecordKind::Local if !is_large(&file) => Content::Local,
                RecordKind::Differs => {
                    self.differs(file)?;
                    continue;
                }
                kind => {
                    let is_end = matches!(
                        kind,
                        RecordKind::End { .. } | RecordKind::Failed { .. } | RecordKind::Local
                    );
                    if !is_end {
                        self.large.insert(id);
                    }
                    self.piece(id, Some(file), &body, kind);
                    continue;
                }
            };
            files.push((file, content));
        }
        if !files.is_empty() {
            let _ = self.small.send(Batch { body, files });
        }
        Ok(())
    }

    /// The sender's file differs from the one whose hash was sent, so its signature follows.
    fn differs(&self, mut file: Pending) -> Result<()> {
        if !std::mem::take(&mut file.is_hashed) {
            return Err(Error::Malformed { what: "that a file is not what nobody has told" });
        }
        if self.receiving.options.dry_run {
            self.receiving.copied(&file, file.bytes);
            return Ok(());
        }
        file.adopted = None;
        let sizes = chunk_sizes(self.receiving, file.bytes, file.bytes);
        let Pending { id, place, bytes, mode, .. } = file;
        let to_sign = ToSign { id, place, name: file.name.clone(), elsewhere: None, bytes, mode, sizes };
        self.receiving.bases.will_be_told(id);
        self.receiving.pending.expect(file)?;
        queue(&self.to_sign, to_sign)
    }

    fn piece(&self, id: EntryId, begins: Option<Pending>, body: &Arc<Vec<u8>>, record: RecordKind) {
        let _ = self.pieces.send(ToParts::Piece(Piece { id, begins, body: body.clone(), record }));
    }

    /// Whether some earlier data must be sent again. If the responsible thread is gone, another one reports
    /// why.
    fn awaits_more(&self) -> bool {
        let (say, said) = bounded(1);
        let _ = self.pieces.send(ToParts::Settle(say));
        loop {
            match said.recv_timeout(Duration::from_millis(100)) {
                Ok(awaits) => return awaits,
                // A thread that failed meanwhile does not answer.
                Err(RecvTimeoutError::Timeout) if !self.receiving.is_stopped() => {}
                Err(_) => return false,
            }
        }
    }
}
