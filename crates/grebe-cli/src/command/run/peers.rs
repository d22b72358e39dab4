//! Direct connections of one host with other hosts of the graph.
//!
//! ```text
//!  the coordinator                       this host                          the peer, at the same time
//!    Meet           ==>                   listens at a port                  listens at a port
//!                   <== Ticket            its key and addresses
//!    Reach          ==>                   goes to the peer by its ticket     comes here by this one's
//!                   <== Met               it has reached the peer, or was reached
//!    Join, or Part  ==>                   goes on with one connection        with the same one: the rest is closed
//! ```
//!
//! This happens at the start and, for links that are kept, after each restart of a peer and each break. A link can
//! always go through the coordinator; `Join` moves it to a direct connection, and the next `Meet` moves it back. The
//! coordinator handles the loss of a peer: this host reports breaks and silence ([`ToCoordinator::Broke`],
//! [`ToCoordinator::Hears`]), and continues until it receives orders ([`ToHost::Away`], [`ToHost::Lost`],
//! [`ToHost::Meet`]).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use grebe_connection::{ConnectionListener, Purpose, Ticket, connect, listen_anywhere};
use grebe_link::edge::{LinkRoute, Outbox};
use grebe_remote::{Channel, Route, Terms};

use super::lines::{FILL_BYTES_MAX, ToCoordinator, ToHost, filler, words};
use super::links::Ends;
use super::peer_connection::{Attempt, ConnectionId, PeerConnection};

/// Other hosts with which this one may connect directly.
pub(super) struct Peers {
    /// Messages to the coordinator.
    outbox: Arc<Outbox>,
    /// Route of each link of this host.
    leads: BTreeMap<u16, Arc<LinkRoute>>,
    /// Ends of streams are held back while this part may restart.
    holds_ends: bool,
    /// This host only sends what is queued.
    is_finishing: bool,
    meetings: BTreeMap<u16, Meeting>,
    joined: BTreeMap<u16, PeerConnection>,
}

/// Peer to which a connection is attempted.
struct Meeting {
    round: u32,
    terms: Terms,
    /// It is expected at the named port.
    holds_port: bool,
    /// Attempts of this host to connect, and to be connected to.
    ours: Option<Attempt>,
    theirs: Option<Attempt>,
}

impl Peers {
    pub(super) fn new(outbox: Arc<Outbox>, ends: &Ends, holds_ends: bool) -> Self {
        let leads = ends.links().map(|link| (link, Arc::new(LinkRoute::new(link, outbox.clone())))).collect();
        Self {
            outbox,
            leads,
            holds_ends,
            is_finishing: false,
            meetings: BTreeMap::new(),
            joined: BTreeMap::new(),
        }
    }

    /// Handles a message about a peer; returns whether it was one.
    pub(super) fn handle(&mut self, said: &ToHost, ends: &Ends) -> bool {
        match said {
            ToHost::Meet { peer, round, terms, port } => self.meet(*peer, *round, *terms, *port),
            ToHost::Reach { peer, round, ticket } => self.reach(*peer, *round, ticket),
            ToHost::Join { peer, round, is_ours, is_kept, links } => {
                let meant = ConnectionId { peer: *peer, round: *round, is_kept: *is_kept };
                self.join(meant, *is_ours, links, ends);
            }
            ToHost::Part(peer) => self.part(*peer),
            ToHost::Away(peer) => self.leave(*peer, ends),
            ToHost::FillPeer { peer, bytes } => {
                if let Some(joined) = self.joined.get(peer) {
                    filler((*bytes).min(FILL_BYTES_MAX)).for_each(|words| joined.outbox.say(words));
                }
            }
            ToHost::Lost(peer) => {
                if let Some(joined) = self.joined.get_mut(peer) {
                    joined.lost_at.get_or_insert_with(Instant::now);
                }
            }
            _ => return false,
        }
        true
    }

    /// Route of a link.
    pub(super) fn lead(&self, link: u16) -> Option<Arc<LinkRoute>> {
        self.leads.get(&link).cloned()
    }

    /// This part of the graph does not restart.
    pub(super) fn release_ends(&mut self) {
        self.holds_ends = false;
        self.outbox.release_ends();
        self.joined.values().for_each(|joined| joined.outbox.release_ends());
    }

