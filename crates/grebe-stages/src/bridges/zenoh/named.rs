//! A source that finds a stream by its name.

use std::time::{Duration, Instant};

use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, Stage, StageResult};
use grebe_link::arrival::ArrivalCounters;
use grebe_ring::Cancel;
use grebe_shm::{Error as ShmError, SubscriberOptions};
use grebe_zenoh::{Found, Lab, Pattern, Using, Watch};

use crate::bridges::shm::ShmSource;
use crate::bridges::udp::UdpSource;
use crate::bridges::zenoh::asking::{Asking, DatagramState};
use crate::bridges::zenoh::routes::{Candidate, Onward, listen};
use crate::bridges::zenoh::source::ReaderOptions;
use crate::bridges::zenoh::source::ZenohSource;
use crate::bridges::zenoh::uri::NamedStream;
use crate::error::Error;
use crate::open::{Notice, Notify, Transport};
use crate::scheme::Scheme as _;
use crate::session::Bounded as _;

/// Reads the stream of a name by the best route. Waits for a producer that is lost without an end of stream. When it
/// returns, also on another host or by another route, the stream continues after a gap.
pub(crate) struct NamedSource {
    from: NamedStream,
    lab: Lab,
    watch: Watch,
    /// Version of the watch at the last check.
    known: u64,
    reading: Reading,
    /// `None`: its producer is gone.
    current: Option<Current>,
    /// Session of a producer that is gone, although it may still be announced.
    gone: Option<String>,
    /// Session of a producer whose datagrams are mostly lost.
    unreachable: Option<String>,
    /// Session of a producer whose stream continues by another route, with its position.
    onward: Option<(String, Onward)>,
    /// Time of the next attempt to open a route.
    retry_at: Option<Instant>,
    /// Samples per channel left to send.
    left_samples: Option<u64>,
    waits_since: Instant,
    counters: Mirror,
    _using: Using,
}

/// Options of a reader.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    pub(crate) transport: Transport,
    pub(crate) subscriber: SubscriberOptions,
    pub(crate) samples: Option<u64>,
    pub(crate) listens_on: bool,
    pub(crate) idle_timeout: Option<Duration>,
    /// Whether to wait for the announcement, and for how long at most.
    pub(crate) waits: bool,
    pub(crate) open_timeout: Option<Duration>,
    pub(crate) cancel: Cancel,
}

struct Current {
    session: String,
    by: By,
    /// `None`: the route needs no request.
    asking: Option<Asking>,
    /// `None`: frames have arrived, or the silence was reported.
    silence: Option<Silence>,
}

/// State until the first frame arrives.
struct Silence {
    look_at: Instant,
    /// Messages that the producer had sent at the last check.
    sent: Option<u64>,
    /// Whether it had sent some between the last two checks, which should have arrived by now.
    is_due: bool,
}

enum By {
    Shm(Box<ShmSource>),
    Udp(Box<UdpSource>),
    Zenoh(Box<ZenohSource>),
}

impl NamedSource {
    /// Finds the producer, and opens the best route to it.
    ///
    /// # Errors
    /// The lab cannot be joined; no host announces the name and `waits` is unset; the requested route does not exist.
    pub(crate) fn open(from: &NamedStream, reading: Reading, notify: Notify<'_>) -> Result<Self, Error> {
        let lab = Lab::shared()?;
        let watch = lab.watch(&Pattern::from(&from.name))?;
        let mut source = Self {
            from: from.clone(),
            _using: lab.using(&from.name),
            lab,
            watch,
            known: 0,
            left_samples: reading.samples,
            reading,
            current: None,
            gone: None,
            unreachable: None,
            onward: None,
            retry_at: None,
            waits_since: Instant::now(),
            counters: Mirror::new(),
        };
        source.watch.settle(SETTLE);
        let mut is_told = false;
        loop {
            source.known = source.watch.changes();
            if let Some(notice) = source.find()? {
                notify(notice);
                return Ok(source);
            }
            if source.reading.cancel.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let (name, reach) = (source.from.name.to_string(), source.lab.looked_by());
            let is_late = |timeout| source.waits_since.elapsed() >= timeout;
            if !source.reading.waits || source.reading.open_timeout.is_some_and(is_late) {
                return Err(Error::Unannounced { name, reach });
            }
            source.check_idle()?;
            if !std::mem::replace(&mut is_told, true) {
                notify(Notice::WaitingForName { name, reach });
            }
            source.watch.wait(source.known, CHECK_EVERY);
        }
    }

