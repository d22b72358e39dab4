//! Packets: how those of this end are made, and what those of the other end mean.

use super::{Driver, SLOT_BYTES};
use crate::error::{Error, Result};
use crate::io::session::taken;
use crate::io::session::tcp::Heard;
use crate::proto::receiver::Arrived;
use crate::proto::sender::Transmit;
use crate::proto::sent_packets::Item;
use crate::proto::wire::{DATA_HEADER_BYTES, Frame, HEADER_BYTES, TAG_BYTES, data_header};

impl Driver {
    /// Builds the next packet that is due in the slab, sealed, and returns its length: what is to be said about the other end's stream
    /// comes before this end's own.
    pub(super) fn build_next(&mut self, now_us: u64, at: usize) -> Result<Option<usize>> {
        let room = &mut self.slab[at + HEADER_BYTES..at + REPLY_BYTES_MAX - TAG_BYTES];
        if let Some(frame_bytes) = self.core.poll_reply(now_us, room) {
            let length = HEADER_BYTES + frame_bytes + TAG_BYTES;
            self.start.other.seal(self.reply_number, &mut self.slab[at..at + length])?;
            self.reply_number += 1;
            return Ok(Some(length));
        }
        let Some(transmit) = self.core.poll_transmit(now_us) else { return Ok(None) };
        let frame_bytes = self.build(&transmit, at + HEADER_BYTES)?;
        let length = HEADER_BYTES + frame_bytes + TAG_BYTES;
        self.start.own.seal(transmit.number, &mut self.slab[at..at + length])?;
        Ok(Some(length))
    }

    /// Writes the frame of a packet of this end's stream to this place of the slab, and returns its length.
    fn build(&mut self, transmit: &Transmit, at: usize) -> Result<usize> {
        let stamp = transmit.stamp;
        let frame = match transmit.item {
            Item::Data { offset, len } => {
                let is_last = self.core.sender.is_last(offset + u64::from(len));
                let payload_at = at + DATA_HEADER_BYTES;
                self.slab[at..payload_at].copy_from_slice(&data_header(stamp, offset, is_last));
                self.sent.fill(offset, &mut self.slab[payload_at..payload_at + len as usize]);
                return Ok(DATA_HEADER_BYTES + len as usize);
            }
            Item::Probe { datagram_bytes } => {
                let around = HEADER_BYTES + TAG_BYTES + PROBE_HEAD_BYTES;
                Frame::Probe { stamp, padding: (datagram_bytes as usize).saturating_sub(around) }
            }
            Item::Ping | Item::Offer => Frame::Probe { stamp, padding: 0 },
            Item::Close => Frame::Close,
        };
        let room = &mut self.slab[at..at + SLOT_BYTES - HEADER_BYTES - TAG_BYTES];
        frame.encode(room).ok_or(Error::Malformed { what: "a frame longer than a datagram" })
    }

    /// Takes what may be the other end's; its newest packet shows where it is.
    pub(super) fn take_packet(&mut self, now_us: u64, packet: &mut [u8]) -> Heard {
        let packet_bytes = packet.len();
        if self.start.other.is_addressed(packet) {
            let packets = self.core.receiver.packets();
            let highest = packets.highest();
            let Ok((number, plain)) = self.start.other.open(packets, packet) else { return Heard::Nothing };
            if let Ok(frame) = Frame::decode(plain) {
                self.take_frame(now_us, number, packet_bytes, &frame);
            }
            return heard(number, highest);
        }
        if self.start.own.is_addressed(packet) {
            let highest = self.replies.highest();
            let Ok((number, plain)) = self.start.own.open(&self.replies, packet) else {
                return Heard::Nothing;
            };
            self.replies.accept(number);
            if let Ok(frame) = Frame::decode(plain) {
                // By the clock that its packets left by, which must not go back.
                self.core.on_reply(self.start.clock.now_us(), &frame);
            }
            return heard(number, highest);
        }
        taken(&mut self.start.responder, packet).map_or(Heard::Nothing, Heard::Question)
    }

    pub(super) fn take_frame(&mut self, now_us: u64, number: u64, packet_bytes: usize, frame: &Frame<'_>) {
        if let Arrived::Data { offset, payload } = self.core.on_packet(now_us, number, packet_bytes, frame) {
            self.received.put(offset, payload);
        }
    }
}

fn heard(number: u64, highest: Option<u64>) -> Heard {
    if highest.is_none_or(|highest| number > highest) { Heard::Peer } else { Heard::Nothing }
}

/// Every path carries this.
const REPLY_BYTES_MAX: usize = 1_200;

/// Kind and stamp of a probe.
const PROBE_HEAD_BYTES: usize = 6;
