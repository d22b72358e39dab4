#![no_main]

use grebe_connection::internals::{
    Arrived, ConnectionEnd, Frame, Item, ReceiveBuffer, SendBuffer, SenderOptions,
};
use libfuzzer_sys::fuzz_target;

const MEMORY_BYTES_MAX: usize = 16 << 20;
const WINDOW_BYTES: u64 = 1 << 20;

// A peer with the key sends arbitrary frames on both streams of a connection, while an application writes and reads.
fuzz_target!(|input: Vec<(u32, u8, u64, Vec<u8>)>| {
    let mut end = ConnectionEnd::new(0, WINDOW_BYTES, SenderOptions::default());
    let (mut sent, mut received) = (SendBuffer::default(), ReceiveBuffer::default());
    let (mut now_us, mut read_bytes) = (0_u64, 0);
    for (wait_us, action, number, bytes) in input {
        now_us += u64::from(wait_us);
        match action % 8 {
            0 => {
                sent.push(bytes);
                end.sender.extend(now_us, sent.end(), number);
            }
            1 => end.sender.finish(),
            2 => {
                let waiting_bytes = number.min(received.passed() - read_bytes);
                read_bytes = received.passed() - waiting_bytes;
                end.receiver.set_backlog(now_us, waiting_bytes);
            }
            3 if number == 0 => end.stop(now_us),
            4 | 5 => {
                if let Ok(frame) = Frame::decode(&bytes) {
                    end.on_reply(now_us, &frame);
                }
            }
            _ => {
                if let Ok(frame) = Frame::decode(&bytes)
                    && let Arrived::Data { offset, payload } =
                        end.on_packet(now_us, number, bytes.len(), &frame)
                {
                    received.put(offset, payload);
                }
            }
        }
        received.pass(end.received_in_order(), |_| {});
        assert_eq!(received.passed(), end.received_in_order());
        let mut out = [0; 1_175];
        for _ in 0..64 {
            let Some(transmit) = end.poll_transmit(now_us) else { break };
            if let Item::Data { offset, len } = transmit.item {
                sent.fill(offset, &mut vec![0; len as usize]);
            }
        }
        for _ in 0..8 {
            let Some(length) = end.poll_reply(now_us, &mut out) else { break };
            assert!(Frame::decode(&out[..length]).is_ok(), "what we write we can read");
        }
        assert!(end.sender.next_time_us(now_us) >= now_us);
        let _ = end.is_over(now_us);
        assert!(end.sender.memory_bytes() + end.receiver.memory_bytes() < MEMORY_BYTES_MAX);
    }
});
