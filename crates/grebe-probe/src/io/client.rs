//! Client: the sequence of measurements, and their bounds.

mod session;

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use grebe_packet::{Cancel, Ticket};

use self::session::ClientSession;
use crate::error::{Error, Result};
use crate::proto::direction::{self, DirectionTask, TrainCarrier, datagram_bytes_max, tcp_result};
use crate::proto::echo::{bufferbloat_ms, clock_offset_ns, round_trips};
use crate::proto::estimate::Estimate;
use crate::proto::limits::{Bounds, Limits};
use crate::proto::packet::{Request, Response, SIZES_MAX};
use crate::proto::report::{Advice, Direction, ProbeEvent, Report, Rtt};
use crate::proto::train::{Train, UDP_IP_BYTES};
use crate::proto::verdict;

/// Options of a probe.
#[derive(Debug, Clone)]
pub struct ProbeOptions {
    /// Limits of the probe.
    pub bounds: Bounds,
    /// Bytes of UDP payload per datagram. `None`: the longest that passes in both directions.
    pub datagram_bytes: Option<u16>,
    /// Fixed interval between datagrams, instead of a search for the highest rate.
    pub interval: Option<Duration>,
    /// Lengths of TCP writes in bytes. Each one takes a TCP stream in each direction; empty: no TCP.
    pub tcp_writes: Vec<u32>,
    /// Amounts of data in bytes whose transfer time to predict.
    pub moves: Vec<u64>,
    /// Stops the probe.
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

/// Probes the path to the server of a ticket, and reports progress to `on_event`.
///
/// # Errors
/// [`Error::Silent`] if nothing answers, [`Error::Ended`] if the server ends the session, [`Error::Limit`]
/// for limits that cannot be met, [`Error::Cancelled`] after [`ProbeOptions::cancel`].
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
    let session = session.map_err(|error| match error {
        Error::Silent { .. } if is_expired(ticket) => Error::Expired,
        error => error,
    })?;
    let limits = limits.and(session.limits());
    let began_ns = session.now_ns();
    let mut path = PathProbe { session, limits, options, began_ns, on_event: &mut on_event };
    let report = path.measure();
    path.session.close();
    report
}

/// First resolvable address of a ticket.
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

/// Checked only if nothing answers, so that a wrong clock cannot prevent a probe.
fn is_expired(ticket: &Ticket) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_secs() >= ticket.expires_unix_s
}

/// A probe within a session.
struct PathProbe<'a> {
    session: ClientSession,
    limits: Limits,
    options: &'a ProbeOptions,
    began_ns: u64,
    on_event: &'a mut dyn FnMut(ProbeEvent),
}

