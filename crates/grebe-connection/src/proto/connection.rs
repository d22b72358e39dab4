//! One end of a connection, without sockets, threads or a clock of its own: a sender, a receiver, and their
//! orderly end.
//!
//! ```text
//!  this end                                           the other end
//!  Sender    --- DATA, LAST, PROBE, CLOSE ------------> Receiver      the first session of the one that has the ticket,
//!            <--------------- FEEDBACK, OUTCOME -------               the second session of the one that made it
//!  Receiver  <------------- DATA, LAST, PROBE, CLOSE -- Sender        the other session
//!            --- FEEDBACK, OUTCOME ------------------->
//! ```
//!
//! Each stream ends like a transfer: its receiver sends OUTCOME "whole" until it hears CLOSE. The connection
//! ends with both streams. An end that stops reports it on both. An outcome other than "whole" on one stream
//! ends both.

use crate::proto::receiver::{Arrived, Receiver};
use crate::proto::sender::{Sender, SenderOptions, Transmit};
use crate::proto::wire::{Frame, Verdict};

/// One end of a connection.
///
/// Time is microseconds since any moment of the caller's choice, and never goes back.
#[derive(Debug)]
pub struct ConnectionEnd {
    /// Sender of this end's stream.
    pub sender: Sender,
    /// Receiver of the other end's stream.
    pub receiver: Receiver,
    silence_us_max: u64,
    heard_us: u64,
    broken: Option<Broken>,
    is_leaving: bool,
}

/// Why a connection ended before both streams did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// The other end was silent for too long.
    Silent,
    /// The other end ended or refused the connection.
    ByPeer(Verdict),
    /// This end stopped.
    Stopped,
}

impl ConnectionEnd {
    /// Makes an end. The other end may run ahead by `window_bytes`, plus twice the bytes that arrive in a
    /// round trip.
    pub fn new(now_us: u64, window_bytes: u64, options: SenderOptions) -> Self {
        let silence_us_max = options.silence_us_max;
        let mut receiver = Receiver::new(window_bytes);
        receiver.heard(now_us);
        Self {
            sender: Sender::new(options),
            receiver,
            silence_us_max,
            heard_us: now_us,
            broken: None,
            is_leaving: false,
        }
    }

