//! Checks before a graph on several hosts starts: clock offsets, and the capacity of routes.

use std::fmt;
use std::time::{Duration, Instant};

use grebe_clock::{Echo, Estimator};
use grebe_flow::{CutEdge, Policy, UtcClock, monotonic_ns};
use grebe_frame::ClockReading;
use grebe_scope::Engineering;

use super::lines::{FILL_BYTES_MAX, Filled, ToCoordinator, ToHost};
use super::remote_host::{News, Received, RemoteHost};

/// Findings of a host.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) clock: Option<Clock>,
    /// Routes to and from the host.
    pub(super) ways: Vec<Carries>,
}

/// Wall clock of a host, compared with this one's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Clock {
    /// Lead over this clock, and its uncertainty.
    ahead_ns: i64,
    error_ns: u64,
    round_trip_ns: u64,
}

/// Required and measured capacity of a route.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Carries {
    /// The edges that use the route, as text.
    edges: String,
    needs_bytes_per_s: f64,
    /// Lower bound if sufficient; `None` if nothing came back in time.
    has_bytes_per_s: Option<f64>,
    /// As text: `the route to mast`.
    way: String,
    blocks: bool,
}

/// Checks a host; `next` returns its messages until a time.
pub(super) fn check_host(
    remote: &RemoteHost,
    links: &[CutEdge],
    is_wide: bool,
    mut next: impl FnMut(Instant) -> Option<Received>,
) -> Found {
    let clock = query_clock(remote, &mut next);
    let there = Carries::needed(
        links.iter().filter(|link| link.to == remote.part),
        format!("the route to {}", remote.name),
    );
    let here = Carries::needed(
        links.iter().filter(|link| link.from == remote.part),
        format!("the route from {}", remote.name),
    );
    let there = there.map(|way| {
        way.measured(is_wide, |bytes| {
            remote.fill(bytes);
            await_filled(&mut next, |news| match news {
                News::Said(ToCoordinator::Filled(filled)) => Some(filled),
                _ => None,
            })
        })
    });
    let here = here.map(|way| {
        way.measured(is_wide, |bytes| {
            remote.say(ToHost::Fill(bytes));
            await_filled(&mut next, |news| match news {
                News::Filled(filled) => Some(filled),
                _ => None,
            })
        })
    });
    Found { clock, ways: there.into_iter().chain(here).collect() }
}

/// Checks the direct route from one host to another; `next` returns messages until a time.
pub(super) fn check_route(
    from: &RemoteHost,
    to: &RemoteHost,
    links: &[CutEdge],
    is_wide: bool,
    mut next: impl FnMut(Instant) -> Option<Received>,
) -> Found {
    let links = links.iter().filter(|link| (link.from, link.to) == (from.part, to.part));
    let way = Carries::needed(links, format!("the route from {} to {}", from.name, to.name));
    let way = way.map(|way| {
        way.measured(is_wide, |bytes| {
            from.say(ToHost::FillPeer { peer: to.number(), bytes });
            await_filled(&mut next, |news| match news {
                News::Said(ToCoordinator::PeerFilled { peer, filled }) if peer == from.number() => {
                    Some(filled)
                }
                _ => None,
            })
        })
    });
    Found { clock: None, ways: way.into_iter().collect() }
}

/// The result of test bytes, if it arrives in time.
fn await_filled(
    next: &mut impl FnMut(Instant) -> Option<Received>,
    of: impl Fn(News) -> Option<Filled>,
) -> Option<Filled> {
    let until = Instant::now() + FILLED_WITHIN;
    loop {
        if let Some(filled) = of(next(until)?.news) {
            return Some(filled);
        }
    }
}

/// Reading of this host's clock.
pub(super) fn clock_reading() -> ClockReading {
    // Unique per reading.
    let now_ns = monotonic_ns();
    UtcClock::default().renewed(now_ns).unwrap_or(ClockReading {
        producer_ts_ns: now_ns,
        unix_time_ns: 0,
        error_ns: None,
        clock: None,
    })
}

fn query_clock(remote: &RemoteHost, next: &mut impl FnMut(Instant) -> Option<Received>) -> Option<Clock> {
    let (began, mut estimator, mut apart_ns) = (Instant::now(), Estimator::default(), None);
    let ours = clock_reading();
    let mut round_trip_ns = u64::MAX;
    for asked in 0..QUESTIONS {
        if asked > 0 && began.elapsed() > CLOCK_TIME {
            break;
        }
        let sent_ns = monotonic_ns();
        remote.say(ToHost::Clock(asked));
        let until = Instant::now() + ANSWERS_WITHIN;
        let theirs = loop {
            match next(until)?.news {
                News::Said(ToCoordinator::Clock(answered, theirs)) if answered == asked => break theirs,
                _ => {}
            }
        };
        let (at_ns, returned_ns) = (theirs.producer_ts_ns, monotonic_ns());
        let echo = Echo { sent_ns, received_ns: at_ns, replied_ns: at_ns, returned_ns };
        round_trip_ns = round_trip_ns.min(echo.round_trip_ns());
        estimator.add(echo);
        let to_utc =
            |reading: &ClockReading| i128::from(reading.unix_time_ns) - i128::from(reading.producer_ts_ns);
        apart_ns = Some(to_utc(&theirs) - to_utc(&ours));
    }
    let relation = estimator.at(monotonic_ns())?;
    let ahead_ns = i128::from(relation.offset_ns) + apart_ns?;
    let ahead_ns = ahead_ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
    Some(Clock { ahead_ns, error_ns: relation.error_ns, round_trip_ns })
}

