//! Checks with a counting allocator and the copy counters that neither side allocates after the setup.

use std::time::Duration;

use grebe_datagram::{Options, Receiver, Sender};
use grebe_testing::{CountingAllocator, allocations_of_this_thread};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Sender and receiver run on this thread; the test harness allocates on its own.
#[test]
fn nothing_is_allocated_and_no_large_payload_is_copied_in_steady_state() {
    for (batch, gso) in [(true, true), (true, false), (false, false)] {
        let options =
            Options { batch, gso, gro: gso, recv_timeout: Duration::from_millis(20), ..Options::default() };
        let mut receiver = Receiver::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
        let mut sender = Sender::connect(receiver.local_addr().unwrap(), &options).unwrap();
        let mut pool: Vec<Box<[u8]>> = (0..16).map(|_| vec![0; 65_536].into()).collect();
        let payload = [3_u8; 9_000];
        let (mut sent, mut received) = (0, 0);
        let mut round = || {
            let headers: [[u8; 64]; 30] = [[1; 64]; 30];
            let mut batch = sender.batch();
            for header in &headers {
                batch.push(header, &payload[..1_336]).unwrap();
                batch.push(header, &payload[..128]).unwrap();
            }
            batch.push_run(&payload, 1_400).unwrap();
            batch.flush().unwrap();
            drop(batch);
            sent += 67;
            while received < sent {
                let outcome = receiver.recv(|| pool.pop(), |slot, _| Some(slot)).unwrap();
                assert!(outcome.datagrams > 0, "something is missing");
                received += outcome.datagrams;
            }
        };
        round();
        let before = allocations_of_this_thread();
        for _ in 0..50 {
            round();
        }
        let allocated = allocations_of_this_thread() - before;
        let counters = sender.counters();
        println!(
            "batch {batch}, gso {gso}: {allocated} allocations, {} copies of {} datagrams",
            counters.copies, counters.datagrams
        );
        assert_eq!(allocated, 0);
        assert!(counters.copies <= 51 * 30, "only datagrams below the threshold are copied");
    }
}
