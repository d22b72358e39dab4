//! What the kernel granted of the buffers that were asked for.

use std::fmt;

/// Which buffer of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// What waits to be read.
    Receive,
    /// What waits to leave.
    Send,
}

/// What the kernel granted of a buffer that was asked for. Its text says how to get the rest.
///
/// ```
/// # use grebe_datagram::{Options, Receiver};
/// # fn main() -> Result<(), grebe_datagram::Error> {
/// let receiver: Receiver<Vec<u8>> = Receiver::bind("127.0.0.1:0".parse().unwrap(), &Options::default())?;
/// if receiver.granted().is_clamped() {
///     eprintln!("{}", receiver.granted());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Granted {
    /// Which buffer.
    pub side: Side,
    /// Bytes that were asked for.
    pub asked_bytes: usize,
    /// Bytes that the kernel says it has (Linux: half of what it reports, which counts its own bookkeeping).
    pub granted_bytes: usize,
    /// Whether privilege carried it beyond the system's limit.
    pub forced: bool,
}

impl Granted {
    /// Whether less than what was asked for was granted.
    pub fn is_clamped(&self) -> bool {
        self.granted_bytes < self.asked_bytes
    }
}

impl fmt::Display for Granted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = match self.side {
            Side::Receive => "receive",
            Side::Send => "send",
        };
        if !self.is_clamped() {
            return write!(f, "{side} buffer: {} bytes", self.granted_bytes);
        }
        write!(f, "{side} buffer: {} of {} bytes granted", self.granted_bytes, self.asked_bytes)?;
        let setting = match (cfg!(any(target_os = "linux", target_os = "android")), self.side) {
            (true, Side::Receive) => "net.core.rmem_max",
            (true, Side::Send) => "net.core.wmem_max",
            _ if cfg!(windows) => return Ok(()),
            _ => "kern.ipc.maxsockbuf",
        };
        write!(f, "; to lift the limit: sysctl -w {setting}={}", self.asked_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clamp_says_what_to_change() {
        let granted =
            Granted { side: Side::Receive, asked_bytes: 32 << 20, granted_bytes: 4 << 20, forced: false };
        assert!(granted.is_clamped());
        let text = granted.to_string();
        assert!(text.contains("4194304 of 33554432"), "{text}");
        if cfg!(target_os = "linux") {
            assert!(text.ends_with("sysctl -w net.core.rmem_max=33554432"), "{text}");
        }
    }
}
