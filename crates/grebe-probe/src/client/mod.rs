//! The asking side: what is measured, in which order, and within which bounds.

mod core;
mod link;
mod mtu;
mod way;

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use self::core::Echo;
use self::link::Path;
use crate::key::Ticket;
use crate::report::{Advice, Report, Rtt, TrainLine, Way};
use crate::{Bounds, Error, Estimate, Limits, Result, quantile, share, verdict};

/// How a probe probes.
#[derive(Debug, Clone)]
pub struct ProbeOptions {
    /// What to keep to.
    pub bounds: Bounds,
    /// Bytes of UDP payload of each datagram; `None`: the longest that comes through both ways.
    pub datagram_bytes: Option<u16>,
    /// Send at this interval, instead of looking for the knee.
    pub interval: Option<Duration>,
    /// TCP streams each way, with writes of so many bytes; none: no TCP.
    pub tcp_writes: Vec<u32>,
    /// Amounts of data to tell the expected time for, bytes.
    pub moves: Vec<u64>,
}

impl Default for ProbeOptions {
    fn default() -> Self {
        Self {
            bounds: Bounds::default(),
            datagram_bytes: None,
            interval: None,
            tcp_writes: vec![65_536],
            moves: vec![1_000_000_000],
        }
    }
}

/// What a probe is doing.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Probing {
    /// Others are served first: so many.
    Waiting(u16),
    /// A part of the probe begins: what, and which way (down, or up) if it has one.
    Part(&'static str, Option<bool>),
    /// The round trip is known.
    RoundTrip(Estimate),
    /// A train is over; the flag says down.
    Train(bool, TrainLine),
}

/// Probes the path to the server of a ticket. `told` hears how it goes.
///
/// # Errors
/// [`Error::Silent`] where nothing answers, [`Error::Ended`] where the server ends it, [`Error::Limit`] for limits that cannot be kept
/// to, [`Error::Interrupted`] once `is_interrupted` says so.
pub fn probe(
    ticket: &Ticket,
    options: &ProbeOptions,
    is_interrupted: &dyn Fn() -> bool,
    told: &mut dyn FnMut(Probing),
) -> Result<Report> {
    let peer = resolve(ticket)?;
    let limits = options.bounds.for_peer(peer.ip());
    limits.check(peer, options.bounds.anyway)?;
    let mut path = Path::open(peer, &ticket.key, is_interrupted, &mut |ahead| told(Probing::Waiting(ahead)))?;
    let outcome = measure(&mut path, limits, options, told);
    path.close();
    outcome
}

