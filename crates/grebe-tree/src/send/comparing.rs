//! Files that the receiver has in part. Separate threads compare each with a signature, because that waits
//! for the receiver.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use crossbeam_channel::{Receiver, Sender, unbounded};
use grebe_packet::Cancel;

use crate::delta::{
    self, ArrivedPart, ChunkSizes, EarlyBytes, EarlyComparisons, Finding, Gap, Signature, compare, gaps,
    read_piece, refine,
};
use crate::directories::{Directories, Place};
use crate::error::{Error, Result};
use crate::send::job::{How, Plan, Wanted};
use crate::stretch::Stretch;
use crate::system::{self, Metadata, regular};
use crate::wire::{EntryId, FinerRange, Kind, Made, MadeWord, Refine, Shift, SignaturePart, SignatureState};

/// Files between the answer that a part exists and the confirmation that they were made.
pub(super) struct Comparing {
    short_hashes: bool,
    files: HashMap<EntryId, Comparison>,
    jobs: Sender<Job>,
    pub(super) compared: Receiver<Came>,
    /// Files sent as pieces, until the receiver confirms them.
    unconfirmed: HashMap<EntryId, (Wanted, Metadata)>,
    /// Files that were given up while their signature was in transit.
    given_up: HashSet<EntryId>,
    /// Bytes of received signatures that are still in use.
    signature_bytes: usize,
    /// The receiver accepts an end before it has confirmed all files, and confirms them then.
    settles_at_end: bool,
    /// Bytes found to be new and not sent yet.
    pub(super) unsent: Arc<AtomicUsize>,
}

struct Comparison {
    file: Wanted,
    awaited: Awaited,
    /// Sizes of the early finer chunks, and their recipient.
    early: Option<(ChunkSizes, Sender<ArrivedPart>)>,
    signature_bytes: usize,
}

/// State of a comparison.
enum Awaited {
    /// Waits for more of the signature, which goes to the comparing threads as it arrives. The receiver may
    /// write ahead and want shifts.
    Signature { sizes: ChunkSizes, chunks: usize, told: Sender<ArrivedPart>, writes_along: bool },
    /// Waits for the comparing threads.
    Threads,
    /// Waits for the signature of ranges.
    Finer(Box<Finer>),
}

/// A second comparison.
struct Finer {
    plan: Plan,
    gaps: Vec<Gap>,
    sizes: ChunkSizes,
    /// Number of the first finer chunk.
    first: u32,
    signature: Signature,
}

/// A file to compare.
pub(super) struct Job {
    id: EntryId,
    place: Place,
    name: Box<[u8]>,
    follows: bool,
    look: Pass,
}

enum Pass {
    First { sizes: ChunkSizes, told: Receiver<ArrivedPart> },
    Second(Box<Finer>),
}

/// Messages of the comparing threads.
pub(super) enum Came {
    /// Before the end of the comparison.
    Shift(Shift),
    /// Before the end of the comparison.
    FinerRange(FinerRange),
    /// Before the end of the comparison.
    Early(EntryId, EarlyBytes),
    Compared(Compared),
}

/// Result of a comparison; on an error the file is sent whole.
pub(super) struct Compared {
    id: EntryId,
    plan: io::Result<Plan>,
    /// Parameters of a second comparison, if it pays.
    finer: Option<(ChunkSizes, u32, Vec<Gap>)>,
}

/// Next step for a compared file.
pub(super) enum Next {
    Send(Wanted, How),
    /// A message to the receiver, such as a request for finer chunks.
    Say(Kind, Vec<u8>),
    /// New data, whatever the plan will be.
    Early(EntryId, EarlyBytes),
}

/// Maximum, more than an honest receiver sends before it sees a result.
const SIGNATURE_BYTES_MAX: usize = 512 << 20;

/// Memory of one chunk, however short its message.
const CHUNK_BYTES: usize = 16;

