//! Measures the clock of a stream's remote host, and adds the relation to the stream's description.

use std::net::SocketAddr;
use std::sync::Arc;

use grebe_clock::{ClockClient, Relation};
use grebe_flow::{UtcClock, clock_id, monotonic_ns};
use grebe_frame::{AxisTime, ClockReading, Description, MeasuredClock};
use grebe_process::stream::is_same;

use crate::clock_port::host_clock;

/// Clock relation of one stream. Costs two comparisons per batch without news.
#[derive(Debug, Default)]
pub struct RemoteClock {
    /// Description by the sender, and the one with the relation.
    descriptions: Option<[Arc<Description>; 2]>,
    client: Option<ClockClient>,
    /// Version of the relation in the description.
    version: u64,
}

impl RemoteClock {
    /// Description of a stream, as its sender at that address gives it, with the relation of its clock to
    /// this host's once known.
    #[inline]
    pub fn described(
        &mut self,
        description: Option<&Arc<Description>>,
        sender: Option<SocketAddr>,
    ) -> Option<&Arc<Description>> {
        let is_known = is_same(self.descriptions.as_ref().map(|[known, _]| known), description);
        if !is_known || self.client.as_ref().is_some_and(|client| client.version() != self.version) {
            self.update(description, sender);
        }
        self.descriptions.as_ref().map(|[_, related]| related)
    }

    /// Uncertainty of the stream's times by this host's clock, in nanoseconds; `None` if it is not measured.
    pub fn error_ns(&self) -> Option<u64> {
        let [_, related] = self.descriptions.as_ref()?;
        Some(related.measured.filter(|measured| measured.axis.clock == clock_id())?.axis.error_ns)
    }

    #[cold]
    fn update(&mut self, description: Option<&Arc<Description>>, sender: Option<SocketAddr>) {
        let peer = description.zip(sender).and_then(|(description, sender)| peer(description, sender));
        if self.client.as_ref().map(ClockClient::peer) != peer {
            // Without a socket or thread, nothing is measured, and everything else continues.
            self.client = peer.and_then(|peer| ClockClient::start(peer, host_clock()).ok());
        }
        self.version = self.client.as_ref().map_or(0, ClockClient::version);
        self.descriptions = description.map(|description| [description.clone(), self.related(description)]);
    }

    fn related(&self, description: &Arc<Description>) -> Arc<Description> {
        let Some(clock) = description.axis_clock().filter(|clock| *clock != clock_id()) else {
            return match description.clock_port {
                // Useless for later stages.
                Some(_) => Arc::new(Description { clock_port: None, ..(**description).clone() }),
                None => description.clone(),
            };
        };
        let by_exchange = self.client.as_ref().and_then(|client| client.relation_to(clock));
        let ours = UtcClock::default().renewed(monotonic_ns());
        let by_utc = description.clock.filter(|_| description.measured.is_none()).zip(ours).and_then(by_utc);
        let surest = [by_exchange, by_utc].into_iter().flatten().min_by_key(|relation| relation.error_ns);
        let measured = surest.map(|relation| measured(description, clock, &relation, ours));
        match (measured, description.clock_port) {
            (None, None) => description.clone(),
            (measured, _) => Arc::new(Description {
                clock_port: None,
                measured: measured.or(description.measured),
                ..(**description).clone()
            }),
        }
    }
}

/// Query address of the sender's clock, if it differs from ours.
fn peer(description: &Description, sender: SocketAddr) -> Option<SocketAddr> {
    let clock_port = description.clock_port.filter(|port| *port > 0)?;
    let is_other = description.axis_clock().is_some_and(|clock| clock != clock_id());
    is_other.then(|| {
        let mut peer = sender;
        peer.set_port(clock_port);
        peer
    })
}

/// Relation of two clocks whose kernels know their error against UTC.
fn by_utc((theirs, ours): (ClockReading, ClockReading)) -> Option<Relation> {
    let error_ns = theirs.error_ns?.saturating_add(ours.error_ns?);
    let ahead_of_utc =
        |reading: ClockReading| i128::from(reading.producer_ts_ns) - i128::from(reading.unix_time_ns);
    let offset_ns = i64::try_from(ahead_of_utc(theirs) - ahead_of_utc(ours)).ok()?;
    Some(Relation { at_ns: ours.producer_ts_ns, offset_ns, error_ns, drift_ppb: 0, drift_error_ppb: 0 })
}

/// Relation of the stream's stamps to our clock, if the stamps of `clock`, which its times refer to, have
/// this relation. `ours` relates our clock to UTC, unless the sender knows better.
fn measured(
    description: &Description,
    clock: u64,
    relation: &Relation,
    ours: Option<ClockReading>,
) -> MeasuredClock {
    // Stamps refer to that clock itself, unless a host between has measured another one by it.
    let own = MeasuredClock {
        producer_ts_ns: 0,
        axis: AxisTime { clock, ns: 0, error_ns: 0, drift_ppb: 0, drift_error_ppb: 0 },
        unix_time_ns: None,
        unix_error_ns: None,
    };
    let between = description.measured.unwrap_or(own);
    let theirs_ns = i128::from(relation.at_ns) + i128::from(relation.offset_ns);
    let producer_ts_ns = between.producer_ts_at(theirs_ns as i64);
    let then = between.axis_time(producer_ts_ns);
    let axis = AxisTime {
        clock: clock_id(),
        ns: relation.at_ns as i64,
        error_ns: then.error_ns.saturating_add(relation.error_ns),
        drift_ppb: then.drift_ppb.saturating_add(relation.drift_ppb),
        drift_error_ppb: then.drift_error_ppb.saturating_add(relation.drift_error_ppb),
    };
    let ours_error_ns =
        ours.and_then(|ours| ours.error_ns).map(|error_ns| error_ns.saturating_add(axis.error_ns));
    let is_theirs_better =
        description.time_error_ns().is_some_and(|theirs| ours_error_ns.is_none_or(|ours| theirs <= ours));
    let (unix_time_ns, unix_error_ns) = match ours {
        Some(ours) if !is_theirs_better => {
            let since_ns = i128::from(relation.at_ns) - i128::from(ours.producer_ts_ns);
            (i64::try_from(i128::from(ours.unix_time_ns) + since_ns).ok(), ours_error_ns)
        }
        _ => (between.unix_at(producer_ts_ns), between.unix_error_ns),
    };
    MeasuredClock { producer_ts_ns, axis, unix_time_ns, unix_error_ns }
}

#[cfg(test)]
mod tests;
