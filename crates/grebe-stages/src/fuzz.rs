//! Entry points of the fuzz targets: the parsers of foreign bytes.

use crate::bridges::Uri;
use crate::bridges::rtl_tcp::{Command, Hello};
use crate::bridges::zmq::{fuzz_messages, fuzz_tags, fuzz_wire};
use crate::tuner::Tuning;

/// A greeting, then commands: writing and reading again gives the same, and the tuning stays valid.
pub fn rtl_tcp(bytes: &[u8]) {
    let Some((hello, commands)) = bytes.split_first_chunk::<{ Hello::BYTES }>() else { return };
    if let Some(hello) = Hello::parse(hello) {
        assert_eq!(Hello::parse(&hello.to_bytes()), Some(hello));
        assert!(!hello.tuner_name().is_empty());
    }
    let mut tuning = Tuning { frequency_hz: 1e8, rate_hz: 1e6, gain_db: None };
    for command in commands.as_chunks::<{ Command::BYTES }>().0 {
        let command = Command::parse(*command);
        assert_eq!(Command::parse(command.to_bytes()), command);
        command.apply(&mut tuning);
        assert!(tuning.rate_hz > 0.0 && tuning.gain_db.is_none_or(f64::is_finite));
        assert!(Command::tuning(&tuning).count() >= 3);
    }
}

/// Datagrams of a VITA-49 sender; `choice` selects the name.
pub fn vita49(choice: u8, datagrams: Vec<Vec<u8>>) {
    crate::bridges::vita49::fuzz(choice, datagrams);
}

/// Datagrams without grebe's headers; `choice` selects the name.
pub fn raw(choice: u8, datagrams: Vec<Vec<u8>>) {
    crate::bridges::raw::fuzz(choice, datagrams);
}

/// A handshake, GNU Radio's tags and messages; `choice` selects the socket. Any bytes are read or refused.
pub fn zmq(choice: u8, bytes: &[u8]) {
    fuzz_wire(bytes);
    fuzz_tags(bytes);
    fuzz_messages(choice, bytes);
}

/// A radio driver's results of reads: samples, an optional time, and whether it reported a loss before.
pub fn soapy_times(rate_hz: f64, reads: &[(u16, Option<i64>, bool)]) {
    crate::bridges::soapy::fuzz(rate_hz, reads);
}

/// The name of a stream of any scheme: writing and reading again gives the same.
pub fn uri(text: &str) {
    let Ok(uri) = text.parse::<Uri>() else { return };
    // Paths and generators have a free form.
    if !matches!(uri, Uri::File(_) | Uri::Synth(_) | Uri::Named(_)) {
        assert_eq!(uri.to_string().parse::<Uri>().expect("what is written is read"), uri);
    }
}

/// Lines of numbers; `choice` selects the name.
pub fn text(choice: u8, bytes: &[u8]) {
    let names = ["", "as=i16", "channels=2", "channels=a,b&as=f32", "time=1:ms", "time=t:us&as=u8"];
    crate::bridges::text::fuzz(names[usize::from(choice) % names.len()], bytes);
}
