//! The asking side: what is measured, in which order, and within which bounds.

mod mtu;
mod session;

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use grebe_packet::{Cancel, Ticket};

use self::session::ClientSession;
use crate::error::{Error, Result};
use crate::proto::direction::tcp::tcp_result;
use crate::proto::direction::{self, DirectionTask, TrainCarrier, datagram_bytes_max};
use crate::proto::echo::{bufferbloat_ms, clock_offset_ns, round_trips};
use crate::proto::estimate::Estimate;
use crate::proto::event::ProbeEvent;
use crate::proto::limits::{Bounds, Limits};
use crate::proto::report::{Advice, Direction, Report, Rtt};
use crate::proto::train::UDP_IP_BYTES;
use crate::proto::verdict;

/// How a probe probes.
#[derive(Debug, Clone)]
pub struct ProbeOptions {
    /// What to keep to.
    pub bounds: Bounds,
    /// Bytes of UDP payload of each datagram; `None`: the longest that comes through in both directions.
    pub datagram_bytes: Option<u16>,
    /// Send at this interval, instead of looking for the highest rate.
    pub interval: Option<Duration>,
    /// One TCP stream in each direction for each of these lengths of a write, in bytes; empty: no TCP.
    pub tcp_writes: Vec<u32>,
    /// Amounts of data to predict the transfer time of, in bytes.
    pub moves: Vec<u64>,
    /// Stops it.
    pub cancel: Cancel,
}

impl Default for ProbeOptions {
    fn default() -> Self {
        Self {
            bounds: Bounds::default(),
            datagram_bytes: None,
            interval: None,
            tcp_writes: vec![65_536],
            moves: vec![1_000_000_000],
            cancel: Cancel::default(),
        }
    }
}

/// Probes the path to the server of a ticket. `on_event` hears how it goes.
///
/// # Errors
/// [`Error::Silent`] where nothing answers, [`Error::Ended`] where the server ends it, [`Error::Limit`] for limits that cannot be kept
/// to, [`Error::Cancelled`] after [`ProbeOptions::cancel`].
pub fn probe(
    ticket: &Ticket,
    options: &ProbeOptions,
    mut on_event: impl FnMut(ProbeEvent),
) -> Result<Report> {
    let peer = resolve(ticket)?;
    let limits = options.bounds.for_peer(peer.ip());
    limits.check(peer, options.bounds.allow_fast_public)?;
    let mut on_wait = |ahead| on_event(ProbeEvent::Waiting { ahead });
    let session = ClientSession::open(peer, &ticket.key, &options.cancel, &mut on_wait);
    let mut session = session.map_err(|error| match error {
        Error::Silent { .. } if is_expired(ticket) => Error::Expired,
        error => error,
    })?;
    let outcome = measure(&mut session, limits, options, &mut on_event);
    session.close();
    outcome
}

/// The first address of a ticket that the system can resolve.
fn resolve(ticket: &Ticket) -> Result<SocketAddr> {
    let mut failed = None;
    for address in &ticket.addresses {
        match address.to_socket_addrs().map(|mut found| found.next()) {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => {}
            Err(source) => failed = Some(Error::Resolve { host: address.to_string(), source }),
        }
    }
    Err(failed.unwrap_or(Error::Ticket(grebe_packet::Error::Ticket { what: "it has no address" })))
}

/// Asked only where nothing answers, so that a wrong clock prevents no probe.
fn is_expired(ticket: &Ticket) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_secs() >= ticket.expires_unix_s
}