    /// Listens for a peer.
    fn meet(&mut self, peer: u16, round: u32, terms: Terms, port: u16) {
        let bind =
            |port| listen_anywhere(port, |any| ConnectionListener::bind(any, Purpose::Connection, WAITS_FOR));
        self.part(peer);
        let mut patience = Duration::ZERO;
        if let Some(joined) = self.joined.remove(&peer) {
            self.turn_back(joined.links.iter());
            if joined.holds_port {
                patience = LEAVES_PORT_WITHIN;
            }
            // Data that has arrived comes before data of another route.
            joined.end_reading();
        }
        let (mut listener, until) = (bind(port), Instant::now() + patience);
        while listener.is_err() && Instant::now() < until {
            thread::sleep(LOOK_EVERY);
            listener = bind(port);
        }
        let holds_port = port != 0 && listener.is_ok();
        // The connection with the coordinator may use the named port.
        let listener = listener.or_else(|error| if port == 0 { Err(error) } else { bind(0) }).ok();
        let ticket = listener.as_ref().map(|listener| listener.ticket.word().to_string());
        let theirs = listener.map(|listener| {
            let tell = self.outcome_sender(peer, round, false);
            Attempt::start(terms, move |options| Ok(Channel::accepted(listener.accept(options)?)?), tell)
        });
        self.meetings.insert(peer, Meeting { round, terms, holds_port, ours: None, theirs });
        self.say(&ToCoordinator::Ticket { peer, round, ticket });
    }

    /// Connects to a peer.
    fn reach(&mut self, peer: u16, round: u32, ticket: &str) {
        let tell = self.outcome_sender(peer, round, true);
        let Some(meeting) = self.meetings.get_mut(&peer).filter(|meeting| meeting.round == round) else {
            return;
        };
        meeting.ours = match Ticket::from_word(ticket, Purpose::Connection) {
            Ok(ticket) => {
                let terms = meeting.terms;
                Some(Attempt::start(
                    terms,
                    move |options| Ok(Channel::connected(connect(&ticket, options)?)?),
                    tell,
                ))
            }
            Err(_) => {
                tell(None);
                None
            }
        };
    }

    fn outcome_sender(
        &self,
        peer: u16,
        round: u32,
        is_ours: bool,
    ) -> impl FnOnce(Option<Route>) + Send + use<> {
        let outbox = self.outbox.clone();
        move |route| outbox.say(words(&ToCoordinator::Met { peer, round, is_ours, route }))
    }

    /// Moves links to a direct connection.
    fn join(&mut self, meant: ConnectionId, is_ours: bool, links: &[(u16, u32)], ends: &Ends) {
        let ConnectionId { peer, round, .. } = meant;
        let meeting = self.meetings.get_mut(&peer).filter(|meeting| meeting.round == round);
        let holds_port = !is_ours && meeting.as_ref().is_some_and(|meeting| meeting.holds_port);
        let attempt =
            meeting.and_then(|meeting| if is_ours { meeting.ours.take() } else { meeting.theirs.take() });
        self.part(peer);
        let Some((channel, cancel)) = attempt.and_then(|attempt| Some((attempt.take()?, attempt.cancel)))
        else {
            return self.say(&ToCoordinator::Broke { peer, round, why: "no connection".to_owned() });
        };
        // A broken connection closes no link; the coordinator decides that.
        let outbox = Arc::new(Outbox::kept());
        if self.holds_ends {
            outbox.hold_ends();
        }
        for &(link, epoch) in links {
            // Before data arrives, so that acknowledgements take the new route.
            if let Some(lead) = self.leads.get(&link) {
                lead.turn(&outbox);
            }
            if epoch > 0 && ends.has_begin(link) {
                outbox.join(link, epoch);
            }
        }
        let links = links.iter().map(|&(link, _)| link).collect();
        let mut joined = PeerConnection::open(meant, links, outbox, channel, cancel, ends, &self.outbox);
        joined.holds_port = holds_port;
        if self.is_finishing {
            joined.finish();
        }
        self.joined.insert(peer, joined);
    }

    /// Stops all attempts.
    fn part(&mut self, peer: u16) {
        if let Some(Meeting { ours, theirs, .. }) = self.meetings.remove(&peer) {
            ours.iter().chain(&theirs).for_each(|attempt| attempt.cancel.cancel());
        }
    }

    /// A peer is gone: its data is still read, and data for it waits.
    fn leave(&mut self, peer: u16, ends: &Ends) {
        self.part(peer);
        if let Some(joined) = self.joined.get_mut(&peer) {
            joined.is_away = true;
            let joined = &self.joined[&peer];
            self.turn_back(joined.links.iter().filter(|&&link| ends.has_begin(link)));
        }
    }