impl Comparing {
    /// Makes the state. Threads in [compare](compare_files) take the jobs and return results. Both ends may
    /// have agreed on [short hashes](crate::Options::short_hashes).
    pub(super) fn new(short_hashes: bool) -> (Self, Receiver<Job>, Sender<Came>) {
        // Bounded by the files that are listed and in progress.
        let ((jobs, jobs_out), (out, compared)) = (unbounded(), unbounded());
        let comparing = Self {
            short_hashes,
            files: HashMap::new(),
            jobs,
            compared,
            unconfirmed: HashMap::new(),
            given_up: HashSet::new(),
            signature_bytes: 0,
            settles_at_end: false,
            unsent: Arc::default(),
        };
        (comparing, jobs_out, out)
    }

    /// Whether nothing more is to be sent, by the receiver's confirmations.
    pub(super) fn is_over(&self) -> bool {
        let is_confirmed = self.unconfirmed.is_empty() || self.settles_at_end;
        self.files.is_empty() && self.given_up.is_empty() && is_confirmed
    }

    pub(super) fn files(&self) -> usize {
        self.files.len() + self.unconfirmed.len()
    }

    /// Starts comparing a file that the receiver has in part.
    pub(super) fn begin(&mut self, file: Wanted, sizes: ChunkSizes) {
        // The length of a signature is bounded.
        let (tell, told) = unbounded();
        self.start(&file, Pass::First { sizes, told });
        let early = sizes.finer().map(|finer| (finer, tell.clone()));
        let awaited = Awaited::Signature { sizes, chunks: 0, told: tell, writes_along: false };
        self.files.insert(file.id, Comparison { file, awaited, early, signature_bytes: 0 });
    }

    /// Starts over with a file whose hash differs: the receiver sends a signature next. Both ends derive the
    /// sizes from its length.
    pub(super) fn begin_again(&mut self, file: Wanted) {
        if let Some(sizes) = ChunkSizes::for_file(file.bytes, self.short_hashes) {
            self.begin(file, sizes);
        }
    }

    /// Takes a part of a signature. Returns a file that can be sent now.
    pub(super) fn signature(&mut self, body: &[u8]) -> Result<Option<Next>> {
        let part = SignaturePart::decode(body)?;
        if part.state == SignatureState::Finer {
            return self.finer(&part);
        }
        if self.given_up.contains(&part.id) {
            if part.state != SignatureState::Begun {
                self.given_up.remove(&part.id);
            }
            return Ok(None);
        }
        let comparison = self.files.get_mut(&part.id);
        let comparison = comparison.ok_or(Error::Malformed { what: "a signature without a request" })?;
        let added = match &mut comparison.awaited {
            Awaited::Signature { sizes, chunks, told, writes_along } => {
                // Only a peer that supports both sends this.
                if part.piece.is_empty() && part.state == SignatureState::Begun {
                    (*writes_along, self.settles_at_end) = (true, true);
                    let _ = told.send(ArrivedPart::WritesAlong);
                }
                read_piece(&part.piece, *sizes, *chunks).map(|read| {
                    let added = read.len();
                    *chunks += added;
                    // If the thread has given up, it reports that itself.
                    let _ = told.send(ArrivedPart::Chunks(read));
                    added
                })
            }
            Awaited::Finer(finer) => {
                let before = finer.signature.len();
                finer.signature.add(&part.piece).map(|()| (finer.signature.len() - before) as usize)
            }
            Awaited::Threads => return Err(Error::Malformed { what: "more of a signature that was whole" }),
        };
        let added = added.ok_or(Error::Malformed { what: "an invalid signature" })?;
        comparison.signature_bytes += added * CHUNK_BYTES;
        self.signature_bytes += added * CHUNK_BYTES;
        if self.signature_bytes > SIGNATURE_BYTES_MAX {
            return Err(Error::Malformed { what: "more of signatures than is kept" });
        }
        if part.state == SignatureState::Begun {
            return Ok(None);
        }
        let is_whole = part.state == SignatureState::Whole;
        if !is_whole {
            // The comparing threads get no more early chunks.
            comparison.early = None;
        }
        match std::mem::replace(&mut comparison.awaited, Awaited::Threads) {
            Awaited::Signature { told, .. } if is_whole => {
                let _ = told.send(ArrivedPart::Whole);
            }
            // Without the rest the comparison fails, and the file is sent whole.
            Awaited::Signature { .. } | Awaited::Threads => {}
            Awaited::Finer(finer) if is_whole => {
                if let Some(comparison) = self.files.get(&part.id) {
                    self.start(&comparison.file, Pass::Second(finer));
                }
            }
            Awaited::Finer(finer) => {
                return Ok(self.over(Compared { id: part.id, plan: Ok(finer.plan), finer: None }));
            }
        }
        Ok(None)
    }