fn measure(
    path: &mut Path<'_>,
    limits: Limits,
    options: &ProbeOptions,
    told: &mut dyn FnMut(Probing),
) -> Result<Report> {
    let theirs = Limits {
        rate_max_bps: path.welcome.rate_max_bps,
        bytes_max: path.welcome.bytes_max,
        duration_max: Duration::from_nanos(path.welcome.duration_max_ns)
            .saturating_sub(Duration::from_secs(1)),
    };
    let limits = limits.and(theirs);
    let began_ns = path.now_ns();
    let end_ns = began_ns + limits.duration_max.as_nanos() as u64;
    told(Probing::Part("round trip", None));
    let (echoes, pings) = path.ping(PING_EVERY, PING_TIME)?;
    let rtt = round_trips(&echoes, pings).ok_or(Error::Silent { peer: path.peer, waited: PING_TIME })?;
    path.set_rtt((rtt.p99_ms.value * 1e6) as u64);
    told(Probing::RoundTrip(rtt.p50_ms));
    let clock_offset_ms = clock_offset(&echoes, path);
    told(Probing::Part("path MTU", None));
    let rtt_time = Duration::from_secs_f64(rtt.p50_ms.value / 1e3);
    let mtu = mtu::search(path, rtt_time)?;
    let headers = if path.peer.is_ipv4() { 28.0 } else { 48.0 };
    let whole = mtu.iter().flatten().map(|mtu| mtu.low - headers).fold(f64::INFINITY, f64::min);
    let longest = if whole.is_finite() { whole as u16 } else { CAUTIOUS_BYTES };
    let datagram_bytes = options.datagram_bytes.unwrap_or(longest.min(long_enough(&limits)));

    let tcp_time = (rtt_time * 10).clamp(TCP_MIN, TCP_MAX).min(limits.duration_max / 8);
    let streams = options.tcp_writes.len() as u32 * 2;
    let tcp_ns = ((tcp_time + rtt_time * 3 + TCP_AROUND) * streams).as_nanos() as u64;
    let mut ways = [Way::default(), Way::default()];
    for (is_down, way) in [(false, 0), (true, 1)] {
        let left_ns = end_ns.saturating_sub(path.now_ns() + tcp_ns);
        let share_ns = if is_down { left_ns } else { left_ns / 2 };
        let plan = way::Plan {
            is_down,
            datagram_bytes,
            interval: options.interval,
            limits,
            bytes: limits.bytes_max * WAY_PERCENT / 100,
            bytes_end: path.bytes() + limits.bytes_max * WAY_PERCENT / 100,
            began_ns,
            end_ns: path.now_ns() + share_ns,
            rtt: &rtt,
        };
        ways[way] = way::measure(path, &plan, told)?;
        ways[way].mtu_bytes = mtu[way];
    }
    let tcp_bytes = (limits.bytes_max.saturating_sub(path.bytes())) / u64::from(streams.max(1));
    for &write_bytes in &options.tcp_writes {
        for (is_down, way) in [(false, 0), (true, 1)] {
            told(Probing::Part("TCP", Some(is_down)));
            let (flow, echoes) = path.stream(is_down, write_bytes, tcp_time, tcp_bytes)?;
            ways[way].tcp.extend(flow.map(|flow| way::tcp(write_bytes, &flow)));
            // A stream may fill deeper queues than a train that is over as soon as it has shown something.
            let bloat = way::bloat(&echoes, &rtt);
            let before = ways[way].bufferbloat_ms;
            if before.is_none_or(|before| bloat.is_some_and(|bloat| bloat.value > before.value)) {
                ways[way].bufferbloat_ms = bloat.or(before);
            }
        }
    }
    let [mut up, mut down] = ways;
    up.receive_buffer_bytes = path.welcome.buffer_bytes;
    down.receive_buffer_bytes = path.endpoint.granted().granted_bytes as u64;
    let mut report = Report {
        peer: path.peer.to_string(),
        elapsed_s: (path.now_ns() - began_ns) as f64 / 1e9,
        spent_bytes: path.bytes(),
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

/// The address of the server of a ticket.
///
/// # Errors
/// [`Error::Resolve`] where its name is not known.
pub fn resolve(ticket: &Ticket) -> Result<SocketAddr> {
    let failed = |source| Error::Resolve { host: ticket.host.clone(), source };
    let mut addresses = (ticket.host.as_str(), ticket.port).to_socket_addrs().map_err(failed)?;
    addresses.next().ok_or_else(|| failed(std::io::Error::other("it has no address")))
}

/// The longest datagram of which enough fit into a short train, by the rate and by the bytes that a train may take.
fn long_enough(limits: &Limits) -> u16 {
    let train_bytes =
        (limits.rate_max_bps / 8.0 * way::TRIAL_S).min((limits.bytes_max * WAY_PERCENT / 1_000) as f64);
    let bytes = train_bytes / way::ENOUGH;
    bytes.clamp(USUAL_BYTES.into(), LONG_ENOUGH_BYTES.into()) as u16
}

fn round_trips(echoes: &[Echo], pings: u32) -> Option<Rtt> {
    let mut sorted: Vec<f64> = echoes.iter().map(|echo| echo.rtt_ns() as f64 / 1e6).collect();
    sorted.sort_by(f64::total_cmp);
    let &min = sorted.first()?;
    let p50 = quantile(&sorted, 0.5);
    let lost = pings.saturating_sub(sorted.len() as u32);
    Some(Rtt {
        // What two machines take for a packet is in it, and is at least what the quickest of many differs by from the next.
        min_ms: Estimate::new(min, min - (p50.value - min).max(HOSTS_MS), sorted[sorted.len().min(5) - 1])
            .at_least_zero(),
        p50_ms: p50,
        p99_ms: quantile(&sorted, 0.99),
        count: sorted.len(),
        loss: share(lost.into(), pings.into(), 1.0),
    })
}

/// The quickest round trip knows best; the truth is within half of it, however the path divides it.
fn clock_offset(echoes: &[Echo], path: &Path<'_>) -> Estimate {
    let Some(best) = echoes.iter().min_by_key(|echo| echo.rtt_ns()) else { return Estimate::exact(0.0) };
    let epochs_ns = path.welcome.epoch_ns as f64 - path.clock().epoch_ns as f64;
    Estimate::around((best.offset_ns() + epochs_ns) / 1e6, best.rtt_ns() as f64 / 2e6)
}

const PING_EVERY: Duration = Duration::from_millis(10);
const PING_TIME: Duration = Duration::from_millis(1_000);
const TCP_MIN: Duration = Duration::from_millis(1_000);
const TCP_MAX: Duration = Duration::from_millis(2_500);
/// What a stream takes beside its own time.
const TCP_AROUND: Duration = Duration::from_millis(100);
/// Where no length came through: what any path carries.
const CAUTIOUS_BYTES: u16 = 1_200;
/// As long as most paths carry.
const USUAL_BYTES: u16 = 1_472;
/// The share of the bytes that trains of one direction may take.
const WAY_PERCENT: u64 = 35;
/// As `grebe_datagram` sends over loopback.
const LONG_ENOUGH_BYTES: u16 = 65_000;
/// What the kernels of two hosts take for a packet, at least.
const HOSTS_MS: f64 = 0.3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_allowance_is_not_spent_on_a_few_long_datagrams() {
        let home = Limits::for_peer([127, 0, 0, 1].into());
        assert_eq!(long_enough(&home), LONG_ENOUGH_BYTES);
        assert_eq!(long_enough(&Limits { bytes_max: 20_000_000, ..home }), 1_750);
        assert_eq!(long_enough(&Limits { rate_max_bps: 10e6, ..home }), 1_562);
        assert_eq!(long_enough(&Limits { rate_max_bps: 1e6, ..home }), USUAL_BYTES);
    }
}
