//! Answered pings, and their evaluation.

use grebe_clock::{Echo, Estimator};

use crate::proto::estimate::{Estimate, quantile, share};
use crate::proto::report::Rtt;

/// Round trips on an idle path; `None` without answered pings.
pub(crate) fn round_trips(echoes: &[Echo], pings: u32) -> Option<Rtt> {
    let sorted = sorted_ms(echoes);
    let &min = sorted.first()?;
    let p50 = quantile(&sorted, 0.5);
    let lost = pings.saturating_sub(sorted.len() as u32);
    // The minimum includes the hosts' time per packet, which is at least its distance from the median.
    let min_ms = Estimate::new(min, min - (p50.value - min).max(HOSTS_MS), sorted[sorted.len().min(5) - 1]);
    Some(Rtt {
        min_ms: min_ms.at_least_zero(),
        p50_ms: p50,
        p99_ms: quantile(&sorted, 0.99),
        count: sorted.len(),
        loss: share(lost.into(), pings.into(), 1.0),
    })
}

/// The server's clock minus ours. The interval contains the truth, however the two directions share the round
/// trips.
pub(crate) fn clock_offset_ns(echoes: &[Echo]) -> Estimate {
    let mut estimator = Estimator::default();
    echoes.iter().for_each(|&echo| estimator.add(echo));
    match echoes.last().and_then(|last| estimator.at(last.returned_ns)) {
        Some(relation) => Estimate::around(relation.offset_ns as f64, relation.error_ns as f64),
        None => Estimate::exact(0.0),
    }
}

/// Median round trip.
pub(crate) fn median_rtt_ms(echoes: &[Echo]) -> f64 {
    quantile(&sorted_ms(echoes), 0.5).value
}

/// Increase of round trips under load over the idle path.
pub(crate) fn bufferbloat_ms(echoes: &[Echo], idle: &Rtt) -> Option<Estimate> {
    let idle_ms = idle.p50_ms.value;
    let loaded = quantile(&sorted_ms(echoes), 0.95);
    let above = Estimate::new(loaded.value - idle_ms, loaded.low - idle_ms, loaded.high - idle_ms);
    (echoes.len() >= 5).then(|| above.at_least_zero())
}

fn sorted_ms(echoes: &[Echo]) -> Vec<f64> {
    let mut sorted: Vec<f64> = echoes.iter().map(|echo| echo.round_trip_ns() as f64 / 1e6).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Minimum time of two kernels per packet.
const HOSTS_MS: f64 = 0.3;
