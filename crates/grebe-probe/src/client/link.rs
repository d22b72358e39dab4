//! A client's end of the path: what can be asked of it, one question at a time.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use crate::client::core::{Core, Echo};
use crate::endpoint::{Arrival, Clock, Endpoint, Outbox, Peer};
use crate::key::{self, Key};
use crate::packet::{Answer, Ask, Body, Flow, Packet, SIZES_MAX, Stream, Welcome, Why};
use crate::server::nothing_of;
use crate::tcp;
use crate::tracker::{Summary, Tracker};
use crate::train::Train;
use crate::{Error, Result};

/// A session with a server.
pub(crate) struct Path<'a> {
    pub endpoint: Endpoint,
    pub core: Core,
    pub peer: SocketAddr,
    pub welcome: Welcome,
    next_ask: u32,
    next_train: u32,
    next_stream: u32,
    rtt_ns: u64,
    /// Bytes of IP packets of the TCP streams.
    pub stream_bytes: u64,
    is_interrupted: &'a dyn Fn() -> bool,
}

impl<'a> Path<'a> {
    /// Says hello, proves the own address, and waits for its turn. `waiting` is told how many are ahead.
    pub fn open(
        peer: SocketAddr,
        key: &Key,
        is_interrupted: &'a dyn Fn() -> bool,
        waiting: &mut dyn FnMut(u16),
    ) -> Result<Self> {
        let any = if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let mut endpoint = Endpoint::bind(SocketAddr::new(any, 0), Some(peer))?;
        let nonce = key::random::<16>()?;
        let mut opening = Opening { keys: key.outer(), nonce, reply: None };
        let mut number = 0;
        let mut body = Body::Hello { nonce };
        let (mut rto, mut heard_ns) = (FIRST_RTO, endpoint.clock.now_ns());
        let mut sent_ns = heard_ns;
        let welcome = loop {
            number += 1;
            let packet = Packet { session: 0, number, body };
            endpoint.send(None, &packet, &opening.keys.client, 0)?;
            sent_ns = sent_ns.max(endpoint.clock.now_ns());
            let until_ns = endpoint.clock.now_ns() + rto.as_nanos() as u64;
            while opening.reply.is_none() && endpoint.clock.now_ns() < until_ns {
                if is_interrupted() {
                    return Err(Error::Interrupted);
                }
                endpoint.pump(PUMP, &mut opening)?;
            }
            let now_ns = endpoint.clock.now_ns();
            match opening.reply.take() {
                Some(Body::Challenge { cookie, .. }) => {
                    // The answer may be to an earlier question: no shorter than the path, at worst longer.
                    rto = Duration::from_nanos(now_ns - heard_ns).mul_f64(1.5).clamp(MIN_RTO, MAX_RTO);
                    body = Body::Start { nonce, cookie };
                    heard_ns = now_ns;
                }
                Some(Body::Wait { position, .. }) => {
                    waiting(position);
                    heard_ns = now_ns;
                    Self::pause(&mut endpoint, QUEUE_POLL, is_interrupted)?;
                }
                Some(Body::Welcome(welcome)) => break welcome,
                Some(Body::Bye { why }) => return Err(ended(peer, why)),
                _ if now_ns - heard_ns > SILENCE_NS => {
                    return Err(Error::Silent { peer, waited: Duration::from_nanos(SILENCE_NS) });
                }
                _ => rto = (rto * 2).min(MAX_RTO),
            }
        };
        let keys = key.session(&nonce, &welcome.server_nonce);
        let core = Core::new(welcome.session, keys, endpoint.clock.now_ns());
        let rtt_ns = rto.as_nanos() as u64;
        Ok(Self {
            endpoint,
            core,
            peer,
            welcome,
            next_ask: 0,
            next_train: 0,
            next_stream: 0,
            rtt_ns,
            stream_bytes: 0,
            is_interrupted,
        })
    }

    pub fn now_ns(&self) -> u64 {
        self.endpoint.clock.now_ns()
    }

    pub fn clock(&self) -> Clock {
        self.endpoint.clock
    }

    /// Bytes of IP packets that went either way.
    pub fn bytes(&self) -> u64 {
        self.endpoint.sent_bytes + self.core.bytes + self.stream_bytes
    }

    /// How long an answer may take from now on.
    pub fn set_rtt(&mut self, rtt_ns: u64) {
        self.rtt_ns = rtt_ns;
    }

    /// Serves the socket for so long.
    pub fn serve(&mut self, time: Duration) -> Result<()> {
        self.serve_until(self.now_ns() + time.as_nanos() as u64, |_| false)
    }

