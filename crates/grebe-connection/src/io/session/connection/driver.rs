//! Thread of a connection. It seals and sends written data, opens and orders received data, and reports.

mod packets;
mod route;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use grebe_datagram::Receiver as Datagrams;

use self::packets::Packets;
use super::options::{ConnectionOptions, SLOT_BYTES};
use super::shared::{ConnectionProgress, Failure, Shared};
use crate::error::Error;
use crate::io::session::connect;
use crate::io::session::route::Route;
use crate::io::session::tcp::PacketStream;
use crate::io::{ArrivalTimes, Clock};
use crate::proto::connection::{Broken, ConnectionEnd};
use crate::proto::handshake::{Responder, Session, TRAIN_REPORTS};
use crate::proto::sender::SenderOptions;
use crate::proto::stream_buffer::{ReceiveBuffer, SendBuffer};
use crate::proto::wire::{Frame, ReceivedPackets, Verdict, WINDOW_BYTES_MAX};

/// State at the start of a connection.
pub(super) struct Start {
    /// Datagrams from the other end.
    pub(super) datagrams: Datagrams<Vec<u8>>,
    pub(super) route: Route,
    /// Session of this end's stream, and session of the other end's stream.
    pub(super) own: Session,
    pub(super) other: Session,
    pub(super) rtt: Option<Duration>,
    /// TCP connection over which the ends found each other, if any.
    pub(super) tcp: Option<PacketStream>,
    /// Answers latecomers who hold the ticket.
    pub(super) responder: Option<Responder>,
    pub(super) clock: Clock,
}

/// Packets that arrived before the connection's thread began.
#[derive(Default)]
pub(super) struct Early {
    /// Packet that proved the other end's address: arrival time, number, length and frame.
    pub(super) first: Option<(u64, u64, usize, Vec<u8>)>,
    /// Packets that followed it.
    pub(super) rest: Vec<(u64, SocketAddr, Vec<u8>)>,
}

pub(super) struct Driver {
    /// `None` while `receive` borrows it.
    datagrams: Option<Datagrams<Vec<u8>>>,
    route: Route,
    packets: Packets,
    shared: Arc<Shared>,
    arrivals: ArrivalTimes,
    /// Time of the next check for TCP connections and, while TCP is in use, for UDP packets.
    next_look_us: u64,
    /// The last read of the socket brought packets, so the next one may too.
    is_busy: bool,
    failure: Option<Failure>,
    keep_trying: Duration,
    /// Silence of the other end at the last notice.
    told_silent_us: Option<u64>,
}

impl Driver {
    pub(super) fn new(start: Start, shared: Arc<Shared>, options: &ConnectionOptions) -> Self {
        let Start { datagrams, mut route, own, other, rtt, tcp, responder, clock } = start;
        let now_us = clock.now_us();
        let (datagram_bytes, probe_datagram_bytes) = connect::datagram_bytes(&route.socket, route.peer);
        let local_port = route.socket.local_addr().map_or(0, |local| local.port());
        let sender_options = SenderOptions {
            mode: options.mode,
            limit_bits_per_s: options.limit_bits_per_s,
            rtt_us: rtt.map(|rtt| rtt.as_micros() as u64),
            datagram_bytes,
            probe_datagram_bytes,
            seed: u64::from(local_port) + u64::from(std::process::id()),
            silence_us_max: options.keep_trying.as_micros() as u64,
        };
        route.heard_us = now_us;
        let peer = route.peer;
        if let Some(meeting) = route.meeting.as_mut().filter(|_| tcp.is_none()) {
            meeting.settle(peer);
        }
        let packets = Packets {
            core: ConnectionEnd::new(now_us, WINDOW_BYTES, sender_options),
            own,
            other,
            replies: ReceivedPackets::default(),
            reply_number: TRAIN_REPORTS,
            sent: SendBuffer::default(),
            received: ReceiveBuffer::default(),
            responder,
            clock,
        };
        let mut driver = Self {
            datagrams: Some(datagrams),
            route,
            packets,
            shared,
            arrivals: ArrivalTimes::default(),
            next_look_us: 0,
            is_busy: false,
            failure: None,
            keep_trying: options.keep_trying,
            told_silent_us: None,
        };
        if tcp.is_some() {
            driver.go_by(now_us, tcp);
        }
        driver
    }

    /// Carries the connection until both ends know how it ended.
    pub(super) fn run(mut self, early: Early, options: &ConnectionOptions) {
        if let Some((arrived_us, number, datagram_bytes, plain)) = early.first
            && let Ok(frame) = Frame::decode(&plain)
        {
            self.packets.take_frame(arrived_us, number, datagram_bytes, &frame);
        }
        for (arrived_us, from, mut datagram) in early.rest {
            self.take_datagram(arrived_us, from, &mut datagram);
        }
        loop {
            let now_us = self.now_us();
            if options.cancel.is_cancelled() {
                self.packets.core.stop(now_us);
            }
            self.look_for_another_way(now_us, options);
            self.exchange(now_us);
            if let Err(error) = self.send_due(now_us).and_then(|()| self.receive()) {
                self.fail(&error);
                break;
            }
            // After reading: an end that was suspended must not mistake its own pause for silence.
            self.tell_silence(self.now_us(), options);
            if self.packets.core.is_over(self.now_us()) {
                break;
            }
        }
        self.exchange(self.now_us());
        self.route.leave();
        // Lets the other end learn the verdict.
        if let Some(tcp) = self.route.tcp.take() {
            tcp.finish();
        }
    }

