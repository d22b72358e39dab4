//! Handing a burst to the kernel until all of it is sent: what to do about each error, free of system calls.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::time::Duration;

use super::gso::Gso;
use crate::burst::{Burst, Message};
use crate::error::{Error, Result};
use crate::sys::{is_absent, is_forbidden, is_out_of_buffers, may_be_gso, may_pass};

/// What a sender has done since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SendCounters {
    /// Datagrams that the kernel took.
    pub datagrams: u64,
    /// Their bytes, without headers of UDP and below.
    pub bytes: u64,
    /// Kernel buffers they were in; with GSO fewer than datagrams.
    pub messages: u64,
    /// System calls that sent.
    pub syscalls: u64,
    /// Datagrams that were copied in user space.
    pub copies: u64,
    /// Times the kernel had no room and was waited for.
    pub backoffs: u64,
    /// Times a message that GSO could not send was sent again as plain datagrams.
    pub gso_fallbacks: u64,
    /// Times the peer's host said that nobody listens.
    pub refused: u64,
    /// Datagrams that were pushed and never sent: the link was down, a firewall dropped them, or the send failed.
    pub unsent: u64,
}

/// What a flush asks of the kernel. Tests have a fake one.
pub(super) trait Kernel {
    /// Sends messages of the burst from number `from` on, and returns how many of them the kernel took. One datagram each after
    /// [`degrade`](Self::degrade).
    fn send(&mut self, burst: &Burst<'_>, from: usize) -> io::Result<usize>;
    /// Sends one datagram with one plain call.
    fn send_one(&mut self, parts: &[IoSlice<'_>], to: Option<SocketAddr>) -> io::Result<()>;
    /// Waits until the socket may take more, at most `timeout`.
    fn wait_writable(&mut self, timeout: Duration) -> io::Result<()>;
    /// Gives a full device queue time (nothing says when it has room again).
    fn pause(&mut self, time: Duration);
    /// The longest segment that the destination's route carries now (asked after an error only).
    fn segment_limit(&mut self, to: Option<SocketAddr>) -> usize;
    /// The system has no call for several messages: one datagram per call from now on. `false` where that is so already.
    fn degrade(&mut self) -> bool;
    /// Whether that call has sent something.
    fn has_sent_several(&self) -> bool;
}

/// How far a flush has gone, so that it can go on after an error.
#[derive(Debug, Default)]
pub(super) struct Progress {
    message: usize,
    /// Datagrams of that message that went out one by one, or were left out.
    datagrams: usize,
    /// Limits of GSO that this flush found, for the batches after it.
    pub(super) learned: Learned,
}

/// Limits of GSO that a kernel's refusal showed; `None` where it showed none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Learned {
    pub(super) max_segments: Option<usize>,
    pub(super) max_segment_bytes: Option<usize>,
}

/// What kernels before 6.9 take.
const OLD_MAX_SEGMENTS: usize = 64;

impl Progress {
    /// Datagrams of the burst that need no further sending.
    pub(super) fn settled(&self, burst: &Burst<'_>) -> usize {
        burst.messages()[..self.message].iter().map(|message| message.datagrams).sum::<usize>()
            + self.datagrams
    }
}

const PAUSE_MIN: Duration = Duration::from_micros(50);
const PAUSE_MAX: Duration = Duration::from_millis(2);

/// Refusals in a row after which a datagram is left out. Each is the error of an earlier datagram to a closed port, and reading it clears it.
const REFUSALS_MAX: u32 = 8;

/// One flush: a burst, how far it has gone, and what it changes.
pub(super) struct Flush<'a, 'd, K> {
    pub(super) burst: &'a Burst<'d>,
    pub(super) progress: &'a mut Progress,
    pub(super) gso: &'a mut Gso,
    pub(super) kernel: &'a mut K,
    pub(super) counters: &'a mut SendCounters,
    pub(super) patience: &'a mut Patience,
    /// Why a datagram was left out last.
    pub(super) outage: &'a mut Option<io::Error>,
}

impl<K: Kernel> Flush<'_, '_, K> {
    /// Sends what is left of the burst. What the network does not take now, and may take later, is left out and counted.
    ///
    /// # Errors
    /// `Stalled`: nothing is lost, call again. `Send`: one message was left out and counted; call again for the others.
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

    /// The kernel refused a message that GSO was to cut: sends its datagrams one by one, and learns from that whether GSO or one
    /// of its limits was the reason.
    fn send_without_gso(&mut self, message: &Message) -> Result<()> {
        self.counters.gso_fallbacks += 1;
        // EINVAL for a segment that the route does not carry, or for too many of them, says nothing about GSO.
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

    /// A firewall drops the message, or the system call is hidden: a plain call tells which.
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

/// For how long a sender tries again while the kernel takes nothing.
#[derive(Debug)]
pub(super) struct Patience {
    timeout: Duration,
    /// What still has no room after that is left out, instead of an error; until some has room nothing is waited for any more.
    leaves_out: bool,
    waited: Duration,
    pause: Duration,
    refusals: u32,
}

impl Patience {
    pub(super) fn new(timeout: Duration, leaves_out: bool) -> Self {
        Self { timeout, leaves_out, waited: Duration::ZERO, pause: PAUSE_MIN, refusals: 0 }
    }

    /// A flush begins.
    fn begin(&mut self) {
        if !self.leaves_out {
            self.renew();
        }
    }

    fn renew(&mut self) {
        (self.waited, self.pause, self.refusals) = (Duration::ZERO, PAUSE_MIN, 0);
    }

    /// Whether to make the same call again. Waits first where the kernel had no room.
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
        // A fake kernel does not wait: the pause counts at least.
        self.waited += before.elapsed().max(PAUSE_MIN);
        Ok(true)
    }
}

#[cfg(all(test, unix))]
mod tests;
