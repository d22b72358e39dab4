//! `udp://` as a sink: one frame per datagram.

use std::net::SocketAddr;
use std::ops::Range;
use std::time::{Duration, Instant};

use grebe_datagram::{Options, SendCounters, Sender};
use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, Stage, StageResult};
use grebe_frame::{Batch, HEADER_BYTES, Header};

use grebe_link::announce::Announcer;
use grebe_link::clock_port::ClockPort;
use grebe_link::outage::Outage;
use grebe_link::wire::Wire;

/// Sends frames, one per datagram, with few system calls for all waiting batches.
///
/// Frames that are contiguous in a batch leave without a copy; the kernel copies datagrams of up to 512 bytes. While
/// the network accepts nothing, frames count as unsent and the stream continues. The description names a port where
/// receivers on other hosts query this host's clock. The last frame is sent five times over half a second, because a
/// datagram may be lost.
#[derive(Debug)]
pub struct UdpSink {
    sender: Sender,
    /// Held until the kernel has accepted them. The capacity is fixed.
    held: Vec<Batch>,
    last: Option<Header>,
    announcer: Announcer,
    outage: Outage,
    counters: Counted,
}

impl UdpSink {
    /// A sink with one receiver.
    ///
    /// # Errors
    /// The socket cannot be opened, or a route is missing.
    pub fn connect(to: SocketAddr, options: &Options) -> Result<Self, grebe_datagram::Error> {
        Self::new(Sender::connect(to, options)?)
    }

    /// A sink that uses `sender`.
    pub(crate) fn new(sender: Sender) -> Result<Self, grebe_datagram::Error> {
        let mut announcer = Announcer::repeating();
        let here = sender.local_addr()?.ip();
        if !here.is_loopback() {
            announcer.set_clock_port(ClockPort::at(here));
        }
        Ok(Self {
            sender,
            held: Vec::with_capacity(HELD_MAX),
            last: None,
            announcer,
            outage: Outage::default(),
            counters: Counted::default(),
        })
    }

    /// Sends only frames that receivers of this wire version know.
    pub fn wire(mut self, wire: Wire) -> Self {
        self.announcer.set_wire(wire);
        self
    }

    /// Counts so far.
    pub(crate) fn sent(&self) -> SendCounters {
        self.sender.counters()
    }

    /// Sends a batch outside a graph. Drops what the kernel does not accept.
    pub(crate) fn send_batch(&mut self, batch: Batch) -> StageResult<()> {
        self.held.push(batch);
        let sent = self.send_held();
        self.held.clear();
        sent
    }

    /// Sends a datagram that is not a frame.
    pub(crate) fn send_bytes(&mut self, datagram: &[u8]) -> Result<(), grebe_datagram::Error> {
        let mut sending = self.sender.batch();
        sending.push(datagram, &[])?;
        sending.flush()
    }

    /// Sends the end of the stream, repeatedly because a datagram may be lost.
    pub(crate) fn send_end(&mut self, end: &Header) -> Result<(), grebe_datagram::Error> {
        let mut bytes = [0; HEADER_BYTES];
        end.write(&mut bytes);
        let began = Instant::now();
        for repeat in 0..END_REPEATS {
            let at = began + END_OVER * repeat / (END_REPEATS - 1);
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            let sent = self.send_bytes(&bytes);
            if repeat == 0 || sent.is_err() {
                // A receiver that has the end closes its port, so refused repeats are not losses.
                self.publish();
            }
            sent?;
        }
        Ok(())
    }

    fn send_held(&mut self) -> StageResult<()> {
        let mut sent = 0;
        for at in 0..self.held.len() {
            let batch = &self.held[at];
            let frame_bytes = batch.frames().next().map_or(0, |frame| frame.header().frame_bytes());
            let description = self.announcer.before(batch, frame_bytes)?;
            if !description.is_empty() {
                self.send(sent..at)?;
                sent = at;
                let mut sending = self.sender.batch();
                for frame in &description {
                    sending.push(frame, &[])?;
                }
                sending.flush()?;
            }
        }
        self.send(sent..self.held.len())?;
        if let Some(frame) = self.held.last().and_then(|batch| batch.frames().next_back()) {
            self.last = Some(frame.header());
        }
        self.held.clear();
        Ok(())
    }

    /// Sends a range of the held batches.
    fn send(&mut self, which: Range<usize>) -> Result<(), grebe_datagram::Error> {
        let mut sending = self.sender.batch();
        for batch in &self.held[which] {
            match batch.contiguous() {
                Some((bytes, frame_bytes)) => sending.push_run(bytes, frame_bytes)?,
                None => {
                    for frame in batch.frames() {
                        sending.push(frame.header_bytes(), frame.payload())?;
                    }
                }
            }
        }
        sending.flush()
    }

    fn publish(&self) {
        let sent = self.sender.counters();
        self.counters.datagrams.set(sent.datagrams);
        self.counters.system_calls.set(sent.syscalls);
        self.counters.copied_datagrams.set(sent.copies);
        self.counters.backoffs.set(sent.backoffs);
        self.counters.refused.set(sent.refused);
        self.counters.unsent.set(sent.unsent);
    }
}

impl Stage for UdpSink {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, ctx: &mut Context) -> StageResult {
        while self.held.len() < HELD_MAX
            && let Some(batch) = input.next()
        {
            self.held.push(batch);
        }
        if self.held.is_empty() {
            return Ok(Outcome::WantsInput);
        }
        let sent = self.send_held();
        self.announcer.take_note().into_iter().for_each(|note| ctx.note(note));
        self.publish();
        self.outage.update(&self.sender, |words| ctx.note(words));
        sent.map(|()| Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        let Some(end) = ctx.end_of_stream(self.last) else { return Ok(()) };
        Ok(self.send_end(&end)?)
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.all())
    }
}

grebe_flow::counters! {
    struct Counted { datagrams, system_calls, copied_datagrams, backoffs, refused, unsent }
}
/// Maximum batches of a flush.
const HELD_MAX: usize = 16;
const END_REPEATS: u32 = 5;
const END_OVER: Duration = Duration::from_millis(500);
