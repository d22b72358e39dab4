//! The data path: sockets, disks and clocks around the protocol's core.
//!
//! ```text
//!  reads and hashes        seals and sends              opens and places         writes and hashes
//!  [ reader thread ] ----> [ send_file's thread ] ~~~~> [ receive's thread ] ----> [ writer thread ]
//!        ^-- empty chunks --'        ^----- reports, outcome -----'    ^-- empty chunks --'
//! ```

mod reader;
mod receive;
mod send;
mod writer;

use std::time::Instant;

pub use receive::{Listener, Received};
pub use send::{SendOptions, SendReport, send_file};

/// Microseconds since it was made.
#[derive(Debug, Clone, Copy)]
struct Clock(Instant);

impl Clock {
    fn start() -> Self {
        Self(Instant::now())
    }

    fn now_us(&self) -> u64 {
        self.0.elapsed().as_micros() as u64
    }
}

/// Bytes that are read, hashed, handed over and written at once.
const CHUNK_BYTES: usize = 512 << 10;

/// For how long a peer that was there may be silent.
const SILENCE_US_MAX: u64 = 60_000_000;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::Error;

    fn listener() -> Listener {
        Listener::bind("127.0.0.1:0".parse().unwrap(), 60).unwrap()
    }

    fn contents(bytes: usize) -> Vec<u8> {
        (0..bytes as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
    }

    #[test]
    fn a_file_arrives_whole_under_its_name() {
        for bytes in [0, 1, 1_163, 3_000_000] {
            let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let file = from.path().join("sample.bin");
            fs::write(&file, contents(bytes)).unwrap();
            let listener = listener();
            let ticket = listener.ticket().clone();
            let received = std::thread::scope(|scope| {
                let receiving = scope.spawn(|| listener.receive_into(into.path(), |_, _| {}));
                let sent = send_file(&file, &ticket, &SendOptions::default(), |_| {}).unwrap();
                assert_eq!(sent.bytes, bytes as u64);
                receiving.join().unwrap().unwrap()
            });
            assert_eq!(received.path, into.path().join("sample.bin"));
            assert!(fs::read(&received.path).unwrap() == contents(bytes), "{bytes} bytes");
            assert_eq!(fs::read_dir(into.path()).unwrap().count(), 1, "nothing else is left");
        }
    }

    #[test]
    fn a_file_that_is_there_is_not_overwritten() {
        let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = from.path().join("precious.bin");
        fs::write(&file, contents(10_000)).unwrap();
        fs::write(into.path().join("precious.bin"), b"precious").unwrap();
        let listener = listener();
        let ticket = listener.ticket().clone();
        std::thread::scope(|scope| {
            let receiving = scope.spawn(|| listener.receive_into(into.path(), |_, _| {}));
            let sent = send_file(&file, &ticket, &SendOptions::default(), |_| {});
            assert!(matches!(sent, Err(Error::Ended { .. })), "{sent:?}");
            assert!(matches!(receiving.join().unwrap(), Err(Error::File { .. })));
        });
        assert_eq!(fs::read(into.path().join("precious.bin")).unwrap(), b"precious");
    }

    #[test]
    fn nobody_there_is_an_error_that_says_whom_was_asked() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let ticket = listener().ticket().clone();
        let options =
            SendOptions { answer_within: std::time::Duration::from_millis(300), ..SendOptions::default() };
        let error = send_file(file.path(), &ticket, &options, |_| {}).unwrap_err();
        assert!(error.to_string().contains(&ticket.addresses[0].to_string()), "{error}");
    }

    #[test]
    fn a_ticket_that_is_over_is_not_answered() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), 0).unwrap();
        let into = tempfile::tempdir().unwrap();
        assert!(matches!(listener.receive_into(into.path(), |_, _| {}), Err(Error::Expired)));
        drop(file);
    }
}