    /// Takes an authentic packet of the other end's stream.
    pub fn on_packet<'a>(
        &mut self,
        now_us: u64,
        number: u64,
        datagram_bytes: usize,
        frame: &Frame<'a>,
    ) -> Arrived<'a> {
        self.heard_us = now_us;
        let arrived = self.receiver.on_packet(now_us, number, datagram_bytes, frame);
        if self.receiver.is_closed() && self.receiver.verdict().is_none() {
            self.end_with(Broken::ByPeer(Verdict::Cancelled));
        }
        if self.receiver.is_complete() {
            self.receiver.conclude(now_us, Verdict::Whole);
        }
        arrived
    }

    /// Takes the other end's reply about this end's stream.
    pub fn on_reply(&mut self, now_us: u64, frame: &Frame<'_>) {
        self.heard_us = now_us;
        match frame {
            Frame::Feedback(report) => self.sender.on_feedback(now_us, report),
            Frame::HandshakeTrain { window_end, train } => {
                self.sender.on_handshake_train(now_us, *window_end, *train);
            }
            Frame::Outcome(Verdict::Whole) if self.sender.is_finished() => {
                self.sender.on_outcome(Verdict::Whole);
            }
            Frame::Outcome(Verdict::Whole) => self.end_with(Broken::ByPeer(Verdict::Cancelled)),
            Frame::Outcome(verdict) => self.end_with(Broken::ByPeer(*verdict)),
            _ => {}
        }
    }

    /// End of the other end's stream that has arrived without a gap.
    pub fn received_in_order(&self) -> u64 {
        let there = self.receiver.received.prefix_end();
        self.receiver.end().map_or(there, |end| there.min(end - 1))
    }

    /// Returns the next due packet of this end's stream.
    pub fn poll_transmit(&mut self, now_us: u64) -> Option<Transmit> {
        self.sender.poll_transmit(now_us)
    }

    /// Writes the due reply about the other end's stream into `out` and returns its length.
    pub fn poll_reply(&mut self, now_us: u64, out: &mut [u8]) -> Option<usize> {
        self.receiver.poll_report(now_us, out)
    }

    /// Latest time to call [`poll_transmit`](Self::poll_transmit) and [`poll_reply`](Self::poll_reply) again.
    pub fn next_time_us(&self, now_us: u64) -> u64 {
        self.sender.next_time_us(now_us).min(self.receiver.next_time_us())
    }

    /// Ends both streams where they are, and tells the other end.
    pub fn stop(&mut self, now_us: u64) {
        if !self.is_settled() {
            self.end_with(Broken::Stopped);
            self.receiver.conclude(now_us, Verdict::Cancelled);
        }
    }

    /// Limits the wait for a silent end.
    pub(crate) fn bound_silence(&mut self, silence_us: u64) {
        self.silence_us_max = self.silence_us_max.min(silence_us);
    }

    /// Ends as soon as the other end's stream is complete. That end has confirmed, in its stream, that it has
    /// all data.
    pub fn leave(&mut self) {
        if !self.is_leaving && self.receiver.is_complete() {
            self.is_leaving = true;
            self.sender.leave(LAST_WORDS);
            self.receiver.leave(LAST_WORDS);
        }
    }

    /// Whether the other end has all of this end's stream.
    pub fn is_delivered(&self) -> bool {
        self.sender.verdict() == Some(Verdict::Whole)
    }

    /// Whether both streams have ended, or never will.
    pub fn is_settled(&self) -> bool {
        self.broken.is_some() || self.is_delivered() && self.receiver.verdict() == Some(Verdict::Whole)
    }

    /// Why the connection ended before both streams did, if it did.
    pub fn broken(&self) -> Option<Broken> {
        self.broken
    }

    /// Whether nothing is left to do: the other end knows the outcome, or is gone.
    pub fn is_over(&mut self, now_us: u64) -> bool {
        if !self.is_settled() && now_us.saturating_sub(self.heard_us) > self.silence_us_max {
            self.end_with(Broken::Silent);
        }
        match self.broken {
            Some(Broken::ByPeer(_) | Broken::Silent) => self.sender.is_done(),
            None if self.is_leaving => self.sender.is_done() && self.receiver.has_said_outcome(),
            // The other end confirms that it knows, or the end that stopped waits for a while.
            Some(Broken::Stopped) | None => self.sender.is_done() && self.receiver.is_over(now_us),
        }
    }

    /// Microseconds since the last packet of the other end.
    pub fn silent_us(&self, now_us: u64) -> u64 {
        now_us.saturating_sub(self.heard_us)
    }

    /// Time for which one direction has failed. A live end confirms what arrives, and is heard every second.
    /// An end that only repeats itself hears nothing.
    pub(crate) fn stuck_us(&self, now_us: u64) -> u64 {
        let is_awaited = self.receiver.verdict().is_none()
            || !self.receiver.is_closed()
                && now_us.saturating_sub(self.receiver.heard_us) < REPEATED_WITHIN_US;
        let unheard_us = if is_awaited { now_us.saturating_sub(self.receiver.news_us) } else { 0 };
        unheard_us.max(self.sender.unconfirmed_us(now_us))
    }

    /// Notes that the streams use another route from now on. A report shows that to the other end if there is
    /// nothing else to send.
    pub(crate) fn use_stream(&mut self, now_us: u64, is_stream: bool) {
        self.sender.use_stream(now_us, is_stream);
        self.receiver.heard(now_us);
        self.receiver.report_anyway(now_us);
    }

    fn end_with(&mut self, broken: Broken) {
        if !self.is_settled() {
            self.broken = Some(broken);
            self.sender.cancel();
        }
    }
}

/// Repeats of each last word of an end that leaves. With 40 % loss, all are lost in one of 250 connections.
const LAST_WORDS: u8 = 6;

/// An end that waits for a word repeats its question within this time.
const REPEATED_WITHIN_US: u64 = 2_000_000;