impl Clock {
    /// Whether UTC times of the host differ significantly from this one's.
    fn is_off(&self) -> bool {
        self.ahead_ns.unsigned_abs().saturating_sub(self.error_ns) > CLOCK_OFF_NS
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |ns: u64| Engineering::new(ns as f64 / 1e9, "s");
        let side = if self.ahead_ns < 0 { "behind" } else { "ahead of" };
        let (apart, error) = (seconds(self.ahead_ns.unsigned_abs()), seconds(self.error_ns));
        write!(f, "{apart} {side} this host's (±{error})")
    }
}

impl Carries {
    /// Known needs of the edges on this route; `None` if there are none.
    fn needed<'a>(links: impl Iterator<Item = &'a CutEdge>, way: String) -> Option<Self> {
        let known: Vec<_> = links.filter_map(|link| Some((link, link.bytes_per_s?))).collect();
        let names: Vec<_> =
            known.iter().map(|(link, _)| format!("{} -> {}", link.edge.from.0, link.edge.to.0)).collect();
        (!names.is_empty()).then(|| Self {
            edges: names.join(", "),
            needs_bytes_per_s: known.iter().map(|(_, bytes_per_s)| bytes_per_s).sum(),
            has_bytes_per_s: None,
            way,
            blocks: known.iter().any(|(link, _)| link.queue.policy == Policy::Block),
        })
    }

    /// Sends growing amounts with `round` until the capacity suffices, for about a second at most.
    fn measured(mut self, is_wide: bool, mut round: impl FnMut(u64) -> Option<Filled>) -> Self {
        let enough = self.needs_bytes_per_s * if is_wide { WIDE } else { MARGIN };
        let (began, mut bytes, mut before) = (Instant::now(), FIRST_BYTES, 0.0);
        loop {
            let Some(Filled { bytes: came, ns }) = round(bytes) else { return self };
            // Data that arrives at once comes from buffers, so count at least the shortest time.
            let rate = came as f64 / (ns.max(SHORTEST_NS) as f64 / 1e9);
            let best = self.has_bytes_per_s.unwrap_or(0.0).max(rate);
            self.has_bytes_per_s = Some(best);
            let is_settled = ns > SETTLED_NS && rate < 1.2 * before;
            if best >= enough || is_settled || began.elapsed() > MEASURE_TIME {
                return self;
            }
            before = rate;
            // An amount for a quarter of a second, by the last measurement.
            bytes = (2 * bytes).min((best / 4.0) as u64).clamp(FIRST_BYTES, FILL_BYTES_MAX);
        }
    }

    fn is_enough(&self) -> bool {
        self.has_bytes_per_s.is_some_and(|has| has >= self.needs_bytes_per_s)
    }

    fn text(&self) -> String {
        let bits = |bytes_per_s: f64| Engineering::new(8.0 * bytes_per_s, "bit/s");
        let carries = match self.has_bytes_per_s {
            Some(has) if self.is_enough() => format!("carries at least {}", bits(has)),
            Some(has) => format!("carries about {}", bits(has)),
            None => format!("carried nothing within {} s", FILLED_WITHIN.as_secs()),
        };
        format!("edge {} needs {}; {} {carries}", self.edges, bits(self.needs_bytes_per_s), self.way)
    }
}

impl Found {
    /// Warnings before the start.
    pub(super) fn warnings(&self, host: &str) -> Vec<String> {
        let clock = self.clock.filter(Clock::is_off).map(|clock| {
            format!("the clock of {host} is {clock}: UTC times of its streams are off by that; correct it with chrony or PTP")
        });
        let narrow = self.ways.iter().filter(|way| !way.is_enough()).map(|way| {
            let what = if way.blocks {
                "its producer will wait, and a receiver then drops samples: set policy = \"drop_oldest\", or"
            } else {
                "its queue will drop:"
            };
            format!("{}; {what} send less: convert, select or decimate_filtered before the edge", way.text())
        });
        clock.into_iter().chain(narrow).collect()
    }

