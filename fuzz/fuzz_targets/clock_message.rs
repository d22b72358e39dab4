#![no_main]

use grebe_clock::internals::{Answer, MESSAGE_BYTES, Question};
use grebe_clock::{Echo, Estimator};
use libfuzzer_sys::fuzz_target;

// Messages of another host's clock: writing and reading again gives the same, and every answer yields a valid interval.
fuzz_target!(|input: (&[u8], Vec<[u64; 4]>)| {
    let (bytes, exchanges) = input;
    for kind in [1, 2] {
        let mut message = [0; MESSAGE_BYTES];
        let len = bytes.len().min(MESSAGE_BYTES - 16);
        message[8..8 + len].copy_from_slice(&bytes[..len]);
        message[..5].copy_from_slice(&[b'G', b'T', b'M', b'1', kind]);
        let read = Question::decode(&message).map(|read| read.encode());
        if let Some(written) = read.or(Answer::decode(&message).map(|read| read.encode())) {
            assert_eq!(written, message);
        }
    }
    let _ = (Question::decode(bytes), Answer::decode(bytes));
    let mut estimator = Estimator::default();
    for [sent_ns, received_ns, replied_ns, returned_ns] in exchanges {
        estimator.add(Echo { sent_ns, received_ns, replied_ns, returned_ns });
        if let Some(relation) = estimator.at(returned_ns) {
            let (offset_ns, error_ns) = relation.offset_at(returned_ns);
            assert_eq!((offset_ns, error_ns), (relation.offset_ns, relation.error_ns));
            let _ = (relation.offset_at(0), relation.offset_at(u64::MAX), relation.is_outdated_by(&relation));
        }
    }
});
