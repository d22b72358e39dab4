//! Other hosts of the graph, as one of them has them: samples go there beside the process that runs the graph.
//!
//! ```text
//!  the process that runs the graph      this host                          the peer, at the same time
//!    Meet           ==>                   listens at a port                  listens at a port
//!                   <== Ticket            its key and addresses
//!    Reach          ==>                   goes to the peer by its ticket     comes here by this one's
//!                   <== Met               it has reached the peer, or was reached
//!    Join, or Part  ==>                   goes on with one connection        with the same one: the rest is closed
//! ```
//!
//! A peer that goes away is the business of the process that runs the graph: this host tells that nothing passes any more ([`ToHere::Broke`]), and
//! goes on as before until it hears what of it ([`ToThere::Lost`]).

use std::collections::BTreeMap;
use std::io::BufReader;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Result;
use grebe_ring::Cancel;
use grebe_stages::link::{Outbox, read_messages};
use grebe_transfer::{
    ConnectionListener, ConnectionOptions, ConnectionStatus, Purpose, Ticket, connect, listen_anywhere,
};

use super::lines::{FILL_BYTES_MAX, FillMeter, SILENT_FOR, ToHere, ToThere, filler, words};
use super::links::Ends;
use crate::command::cp::lines::{Terms, Way};
use crate::command::cp::way::{Beside, Channel};

/// The other hosts to or from which links of this one may go directly.
pub(super) struct Peers {
    /// To the process that runs the graph.
    outbox: Arc<Outbox>,
    meetings: BTreeMap<u16, Meeting>,
    joined: BTreeMap<u16, Joined>,
}

/// A peer that is looked for.
struct Meeting {
    terms: Terms,
    /// This host goes to the peer, or waits for it.
    ours: Option<Attempt>,
    theirs: Option<Attempt>,
}

/// A connection that comes about, or not.
struct Attempt {
    channel: Arc<Mutex<Option<Channel>>>,
    /// Ends the attempt, and the connection.
    cancel: Cancel,
}

/// Whether all has passed that was to pass in a direction, or why not.
type Passed = Result<(), String>;

/// A peer that is there.
struct Joined {
    links: Vec<u16>,
    outbox: Arc<Outbox>,
    status: Option<ConnectionStatus>,
    cancel: Cancel,
    /// Once it has ended.
    read: Arc<Mutex<Option<Passed>>>,
    is_broken: bool,
    lost_at: Option<Instant>,
    /// This host has nothing more to say there, and reads no more.
    is_finishing: bool,
    /// Until the peer has all that it is to have.
    finishing: Option<JoinHandle<Passed>>,
    is_over: bool,
}

impl Peers {
    pub(super) fn new(outbox: Arc<Outbox>) -> Self {
        Self { outbox, meetings: BTreeMap::new(), joined: BTreeMap::new() }
    }

    /// Does what was said, if it is about a peer; whether it is.
    pub(super) fn hear(&mut self, said: &ToThere, ends: &Ends) -> bool {
        match said {
            ToThere::Meet { peer, terms, port } => self.meet(*peer, *terms, *port),
            ToThere::Reach { peer, ticket } => self.reach(*peer, ticket),
            ToThere::Join { peer, is_ours, links } => self.join(*peer, *is_ours, links, ends),
            ToThere::Part(peer) => self.part(*peer),
            ToThere::FillPeer { peer, bytes } => {
                if let Some(joined) = self.joined.get(peer) {
                    filler((*bytes).min(FILL_BYTES_MAX)).for_each(|words| joined.outbox.say(words));
                }
            }
            ToThere::Lost(peer) => {
                if let Some(joined) = self.joined.get_mut(peer) {
                    joined.lost_at.get_or_insert_with(Instant::now);
                }
            }
            _ => return false,
        }
        true
    }

    /// What leads to the other end of a link.
    pub(super) fn outbox(&self, link: u16) -> Arc<Outbox> {
        let joined = self.joined.values().find(|joined| joined.links.contains(&link));
        joined.map_or(&self.outbox, |joined| &joined.outbox).clone()
    }

