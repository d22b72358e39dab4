//! Meeting at a relay, around a session's socket: the other end's addresses before the session, and a route that is left while it lasts.
//!
//! A route is an address, whether it leads directly or through the relay: sessions send to one, and do not know which it is.

use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};

use grebe_datagram::own_addresses;
use grebe_packet::{Address, Purpose, Ticket};
use grebe_relay::{Meeting, Side, Standing, Via};

use super::relay_by_tcp::RelayByTcp;
use super::{Notice, Notify, WhyRelayed};
use crate::error::{Error, Result};

/// One end's part of a meeting.
pub(super) struct Rendezvous {
    meeting: Meeting,
    relay: Address,
    /// Its addresses, and that of the session's socket.
    found: Vec<SocketAddr>,
    local: SocketAddr,
    /// Where the relay may be reached by TCP: that it is, once nothing else was answered.
    by_tcp: ByTcp,
    via: Via,
    start: Instant,
    notify: Notify,
    /// What was told of the relay.
    told: Option<Standing>,
    route: Option<SocketAddr>,
}

/// Whether the relay is reached by TCP.
enum ByTcp {
    /// It is not to be: there is another route, or it cannot be.
    Never,
    /// It was not tried.
    Untried,
    Tried(RelayByTcp),
}

impl Rendezvous {
    /// For a ticket that names a relay; `None` for one that does not.
    ///
    /// # Errors
    /// [`Error::Relay`] where the relay's name cannot be found and the ticket has no other address; [`Error::Keys`].
    pub(super) fn start(
        ticket: &Ticket,
        side: Side,
        via: Via,
        socket: &UdpSocket,
        notify: &Notify,
    ) -> Result<Option<Self>> {
        let Some(relay) = ticket.relay.clone() else { return Ok(None) };
        let failed = |source| grebe_datagram::Error::Receive { source };
        let local = socket.local_addr().map_err(failed)?;
        let found: Vec<SocketAddr> = match relay.to_socket_addrs() {
            Ok(found) => found.take(RELAYS_MAX).collect(),
            Err(_) if !ticket.addresses.is_empty() && side == Side::Asks && via != Via::Relay => Vec::new(),
            Err(error) => {
                return Err(Error::Relay { relay, why: format!("its name is not found ({error})") });
            }
        };
        // A copy by ssh has that.
        let by_tcp = if ticket.purpose == Purpose::Transfer { ByTcp::Untried } else { ByTcp::Never };
        let own = own_addresses(local);
        let meeting = Meeting::new(&ticket.key, side, via, local, own, &found)?;
        let (notify, start) = (notify.clone(), Instant::now());
        Ok(Some(Self { meeting, relay, found, local, by_tcp, via, start, notify, told: None, route: None }))
    }

    /// Sends what is due.
    pub(super) fn turn(&mut self, socket: &UdpSocket) {
        let now_us = self.now_us();
        self.turn_to_tcp(now_us);
        while let Some((to, message)) = self.meeting.poll(now_us) {
            // An address that cannot be reached is one that does not answer.
            let _ = socket.send_to(&message, to);
        }
        let standing = self.meeting.standing();
        let is_news = self.told != Some(standing);
        let is_first = matches!(self.told, None | Some(Standing::Unheard));
        if is_first && matches!(standing, Standing::Alone | Standing::Together) && self.is_by_tcp() {
            (self.notify)(Notice::RelayOverTcp { relay: self.relay.clone() });
        }
        match standing {
            Standing::Unheard if self.told.is_none() && self.start.elapsed() > UNANSWERED => {
                (self.notify)(Notice::NoRelayYet { relay: self.relay.clone() });
                self.told = Some(standing);
            }
            Standing::Refused(reason) if is_news => {
                (self.notify)(Notice::RelayRefuses { relay: self.relay.clone(), reason });
                self.told = Some(standing);
            }
            Standing::Alone | Standing::Together => self.told = Some(standing),
            Standing::Unheard | Standing::Refused(_) => {}
        }
    }

    /// Where no answer comes by UDP, from any address of the relay, TCP is one more.
    fn turn_to_tcp(&mut self, now_us: u64) {
        if !matches!(self.by_tcp, ByTcp::Untried) || self.meeting.unanswered_us(now_us) < UDP_ALONE_US {
            return;
        }
        self.by_tcp = match RelayByTcp::start(self.found.clone(), self.local) {
            Ok(by_tcp) => {
                self.meeting.add_relay(now_us, by_tcp.address());
                ByTcp::Tried(by_tcp)
            }
            Err(_) => ByTcp::Never,
        };
    }

    fn is_by_tcp(&self) -> bool {
        let ByTcp::Tried(by_tcp) = &self.by_tcp else { return false };
        self.meeting.in_use().is_some_and(|relay| grebe_relay::canonical(relay) == by_tcp.address())
    }

