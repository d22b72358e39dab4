//! Route to the other end: one socket, or a TCP connection while UDP fails.

use std::net::SocketAddr;
use std::time::Duration;

use grebe_datagram::wait_either_readable;

use super::{ConnectionOptions, Driver, SLOT_BYTES};
use crate::error::Result;
use crate::io::session::Notice;
use crate::io::session::connect;
use crate::io::session::tcp::{PacketStream, TcpPacket};

impl Driver {
    pub(super) fn send_due(&mut self, now_us: u64) -> Result<()> {
        let Self { route, packets, .. } = self;
        route.send(|room| packets.build_next(now_us, room))
    }

    /// Waits until a packet is due, data arrives or the application writes, then reads what arrived.
    pub(super) fn receive(&mut self) -> Result<()> {
        self.wait();
        if let Some(mut tcp) = self.route.tcp.take() {
            // The stream may hold packets that it has already read, and no wait would notice them.
            self.is_busy = true;
            for _ in 0..PACKETS_A_TURN {
                let Some(packet) = tcp.receive() else {
                    self.is_busy = false;
                    break;
                };
                let now_us = self.now_us();
                if let TcpPacket::Peer = self.packets.take_packet(now_us, packet) {
                    self.route.heard_us = now_us;
                }
            }
            self.route.tcp = Some(tcp);
            if self.now_us() < self.next_look_us {
                return Ok(());
            }
        }
        self.receive_datagrams()
    }

    fn wait(&mut self) {
        if std::mem::take(&mut self.is_busy) {
            return;
        }
        let now_us = self.now_us();
        let has_room = self.route.tcp.as_ref().is_none_or(PacketStream::has_room);
        let due_us = if has_room { self.packets.core.next_time_us(now_us) } else { u64::MAX };
        let wait_us = due_us.saturating_sub(now_us).min(WAIT_US_MAX);
        if wait_us == 0 {
            return;
        }
        let wait = Duration::from_micros(wait_us.max(WAIT_US_MIN));
        let mut state = self.shared.lock();
        if state.has_news {
            return;
        }
        state.thread_sleeps = true;
        drop(state);
        let called = self.shared.wake.socket();
        // A failed wait only shortens the turn.
        let _ = match &self.route.tcp {
            Some(tcp) => {
                let (stream, wait) = tcp.waits(wait);
                wait_either_readable(stream, called, wait)
            }
            None => wait_either_readable(&self.route.socket, called, wait),
        };
        if !std::mem::take(&mut self.shared.lock().thread_sleeps) {
            self.shared.wake.forget();
        }
    }

    fn receive_datagrams(&mut self) -> Result<()> {
        // Moves the datagrams out, so that `self` can take their packets.
        let Some(mut datagrams) = self.datagrams.take() else { return Ok(()) };
        let mut now = None;
        let outcome = datagrams.try_recv(
            || Some(vec![0; SLOT_BYTES]),
            |mut slot, received| {
                let now = now.get_or_insert_with(|| self.packets.clock.reading());
                let arrived_us = self.arrivals.us_of(now, received.timestamp);
                for range in received.segments() {
                    self.take_datagram(arrived_us, received.from, &mut slot[range]);
                }
                Some(slot)
            },
        );
        self.datagrams = Some(datagrams);
        self.is_busy |= outcome?.datagrams > 0;
        Ok(())
    }

    pub(super) fn take_datagram(&mut self, arrived_us: u64, from: SocketAddr, datagram: &mut [u8]) {
        if self.route.meeting.as_ref().is_some_and(|meeting| !meeting.is_wanted(from)) {
            return;
        }
        match self.packets.take_packet(arrived_us, datagram) {
            TcpPacket::Peer => {
                let is_lost = self.is_lost(arrived_us);
                self.route.heard(arrived_us, from, is_lost);
            }
            TcpPacket::Question(answer) => {
                let _ = self.route.socket.send_to(&answer, from);
            }
            TcpPacket::Nothing => {
                if let Some(meeting) = &mut self.route.meeting {
                    meeting.take(from, datagram);
                }
            }
        }
    }

    /// Looks for another route to a silent end: dials TCP, or accepts it.
    pub(super) fn look_for_another_way(&mut self, now_us: u64, options: &ConnectionOptions) {
        if self.route.tcp.as_ref().is_some_and(PacketStream::is_over) {
            self.go_by(now_us, None);
        }
        self.route.keep_place(now_us);
        if self.packets.core.broken().is_some() {
            return;
        }
        let mut found = self.route.fallback.poll(now_us, self.stuck_us(now_us));
        if now_us >= self.next_look_us {
            self.next_look_us = now_us + LOOK_EVERY_US;
            if let Some(mut door) = self.route.door.take() {
                found = found.or(door.poll(|packet| self.packets.take_packet(now_us, packet)));
                self.route.door = Some(door);
            }
        }
        // Only from the other end's known address, unless the route is lost.
        let is_lost = self.is_lost(now_us);
        let is_ours =
            |tcp: &PacketStream| is_lost || tcp.peer().is_some_and(|peer| peer.ip() == self.route.peer.ip());
        if let Some(tcp) = found.filter(is_ours) {
            if self.route.tcp.is_none() {
                (options.notify)(Notice::OverTcp);
            }
            self.go_by(now_us, Some(tcp));
        }
    }

    /// Reports once that the other end is silent, and once that it is heard again.
    pub(super) fn tell_silence(&mut self, now_us: u64, options: &ConnectionOptions) {
        let silent_us = self.packets.core.silent_us(now_us);
        let peer = grebe_relay::canonical(self.route.peer);
        self.told_silent_us = match self.told_silent_us {
            Some(told_us) if silent_us < told_us => {
                (options.notify)(Notice::HeardAgain { peer, silent: Duration::from_micros(told_us) });
                None
            }
            None if silent_us <= SILENCE_TOLD_US || self.packets.core.is_settled() => None,
            None => {
                let dials = self.route.fallback.can_dial();
                let (silent, ends_after) = (Duration::from_micros(silent_us), self.keep_trying);
                (options.notify)(Notice::Silent { peer, silent, dials, ends_after });
                Some(silent_us)
            }
            Some(_) => Some(silent_us),
        };
    }

    /// Whether the route in use has failed for long.
    fn is_lost(&self, now_us: u64) -> bool {
        self.stuck_us(now_us) > connect::SILENT_US
    }

    /// Time for which the route in use has failed in at least one direction.
    fn stuck_us(&self, now_us: u64) -> u64 {
        now_us.saturating_sub(self.route.heard_us).max(self.packets.core.stuck_us(now_us))
    }

    /// Switches to a TCP connection, or back to UDP.
    pub(super) fn go_by(&mut self, now_us: u64, tcp: Option<PacketStream>) {
        self.packets.core.use_stream(now_us, tcp.is_some());
        self.route.go_by(now_us, tcp);
    }
}

/// Maximum packets to read from TCP before sending.
const PACKETS_A_TURN: usize = 64;

/// Silence before the first notice. An available alternative route is found earlier.
const SILENCE_TOLD_US: u64 = connect::SILENT_US + 1_000_000;

/// Check interval for TCP connections and, while TCP is in use, for UDP packets.
const LOOK_EVERY_US: u64 = 100_000;

/// Poll interval of the cancellation flag.
const WAIT_US_MAX: u64 = 50_000;

/// Shorter sleeps cost more than they gain. The schedule compensates for a long sleep.
const WAIT_US_MIN: u64 = 100;