    /// Moves links back to the coordinator.
    fn turn_back<'a>(&self, links: impl Iterator<Item = &'a u16>) {
        links.filter_map(|link| self.leads.get(link)).for_each(|lead| lead.turn(&self.outbox));
    }

    /// Polls the peers; reports breaks and silence.
    pub(super) fn poll(&mut self, ends: &Ends) {
        let now = Instant::now();
        for (&peer, joined) in &mut self.joined {
            let round = joined.round;
            if let Some(why) = joined.poll(ends) {
                self.outbox.say(words(&ToCoordinator::Broke { peer, round, why }));
            }
            if let Some(hears) = joined.listen(now) {
                self.outbox.say(words(&ToCoordinator::Hears { peer, round, hears }));
            }
        }
    }

    /// Ends sending; queued data still goes out.
    pub(super) fn finish(&mut self) {
        self.is_finishing = true;
        self.joined.values_mut().filter(|joined| !joined.is_gone()).for_each(PeerConnection::finish);
    }

    /// Whether all peers have received everything, or are gone.
    pub(super) fn is_finished(&self) -> bool {
        self.meetings.is_empty() && self.joined.values().all(PeerConnection::is_finished)
    }

    fn say(&self, said: &ToCoordinator) {
        self.outbox.say(words(said));
    }
}

