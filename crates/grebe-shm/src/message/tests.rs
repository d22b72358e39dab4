use proptest::prelude::*;

use super::*;

fn messages() -> impl Strategy<Value = Message> {
    let policy = prop::sample::select(Policy::ALL.to_vec());
    prop_oneof![
        (policy, 1u32.., 1u32.., "[a-z ü]{0,18}").prop_map(|(policy, queue_batches, quota_chunks, name)| {
            Message::Hello(Hello { policy, queue_batches, quota_chunks, name })
        }),
        (1u32..1000, 1u32..10_000, 0u32..5000, 1u32..QUEUE_MAX).prop_map(
            |(lines, chunks, table_words, queue)| {
                Message::Welcome(Welcome {
                    chunk_bytes: lines * 64,
                    chunks,
                    table_words,
                    queue_batches: queue,
                    quota_chunks: chunks.div_ceil(2),
                })
            }
        ),
        "[ -~]{0,248}".prop_map(Message::Refused),
        "[ -~]{0,248}".prop_map(Message::Bye),
        Just(Message::Wake),
    ]
}

proptest! {
    #[test]
    fn what_is_sent_is_understood(message in messages()) {
        let mut packet = [0; MESSAGE_BYTES_MAX];
        let len = message.encode(&mut packet);
        prop_assert_eq!(Message::decode(&packet[..len]), Ok(message));
    }

    #[test]
    fn no_packet_panics_and_what_is_accepted_is_in_range(
        message in messages(), flips in prop::collection::vec((0usize..256, any::<u8>()), 0..4), cut in 0usize..=256,
    ) {
        let mut packet = [0; MESSAGE_BYTES_MAX];
        let len = message.encode(&mut packet);
        flips.into_iter().for_each(|(at, byte)| packet[at] = byte);
        match Message::decode(&packet[..cut.min(len + 3)]) {
            Ok(Message::Welcome(welcome)) => {
                prop_assert!(welcome.payload_bytes() <= 1 << 40 && welcome.quota_chunks <= welcome.chunks);
            }
            Ok(Message::Hello(hello)) => prop_assert!(hello.queue_batches > 0 && hello.quota_chunks > 0),
            Ok(Message::Refused(text) | Message::Bye(text)) => prop_assert!(!text.contains(char::is_control)),
            Ok(Message::Wake) | Err(_) => {}
        }
    }
}

#[test]
fn a_long_text_is_cut_between_characters() {
    let mut packet = [0; MESSAGE_BYTES_MAX];
    let len = Message::Bye("ü".repeat(200)).encode(&mut packet);
    assert_eq!(Message::decode(&packet[..len]), Ok(Message::Bye("ü".repeat(124))));
}
