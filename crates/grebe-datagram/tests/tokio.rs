//! Tests the same batches in a tokio runtime.

use grebe_datagram::{AsyncReceiver, AsyncSender, Error, Options, Sender};

#[tokio::test]
async fn batches_come_on_readiness_until_the_socket_is_empty() {
    let options = Options::default();
    let mut receiver = AsyncReceiver::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
    let mut sender = Sender::connect(receiver.local_addr().unwrap(), &options).unwrap();
    let sent = tokio::task::spawn_blocking(move || {
        for round in 0..50_u8 {
            let mut batch = sender.batch();
            for _ in 0..20 {
                batch.push_copied(&[round; 100], &[]).unwrap();
            }
            batch.flush().unwrap();
        }
        sender.counters().datagrams
    });
    let mut bytes = Vec::new();
    while bytes.len() < 50 * 20 * 100 {
        let outcome = receiver
            .recv(
                || Some(vec![0_u8; 65_536]),
                |slot, received| {
                    bytes.extend_from_slice(&slot[..received.len]);
                    Some(slot)
                },
            )
            .await
            .unwrap();
        assert!(outcome.datagrams > 0, "no empty batch is delivered");
    }
    assert_eq!(sent.await.unwrap(), 1_000);
    assert!(bytes.chunks(2_000).enumerate().all(|(round, chunk)| chunk == [round as u8; 2_000]));
}

#[tokio::test]
async fn silence_is_waited_for_and_a_dropped_wait_loses_nothing() {
    let options = Options::default();
    let mut receiver = AsyncReceiver::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
    let mut slots = vec![vec![0_u8; 65_536]];
    let wait = receiver.recv(|| slots.pop(), |_, _| None);
    assert!(tokio::time::timeout(std::time::Duration::from_millis(5), wait).await.is_err());
    let mut sender = Sender::connect(receiver.local_addr().unwrap(), &options).unwrap();
    sender.batch().push_copied(b"hello", &[]).unwrap();
    let outcome = receiver.recv(|| slots.pop(), |_, _| None).await.unwrap();
    assert_eq!((outcome.datagrams, outcome.bytes), (1, 5));
}

#[tokio::test]
async fn a_task_sends_what_another_receives() {
    let options = Options { burst: 32, ..Options::default() };
    let mut receiver = AsyncReceiver::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
    let mut sender = AsyncSender::connect(receiver.local_addr().unwrap(), &options).unwrap();
    let payloads: Vec<[u8; 1_336]> = (0..100).map(|index| [index; 1_336]).collect();
    let headers: Vec<[u8; 64]> = (0..100).map(|index| [index + 100; 64]).collect();
    let datagrams = || headers.iter().zip(&payloads).map(|(header, payload)| (&header[..], &payload[..]));
    sender.send(datagrams()).await.unwrap();
    let counters = sender.counters();
    assert_eq!((counters.datagrams, counters.copies, counters.unsent), (100, 0, 0));
    let mut got = Vec::new();
    while got.len() < 100 {
        let take = |slot: Vec<u8>, received: grebe_datagram::Received| {
            got.extend(received.segments().map(|range| slot[range].to_vec()));
            Some(slot)
        };
        receiver.recv(|| Some(vec![0_u8; 65_536]), take).await.unwrap();
    }
    assert!(got.iter().zip(datagrams()).all(|(got, (header, payload))| *got == [header, payload].concat()));
    let long = vec![0; 70_000];
    assert!(matches!(sender.send([(&long[..], &[][..])]).await, Err(Error::TooLong { .. })));
}
