//! Charts of a probe: values and axes.

use grebe_probe::TrainResult;

/// Figure of a train.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Panel {
    Goodput,
    Loss,
    Rtt,
}

/// Range of an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Span {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Panel {
    pub(crate) const ALL: [Panel; 3] = [Panel::Goodput, Panel::Loss, Panel::Rtt];

    pub(crate) fn name(self, rate_unit: &str) -> String {
        match self {
            Panel::Goodput => format!("arrived, {rate_unit}"),
            Panel::Loss => "lost, %".to_owned(),
            Panel::Rtt => "round trip, ms".to_owned(),
        }
    }

    /// The value; rates are in units of `divisor` bit/s.
    pub(crate) fn value(self, train: &TrainResult, divisor: f64) -> f64 {
        match self {
            Panel::Goodput => train.delivered_bps / divisor,
            Panel::Loss => f64::from(train.lost) / f64::from(train.count.max(1)) * 100.0,
            Panel::Rtt => train.rtt_ms,
        }
    }

    pub(crate) fn span(self, values: &[f64]) -> Span {
        let most = values.iter().copied().fold(0.0, f64::max);
        match self {
            Panel::Goodput => Span::from_zero(values.iter().copied()),
            // Half a percent of loss must not fill the chart.
            Panel::Loss => Span { low: 0.0, high: (most * 1.1).max(1.0) },
            Panel::Rtt => {
                let least = values.iter().copied().fold(f64::INFINITY, f64::min).min(most);
                let room = ((most - least) * 0.1).max(most * 0.01).max(0.05);
                Span { low: (least - room).max(0.0), high: most + room }
            }
        }
    }
}

impl Span {
    pub(crate) fn from_zero(values: impl Iterator<Item = f64>) -> Self {
        let most = values.fold(0.0, f64::max);
        Self { low: 0.0, high: if most > 0.0 { most * 1.06 } else { 1.0 } }
    }
}

/// A unit for rates up to this one, and its size in bit/s.
pub(crate) fn rate_unit(most_bps: f64) -> (&'static str, f64) {
    match most_bps {
        most if most >= 2e9 => ("Gbit/s", 1e9),
        most if most >= 2e6 => ("Mbit/s", 1e6),
        _ => ("kbit/s", 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_within_its_axis() {
        for values in [&[][..], &[0.0], &[250.0, 250.1], &[0.4, 90.0]] {
            for panel in Panel::ALL {
                let Span { low, high } = panel.span(values);
                assert!(low < high && low >= 0.0, "{panel:?} {values:?}");
                assert!(values.iter().all(|value| (low..=high).contains(value)), "{panel:?} {values:?}");
            }
        }
        assert_eq!((rate_unit(5e9).0, rate_unit(1e8).0, rate_unit(1e5).0), ("Gbit/s", "Mbit/s", "kbit/s"));
    }
}