    /// Waits for a peer.
    fn meet(&mut self, peer: u16, terms: Terms, port: u16) {
        let bind = |port| listen_anywhere(port, |any| ConnectionListener::bind(any, WAITS_FOR));
        // The port that was named may be that of the connection with the process that runs the graph.
        let listener = bind(port).or_else(|error| if port == 0 { Err(error) } else { bind(0) }).ok();
        let ticket = listener.as_ref().map(|listener| listener.ticket.word().to_string());
        let theirs = listener.map(|listener| {
            let tell = self.teller(peer, false);
            Attempt::start(terms, move |options| Ok(Channel::accepted(listener.accept(options)?)?), tell)
        });
        self.part(peer);
        self.meetings.insert(peer, Meeting { terms, ours: None, theirs });
        self.say(&ToHere::Ticket { peer, ticket });
    }

    /// Goes to a peer.
    fn reach(&mut self, peer: u16, ticket: &str) {
        let tell = self.teller(peer, true);
        let Some(meeting) = self.meetings.get_mut(&peer) else { return };
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

    fn teller(&self, peer: u16, is_ours: bool) -> impl FnOnce(Option<Way>) + Send + use<> {
        let outbox = self.outbox.clone();
        move |way| outbox.say(words(&ToHere::Met { peer, is_ours, way }))
    }

    /// Links go directly from here on.
    fn join(&mut self, peer: u16, is_ours: bool, links: &[u16], ends: &Ends) {
        let meeting = self.meetings.get_mut(&peer);
        let attempt =
            meeting.and_then(|meeting| if is_ours { meeting.ours.take() } else { meeting.theirs.take() });
        self.part(peer);
        let channel = attempt.and_then(|attempt| Some((attempt.take()?, attempt.cancel)));
        match channel {
            Some((channel, cancel)) => {
                let joined = Joined::open(peer, links, channel, cancel, ends, &self.outbox);
                self.joined.insert(peer, joined);
            }
            None => self.say(&ToHere::Broke { peer, why: "there is no connection".to_owned() }),
        }
    }

    /// Nobody is looked for any more.
    fn part(&mut self, peer: u16) {
        if let Some(Meeting { ours, theirs, .. }) = self.meetings.remove(&peer) {
            ours.iter().chain(&theirs).for_each(|attempt| attempt.cancel.cancel());
        }
    }

    /// Looks who is gone; tells of ways that broke.
    pub(super) fn look(&mut self, ends: &Ends) {
        for (&peer, joined) in &mut self.joined {
            let broke = match (joined.take_read(), joined.take_finished()) {
                (_, Some(Err(why))) => Some(why),
                (Some(Err(why)), _) if !joined.is_finishing => Some(why),
                (Some(_), _) => {
                    joined.end(ends);
                    None
                }
                (None, _) => None,
            };
            if let Some(why) = broke {
                joined.is_broken = true;
                self.outbox.say(words(&ToHere::Broke { peer, why }));
            }
            // What has come from a host that is gone is still taken.
            let is_awaited = |at: Instant| !joined.is_broken && at.elapsed() < ARRIVES_WITHIN;
            if !joined.is_over && joined.lost_at.is_some_and(|at| !is_awaited(at)) {
                joined.give_up(ends);
            }
        }
    }

    /// Nothing more goes to any of them: each is to have what is under way.
    pub(super) fn finish(&mut self) {
        self.joined.values_mut().filter(|joined| !joined.is_gone()).for_each(Joined::finish);
    }

    /// Whether each has it, or is known to be gone.
    pub(super) fn is_finished(&self) -> bool {
        self.joined.values().all(|joined| {
            let has_all = joined.finishing.is_none() && !joined.is_broken;
            has_all || joined.lost_at.is_some()
        })
    }

    fn say(&self, said: &ToHere) {
        self.outbox.say(words(said));
    }
}

impl Attempt {
    /// Tries it in a thread, and tells what came of it.
    fn start(
        terms: Terms,
        make: impl FnOnce(&ConnectionOptions) -> Result<Channel> + Send + 'static,
        tell: impl FnOnce(Option<Way>) + Send + 'static,
    ) -> Self {
        let (cancel, channel) = (Cancel::default(), Arc::<Mutex<Option<Channel>>>::default());
        let options = Beside::served(terms, &cancel).options(false);
        // Whatever the user wants: there is the way through the process that runs the graph.
        let options = ConnectionOptions { answer_within: REACHED_WITHIN, keep_trying: SILENT_FOR, ..options };
        let made = channel.clone();
        thread::spawn(move || {
            let channel = make(&options).ok();
            let way = channel.as_ref().map(|channel| channel.way);
            *locked(&made) = channel;
            tell(way);
        });
        Self { channel, cancel }
    }

