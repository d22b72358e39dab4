//! What a TCP stream carried.

use crate::proto::estimate::{Estimate, mean};
use crate::proto::packet::tcp::TcpArrivals;
use crate::proto::report::TcpResult;

/// Goodput of a stream with its interval, from the bytes of equal times.
pub(crate) fn tcp_result(write_bytes: u32, arrivals: &TcpArrivals) -> TcpResult {
    let seconds = arrivals.span_ns.max(1) as f64 / 1e9;
    let bin_ns = arrivals.bin_ns.max(1);
    let whole_bins = (arrivals.span_ns / bin_ns).min(arrivals.bin_bytes.len() as u64) as usize;
    let rates_bps: Vec<f64> = arrivals.bin_bytes[..whole_bins]
        .iter()
        .map(|&bytes| f64::from(bytes) * 8e9 / bin_ns as f64)
        .collect();
    let all = mean(&rates_bps);
    let goodput_bps = arrivals.bytes as f64 * 8.0 / seconds;
    let late_bps = match rates_bps.len() {
        4.. => mean(&rates_bps[rates_bps.len() / 2..]),
        _ => Estimate::exact(goodput_bps),
    };
    TcpResult {
        write_bytes,
        goodput_bps: Estimate::around(goodput_bps, all.high - all.value).at_least_zero(),
        span_s: seconds,
        late_bps: late_bps.at_least_zero(),
    }
}