    /// Maximum batches on loan to this reader of shared memory.
    pub(crate) fn lent_max(&self) -> Option<usize> {
        match &self.current.as_ref()?.by {
            By::Shm(source) => Some(source.lent_max()),
            _ => None,
        }
    }

    /// Opens the best route to the newest producer of the name. Returns the notice of the route.
    fn find(&mut self) -> Result<Option<Notice>, Error> {
        let mut found: Vec<Found> = Vec::new();
        for (session, _) in self.watch.streams() {
            if self.gone.as_ref() != Some(&session) {
                found.extend(self.lab.what(&session, &self.from.name, ANSWERS_WITHIN)?);
            }
        }
        let Some(newest) = found.into_iter().max_by_key(|found| found.what.since_unix_ms) else {
            return Ok(None);
        };
        let onward = self.onward.take().filter(|(session, _)| *session == newest.session);
        let onward = onward.map(|(_, onward)| onward);
        for candidate in &Candidate::of(&newest, self.from.route) {
            let Some((by, asking)) = self.open_route(candidate, &newest, onward.as_ref())? else { continue };
            let silence =
                Some(Silence { look_at: Instant::now() + DOUBTED_AFTER, sent: None, is_due: false });
            self.current = Some(Current { session: newest.session, by, asking, silence });
            let (name, from) = (newest.name.to_string(), newest.what.to_string());
            return Ok(Some(Notice::Route { name, from, by: candidate.uri() }));
        }
        let route = self.from.route.map_or("", |route| route.name());
        let reason = format!(
            "cannot be read by {}: {} sends it by {}",
            if route.is_empty() { "any route from here" } else { route },
            newest.what,
            newest.what.shown_routes().join(", ")
        );
        self.onward = onward.map(|onward| (newest.session, onward));
        Err(Error::Name { name: self.from.uri(), reason })
    }

    /// `None`: no frame arrives by this route.
    fn open_route(
        &self,
        candidate: &Candidate,
        found: &Found,
        onward: Option<&Onward>,
    ) -> Result<Option<(By, Option<Asking>)>, Error> {
        let Reading { transport, subscriber, listens_on, idle_timeout, .. } = &self.reading;
        match candidate {
            Candidate::Shm(name) => match ShmSource::connect(name, subscriber) {
                Ok(source) => {
                    let source = source.idle_timeout(*idle_timeout).samples(self.left_samples);
                    Ok(Some((By::Shm(Box::new(source)), None)))
                }
                // The memory of another user or container.
                Err(_) => Ok(None),
            },
            Candidate::Udp(at) => {
                let Some(source) = listen(at, transport)? else { return Ok(None) };
                Ok(Some((self.by_udp(source, onward), None)))
            }
            Candidate::OnRequest { is_near } => {
                let is_unheard = self.unreachable.as_ref() == Some(&found.session);
                if is_unheard || !self.lab.has_udp_on_request() {
                    return Ok(None);
                }
                let asked = Asking::open(&self.lab, found, transport, *is_near)?;
                Ok(asked.map(|(source, asking)| (self.by_udp(source, onward), Some(asking))))
            }
            Candidate::Zenoh(key) => {
                let options = ReaderOptions { policy: None, listens_on: *listens_on };
                let source = ZenohSource::of_key(&self.lab, key, options)?.after(onward.cloned());
                let source = source.idle_timeout(*idle_timeout).samples(self.left_samples);
                Ok(Some((By::Zenoh(Box::new(source)), None)))
            }
        }
    }

    fn by_udp(&self, source: UdpSource, onward: Option<&Onward>) -> By {
        let Reading { listens_on, idle_timeout, .. } = self.reading;
        let source = source.idle_timeout(idle_timeout).samples(self.left_samples).listens_on(listens_on);
        By::Udp(Box::new(source.after(onward.map(|onward| onward.tracker.clone()))))
    }

    /// Handles the loss of the producer: keeps the counts, and waits for the next producer.
    fn leave(&mut self) {
        if let Some((session, _)) = self.leave_route() {
            self.gone = Some(session);
        }
    }

    /// Closes the route. The search covers the routes of new producers too.
    fn leave_route(&mut self) -> Option<(String, By)> {
        let Current { session, by, asking, .. } = self.current.take()?;
        drop(asking);
        self.left_samples = by.left_samples();
        self.counters.keep();
        self.waits_since = Instant::now();
        self.known = u64::MAX;
        Some((session, by))
    }

