//! Which datagrams become frames of the stream.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use grebe_datagram::Received;
use grebe_flow::{Context, Outputs};
use grebe_frame::{BatchMut, Header, Refusals, StreamTracker};

use crate::stream::Limit;

/// Sorts datagrams: which frames go on, and which are counted and left out.
#[derive(Debug, Default)]
pub(super) struct Intake {
    pub(super) tracker: StreamTracker,
    pub(super) refusals: Refusals,
    /// Whose stream this is.
    sender: Option<SocketAddr>,
    /// When the sender was last heard.
    pub(super) heard: Option<Instant>,
    pub(super) foreign_datagrams: u64,
    pub(super) copied_frames: u64,
    /// Where frames of sparse slabs are gathered, so that a small datagram does not pin 64 KiB.
    pub(super) compact: Option<BatchMut>,
    pub(super) limit: Limit,
}

impl Intake {
    /// Takes one slab of datagrams; hands it back for the next ones unless it goes on itself.
    pub(super) fn take(
        &mut self,
        mut slab: BatchMut,
        received: &Received,
        output: &mut Outputs,
        ctx: &Context,
    ) -> Option<BatchMut> {
        slab.clear();
        for range in received.segments() {
            match Header::parse_datagram(&slab.chunk()[range.clone()]) {
                Ok(header) if self.is_ours(received.from) => {
                    let arrival = self.tracker.arrive(&header);
                    if arrival.is_new() && !header.is_end_of_stream() {
                        // Cannot be full: the datagram lies in the chunk, and every frame is longer than a table's row.
                        let _ = slab.adopt(range.start, &header);
                    }
                }
                Ok(_) => self.foreign_datagrams += 1,
                Err(reason) => self.refusals.add(reason),
            }
        }
        if self.sender == Some(received.from) {
            self.heard = Some(Instant::now());
        }
        if slab.is_empty() {
            return Some(slab);
        }
        if slab.filled_bytes() >= slab.capacity_bytes() / SPARSE || !self.compact_from(&slab, ctx) {
            // In order: what was gathered before goes first.
            self.flush_compact(output, ctx);
            self.limit.send(slab.freeze(), output, ctx);
            return None;
        }
        if self.compact.as_ref().is_some_and(|compact| compact.filled_bytes() >= compact.capacity_bytes() / 2)
        {
            self.flush_compact(output, ctx);
        }
        Some(slab)
    }

    /// Copies a sparse slab's frames together; whether they fit.
    fn compact_from(&mut self, slab: &BatchMut, ctx: &Context) -> bool {
        let Some(compact) = self.compact.as_mut() else { return false };
        if compact.capacity_bytes() - compact.filled_bytes()
            < slab.capacity_bytes() / SPARSE + 64 * slab.len()
        {
            return false;
        }
        let copied = slab.len() as u64;
        for frame in slab.frames() {
            // Fits: the room was checked, alignment included.
            let _ = compact.push_copy(&frame);
        }
        self.copied_frames += copied;
        ctx.count_copied(slab.len());
        true
    }

    pub(super) fn flush_compact(&mut self, output: &mut Outputs, ctx: &Context) {
        if self.compact.as_ref().is_some_and(|compact| !compact.is_empty())
            && let Some(compact) = self.compact.take()
        {
            self.limit.send(compact.freeze(), output, ctx);
        }
    }

    fn is_ours(&mut self, from: SocketAddr) -> bool {
        if self.sender == Some(from) {
            return true;
        }
        let now = Instant::now();
        if self.sender.is_some() && self.heard.is_some_and(|heard| now - heard < TAKEOVER) {
            return false;
        }
        if self.sender.is_some() {
            self.tracker.forget();
        }
        self.sender = Some(from);
        true
    }
}

/// A slab filled to less than a quarter is copied out instead of lent.
const SPARSE: usize = 4;
/// For how long a silent sender keeps its stream.
const TAKEOVER: Duration = Duration::from_millis(500);