    /// Serves the socket until then, or until something has come.
    pub fn serve_until(&mut self, until_ns: u64, is_enough: impl Fn(&Core) -> bool) -> Result<()> {
        while self.now_ns() < until_ns && !is_enough(&self.core) {
            let left = Duration::from_nanos(until_ns.saturating_sub(self.now_ns()));
            let every = Duration::from_nanos(self.core.ping_every_ns.max(1_000_000)).min(PUMP);
            self.endpoint.pump(left.min(every).max(Duration::from_micros(50)), &mut self.core)?;
            self.check()?;
        }
        Ok(())
    }

    /// Asks until there is an answer.
    pub fn ask(&mut self, ask: Ask) -> Result<Answer> {
        self.next_ask += 1;
        let id = self.next_ask;
        let mut rto = Duration::from_nanos(self.rtt_ns).mul_f64(1.5).clamp(MIN_RTO, MAX_RTO);
        let began_ns = self.now_ns();
        loop {
            let packet = self.core.packet(Body::Ask { id, ask });
            self.endpoint.send(None, &packet, &self.core.keys.client, 0)?;
            let is_answered = |core: &Core| core.answer.is_some_and(|(answered, _)| answered == id);
            self.serve_until(self.now_ns() + rto.as_nanos() as u64, is_answered)?;
            if let Some((answered, answer)) = self.core.answer
                && answered == id
            {
                return Ok(answer);
            }
            rto = (rto * 2).min(MAX_RTO);
            if self.now_ns() - self.core.heard_ns.max(began_ns) > SILENCE_NS {
                return Err(Error::Silent { peer: self.peer, waited: Duration::from_nanos(SILENCE_NS) });
            }
        }
    }

    /// Sends pings for so long; the answers that came within it and one round trip more, and how many were sent.
    pub fn ping(&mut self, every: Duration, time: Duration) -> Result<(Vec<Echo>, u32)> {
        self.core.echoes.clear();
        self.core.pings = 0;
        self.core.ping_every_ns = every.as_nanos() as u64;
        self.serve(time)?;
        self.core.ping_every_ns = 0;
        let pings = self.core.pings;
        let until_ns = self.now_ns() + (self.rtt_ns * 3 / 2).clamp(50_000_000, 1_500_000_000);
        self.serve_until(until_ns, |core| core.echoes.len() as u32 >= pings)?;
        Ok((std::mem::take(&mut self.core.echoes), pings))
    }

    /// Carries a train one way; `settle` is how long stragglers may be behind. Pings go along.
    pub fn carry(&mut self, is_down: bool, train: Train, settle: Duration) -> Result<(Summary, Vec<Echo>)> {
        self.next_train += 1;
        let train = Train { id: self.next_train, ..train };
        self.core.echoes.clear();
        self.core.ping_every_ns = PING_ALONG_NS;
        let summary = if is_down { self.receive(train, settle) } else { self.send(train, settle) };
        self.core.ping_every_ns = 0;
        Ok((summary?, std::mem::take(&mut self.core.echoes)))
    }

    fn send(&mut self, train: Train, settle: Duration) -> Result<Summary> {
        let (session, signer) = (self.core.session, self.core.keys.client.clone());
        self.endpoint.send_train(train, (None, session, &signer), &mut self.core)?;
        self.check()?;
        self.serve(settle)?;
        match self.ask(Ask::Summary { train: train.id })? {
            Answer::Summary(summary) => Ok(summary),
            _ => Ok(nothing_of(&train)),
        }
    }

    fn receive(&mut self, train: Train, settle: Duration) -> Result<Summary> {
        self.core.expect(Tracker::new(train));
        if self.ask(Ask::Send(train))? != Answer::Accepted {
            return Err(ended(self.peer, Why::Limit));
        }
        let is_here = |core: &Core| core.tracker.as_ref().is_some_and(Tracker::saw_last);
        self.serve_until(self.now_ns() + train.duration_ns(), is_here)?;
        while !is_here(&self.core) {
            match self.ask(Ask::Sent { train: train.id })? {
                Answer::Sent { done: false, .. } => self.serve_until(self.now_ns() + 20_000_000, is_here)?,
                _ => break,
            }
        }
        self.serve(settle)?;
        let drops = self.core.train_drops();
        Ok(self.core.tracker.take().map_or_else(|| nothing_of(&train), |tracker| tracker.summary(drops)))
    }

    /// Sends datagrams of these lengths; those that the own interface takes.
    pub fn send_sizes(&mut self, sizes: &[u16; SIZES_MAX]) -> Result<()> {
        for _ in 0..3 {
            for &size in sizes.iter().filter(|&&size| size > 0) {
                let packet = self.core.packet(Body::Size);
                self.endpoint.send(None, &packet, &self.core.keys.client, size.into())?;
            }
            self.serve(Duration::from_millis(5))?;
        }
        Ok(())
    }