    /// Changes the route if the requested datagrams stop, or too many are lost.
    fn check_datagrams(&mut self) {
        let Some(Current { by: By::Udp(source), asking: Some(asking), .. }) = &self.current else { return };
        let state = asking.state(source.tracker().counts().frames);
        if state == DatagramState::Arriving || source.tracker().is_ended() {
            return;
        }
        let Some((session, By::Udp(source))) = self.leave_route() else { return };
        if state == DatagramState::Lost {
            self.unreachable = Some(session.clone());
        }
        let (tracker, description) = (source.tracker().onward(), source.description().cloned());
        self.onward = Some((session, Onward { tracker, description }));
    }

    /// Whether the producer is no longer announced, and another is.
    fn is_replaced(&self) -> bool {
        let Some(current) = &self.current else { return false };
        let streams = self.watch.streams();
        !streams.is_empty() && streams.iter().all(|(session, _)| *session != current.session)
    }

    fn check_idle(&self) -> Result<(), Error> {
        match self.reading.idle_timeout {
            Some(timeout) if self.waits_since.elapsed() >= timeout => Err(Error::Idle { timeout }),
            _ => Ok(()),
        }
    }

    /// Reports once that sent frames do not arrive: access control drops messages silently.
    fn doubt(&mut self, ctx: &Context) -> Result<(), Error> {
        let Some(Current { session, by: By::Zenoh(source), silence, .. }) = &mut self.current else {
            return Ok(());
        };
        let Some(silent) = silence.as_mut().filter(|silent| Instant::now() >= silent.look_at) else {
            return Ok(());
        };
        if source.has_heard() {
            *silence = None;
            return Ok(());
        }
        if !silent.is_due {
            let found = ctx.waiting(|| self.lab.what(session, &self.from.name, ANSWERS_WITHIN))?;
            let sent = found.map_or(0, |found| found.what.messages);
            silent.is_due = silent.sent.replace(sent).is_some_and(|before| sent > before);
            silent.look_at = Instant::now() + DOUBTED_EVERY;
        } else if source.is_drained() {
            *silence = None;
            let (name, reach) = (self.from.name.to_string(), self.lab.reach().to_owned());
            ctx.note(Notice::NothingComes { name, reach }.to_string());
        }
        Ok(())
    }

    /// Waits for a producer.
    fn wait(&mut self, ctx: &Context) -> Result<(), Error> {
        let is_news = ctx.waiting(|| self.watch.wait(self.known, CHECK_EVERY));
        if !is_news && self.retry_at.is_none_or(|at| Instant::now() < at) {
            return self.check_idle();
        }
        self.known = self.watch.changes();
        let found = ctx.waiting(|| self.find());
        // A producer may not answer in time, or by no route that works now.
        let is_there = self.watch.streams().iter().any(|(session, _)| Some(session) != self.gone.as_ref());
        self.retry_at = is_there.then(|| Instant::now() + REPEAT_EVERY);
        match found {
            Ok(Some(notice)) => {
                self.retry_at = None;
                ctx.note(notice.to_string());
                Ok(())
            }
            // The route may differ when it returns.
            Ok(None) | Err(Error::Name { .. }) => self.check_idle(),
            Err(error) => Err(error),
        }
    }
}

impl Stage for NamedSource {
    fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        if self.current.is_some() && self.watch.changes() != self.known && self.is_replaced() {
            let is_drained = self.current.as_ref().is_none_or(|current| current.by.is_drained());
            if is_drained {
                self.leave();
            }
        }
        self.check_datagrams();
        self.doubt(ctx)?;
        let Some(current) = &mut self.current else {
            self.wait(ctx)?;
            return Ok(Outcome::Produced);
        };
        let outcome = current.by.stage().process(input, output, ctx);
        self.counters.follow(current.by.counters(), false);
        match outcome {
            Ok(Outcome::End) if current.by.goes_on_listening(self.reading.listens_on) => {
                self.leave();
                Ok(Outcome::Produced)
            }
            Err(error) if is_producer_gone(error.as_ref()) => {
                self.leave();
                Ok(Outcome::Produced)
            }
            outcome => outcome,
        }
    }

    fn finish(&mut self, output: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        if let Some(current) = &mut self.current {
            current.by.stage().finish(output, ctx)?;
            self.counters.follow(current.by.counters(), true);
        }
        Ok(())
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.shown.shared())
    }
}

