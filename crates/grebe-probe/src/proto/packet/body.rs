//! Bodies of packets.

use grebe_packet::{Cookie, Error, Reader, Result, Writer};

use crate::proto::packet::request::{Request, Response, TcpRequest};
use crate::proto::train::Train;

/// Body of a packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Body {
    /// Client: first packet.
    Hello { nonce: [u8; 16] },
    /// Server: asks for a proof of the client's address.
    Challenge { nonce: [u8; 16], cookie: Cookie },
    /// Client: proof of its address, and request for a session.
    Start { nonce: [u8; 16], cookie: Cookie },
    /// Server: number of clients served before this one.
    Wait { nonce: [u8; 16], position: u16 },
    /// Server: start of the session.
    Welcome(Welcome),
    /// Client: asks for the server's time.
    Ping { sent_ns: u64 },
    /// Server: its time at the ping's arrival, and at this answer.
    Pong { sent_ns: u64, arrived_ns: u64, replied_ns: u64 },
    /// Either side: one datagram of a train.
    Data { train: Train, seq: u32, sent_ns: u64 },
    /// Either side: tests whether the path carries this length.
    Size,
    /// Client: a request. A repeated id is a retransmission of the same request.
    Request { id: u32, request: Request },
    /// Server: response to the request of this id.
    Response { id: u32, response: Response },
    /// Either side: end of the session.
    Bye { reason: EndReason },
    /// Client, as the first bytes of a TCP connection.
    OpenTcp(TcpRequest),
}

/// Reason for the end of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndReason {
    Done,
    Limit,
    Busy,
}

impl Body {
    /// Whether it is padded, because the client's address is not proven yet.
    pub(crate) fn is_opening(&self) -> bool {
        matches!(self, Self::Hello { .. } | Self::Start { .. })
    }

    pub(crate) fn kind(&self) -> u8 {
        match self {
            Self::Hello { .. } => 1,
            Self::Challenge { .. } => 2,
            Self::Start { .. } => 3,
            Self::Wait { .. } => 4,
            Self::Welcome(_) => 5,
            Self::Ping { .. } => 10,
            Self::Pong { .. } => 11,
            Self::Data { .. } => KIND_DATA,
            Self::Size => KIND_SIZE,
            Self::Request { .. } => 14,
            Self::Response { .. } => 15,
            Self::Bye { .. } => 16,
            Self::OpenTcp(_) => 17,
        }
    }

    pub(crate) fn write<'a, 'b>(&self, writer: &'a mut Writer<'b>) -> &'a mut Writer<'b> {
        match self {
            Self::Hello { nonce } => writer.put(nonce),
            Self::Challenge { nonce, cookie } | Self::Start { nonce, cookie } => {
                cookie.write(writer.put(nonce));
                writer
            }
            Self::Wait { nonce, position } => writer.put(nonce).u16(*position),
            Self::Welcome(welcome) => welcome.write(writer),
            Self::Ping { sent_ns } => writer.u64(*sent_ns),
            Self::Pong { sent_ns, arrived_ns, replied_ns } => {
                writer.u64(*sent_ns).u64(*arrived_ns).u64(*replied_ns)
            }
            Self::Data { train, seq, sent_ns } => train.write(writer).u32(*seq).u64(*sent_ns),
            Self::Size => writer,
            Self::Request { id, request } => request.write(writer.u32(*id)),
            Self::Response { id, response } => response.write(writer.u32(*id)),
            Self::Bye { reason } => writer.u8(*reason as u8),
            Self::OpenTcp(request) => request.write(writer),
        }
    }

    pub(crate) fn read(kind: u8, body: &[u8]) -> Result<Self> {
        let reader = &mut Reader::new(body);
        Ok(match kind {
            1 => Self::Hello { nonce: reader.array()? },
            2 => Self::Challenge { nonce: reader.array()?, cookie: Cookie::read(reader)? },
            3 => Self::Start { nonce: reader.array()?, cookie: Cookie::read(reader)? },
            4 => Self::Wait { nonce: reader.array()?, position: reader.u16()? },
            5 => Self::Welcome(Welcome::read(reader)?),
            10 => Self::Ping { sent_ns: reader.u64()? },
            11 => Self::Pong { sent_ns: reader.u64()?, arrived_ns: reader.u64()?, replied_ns: reader.u64()? },
            KIND_DATA => {
                let (train, seq, sent_ns) = (Train::read(reader)?, reader.u32()?, reader.u64()?);
                if seq >= train.count {
                    return Err(Error::Malformed { what: "a datagram after the end of its train" });
                }
                Self::Data { train, seq, sent_ns }
            }
            KIND_SIZE => Self::Size,
            14 => Self::Request { id: reader.u32()?, request: Request::read(reader)? },
            15 => Self::Response { id: reader.u32()?, response: Response::read(reader)? },
            16 => Self::Bye { reason: EndReason::read(reader)? },
            17 => Self::OpenTcp(TcpRequest::read(reader)?),
            _ => return Err(Error::Malformed { what: "an unknown kind of packet" }),
        })
    }
}

impl EndReason {
    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        match reader.u8()? {
            0 => Ok(Self::Done),
            1 => Ok(Self::Limit),
            2 => Ok(Self::Busy),
            _ => Err(Error::Malformed { what: "an unknown reason for an end" }),
        }
    }
}

/// Start of a session.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Welcome {
    pub(crate) nonce: [u8; 16],
    pub(crate) server_nonce: [u8; 16],
    pub(crate) session: u64,
    /// Server's wall clock at the zero of its other stamps, in ns since 1970.
    pub(crate) epoch_ns: u64,
    pub(crate) rate_max_bps: f64,
    pub(crate) bytes_max: u64,
    pub(crate) duration_max_ns: u64,
    /// Receive buffer granted by the server's kernel, and the requested one.
    pub(crate) buffer_bytes: u64,
    pub(crate) buffer_asked_bytes: u64,
}

impl Welcome {
    pub(crate) fn write<'a, 'b>(&self, writer: &'a mut Writer<'b>) -> &'a mut Writer<'b> {
        writer.put(&self.nonce).put(&self.server_nonce).u64(self.session).u64(self.epoch_ns);
        writer.f64(self.rate_max_bps).u64(self.bytes_max).u64(self.duration_max_ns);
        writer.u64(self.buffer_bytes).u64(self.buffer_asked_bytes)
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let welcome = Self {
            nonce: reader.array()?,
            server_nonce: reader.array()?,
            session: reader.u64()?,
            epoch_ns: reader.u64()?,
            rate_max_bps: reader.f64()?,
            bytes_max: reader.u64()?,
            duration_max_ns: reader.u64()?,
            buffer_bytes: reader.u64()?,
            buffer_asked_bytes: reader.u64()?,
        };
        match welcome.rate_max_bps > 0.0 {
            true => Ok(welcome),
            false => Err(Error::Malformed { what: "a session without a rate" }),
        }
    }
}

pub(crate) const KIND_DATA: u8 = 12;
pub(crate) const KIND_SIZE: u8 = 13;
/// Train, sequence number and time.
pub(crate) const DATA_BODY_BYTES: usize = 18 + 4 + 8;
