//! The way to the other end: one socket, or a TCP connection while that is what gets through.

use std::net::SocketAddr;
use std::time::Duration;

use grebe_datagram::wait_either_readable;

use super::{ConnectionOptions, Driver, SLAB_BYTES, SLOT_BYTES};
use crate::error::Result;
use crate::io::session::Notice;
use crate::io::session::connect;
use crate::io::session::tcp::{Heard, PacketStream};

impl Driver {
    /// Builds the packets that are due and hands them to the kernel in as few calls as possible.
    pub(super) fn send_due(&mut self, now_us: u64) -> Result<()> {
        if let Some(mut tcp) = self.start.tcp.take() {
            let sent = self.send_by(&mut tcp, now_us);
            self.start.tcp = Some(tcp);
            return sent;
        }
        let mut at = 0;
        self.runs.clear();
        while at + SLOT_BYTES <= SLAB_BYTES {
            let Some(length) = self.build_next(now_us, at)? else { break };
            match self.runs.last_mut() {
                Some((_, end, segment)) if *segment == length => *end += length,
                _ => self.runs.push((at, at + length, length)),
            }
            at += length;
        }
        if self.runs.is_empty() {
            return Ok(());
        }
        let mut batch = self.start.out.batch();
        for (from, to, segment) in &self.runs {
            // What the kernel refuses counts as lost: the core sends it again, or gives up after a long silence.
            let _ = batch.push_run_to(self.start.peer, &self.slab[*from..*to], *segment);
        }
        let _ = batch.flush();
        Ok(())
    }

    /// Gives a TCP connection what it takes: that is what holds this end back.
    fn send_by(&mut self, tcp: &mut PacketStream, now_us: u64) -> Result<()> {
        tcp.flush();
        for _ in 0..PACKETS_A_TURN {
            if !tcp.has_room() {
                break;
            }
            let Some(length) = self.build_next(now_us, 0)? else { break };
            tcp.send(&self.slab[..length]);
        }
        tcp.flush();
        Ok(())
    }

    /// Waits until a packet is due, or something comes or is written, and takes what came.
    pub(super) fn receive(&mut self) -> Result<()> {
        self.wait();
        if let Some(mut tcp) = self.start.tcp.take() {
            // What it has read and not handed out yet, nobody can wait for.
            self.is_busy = true;
            for _ in 0..PACKETS_A_TURN {
                let Some(packet) = tcp.receive() else {
                    self.is_busy = false;
                    break;
                };
                let now_us = self.start.clock.now_us();
                if let Heard::Peer = self.take_packet(now_us, packet) {
                    self.way_heard_us = now_us;
                }
            }
            self.start.tcp = Some(tcp);
            if self.start.clock.now_us() < self.next_look_us {
                return Ok(());
            }
        }
        self.receive_datagrams()
    }

    fn wait(&mut self) {
        if std::mem::take(&mut self.is_busy) {
            return;
        }
        let now_us = self.start.clock.now_us();
        let has_room = self.start.tcp.as_ref().is_none_or(PacketStream::has_room);
        let due_us = if has_room { self.core.next_time_us(now_us) } else { u64::MAX };
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
        // A wait that fails is a short one.
        let _ = match &self.start.tcp {
            Some(tcp) => {
                let (stream, wait) = tcp.waits(wait);
                wait_either_readable(stream, called, wait)
            }
            None => wait_either_readable(&self.start.socket, called, wait),
        };
        if !std::mem::take(&mut self.shared.lock().thread_sleeps) {
            self.shared.wake.forget();
        }
    }

    fn receive_datagrams(&mut self) -> Result<()> {
        // The socket is borrowed apart from the rest, which takes what it brings.
        let Some(mut datagrams) = self.start.datagrams.take() else { return Ok(()) };
        let mut now = None;
        let outcome = datagrams.try_recv(
            || Some(vec![0; SLOT_BYTES]),
            |mut slot, received| {
                let now = now.get_or_insert_with(|| self.start.clock.reading());
                let arrived_us = self.arrivals.us_of(now, received.timestamp);
                for range in received.segments() {
                    self.take_datagram(arrived_us, received.from, &mut slot[range]);
                }
                Some(slot)
            },
        );
        self.start.datagrams = Some(datagrams);
        self.is_busy |= outcome?.datagrams > 0;
        Ok(())
    }

    pub(super) fn take_datagram(&mut self, arrived_us: u64, from: SocketAddr, datagram: &mut [u8]) {
        match self.take_packet(arrived_us, datagram) {
            Heard::Peer if from == self.start.peer => {
                if self.start.tcp.is_none() {
                    self.way_heard_us = arrived_us;
                }
            }
            // Behind a NAT its port may change. Whoever holds back packets and sends them from elsewhere shall not choose whom we send to.
            Heard::Peer if self.is_lost(arrived_us) && connect::is_moved(self.start.peer, from) => {
                (self.start.peer, self.way_heard_us) = (from, arrived_us);
            }
            Heard::Question(answer) => {
                let _ = self.start.socket.send_to(&answer, from);
            }
            Heard::Peer | Heard::Nothing => {}
        }
    }

    /// Another end that is silent is looked for over TCP, or comes by itself.
    pub(super) fn look_for_another_way(&mut self, now_us: u64, options: &ConnectionOptions) {
        if self.start.tcp.as_ref().is_some_and(PacketStream::is_over) {
            self.go_by(now_us, None);
        }
        if self.core.is_settled() {
            return;
        }
        let mut found = self.start.fallback.poll(now_us, self.way_heard_us);
        if now_us >= self.next_look_us {
            self.next_look_us = now_us + LOOK_EVERY_US;
            if let Some(mut door) = self.start.door.take() {
                found = found.or(door.poll(|packet| self.take_packet(now_us, packet)));
                self.start.door = Some(door);
            }
        }
        // Only from where the other end is, or where it is lost.
        let is_lost = self.is_lost(now_us);
        let is_ours =
            |tcp: &PacketStream| is_lost || tcp.peer().is_some_and(|peer| peer.ip() == self.start.peer.ip());
        if let Some(tcp) = found.filter(is_ours) {
            (options.notify)(Notice::OverTcp);
            self.go_by(now_us, Some(tcp));
        }
    }

    /// Whether nothing has come for long by the way that is in use.
    fn is_lost(&self, now_us: u64) -> bool {
        now_us.saturating_sub(self.way_heard_us) > connect::SILENT_US
    }

    /// Goes on by a TCP connection, or by UDP again.
    pub(super) fn go_by(&mut self, now_us: u64, tcp: Option<PacketStream>) {
        self.core.sender.use_stream(now_us, tcp.is_some());
        if tcp.is_some() {
            self.way_heard_us = now_us;
        }
        self.start.tcp = tcp;
    }
}

/// Packets that a TCP connection is given, or brings, before the other is done.
const PACKETS_A_TURN: usize = 64;

/// How often this end looks who came by TCP and, while TCP is used, whether something came by UDP.
const LOOK_EVERY_US: u64 = 100_000;

/// How often it looks whether it is to stop.
const WAIT_US_MAX: u64 = 50_000;

/// Shorter sleeps cost more than they gain: the schedule makes up for a sleep that is too long.
const WAIT_US_MIN: u64 = 100;