    /// Takes finer chunks of a gap. A comparison that was given up ignores them.
    fn finer(&mut self, part: &SignaturePart) -> Result<Option<Next>> {
        let Some(comparison) = self.files.get_mut(&part.id) else { return Ok(None) };
        let Some((sizes, told)) = &comparison.early else { return Ok(None) };
        let read = read_piece(&part.piece, *sizes, 0);
        let read = read.ok_or(Error::Malformed { what: "an invalid signature" })?;
        comparison.signature_bytes += read.len() * CHUNK_BYTES;
        self.signature_bytes += read.len() * CHUNK_BYTES;
        if self.signature_bytes > SIGNATURE_BYTES_MAX {
            return Err(Error::Malformed { what: "more of signatures than is kept" });
        }
        let _ = told.send(ArrivedPart::Finer(read));
        Ok(None)
    }

    /// Next step after a message of a comparing thread.
    pub(super) fn came(&mut self, came: Came) -> Option<Next> {
        match came {
            Came::Compared(compared) => self.over(compared),
            Came::Shift(shift) => {
                let awaited = &self.files.get(&shift.id)?.awaited;
                let is_asked = matches!(awaited, Awaited::Signature { writes_along: true, .. });
                is_asked.then(|| Next::Say(Kind::Shift, shift.encode()))
            }
            Came::FinerRange(look) => Some(Next::Say(Kind::FinerRange, look.encode())),
            Came::Early(id, bytes) => Some(Next::Early(id, bytes)),
        }
    }

    fn over(&mut self, compared: Compared) -> Option<Next> {
        let mut comparison = self.files.remove(&compared.id)?;
        let how = match (compared.plan, compared.finer) {
            (Ok(plan), Some((sizes, first, gaps))) if plan.has_copies() => {
                let stretches = gaps.iter().map(|gap| (gap.first, gap.chunks)).collect();
                let finer = Finer { plan, gaps, sizes, first, signature: Signature::new(sizes) };
                comparison.awaited = Awaited::Finer(Box::new(finer));
                self.files.insert(compared.id, comparison);
                let refine = Refine { id: compared.id, sizes, stretches };
                return Some(Next::Say(Kind::Refine, refine.encode()));
            }
            (Ok(plan), _) if plan.has_copies() => How::Changed(plan.settle()),
            _ => How::Whole,
        };
        self.signature_bytes -= comparison.signature_bytes;
        if matches!(comparison.awaited, Awaited::Signature { .. }) {
            self.given_up.insert(compared.id);
        }
        Some(Next::Send(comparison.file, how))
    }

    /// Notes that all pieces of a file were sent, with its metadata then.
    pub(super) fn sent(&mut self, file: Wanted, before: Metadata) {
        self.unconfirmed.insert(file.id, (file, before));
    }

    /// Takes the receiver's confirmation. On failure, returns the file and the parts to send.
    pub(super) fn made(&mut self, body: &[u8]) -> Result<Option<(Wanted, How)>> {
        let Made { id, word } = Made::decode(body)?;
        let file = self.unconfirmed.remove(&id);
        let (file, before) = file.ok_or(Error::Malformed { what: "word of a file that was not compared" })?;
        match word {
            MadeWord::Good => Ok(None),
            MadeWord::Whole => Ok(Some((file, How::Again))),
            MadeWord::Without(stretches) if stretches.iter().all(|stretch| stretch.end <= before.bytes) => {
                Ok(Some((file, How::Stretches(before, stretches))))
            }
            MadeWord::Without(_) => Err(Error::Malformed { what: "stretches beyond the end of a file" }),
        }
    }