    /// Hands received data to the application, and takes its written data.
    fn exchange(&mut self, now_us: u64) {
        let Packets { core, sent, received, .. } = &mut self.packets;
        let broken = self.failure.clone().or(core.broken().map(|broken| failure(broken, self.keep_trying)));
        let mut guard = self.shared.lock();
        let state = &mut *guard;
        state.has_news = false;
        while let Some(block) = state.written.pop_front() {
            if let Some(free) = sent.push(block) {
                state.recycle(free);
            }
        }
        core.sender.extend(now_us, sent.end(), state.flushed_bytes);
        if state.is_finished {
            core.sender.finish();
        }
        core.bound_silence(state.silence_us_max);
        if state.is_leaving {
            core.leave();
        }
        state.is_delivered = core.is_delivered();
        let confirmed = if state.is_delivered { u64::MAX } else { core.sender.confirmed.prefix_end() };
        state.confirmed_bytes = confirmed.min(sent.end());
        while let Some(block) = sent.release(state.confirmed_bytes) {
            state.recycle(block);
        }
        state.room_bytes = room_bytes(core);

        for memory in state.read_memory.drain(..) {
            received.reuse(memory);
        }
        let (chunks, read_bytes, is_unread) = (&mut state.chunks, &mut state.read_bytes, state.is_unread);
        received.pass(core.received_in_order(), |chunk| {
            if is_unread {
                *read_bytes += chunk.bytes().len() as u64;
            } else {
                chunks.push_back(chunk);
            }
        });
        state.is_ended = core.receiver.is_complete();
        let waiting_bytes = received.passed().saturating_sub(state.read_bytes);
        core.receiver.set_backlog(now_us, waiting_bytes);
        let is_much = waiting_bytes >= CALL_BYTES;
        state.call_at_read_bytes = if is_much { state.read_bytes + CALL_BYTES } else { u64::MAX };

        if state.failure.is_none() {
            state.failure = broken;
        }
        let progress = core.sender.progress();
        state.progress = ConnectionProgress {
            written_bytes: state.written_bytes,
            confirmed_bytes: progress.confirmed_bytes.min(sent.end()),
            received_bytes: core.receiver.received.covered() - u64::from(core.receiver.is_complete()),
            wire_bytes: core.sender.counters.wire_bytes,
            rate_bits_per_s: progress.rate_bits_per_s,
            rtt_us: progress.rtt_us,
            queue_us: progress.queue_us,
            loss: progress.loss,
            limit: progress.limit,
            silent_us: core.silent_us(now_us),
            is_over_tcp: self.route.tcp.is_some(),
            counters: core.sender.counters,
            phases: core.sender.costs(now_us),
            datagram_bytes: core.sender.sizes.longest(),
        };
        self.shared.let_go(state);
    }

    fn now_us(&self) -> u64 {
        self.packets.clock.now_us()
    }

    /// Ends the connection because this end cannot continue, and tells the other end if possible.
    fn fail(&mut self, error: &Error) {
        let kind = match error {
            Error::Socket(grebe_datagram::Error::Receive { source }) => source.kind(),
            _ => std::io::ErrorKind::Other,
        };
        self.failure = Some(Failure::Socket { kind, what: error.to_string() });
        let now_us = self.now_us();
        self.packets.core.stop(now_us);
        let _ = self.send_due(now_us);
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Runs even if this thread panics, so that no caller waits for ever.
        let broken = self.packets.core.broken().map(|broken| failure(broken, self.keep_trying));
        let failure = self.failure.take().or(broken);
        self.shared.end(|| failure.unwrap_or(Failure::Ended { verdict: Verdict::Cancelled }));
    }
}

fn failure(broken: Broken, waited: Duration) -> Failure {
    match broken {
        Broken::Silent => Failure::Silent { waited },
        Broken::ByPeer(verdict) => Failure::Ended { verdict },
        Broken::Stopped => Failure::Cancelled,
    }
}

/// Maximum unconfirmed bytes that the application may write: a multiple of the bytes in flight, to cover
/// repeated loss.
fn room_bytes(core: &ConnectionEnd) -> u64 {
    let controller = &core.sender.controller;
    room_of(controller.rate_ahead(), controller.smoothed_rtt_us())
}

fn room_of(bytes_per_s: f64, rtt_us: u64) -> u64 {
    let product_bytes = (bytes_per_s * rtt_us as f64 / 1e6) as u64;
    ROOM_BYTES_MIN.saturating_add(ROOM_PRODUCTS.saturating_mul(product_bytes)).min(WINDOW_BYTES_MAX)
}

pub(super) const ROOM_BYTES_MIN: u64 = 4 << 20;

/// A byte that is lost twice is confirmed after three round trips, and later bytes need room meanwhile.
const ROOM_PRODUCTS: u64 = 4;

/// Receive window beyond the unread data, in addition to twice the bytes that arrive in a round trip.
pub(super) const WINDOW_BYTES: u64 = 16 << 20;

/// Maximum bytes read between two updates of the window.
const CALL_BYTES: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_receiver_claims_only_so_many_bytes_wait_for_it() {
        assert_eq!(room_of(0.0, 0), ROOM_BYTES_MIN);
        assert_eq!(room_of(125e6, 100_000), ROOM_BYTES_MIN + 4 * 12_500_000);
        for claimed in [1e15, 1e30, f64::INFINITY] {
            assert_eq!(room_of(claimed, u64::MAX), WINDOW_BYTES_MAX);
        }
    }

    #[test]
    fn a_high_limit_alone_takes_no_memory() {
        let (limit_bits_per_s, rtt_us) = (Some(1e12), Some(300_000));
        let options = SenderOptions { limit_bits_per_s, rtt_us, ..SenderOptions::default() };
        assert_eq!(room_bytes(&ConnectionEnd::new(0, WINDOW_BYTES, options)), ROOM_BYTES_MIN);
    }
}
