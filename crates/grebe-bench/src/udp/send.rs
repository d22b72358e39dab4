//! The sending side of a run.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use grebe_datagram::{MAX_DATAGRAM_BYTES, SendCounters, Sender};
use grebe_frame::{HEADER_BYTES, Header};

use super::pattern::Pattern;
use super::plan::{Fault, Job, Technique};
use crate::clock;
use crate::{Error, Result};

/// What the sender did.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    pub frames: u64,
    /// From the first frame to the last.
    pub duration: Duration,
    pub cpu: Option<Duration>,
    pub counters: SendCounters,
}

/// Frames between two looks at the clock when sending as fast as possible; a latency stamp is as old as that.
const STRETCH: usize = 512;

pub(crate) fn send(job: &Job, to: SocketAddr) -> Result<Sent> {
    send_through(job, to, open(job, to)?.as_mut())
}

pub(crate) fn send_through(job: &Job, to: SocketAddr, outlet: &mut dyn Outlet) -> Result<Sent> {
    let pattern = Pattern::new(job.channels, job.block);
    let mut headers = vec![[0_u8; HEADER_BYTES]; STRETCH];
    let mut pace = Pace::new(job);
    let rate_hz = job.target_msps.unwrap_or(0.0) * 1e6;
    let cpu_before = clock::thread_cpu();
    let began = Instant::now();
    let mut sequence = 0;
    while let Some((frames, stamp)) = pace.next(sequence) {
        for (index, header) in headers[..frames].iter_mut().enumerate() {
            pattern.header(sequence + index as u64, stamp.of(index), rate_hz, header);
        }
        let spoiled = match job.fault {
            None => Vec::new(),
            Some(fault) => (sequence..).take(frames).map(|n| spoil(&pattern, n, fault)).collect(),
        };
        outlet.send(&Frames { headers: &headers[..frames], pattern: &pattern, first: sequence, spoiled })?;
        sequence += frames as u64;
    }
    let duration = began.elapsed();
    let cpu = clock::thread_cpu().zip(cpu_before).map(|(after, before)| after.saturating_sub(before));
    finish(to, &pattern, sequence)?;
    Ok(Sent { frames: sequence, duration, cpu, counters: outlet.counters() })
}

/// Some frames of the run, to be sent in order, each as one datagram.
#[derive(Debug)]
pub struct Frames<'a> {
    headers: &'a [[u8; HEADER_BYTES]],
    pattern: &'a Pattern,
    first: u64,
    /// Payloads to send instead, where something is spoiled on purpose.
    spoiled: Vec<Vec<u8>>,
}

impl Frames<'_> {
    /// Header and samples of each frame.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (&[u8; HEADER_BYTES], &[u8])> {
        self.headers.iter().enumerate().map(|(index, header)| {
            let payload = match self.spoiled.get(index) {
                None => self.pattern.payload(self.first + index as u64),
                Some(payload) => payload,
            };
            (header, payload)
        })
    }
}

/// A way to send frames.
pub trait Outlet {
    /// Sends them all, and waits for room where there is none.
    ///
    /// # Errors
    /// Where the system refuses.
    fn send(&mut self, frames: &Frames<'_>) -> Result<()>;

    /// What it has done so far, as far as it counts.
    fn counters(&self) -> SendCounters {
        SendCounters::default()
    }
}

impl Outlet for Sender {
    fn send(&mut self, frames: &Frames<'_>) -> Result<()> {
        let mut batch = self.batch();
        for (header, payload) in frames.iter() {
            batch.push(header, payload)?;
        }
        Ok(batch.flush()?)
    }

    fn counters(&self) -> SendCounters {
        Sender::counters(self)
    }
}

/// Frames one behind the other in a chunk that stays in cache.
struct Runs {
    sender: Sender,
    chunk: Vec<u8>,
}

/// Bytes of frames that are written before they are sent: four kernel buffers, a quarter of a core's cache.
const CHUNK_BYTES: usize = 256 << 10;

impl Outlet for Runs {
    fn send(&mut self, frames: &Frames<'_>) -> Result<()> {
        let mut frames = frames.iter().peekable();
        while let Some((header, payload)) = frames.peek() {
            let frame_bytes = header.len() + payload.len();
            self.chunk.clear();
            for (header, payload) in frames.by_ref().take((CHUNK_BYTES / frame_bytes).max(1)) {
                self.chunk.extend_from_slice(header);
                self.chunk.extend_from_slice(payload);
            }
            let mut batch = self.sender.batch();
            batch.push_run(&self.chunk, frame_bytes)?;
            batch.flush()?;
        }
        Ok(())
    }

    fn counters(&self) -> SendCounters {
        self.sender.counters()
    }
}

/// `send` of `std`, from a buffer that each frame is copied into.
struct OneCall {
    socket: UdpSocket,
    frame: Vec<u8>,
    counters: SendCounters,
}

impl Outlet for OneCall {
    fn send(&mut self, frames: &Frames<'_>) -> Result<()> {
        for (header, payload) in frames.iter() {
            self.frame.clear();
            self.frame.extend_from_slice(header);
            self.frame.extend_from_slice(payload);
            loop {
                self.counters.syscalls += 1;
                match self.socket.send(&self.frame) {
                    Ok(_) => break,
                    Err(error) if error.raw_os_error() == Some(NO_BUFFERS) => {
                        self.counters.backoffs += 1;
                        std::thread::sleep(Duration::from_micros(50));
                    }
                    Err(source) => return Err(Error::Io { action: "send", source }),
                }
            }
            self.counters.copies += 1;
            self.counters.datagrams += 1;
            self.counters.messages += 1;
            self.counters.bytes += self.frame.len() as u64;
        }
        Ok(())
    }

