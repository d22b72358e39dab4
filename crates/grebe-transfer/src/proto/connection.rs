//! One end of a connection, without sockets, threads or a clock of its own: a sender of its own stream, a receiver of the other end's,
//! and how both end.
//!
//! ```text
//!  this end                                           the other end
//!  Sender    --- DATA, LAST, PROBE, CLOSE ------------> Receiver      the first session of the one that has the ticket,
//!            <--------------- FEEDBACK, OUTCOME -------               the second session of the one that made it
//!  Receiver  <------------- DATA, LAST, PROBE, CLOSE -- Sender        the other session
//!            --- FEEDBACK, OUTCOME ------------------->
//! ```
//!
//! Each stream ends as a transfer does: its receiver says OUTCOME "whole" until it hears CLOSE. The connection ends with both streams. An
//! end that stops says so on both; whatever else than "whole" is said of one of them ends both.

use crate::proto::receiver::{Arrived, Receiver};
use crate::proto::sender::{Sender, SenderOptions, Transmit};
use crate::proto::wire::{Frame, Verdict};

/// One end of a connection.
///
/// Time is microseconds since any moment of the caller's choice, and never goes back.
#[derive(Debug)]
pub struct ConnectionEnd {
    /// Of the stream that this end writes.
    pub sender: Sender,
    /// Of the stream that it reads.
    pub receiver: Receiver,
    silence_us_max: u64,
    heard_us: u64,
    broken: Option<Broken>,
    is_leaving: bool,
}

/// Why a connection ended before both streams did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// Nothing was heard of the other end for too long.
    Silent,
    /// The other end ended it, or does not take it.
    ByPeer(Verdict),
    /// This end stopped.
    Stopped,
}

impl ConnectionEnd {
    /// An end that lets the other one run ahead by `window_bytes`, and by twice the bytes that arrive in a round trip.
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

    /// Takes what the other end says about this end's stream.
    pub fn on_reply(&mut self, now_us: u64, frame: &Frame<'_>) {
        self.heard_us = now_us;
        match frame {
            Frame::Feedback(report) => self.sender.on_feedback(now_us, report),
            Frame::Outcome(Verdict::Whole) if self.sender.is_finished() => {
                self.sender.on_outcome(Verdict::Whole);
            }
            Frame::Outcome(Verdict::Whole) => self.end_with(Broken::ByPeer(Verdict::Cancelled)),
            Frame::Outcome(verdict) => self.end_with(Broken::ByPeer(*verdict)),
            _ => {}
        }
    }

    /// Up to where the other end's stream has come without a gap.
    pub fn received_in_order(&self) -> u64 {
        let there = self.receiver.received.prefix_end();
        self.receiver.end().map_or(there, |end| there.min(end - 1))
    }

    /// The next packet of this end's stream that is due.
    pub fn poll_transmit(&mut self, now_us: u64) -> Option<Transmit> {
        self.sender.poll_transmit(now_us)
    }

    /// Writes what is to be said about the other end's stream into `out`, and returns its length.
    pub fn poll_reply(&mut self, now_us: u64, out: &mut [u8]) -> Option<usize> {
        self.receiver.poll_report(now_us, out)
    }

    /// When [`poll_transmit`](Self::poll_transmit) and [`poll_reply`](Self::poll_reply) are to be asked again at the latest.
    pub fn next_time_us(&self, now_us: u64) -> u64 {
        self.sender.next_time_us(now_us).min(self.receiver.next_time_us())
    }

    /// Ends both streams as they are; the other end is told.
    pub fn stop(&mut self, now_us: u64) {
        if !self.is_settled() {
            self.end_with(Broken::Stopped);
            self.receiver.conclude(now_us, Verdict::Cancelled);
        }
    }

    /// Waits no longer than that for an end that is silent.
    pub(crate) fn bound_silence(&mut self, silence_us: u64) {
        self.silence_us_max = self.silence_us_max.min(silence_us);
    }

    /// Ends as soon as the other end's stream is whole: that end has said in its stream that it has all of this end's.
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

    /// Whether both streams have come to their end, or will not.
    pub fn is_settled(&self) -> bool {
        self.broken.is_some() || self.is_delivered() && self.receiver.verdict() == Some(Verdict::Whole)
    }

    /// Why it ended before both streams did, if it did.
    pub fn broken(&self) -> Option<Broken> {
        self.broken
    }

    /// Whether nothing is left to do: the other end knows how it ended, or is gone.
    pub fn is_over(&mut self, now_us: u64) -> bool {
        if !self.is_settled() && now_us.saturating_sub(self.heard_us) > self.silence_us_max {
            self.end_with(Broken::Silent);
        }
        match self.broken {
            Some(Broken::ByPeer(_) | Broken::Silent) => self.sender.is_done(),
            None if self.is_leaving => self.sender.is_done() && self.receiver.has_said_outcome(),
            // The other end hears of it: it confirms, or the end that stopped waits for a while.
            Some(Broken::Stopped) | None => self.sender.is_done() && self.receiver.is_over(now_us),
        }
    }

    /// Microseconds since the other end was heard.
    pub fn silent_us(&self, now_us: u64) -> u64 {
        now_us.saturating_sub(self.heard_us)
    }

    /// For how long one of the directions has not worked: an end that is there confirms what comes, and is heard every second. Where it only
    /// repeats itself it hears nothing.
    pub(crate) fn stuck_us(&self, now_us: u64) -> u64 {
        let is_awaited = self.receiver.verdict().is_none()
            || !self.receiver.is_closed()
                && now_us.saturating_sub(self.receiver.heard_us) < REPEATED_WITHIN_US;
        let unheard_us = if is_awaited { now_us.saturating_sub(self.receiver.news_us) } else { 0 };
        unheard_us.max(self.sender.unconfirmed_us(now_us))
    }

    /// The streams go by another way from now on. The other end learns of it by a report, where there is nothing else to say.
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

/// How often an end that leaves says each of its last words. Where 40 % are lost, all of them are lost in one of 250 connections.
const LAST_WORDS: u8 = 6;

/// An end that waits for a word asks more often.
const REPEATED_WITHIN_US: u64 = 2_000_000;
