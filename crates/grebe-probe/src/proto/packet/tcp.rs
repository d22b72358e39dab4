//! A TCP stream beside the datagrams: what a client asks for, and what arrived.

use grebe_packet::{Error, Reader, Result, Writer};

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

/// What arrived of a TCP stream, in all and in each of some equal times.
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
            false => Err(Error::Malformed { what: "writes of a length that none has" }),
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