/// Time limit, whatever happens to the coordinator.
const WAITS_FOR: Duration = Duration::from_secs(30);
/// A closed connection still answers for a second.
const LEAVES_PORT_WITHIN: Duration = Duration::from_millis(1_500);
const LOOK_EVERY: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::mpsc::{self, Receiver};

    use grebe_connection::Mode;
    use grebe_flow::GraphFile;
    use grebe_link::edge::{Routes, read_messages};

    use super::*;
    use grebe_remote::Via;

    /// Host, with its messages to the coordinator.
    struct Host {
        peers: Peers,
        ends: Ends,
        said: Receiver<ToCoordinator>,
    }

    /// Two hosts with an edge from the first to the second.
    fn hosts() -> [Host; 2] {
        let graph = r#"
            stage = [
                { id = "adc", kind = "synth", host = "mast", params = { rate = "1M" } },
                { id = "raw", kind = "null", host = "store" },
            ]
            edge = [{ from = "adc", to = "raw" }]
        "#;
        let cut = GraphFile::parse(graph, Path::new("lab.toml"), &grebe_stages::kinds()).unwrap().cut();
        [0, 1].map(|part| {
            let (outbox, (tells, said)) = (Arc::new(Outbox::default()), mpsc::channel());
            let (from, to) = std::io::pipe().unwrap();
            let (writes, line) = (outbox.clone(), outbox.connect());
            thread::spawn(move || writes.write_to(line, to));
            thread::spawn(move || {
                let answers = Outbox::default();
                let line = answers.connect();
                let _ = read_messages(from, &Routes::new(), &answers, line, |said| {
                    drop(tells.send(serde_json::from_slice(said).unwrap()));
                });
            });
            let ends = Ends::of(&cut.parts[part].file).unwrap();
            Host { peers: Peers::new(outbox, &ends, false), ends, said }
        })
    }

    impl Host {
        fn handle(&mut self, said: ToHost) {
            assert!(self.peers.handle(&said, &self.ends));
        }

        /// The first matching message.
        fn says<T>(&mut self, mut is_it: impl FnMut(ToCoordinator) -> Option<T>) -> T {
            let until = Instant::now() + Duration::from_secs(60);
            loop {
                self.peers.poll(&self.ends);
                match self.said.recv_timeout(Duration::from_millis(10)).ok().and_then(&mut is_it) {
                    Some(it) => return it,
                    None => assert!(Instant::now() < until, "not within a minute"),
                }
            }
        }

        fn joined(&self) -> Option<&PeerConnection> {
            self.peers.joined.values().next()
        }

        /// Whether its link goes through the coordinator.
        fn leads_here(&self) -> bool {
            self.peers.leads[&0].is(&self.peers.outbox)
        }
    }

    /// Lets both connect, and joins the link over the connection of the first.
    fn join([mast, store]: [&mut Host; 2], round: u32, via: Via, is_kept: bool) {
        let terms = Terms { via, mode: Mode::Fair, limit_bits_per_s: None };
        mast.handle(ToHost::Meet { peer: 1, round, terms, port: 0 });
        store.handle(ToHost::Meet { peer: 0, round, terms, port: 0 });
        let ticket = |said| match said {
            ToCoordinator::Ticket { round: of, ticket, .. } if of == round => ticket,
            _ => None,
        };
        // Both have left the earlier connection.
        assert!(!mast.says(ticket).is_empty() && mast.leads_here() && mast.joined().is_none());
        mast.handle(ToHost::Reach { peer: 1, round, ticket: store.says(ticket) });
        let met = |ours| {
            move |said| match said {
                ToCoordinator::Met { round: of, is_ours, route, .. } if of == round && is_ours == ours => {
                    route
                }
                _ => None,
            }
        };
        let route = if via == Via::Tcp { Route::Tcp } else { Route::Udp };
        assert_eq!((mast.says(met(true)), store.says(met(false))), (route, route));
        let links = vec![(0, round - 1)];
        mast.handle(ToHost::Join { peer: 1, round, is_ours: true, is_kept, links: links.clone() });
        store.handle(ToHost::Join { peer: 0, round, is_ours: false, is_kept, links });
        assert!(mast.peers.meetings.is_empty() && store.peers.meetings.is_empty());
        // Data of the link goes to the peer, everything else to the coordinator.
        assert!(!mast.leads_here() && !store.leads_here());
    }

    fn broke(round: u32) -> impl FnMut(ToCoordinator) -> Option<u16> {
        move |said| match said {
            ToCoordinator::Broke { peer, round: of, .. } if of == round => Some(peer),
            _ => None,
        }
    }

    #[test]
    fn two_hosts_connect_and_both_report_a_broken_route() {
        let [mut mast, mut store] = hosts();
        join([&mut mast, &mut store], 1, Via::Tcp, false);
        mast.handle(ToHost::FillPeer { peer: 1, bytes: 100_000 });
        let filled =
            |said| if let ToCoordinator::PeerFilled { filled, .. } = said { Some(filled) } else { None };
        assert!(store.says(filled).bytes > 50_000);
        mast.joined().unwrap().cancel.cancel();
        assert_eq!((mast.says(broke(1)), store.says(broke(1))), (1, 0));
        // It ends only when the coordinator says so.
        store.peers.finish();
        assert!(!store.joined().unwrap().is_over() && !store.peers.is_finished());
        store.handle(ToHost::Lost(0));
        store.peers.poll(&store.ends);
        assert!(store.joined().unwrap().is_over() && store.peers.is_finished());
    }

    #[test]
    fn two_hosts_reconnect_after_a_break_and_waiting_links_reach_the_coordinator() {
        let [mut mast, mut store] = hosts();
        for round in 1..=3 {
            join([&mut mast, &mut store], round, Via::Udp, true);
            if round == 2 {
                // The peer is gone: its data is still read, and data for it is no longer in flight.
                mast.handle(ToHost::Away(1));
                assert!(mast.leads_here() && mast.joined().is_some() && mast.peers.is_finished());
                store.handle(ToHost::Away(0));
                assert!(!store.leads_here(), "the sender learns of a taken frame");
            } else {
                mast.joined().unwrap().cancel.cancel();
                assert_eq!(store.says(broke(round)), 0);
            }
        }
        // Messages of earlier rounds are ignored.
        mast.handle(ToHost::Join { peer: 1, round: 2, is_ours: true, is_kept: true, links: vec![(0, 9)] });
        assert_eq!(mast.says(broke(2)), 1);
        assert!(mast.joined().is_some_and(|joined| joined.round == 3));
    }

    #[test]
    fn the_last_lines_of_a_host_arrive_before_it_is_done() {
        let [mut mast, mut store] = hosts();
        join([&mut mast, &mut store], 1, Via::Udp, false);
        mast.handle(ToHost::FillPeer { peer: 1, bytes: 3 << 20 });
        mast.peers.finish();
        while !mast.peers.is_finished() {
            mast.peers.poll(&mast.ends);
            store.peers.poll(&store.ends);
            thread::sleep(Duration::from_millis(5));
        }
        let filled =
            |said| if let ToCoordinator::PeerFilled { filled, .. } = said { Some(filled) } else { None };
        assert!(store.says(filled).bytes > 2 << 20);
        assert!(!mast.joined().unwrap().is_gone() && store.joined().unwrap().is_over());
    }
}
