//! The routes by which this host can read a stream, best first.

use std::sync::Arc;
use std::time::Duration;

use grebe_frame::{Description, StreamTracker};
use grebe_zenoh::{Found, Lab, What};

use crate::bridges::shm::ShmName;
use crate::bridges::udp::{UdpSource, UdpStream};
use crate::bridges::zenoh::uri::{Route, ZenohKey};
use crate::error::Error;
use crate::open::Transport;
use crate::scheme::Scheme;
use crate::transport::HostPort;

/// The URI by which readers open a stream with this sink. `None`: no reader can.
pub(super) fn uri_for_readers(sink: &str) -> Option<String> {
    let shm = || <ShmName as Scheme>::parse(sink)?.ok()?.uri_for_readers();
    let udp = || <UdpStream as Scheme>::parse(sink)?.ok()?.uri_for_readers();
    let zenoh = || <ZenohKey as Scheme>::parse(sink)?.ok()?.uri_for_readers();
    shm().or_else(udp).or_else(zenoh)
}

/// A possible route.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Candidate {
    /// A stream in shared memory.
    Shm(String),
    /// Datagrams to a multicast group, or to this host.
    Udp(HostPort),
    /// Datagrams on request. `is_near`: no router in between.
    OnRequest { is_near: bool },
    /// A key.
    Zenoh(String),
}

impl Candidate {
    /// Possible routes, best first: shared memory, datagrams, Zenoh.
    pub(super) fn of(found: &Found, forced: Option<Route>) -> Vec<Self> {
        let mut all: Vec<Self> = found.what.routes.iter().filter_map(|route| Self::parse(route)).collect();
        // Only on request: datagrams would fill a slow remote link and harm all other traffic.
        let is_wanted = forced == Some(Route::Udp);
        if found.what.udp_on_request && (is_wanted || !found.what.is_on_this_network()) {
            all.push(Self::OnRequest { is_near: !is_wanted });
        }
        all.retain(|candidate| forced.is_none_or(|route| candidate.route() == route));
        all.retain(|candidate| match candidate {
            Self::Shm(_) => found.what.is_here(),
            // Sent to the host's own loopback address, so it does not arrive here.
            Self::Udp(to) => found.what.is_here() || !is_loopback(to),
            Self::OnRequest { .. } | Self::Zenoh(_) => true,
        });
        all.sort_by_key(Self::route);
        all
    }

    fn parse(route: &str) -> Option<Self> {
        let shm = || Some(Self::Shm(<ShmName as Scheme>::parse(route)?.ok()?.name));
        let udp = || Some(Self::Udp(<UdpStream as Scheme>::parse(route)?.ok()?.at));
        let zenoh = || Some(Self::Zenoh(<ZenohKey as Scheme>::parse(route)?.ok()?.key));
        shm().or_else(udp).or_else(zenoh)
    }

    pub(super) fn route(&self) -> Route {
        match self {
            Self::Shm(_) => Route::Shm,
            Self::Udp(_) | Self::OnRequest { .. } => Route::Udp,
            Self::Zenoh(_) => Route::Zenoh,
        }
    }

    /// The URI of the route, or a description.
    pub(super) fn uri(&self) -> String {
        match self {
            Self::Shm(name) => format!("shm://{name}"),
            Self::Udp(at) => format!("udp://{at}"),
            Self::OnRequest { .. } => What::UDP_ON_REQUEST.to_owned(),
            Self::Zenoh(key) => format!("zenoh://{key}"),
        }
    }
}

/// Position of a stream that continues by another route.
#[derive(Debug, Clone)]
pub(super) struct Onward {
    pub(super) tracker: StreamTracker,
    pub(super) description: Option<Arc<Description>>,
}

/// Listens for datagrams sent here anyway. `None` if none arrive. The first that arrives is the stream's first.
pub(super) fn listen(at: &HostPort, transport: &Transport) -> Result<Option<UdpSource>, Error> {
    let (address, options) = (at.to_send()?, transport.socket_options(at)?);
    // The address of another host, or a port in use here.
    let Ok(source) = UdpSource::bind(address, &options) else { return Ok(None) };
    Ok(source.hears_within(WITHIN).then_some(source))
}

