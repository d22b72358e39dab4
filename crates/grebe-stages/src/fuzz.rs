//! What the fuzz targets drive: the parts that read what another program sent.

use crate::bridges::Uri;
use crate::bridges::rtl_tcp::{Command, Hello};
use crate::bridges::zmq::{fuzz_messages, fuzz_tags, fuzz_wire};
use crate::tuner::Tuning;

/// A greeting, then commands: what is read says the same when it is written again, and leaves a tuning that can be.
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

/// Datagrams come from a VITA-49 sender; `choice` is what the name of the stream says.
pub fn vita49(choice: u8, datagrams: Vec<Vec<u8>>) {
    crate::bridges::vita49::fuzz(choice, datagrams);
}

/// Datagrams without headers of ours; `choice` is what the name of the stream says.
pub fn raw(choice: u8, datagrams: Vec<Vec<u8>>) {
    crate::bridges::raw::fuzz(choice, datagrams);
}

/// Frames, a handshake and GNU Radio's tags, and messages of a socket that `choice` says the rest of: any bytes are read or refused.
pub fn zmq(choice: u8, bytes: &[u8]) {
    fuzz_wire(bytes);
    fuzz_tags(bytes);
    fuzz_messages(choice, bytes);
}

/// What a driver of a radio says of each read: samples, a time where it gives one, and whether it told of a loss before.
pub fn soapy_times(rate_hz: f64, reads: &[(u16, Option<i64>, bool)]) {
    crate::bridges::soapy::fuzz(rate_hz, reads);
}

/// The name of a stream, of whatever scheme: what is read says the same when it is written again.
pub fn uri(text: &str) {
    let Ok(uri) = text.parse::<Uri>() else { return };
    // A path, and what is made here, are written as people write them.
    if !matches!(uri, Uri::File(_) | Uri::Synth(_) | Uri::Named(_)) {
        assert_eq!(uri.to_string().parse::<Uri>().expect("what is written is read"), uri);
    }
}

/// Lines of numbers; `choice` is what the name of the stream says.
pub fn text(choice: u8, bytes: &[u8]) {
    let names = ["", "as=i16", "channels=2", "channels=a,b&as=f32", "time=1:ms", "time=t:us&as=u8"];
    crate::bridges::text::fuzz(names[usize::from(choice) % names.len()], bytes);
}