    /// All findings.
    pub(super) fn all(&self, host: &str) -> Vec<String> {
        let clock = self.clock.map(|clock| {
            let round_trip = Engineering::new(clock.round_trip_ns as f64 / 1e9, "s");
            format!("{host}: round trip {round_trip}; its clock is {clock}")
        });
        let wide = self.ways.iter().filter(|way| way.is_enough());
        let ways = wide.map(|way| format!("{host}: {}", way.text()));
        clock.into_iter().chain(ways).collect()
    }
}

const QUESTIONS: u64 = 8;
/// For all requests together, once the first is answered.
const CLOCK_TIME: Duration = Duration::from_millis(250);
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// Offset of disciplined clocks over a bad network.
const CLOCK_OFF_NS: u64 = 10_000_000;
/// A route with this margin is sufficient.
const MARGIN: f64 = 1.1;
/// Margin if nothing but sufficiency matters.
const WIDE: f64 = 2.0;
const FIRST_BYTES: u64 = 64 << 10;
const MEASURE_TIME: Duration = Duration::from_millis(700);
const SHORTEST_NS: u64 = 10_000_000;
const SETTLED_NS: u64 = 50_000_000;
const FILLED_WITHIN: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use std::path::Path;

    use grebe_flow::{Cut, GraphFile};

    use super::*;

    fn cut(graph: &str) -> Cut {
        GraphFile::parse(graph, Path::new("lab.toml"), &grebe_stages::kinds()).unwrap().cut()
    }

    const GRAPH: &str = r#"
        stage = [
            { id = "adc", kind = "synth", host = "mast", params = { channels = 2, rate = "10M" } },
            { id = "floats", kind = "convert", host = "big", params = { to = "f32" } },
            { id = "narrow", kind = "decimate_filtered", host = "big", params = { factor = 10 } },
            { id = "disk", kind = "record", params = { file = "x.sigmf-meta" } },
            { id = "raw", kind = "null" },
        ]
        edge = [
            { from = "adc", to = "floats", policy = "drop_oldest" },
            { from = "floats", to = "narrow" },
            { from = "narrow", to = "disk" },
            { from = "adc", to = "raw", policy = "drop_oldest" },
        ]
    "#;

    #[test]
    fn rates_of_edges_follow_from_the_sources_and_add_up_per_route() {
        let cut = cut(GRAPH);
        let need = |is_it: fn(&CutEdge) -> bool| {
            Carries::needed(cut.links.iter().filter(|link| is_it(link)), String::new())
        };
        let from_mast = need(|link| link.from == 0).unwrap();
        assert_eq!((from_mast.needs_bytes_per_s, from_mast.blocks), (80e6, false));
        assert_eq!(from_mast.edges, "adc -> floats, adc -> raw");
        assert_eq!(need(|link| link.to == 0), None);
        assert_eq!(need(|link| link.to == 1).unwrap().needs_bytes_per_s, 40e6);
        let from_big = need(|link| link.from == 1).unwrap();
        assert_eq!((from_big.needs_bytes_per_s, from_big.blocks), (8e6, true));
        // The rate of a free-running source is unknown.
        let free = self::cut(&GRAPH.replace("rate = \"10M\"", "rate = \"10M\", free_run = true"));
        assert_eq!(Carries::needed(free.links.iter().filter(|link| link.from == 0), String::new()), None);
    }

    #[test]
    fn bytes_that_arrive_at_once_measure_no_rate() {
        let cut = cut(GRAPH);
        let way = Carries::needed(cut.links.iter().filter(|link| link.from == 1), String::new()).unwrap();
        let mut rounds = 0;
        let way = way.measured(false, |bytes| {
            rounds += 1;
            Some(Filled { bytes, ns: 2_000 })
        });
        // 8 MB/s are needed: 64 KiB in the shortest time are too few, 128 KiB suffice.
        assert_eq!((rounds, way.has_bytes_per_s), (2, Some(131_072.0 / 0.01)));
    }

    #[test]
    fn insufficient_memory_is_an_error_with_both_numbers_and_a_remedy() {
        let cut = cut(GRAPH);
        let to_big = cut.links.iter().filter(|link| link.to == 1);
        let mut way = Carries::needed(to_big, "the route to big".to_owned()).unwrap();
        way.has_bytes_per_s = Some(94e6 / 8.0);
        let clock = Clock { ahead_ns: -37_000_000, error_ns: 400_000, round_trip_ns: 800_000 };
        let found = Found { clock: Some(clock), ways: vec![way.clone()] };
        let told = found.warnings("big").join("\n");
        assert!(
            told.contains("edge adc -> floats needs 320 Mbit/s; the route to big carries about 94 Mbit/s"),
            "{told}"
        );
        assert!(told.contains("37 ms behind this host's (±400 µs)"), "{told}");
        way.has_bytes_per_s = Some(50e6);
        let clock = Clock { ahead_ns: 10_300_000, ..clock };
        let found = Found { clock: Some(clock), ways: vec![way] };
        assert_eq!(found.warnings("big"), [""; 0], "the truth may be less");
        assert_eq!(found.all("big").len(), 2);
    }
}