impl PathProbe<'_> {
    fn measure(&mut self) -> Result<Report> {
        let (rtt, clock_offset_ms) = self.idle_path()?;
        (self.on_event)(ProbeEvent::Part { name: "path MTU", is_down: None });
        let rtt_time = Duration::from_secs_f64(rtt.p50_ms.value / 1e3);
        let mtu_bytes = search_mtu(&mut self.session, rtt_time)?;
        let tcp_time = (rtt_time * 10).clamp(TCP_MIN, TCP_MAX).min(self.limits.duration_max / 8);
        let tcp_total = (tcp_time + rtt_time * 3 + TCP_AROUND) * self.tcp_streams();
        let mut directions = self.trains(&mtu_bytes, tcp_total, &rtt)?;
        self.tcp(&mut directions, tcp_time, &rtt)?;
        let [mut up, mut down] = directions;
        up.receive_buffer_bytes = self.session.welcome.buffer_bytes;
        down.receive_buffer_bytes = self.session.endpoint.granted().granted_bytes as u64;
        let mut report = Report {
            peer: self.session.peer.to_string(),
            elapsed_s: (self.session.now_ns() - self.began_ns) as f64 / 1e9,
            spent_bytes: self.session.spent_bytes(),
            rtt,
            clock_offset_ms,
            up,
            down,
            verdict: Vec::new(),
            advice: Advice::default(),
        };
        verdict::conclude(&mut report, &self.options.moves);
        Ok(report)
    }

    /// Round trips and clock offset of the idle path.
    fn idle_path(&mut self) -> Result<(Rtt, Estimate)> {
        (self.on_event)(ProbeEvent::Part { name: "round trip", is_down: None });
        let (echoes, pings) = self.session.ping(PING_INTERVAL, PING_TIME)?;
        let silent = Error::Silent { peer: self.session.peer, waited: PING_TIME };
        let rtt = round_trips(&echoes, pings).ok_or(silent)?;
        self.session.set_rtt((rtt.p99_ms.value * 1e6) as u64);
        (self.on_event)(ProbeEvent::RoundTrip(rtt.p50_ms));
        let epochs_ns = self.session.welcome.epoch_ns as f64 - self.session.endpoint.clock.epoch_ns as f64;
        Ok((rtt, clock_offset_ns(&echoes).shifted(epochs_ns).scaled(1e-6)))
    }

    /// Sends trains up and down. `reserved` is the time for the later measurements.
    fn trains(
        &mut self,
        mtu_bytes: &[Option<Estimate>; 2],
        reserved: Duration,
        rtt: &Rtt,
    ) -> Result<[Direction; 2]> {
        let bytes_max = self.limits.bytes_max * DIRECTION_PERCENT / 100;
        let longest = longest_datagram(&self.session, mtu_bytes);
        let datagram_bytes = longest.min(datagram_bytes_max(&self.limits, bytes_max));
        let end_ns = self.began_ns + (self.limits.duration_max.saturating_sub(reserved)).as_nanos() as u64;
        let mut directions = [Direction::default(), Direction::default()];
        for (is_down, direction) in [false, true].into_iter().zip(&mut directions) {
            let now_ns = self.session.now_ns();
            let left_ns = end_ns.saturating_sub(now_ns);
            let task = DirectionTask {
                is_down,
                datagram_bytes: self.options.datagram_bytes.unwrap_or(datagram_bytes),
                interval: self.options.interval,
                limits: self.limits,
                bytes_max,
                spent_bytes_max: self.session.spent_bytes() + bytes_max,
                began_ns: self.began_ns,
                end_ns: now_ns + if is_down { left_ns } else { left_ns / 2 },
                rtt,
            };
            *direction = direction::measure(&mut self.session, &task, self.on_event)?;
            direction.mtu_bytes = mtu_bytes[usize::from(is_down)];
        }
        Ok(directions)
    }

    /// Runs TCP streams up and down, one for each length of a write.
    fn tcp(&mut self, directions: &mut [Direction; 2], time: Duration, rtt: &Rtt) -> Result<()> {
        let bytes_left = self.limits.bytes_max.saturating_sub(self.session.spent_bytes());
        let bytes_max = bytes_left / u64::from(self.tcp_streams().max(1));
        for &write_bytes in &self.options.tcp_writes {
            for (is_down, direction) in [false, true].into_iter().zip(&mut *directions) {
                (self.on_event)(ProbeEvent::Part { name: "TCP", is_down: Some(is_down) });
                let (arrivals, echoes) = self.session.tcp(is_down, write_bytes, time, bytes_max)?;
                direction.tcp.extend(arrivals.map(|arrivals| tcp_result(write_bytes, &arrivals)));
                // A stream may fill a deeper queue than a train, which ends as soon as a queue shows.
                let worst = [direction.bufferbloat_ms, bufferbloat_ms(&echoes, rtt)].into_iter().flatten();
                direction.bufferbloat_ms = worst.max_by(|a, b| a.value.total_cmp(&b.value));
            }
        }
        Ok(())
    }

    fn tcp_streams(&self) -> u32 {
        self.options.tcp_writes.len() as u32 * 2
    }
}

/// UDP payload of the longest packet known to pass in both directions.
fn longest_datagram(session: &ClientSession, mtu_bytes: &[Option<Estimate>; 2]) -> u16 {
    let headers = if session.peer.is_ipv4() { UDP_IP_BYTES } else { UDP_IP_BYTES + 20 } as f64;
    let shorter = mtu_bytes.iter().flatten().map(|mtu| mtu.low - headers).reduce(f64::min);
    shorter.map_or(CAUTIOUS_BYTES, |bytes| bytes as u16)
}

