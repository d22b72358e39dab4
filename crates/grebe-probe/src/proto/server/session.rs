//! Session at the server: the client's requests and their answers.

use std::net::{IpAddr, SocketAddr};

use grebe_packet::ReplayWindow;

use crate::proto::handler::{Arrival, Outbox};
use crate::proto::limits::Limits;
use crate::proto::packet::{
    Body, EndReason, Packet, Request, Response, SIZES_MAX, TcpArrivals, TcpRequest, Welcome,
};
use crate::proto::signing::{Keys, Signer};
use crate::proto::tracker::Tracker;
use crate::proto::train::{Train, UDP_IP_BYTES};

/// Data to send on request, in addition to answers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum SendTask {
    Train(Train),
    Sizes([u16; SIZES_MAX]),
}

/// One client's session.
pub(crate) struct ServerSession {
    pub(crate) peer: SocketAddr,
    pub(crate) welcome: Welcome,
    keys: Keys,
    limits: Limits,
    window: ReplayWindow<REPLAY_WORDS>,
    next_number: u64,
    began_ns: u64,
    heard_ns: u64,
    /// Bytes of IP packets, in both directions.
    bytes: u64,
    tracker: Option<Tracker>,
    drops_before: Option<u64>,
    newest_train: u32,
    /// Newest response, with the id of its request.
    response: Option<(u32, Response)>,
    task: Option<SendTask>,
    sending: Option<SentTrain>,
    longest_size: u16,
    /// Newest TCP stream, and its arrivals once it is over.
    tcp: Option<(u32, Option<TcpArrivals>)>,
}

/// Progress of the server's newest train.
#[derive(Debug, Clone, Copy)]
struct SentTrain {
    train: u32,
    count: u32,
    is_done: bool,
}

impl ServerSession {
    pub(crate) fn new(welcome: Welcome, keys: Keys, limits: Limits, arrival: &Arrival<'_>) -> Self {
        Self {
            peer: arrival.from,
            welcome,
            keys,
            limits,
            window: ReplayWindow::default(),
            next_number: 0,
            began_ns: arrival.now_ns,
            heard_ns: arrival.now_ns,
            bytes: 0,
            tracker: None,
            drops_before: arrival.kernel_drops,
            newest_train: 0,
            response: None,
            task: None,
            sending: None,
            longest_size: 0,
            tcp: None,
        }
    }

