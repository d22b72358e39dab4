//! The sending side of a run.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use grebe_datagram::{MAX_DATAGRAM_BYTES, SendCounters, Sender};
use grebe_frame::{HEADER_BYTES, Header};

use super::task::{Fault, Technique, UdpTask};
use crate::clock;
use crate::error::{Error, Result};
use crate::stream::{Made, Pace, Pattern};

/// Frames between two looks at the clock at most; at full speed, a latency stamp is as old as that.
const STRETCH: usize = 512;

/// Sends the frames of a run.
pub(super) fn send(task: &UdpTask, to: SocketAddr, sender: &mut dyn FrameSender) -> Result<Made> {
    let pattern = Pattern::new(task.channels, task.block);
    let mut headers = vec![[0_u8; HEADER_BYTES]; STRETCH];
    let mut ticks = Ticks::new(task);
    let rate_hz = task.target_msps.unwrap_or(0.0) * 1e6;
    let cpu_before = clock::thread_cpu();
    let began = Instant::now();
    let mut sequence = 0;
    while let Some((frames, stamp)) = ticks.next(sequence) {
        for (index, header) in headers[..frames].iter_mut().enumerate() {
            pattern.header(sequence + index as u64, stamp.of(index), rate_hz, header);
        }
        let spoiled = match task.fault {
            None => Vec::new(),
            Some(fault) => (sequence..).take(frames).map(|n| spoil(&pattern, n, fault)).collect(),
        };
        sender.send(&Frames { headers: &headers[..frames], pattern: &pattern, first: sequence, spoiled })?;
        sequence += frames as u64;
    }
    let duration = began.elapsed();
    let cpu = clock::since(clock::thread_cpu(), cpu_before);
    finish(to, &pattern, sequence)?;
    Ok(Made { frames: sequence, skipped: ticks.pace.skipped, duration, cpu })
}

/// Some frames of a run, to be sent in order, each as one datagram.
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

/// A technique to send frames.
pub trait FrameSender {
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

impl FrameSender for Sender {
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
struct Contiguous {
    sender: Sender,
    chunk: Vec<u8>,
}

/// Bytes of frames that are written before they are sent: four kernel buffers, a quarter of a core's cache.
const CHUNK_BYTES: usize = 256 << 10;

impl FrameSender for Contiguous {
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

impl FrameSender for OneCall {
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

/// The sender of a technique of ours.
pub(super) fn open(task: &UdpTask, to: SocketAddr) -> Result<Box<dyn FrameSender>> {
    let sender = Sender::connect(to, &task.options())?;
    match task.technique {
        Technique::Mmsg | Technique::Gso => return Ok(Box::new(sender)),
        Technique::GsoRun => {
            return Ok(Box::new(Contiguous {
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

/// When a sender sends what is due.
struct Ticks {
    pace: Pace,
    tick: Duration,
    /// Everything due by then has been handed out; before, a paced sender gathers.
    gather_until: Instant,
    /// Frames that are sent at once at most.
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

impl Ticks {
    fn new(task: &UdpTask) -> Self {
        let stretch = (2 << 20) / (HEADER_BYTES + task.channels as usize * task.block as usize * 2);
        Self {
            pace: Pace::new(task.target_msps, task.block, task.duration, LATE_MAX),
            // A quarter of the latency budget, as the product's sender flushes.
            tick: task.latency / 4,
            gather_until: Instant::now(),
            stretch: stretch.clamp(1, STRETCH),
        }
    }

    /// How many frames to send now, after waiting for them, and when they were produced; `None`: the run is over.
    fn next(&mut self, sequence: u64) -> Option<(usize, Stamp)> {
        loop {
            let now = Instant::now();
            if now >= self.pace.until {
                return None;
            }
            let Some(frame_ns) = self.pace.frame_ns else {
                return Some((self.stretch, Stamp { first_ns: clock::now_ns(), step_ns: 0.0 }));
            };
            // Sending each frame as it falls due would take a system call per frame: it gathers for a tick.
            if now < self.gather_until {
                std::thread::sleep(self.gather_until - now);
                continue;
            }
            let behind = self.pace.behind(sequence, frame_ns, now);
            if behind > 0 {
                let frames = (behind as usize).min(self.stretch);
                if frames as u64 == behind {
                    self.gather_until = now + self.tick;
                }
                // Stamped with the time it was due, so that a late sender shows in the latency.
                let first_ns = self.pace.due_ns(sequence, frame_ns);
                return Some((frames, Stamp { first_ns, step_ns: frame_ns }));
            }
            self.gather_until = now + self.pace.due_in(sequence, frame_ns, now).max(self.tick);
        }
    }
}

/// A paced sender that falls behind by more skips ahead.
const LATE_MAX: Duration = Duration::from_millis(50);

#[cfg(windows)]
const NO_BUFFERS: i32 = 10_055;
#[cfg(any(target_os = "linux", target_os = "android"))]
const NO_BUFFERS: i32 = 105;
#[cfg(not(any(windows, target_os = "linux", target_os = "android")))]
const NO_BUFFERS: i32 = 55;