    fn counters(&self) -> SendCounters {
        self.counters
    }
}

fn open(job: &Job, to: SocketAddr) -> Result<Box<dyn Outlet>> {
    let sender = Sender::connect(to, &job.options())?;
    match job.technique {
        Technique::Mmsg | Technique::Gso => return Ok(Box::new(sender)),
        Technique::GsoRun => {
            return Ok(Box::new(Runs {
                sender,
                chunk: Vec::with_capacity(CHUNK_BYTES + MAX_DATAGRAM_BYTES),
            }));
        }
        Technique::OneCall => {}
    }
    // The same socket, with the same buffers, as any program would use it.
    let socket = sender.try_clone_socket().map_err(Error::io("copy a socket"))?;
    socket.set_nonblocking(false).map_err(Error::io("make a socket block"))?;
    Ok(Box::new(OneCall { socket, frame: Vec::new(), counters: SendCounters::default() }))
}

/// Says the end five times, as a stream does.
fn finish(to: SocketAddr, pattern: &Pattern, sequence: u64) -> Result<()> {
    let mut header = [0; HEADER_BYTES];
    let end = Header {
        sequence,
        channel_count: pattern.channels(),
        first_sample_index: sequence * u64::from(pattern.block()),
        ..Header::default()
    };
    end.write(&mut header);
    let local = SocketAddr::new(if to.is_ipv4() { [0; 4].into() } else { [0_u16; 8].into() }, 0);
    let socket = UdpSocket::bind(local).map_err(Error::io("open a socket"))?;
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(10));
        socket.send_to(&header, to).map_err(Error::io("send the end of the stream"))?;
    }
    Ok(())
}

fn spoil(pattern: &Pattern, sequence: u64, fault: Fault) -> Vec<u8> {
    let mut payload = pattern.payload(sequence).to_vec();
    if sequence % 100 == 99 {
        let half = payload.len() / 2;
        match fault {
            Fault::Stale => payload.copy_from_slice(pattern.payload(sequence - 1)),
            Fault::Swapped => payload.rotate_left(half),
            Fault::Shifted => payload.rotate_left(2),
        }
    }
    payload
}

/// When frames are due.
struct Pace {
    until: Instant,
    start: Instant,
    start_ns: u64,
    /// Nanoseconds a frame; `None`: as fast as possible.
    frame_ns: Option<f64>,
    tick: Duration,
    /// Everything due by then has been handed out; before, a paced sender gathers.
    gather_until: Instant,
    stretch: usize,
}

/// When the frames of a stretch were produced.
struct Stamp {
    first_ns: u64,
    step_ns: f64,
}

impl Stamp {
    fn of(&self, index: usize) -> u64 {
        self.first_ns + (self.step_ns * index as f64) as u64
    }
}

/// A paced sender that falls behind by more skips ahead, as a generator does that drops samples.
const LATE_MAX: Duration = Duration::from_millis(50);

impl Pace {
    fn new(job: &Job) -> Self {
        let start = Instant::now();
        let stretch = (2 << 20) / (HEADER_BYTES + job.channels as usize * job.block as usize * 2);
        Self {
            until: start + job.duration,
            start,
            start_ns: clock::now_ns(),
            frame_ns: job.target_msps.map(|msps| f64::from(job.block) * 1e3 / msps),
            // A quarter of the latency budget, as the product's sender flushes.
            tick: job.latency / 4,
            gather_until: start,
            stretch: stretch.clamp(1, STRETCH),
        }
    }

    /// How many frames to send now, after waiting for them, and when they were produced; `None`: the run is over.
    fn next(&mut self, sequence: u64) -> Option<(usize, Stamp)> {
        let Some(frame_ns) = self.frame_ns else {
            let now = Instant::now();
            return (now < self.until)
                .then(|| (self.stretch, Stamp { first_ns: clock::now_ns(), step_ns: 0.0 }));
        };
        loop {
            let now = Instant::now();
            if now >= self.until {
                return None;
            }
            // A frame at a time as it falls due would be a system call a frame: it gathers for a tick.
            if now < self.gather_until {
                std::thread::sleep(self.gather_until - now);
                continue;
            }
            let elapsed_ns = now.duration_since(self.start).as_nanos() as f64;
            // Frame n is complete, and due, at (n + 1) x frame_ns.
            let due = (elapsed_ns / frame_ns) as u64;
            let behind = due.saturating_sub(sequence);
            if behind as f64 * frame_ns > LATE_MAX.as_nanos() as f64 {
                let skip = Duration::from_nanos((behind as f64 * frame_ns) as u64);
                self.start += skip;
                self.start_ns += skip.as_nanos() as u64;
                continue;
            }
            if behind > 0 {
                // Stamped with the time it was due, so that a late sender shows in the latency.
                let first_ns = self.start_ns + ((sequence + 1) as f64 * frame_ns) as u64;
                let frames = (behind as usize).min(self.stretch);
                if frames as u64 == behind {
                    self.gather_until = now + self.tick;
                }
                return Some((frames, Stamp { first_ns, step_ns: frame_ns }));
            }
            let next_ns = (sequence + 1) as f64 * frame_ns - elapsed_ns;
            self.gather_until = now + Duration::from_nanos(next_ns as u64).max(self.tick);
        }
    }
}

#[cfg(windows)]
const NO_BUFFERS: i32 = 10_055;
#[cfg(any(target_os = "linux", target_os = "android"))]
const NO_BUFFERS: i32 = 105;
#[cfg(not(any(windows, target_os = "linux", target_os = "android")))]
const NO_BUFFERS: i32 = 55;