    fn start(&self, file: &Wanted, look: Pass) {
        let Wanted { id, place, follows, .. } = *file;
        // The threads live as long as this end.
        let _ = self.jobs.send(Job { id, place, name: file.name.clone(), follows, look });
    }
}

/// Runs until there are no more jobs.
pub(super) fn compare_files(
    jobs: &Receiver<Job>,
    out: &Sender<Came>,
    unsent: &AtomicUsize,
    directories: &Directories,
    cancel: &Cancel,
) {
    for Job { id, place, name, follows, look } in jobs {
        let open = directories.read_file(place, &name, follows);
        let (plan, finer) = match look {
            Pass::First { sizes, told } => {
                let tell = |came| drop(out.send(came));
                match open.and_then(|open| first(id, &open, sizes, &told, unsent, tell, cancel)) {
                    Ok((plan, finer)) => (Ok(plan), finer),
                    Err(error) => (Err(error), None),
                }
            }
            Pass::Second(finer) => (Ok(second(open, *finer, cancel)), None),
        };
        if out.send(Came::Compared(Compared { id, plan, finer })).is_err() {
            return;
        }
    }
}

type Found = (Plan, Option<(ChunkSizes, u32, Vec<Gap>)>);

/// Results before the return are discarded if the copy is over.
fn first(
    id: EntryId,
    open: &File,
    sizes: ChunkSizes,
    told: &Receiver<ArrivedPart>,
    unsent: &AtomicUsize,
    mut tell: impl FnMut(Came),
    cancel: &Cancel,
) -> io::Result<Found> {
    let before = regular(open)?;
    let mut pieces = Vec::new();
    let is_stopped = || cancel.is_cancelled();
    let reader = Stretch::whole(open, is_stopped);
    let stretch = |bytes: Range<u64>| Ok(Stretch::of(open, bytes, is_stopped));
    let early = sizes.finer().map(|finer| EarlyComparisons::new(finer, unsent, stretch));
    let come = compare(reader, sizes, told, early, |finding| {
        match finding {
            Finding::Shift(bytes) => tell(Came::Shift(Shift { id, bytes })),
            Finding::FinerRange { first, chunks } => {
                let sizes = sizes.finer().unwrap_or(sizes);
                tell(Came::FinerRange(FinerRange { id, sizes, first, chunks }));
            }
            Finding::Early(bytes) => tell(Came::Early(id, bytes)),
            Finding::Piece(piece) => pieces.push(piece),
        }
        io::Result::Ok(())
    })?;
    if !system::metadata(open)?.is_same_content(&before) {
        return Err(io::Error::other("it changed while it was compared"));
    }
    let delta::Compared { signature, settled } = come;
    let finer = sizes.finer();
    let finer = finer.map(|finer| (finer, signature.len(), gaps(&pieces, &signature, &settled, finer)));
    Ok((Plan { before, pieces, settled }, finer.filter(|(_, _, gaps)| !gaps.is_empty())))
}

/// On an error the plan stays unchanged. Whether the file changed is checked when it is sent.
fn second(open: io::Result<File>, finer: Finer, cancel: &Cancel) -> Plan {
    let Finer { plan, gaps, sizes, first, signature } = finer;
    let Ok(open) = open else { return plan };
    let stretch = |bytes: Range<u64>| Ok(Stretch::of(&open, bytes, || cancel.is_cancelled()));
    match refine(&plan.pieces, &gaps, sizes, signature, first, stretch) {
        Ok(Some(pieces)) => Plan { pieces, ..plan },
        _ => plan,
    }
}
