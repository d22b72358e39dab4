#![no_main]

use grebe_connection::internals::{Frame, Header};
use libfuzzer_sys::fuzz_target;

// A frame after decryption: any holder of a ticket may have sent it.
fuzz_target!(|bytes: &[u8]| {
    let _ = Header::decode(bytes);
    let Ok(frame) = Frame::decode(bytes) else { return };
    if let Frame::Feedback(report) = &frame {
        let mut above = None;
        for (low, high) in report.runs.iter() {
            assert!(low <= high && above.is_none_or(|above| high < above));
            above = Some(low);
        }
    }
    let mut again = vec![0; bytes.len() + 64];
    let length = frame.encode(&mut again).expect("it came from as many bytes");
    assert_eq!(Frame::decode(&again[..length]).expect("what is written is read"), frame);
});