impl By {
    fn stage(&mut self) -> &mut dyn Stage {
        match self {
            By::Shm(source) => &mut **source,
            By::Udp(source) => &mut **source,
            By::Zenoh(source) => &mut **source,
        }
    }

    fn counters(&self) -> Option<Counters> {
        match self {
            By::Shm(source) => source.counters(),
            By::Udp(source) => source.counters(),
            By::Zenoh(source) => source.counters(),
        }
    }

    fn left_samples(&self) -> Option<u64> {
        match self {
            By::Shm(source) => source.left_samples(),
            By::Udp(source) => source.left_samples(),
            By::Zenoh(source) => source.left_samples(),
        }
    }

    fn is_drained(&self) -> bool {
        match self {
            // The closed connection shows it.
            By::Shm(_) => false,
            By::Udp(_) => true,
            By::Zenoh(source) => source.is_drained(),
        }
    }

    /// Whether the next stream needs a new search. Other routes continue by themselves.
    fn goes_on_listening(&self, listens_on: bool) -> bool {
        listens_on && matches!(self, By::Shm(_)) && self.left_samples() != Some(0)
    }
}

fn is_producer_gone(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(ShmError::ProducerGone { .. }))
}

/// Sums the counters of all routes used so far.
struct Mirror {
    shown: ArrivalCounters,
    kept: Vec<u64>,
    now: Vec<u64>,
    at: Option<Instant>,
    last: Option<Counters>,
}

impl Mirror {
    fn new() -> Self {
        let shown = ArrivalCounters::default();
        let zeros = vec![0; shown.shared().iter().count()];
        Self { shown, kept: zeros.clone(), now: zeros, at: None, last: None }
    }

    /// Copies the counters of the route, at intervals.
    fn follow(&mut self, counters: Option<Counters>, is_last: bool) {
        if !is_last && self.at.is_some_and(|at| at.elapsed() < MIRROR_EVERY) {
            return;
        }
        self.at = Some(Instant::now());
        self.last = counters;
        let Some(counters) = &self.last else { return };
        let shown = self.shown.shared();
        for (position, (name, value)) in counters.iter().enumerate() {
            self.now[position] = value;
            shown.set(position, combined(name, self.kept[position], value));
        }
    }

    /// Keeps the counts of a closed route.
    fn keep(&mut self) {
        let last = self.last.take();
        self.follow(last, true);
        let names = self.shown.shared();
        for ((name, _), (kept, now)) in names.iter().zip(self.kept.iter_mut().zip(&mut self.now)) {
            *kept = combined(name, *kept, std::mem::take(now));
        }
        (self.last, self.at) = (None, None);
    }
}

/// Adds the counts of earlier routes to the present one's.
fn combined(name: &str, kept: u64, now: u64) -> u64 {
    match name {
        // The drops of earlier routes are known.
        "kernel_drops_known" => kept.max(now),
        // A state, not a count.
        "clock_error_ns" => now,
        _ => kept + now,
    }
}

/// Time until existing announcements arrive.
const SETTLE: Duration = Duration::from_millis(100);
const CHECK_EVERY: Duration = Duration::from_millis(100);
const REPEAT_EVERY: Duration = Duration::from_secs(1);
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);
/// Frames arrive within this time, unless a filter drops them.
const DOUBTED_AFTER: Duration = Duration::from_secs(3);
const DOUBTED_EVERY: Duration = Duration::from_secs(1);
const MIRROR_EVERY: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_continue_across_routes_and_states_are_of_the_present_route() {
        let mut mirror = Mirror::new();
        let mut take = |drops: Option<u64>, foreign: u64, error_ns: Option<u64>| {
            let route = ArrivalCounters::default();
            route.publish_kernel_drops(drops);
            route.publish_socket(foreign, 0);
            route.publish_clock(error_ns);
            mirror.follow(Some(route.shared()), true);
            let shown = mirror.shown.shared();
            mirror.keep();
            ["kernel_drops", "kernel_drops_known", "foreign_datagrams", "clock_error_ns"]
                .map(|name| shown.get(name).unwrap())
        };
        assert_eq!(take(Some(3), 5, Some(70_000)), [3, 1, 5, 70_000]);
        assert_eq!(take(Some(4), 1, Some(50_000)), [7, 1, 6, 50_000], "no sum of both errors");
        assert_eq!(take(None, 0, None), [7, 1, 6, 0], "nobody measures it by this way");
    }
}
