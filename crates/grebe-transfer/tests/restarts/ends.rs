//! Both ends of a session, and what a kill leaves of them.

use grebe_packet::Key;
use grebe_transfer::Verdict;
use grebe_transfer::internals::{
    Arrived, Frame, HEADER_BYTES, Initiator, Item, Offer, RangeSet, ReceivedPackets, Receiver, Responder,
    Role, Sender, SenderOptions, Session, TAG_BYTES,
};

/// How a side ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Whole,
    Killed,
    /// Nobody answered, or nobody came.
    Alone,
    /// Nothing was heard any more.
    Silent,
    /// The other side ended the session.
    Closed,
}

impl End {
    pub(crate) fn is_error(self) -> bool {
        !matches!(self, Self::Whole | Self::Killed)
    }
}

/// The receiver's disk: what lies on it outlives a kill; what is known of it is what was noted.
#[derive(Debug, Default, Clone)]
pub(crate) struct Disk {
    bytes: Vec<u8>,
    written: RangeSet,
    pub noted: RangeSet,
}

impl Disk {
    /// Whole groups of what was written, as a journal has them.
    fn note(&mut self, total_bytes: u64) {
        for group in 0..total_bytes.div_ceil(GROUP_BYTES) {
            let range = group * GROUP_BYTES..((group + 1) * GROUP_BYTES).min(total_bytes);
            if self.written.contains(&range) {
                self.noted.insert(range);
            }
        }
    }

    pub(crate) fn after_a_kill(self) -> Self {
        Self { written: self.noted.clone(), ..self }
    }

    /// What ends by itself notes what it has.
    pub(crate) fn after_an_end(mut self) -> Self {
        let total_bytes = self.bytes.len() as u64;
        self.note(total_bytes);
        self.after_a_kill()
    }
}

pub(crate) struct Ends {
    pub sender: SenderEnd,
    pub receiver: ReceiverEnd,
}

impl Ends {
    /// When one of them is to be polled again, the sender and the receiver not before they start.
    pub(crate) fn next_time_us(&self, now_us: u64, starts_us: (u64, u64)) -> u64 {
        let sender_us = if self.sender.end.is_some() { u64::MAX } else { self.sender.next_time_us(now_us) };
        let receiver_us =
            if self.receiver.end.is_some() { u64::MAX } else { self.receiver.next_time_us(now_us) };
        sender_us.max(starts_us.0).min(receiver_us.max(starts_us.1)).max(now_us + 1)
    }
}

/// Before there is a session.
enum Meeting {
    Asking { initiator: Box<Initiator>, next_us: u64, until_us: Option<u64> },
    Answering { responder: Responder, until_us: Option<u64> },
}

impl Meeting {
    /// `asks`: what it wants that has the ticket; `None`: it made the ticket.
    fn new(key: &Key, asks: Option<Role>, wants: Role) -> Self {
        match asks {
            Some(role) => {
                let initiator = Box::new(Initiator::new(key, role).unwrap());
                Self::Asking { initiator, next_us: 0, until_us: None }
            }
            None => Self::Answering { responder: Responder::new(key.clone(), wants), until_us: None },
        }
    }

    fn next_time_us(&self) -> u64 {
        match self {
            Self::Asking { next_us, until_us, .. } => (*next_us).min(until_us.unwrap_or(0)),
            Self::Answering { until_us, .. } => until_us.unwrap_or(0),
        }
    }

    /// The question, where it is time to ask; an error where it is too late.
    fn poll(&mut self, now_us: u64) -> Result<Option<Vec<u8>>, End> {
        match self {
            Self::Asking { initiator, next_us, until_us } => {
                if now_us >= *until_us.get_or_insert(now_us + ANSWER_US) {
                    return Err(End::Alone);
                }
                if now_us < *next_us {
                    return Ok(None);
                }
                *next_us = now_us + ASK_EVERY_US;
                Ok(Some(initiator.datagram().to_vec()))
            }
            Self::Answering { until_us, .. } => {
                let late = now_us >= *until_us.get_or_insert(now_us + TICKET_US);
                if late { Err(End::Alone) } else { Ok(None) }
            }
        }
    }

    fn take(&mut self, datagram: &mut [u8]) -> Met {
        match self {
            Self::Asking { initiator, .. } => {
                initiator.on_reply(datagram).map_or(Met::Nobody, |session| Met::Peer(session.into(), None))
            }
            Self::Answering { responder, .. } => match responder.on_init(datagram) {
                Ok(reply) => Met::Question(reply.to_vec()),
                Err(_) => match responder.on_sealed(datagram) {
                    Ok((session, number, plain)) => Met::Peer(session.into(), Some((number, plain.to_vec()))),
                    Err(_) => Met::Nobody,
                },
            },
        }
    }
}

