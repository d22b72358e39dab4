//! The path MTU in each direction: datagrams of many lengths at once, none of which may be fragmented.

use std::time::Duration;

use crate::error::Result;
use crate::io::client::session::ClientSession;
use crate::proto::estimate::Estimate;
use crate::proto::packet::{Request, Response, SIZES_MAX};
use crate::proto::train::Train;

/// The longest packet that came through, up and down; its interval ends below the shortest that did not.
pub(crate) fn search(session: &mut ClientSession, rtt: Duration) -> Result<[Option<Estimate>; 2]> {
    let headers = if session.peer.is_ipv4() { 28 } else { 48 };
    let own = session.endpoint.route_payload_bytes().and_then(|bytes| u16::try_from(bytes).ok());
    let mut ladder = first(headers, own);
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
            // This host's interface lets no more out, and is assumed to let as much in.
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
fn first(headers: u16, own: Option<u16>) -> [[u16; SIZES_MAX]; 2] {
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

/// Lengths between the longest that came through and the shortest that did not.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_rounds_come_close_to_any_mtu() {
        for mtu in [600_u16, 1_280, 1_420, 1_493, 1_500, 1_501, 4_470, 9_000, 9_216] {
            let carries = |sizes: &[u16; SIZES_MAX]| {
                sizes.iter().copied().filter(|&size| size <= mtu - 28).max().unwrap_or(0)
            };
            let [_, ladder] = first(28, None);
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
