#![no_main]

use grebe_connection::internals::{Frame, Receiver, Sender, SenderOptions};
use libfuzzer_sys::fuzz_target;

const MEMORY_BYTES_MAX: usize = 16 << 20;

// A peer with the key sends arbitrary frames, in any order, to both halves of the core.
fuzz_target!(|input: (u32, bool, Vec<(u32, u64, Vec<u8>)>)| {
    let (total_bytes, is_finished, packets) = input;
    let mut sender = Sender::new(SenderOptions::default());
    sender.extend(0, u64::from(total_bytes), u64::from(total_bytes / 2));
    if is_finished {
        sender.finish();
    }
    let mut receiver = Receiver::new(1 << 20);
    let mut now_us = 0_u64;
    for (wait_us, number, bytes) in packets {
        now_us += u64::from(wait_us);
        for _ in 0..64 {
            if sender.poll_transmit(now_us).is_none() {
                break;
            }
        }
        assert!(sender.next_time_us(now_us) >= now_us);
        if let Ok(frame) = Frame::decode(&bytes) {
            match &frame {
                Frame::Feedback(report) => sender.on_feedback(now_us, report),
                Frame::Outcome(verdict) => sender.on_outcome(*verdict),
                Frame::HandshakeTrain { window_end, train } => {
                    sender.on_handshake_train(now_us, *window_end, *train);
                }
                _ => {}
            }
            receiver.on_packet(now_us, number, bytes.len(), &frame);
        }
        let mut report = [0; 1_175];
        for _ in 0..8 {
            let Some(length) = receiver.poll_report(now_us, &mut report) else { break };
            assert!(Frame::decode(&report[..length]).is_ok(), "what we write we can read");
        }
        assert!(sender.memory_bytes() + receiver.memory_bytes() < MEMORY_BYTES_MAX);
    }
});
