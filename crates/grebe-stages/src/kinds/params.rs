//! Parameters that several kinds have.

use std::time::Duration;

use grebe_flow::{Fault, SizeBytes, Time};

use crate::error::Error;
use crate::open::Transport;
use crate::stream::DATAGRAM_BYTES;
use crate::uri::Uri;

/// The URI of a UDP address.
pub(super) fn udp_uri(text: &str) -> Result<Uri, Error> {
    match text.parse()? {
        uri @ Uri::Udp(_) => Ok(uri),
        _ => Err(wrong(text, "is no UDP address: write udp://HOST:PORT")),
    }
}

/// The URI of a stream in shared memory.
pub(super) fn shm_uri(text: &str) -> Result<Uri, Error> {
    match text.parse()? {
        Uri::Shm(shm) if shm.wait_consumers > 0 => {
            Err(wrong(text, "has wait=, and a graph waits for nobody"))
        }
        uri @ Uri::Shm(_) => Ok(uri),
        _ => Err(wrong(text, "is no stream in shared memory: write shm://NAME")),
    }
}

fn wrong(uri: &str, reason: &str) -> Error {
    Error::Uri { uri: uri.to_owned(), reason: reason.to_owned() }
}

pub(super) fn check_uri(uri: Result<Uri, Error>) -> Result<(), Fault> {
    uri.map(drop).map_err(|error| Fault::new("uri", error.to_string()))
}

pub(super) fn check_burst(burst: u32) -> Result<(), Fault> {
    match burst {
        1..=128 => Ok(()),
        _ => Err(Fault::new("burst", format!("{burst} datagrams per call: give 1 to 128"))),
    }
}

pub(super) fn transport(burst: u32, latency: Time) -> Transport {
    Transport { burst: burst as usize, latency: latency.0, ..Transport::default() }
}

pub(super) fn datagram_size() -> SizeBytes {
    SizeBytes(DATAGRAM_BYTES)
}

pub(super) fn burst() -> u32 {
    128
}

pub(super) fn latency() -> Time {
    Time(Duration::from_micros(500))
}
