use proptest::prelude::*;

use super::*;

const GSO: Coalesce = Coalesce { max_segments: MAX_SEGMENTS, max_segment_bytes: 65_507 };

fn datagrams(burst: &Burst<'_>) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for message in burst.messages() {
        burst
            .each_datagram(message, 0, |parts| {
                all.push(parts.iter().flat_map(|part| part.iter().copied()).collect());
                Ok::<(), ()>(())
            })
            .unwrap();
    }
    all
}

#[test]
fn equal_datagrams_share_a_message_and_a_shorter_one_ends_it() {
    let data = [1_u8; 2_000];
    let mut burst = Burst::new();
    for bytes in [100, 100, 60, 100] {
        burst.push(None, &data[..20], &data[..bytes - 20], GSO).unwrap();
    }
    let shape: Vec<_> = burst.messages().iter().map(|m| (m.datagrams, m.bytes)).collect();
    assert_eq!(shape, [(3, 260), (1, 100)]);
}

#[test]
fn a_message_keeps_the_kernels_limits() {
    let data = vec![1_u8; 65_507];
    let mut burst = Burst::new();
    for _ in 0..200 {
        burst.push(None, &[], &data[..10], GSO).unwrap();
    }
    assert_eq!(burst.messages()[0].datagrams, 128);
    let mut burst = Burst::new();
    for _ in 0..10 {
        burst.push(None, &[], &data[..9_000], GSO).unwrap();
    }
    assert_eq!(burst.messages()[0].bytes, 63_000);
}

#[test]
fn a_segment_above_the_mtu_goes_alone() {
    let data = [1_u8; 1_473];
    let mut burst = Burst::new();
    let rule = Coalesce { max_segments: 128, max_segment_bytes: 1_472 };
    burst.push(None, &[], &data, rule).unwrap();
    burst.push(None, &[], &data, rule).unwrap();
    burst.push(None, &[], &data[..1_472], rule).unwrap();
    burst.push(None, &[], &data[..1_472], rule).unwrap();
    let shape: Vec<_> = burst.messages().iter().map(|m| m.datagrams).collect();
    assert_eq!(shape, [1, 1, 2]);
}

#[test]
fn empty_datagrams_are_datagrams() {
    let mut burst = Burst::new();
    burst.push(None, &[], &[], GSO).unwrap();
    burst.push(None, &[], &[], GSO).unwrap();
    assert_eq!(datagrams(&burst), [vec![], vec![]] as [Vec<u8>; 2]);
    assert_eq!(burst.messages().len(), 2);
}

proptest! {
    #[test]
    fn every_byte_comes_out_once_in_order(
        pieces in prop::collection::vec((0_usize..1_500, 0_usize..3_000, 0_u8..3, 0_u16..2), 1..60),
        max_segments in 1_usize..130,
    ) {
        let data: Vec<u8> = (0..8_000_u32).map(|i| (i * 31 % 251) as u8).collect();
        let rule = Coalesce { max_segments, max_segment_bytes: 2_000 };
        let mut burst = Burst::new();
        let mut expected: Vec<Vec<u8>> = Vec::new();
        let mut destinations = Vec::new();
        'pieces: for (segment, bytes, kind, port) in pieces {
            let to = Some(SocketAddr::from(([127, 0, 0, 1], port)));
            match kind {
                0 => {
                    burst.push(to, &data[..segment], &data[..bytes], rule).unwrap();
                    expected.push([&data[..segment], &data[..bytes]].concat());
                }
                1 => {
                    let bytes = bytes.min(500);
                    burst.push_copied(to, &data[..64], &data[..bytes], rule).unwrap();
                    expected.push([&data[..64], &data[..bytes]].concat());
                }
                _ => {
                    let segment = segment.max(40);
                    let mut run = &data[..bytes.max(1)];
                    for piece in run.chunks(segment) {
                        expected.push(piece.to_vec());
                    }
                    while !run.is_empty() {
                        match burst.push_run(to, run, segment, usize::MAX, rule) {
                            Ok(taken) => run = &run[taken..],
                            Err(Full) => {
                                // With many short segments, each a message, the rest did not fit and is not
                                // expected.
                                expected.truncate(burst.datagrams());
                                destinations.resize(expected.len(), to);
                                break 'pieces;
                            }
                        }
                    }
                }
            }
            destinations.resize(expected.len(), to);
            if burst.messages().len() > 100 || burst.datagrams() > 900 {
                break;
            }
        }
        prop_assert_eq!(datagrams(&burst), expected);
        let to: Vec<_> = burst.messages().iter().flat_map(|m| vec![m.to; m.datagrams]).collect();
        prop_assert_eq!(to, destinations);
        for message in burst.messages() {
            prop_assert!(message.datagrams <= max_segments);
            prop_assert!(message.bytes <= MAX_DATAGRAM_BYTES);
            prop_assert!(message.datagrams == 1 || message.segment_bytes <= 2_000);
        }
    }
}
