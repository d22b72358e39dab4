//! A host in a thread, optionally with its own clock: it samples a signal by that clock, sends it, and reports its clock.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use grebe::flow::{clock_id, monotonic_ns};
use grebe::frame::{BatchPool, ClockReading, Description, Header};
use grebe_clock::{HostClock, Responder};

/// The clock of a host.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    id: u64,
    now_ns: fn() -> u64,
    /// Our clock when the other showed this.
    ours_ns: fn(u64) -> u64,
}

const RATE_HZ: u64 = 100_000;
/// The signal rises by one per this many nanoseconds of our clock,
pub(crate) const STEP_NS: u64 = 10_000;
/// and starts over after this many steps.
pub(crate) const STEPS: u64 = 30_000;
const BLOCK_SAMPLES: u64 = 500;
const PERIOD_NS: u64 = 1_000_000_000 / RATE_HZ;

static BEGAN_NS: LazyLock<u64> = LazyLock::new(monotonic_ns);

/// This host's.
pub(crate) fn near_clock() -> Clock {
    Clock { id: clock_id(), now_ns: monotonic_ns, ours_ns: |near_ns| near_ns }
}

/// 37 ms ahead of ours, and 20 parts in a million faster.
pub(crate) fn far_clock() -> Clock {
    let _ = *BEGAN_NS;
    Clock { id: 0xfa12_c10c, now_ns: far_ns, ours_ns }
}

fn far_ns() -> u64 {
    let began_ns = *BEGAN_NS;
    let ours_ns = monotonic_ns();
    ours_ns + 37_000_000 + (ours_ns - began_ns) / 50_000
}

fn ours_ns(far_ns: u64) -> u64 {
    let since = far_ns - 37_000_000 - *BEGAN_NS;
    *BEGAN_NS + (u128::from(since) * 50_000 / 50_001) as u64
}

/// Sends until it is dropped.
pub(crate) struct Host {
    stops: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Host {
    pub(crate) fn start(to: &str, clock: Clock) -> Self {
        let shown = HostClock { id: clock.id, now_ns: clock.now_ns };
        let responder = Responder::start([127, 0, 0, 1].into(), shown).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(to).unwrap();
        let stops = Arc::new(AtomicBool::new(false));
        let stopped = stops.clone();
        let thread = thread::spawn(move || send(&socket, clock, &responder, &stopped));
        Self { stops, thread: Some(thread) }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn send(socket: &UdpSocket, clock: Clock, responder: &Responder, stops: &AtomicBool) {
    // Its UTC is off as well, without its knowledge.
    let reading = ClockReading {
        producer_ts_ns: (clock.now_ns)(),
        unix_time_ns: 1_000_000_000_000_000_000,
        error_ns: None,
        clock: Some(clock.id),
    };
    let description =
        Description { clock: Some(reading), clock_port: Some(responder.port()), ..Description::default() };
    let mut pool = BatchPool::new(1, 65_536);
    let began_ns = (clock.now_ns)();
    let mut described: Option<Instant> = None;
    for sequence in 0.. {
        let first = sequence * BLOCK_SAMPLES;
        let stamp_ns = began_ns + first * PERIOD_NS;
        let due_ns = stamp_ns + BLOCK_SAMPLES * PERIOD_NS;
        thread::sleep(Duration::from_nanos(due_ns.saturating_sub((clock.now_ns)())));
        if stops.load(Ordering::Relaxed) {
            return;
        }
        let header = Header {
            sequence,
            producer_ts_ns: stamp_ns,
            channel_count: 1,
            block_length_samples: BLOCK_SAMPLES as u32,
            sample_rate_hz: RATE_HZ as f64,
            first_sample_index: first,
            ..Header::default()
        };
        if described.is_none_or(|at| at.elapsed() > Duration::from_millis(500)) {
            described = Some(Instant::now());
            for frame in description.frames(&header, 1400).unwrap() {
                let _ = socket.send(&frame);
            }
        }
        let samples: Vec<i16> = (0..BLOCK_SAMPLES)
            .map(|at| ((clock.ours_ns)(stamp_ns + at * PERIOD_NS) / STEP_NS % STEPS) as i16)
            .collect();
        let mut batch = pool.acquire().unwrap();
        batch.push::<i16>(&header, |_, out| out.copy_from_slice(&samples)).unwrap();
        let batch = batch.freeze();
        let (bytes, _) = batch.contiguous().unwrap();
        // The receiver may be gone.
        let _ = socket.send(bytes);
    }
}
