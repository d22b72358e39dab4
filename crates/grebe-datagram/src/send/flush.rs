//! Sends a whole burst through the kernel, and handles each error, without system calls of its own.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::time::Duration;

use super::gso::Gso;
use crate::burst::{Burst, Message};
use crate::error::{Error, Result};
use crate::sys::{is_absent, is_forbidden, is_out_of_buffers, may_be_gso, may_pass};

/// Counters of a sender since its creation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SendCounters {
    /// Datagrams accepted by the kernel.
    pub datagrams: u64,
    /// Their bytes, without UDP and lower headers.
    pub bytes: u64,
    /// Kernel buffers used; fewer than datagrams with GSO.
    pub messages: u64,
    /// Successful system calls.
    pub syscalls: u64,
    /// Datagrams copied in user space.
    pub copies: u64,
    /// Waits for room in the kernel.
    pub backoffs: u64,
    /// Messages that GSO could not send, resent as plain datagrams.
    pub gso_fallbacks: u64,
    /// Reports of the peer's host that nobody listens.
    pub refused: u64,
    /// Datagrams pushed and never sent: the link was down, a firewall dropped them, or the send failed.
    pub unsent: u64,
}

/// Kernel interface of a flush, for a fake in tests.
pub(super) trait Kernel {
    /// Sends messages of the burst from index `from` on. Returns how many of them the kernel accepted. One
    /// datagram each after [`degrade`](Self::degrade).
    fn send(&mut self, burst: &Burst<'_>, from: usize) -> io::Result<usize>;
    /// Sends one datagram by one plain call.
    fn send_one(&mut self, parts: &[IoSlice<'_>], to: Option<SocketAddr>) -> io::Result<()>;
    /// Waits until the socket may accept more, at most `timeout`.
    fn wait_writable(&mut self, timeout: Duration) -> io::Result<()>;
    /// Gives a full device queue time, because nothing reports free room.
    fn pause(&mut self, time: Duration);
    /// Maximum segment on the destination's present route. Called only after an error.
    fn segment_limit(&mut self, to: Option<SocketAddr>) -> usize;
    /// Switches to one datagram per call, because the system lacks a call for several messages. `false` if
    /// already switched.
    fn degrade(&mut self) -> bool;
    /// Whether the call for several messages has succeeded before.
    fn has_sent_several(&self) -> bool;
}

/// Progress of a flush, to continue after an error.
#[derive(Debug, Default)]
pub(super) struct Progress {
    message: usize,
    /// Datagrams of that message that were sent singly or skipped.
    datagrams: usize,
    /// GSO limits found by this flush, for later batches.
    pub(super) learned: Learned,
}

/// GSO limits found by refusals of the kernel; `None` if unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Learned {
    pub(super) max_segments: Option<usize>,
    pub(super) max_segment_bytes: Option<usize>,
}

/// Limit of kernels before 6.9.
const OLD_MAX_SEGMENTS: usize = 64;

impl Progress {
    /// Datagrams of the burst that are finished.
    pub(super) fn settled(&self, burst: &Burst<'_>) -> usize {
        burst.messages()[..self.message].iter().map(|message| message.datagrams).sum::<usize>()
            + self.datagrams
    }
}

const PAUSE_MIN: Duration = Duration::from_micros(50);
const PAUSE_MAX: Duration = Duration::from_millis(2);

/// Consecutive refusals after which a datagram is skipped. Each is the error of an earlier datagram to a
/// closed port, and reading it clears it.
const REFUSALS_MAX: u32 = 8;

/// One flush: burst, progress and changed state.
pub(super) struct Flush<'a, 'd, K> {
    pub(super) burst: &'a Burst<'d>,
    pub(super) progress: &'a mut Progress,
    pub(super) gso: &'a mut Gso,
    pub(super) kernel: &'a mut K,
    pub(super) counters: &'a mut SendCounters,
    pub(super) patience: &'a mut Patience,
    /// Reason for the last skipped datagram.
    pub(super) outage: &'a mut Option<io::Error>,
}

impl<K: Kernel> Flush<'_, '_, K> {
    /// Sends the rest of the burst. Skips and counts datagrams that the network rejects for now.
    ///
    /// # Errors
    /// `Stalled`: nothing is lost, call again. `Send`: one message was skipped and counted; call again for
    /// the others.
    pub(super) fn run(mut self) -> Result<()> {
        self.patience.begin();
        while let Some(message) = self.burst.messages().get(self.progress.message) {
            if message.datagrams > 1 && (!self.gso.usable() || self.progress.datagrams > 0) {
                self.send_singly()?;
                continue;
            }
            self.counters.syscalls += 1;
            match self.kernel.send(self.burst, self.progress.message) {
                Ok(taken) => {
                    self.count_sent(taken);
                    self.patience.renew();
                }
                Err(error) if self.patience.forgives(&error, self.kernel, self.counters)? => {}
                Err(error) if is_forbidden(&error) => self.send_forbidden()?,
                // No call takes messages of several datagrams any more.
                Err(error) if is_absent(&error) && self.kernel.degrade() => *self.gso = Gso::Disabled,
                Err(error) if message.datagrams > 1 && may_be_gso(&error) => {
                    self.send_without_gso(message)?
                }
                Err(source) => {
                    self.counters.unsent += message.datagrams as u64;
                    self.progress.message += 1;
                    if !may_pass(&source) {
                        return Err(Error::Send { bytes: message.bytes, source });
                    }
                    *self.outage = Some(source);
                }
            }
        }
        Ok(())
    }

    fn count_sent(&mut self, messages: usize) {
        let from = self.progress.message;
        for sent in &self.burst.messages()[from..from + messages] {
            self.counters.datagrams += sent.datagrams as u64;
            self.counters.bytes += sent.bytes as u64;
            if sent.datagrams > 1 {
                self.gso.worked();
            }
        }
        self.counters.messages += messages as u64;
        self.progress.message += messages;
    }

    /// Sends the datagrams of a refused GSO message singly, and learns from that whether GSO or one of its
    /// limits was the reason.
    fn send_without_gso(&mut self, message: &Message) -> Result<()> {
        self.counters.gso_fallbacks += 1;
        // EINVAL for a segment that is too long for the route, or for too many segments, says nothing about
        // GSO.
        let limit = self.kernel.segment_limit(message.to);
        if message.segment_bytes > limit {
            self.progress.learned.max_segment_bytes = Some(limit);
        } else if message.datagrams > OLD_MAX_SEGMENTS {
            self.progress.learned.max_segments = Some(OLD_MAX_SEGMENTS);
        } else {
            self.gso.failed();
        }
        let before = self.counters.datagrams;
        let sent = self.send_singly();
        if !matches!(sent, Err(Error::Stalled { .. })) {
            self.gso.resent_plainly(sent.is_ok() && self.counters.datagrams > before);
        }
        sent
    }

    /// A firewall drops the message, or the system call is hidden: a plain call distinguishes them.
    fn send_forbidden(&mut self) -> Result<()> {
        let before = self.counters.datagrams;
        let sent = self.send_singly();
        let is_hidden = self.counters.datagrams > before && !self.kernel.has_sent_several();
        if is_hidden && self.kernel.degrade() {
            *self.gso = Gso::Disabled;
        }
        sent
    }

    /// Sends the datagrams of one message with one call each.
    fn send_singly(&mut self) -> Result<()> {
        let Self { burst, progress, kernel, counters, patience, outage, .. } = self;
        let message = burst.messages()[progress.message];
        let outcome = burst.each_datagram(&message, progress.datagrams, |parts| {
            let bytes = parts.iter().map(|part| part.len()).sum::<usize>();
            loop {
                counters.syscalls += 1;
                match kernel.send_one(parts, message.to) {
                    Ok(()) => {
                        counters.datagrams += 1;
                        counters.messages += 1;
                        counters.bytes += bytes as u64;
                        patience.renew();
                        break;
                    }
                    Err(error) if patience.forgives(&error, *kernel, counters)? => {}
                    Err(error) if may_pass(&error) => {
                        counters.unsent += 1;
                        **outage = Some(error);
                        break;
                    }
                    Err(source) => return Err(Error::Send { bytes, source }),
                }
            }
            progress.datagrams += 1;
            Ok(())
        });
        if let Err(Error::Send { .. }) = outcome {
            counters.unsent += (message.datagrams - progress.datagrams) as u64;
        }
        if !matches!(outcome, Err(Error::Stalled { .. })) {
            (progress.message, progress.datagrams) = (progress.message + 1, 0);
        }
        outcome
    }
}

/// Retry policy of a sender while the kernel accepts nothing.
#[derive(Debug)]
pub(super) struct Patience {
    timeout: Duration,
    /// Skips datagrams without room after that, instead of failing. Until one has room, nothing waits any
    /// more.
    leaves_out: bool,
    waited: Duration,
    pause: Duration,
    refusals: u32,
}

impl Patience {
    pub(super) fn new(timeout: Duration, leaves_out: bool) -> Self {
        Self { timeout, leaves_out, waited: Duration::ZERO, pause: PAUSE_MIN, refusals: 0 }
    }

    /// Starts a flush.
    fn begin(&mut self) {
        if !self.leaves_out {
            self.renew();
        }
    }

    fn renew(&mut self) {
        (self.waited, self.pause, self.refusals) = (Duration::ZERO, PAUSE_MIN, 0);
    }

    /// Whether to repeat the same call. Waits first if the kernel had no room.
    fn forgives(
        &mut self,
        error: &io::Error,
        kernel: &mut impl Kernel,
        counters: &mut SendCounters,
    ) -> Result<bool> {
        match error.kind() {
            io::ErrorKind::Interrupted => return Ok(true),
            io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => {
                counters.refused += 1;
                self.refusals += 1;
                return Ok(self.refusals <= REFUSALS_MAX);
            }
            io::ErrorKind::WouldBlock => {}
            _ if is_out_of_buffers(error) => {}
            _ => return Ok(false),
        }
        counters.backoffs += 1;
        if self.waited >= self.timeout && self.leaves_out {
            return Ok(false);
        }
        if self.waited >= self.timeout {
            return Err(Error::Stalled { waited: self.waited });
        }
        let before = std::time::Instant::now();
        if error.kind() == io::ErrorKind::WouldBlock {
            let left = (self.timeout - self.waited).max(PAUSE_MIN);
            kernel.wait_writable(left).map_err(|source| Error::Send { bytes: 0, source })?;
        } else {
            kernel.pause(self.pause);
            self.pause = (self.pause * 2).min(PAUSE_MAX);
        }
        // A fake kernel does not wait, so at least the pause counts.
        self.waited += before.elapsed().max(PAUSE_MIN);
        Ok(true)
    }
}

#[cfg(all(test, unix))]
mod tests;
