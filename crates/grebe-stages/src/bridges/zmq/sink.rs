//! Sends messages of GNU Radio's items.

use std::sync::Arc;
use std::time::{Duration, Instant};

use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, Stage, StageResult};
use grebe_frame::{Batch, Description, Frame, Header};
use grebe_process::stream::is_same;
use grebe_ring::Cancel;

use crate::bridges::raw::interleaved;
use crate::bridges::zmq::meet::{Meeting, Peer, Peers};
use crate::bridges::zmq::tags::{Says, Tag, TagHeader};
use crate::bridges::zmq::uri::{Socket, Zmq};
use crate::bridges::zmq::wire::{self, COMMAND_BYTES_MAX, Head};
use crate::error::Error;
use crate::open::Notify;
use crate::session::Gaps;
use crate::transport::{Outlet, Reconnect, drain};

/// Sends a stream in messages of up to a chunk.
///
/// A PUB sends to all subscribers. A slow one loses whole messages, which are counted, and holds up no other. A PUSH
/// gives each message to one reader, and waits for one.
#[derive(Debug)]
pub(crate) struct ZmqSink {
    zmq: Zmq,
    socket: Socket,
    origin: Origin,
    readers: Vec<Reader>,
    /// Index of the next reader.
    turn: usize,
    message: Vec<u8>,
    /// Samples of a message; scratch space for one frame.
    samples: Vec<u8>,
    scratch: Vec<u8>,
    tags: Vec<Tag>,
    announced: Option<(f64, Option<Arc<Description>>)>,
    gaps: Gaps,
    served: Option<Instant>,
    counters: Counted,
}

/// Source of readers.
#[derive(Debug)]
enum Origin {
    /// Readers connect to us.
    Peers(Peers),
    /// We connect to one reader, and reconnect if requested.
    Place(Option<Reconnect<Peer>>),
}

#[derive(Debug)]
struct Reader {
    out: Outlet,
    topics: Vec<Vec<u8>>,
    input: Vec<u8>,
}

impl ZmqSink {
    /// Connects, or listens, reports the address and waits for the number of readers that the name requires.
    ///
    /// # Errors
    /// The address cannot be used, or the peer's socket type does not match; [`Error::Cancelled`].
    pub(crate) fn open(
        zmq: &Zmq,
        socket: Socket,
        cancel: &Cancel,
        notify: Notify<'_>,
    ) -> Result<Self, Error> {
        let meeting = Meeting::new(zmq, socket, notify)?;
        let mut first = None;
        let origin =
            if zmq.end.listens {
                Origin::Peers(meeting.peers())
            } else {
                first = Some(meeting.open(cancel, None)?);
                Origin::Place(zmq.end.reconnects.then(|| {
                    Reconnect::new(meeting.connector.uri(), move |cancel| meeting.open(cancel, None))
                }))
            };
        let mut sink = Self {
            zmq: zmq.clone(),
            socket,
            origin,
            readers: Vec::new(),
            turn: 0,
            message: Vec::new(),
            samples: Vec::new(),
            scratch: Vec::new(),
            tags: Vec::new(),
            announced: None,
            gaps: Gaps::default(),
            served: None,
            counters: Counted::default(),
        };
        first.into_iter().for_each(|peer| sink.admit(peer));
        let wanted = if zmq.end.listens { zmq.wait_peers } else { 1 };
        // A reader that we connect to may subscribe later.
        let until = (!zmq.end.listens).then(|| Instant::now() + SUBSCRIBES_WITHIN);
        let is_waiting = |sink: &Self| {
            sink.subscribers() < wanted
                && !sink.is_deserted()
                && until.is_none_or(|until| Instant::now() < until)
        };
        while is_waiting(&sink) {
            if cancel.is_cancelled() {
                return Err(Error::Cancelled);
            }
            std::thread::sleep(CHECK_EVERY);
            sink.serve_readers(drop)?;
        }
        Ok(sink)
    }

    /// Number of readers that receive: of a PUB those that have subscribed.
    fn subscribers(&self) -> usize {
        let gets = |reader: &&Reader| self.socket == Socket::Push || !reader.topics.is_empty();
        self.readers.iter().filter(gets).count()
    }

    fn admit(&mut self, peer: Peer) {
        if let Ok(out) = Outlet::new(peer.stream) {
            self.counters.readers.add(1);
            self.announced = None;
            self.readers.push(Reader { out, topics: Vec::new(), input: Vec::new() });
        }
    }

