//! What a server sends before a session, and what begins it.

use grebe_packet::{Error, Reader, Result, Writer};

use crate::proto::signing::TAG_BYTES;

/// Proof of an address, which only its maker can check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cookie {
    pub(crate) made_ns: u64,
    pub(crate) tag: [u8; TAG_BYTES],
}

/// The beginning of a session.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Welcome {
    pub(crate) nonce: [u8; 16],
    pub(crate) server_nonce: [u8; 16],
    pub(crate) session: u64,
    /// The server's wall clock, in ns since 1970, where its other stamps are 0.
    pub(crate) epoch_ns: u64,
    pub(crate) rate_max_bps: f64,
    pub(crate) bytes_max: u64,
    pub(crate) duration_max_ns: u64,
    /// The receive buffer that the server's kernel granted, and what it was asked for.
    pub(crate) buffer_bytes: u64,
    pub(crate) buffer_asked_bytes: u64,
}

impl Cookie {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(Self { made_ns: reader.u64()?, tag: reader.array()? })
    }
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