    /// An address as people know it.
    pub(super) fn known_as(&self, route: SocketAddr) -> SocketAddr {
        let route = grebe_relay::canonical(route);
        match (&self.by_tcp, self.found.first()) {
            (ByTcp::Tried(by_tcp), Some(relay)) if by_tcp.address() == route => *relay,
            _ => route,
        }
    }

    /// Takes what came and is not the session's; how many bytes of it are no longer to be looked at.
    pub(super) fn take(&mut self, from: SocketAddr, bytes: &[u8]) -> usize {
        let now_us = self.now_us();
        self.meeting.take(now_us, from, bytes)
    }

    /// The addresses to ask at now: direct ones, and the relay's when those have had their time.
    pub(super) fn routes(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.meeting.direct().chain(self.meeting.relayed(self.now_us()))
    }

    /// An address that somebody with the ticket has shown.
    pub(super) fn next_knock(&mut self) -> Option<SocketAddr> {
        self.meeting.next_knock()
    }

    /// An address as the socket says it.
    pub(super) fn as_sent(&self, address: SocketAddr) -> Option<SocketAddr> {
        self.meeting.as_sent(address)
    }

    /// Whether what comes from there may be the other end's.
    pub(super) fn is_wanted(&self, from: SocketAddr) -> bool {
        self.meeting.is_wanted(from)
    }

    /// The session goes by this route from now on.
    pub(super) fn settle(&mut self, peer: SocketAddr) {
        self.meeting.settle();
        let is_relayed = |route| Some(route) == self.meeting.relay();
        let is_new = self.route.is_none_or(|before| is_relayed(before) != is_relayed(peer));
        if is_new {
            (self.notify)(if is_relayed(peer) {
                let why = match (self.via, self.route) {
                    (Via::Relay, _) => WhyRelayed::Chosen,
                    (_, None) => WhyRelayed::NoDirectWay,
                    (_, Some(_)) => WhyRelayed::DirectWayDied,
                };
                Notice::Relayed { relay: self.relay.clone(), why }
            } else {
                let through = self.meeting.through(peer);
                Notice::Direct { peer: grebe_relay::canonical(peer), through }
            });
        }
        self.route = Some(peer);
    }

    /// Nothing was heard of the other end for so long; the route that is left, where `peer` is another one.
    pub(super) fn route_after_silence(&mut self, silent: Duration, peer: SocketAddr) -> Option<SocketAddr> {
        if silent < HURRY {
            return None;
        }
        let now_us = self.now_us();
        self.meeting.on_silence(now_us);
        let is_joined = self.meeting.standing() == Standing::Together;
        self.meeting.relay().filter(|relay| is_joined && *relay != peer && silent > SILENT)
    }

    /// Whether a route is the relayed one.
    pub(super) fn is_relay(&self, from: SocketAddr) -> bool {
        self.meeting.relay() == Some(from)
    }

    /// Why the ends did not find each other.
    pub(super) fn failure(&self) -> Error {
        let why = match self.meeting.standing() {
            Standing::Unheard => {
                "it does not answer: is it running, and does UDP or TCP reach it from here?".to_owned()
            }
            Standing::Alone => {
                "the other side is not there: is it still waiting, and does it reach the relay from there?"
                    .to_owned()
            }
            Standing::Together => {
                "the other side is there, and no route between lets its answer through".to_owned()
            }
            Standing::Refused(reason) => super::words_of_refusal(reason).to_owned(),
        };
        Error::Relay { relay: self.relay.clone(), why }
    }

    /// Passes on how a search for the other end came out; where that failed, the relay need not keep the place.
    pub(super) fn leave_on_failure<T>(
        meeting: &mut Option<Self>,
        socket: &UdpSocket,
        found: Result<T>,
    ) -> Result<T> {
        if let (Err(_), Some(meeting)) = (&found, meeting) {
            meeting.leave(socket);
        }
        found
    }

    /// The relay need not keep the place any longer.
    pub(super) fn leave(&mut self, socket: &UdpSocket) {
        let now_us = self.now_us();
        if let Some((to, message)) = self.meeting.leave(now_us) {
            let _ = socket.send_to(&message, to);
        }
    }

    fn now_us(&self) -> u64 {
        self.start.elapsed().as_micros() as u64
    }
}

/// Addresses of the relay that are tried.
const RELAYS_MAX: usize = 4;

/// For so long the relay is asked by UDP alone.
const UDP_ALONE_US: u64 = 1_000_000;

/// After so long without an answer of the relay the user is told.
const UNANSWERED: Duration = Duration::from_secs(2);

/// After so long without a word of the other end the relay is asked whether it still knows this one.
const HURRY: Duration = Duration::from_millis(1_500);

/// After so long the direct route counts as dead. Shorter than the time after which TCP is dialled.
const SILENT: Duration = Duration::from_secs(3);
