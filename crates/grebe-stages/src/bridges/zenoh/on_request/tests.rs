use std::net::UdpSocket;

use grebe_frame::BatchPool;

use super::*;

const HOUR: Duration = Duration::from_secs(3_600);

/// A socket on this host.
fn listening() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    socket
}

fn came(socket: &UdpSocket) -> Vec<u8> {
    let mut datagram = vec![0; 65_536];
    let bytes = socket.recv(&mut datagram).unwrap();
    datagram[..bytes].to_vec()
}

fn is_empty(socket: &UdpSocket) -> bool {
    socket.set_nonblocking(true).unwrap();
    socket.recv(&mut [0; 64]).is_err()
}

fn batch(sequence: u64, samples: u32) -> Batch {
    let mut pool = BatchPool::new(1, 1 << 18);
    fill(&mut pool, sequence, samples)
}

fn fill(pool: &mut BatchPool, sequence: u64, samples: u32) -> Batch {
    let mut batch = pool.acquire().expect("the source would wait");
    let header = Header { sequence, channel_count: 1, block_length_samples: samples, ..Header::default() };
    batch.push::<i16>(&header, |_, samples| samples.fill(1)).unwrap();
    batch.freeze()
}

fn desk(lease: Duration) -> Sending {
    Sending { desk: Arc::new(Desk::new(Transport::default(), lease)), queues: Vec::new() }
}

impl Sending {
    fn ask(&self, at: &UdpSocket, now: Instant) -> Answer {
        let at = vec![at.local_addr().unwrap()];
        self.desk.answer(&Request::Ask { at, is_near: true }, now)
    }

    fn go_on(&self, nonce: Nonce, now: Instant) -> Answer {
        self.desk.answer(&Request::Send { nonce }, now)
    }

    /// A reader with a confirmed address.
    fn reader(&self, at: &UdpSocket, now: Instant) -> Nonce {
        assert_eq!(self.ask(at, now), Answer::Asked);
        let nonce = Nonce::of_probe(&came(at)).unwrap();
        assert_eq!(self.go_on(nonce, now), Answer::Sends { frames: 0 });
        nonce
    }

    fn readers(&self) -> Vec<Arc<Reader>> {
        self.desk.lock().readers.clone()
    }