    /// Accepts readers and reads their subscriptions, at intervals. `tell` reports readers that leave and return.
    fn serve_readers(&mut self, tell: impl Fn(String)) -> Result<(), Error> {
        let now = Instant::now();
        if self.served.is_some_and(|served| now - served < CHECK_EVERY) {
            return Ok(());
        }
        self.served = Some(now);
        for reader in &mut self.readers {
            if reader.hear() {
                // Repeats the tags for a new reader.
                self.announced = None;
            }
        }
        self.part(&tell);
        let mut came = Vec::new();
        match &mut self.origin {
            Origin::Peers(peers) => came.extend(peers.met.try_iter()),
            Origin::Place(Some(reconnect)) if self.readers.is_empty() => {
                came.extend(reconnect.poll(Duration::ZERO, tell)?);
            }
            Origin::Place(_) => {}
        }
        came.into_iter().for_each(|peer| self.admit(peer));
        Ok(())
    }

    /// Removes lost readers.
    fn part(&mut self, tell: impl Fn(String)) {
        let before = self.readers.len();
        self.readers.retain(|reader| !reader.out.is_gone());
        if let Origin::Place(Some(reconnect)) = &mut self.origin
            && self.readers.len() < before
        {
            reconnect.lost(None, tell);
        }
    }

    /// Whether no reader can come any more.
    fn is_deserted(&self) -> bool {
        matches!(self.origin, Origin::Place(None)) && self.readers.is_empty()
    }

    /// Sends a batch, one message per run without a gap.
    fn take(&mut self, batch: &Batch, ctx: &Context) -> StageResult<()> {
        let mut first = None;
        for frame in batch.frames() {
            let header = frame.header();
            let gap = self.gaps.before(&header);
            let is_full = self.samples.len() >= MESSAGE_BYTES_MAX;
            if gap > 0 || is_full {
                self.send(first.take(), ctx)?;
            }
            if !self.zmq.has_tags {
                self.counters.unmarked_gap_samples.add(gap);
            }
            first.get_or_insert(header.first_sample_index);
            self.tell(&header, batch);
            self.gather(&frame)?;
        }
        self.send(first, ctx)
    }

    fn gather(&mut self, frame: &Frame<'_>) -> Result<(), Error> {
        let bytes = interleaved(&self.zmq.raw, frame, &mut self.scratch)?;
        self.samples.extend_from_slice(bytes);
        Ok(())
    }

    /// Tags a sample at which the stream changes.
    fn tell(&mut self, header: &Header, batch: &Batch) {
        let description = batch.description();
        let is_said = self.announced.as_ref().is_some_and(|(rate_hz, announced)| {
            *rate_hz == header.sample_rate_hz && is_same(announced.as_ref(), description)
        });
        if is_said || !self.zmq.has_tags {
            return;
        }
        self.announced = Some((header.sample_rate_hz, description.cloned()));
        let item = header.first_sample_index;
        let frequency_hz = description.and_then(|it| it.centre_frequency_hz).or(self.zmq.raw.frequency_hz);
        let time = description.and_then(|it| it.time_of(header, item));
        let rate = Some(header.sample_rate_hz).filter(|&hz| hz > 0.0).map(Says::RateHz);
        let says = [rate, frequency_hz.map(Says::FrequencyHz), time.map(Says::Time)];
        self.tags.extend(says.into_iter().flatten().map(|says| Tag { item, says }));
    }

    /// Sends the collected samples as a message that starts with this item.
    fn send(&mut self, first_item: Option<u64>, ctx: &Context) -> StageResult<()> {
        let Some(first_item) = first_item else { return Ok(()) };
        let key = self.zmq.key.as_bytes();
        self.message.clear();
        if !key.is_empty() {
            Head::put(key.len(), true, &mut self.message);
            self.message.extend(key);
        }
        self.scratch.clear();
        if self.zmq.has_tags {
            TagHeader::put(first_item, &self.tags, &mut self.scratch);
        }
        Head::put(self.scratch.len() + self.samples.len(), false, &mut self.message);
        self.message.extend_from_slice(&self.scratch);
        self.message.extend_from_slice(&self.samples);
        let samples = (self.samples.len() / self.zmq.raw.frame_bytes()) as u64;
        self.counters.messages.add(1);
        let topic_at = if key.is_empty() {
            &self.message[self.message.len() - self.scratch.len() - self.samples.len()..]
        } else {
            key
        };
        if self.socket == Socket::Pub {
            let mut is_wanted = false;
            for reader in self.readers.iter_mut().filter(|reader| reader.wants(topic_at)) {
                is_wanted = true;
                if !reader.out.send(&self.message, PUB_BACKLOG_BYTES) {
                    self.counters.client_dropped_samples.add(samples);
                }
            }
            self.counters.absent_samples.add(if is_wanted { 0 } else { samples });
        } else {
            self.push(samples, ctx)?;
        }
        self.samples.clear();
        self.tags.clear();
        Ok(())
    }