fn measure(
    session: &mut ClientSession,
    limits: Limits,
    options: &ProbeOptions,
    on_event: &mut dyn FnMut(ProbeEvent),
) -> Result<Report> {
    let limits = limits.and(Limits {
        rate_max_bps: session.welcome.rate_max_bps,
        bytes_max: session.welcome.bytes_max,
        duration_max: Duration::from_nanos(session.welcome.duration_max_ns)
            .saturating_sub(Duration::from_secs(1)),
    });
    let began_ns = session.now_ns();
    let (rtt, clock_offset_ms) = idle_path(session, on_event)?;
    on_event(ProbeEvent::Part { name: "path MTU", is_down: None });
    let rtt_time = Duration::from_secs_f64(rtt.p50_ms.value / 1e3);
    let mtu_bytes = mtu::search(session, rtt_time)?;
    let tcp_time = (rtt_time * 10).clamp(TCP_MIN, TCP_MAX).min(limits.duration_max / 8);
    let streams = options.tcp_writes.len() as u32 * 2;
    let tcp_ns = ((tcp_time + rtt_time * 3 + TCP_AROUND) * streams).as_nanos() as u64;
    let direction_bytes_max = limits.bytes_max * DIRECTION_PERCENT / 100;
    let longest = longest_datagram(session, &mtu_bytes).min(datagram_bytes_max(&limits, direction_bytes_max));
    let mut task = DirectionTask {
        is_down: false,
        datagram_bytes: options.datagram_bytes.unwrap_or(longest),
        interval: options.interval,
        limits,
        bytes_max: direction_bytes_max,
        spent_bytes_max: 0,
        began_ns,
        end_ns: 0,
        rtt: &rtt,
    };
    let mut directions = [Direction::default(), Direction::default()];
    for (is_down, direction) in [false, true].into_iter().zip(&mut directions) {
        task.is_down = is_down;
        task.spent_bytes_max = session.spent_bytes() + direction_bytes_max;
        let now_ns = session.now_ns();
        let end_ns = began_ns + limits.duration_max.as_nanos() as u64;
        let left_ns = end_ns.saturating_sub(now_ns + tcp_ns);
        task.end_ns = now_ns + if is_down { left_ns } else { left_ns / 2 };
        *direction = direction::measure(session, &task, on_event)?;
        direction.mtu_bytes = mtu_bytes[usize::from(is_down)];
    }
    let tcp_bytes = limits.bytes_max.saturating_sub(session.spent_bytes()) / u64::from(streams.max(1));
    for &write_bytes in &options.tcp_writes {
        for (is_down, direction) in [false, true].into_iter().zip(&mut directions) {
            on_event(ProbeEvent::Part { name: "TCP", is_down: Some(is_down) });
            let (arrivals, echoes) = session.tcp(is_down, write_bytes, tcp_time, tcp_bytes)?;
            direction.tcp.extend(arrivals.map(|arrivals| tcp_result(write_bytes, &arrivals)));
            // A stream may fill a deeper queue than a train, which ends as soon as it has shown something.
            let worst = [direction.bufferbloat_ms, bufferbloat_ms(&echoes, &rtt)].into_iter().flatten();
            direction.bufferbloat_ms = worst.max_by(|a, b| a.value.total_cmp(&b.value));
        }
    }
    let [mut up, mut down] = directions;
    up.receive_buffer_bytes = session.welcome.buffer_bytes;
    down.receive_buffer_bytes = session.endpoint.granted().granted_bytes as u64;
    let mut report = Report {
        peer: session.peer.to_string(),
        elapsed_s: (session.now_ns() - began_ns) as f64 / 1e9,
        spent_bytes: session.spent_bytes(),
        rtt,
        clock_offset_ms,
        up,
        down,
        verdict: Vec::new(),
        advice: Advice::default(),
    };
    verdict::conclude(&mut report, &options.moves);
    Ok(report)
}

/// Round trips and the offset of the clocks, while nothing else is sent.
fn idle_path(session: &mut ClientSession, on_event: &mut dyn FnMut(ProbeEvent)) -> Result<(Rtt, Estimate)> {
    on_event(ProbeEvent::Part { name: "round trip", is_down: None });
    let (echoes, pings) = session.ping(PING_INTERVAL, PING_TIME)?;
    let silent = Error::Silent { peer: session.peer, waited: PING_TIME };
    let rtt = round_trips(&echoes, pings).ok_or(silent)?;
    session.set_rtt((rtt.p99_ms.value * 1e6) as u64);
    on_event(ProbeEvent::RoundTrip(rtt.p50_ms));
    let offset_ns = clock_offset_ns(&echoes);
    let epochs_ns = session.welcome.epoch_ns as f64 - session.clock().epoch_ns as f64;
    Ok((rtt, offset_ns.shifted(epochs_ns).scaled(1e-6)))
}

/// UDP payload of the longest packet that is known to come through in both directions.
fn longest_datagram(session: &ClientSession, mtu_bytes: &[Option<Estimate>; 2]) -> u16 {
    let headers = if session.peer.is_ipv4() { UDP_IP_BYTES } else { UDP_IP_BYTES + 20 } as f64;
    let shorter = mtu_bytes.iter().flatten().map(|mtu| mtu.low - headers).reduce(f64::min);
    shorter.map_or(CAUTIOUS_BYTES, |bytes| bytes as u16)
}

const PING_INTERVAL: Duration = Duration::from_millis(10);
const PING_TIME: Duration = Duration::from_millis(1_000);
const TCP_MIN: Duration = Duration::from_millis(1_000);
const TCP_MAX: Duration = Duration::from_millis(2_500);
/// What a stream takes beside its own time.
const TCP_AROUND: Duration = Duration::from_millis(100);
/// Where no length came through: what any path carries.
const CAUTIOUS_BYTES: u16 = 1_200;
/// The share of the bytes that trains of one direction may take.
const DIRECTION_PERCENT: u64 = 35;