    /// Sends until a condition holds.
    fn send_until(&mut self, is_so: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        for sequence in 0.. {
            if is_so(self) {
                return;
            }
            assert!(began.elapsed() < Duration::from_secs(30));
            self.send(&batch(sequence, 8));
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn a_reader_gets_the_stream_after_proving_its_address() {
    let (mut sending, at, now) = (desk(HOUR), listening(), Instant::now());
    sending.send(&batch(0, 8));
    let nonce = sending.reader(&at, now);
    sending.send(&batch(1, 8));
    assert_eq!(Header::parse_datagram(&came(&at)).unwrap().sequence, 1);
    let began = Instant::now();
    while sending.go_on(nonce, now) != (Answer::Sends { frames: 1 }) {
        assert!(began.elapsed() < Duration::from_secs(30));
    }
    sending.send(&batch(2, 8));
    let end = Header { sequence: 3, channel_count: 1, ..Header::default() }.end_of_stream(7);
    let readers = sending.readers();
    sending.end(Some(end));
    sending.desk.wait_for_ends();
    assert_eq!(Header::parse_datagram(&came(&at)).unwrap().sequence, 2, "what waited goes first");
    for _ in 0..5 {
        assert!(Header::parse_datagram(&came(&at)).unwrap().is_end_of_stream());
    }
    assert!(readers.iter().all(|reader| reader.is_over()));
    assert_eq!(sending.go_on(nonce, now), Answer::Unknown);
    assert_eq!(sending.ask(&at, now), Answer::Unknown);
}

#[test]
fn nobody_can_redirect_a_stream_to_another_host() {
    let (mut sending, victim, now) = (desk(HOUR), listening(), Instant::now());
    assert_eq!(sending.ask(&victim, now), Answer::Asked);
    assert_eq!(sending.go_on(Nonce::random(), now), Answer::Unknown);
    sending.send(&batch(0, 8));
    let probe = came(&victim);
    assert_eq!(probe.len(), Nonce::PROBE_BYTES);
    let late = now + CLAIM_TIMEOUT;
    assert_eq!(
        sending.go_on(Nonce::of_probe(&probe).unwrap(), late),
        Answer::Unknown,
        "the claim has passed"
    );
    sending.send(&batch(1, 8));
    assert!(sending.queues.is_empty() && sending.readers().is_empty());
    assert!(is_empty(&victim), "but for the probe nothing comes");
}

#[test]
fn a_reader_that_does_not_ask_again_gets_nothing_until_it_does() {
    let (mut sending, at) = (desk(Duration::from_secs(10)), listening());
    let Some(before) = Instant::now().checked_sub(Duration::from_secs(20)) else { return };
    let nonce = sending.reader(&at, before);
    // The thread empties its queue.
    (0..100).for_each(|sequence| sending.send(&batch(sequence, 8)));
    let reader = sending.readers().pop().unwrap();
    assert!(reader.is_silent(Instant::now()) && reader.frames.load(Ordering::Relaxed) == 0);
    sending
        .send_until(|sending| matches!(sending.go_on(nonce, Instant::now()), Answer::Sends { frames: 1.. }));
    Header::parse_datagram(&came(&at)).unwrap();
    sending.desk.answer(&Request::End { nonce }, Instant::now());
    sending.send_until(|sending| sending.queues.is_empty());
    assert_eq!(sending.go_on(nonce, Instant::now()), Answer::Unknown);
}

#[test]
fn the_number_of_readers_is_limited_and_silent_ones_give_way() {
    let (sending, now) = (desk(HOUR), Instant::now());
    let all: Vec<UdpSocket> = (0..READERS_MAX).map(|_| listening()).collect();
    for at in &all {
        sending.reader(at, now);
    }
    let next = listening();
    assert_eq!(sending.ask(&next, now), Answer::Full);
    let first = sending.readers();
    let later = now + HOUR;
    sending.reader(&next, later);
    assert_eq!(sending.readers().len(), READERS_MAX);
    assert_eq!(first.iter().filter(|reader| reader.is_over()).count(), 1, "one gave way");
}

#[test]
fn the_number_of_address_probes_is_limited_for_all_readers() {
    let (sending, at, now) = (desk(HOUR), listening(), Instant::now());
    assert!((0..CLAIMS_MAX).all(|_| sending.ask(&at, now) == Answer::Asked));
    assert_eq!(sending.ask(&at, now), Answer::Full);
    assert_eq!(sending.ask(&at, now + CLAIM_TIMEOUT), Answer::Asked);
}

#[cfg(target_os = "linux")]
#[test]
fn a_reader_that_is_gone_gets_nothing_more() {
    let (mut sending, at) = (desk(HOUR), listening());
    sending.reader(&at, Instant::now());
    let reader = sending.readers().pop().unwrap();
    drop(at);
    sending.send_until(|_| reader.is_over());
}

#[test]
fn frames_that_no_datagram_carries_end_it_for_their_reader() {
    let (mut sending, at) = (desk(HOUR), listening());
    let nonce = sending.reader(&at, Instant::now());
    let reader = sending.readers().pop().unwrap();
    let mut pool = BatchPool::new(1, 1 << 18);
    pool.describe(Some(Arc::default()));
    sending.send(&fill(&mut pool, 0, 40_000));
    let began = Instant::now();
    while !reader.is_over() {
        assert!(began.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(sending.go_on(nonce, Instant::now()), Answer::Unknown);
    assert!(is_empty(&at), "nor a description, which would look like a working route");
}

#[test]
fn a_reader_that_takes_nothing_leaves_the_source_its_memory() {
    let mut sending = desk(HOUR);
    sending.desk.batches_in_flight.store(8, Ordering::Relaxed);
    let (to, _stands_still) = sending.desk.room().queue(&Arc::default());
    sending.queues.push(to);
    let mut pool = BatchPool::new(8, 4_096);
    (0..100).for_each(|sequence| sending.send(&fill(&mut pool, sequence, 8)));
}

#[test]
fn readers_on_request_are_limited_by_the_source_memory() {
    for batches_in_flight in 8..200 {
        let Room { queue_batches, readers } = Room::of(batches_in_flight);
        assert!(queue_batches + readers <= batches_in_flight / 2, "{batches_in_flight}");
    }
    let most = Room { queue_batches: QUEUE_BATCHES_MAX, readers: READERS_MAX };
    assert_eq!([Room::of(68), Room::of(0)], [most; 2]);
    let (sending, now) = (desk(HOUR), Instant::now());
    sending.desk.batches_in_flight.store(8, Ordering::Relaxed);
    let (first, second) = (listening(), listening());
    sending.reader(&first, now);
    assert_eq!(sending.ask(&second, now), Answer::Full);
    sending.desk.batches_in_flight.store(16, Ordering::Relaxed);
    sending.reader(&second, now);
}