    fn take(&self) -> Option<Channel> {
        locked(&self.channel).take()
    }
}

impl Joined {
    /// Begins to read and to write; what is not about samples is told to `tells`.
    fn open(
        peer: u16,
        links: &[u16],
        channel: Channel,
        cancel: Cancel,
        ends: &Ends,
        tells: &Arc<Outbox>,
    ) -> Self {
        // A connection that breaks closes no link: that is decided elsewhere.
        let (outbox, read) = (Arc::new(Outbox::kept()), Arc::<Mutex<Option<Passed>>>::default());
        let line = outbox.connect();
        let routes = ends.routes(|link| links.contains(&link));
        let (answers, tells, ended) = (outbox.clone(), tells.clone(), read.clone());
        let reader = BufReader::with_capacity(READ_BYTES, channel.reader);
        thread::spawn(move || {
            let mut meter = FillMeter::default();
            let read = read_messages(reader, &routes, &answers, line, |said| {
                if let Some(filled) = meter.take(said).flatten() {
                    tells.say(words(&ToHere::PeerFilled { peer, filled }));
                }
            });
            if read.is_ok() {
                // It has said all that it had to say, and waits for nothing.
                answers.close();
            }
            *locked(&ended) = Some(read.map_err(|error| error.to_string()));
        });
        let (writes, writer) = (outbox.clone(), channel.writer);
        thread::spawn(move || writes.write_to(line, writer));
        let (links, status) = (links.to_vec(), channel.status);
        Self {
            links,
            outbox,
            status,
            cancel,
            read,
            is_broken: false,
            lost_at: None,
            is_finishing: false,
            finishing: None,
            is_over: false,
        }
    }

    fn take_read(&self) -> Option<Passed> {
        locked(&self.read).take()
    }

    fn is_gone(&self) -> bool {
        self.is_broken || self.lost_at.is_some()
    }

    /// What this host has said is to arrive, as long as that takes.
    fn finish(&mut self) {
        self.is_finishing = true;
        self.outbox.finish();
        let (outbox, status) = (self.outbox.clone(), self.status.clone());
        self.finishing = Some(thread::spawn(move || {
            outbox.wait_written(WHOLE_WITHIN);
            // The peer closes its own once it has read to the end.
            status.map_or(Ok(()), |status| status.close().map_err(|error| error.to_string()))
        }));
    }

    /// Whether all has arrived, once that is known.
    fn take_finished(&mut self) -> Option<Passed> {
        let finishing = self.finishing.take_if(|finishing| finishing.is_finished())?;
        let passed = finishing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Some(passed.or_else(|why| if self.is_gone() { Ok(()) } else { Err(why) }))
    }

    /// Nothing comes from it any more.
    fn end(&mut self, ends: &Ends) {
        self.is_over = true;
        self.links.iter().for_each(|&link| ends.end(link));
    }

    /// It is gone: what was under way to it is counted.
    fn give_up(&mut self, ends: &Ends) {
        self.end(ends);
        self.outbox.hang_up();
        self.outbox.close();
        self.cancel.cancel();
    }
}

/// A panic while it was held has ended the thread that held it, and left nothing half done.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A way that answers later is none: samples go through the process that runs the graph.
const REACHED_WITHIN: Duration = Duration::from_secs(2);
/// Nobody waits for longer, whatever happens to the process that runs the graph.
const WAITS_FOR: Duration = Duration::from_secs(30);
/// What a host that is gone has sent before.
const ARRIVES_WITHIN: Duration = Duration::from_millis(300);
/// As long as a path takes: one that is gone is told of before.
const WHOLE_WITHIN: Duration = Duration::from_secs(3_600);
const READ_BYTES: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::mpsc::{self, Receiver};

    use grebe_flow::GraphFile;
    use grebe_stages::link::Routes;
    use grebe_transfer::Mode;

    use super::*;
    use crate::cli::Via;

