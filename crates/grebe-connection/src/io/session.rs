//! Sessions: two ends that find each other by a ticket, and carry a stream each way, over UDP or, where no UDP passes, over TCP.

mod attempt;
pub(crate) mod connect;
pub(crate) mod connection;
mod finding;
mod outlet;
mod relay_by_tcp;
mod rendezvous;
mod route;
mod tcp;

use crate::proto::handshake::Responder;
use crate::proto::wire::{Frame, SILENCE_US_MAX, Verdict};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use grebe_packet::Address;
use grebe_relay::{Refusal, Through};

/// For how long a peer that was there may be silent, unless the user says otherwise.
const KEEP_TRYING: Duration = Duration::from_micros(SILENCE_US_MAX);

/// What is said to somebody with the ticket when it is spent already.
fn taken(responder: &mut Option<Responder>, datagram: &mut [u8]) -> Option<Vec<u8>> {
    let mut frame = [0; 2];
    Frame::Outcome(Verdict::Taken).encode(&mut frame)?;
    responder.as_mut()?.refuse(datagram, &frame)
}

/// What a user may want to know before the end. As text it is a sentence for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// Nothing was heard for two seconds, neither over UDP nor over TCP; both are tried on.
    NoAnswerYet {
        /// Who was asked.
        peer: SocketAddr,
    },
    /// All goes over TCP from now on.
    OverTcp,
    /// Nothing has come from the peer for six seconds; it is told once until the peer is heard.
    Silent {
        /// Where the peer was last.
        peer: SocketAddr,
        /// For how long nothing came.
        silent: Duration,
        /// This end dials the peer over TCP; otherwise it waits for the peer to dial.
        dials: bool,
        /// Silence after which this end gives up.
        ends_after: Duration,
    },
    /// A peer that was told to be silent is heard.
    HeardAgain {
        /// Where the peer is now.
        peer: SocketAddr,
        /// For how long nothing came.
        silent: Duration,
    },
    /// The relay did not answer for two seconds; it is tried on.
    NoRelayYet {
        /// The ticket's.
        relay: Address,
    },
    /// The relay does not take this end; it is tried on.
    RelayRefuses {
        /// The ticket's.
        relay: Address,
        /// What it says.
        reason: Refusal,
    },
    /// Both ends have met at a relay, and found a way without it.
    Direct {
        /// The other end.
        peer: SocketAddr,
        /// What the way leads through.
        through: Through,
    },
    /// The relay is reached over TCP.
    RelayOverTcp {
        /// The ticket's.
        relay: Address,
    },
    /// Both ends have met at a relay, and go by it from now on.
    Relayed {
        /// The ticket's.
        relay: Address,
        /// Why not directly.
        why: WhyRelayed,
    },
}

/// Why a transfer goes by the relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyRelayed {
    /// This end was told to.
    Chosen,
    /// No direct way let a datagram through in time.
    NoDirectWay,
    /// There was one, and it has fallen silent.
    DirectWayDied,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAnswerYet { peer } => {
                write!(f, "no answer from {peer} for 2 s, over UDP or TCP: trying on")
            }
            Self::OverTcp => f.write_str("UDP does not pass: over TCP, as fast as that goes"),
            Self::Silent { peer, silent, dials, ends_after } => {
                let tries = if *dials { "tries UDP and TCP" } else { "takes UDP and TCP" };
                write!(
                    f,
                    "nothing heard from {peer} for {} s: this side {tries}, and gives up after {} s of silence",
                    silent.as_secs(),
                    ends_after.as_secs()
                )
            }
            Self::HeardAgain { peer, silent } => {
                write!(f, "{peer} is heard again after {:.0} s", silent.as_secs_f64())
            }
            Self::NoRelayYet { relay } => write!(f, "no answer from the relay {relay} for 2 s: trying on"),
            Self::RelayRefuses { relay, reason } => {
                write!(f, "the relay {relay} refuses: {}; trying on", words_of_refusal(*reason))
            }
            Self::Direct { peer, through } => {
                let through = match through {
                    Through::Nothing => "",
                    Through::PrivateNetwork => ", within a private network",
                    Through::OwnNat => ", through the NAT of this side",
                    Through::TheirNat => ", through the NAT of the other side",
                    Through::BothNats => ", through both NATs",
                };
                write!(f, "directly to {peer}{through}")
            }
            Self::RelayOverTcp { relay } => {
                write!(f, "the relay {relay} is reached over TCP: no UDP comes back from it")
            }
            Self::Relayed { relay, why } => {
                let why = match why {
                    WhyRelayed::Chosen => "as was asked for",
                    WhyRelayed::NoDirectWay => "because no direct way let a datagram through",
                    WhyRelayed::DirectWayDied => "because the direct way has fallen silent",
                };
                write!(f, "relayed by {relay}, {why}")
            }
        }
    }
}

/// What a relay's refusal means to a person.
fn words_of_refusal(reason: Refusal) -> &'static str {
    match reason {
        Refusal::Full => "it has as many sessions as it takes",
        Refusal::TooMany => "it has as many sessions of this host as it takes from one",
        Refusal::Taken => "somebody else with this ticket is there",
    }
}

/// What may carry a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// UDP, and TCP where no UDP passes.
    #[default]
    Any,
    /// UDP only.
    Udp,
    /// TCP only.
    Tcp,
}

/// Is called with what a user may want to know before the end.
pub type Notify = Arc<dyn Fn(Notice) + Send + Sync>;
