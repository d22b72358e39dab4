//! The ends as Zenoh's own programs have them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use zenoh::bytes::ZBytes;
use zenoh::qos::CongestionControl;
use zenoh::{Config, Session, Wait};

use super::options::ZenohTask;
use super::seen::{RoundTrips, Seen, WARM_UP, measured};
use crate::error::{Error, Result};
use crate::peer::say;

/// `z_pub_thr`: never ends.
pub(super) fn send(task: &ZenohTask) -> Result<()> {
    let session = open(task)?;
    let publisher = session.declare_publisher(FRAMES).congestion_control(CongestionControl::Block);
    let publisher = publisher.wait().map_err(failed)?;
    let payload = payload(task);
    loop {
        publisher.put(payload.clone()).wait().map_err(failed)?;
    }
}

/// `z_sub_thr`.
pub(super) fn receive(task: &ZenohTask) -> Result<Seen> {
    let session = open(task)?;
    let messages = Arc::new(AtomicU64::new(0));
    let count = messages.clone();
    let subscriber = session.declare_subscriber(FRAMES).callback(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
    });
    let _subscriber = subscriber.wait().map_err(failed)?;
    say(&())?;
    let bytes = || messages.load(Ordering::Relaxed) * task.message_bytes as u64;
    measured(bytes, || 0, task.duration)
}

/// `z_ping`.
pub(super) fn ping(task: &ZenohTask) -> Result<Seen> {
    let session = open(task)?;
    let pongs = session.declare_subscriber(PONG).wait().map_err(failed)?;
    let publisher = session.declare_publisher(PING).congestion_control(CongestionControl::Block);
    let publisher = publisher.express(true).wait().map_err(failed)?;
    let payload = payload(task);
    while !publisher.matching_status().wait().map_err(failed)?.matching() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut trips = RoundTrips::default();
    let began = Instant::now();
    while began.elapsed() < WARM_UP + task.duration {
        let sent = Instant::now();
        publisher.put(payload.clone()).wait().map_err(failed)?;
        pongs.recv().map_err(failed)?;
        if began.elapsed() >= WARM_UP {
            trips.add(sent.elapsed());
        }
    }
    Ok(trips.seen())
}

/// `z_pong`: never ends.
pub(super) fn pong(task: &ZenohTask) -> Result<()> {
    let session = open(task)?;
    let publisher = session.declare_publisher(PONG).congestion_control(CongestionControl::Block);
    let publisher = publisher.express(true).wait().map_err(failed)?;
    let subscriber = session.declare_subscriber(PING).callback(move |sample| {
        // The peer may be gone.
        let _ = publisher.put(sample.payload().clone()).wait();
    });
    let _subscriber = subscriber.wait().map_err(failed)?;
    say(&())?;
    loop {
        std::thread::park();
    }
}

fn open(task: &ZenohTask) -> Result<Session> {
    let config = Config::from_file(&task.config).map_err(failed)?;
    zenoh::open(config).wait().map_err(failed)
}

fn payload(task: &ZenohTask) -> ZBytes {
    (0..task.message_bytes).map(|at| (at % 10) as u8).collect::<Vec<u8>>().into()
}

fn failed(error: impl Into<zenoh::Error>) -> Error {
    Error::peer("program of Zenoh's interface", error.into())
}

const FRAMES: &str = "bench/baseline";
const PING: &str = "bench/baseline/ping";
const PONG: &str = "bench/baseline/pong";