    /// Gives the message to the next reader with room, and waits for one.
    fn push(&mut self, samples: u64, ctx: &Context) -> StageResult<()> {
        let mut waited = Duration::ZERO;
        loop {
            for _ in 0..self.readers.len() {
                self.turn = (self.turn + 1) % self.readers.len();
                // The rest of its last message goes first.
                if self.readers[self.turn].out.send(&self.message, 0) {
                    return Ok(());
                }
            }
            self.part(|words| ctx.note(words));
            self.serve_readers(|words| ctx.note(words))?;
            if self.is_deserted() || ctx.is_stopping() && waited > STOP_WITHIN {
                self.counters.absent_samples.add(samples);
                return Ok(());
            }
            let began = Instant::now();
            ctx.waiting(|| await_room(&self.readers));
            waited += began.elapsed();
        }
    }
}

impl Reader {
    fn wants(&self, begin: &[u8]) -> bool {
        self.topics.iter().any(|topic| begin.starts_with(topic))
    }

    /// Reads subscriptions. Returns whether there are new ones.
    fn hear(&mut self) -> bool {
        let (mut bytes, mut wants_more) = ([0; 512], false);
        // Limits the reads, so that a peer that sends without end cannot hold up the stream.
        for _ in 0..READS_MAX {
            let Some(read) = self.out.read(&mut bytes) else { break };
            self.input.extend_from_slice(&bytes[..read]);
            while let Ok(Some(head)) = Head::parse(&self.input) {
                let end = usize::try_from(head.body_bytes).ok().and_then(|body| body.checked_add(head.bytes));
                let Some(body) = end.and_then(|end| self.input.get(head.bytes..end)) else { break };
                match wire::subscription(head.is_command, body) {
                    Some((true, topic)) if self.topics.len() < TOPICS_MAX => {
                        self.topics.push(topic.to_vec());
                        wants_more = true;
                    }
                    Some((false, topic)) => {
                        let at = self.topics.iter().position(|known| known == topic);
                        at.map(|at| self.topics.remove(at));
                    }
                    _ => {}
                }
                self.input.drain(..end.unwrap_or(0));
            }
            // Longer input is not ZMTP.
            if self.input.len() as u64 > 2 * COMMAND_BYTES_MAX {
                self.input.clear();
                break;
            }
        }
        wants_more
    }
}

/// Waits for up to 20 ms until a reader has room.
#[cfg(unix)]
fn await_room(readers: &[Reader]) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds: Vec<_> =
        readers.iter().map(|reader| PollFd::new(reader.out.stream(), PollFlags::OUT)).collect();
    let timeout = Timespec { tv_sec: 0, tv_nsec: CHECK_EVERY.as_nanos() as _ };
    // The next write shows any error.
    let _ = poll(&mut fds, Some(&timeout));
}

#[cfg(not(unix))]
fn await_room(_: &[Reader]) {
    std::thread::sleep(Duration::from_millis(1));
}

impl Stage for ZmqSink {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, ctx: &mut Context) -> StageResult {
        self.serve_readers(|words| ctx.note(words))?;
        let Some(batch) = input.next() else {
            self.readers.iter_mut().for_each(|reader| reader.out.flush());
            return Ok(Outcome::WantsInput);
        };
        self.take(&batch, ctx)?;
        Ok(if self.is_deserted() { Outcome::End } else { Outcome::Produced })
    }

    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        let mut outlets: Vec<_> = self.readers.iter_mut().map(|reader| &mut reader.out).collect();
        let left = ctx.waiting(|| drain(&mut outlets, || ctx.is_stopping()));
        self.counters.client_dropped_samples.add((left / self.zmq.raw.frame_bytes()) as u64);
        Ok(())
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.all())
    }
}

grebe_flow::counters! {
    struct Counted { unmarked_gap_samples, client_dropped_samples, absent_samples, gauge readers, messages }
}
const CHECK_EVERY: Duration = Duration::from_millis(20);
/// Per slow subscriber.
const PUB_BACKLOG_BYTES: usize = 8 << 20;
const MESSAGE_BYTES_MAX: usize = 1 << 20;
const TOPICS_MAX: usize = 64;
/// Per reader and interval.
const READS_MAX: usize = 64;
/// Timeout for the subscription of a reader that we connected to.
const SUBSCRIBES_WITHIN: Duration = Duration::from_secs(10);
/// Maximum wait for a reader on shutdown.
const STOP_WITHIN: Duration = Duration::from_secs(1);
