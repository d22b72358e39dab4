//! Files of which the receiver has some: each is compared with a signature, by threads of their own, since that waits for the receiver.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use grebe_packet::Cancel;

use crate::delta::{ChunkSizes, Piece, Signature, compare};
use crate::directories::{Directories, Place};
use crate::error::{Error, Result};
use crate::send::reading::{How, Wanted, regular};
use crate::system::{self, Metadata};
use crate::wire::{EntryId, Made, SignaturePart, SignatureState};

/// Files between the answer that some of them is there and the word that they were made.
pub(super) struct Comparing {
    files: HashMap<EntryId, Comparison>,
    jobs: Sender<Job>,
    pub(super) compared: Receiver<Compared>,
    /// Files that were sent in pieces, until the receiver has said that it made them.
    unconfirmed: HashMap<EntryId, Wanted>,
    /// Of signatures that came and were not used.
    signature_bytes: usize,
}

struct Comparison {
    file: Wanted,
    /// Until it is whole.
    signature: Option<(Signature, Sender<Signature>)>,
    signature_bytes: usize,
}

/// A file that is to be compared.
pub(super) struct Job {
    id: EntryId,
    place: Place,
    name: Box<[u8]>,
    follows: bool,
    sizes: ChunkSizes,
    signature: Receiver<Signature>,
}

/// What came of a comparison; an error: the file is to be sent whole.
pub(super) struct Compared {
    id: EntryId,
    plan: io::Result<Plan>,
}

/// How a file is made of what the receiver has.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// When it was compared.
    pub(super) before: Metadata,
    pub(super) pieces: Vec<Piece>,
}

/// More than an honest receiver tells before it has seen something made of it.
const SIGNATURE_BYTES_MAX: usize = 256 << 20;

impl Comparing {
    /// Those who [compare](compare_files) take the jobs and give what came of them.
    pub(super) fn new() -> (Self, Receiver<Job>, Sender<Compared>) {
        // What is in them is bounded: by the files that were listed, and that are under way.
        let ((jobs, jobs_out), (out, compared)) = (unbounded(), unbounded());
        let files = HashMap::new();
        (Self { files, jobs, compared, unconfirmed: HashMap::new(), signature_bytes: 0 }, jobs_out, out)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.unconfirmed.is_empty()
    }

    pub(super) fn files(&self) -> usize {
        self.files.len() + self.unconfirmed.len()
    }

    /// The receiver has some of a file.
    pub(super) fn begin(&mut self, file: Wanted, sizes: ChunkSizes) {
        let (whole, signature) = bounded(1);
        let Wanted { id, place, follows, .. } = file;
        let job = Job { id, place, name: file.name.clone(), follows, sizes, signature };
        let signature = Some((Signature::new(sizes), whole));
        self.files.insert(id, Comparison { file, signature, signature_bytes: 0 });
        // Those who compare live as long as this end does.
        let _ = self.jobs.send(job);
    }

    pub(super) fn signature(&mut self, body: &[u8]) -> Result<()> {
        let part = SignaturePart::decode(body)?;
        let comparison = self.files.get_mut(&part.id);
        let comparison = comparison.ok_or(Error::Malformed { what: "a signature that nobody asked for" })?;
        let Some((signature, _)) = &mut comparison.signature else {
            return Err(Error::Malformed { what: "more of a signature that was whole" });
        };
        comparison.signature_bytes += part.piece.len();
        self.signature_bytes += part.piece.len();
        if self.signature_bytes > SIGNATURE_BYTES_MAX {
            return Err(Error::Malformed { what: "more of signatures than is kept" });
        }
        signature.add(&part.piece).ok_or(Error::Malformed { what: "a signature that is none" })?;
        match part.state {
            SignatureState::Begun => {}
            // Without one the comparison fails, and the file is sent whole.
            SignatureState::Failed => comparison.signature = None,
            SignatureState::Whole => {
                if let Some((signature, whole)) = comparison.signature.take() {
                    let _ = whole.send(signature);
                }
            }
        }
        Ok(())
    }

    /// How a file is to be sent, now that it was compared.
    pub(super) fn compared(&mut self, compared: Compared) -> Option<(Wanted, How)> {
        let comparison = self.files.remove(&compared.id)?;
        self.signature_bytes -= comparison.signature_bytes;
        let how = match compared.plan {
            Ok(plan) if plan.has_copies() => How::Changed(plan),
            _ => How::Whole,
        };
        Some((comparison.file, how))
    }

    /// All of a file was sent that was made of pieces.
    pub(super) fn sent(&mut self, file: Wanted) {
        self.unconfirmed.insert(file.id, file);
    }

    /// The receiver has made a file, or could not: then it is returned, and to be sent whole.
    pub(super) fn made(&mut self, body: &[u8]) -> Result<Option<Wanted>> {
        let made = Made::decode(body)?;
        let file = self.unconfirmed.remove(&made.id);
        let file = file.ok_or(Error::Malformed { what: "word of a file that was not compared" })?;
        Ok((!made.is_good).then_some(file))
    }
}

impl Plan {
    fn has_copies(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Copy { .. }))
    }
}

/// Until there are no more jobs.
pub(super) fn compare_files(
    jobs: &Receiver<Job>,
    compared: &Sender<Compared>,
    directories: &Directories,
    cancel: &Cancel,
) {
    for job in jobs {
        let plan = job.plan(directories, cancel);
        if compared.send(Compared { id: job.id, plan }).is_err() {
            return;
        }
    }
}

impl Job {
    fn plan(&self, directories: &Directories, cancel: &Cancel) -> io::Result<Plan> {
        let open = directories.open(self.place)?.read_file(&self.name, self.follows)?;
        let before = regular(&open)?;
        let mut pieces = Vec::new();
        compare(Cancellable { file: &open, cancel }, self.sizes, &self.signature, |piece| {
            pieces.push(piece);
            io::Result::Ok(())
        })?;
        if system::metadata(&open)?.is_same_content(&before) {
            Ok(Plan { before, pieces })
        } else {
            Err(io::Error::other("it changed while it was compared"))
        }
    }
}

struct Cancellable<'a> {
    file: &'a File,
    cancel: &'a Cancel,
}

impl Read for Cancellable<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("stopped"));
        }
        self.file.read(out)
    }
}
