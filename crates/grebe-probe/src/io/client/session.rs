//! Client's session with a server: one request at a time, trains and TCP streams in both directions.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use grebe_clock::Echo;
use grebe_packet::{Cancel, Key};

use crate::error::{Error, Result};
use crate::io::endpoint::Endpoint;
use crate::io::tcp::{self, TcpThread};
use crate::proto::client::{ClientCore, Opening};
use crate::proto::direction::{PING_INTERVAL_NS, TrainCarrier};
use crate::proto::limits::Limits;
use crate::proto::packet::{
    Body, EndReason, Packet, Request, Response, SIZES_MAX, TcpArrivals, TcpRequest, Welcome,
};
use crate::proto::signing::{self, Keys};
use crate::proto::tracker::{Summary, Tracker, nothing_arrived};
use crate::proto::train::Train;

/// A session with a server.
pub(super) struct ClientSession {
    pub(super) endpoint: Endpoint,
    pub(super) core: ClientCore,
    pub(super) peer: SocketAddr,
    pub(super) welcome: Welcome,
    next_request: u32,
    next_train: u32,
    next_tcp: u32,
    rtt_ns: u64,
    /// Bytes of TCP streams.
    tcp_bytes: u64,
    /// Bytes of the server's trains that were lost.
    lost_bytes: u64,
    cancel: Cancel,
}

impl ClientSession {
    /// Says hello, proves this host's address and waits for its turn. Reports the number of clients ahead to
    /// `on_wait`.
    pub(super) fn open(
        peer: SocketAddr,
        key: &Key,
        cancel: &Cancel,
        on_wait: &mut dyn FnMut(u16),
    ) -> Result<Self> {
        let any = if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let mut endpoint = Endpoint::bind(SocketAddr::new(any, 0), Some(peer))?;
        let nonce = signing::random()?;
        let mut opening = Opening { keys: Keys::before_session(key), nonce, reply: None };
        let mut body = Body::Hello { nonce };
        let (mut rto, mut heard_ns) = (FIRST_RTO, endpoint.clock.now_ns());
        let mut number = 0;
        let welcome = loop {
            number += 1;
            let packet = Packet { session: 0, number, body };
            endpoint.send(None, &packet, &opening.keys.client, 0)?;
            let until_ns = endpoint.clock.now_ns() + rto.as_nanos() as u64;
            while opening.reply.is_none() && endpoint.clock.now_ns() < until_ns {
                check(cancel)?;
                endpoint.pump(PUMP, &mut opening)?;
            }
            let now_ns = endpoint.clock.now_ns();
            match opening.reply.take() {
                Some(Body::Challenge { cookie, .. }) => {
                    // It may answer an earlier hello; the round trip is then overestimated, never
                    // underestimated.
                    rto = Duration::from_nanos(now_ns - heard_ns).mul_f64(1.5).clamp(MIN_RTO, MAX_RTO);
                    body = Body::Start { nonce, cookie };
                    heard_ns = now_ns;
                }
                Some(Body::Wait { position, .. }) => {
                    on_wait(position);
                    heard_ns = now_ns;
                    let until_ns = now_ns + QUEUE_POLL.as_nanos() as u64;
                    while endpoint.clock.now_ns() < until_ns {
                        check(cancel)?;
                        std::thread::sleep(PUMP);
                    }
                }
                Some(Body::Welcome(welcome)) => break welcome,
                Some(Body::Bye { reason }) => return Err(ended(peer, reason)),
                _ if now_ns - heard_ns > SILENCE_NS => return Err(silent(peer)),
                _ => rto = (rto * 2).min(MAX_RTO),
            }
        };
        let keys = Keys::of_session(key, &nonce, &welcome.server_nonce);
        let core = ClientCore::new(welcome.session, keys, endpoint.clock.now_ns());
        Ok(Self {
            endpoint,
            core,
            peer,
            welcome,
            next_request: 0,
            next_train: 0,
            next_tcp: 0,
            rtt_ns: rto.as_nanos() as u64,
            tcp_bytes: 0,
            lost_bytes: 0,
            cancel: cancel.clone(),
        })
    }

    /// Limits of the server. It ends a session after `duration_max`; the last second is reserved for closing.
    pub(super) fn limits(&self) -> Limits {
        let duration_max = Duration::from_nanos(self.welcome.duration_max_ns);
        Limits {
            rate_max_bps: self.welcome.rate_max_bps,
            bytes_max: self.welcome.bytes_max,
            duration_max: duration_max.saturating_sub(Duration::from_secs(1)),
        }
    }

    /// Sets the timeout of responses from the round trip.
    pub(super) fn set_rtt(&mut self, rtt_ns: u64) {
        self.rtt_ns = rtt_ns;
    }

    /// Serves the socket for this time.
    pub(super) fn serve(&mut self, time: Duration) -> Result<()> {
        self.serve_until(self.now_ns() + time.as_nanos() as u64, |_| false)
    }

