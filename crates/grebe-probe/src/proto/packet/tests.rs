use grebe_packet::{Cookie, Key};
use proptest::prelude::*;

use crate::proto::packet::{
    Body, EndReason, OPENING_BYTES, PACKET_MAX, Packet, Request, Response, SIZES_MAX, TCP_BINS,
    TCP_OPENING_BYTES, TcpArrivals, TcpRequest, Welcome, fuzz_packet,
};
use crate::proto::signing::Keys;
use crate::proto::tracker::Summary;
use crate::proto::train::Train;

fn every_body() -> Vec<Body> {
    let (nonce, cookie) = ([3; 16], Cookie { made_us: 9, tag: [4; 16] });
    let train = Train { id: 1, count: 10, size: 1_472, interval_ns: 161_000 };
    let summary = Summary { received: 9, lost: 1, kernel_drops: Some(3), ..Summary::default() };
    let requests = [
        Request::SendTrain(train),
        Request::TrainSent { train: 1 },
        Request::Summary { train: 1 },
        Request::SendSizes([1_472; SIZES_MAX]),
        Request::LongestSize,
        Request::TcpArrivals { id: 1 },
    ];
    let responses = [
        Response::Accepted,
        Response::Refused,
        Response::Unknown,
        Response::TrainSent { sent: 7, is_done: true },
        Response::Summary(summary),
        Response::LongestSize { bytes: 1_472 },
        Response::TcpArrivals(TcpArrivals { bytes: 1, span_ns: 2, bin_ns: 3, bin_bytes: [4; TCP_BINS] }),
    ];
    let mut bodies = vec![
        Body::Hello { nonce },
        Body::Challenge { nonce, cookie },
        Body::Start { nonce, cookie },
        Body::Wait { nonce, position: 2 },
        Body::Welcome(Welcome {
            nonce,
            server_nonce: nonce,
            session: 1,
            epoch_ns: 2,
            rate_max_bps: 1e9,
            bytes_max: 1,
            duration_max_ns: 1,
            buffer_bytes: 1,
            buffer_asked_bytes: 1,
        }),
        Body::Ping { sent_ns: 1 },
        Body::Pong { sent_ns: 1, arrived_ns: 2, replied_ns: 3 },
        Body::Data { train, seq: 9, sent_ns: 4 },
        Body::Size,
        Body::OpenTcp(TcpRequest { id: 1, is_down: true, write_bytes: 65_536, duration_ns: 1, bytes_max: 1 }),
    ];
    bodies.extend(requests.map(|request| Body::Request { id: 5, request }));
    bodies.extend(responses.map(|response| Body::Response { id: 5, response }));
    bodies.extend([EndReason::Done, EndReason::Limit, EndReason::Busy].map(|reason| Body::Bye { reason }));
    bodies
}

#[test]
fn every_packet_round_trips_and_no_changed_bit_gets_through() {
    let signer = Keys::before_session(&Key::from_bytes([1; 32])).client;
    let other = Keys::before_session(&Key::from_bytes([1; 32])).server;
    let mut buffer = [0; PACKET_MAX];
    for body in every_body() {
        let packet = Packet { session: 8, number: 1 << 40, body };
        let len = packet.encode(&signer, 0, &mut buffer);
        assert_eq!(Packet::decode(&buffer[..len], &signer), Some(packet));
        assert_eq!(Packet::decode(&buffer[..len], &other), None);
        assert_eq!(Packet::decode(&buffer[..len - 1], &signer), None, "{body:?} cut");
        for bit in 0..len * 8 {
            buffer[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Packet::decode(&buffer[..len], &signer), None, "{body:?} with bit {bit} changed");
            buffer[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

#[test]
fn filler_is_counted_but_not_read() {
    let signer = Keys::before_session(&Key::from_bytes([1; 32])).client;
    let train = Train { id: 1, count: 10, size: 1_472, interval_ns: 161_000 };
    let packet = Packet { session: 8, number: 0, body: Body::Data { train, seq: 3, sent_ns: 5 } };
    let mut buffer = [0; PACKET_MAX];
    let len = packet.encode(&signer, 1_472, &mut buffer);
    let mut datagram = buffer[..len].to_vec();
    datagram.resize(1_472, 0xEE);
    assert_eq!(Packet::decode(&datagram, &signer), Some(packet));
    datagram.pop();
    assert_eq!(Packet::decode(&datagram, &signer), None);
}

#[test]
fn no_answer_before_the_proof_is_longer_than_the_question() {
    let signer = Keys::before_session(&Key::from_bytes([1; 32])).client;
    let mut buffer = [0; PACKET_MAX];
    for body in every_body() {
        let len = Packet { session: 0, number: 0, body }.encode(&signer, 0, &mut buffer);
        match body {
            Body::Hello { .. } | Body::Start { .. } => assert_eq!(len, OPENING_BYTES),
            Body::Challenge { .. } | Body::Wait { .. } | Body::Welcome(_) => {
                assert!(len <= OPENING_BYTES)
            }
            Body::OpenTcp(_) => assert_eq!(len, TCP_OPENING_BYTES),
            _ => assert!(len < PACKET_MAX),
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_understood(bytes in prop::collection::vec(any::<u8>(), 0..400), kind in 0_u8..20) {
        let mut bytes = bytes;
        if let Some(place) = bytes.get_mut(4) {
            *place = kind;
        }
        fuzz_packet(&bytes);
    }
}
