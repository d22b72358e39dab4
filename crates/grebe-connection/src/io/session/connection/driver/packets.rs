//! Packets: builds this end's, and interprets the other end's.

use crate::error::{Error, Result};
use crate::io::Clock;
use crate::io::session::outlet::PACKET_BYTES_MAX;
use crate::io::session::taken;
use crate::io::session::tcp::TcpPacket;
use crate::proto::connection::ConnectionEnd;
use crate::proto::handshake::{Responder, Session};
use crate::proto::receiver::Arrived;
use crate::proto::sender::Transmit;
use crate::proto::sent_packets::Item;
use crate::proto::stream_buffer::{ReceiveBuffer, SendBuffer};
use crate::proto::wire::{DATA_HEADER_BYTES, Frame, HEADER_BYTES, ReceivedPackets, TAG_BYTES, data_header};

/// Both streams, and the sessions that protect their packets.
pub(super) struct Packets {
    pub(super) core: ConnectionEnd,
    /// Session of this end's stream, and session of the other end's stream.
    pub(super) own: Session,
    pub(super) other: Session,
    /// Packet numbers received about this end's stream.
    pub(super) replies: ReceivedPackets,
    /// Number of the next packet about the other end's stream.
    pub(super) reply_number: u64,
    pub(super) sent: SendBuffer,
    pub(super) received: ReceiveBuffer,
    /// Answers latecomers who hold the ticket.
    pub(super) responder: Option<Responder>,
    pub(super) clock: Clock,
}

impl Packets {
    /// Builds and seals the next due packet in `room`, and returns its length. Reports about the other end's
    /// stream go before this end's own data.
    pub(super) fn build_next(&mut self, now_us: u64, room: &mut [u8]) -> Result<Option<usize>> {
        if let Some(frame_bytes) =
            self.core.poll_reply(now_us, &mut room[HEADER_BYTES..REPLY_BYTES_MAX - TAG_BYTES])
        {
            let length = HEADER_BYTES + frame_bytes + TAG_BYTES;
            self.other.seal(self.reply_number, &mut room[..length])?;
            self.reply_number += 1;
            return Ok(Some(length));
        }
        let Some(transmit) = self.core.poll_transmit(now_us) else { return Ok(None) };
        let frame_bytes = self.build(&transmit, &mut room[HEADER_BYTES..])?;
        let length = HEADER_BYTES + frame_bytes + TAG_BYTES;
        self.own.seal(transmit.number, &mut room[..length])?;
        Ok(Some(length))
    }

    /// Writes the frame of a packet of this end's stream and returns its length.
    fn build(&mut self, transmit: &Transmit, room: &mut [u8]) -> Result<usize> {
        let stamp = transmit.stamp;
        let frame = match transmit.item {
            Item::Data { offset, len } => {
                let is_last = self.core.sender.is_last(offset + u64::from(len));
                let end = DATA_HEADER_BYTES + len as usize;
                room[..DATA_HEADER_BYTES].copy_from_slice(&data_header(stamp, offset, is_last));
                self.sent.fill(offset, &mut room[DATA_HEADER_BYTES..end]);
                return Ok(end);
            }
            Item::Probe { datagram_bytes } => {
                let around = HEADER_BYTES + TAG_BYTES + PROBE_HEAD_BYTES;
                Frame::Probe { stamp, padding: (datagram_bytes as usize).saturating_sub(around) }
            }
            Item::Ping => Frame::Probe { stamp, padding: 0 },
            Item::Close => Frame::Close,
        };
        let room = &mut room[..PACKET_BYTES_MAX - HEADER_BYTES - TAG_BYTES];
        frame.encode(room).ok_or(Error::Malformed { what: "a frame longer than a datagram" })
    }

    /// Takes a packet that may be the other end's. Its newest packet shows its present address.
    pub(super) fn take_packet(&mut self, now_us: u64, packet: &mut [u8]) -> TcpPacket {
        let packet_bytes = packet.len();
        if self.other.is_addressed(packet) {
            let packets = self.core.receiver.packets();
            let highest = packets.highest();
            let Ok((number, plain)) = self.other.open(packets, packet) else { return TcpPacket::Nothing };
            if let Ok(frame) = Frame::decode(plain) {
                self.take_frame(now_us, number, packet_bytes, &frame);
            }
            return heard(number, highest);
        }
        if self.own.is_addressed(packet) {
            let highest = self.replies.highest();
            let Ok((number, plain)) = self.own.open(&self.replies, packet) else {
                return TcpPacket::Nothing;
            };
            self.replies.accept(number);
            if let Ok(frame) = Frame::decode(plain) {
                // Uses the send clock, which must not go back.
                self.core.on_reply(self.clock.now_us(), &frame);
            }
            return heard(number, highest);
        }
        taken(&mut self.responder, packet).map_or(TcpPacket::Nothing, TcpPacket::Question)
    }

    pub(super) fn take_frame(&mut self, now_us: u64, number: u64, packet_bytes: usize, frame: &Frame<'_>) {
        if let Arrived::Data { offset, payload } = self.core.on_packet(now_us, number, packet_bytes, frame) {
            self.received.put(offset, payload);
        }
    }
}

fn heard(number: u64, highest: Option<u64>) -> TcpPacket {
    if highest.is_none_or(|highest| number > highest) { TcpPacket::Peer } else { TcpPacket::Nothing }
}

/// Minimum that every path carries.
const REPLY_BYTES_MAX: usize = 1_200;

/// Kind and stamp of a probe.
const PROBE_HEAD_BYTES: usize = 6;
