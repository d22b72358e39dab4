//! The part of ZMTP 3.0 (<https://rfc.zeromq.org/spec/23/>) that grebe needs.

use crate::bridges::zmq::uri::Socket;

/// Bytes of both ends' greeting.
pub(super) const GREETING_BYTES: usize = 64;
/// Maximum length of a command. A longer one is not ZMTP.
pub(super) const COMMAND_BYTES_MAX: u64 = 4 << 10;

/// Reason why the bytes are not ZMTP 3.
pub(super) type Garbage = &'static str;

/// Head of a message part or of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// Whether another part of the message follows.
    pub(super) more: bool,
    pub(super) is_command: bool,
    pub(super) body_bytes: u64,
    /// Bytes of the head itself.
    pub(super) bytes: usize,
}

impl Head {
    /// `None`: more bytes are needed.
    pub(super) fn parse(bytes: &[u8]) -> Result<Option<Self>, Garbage> {
        let Some((&flags, rest)) = bytes.split_first() else { return Ok(None) };
        if flags > (MORE | LONG | COMMAND) || flags & (MORE | COMMAND) == MORE | COMMAND {
            return Err("sends an invalid ZMTP frame");
        }
        let (body_bytes, bytes) = match (flags & LONG != 0, rest.first_chunk()) {
            (true, Some(length)) => (u64::from_be_bytes(*length), 9),
            (false, _) if !rest.is_empty() => (u64::from(rest[0]), 2),
            _ => return Ok(None),
        };
        if body_bytes > i64::MAX as u64 || flags & COMMAND != 0 && body_bytes > COMMAND_BYTES_MAX {
            return Err("announces a frame above the limit");
        }
        Ok(Some(Self { more: flags & MORE != 0, is_command: flags & COMMAND != 0, body_bytes, bytes }))
    }

    /// Writes the head of a part of a message.
    pub(super) fn put(body_bytes: usize, more: bool, out: &mut Vec<u8>) {
        let flags = if more { MORE } else { 0 };
        match u8::try_from(body_bytes) {
            Ok(length) => out.extend([flags, length]),
            Err(_) => {
                out.push(flags | LONG);
                out.extend((body_bytes as u64).to_be_bytes());
            }
        }
    }
}

/// The greeting of a client or a server without encryption.
pub(super) fn greeting() -> [u8; GREETING_BYTES] {
    let mut greeting = [0; GREETING_BYTES];
    (greeting[0], greeting[9], greeting[10]) = (0xff, 0x7f, 3);
    greeting[12..16].copy_from_slice(b"NULL");
    greeting
}

/// Checks that the peer speaks a supported version.
pub(super) fn check_greeting(greeting: &[u8; GREETING_BYTES]) -> Result<(), Garbage> {
    match greeting {
        _ if greeting[0] != 0xff || greeting[9] & 1 == 0 => Err("does not speak ZMTP: it is not ZeroMQ"),
        _ if greeting[10] < 3 => Err("speaks ZMTP older than 3.0 (before ZeroMQ 4)"),
        _ if &greeting[12..17] != b"NULL\0" => {
            Err("requires encryption or a password, which grebe does not support")
        }
        _ => Ok(()),
    }
}

/// The command that ends the handshake.
pub(super) fn ready(socket: Socket) -> Vec<u8> {
    let name = socket.name().to_ascii_uppercase();
    let body_bytes = 6 + 12 + 4 + name.len() + 9 + 4;
    let mut out = vec![COMMAND, body_bytes as u8];
    out.extend(b"\x05READY\x0bSocket-Type");
    out.extend((name.len() as u32).to_be_bytes());
    out.extend(name.as_bytes());
    out.extend(b"\x08Identity\0\0\0\0");
    out
}

/// Checks that the peer's socket matches ours.
pub(super) fn check_ready(body: &[u8], ours: Socket) -> Result<(), Garbage> {
    let Some(mut rest) = body.strip_prefix(b"\x05READY") else {
        return Err(if body.starts_with(b"\x05ERROR") { "refuses the connection" } else { "sends no READY" });
    };
    while let Some((&length, after)) = rest.split_first() {
        let Some((name, after)) = after.split_at_checked(usize::from(length)) else { return Err(BAD_READY) };
        let Some((length, after)) = after.split_first_chunk() else { return Err(BAD_READY) };
        let Some((value, after)) = after.split_at_checked(u32::from_be_bytes(*length) as usize) else {
            return Err(BAD_READY);
        };
        rest = after;
        if name.eq_ignore_ascii_case(b"Socket-Type") {
            let theirs = ours.fits();
            return if theirs.iter().any(|theirs| theirs.as_bytes() == value) {
                Ok(())
            } else {
                Err(ours.misfit())
            };
        }
    }
    Err(BAD_READY)
}