    /// A host, and what it says to the process that runs the graph.
    struct Host {
        peers: Peers,
        ends: Ends,
        said: Receiver<ToHere>,
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
            Host { peers: Peers::new(outbox), ends: Ends::of(&cut.parts[part].file).unwrap(), said }
        })
    }

    impl Host {
        fn hear(&mut self, said: ToThere) {
            assert!(self.peers.hear(&said, &self.ends));
        }

        /// The first of these words.
        fn says<T>(&mut self, mut is_it: impl FnMut(ToHere) -> Option<T>) -> T {
            let until = Instant::now() + Duration::from_secs(60);
            loop {
                self.peers.look(&self.ends);
                match self.said.recv_timeout(Duration::from_millis(10)).ok().and_then(&mut is_it) {
                    Some(it) => return it,
                    None => assert!(Instant::now() < until, "not within a minute"),
                }
            }
        }

        fn joined(&self) -> Option<&Joined> {
            self.peers.joined.values().next()
        }
    }

    #[test]
    fn two_hosts_find_each_other_and_that_the_way_broke_is_told_at_both() {
        let [mut mast, mut store] = hosts();
        let terms = Terms { via: Via::Tcp, mode: Mode::Fair, limit_bits_per_s: None };
        mast.hear(ToThere::Meet { peer: 1, terms, port: 0 });
        store.hear(ToThere::Meet { peer: 0, terms, port: 0 });
        let ticket = |said| if let ToHere::Ticket { ticket, .. } = said { ticket } else { None };
        let [of_mast, of_store] = [&mut mast, &mut store].map(|host| host.says(ticket));
        mast.hear(ToThere::Reach { peer: 1, ticket: of_store });
        store.hear(ToThere::Reach { peer: 0, ticket: of_mast });
        let met = |ours| {
            move |said| match said {
                ToHere::Met { is_ours, way, .. } if is_ours == ours => way,
                _ => None,
            }
        };
        assert_eq!((mast.says(met(true)), store.says(met(false))), (Way::Tcp, Way::Tcp));
        mast.hear(ToThere::Join { peer: 1, is_ours: true, links: vec![0] });
        store.hear(ToThere::Join { peer: 0, is_ours: false, links: vec![0] });
        assert!(mast.peers.meetings.is_empty() && store.peers.meetings.is_empty());
        mast.hear(ToThere::FillPeer { peer: 1, bytes: 100_000 });
        let filled = |said| if let ToHere::PeerFilled { filled, .. } = said { Some(filled) } else { None };
        assert!(store.says(filled).bytes > 50_000);
        // What has the link goes there, everything else to the process that runs the graph.
        assert!(Arc::ptr_eq(&mast.peers.outbox(0), &mast.joined().unwrap().outbox));
        assert!(Arc::ptr_eq(&mast.peers.outbox(1), &mast.peers.outbox));

        mast.joined().unwrap().cancel.cancel();
        let broke = |said| if let ToHere::Broke { peer, .. } = said { Some(peer) } else { None };
        assert_eq!((mast.says(broke), store.says(broke)), (1, 0));
        // It is not over before the process that runs the graph says so.
        store.peers.finish();
        assert!(!store.joined().unwrap().is_over && !store.peers.is_finished());
        store.hear(ToThere::Lost(0));
        store.peers.look(&store.ends);
        assert!(store.joined().unwrap().is_over && store.peers.is_finished());
    }

    #[test]
    fn what_is_said_at_last_arrives_before_a_host_is_done() {
        let [mut mast, mut store] = hosts();
        let terms = Terms { via: Via::Udp, mode: Mode::Fair, limit_bits_per_s: None };
        mast.hear(ToThere::Meet { peer: 1, terms, port: 0 });
        store.hear(ToThere::Meet { peer: 0, terms, port: 0 });
        let ticket = store.says(|said| if let ToHere::Ticket { ticket, .. } = said { ticket } else { None });
        mast.hear(ToThere::Reach { peer: 1, ticket });
        let met = |said| if let ToHere::Met { way, .. } = said { way } else { None };
        assert_eq!((mast.says(met), store.says(met)), (Way::Udp, Way::Udp));
        mast.hear(ToThere::Join { peer: 1, is_ours: true, links: vec![0] });
        store.hear(ToThere::Join { peer: 0, is_ours: false, links: vec![0] });
        mast.hear(ToThere::FillPeer { peer: 1, bytes: 3 << 20 });
        mast.peers.finish();
        while !mast.peers.is_finished() {
            mast.peers.look(&mast.ends);
            store.peers.look(&store.ends);
            thread::sleep(Duration::from_millis(5));
        }
        let filled = |said| if let ToHere::PeerFilled { filled, .. } = said { Some(filled) } else { None };
        assert!(store.says(filled).bytes > 2 << 20);
        assert!(!mast.joined().unwrap().is_broken && store.joined().unwrap().is_over);
    }
}