    /// Serves the socket until `until_ns`, or until `is_enough` returns true.
    fn serve_until(&mut self, until_ns: u64, is_enough: impl Fn(&ClientCore) -> bool) -> Result<()> {
        while self.now_ns() < until_ns && !is_enough(&self.core) {
            let left = Duration::from_nanos(until_ns.saturating_sub(self.now_ns()));
            let every = Duration::from_nanos(self.core.ping_interval_ns.max(1_000_000)).min(PUMP);
            self.endpoint.pump(left.min(every).max(Duration::from_micros(50)), &mut self.core)?;
            self.check()?;
        }
        Ok(())
    }

    /// Repeats a request until a response arrives.
    pub(super) fn request(&mut self, request: Request) -> Result<Response> {
        self.next_request += 1;
        let id = self.next_request;
        let mut rto = Duration::from_nanos(self.rtt_ns).mul_f64(1.5).clamp(MIN_RTO, MAX_RTO);
        let began_ns = self.now_ns();
        loop {
            let packet = self.core.packet(Body::Request { id, request });
            self.endpoint.send(None, &packet, &self.core.keys.client, 0)?;
            let response_to = |core: &ClientCore| core.response.filter(|&(answered, _)| answered == id);
            self.serve_until(self.now_ns() + rto.as_nanos() as u64, |core| response_to(core).is_some())?;
            if let Some((_, response)) = response_to(&self.core) {
                return Ok(response);
            }
            rto = (rto * 2).min(MAX_RTO);
            if self.now_ns() - self.core.heard_ns.max(began_ns) > SILENCE_NS {
                return Err(silent(self.peer));
            }
        }
    }

    /// Sends pings for `time`. Returns those answered within one and a half more round trips, and the number
    /// sent.
    pub(super) fn ping(&mut self, interval: Duration, time: Duration) -> Result<(Vec<Echo>, u32)> {
        self.core.pings = 0;
        let ((), echoes) = self.with_pings(interval.as_nanos() as u64, |session| {
            session.serve(time)?;
            session.core.ping_interval_ns = 0;
            let pings = session.core.pings;
            let until_ns = session.now_ns() + (session.rtt_ns * 3 / 2).clamp(50_000_000, 1_500_000_000);
            session.serve_until(until_ns, |core| core.echoes.len() as u32 >= pings)
        })?;
        Ok((echoes, self.core.pings))
    }

    /// Sends three datagrams of each length. This host's interface may refuse the long ones.
    pub(super) fn send_sizes(&mut self, sizes: &[u16; SIZES_MAX]) -> Result<()> {
        for _ in 0..3 {
            for &size in sizes.iter().filter(|&&size| size > 0) {
                let packet = self.core.packet(Body::Size);
                self.endpoint.send(None, &packet, &self.core.keys.client, size.into())?;
            }
            self.serve(Duration::from_millis(5))?;
        }
        Ok(())
    }

    /// Runs a TCP stream in one direction with pings beside it. `None` if it could not be opened or nothing
    /// arrived.
    pub(super) fn tcp(
        &mut self,
        is_down: bool,
        write_bytes: u32,
        duration: Duration,
        bytes_max: u64,
    ) -> Result<(Option<TcpArrivals>, Vec<Echo>)> {
        self.next_tcp += 1;
        let duration_ns = duration.as_nanos() as u64;
        let request = TcpRequest { id: self.next_tcp, is_down, write_bytes, duration_ns, bytes_max };
        self.with_pings(PING_INTERVAL_NS, |session| session.run_tcp(request))
    }

    fn run_tcp(&mut self, request: TcpRequest) -> Result<Option<TcpArrivals>> {
        let packet = self.core.packet(Body::OpenTcp(request));
        let (signer, rate_max_bps) = (self.core.keys.client.clone(), self.welcome.rate_max_bps);
        let rtt = Duration::from_nanos(self.rtt_ns);
        let thread = tcp::connect(self.peer, packet, signer, request, rate_max_bps, rtt);
        let arrived_there = self.await_tcp(&thread, &request)?;
        thread.stop();
        let moved = thread.finish();
        let arrivals = match (request.is_down, arrived_there) {
            (true, _) => moved.arrivals,
            (false, None) if moved.bytes > 0 => self.last_word_of_tcp(request.id)?,
            (false, arrivals) => arrivals,
        };
        self.tcp_bytes += arrivals.map_or(0, |arrivals| arrivals.bytes).max(moved.bytes);
        Ok(arrivals)
    }

    /// Serves the socket until the stream is over. Returns the arrivals at the server, if it reported them.
    fn await_tcp(&mut self, thread: &TcpThread, request: &TcpRequest) -> Result<Option<TcpArrivals>> {
        let mut arrivals = None;
        let mut asked_ns = self.now_ns() + request.duration_ns;
        let end_ns = asked_ns + 8 * self.rtt_ns + 2_000_000_000;
        while !thread.is_finished() && self.now_ns() < end_ns {
            self.serve(Duration::from_millis(10))?;
            // The server stops counting after the duration, so data still in flight is useless.
            if !request.is_down && self.now_ns() > asked_ns {
                if let Response::TcpArrivals(arrived) =
                    self.request(Request::TcpArrivals { id: request.id })?
                {
                    arrivals = Some(arrived);
                    thread.stop();
                }
                asked_ns = self.now_ns() + 50_000_000;
            }
        }
        Ok(arrivals)
    }