/// Path MTU up and down, by unfragmented datagrams of many lengths at once. The estimate is the longest
/// packet that passed; its interval ends below the shortest that did not.
fn search_mtu(session: &mut ClientSession, rtt: Duration) -> Result<[Option<Estimate>; 2]> {
    let headers = if session.peer.is_ipv4() { 28 } else { 48 };
    let own = session.endpoint.route_payload_bytes().and_then(|bytes| u16::try_from(bytes).ok());
    let mut ladder = first_ladder(headers, own);
    let mut known: [(u16, u16); 2] = [(0, Train::SIZE_MAX), (0, Train::SIZE_MAX)];
    for round in 0..2 {
        let [up, down] = ladder;
        if down != [0; SIZES_MAX] {
            session.core.longest_size = known[1].0;
            session.request(Request::SendSizes(down))?;
        }
        if up != [0; SIZES_MAX] {
            session.send_sizes(&up)?;
        }
        // The server sends its datagrams before its response, but long ones take longer.
        session.serve((rtt / 4).clamp(Duration::from_millis(5), Duration::from_millis(100)))?;
        if let Response::LongestSize { bytes } = session.request(Request::LongestSize)? {
            known[0] = narrow(known[0], &up, bytes);
        }
        known[1] = narrow(known[1], &down, session.core.longest_size);
        if let Some(own) = own {
            // The limit of this host's interface, assumed to hold in both directions.
            known[0].1 = known[0].1.min(own);
            if known[1].0 == own {
                known[1].1 = own;
            }
        }
        if round == 0 {
            ladder = known.map(|(low, high)| between(low, high));
        }
    }
    Ok(known.map(|(low, high)| {
        let mtu = |payload: u16| f64::from(payload) + f64::from(headers);
        (low > 0).then(|| Estimate::new(mtu(low), mtu(low), mtu(high.max(low))))
    }))
}

/// UDP payloads that fill the packets of common links and tunnels, up and down.
fn first_ladder(headers: u16, own: Option<u16>) -> [[u16; SIZES_MAX]; 2] {
    const MTUS: [u16; 17] = [
        576, 1_006, 1_280, 1_380, 1_400, 1_420, 1_440, 1_450, 1_460, 1_472, 1_480, 1_492, 1_500, 2_304,
        4_352, 9_000, 16_384,
    ];
    let mut sizes = [0; SIZES_MAX];
    for (size, mtu) in sizes.iter_mut().zip(MTUS) {
        *size = mtu - headers;
    }
    sizes[MTUS.len()] = Train::SIZE_MAX - 20;
    sizes[MTUS.len() + 1] = Train::SIZE_MAX;
    sizes[MTUS.len() + 2] = own.unwrap_or(0);
    let up = sizes.map(|size| if own.is_some_and(|own| size > own) { 0 } else { size });
    [up, sizes]
}

fn narrow((low, high): (u16, u16), sent: &[u16; SIZES_MAX], seen: u16) -> (u16, u16) {
    let low = low.max(seen);
    let next = sent.iter().copied().filter(|&size| size > low).min();
    (low, next.map_or(high, |next| high.min(next - 1)))
}

/// Lengths between the longest that passed and the shortest that did not.
fn between(low: u16, high: u16) -> [u16; SIZES_MAX] {
    let gap = u32::from(high.saturating_sub(low));
    let mut sizes = [0; SIZES_MAX];
    if low == 0 {
        return sizes;
    }
    let steps = gap.min(SIZES_MAX as u32);
    for (step, size) in (1..=steps).zip(&mut sizes) {
        *size = low + (gap * step / steps) as u16;
    }
    sizes
}

const PING_INTERVAL: Duration = Duration::from_millis(10);
const PING_TIME: Duration = Duration::from_millis(1_000);
const TCP_MIN: Duration = Duration::from_millis(1_000);
const TCP_MAX: Duration = Duration::from_millis(2_500);
/// Overhead of a stream beside its duration.
const TCP_AROUND: Duration = Duration::from_millis(100);
/// Minimum that every path carries, if no length passed.
const CAUTIOUS_BYTES: u16 = 1_200;
/// Share of the total bytes for the trains of one direction.
const DIRECTION_PERCENT: u64 = 35;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_rounds_come_close_to_any_mtu() {
        for mtu in [600_u16, 1_280, 1_420, 1_493, 1_500, 1_501, 4_470, 9_000, 9_216] {
            let carries = |sizes: &[u16; SIZES_MAX]| {
                sizes.iter().copied().filter(|&size| size <= mtu - 28).max().unwrap_or(0)
            };
            let [_, ladder] = first_ladder(28, None);
            let known = narrow((0, Train::SIZE_MAX), &ladder, carries(&ladder));
            let ladder = between(known.0, known.1);
            let known = narrow(known, &ladder, carries(&ladder));
            assert!((known.0..=known.1).contains(&(mtu - 28)), "{known:?} of {mtu}");
            assert!(f64::from(known.1 - known.0) <= f64::from(mtu) * 0.1 + 1.0, "{known:?} of {mtu}");
        }
    }

    #[test]
    fn nothing_seen_is_nothing_known() {
        assert_eq!(narrow((0, 100), &[0; SIZES_MAX], 0), (0, 100));
        assert_eq!(between(0, 1_000), [0; SIZES_MAX]);
    }
}
