//! The receiving side of a run, in a process of its own or a thread.

use std::io::{self, BufRead, Write};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use grebe_datagram::{Granted, Receiver};
use grebe_frame::Header;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::Latency;
use super::pattern::Pattern;
use super::plan::{Job, Technique};
use crate::clock;
use crate::{Error, Result};

/// What the receiver saw.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub frames: u64,
    pub bytes: u64,
    /// From the first frame to the last.
    pub duration: Duration,
    pub cpu: Option<Duration>,
    /// Frames that are not what they claim to be.
    pub corrupt: u64,
    /// Frames that came behind their successor.
    pub reordered: u64,
    pub kernel_drops: Option<u64>,
    pub calls: u64,
    pub latency: Latency,
    pub granted_bytes: usize,
    /// Whether the end of the stream was seen.
    pub ended: bool,
}

/// A receiver that is bound and waits.
pub(crate) struct Bound {
    pub address: SocketAddr,
    receiver: Receiver<Slot>,
    job: Job,
}

/// Runs the receiver of one run as a process: the job comes as a line of JSON on standard input; the port, and after the run
/// the report, go out on standard output.
///
/// # Errors
/// Where the job cannot be read, or the socket fails.
pub fn peer_main() -> Result<()> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(Error::io("read the job"))?;
    let job: Job = serde_json::from_str(&line).map_err(|error| not_json(&error))?;
    let bound = Bound::open(job)?;
    say(&bound.address)?;
    say(&bound.receive()?)
}

fn say(value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string(value).map_err(|error| not_json(&error))?;
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(Error::io("answer"))
}

fn not_json(error: &serde_json::Error) -> Error {
    Error::Peer { side: "bench", reason: error.to_string() }
}

impl Bound {
    pub fn open(job: Job) -> Result<Self> {
        let receiver = Receiver::bind(SocketAddr::new(job.host, 0), &job.options())?;
        Ok(Self { address: receiver.local_addr()?, receiver, job })
    }

    /// Until the stream ends, or nothing comes for a second.
    pub fn receive(self) -> Result<Seen> {
        let granted: Granted = self.receiver.granted();
        let mut watch = Watch::new(&self.job)?;
        match self.job.technique {
            Technique::OneCall => one_call(&self.receiver, &mut watch)?,
            Technique::Mmsg | Technique::Gso | Technique::GsoRun => batched(self.receiver, &mut watch)?,
        }
        Ok(Seen { granted_bytes: granted.granted_bytes, ..watch.finish() })
    }
}

const IDLE: Duration = Duration::from_secs(1);

fn batched(mut receiver: Receiver<Slot>, watch: &mut Watch) -> Result<()> {
    let mut last = Instant::now();
    while !watch.is_over(last) {
        let outcome = receiver.recv(
            || Some(Slot::new()),
            |slot, received| {
                let now_ns = clock::now_ns();
                for range in received.segments() {
                    watch.frame(&slot.bytes()[range], now_ns);
                }
                Some(slot)
            },
        )?;
        watch.calls(1, outcome.kernel_drops);
        if outcome.datagrams > 0 {
            last = Instant::now();
        }
    }
    Ok(())
}