    /// A TCP stream of so long in one direction; `None` where it could not be opened or nothing came.
    pub fn stream(
        &mut self,
        is_down: bool,
        write_bytes: u32,
        duration: Duration,
        bytes_max: u64,
    ) -> Result<(Option<Flow>, Vec<Echo>)> {
        self.core.echoes.clear();
        self.core.ping_every_ns = PING_ALONG_NS;
        self.next_stream += 1;
        let duration_ns = duration.as_nanos() as u64;
        let stream = Stream { id: self.next_stream, down: is_down, write_bytes, duration_ns, bytes_max };
        let packet = self.core.packet(Body::Stream(stream));
        let signer = self.core.keys.client.clone();
        let rate_max_bps = self.welcome.rate_max_bps;
        let rtt = Duration::from_nanos(self.rtt_ns);
        let running = tcp::connect(self.peer, packet, signer, stream, rate_max_bps, rtt);
        let began_ns = self.now_ns();
        let most_ns = duration_ns + 8 * self.rtt_ns + 2_000_000_000;
        let mut flow = None;
        let mut asked_ns = began_ns + duration_ns;
        while !running.is_finished() && self.now_ns() - began_ns < most_ns {
            self.serve(Duration::from_millis(10))?;
            // The server has counted all it will: what is still on the way is of no use.
            if !is_down && self.now_ns() > asked_ns {
                if let Answer::Stream(got) = self.ask(Ask::Stream { id: stream.id })? {
                    flow = Some(got);
                    running.stop();
                }
                asked_ns = self.now_ns() + 50_000_000;
            }
        }
        running.stop();
        let moved = running.finish();
        // A stream that the server ended by itself: its last word may be a moment behind.
        for _ in 0..10 {
            if is_down || flow.is_some() || moved.bytes == 0 {
                break;
            }
            match self.ask(Ask::Stream { id: stream.id })? {
                Answer::Stream(got) => flow = Some(got),
                _ => self.serve(Duration::from_millis(20))?,
            }
        }
        if is_down {
            flow = moved.flow;
        }
        self.stream_bytes += flow.map_or(0, |flow| flow.bytes).max(moved.bytes);
        self.core.ping_every_ns = 0;
        Ok((flow, std::mem::take(&mut self.core.echoes)))
    }

    /// Says goodbye, a few times: nobody answers that.
    pub fn close(&mut self) {
        for _ in 0..3 {
            let packet = self.core.packet(Body::Bye { why: Why::Done });
            let _ = self.endpoint.send(None, &packet, &self.core.keys.client, 0);
        }
    }

    fn pause(endpoint: &mut Endpoint, time: Duration, is_interrupted: &dyn Fn() -> bool) -> Result<()> {
        let until_ns = endpoint.clock.now_ns() + time.as_nanos() as u64;
        while endpoint.clock.now_ns() < until_ns {
            if is_interrupted() {
                return Err(Error::Interrupted);
            }
            std::thread::sleep(PUMP);
        }
        Ok(())
    }

    fn check(&mut self) -> Result<()> {
        self.core.interrupted |= (self.is_interrupted)();
        if self.core.interrupted {
            self.close();
            return Err(Error::Interrupted);
        }
        self.core.ended.map_or(Ok(()), |why| Err(ended(self.peer, why)))
    }
}

fn ended(peer: SocketAddr, why: Why) -> Error {
    let why = match why {
        Why::Done => "it was ended there",
        Why::Limit => {
            "its limits are reached; it can be started with a larger --max-bytes, --max-rate or --duration"
        }
        Why::Busy => "its ticket is used up; start `grebe probe --serve` again, or with a larger --clients",
    };
    Error::Ended { peer, why }
}

/// What goes before a session.
struct Opening {
    keys: crate::key::Keys,
    nonce: [u8; 16],
    reply: Option<Body>,
}

impl Peer for Opening {
    fn arrived(&mut self, arrival: Arrival<'_>, _: &mut Outbox) {
        let Some(packet) = Packet::decode(arrival.bytes, &self.keys.server) else { return };
        let mine = match &packet.body {
            Body::Challenge { nonce, .. } | Body::Wait { nonce, .. } => *nonce == self.nonce,
            Body::Welcome(welcome) => welcome.nonce == self.nonce,
            Body::Bye { .. } => true,
            _ => false,
        };
        // A late challenge does not take the place of a welcome.
        let is_later = !matches!(packet.body, Body::Challenge { .. }) || self.reply.is_none();
        if mine && is_later {
            self.reply = Some(packet.body);
        }
    }

    fn tick(&mut self, _: u64, _: &mut Outbox) {}

    fn stops(&self) -> bool {
        false
    }
}

const PUMP: Duration = Duration::from_millis(10);
const FIRST_RTO: Duration = Duration::from_millis(500);
const MIN_RTO: Duration = Duration::from_millis(60);
const MAX_RTO: Duration = Duration::from_secs(2);
const QUEUE_POLL: Duration = Duration::from_millis(500);
const SILENCE_NS: u64 = 10_000_000_000;
pub(crate) const PING_ALONG_NS: u64 = 20_000_000;
