//! Requests of a client within a session and responses of the server, TCP streams included.

use grebe_packet::{Error, Reader, Result, Writer};

use crate::proto::tracker::Summary;
use crate::proto::train::Train;

/// Request of a client.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Request {
    /// Send this train.
    SendTrain(Train),
    /// Report the progress of the requested train.
    TrainSent { train: u32 },
    /// Report the arrivals of my train.
    Summary { train: u32 },
    /// Send three datagrams of each length (0: none).
    SendSizes([u16; SIZES_MAX]),
    /// Report the longest of my datagrams that arrived.
    LongestSize,
    /// Report the arrivals of my TCP stream.
    TcpArrivals { id: u32 },
}

/// Response of a server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Response {
    /// Accepted.
    Accepted,
    /// Refused by a limit of the server.
    Refused,
    /// Unknown, possibly only for now.
    Unknown,
    /// About the server's train: number of datagrams sent so far, and whether that is all.
    TrainSent { sent: u32, is_done: bool },
    /// About the client's train.
    Summary(Summary),
    /// Length of the longest datagram that arrived.
    LongestSize { bytes: u16 },
    /// About the client's TCP stream.
    TcpArrivals(TcpArrivals),
}

impl Request {
    pub(crate) fn write<'a, 'b>(&self, writer: &'a mut Writer<'b>) -> &'a mut Writer<'b> {
        match self {
            Self::SendTrain(train) => train.write(writer.u8(0)),
            Self::TrainSent { train } => writer.u8(1).u32(*train),
            Self::Summary { train } => writer.u8(2).u32(*train),
            Self::SendSizes(sizes) => sizes.iter().fold(writer.u8(3), |writer, &size| writer.u16(size)),
            Self::LongestSize => writer.u8(4),
            Self::TcpArrivals { id } => writer.u8(5).u32(*id),
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(match reader.u8()? {
            0 => Self::SendTrain(Train::read(reader)?),
            1 => Self::TrainSent { train: reader.u32()? },
            2 => Self::Summary { train: reader.u32()? },
            3 => {
                let mut sizes = [0; SIZES_MAX];
                for size in &mut sizes {
                    *size = reader.u16()?;
                }
                if sizes.iter().any(|&size| size > Train::SIZE_MAX) {
                    return Err(Error::Malformed { what: "a datagram above the maximum length" });
                }
                Self::SendSizes(sizes)
            }
            4 => Self::LongestSize,
            5 => Self::TcpArrivals { id: reader.u32()? },
            _ => return Err(Error::Malformed { what: "an unknown request" }),
        })
    }
}

impl Response {
    pub(crate) fn write<'a, 'b>(&self, writer: &'a mut Writer<'b>) -> &'a mut Writer<'b> {
        match self {
            Self::Accepted => writer.u8(0),
            Self::Refused => writer.u8(1),
            Self::Unknown => writer.u8(2),
            Self::TrainSent { sent, is_done } => writer.u8(3).u32(*sent).u8((*is_done).into()),
            Self::Summary(summary) => summary.write(writer.u8(4)),
            Self::LongestSize { bytes } => writer.u8(5).u16(*bytes),
            Self::TcpArrivals(arrivals) => arrivals.write(writer.u8(6)),
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(match reader.u8()? {
            0 => Self::Accepted,
            1 => Self::Refused,
            2 => Self::Unknown,
            3 => Self::TrainSent { sent: reader.u32()?, is_done: reader.u8()? != 0 },
            4 => Self::Summary(Summary::read(reader)?),
            5 => Self::LongestSize { bytes: reader.u16()? },
            6 => Self::TcpArrivals(TcpArrivals::read(reader)?),
            _ => return Err(Error::Malformed { what: "an unknown response" }),
        })
    }
}

/// Number of lengths in one request.
pub(crate) const SIZES_MAX: usize = 20;

/// A TCP stream that a client opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TcpRequest {
    pub(crate) id: u32,
    /// Whether the server sends.
    pub(crate) is_down: bool,
    pub(crate) write_bytes: u32,
    pub(crate) duration_ns: u64,
    pub(crate) bytes_max: u64,
}

/// Arrivals of a TCP stream, in total and per time slice.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct TcpArrivals {
    pub(crate) bytes: u64,
    pub(crate) span_ns: u64,
    pub(crate) bin_ns: u64,
    pub(crate) bin_bytes: [u32; TCP_BINS],
}

impl TcpRequest {
    pub(crate) fn write<'a, 'b>(&self, writer: &'a mut Writer<'b>) -> &'a mut Writer<'b> {
        writer.u32(self.id).u8(self.is_down.into()).u32(self.write_bytes);
        writer.u64(self.duration_ns).u64(self.bytes_max)
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let request = Self {
            id: reader.u32()?,
            is_down: reader.u8()? != 0,
            write_bytes: reader.u32()?,
            duration_ns: reader.u64()?,
            bytes_max: reader.u64()?,
        };
        match (1..=TCP_WRITE_BYTES_MAX).contains(&request.write_bytes) {
            true => Ok(request),
            false => Err(Error::Malformed { what: "writes of an invalid length" }),
        }
    }
}

impl TcpArrivals {
    pub(crate) fn write<'a, 'b>(&self, writer: &'a mut Writer<'b>) -> &'a mut Writer<'b> {
        writer.u64(self.bytes).u64(self.span_ns).u64(self.bin_ns);
        self.bin_bytes.iter().fold(writer, |writer, &bytes| writer.u32(bytes))
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let (bytes, span_ns, bin_ns) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let mut arrivals = Self { bytes, span_ns, bin_ns, ..Self::default() };
        for bytes in &mut arrivals.bin_bytes {
            *bytes = reader.u32()?;
        }
        Ok(arrivals)
    }
}

pub(crate) const TCP_BINS: usize = 20;
pub(crate) const TCP_REQUEST_BYTES: usize = 4 + 1 + 4 + 8 + 8;
const TCP_WRITE_BYTES_MAX: u32 = 16 << 20;