fn one_call(receiver: &Receiver<Slot>, watch: &mut Watch) -> Result<()> {
    let socket: UdpSocket = receiver.try_clone_socket().map_err(Error::io("copy a socket"))?;
    socket.set_nonblocking(false).map_err(Error::io("make a socket block"))?;
    socket.set_read_timeout(Some(Duration::from_millis(50))).map_err(Error::io("set a timeout"))?;
    let mut slot = Slot::new();
    let mut last = Instant::now();
    loop {
        watch.calls(1, None);
        match socket.recv(slot.as_mut()) {
            Ok(len) => {
                watch.frame(&slot.bytes()[..len], clock::now_ns());
                // A look at the clock a frame would be charged to the baseline.
                if watch.seen.frames.is_multiple_of(1_024) {
                    last = Instant::now();
                }
                if watch.end.is_some() && watch.is_over(last) {
                    return Ok(());
                }
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                if watch.is_over(last) {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(Error::Io { action: "receive", source }),
        }
    }
}

/// Checks that frames are what they claim to be, and counts them.
#[derive(Debug)]
pub struct Watch {
    pattern: Pattern,
    seen: Seen,
    expected: u64,
    first: Option<Instant>,
    cpu_before: Option<Duration>,
    latency: Histogram<u64>,
    /// Sequence of the end, and when it came.
    end: Option<(u64, Instant)>,
    last_ns: u64,
    first_ns: u64,
}

impl Watch {
    pub(crate) fn new(job: &Job) -> Result<Self> {
        let latency = Histogram::new_with_bounds(1, 60_000_000_000, 3)
            .map_err(|error| Error::Peer { side: "receiver", reason: error.to_string() })?;
        Ok(Self {
            pattern: Pattern::new(job.channels, job.block),
            seen: Seen::default(),
            expected: 0,
            first: None,
            cpu_before: None,
            latency,
            end: None,
            last_ns: 0,
            first_ns: 0,
        })
    }

    /// Takes one datagram, received at `now_ns` ([`Watch::now_ns`]).
    #[inline]
    pub fn frame(&mut self, bytes: &[u8], now_ns: u64) {
        let Ok(header) = Header::parse_datagram(bytes) else {
            self.seen.corrupt += 1;
            return;
        };
        if header.is_end_of_stream() {
            self.end.get_or_insert((header.sequence, Instant::now()));
            return;
        }
        if self.first.is_none() {
            self.first = Some(Instant::now());
            self.first_ns = now_ns;
            self.cpu_before = clock::thread_cpu();
        }
        self.last_ns = now_ns;
        self.seen.frames += 1;
        self.seen.bytes += bytes.len() as u64;
        if !self.pattern.holds(&header, &bytes[grebe_frame::HEADER_BYTES..]) {
            self.seen.corrupt += 1;
        }
        if header.sequence < self.expected {
            self.seen.reordered += 1;
        }
        self.expected = header.sequence + 1;
        self.latency.saturating_record(now_ns.saturating_sub(header.producer_ts_ns).max(1));
    }

    /// Counts receiving system calls, and takes the kernel's drop counter where there is one.
    pub fn calls(&mut self, calls: u64, kernel_drops: Option<u64>) {
        self.seen.calls += calls;
        self.seen.kernel_drops = kernel_drops.or(self.seen.kernel_drops);
    }

    /// The time of the clock that frames are stamped with.
    #[inline]
    pub fn now_ns() -> u64 {
        clock::now_ns()
    }

    /// Whether the stream has ended, or `last`, when something came, is too long ago. To be asked every 50 ms at least.
    pub fn is_over(&self, last: Instant) -> bool {
        self.ended_for(last) >= IDLE
    }

    /// For how long nothing is expected any more: since the end, or since the last frame.
    fn ended_for(&self, last: Instant) -> Duration {
        match self.end {
            // What the kernel still holds is read within this time.
            Some((_, at)) if at.elapsed() > Duration::from_millis(100) => IDLE,
            Some(_) => Duration::ZERO,
            // Before the first frame the sender may still be starting.
            None if self.first.is_none() => last.elapsed() / 10,
            None => last.elapsed(),
        }
    }

    pub(crate) fn finish(mut self) -> Seen {
        self.seen.duration = Duration::from_nanos(self.last_ns.saturating_sub(self.first_ns));
        self.seen.cpu =
            clock::thread_cpu().zip(self.cpu_before).map(|(after, before)| after.saturating_sub(before));
        self.seen.latency = Latency::of(&self.latency);
        self.seen.ended = self.end.is_some();
        self.seen
    }
}

/// A buffer for one GRO message, aligned to a cache line.
struct Slot(Box<Aligned>);

#[repr(align(64))]
struct Aligned([u8; 65_536]);

impl Slot {
    fn new() -> Self {
        Slot(Box::new(Aligned([0; 65_536])))
    }

    fn bytes(&self) -> &[u8] {
        &self.0.0
    }
}

impl AsMut<[u8]> for Slot {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.0.0
    }
}