    /// Final arrivals at the server of a stream that it has ended; it may report them slightly later.
    fn last_word_of_tcp(&mut self, id: u32) -> Result<Option<TcpArrivals>> {
        for _ in 0..10 {
            if let Response::TcpArrivals(arrivals) = self.request(Request::TcpArrivals { id })? {
                return Ok(Some(arrivals));
            }
            self.serve(Duration::from_millis(20))?;
        }
        Ok(None)
    }

    /// Says goodbye three times, because nobody acknowledges it.
    pub(super) fn close(&mut self) {
        for _ in 0..3 {
            let packet = self.core.packet(Body::Bye { reason: EndReason::Done });
            let _ = self.endpoint.send(None, &packet, &self.core.keys.client, 0);
        }
    }

    /// Sends pings while `work` runs. Returns its result with the answered pings.
    fn with_pings<T>(
        &mut self,
        interval_ns: u64,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(T, Vec<Echo>)> {
        self.core.echoes.clear();
        self.core.ping_interval_ns = interval_ns;
        let result = work(self);
        self.core.ping_interval_ns = 0;
        Ok((result?, std::mem::take(&mut self.core.echoes)))
    }

    fn send_train(&mut self, train: Train, settle: Duration) -> Result<Summary> {
        let (session, signer) = (self.core.session, self.core.keys.client.clone());
        self.endpoint.send_train(train, (None, session, &signer), &mut self.core)?;
        self.check()?;
        self.serve(settle)?;
        match self.request(Request::Summary { train: train.id })? {
            Response::Summary(summary) => Ok(summary),
            _ => Ok(nothing_arrived(&train)),
        }
    }

    fn receive_train(&mut self, train: Train, settle: Duration) -> Result<Summary> {
        self.core.expect(Tracker::new(train));
        if self.request(Request::SendTrain(train))? != Response::Accepted {
            return Err(ended(self.peer, EndReason::Limit));
        }
        let is_here = |core: &ClientCore| core.tracker.as_ref().is_some_and(Tracker::saw_last);
        self.serve_until(self.now_ns() + train.duration_ns(), is_here)?;
        while !is_here(&self.core) {
            match self.request(Request::TrainSent { train: train.id })? {
                Response::TrainSent { is_done: false, .. } => {
                    self.serve_until(self.now_ns() + 20_000_000, is_here)?;
                }
                _ => break,
            }
        }
        self.serve(settle)?;
        let drops = self.core.train_drops();
        let tracker = self.core.tracker.take();
        Ok(tracker.map_or_else(|| nothing_arrived(&train), |tracker| tracker.summary(drops)))
    }

    fn check(&mut self) -> Result<()> {
        if check(&self.cancel).is_err() {
            self.close();
            return Err(Error::Cancelled);
        }
        self.core.ended.map_or(Ok(()), |reason| Err(ended(self.peer, reason)))
    }
}

impl TrainCarrier for ClientSession {
    fn carry(&mut self, is_down: bool, train: Train, settle: Duration) -> Result<(Summary, Vec<Echo>)> {
        self.next_train += 1;
        let train = Train { id: self.next_train, ..train };
        let (summary, echoes) = self.with_pings(PING_INTERVAL_NS, |session| match is_down {
            true => session.receive_train(train, settle),
            false => session.send_train(train, settle),
        })?;
        if is_down {
            self.lost_bytes += train.packet_bytes() * u64::from(summary.lost);
        }
        Ok((summary, echoes))
    }

    fn now_ns(&self) -> u64 {
        self.endpoint.clock.now_ns()
    }

    fn spent_bytes(&self) -> u64 {
        self.endpoint.sent_bytes + self.core.bytes + self.tcp_bytes + self.lost_bytes
    }
}

fn check(cancel: &Cancel) -> Result<()> {
    if cancel.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
}

fn silent(peer: SocketAddr) -> Error {
    Error::Silent { peer, waited: Duration::from_nanos(SILENCE_NS) }
}

fn ended(peer: SocketAddr, reason: EndReason) -> Error {
    let why = match reason {
        EndReason::Done => "it was stopped there",
        EndReason::Limit => {
            "its limits are reached; it can be started with a larger --max-bytes, --max-rate or --duration"
        }
        EndReason::Busy => {
            "its ticket is used up; start `grebe probe --serve` again, or with a larger --clients"
        }
    };
    Error::Ended { peer, why }
}

const PUMP: Duration = Duration::from_millis(10);
const FIRST_RTO: Duration = Duration::from_millis(500);
const MIN_RTO: Duration = Duration::from_millis(60);
const MAX_RTO: Duration = Duration::from_secs(2);
const QUEUE_POLL: Duration = Duration::from_millis(500);
const SILENCE_NS: u64 = 10_000_000_000;
