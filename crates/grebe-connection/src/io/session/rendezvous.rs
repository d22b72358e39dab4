//! Meeting at a relay on a session's socket: finds the other end's addresses before the session, and keeps a
//! fallback route during it.
//!
//! A route is an address, direct or through the relay. A session sends to one and does not know which it is.

use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};

use grebe_datagram::own_addresses;
use grebe_packet::{Address, Purpose, Ticket};
use grebe_relay::{Meeting, Side, Standing, Via};

use super::relay_by_tcp::RelayByTcp;
use super::{Notice, Notify, WhyRelayed};
use crate::error::{Error, Result};

/// One end of a meeting.
pub(super) struct Rendezvous {
    meeting: Meeting,
    relay: Address,
    /// Addresses of the relay, and of the session's socket.
    found: Vec<SocketAddr>,
    local: SocketAddr,
    /// State of the relay over TCP.
    by_tcp: ByTcp,
    via: Via,
    start: Instant,
    notify: Notify,
    /// The last reported standing of the relay.
    told: Option<Standing>,
    route: Option<SocketAddr>,
}

/// State of the relay over TCP.
enum ByTcp {
    /// Not wanted, because another route works, or not possible.
    Never,
    /// Not tried yet.
    Untried,
    Tried(RelayByTcp),
}

impl Rendezvous {
    /// Starts a meeting if the ticket names a relay; otherwise returns `None`.
    ///
    /// # Errors
    /// [`Error::Relay`] if the relay's name cannot be resolved and the ticket has no other address;
    /// [`Error::Keys`].
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
        // A copy over ssh can fall back to ssh; a transfer cannot.
        let by_tcp = if ticket.purpose == Purpose::Transfer { ByTcp::Untried } else { ByTcp::Never };
        let own = own_addresses(local);
        let meeting = Meeting::new(&ticket.key, side, via, local, own, &found)?;
        let (notify, start) = (notify.clone(), Instant::now());
        Ok(Some(Self { meeting, relay, found, local, by_tcp, via, start, notify, told: None, route: None }))
    }

    /// Sends the messages that are due.
    pub(super) fn turn(&mut self, socket: &UdpSocket) {
        let now_us = self.now_us();
        self.turn_to_tcp(now_us);
        while let Some((to, message)) = self.meeting.poll(now_us) {
            // An unreachable address simply does not answer.
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

    /// Adds TCP as one more address if no address of the relay answers by UDP.
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

    /// Address of a route for display.
    pub(super) fn known_as(&self, route: SocketAddr) -> SocketAddr {
        let route = grebe_relay::canonical(route);
        match (&self.by_tcp, self.found.first()) {
            (ByTcp::Tried(by_tcp), Some(relay)) if by_tcp.address() == route => *relay,
            _ => route,
        }
    }

    /// Takes data that is not the session's. Returns the number of bytes that the session must skip.
    pub(super) fn take(&mut self, from: SocketAddr, bytes: &[u8]) -> usize {
        let now_us = self.now_us();
        self.meeting.take(now_us, from, bytes)
    }

    /// Addresses to ask now: direct ones first, then the relay's.
    pub(super) fn routes(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.meeting.direct().chain(self.meeting.relayed(self.now_us()))
    }

    /// Address that a holder of the ticket has announced.
    pub(super) fn next_knock(&mut self) -> Option<SocketAddr> {
        self.meeting.next_knock()
    }

    /// Address in the socket's own family.
    pub(super) fn as_sent(&self, address: SocketAddr) -> Option<SocketAddr> {
        self.meeting.as_sent(address)
    }

    /// Whether packets from this address may be the other end's.
    pub(super) fn is_wanted(&self, from: SocketAddr) -> bool {
        self.meeting.is_wanted(from)
    }

    /// Notes that the session uses this route from now on.
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

    /// Remaining route after the other end was silent for `silent`, if `peer` is not that route already.
    pub(super) fn route_after_silence(&mut self, silent: Duration, peer: SocketAddr) -> Option<SocketAddr> {
        if silent < HURRY {
            return None;
        }
        let now_us = self.now_us();
        self.meeting.on_silence(now_us);
        let is_joined = self.meeting.standing() == Standing::Together;
        self.meeting.relay().filter(|relay| is_joined && *relay != peer && silent > SILENT)
    }

    /// Whether a route leads through the relay.
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
            Standing::Together => "the other side answers, but no route delivers its answer".to_owned(),
            Standing::Refused(reason) => super::words_of_refusal(reason).to_owned(),
        };
        Error::Relay { relay: self.relay.clone(), why }
    }

    /// Passes on the result of a search. After a failure, frees the place at the relay.
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

    /// Frees the place at the relay.
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

/// Maximum addresses of the relay to try.
const RELAYS_MAX: usize = 4;

/// Head start of UDP to the relay.
const UDP_ALONE_US: u64 = 1_000_000;

/// Time without an answer of the relay before a notice.
const UNANSWERED: Duration = Duration::from_secs(2);

/// Silence of the other end after which to ask the relay whether it still knows this end.
const HURRY: Duration = Duration::from_millis(1_500);

/// Silence after which the direct route counts as dead. Shorter than the wait before TCP is dialled.
const SILENT: Duration = Duration::from_secs(3);