    /// Whether its client was silent for too long, or has used all of its time.
    pub(crate) fn is_over(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.heard_ns) > SILENCE_NS
            || now_ns.saturating_sub(self.began_ns) > self.welcome.duration_max_ns
    }

    /// Takes the next data to send, with its signer.
    pub(crate) fn take_task(&mut self) -> Option<(SendTask, Signer)> {
        Some((self.task.take()?, self.keys.server.clone()))
    }

    /// Notes the end of a train after `count` datagrams.
    pub(crate) fn train_sent(&mut self, train: u32, count: u32) {
        if let Some(sending) = self.sending.as_mut().filter(|sending| sending.train == train) {
            (sending.count, sending.is_done) = (count, true);
        }
    }

    /// TCP stream requested by the first bytes of a connection, and its maximum rate. Each is granted once.
    pub(crate) fn open_tcp(&mut self, from: IpAddr, bytes: &[u8], now_ns: u64) -> Option<(TcpRequest, f64)> {
        let packet = Packet::decode(bytes, &self.keys.client)?;
        let Body::OpenTcp(request) = packet.body else { return None };
        let is_used = self.tcp.is_some_and(|(last, _)| last >= request.id);
        if packet.session != self.welcome.session || from != self.peer.ip() || is_used {
            return None;
        }
        self.heard_ns = now_ns;
        self.tcp = Some((request.id, None));
        let bytes_max = request.bytes_max.min(self.bytes_left());
        let duration_ns = request.duration_ns.min(TCP_NS_MAX);
        Some((TcpRequest { bytes_max, duration_ns, ..request }, self.limits.rate_max_bps))
    }

    /// Notes the end of a TCP stream that moved `moved` bytes in either direction.
    pub(crate) fn tcp_done(&mut self, id: u32, moved: u64, arrivals: Option<TcpArrivals>, now_ns: u64) {
        if self.tcp.is_some_and(|(last, _)| last == id) {
            self.tcp = Some((id, arrivals));
            self.bytes += moved;
            self.heard_ns = now_ns;
        }
    }

    /// Handles a datagram. Returns whether it ended the session.
    pub(crate) fn arrived(&mut self, arrival: &Arrival<'_>, out: &mut Outbox) -> bool {
        let Some(packet) = Packet::decode(arrival.bytes, &self.keys.client) else { return false };
        let body = match packet.body {
            // A copied datagram counts as a duplicate, whoever copied it: the path delivered it.
            Body::Data { train, seq, sent_ns } => {
                self.heard_ns = arrival.now_ns;
                self.data(train, seq, sent_ns, arrival);
                if self.bytes <= self.limits.bytes_max {
                    return false;
                }
                self.reply(Body::Bye { reason: EndReason::Limit }, out);
                return true;
            }
            // Keeps only the maximum, so a replay changes nothing.
            Body::Size => {
                self.longest_size = self.longest_size.max(arrival.bytes.len() as u16);
                return false;
            }
            body if self.window.accept(packet.number) => body,
            _ => return false,
        };
        self.heard_ns = arrival.now_ns;
        match body {
            Body::Ping { sent_ns } => {
                let replied_ns = arrival.now_ns;
                self.reply(Body::Pong { sent_ns, arrived_ns: arrival.arrived_ns, replied_ns }, out);
            }
            Body::Request { id, request } => {
                let response = match self.response {
                    // A repeated request means that the response was lost. Time-dependent answers are
                    // computed again.
                    Some((last, response @ (Response::Accepted | Response::Refused))) if last == id => {
                        response
                    }
                    _ => self.respond(&request, arrival.kernel_drops),
                };
                self.response = Some((id, response));
                self.reply(Body::Response { id, response }, out);
            }
            Body::Bye { .. } => return true,
            _ => {}
        }
        false
    }

    fn data(&mut self, train: Train, seq: u32, sent_ns: u64, arrival: &Arrival<'_>) {
        if arrival.bytes.len() != usize::from(train.size) {
            return;
        }
        self.bytes += u64::from(train.size) + UDP_IP_BYTES as u64;
        if train.id > self.newest_train {
            self.newest_train = train.id;
            self.drops_before = arrival.kernel_drops;
            self.tracker = Some(Tracker::new(train));
        }
        if let Some(tracker) = self.tracker.as_mut().filter(|tracker| *tracker.train() == train) {
            tracker.arrived(seq, sent_ns, arrival.arrived_ns);
        }
    }

    fn respond(&mut self, request: &Request, drops: Option<u64>) -> Response {
        match *request {
            Request::SendTrain(train) => self.accept_train(train),
            Request::TrainSent { train } => match self.sending {
                Some(sending) if sending.train == train => {
                    Response::TrainSent { sent: sending.count, is_done: sending.is_done }
                }
                _ => Response::Unknown,
            },
            Request::Summary { train } => match &self.tracker {
                Some(tracker) if tracker.train().id == train => {
                    let drops = drops.map(|drops| drops.saturating_sub(self.drops_before.unwrap_or(0)));
                    Response::Summary(tracker.summary(drops))
                }
                _ => Response::Unknown,
            },
            Request::SendSizes(sizes) => self.accept_sizes(sizes),
            Request::LongestSize => Response::LongestSize { bytes: self.longest_size },
            Request::TcpArrivals { id } => match self.tcp {
                Some((last, Some(arrivals))) if last == id => Response::TcpArrivals(arrivals),
                _ => Response::Unknown,
            },
        }
    }

    fn accept_train(&mut self, train: Train) -> Response {
        let is_burst = train.interval_ns == 0 && train.count <= BURST_MAX;
        let is_slow_enough = is_burst || train.rate_bps() <= self.limits.rate_max_bps * 1.02;
        let is_busy = self.sending.is_some_and(|sending| !sending.is_done) || self.task.is_some();
        if is_busy || !is_slow_enough || train.bytes() > self.bytes_left() {
            return Response::Refused;
        }
        self.bytes += train.bytes();
        self.sending = Some(SentTrain { train: train.id, count: 0, is_done: false });
        self.task = Some(SendTask::Train(train));
        Response::Accepted
    }

    fn accept_sizes(&mut self, sizes: [u16; SIZES_MAX]) -> Response {
        let bytes = sizes.iter().map(|&size| u64::from(size) * 3).sum::<u64>();
        if self.task.is_some() || bytes > self.bytes_left() {
            return Response::Refused;
        }
        self.bytes += bytes;
        self.task = Some(SendTask::Sizes(sizes));
        Response::Accepted
    }

    fn bytes_left(&self) -> u64 {
        self.limits.bytes_max.saturating_sub(self.bytes)
    }

    fn reply(&mut self, body: Body, out: &mut Outbox) {
        let packet = Packet { session: self.welcome.session, number: self.next_number, body };
        self.next_number += 1;
        out.push(Some(self.peer), &packet, &self.keys.server);
    }
}

const REPLAY_WORDS: usize = 64;
const SILENCE_NS: u64 = 10_000_000_000;
const TCP_NS_MAX: u64 = 60_000_000_000;
const BURST_MAX: u32 = 256;