fn is_loopback(to: &HostPort) -> bool {
    to.to_send().is_ok_and(|address| address.ip().is_loopback())
}

/// The URI of the key under which every announced stream is sent.
pub(super) fn own_route(lab: &Lab, name: &grebe_zenoh::StreamName) -> String {
    format!("zenoh://{}", lab.data_key(name))
}

/// Streams have a frame every 10 ms. Slower ones use Zenoh.
pub(super) const WITHIN: Duration = Duration::from_millis(400);

#[cfg(test)]
mod tests {
    use super::*;

    fn found(boot: String, routes: &[&str]) -> Found {
        let routes = routes.iter().map(|&route| route.to_owned()).collect();
        Found {
            session: "a1".to_owned(),
            name: "lab/adc".parse().unwrap(),
            what: What { boot, routes, ..What::default() },
        }
    }

    #[test]
    fn memory_is_better_than_datagrams_and_those_than_zenoh() {
        let routes = [
            "zenoh://grebe/data/a1/lab/adc",
            "udp://239.1.2.3:5000",
            "shm://adc",
            "udp://127.0.0.1:5000",
            "horse:",
        ];
        let uris = |found: &Found, forced| -> Vec<String> {
            Candidate::of(found, forced).iter().map(Candidate::uri).collect()
        };
        let elsewhere = found("another".to_owned(), &routes);
        assert_eq!(uris(&elsewhere, None), ["udp://239.1.2.3:5000", "zenoh://grebe/data/a1/lab/adc"]);
        assert_eq!(uris(&elsewhere, Some(Route::Shm)), [""; 0]);
        let boot = grebe_zenoh::boot_id();
        if !boot.is_empty() {
            let here = found(boot, &routes);
            assert_eq!(uris(&here, None)[0], "shm://adc");
            assert_eq!(uris(&here, None).len(), 4);
            assert_eq!(uris(&here, Some(Route::Zenoh)), ["zenoh://grebe/data/a1/lab/adc"]);
        }
    }

    #[test]
    fn datagrams_are_requested_across_networks_or_on_demand() {
        let routes = ["shm://adc", "udp://239.1.2.3:5000", "zenoh://grebe/data/a1/lab/adc"];
        let elsewhere = found("another".to_owned(), &routes);
        let of = |what: What, forced| {
            let found = Found { what, ..elsewhere.clone() };
            Candidate::of(&found, forced)
                .into_iter()
                .filter(|it| it.route() == Route::Udp)
                .collect::<Vec<_>>()
        };
        let group = Candidate::Udp(HostPort::new("239.1.2.3", 5000));
        assert_eq!(of(elsewhere.what.clone(), None), [group], "its producer does not send to who asks");
        let what = What { udp_on_request: true, ..elsewhere.what.clone() };
        assert_eq!(of(what.clone(), None)[1..], [Candidate::OnRequest { is_near: true }], "behind the group");
        assert_eq!(of(what.clone(), Some(Route::Udp))[1..], [Candidate::OnRequest { is_near: false }]);
        assert_eq!(of(what.clone(), Some(Route::Zenoh)), []);
        let here = What { udp_on_request: true, routes: Vec::new(), ..What::of_this_process("sg") };
        assert_eq!(of(here.clone(), None), [], "there are better ways within a host");
        assert_eq!(of(here, Some(Route::Udp)), [Candidate::OnRequest { is_near: false }]);
    }

    #[test]
    fn datagrams_are_a_way_where_they_come_and_the_first_is_not_taken_from_the_stream() {
        let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let at = HostPort::new("127.0.0.1", free.port());
        assert!(listen(&at, &Transport::default()).unwrap().is_none(), "nothing comes");
        let sending = std::thread::spawn(move || {
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            for _ in 0..400 {
                let _ = socket.send_to(b"x", free);
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let source = (0..10).find_map(|_| listen(&at, &Transport::default()).unwrap()).unwrap();
        assert_eq!(source.local_addr().unwrap(), free);
        sending.join().unwrap();
        assert!(source.hears_within(Duration::ZERO), "what came waits");
    }
}