/// What a datagram brings before there is a session.
enum Met {
    Nobody,
    /// The answer to it.
    Question(Vec<u8>),
    /// The session, and the first packet if one came in it.
    Peer(Box<Session>, Option<(u64, Vec<u8>)>),
}

pub(crate) struct SenderEnd {
    meeting: Option<Meeting>,
    session: Option<Session>,
    core: Sender,
    received: ReceivedPackets,
    total_bytes: u64,
    pub end: Option<End>,
}

impl SenderEnd {
    pub(crate) fn new(key: &Key, asks: Option<Role>, total_bytes: u64, options: SenderOptions) -> Self {
        let mut core = Sender::new(total_bytes, options);
        core.make_available(total_bytes);
        Self {
            meeting: Some(Meeting::new(key, asks, Role::Receive)),
            session: None,
            core,
            received: ReceivedPackets::default(),
            total_bytes,
            end: None,
        }
    }

    fn next_time_us(&self, now_us: u64) -> u64 {
        match &self.meeting {
            Some(meeting) => meeting.next_time_us(),
            // As the loop around it: that it is done, or that all is silent, is looked at now and then.
            None => self.core.next_time_us(now_us).min(now_us + 200_000),
        }
    }

    pub(crate) fn take(&mut self, now_us: u64, datagram: &mut [u8]) -> Option<Vec<u8>> {
        if self.end.is_some() {
            return None;
        }
        if let Some(meeting) = &mut self.meeting {
            let (session, first) = match meeting.take(datagram) {
                Met::Nobody => return None,
                Met::Question(reply) => return Some(reply),
                Met::Peer(session, first) => (session, first),
            };
            (self.session, self.meeting) = (Some(*session), None);
            if let Some((number, plain)) = first {
                self.received.accept(number);
                self.understand(now_us, &plain);
            }
            return None;
        }
        let session = self.session.as_mut()?;
        let (number, plain) = session.open(&self.received, datagram).ok()?;
        self.received.accept(number);
        let plain = plain.to_vec();
        self.understand(now_us, &plain);
        None
    }

    fn understand(&mut self, now_us: u64, plain: &[u8]) {
        match Frame::decode(plain).unwrap() {
            Frame::Feedback(report) => self.core.on_feedback(now_us, &report),
            Frame::Outcome(verdict) => self.core.on_outcome(verdict),
            Frame::Held(held) => assert!(self.core.on_held(&held).is_ok()),
            Frame::Ready => self.core.on_ready(now_us),
            other => panic!("a receiver does not say {other:?}"),
        }
    }

    pub(crate) fn poll(&mut self, now_us: u64) -> Option<Vec<u8>> {
        if self.end.is_some() {
            return None;
        }
        if let Some(meeting) = &mut self.meeting {
            return meeting.poll(now_us).unwrap_or_else(|end| {
                self.end = Some(end);
                None
            });
        }
        let session = self.session.as_mut()?;
        let Some(transmit) = self.core.poll_transmit(now_us) else {
            if self.core.is_done() {
                self.end =
                    Some(if self.core.verdict() == Some(Verdict::Whole) { End::Whole } else { End::Closed });
            } else if self.core.is_peer_gone(now_us) {
                self.end = Some(End::Silent);
            }
            return None;
        };
        let stamp = transmit.stamp;
        let mut frame = vec![0; 2_048];
        let length = match transmit.item {
            Item::Data { offset, len } => {
                let payload: Vec<u8> = (offset..offset + u64::from(len)).map(pattern).collect();
                Frame::Data { stamp, offset, payload: &payload }.encode(&mut frame).unwrap()
            }
            Item::Offer => {
                let offer = Offer {
                    total_bytes: self.total_bytes,
                    index_bytes: 0,
                    content: [7; 32],
                    touched: [0; 8],
                };
                Frame::Offer { stamp, offer }.encode(&mut frame).unwrap()
            }
            Item::Probe { datagram_bytes } => {
                let padding = datagram_bytes as usize - HEADER_BYTES - TAG_BYTES - 6;
                Frame::Probe { stamp, padding }.encode(&mut frame).unwrap()
            }
            Item::Ping => panic!("files have no pauses"),
            Item::Close => Frame::Close.encode(&mut frame).unwrap(),
        };
        Some(sealed(session, transmit.number, &frame[..length]))
    }
}

pub(crate) struct ReceiverEnd {
    meeting: Option<Meeting>,
    session: Option<Session>,
    core: Receiver,
    number: u64,
    ready_us: u64,
    noted_us: u64,
    total_bytes: Option<u64>,
    pub disk: Disk,
    pub end: Option<End>,
}

