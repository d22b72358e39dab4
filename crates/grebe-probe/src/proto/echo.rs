//! Pings that were answered, and what they say of the path.

use crate::proto::estimate::{Estimate, quantile, share};
use crate::proto::report::Rtt;

/// A ping that was answered: when it was sent and its answer arrived by our clock, and when it arrived and was answered by the server's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Echo {
    pub(crate) sent_ns: u64,
    pub(crate) there_ns: u64,
    pub(crate) answered_ns: u64,
    pub(crate) back_ns: u64,
}

impl Echo {
    /// The round trip without the time that the server took.
    pub(crate) fn rtt_ns(&self) -> u64 {
        let held = self.answered_ns.saturating_sub(self.there_ns);
        self.back_ns.saturating_sub(self.sent_ns).saturating_sub(held)
    }

    /// The server's clock less ours, if both directions take the same time.
    pub(crate) fn offset_ns(&self) -> f64 {
        let there = self.there_ns as f64 - self.sent_ns as f64;
        let back = self.back_ns as f64 - self.answered_ns as f64;
        (there - back) / 2.0
    }
}

/// What pings on an idle path say; `None` where none was answered.
pub(crate) fn round_trips(echoes: &[Echo], pings: u32) -> Option<Rtt> {
    let sorted = sorted_ms(echoes);
    let &min = sorted.first()?;
    let p50 = quantile(&sorted, 0.5);
    let lost = pings.saturating_sub(sorted.len() as u32);
    // The shortest contains what the two hosts take for a packet, which is no less than what it differs by from the median.
    let min_ms = Estimate::new(min, min - (p50.value - min).max(HOSTS_MS), sorted[sorted.len().min(5) - 1]);
    Some(Rtt {
        min_ms: min_ms.at_least_zero(),
        p50_ms: p50,
        p99_ms: quantile(&sorted, 0.99),
        count: sorted.len(),
        loss: share(lost.into(), pings.into(), 1.0),
    })
}

/// The server's clock less ours, by the quickest round trip: the truth lies within half of it, however the directions share it.
pub(crate) fn clock_offset_ns(echoes: &[Echo]) -> Estimate {
    match echoes.iter().min_by_key(|echo| echo.rtt_ns()) {
        Some(best) => Estimate::around(best.offset_ns(), best.rtt_ns() as f64 / 2.0),
        None => Estimate::exact(0.0),
    }
}

/// The median round trip.
pub(crate) fn median_rtt_ms(echoes: &[Echo]) -> f64 {
    quantile(&sorted_ms(echoes), 0.5).value
}

/// How much longer round trips took under load than on the idle path.
pub(crate) fn bufferbloat_ms(echoes: &[Echo], idle: &Rtt) -> Option<Estimate> {
    let idle_ms = idle.p50_ms.value;
    let loaded = quantile(&sorted_ms(echoes), 0.95);
    let above = Estimate::new(loaded.value - idle_ms, loaded.low - idle_ms, loaded.high - idle_ms);
    (echoes.len() >= 5).then(|| above.at_least_zero())
}

fn sorted_ms(echoes: &[Echo]) -> Vec<f64> {
    let mut sorted: Vec<f64> = echoes.iter().map(|echo| echo.rtt_ns() as f64 / 1e6).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// What the kernels of two hosts take for a packet, at least.
const HOSTS_MS: f64 = 0.3;