/// A SUB's subscription: whether it adds or removes, and the prefix. `None`: another message.
pub(super) fn subscription(is_command: bool, body: &[u8]) -> Option<(bool, &[u8])> {
    if is_command {
        let topic = |name: &[u8], wants| body.strip_prefix(name).map(|topic| (wants, topic));
        return topic(b"\x09SUBSCRIBE", true).or_else(|| topic(b"\x06CANCEL", false));
    }
    match body.split_first() {
        Some((0, topic)) => Some((false, topic)),
        Some((1, topic)) => Some((true, topic)),
        _ => None,
    }
}

const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;
const BAD_READY: Garbage = "sends READY without its socket type";

/// Feeds arbitrary bytes: a head, an incomplete one, or an error, without a panic.
#[cfg(fuzzing)]
pub(crate) fn fuzz(bytes: &[u8]) {
    if let Ok(Some(head)) = Head::parse(bytes) {
        assert!(head.bytes <= bytes.len() && head.body_bytes <= i64::MAX as u64);
    }
    if let Some(greeting) = bytes.first_chunk() {
        let _ = check_greeting(greeting);
    }
    for &(_, socket) in Socket::WORDS {
        let _ = check_ready(bytes, socket);
    }
    let _ = (subscription(true, bytes), subscription(false, bytes));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_handshake_is_that_of_zmtp() {
        let hello = greeting();
        assert_eq!(hello[..12], *b"\xff\0\0\0\0\0\0\0\0\x7f\x03\0");
        assert_eq!(check_greeting(&hello), Ok(()));
        let of_curve = |mut greeting: [u8; 64]| {
            greeting[12..17].copy_from_slice(b"CURVE");
            greeting
        };
        assert!(check_greeting(&of_curve(hello)).unwrap_err().contains("encryption"));
        assert!(check_greeting(&[b'H'; 64]).unwrap_err().contains("not ZeroMQ"));
        assert!(ready(Socket::Sub).starts_with(b"\x04\x26\x05READY\x0bSocket-Type\0\0\0\x03SUB"));
        assert_eq!(ready(Socket::Push).len(), 2 + usize::from(ready(Socket::Push)[1]));
        assert_eq!(check_ready(&ready(Socket::Sub)[2..], Socket::Pub), Ok(()));
        assert!(check_ready(&ready(Socket::Pull)[2..], Socket::Pub).unwrap_err().contains("not a SUB"));
        assert!(check_ready(b"\x05ERROR\x00", Socket::Pub).unwrap_err().contains("refuses"));
    }

    #[test]
    fn subscriptions_come_as_messages_or_as_commands() {
        assert_eq!(subscription(false, b"\x01abc"), Some((true, &b"abc"[..])));
        assert_eq!(subscription(false, b"\0"), Some((false, &b""[..])));
        assert_eq!(subscription(true, b"\x09SUBSCRIBEx"), Some((true, &b"x"[..])));
        assert_eq!(subscription(true, b"\x06CANCELx"), Some((false, &b"x"[..])));
        assert_eq!(subscription(true, b"\x04PING"), None);
    }

    proptest! {
        #[test]
        fn a_head_is_read_as_it_was_written(body_bytes in prop_oneof![0usize..600, 0usize..1 << 40], more: bool) {
            let mut out = Vec::new();
            Head::put(body_bytes, more, &mut out);
            for cut in 0..out.len() {
                prop_assert_eq!(Head::parse(&out[..cut]), Ok(None));
            }
            let head = Head::parse(&out).unwrap().unwrap();
            prop_assert_eq!((head.more, head.is_command, head.body_bytes, head.bytes), (more, false, body_bytes as u64, out.len()));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = Head::parse(&bytes);
            let named = [b"\x05READY\x0bSocket-Type", &bytes[..]].concat();
            let _ = (check_ready(&bytes, Socket::Sub), check_ready(&named, Socket::Sub), subscription(true, &bytes));
        }
    }
}