impl ReceiverEnd {
    pub(crate) fn new(key: &Key, asks: Option<Role>, disk: &Disk, silence_us_max: u64) -> Self {
        let mut core = Receiver::new(1 << 20);
        core.silence_us_max = silence_us_max;
        Self {
            meeting: Some(Meeting::new(key, asks, Role::Send)),
            session: None,
            core,
            number: 0,
            ready_us: 0,
            noted_us: 0,
            total_bytes: None,
            disk: disk.clone(),
            end: None,
        }
    }

    /// Whether all bytes lie on the disk, in their places.
    pub(crate) fn is_whole(&self) -> bool {
        let right = |range: std::ops::Range<u64>| {
            range.into_iter().all(|at| self.disk.bytes[at as usize] == pattern(at))
        };
        assert!(self.disk.written.iter().all(right), "a byte in a wrong place");
        !self.disk.bytes.is_empty() && self.disk.written.contains(&(0..self.disk.bytes.len() as u64))
    }

    fn next_time_us(&self, now_us: u64) -> u64 {
        match &self.meeting {
            Some(meeting) => meeting.next_time_us(),
            None => self.core.next_time_us().min(now_us + 100_000),
        }
    }

    pub(crate) fn take(&mut self, now_us: u64, datagram: &mut [u8]) -> Option<Vec<u8>> {
        if self.end.is_some() {
            return None;
        }
        if let Some(meeting) = &mut self.meeting {
            let (session, first) = match meeting.take(datagram) {
                Met::Nobody => return None,
                Met::Question(reply) => return Some(reply),
                Met::Peer(session, first) => (session, first),
            };
            (self.session, self.meeting) = (Some(*session), None);
            self.core.heard(now_us);
            if let Some((number, plain)) = first {
                self.understand(now_us, number, datagram.len(), &plain);
            }
            return None;
        }
        let session = self.session.as_mut()?;
        let datagram_bytes = datagram.len();
        let (number, plain) = session.open(self.core.packets(), datagram).ok()?;
        let plain = plain.to_vec();
        self.understand(now_us, number, datagram_bytes, &plain);
        None
    }

    fn understand(&mut self, now_us: u64, number: u64, datagram_bytes: usize, plain: &[u8]) {
        let frame = Frame::decode(plain).unwrap();
        match self.core.on_packet(now_us, number, datagram_bytes, &frame) {
            Arrived::Offer(offer) => {
                self.total_bytes = Some(offer.total_bytes);
                self.disk.bytes.resize(offer.total_bytes as usize, 0);
                self.disk.noted.iter().for_each(|range| self.core.hold(range));
            }
            Arrived::Data { offset, payload } => {
                self.disk.bytes[offset as usize..][..payload.len()].copy_from_slice(payload);
                self.disk.written.insert(offset..offset + payload.len() as u64);
            }
            Arrived::Nothing => {}
        }
        if self.core.is_complete() {
            self.core.conclude(now_us, Verdict::Whole);
        }
    }

    pub(crate) fn poll(&mut self, now_us: u64) -> Option<Vec<u8>> {
        if self.end.is_some() {
            return None;
        }
        if let Some(meeting) = &mut self.meeting {
            return meeting.poll(now_us).unwrap_or_else(|end| {
                self.end = Some(end);
                None
            });
        }
        if now_us >= self.noted_us + NOTE_EVERY_US {
            self.noted_us = now_us;
            self.disk.note(self.total_bytes.unwrap_or(0));
        }
        let mut frame = [0; 1_150];
        let length = if !self.core.is_offered() && now_us >= self.ready_us {
            self.ready_us = now_us + READY_EVERY_US;
            Frame::Ready.encode(&mut frame)
        } else {
            self.core.poll_report(now_us, &mut frame)
        };
        let Some(length) = length else {
            self.look_for_the_end(now_us);
            return None;
        };
        self.number += 1;
        Some(sealed(self.session.as_mut()?, self.number - 1, &frame[..length]))
    }

    fn look_for_the_end(&mut self, now_us: u64) {
        if self.core.is_over(now_us) {
            self.end = Some(match self.core.verdict() {
                Some(_) => End::Whole,
                None if self.core.is_closed() => End::Closed,
                None => End::Silent,
            });
        }
    }
}

fn sealed(session: &mut Session, number: u64, frame: &[u8]) -> Vec<u8> {
    let mut datagram = [&[0; HEADER_BYTES][..], frame, &[0; TAG_BYTES]].concat();
    session.seal(number, &mut datagram).unwrap();
    datagram
}

fn pattern(at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

const GROUP_BYTES: u64 = 16 << 10;
const ASK_EVERY_US: u64 = 500_000;
const ANSWER_US: u64 = 10_000_000;
const TICKET_US: u64 = 60_000_000;
const NOTE_EVERY_US: u64 = 1_000_000;
const READY_EVERY_US: u64 = 100_000;
