//! Sessions: two ends that find each other by a ticket and carry a stream each way. They use UDP, or TCP
//! where no UDP passes.

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

/// Default limit for the silence of a peer that has answered once.
const KEEP_TRYING: Duration = Duration::from_micros(SILENCE_US_MAX);

/// Answer to a holder of the ticket when it is already used.
fn taken(responder: &mut Option<Responder>, datagram: &mut [u8]) -> Option<Vec<u8>> {
    let mut frame = [0; 2];
    Frame::Outcome(Verdict::Taken).encode(&mut frame)?;
    responder.as_mut()?.refuse(datagram, &frame)
}

/// Event that a user may want to know before the end. Its `Display` is a sentence for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// No answer for two seconds, neither over UDP nor over TCP. Both attempts go on.
    NoAnswerYet {
        /// The peer.
        peer: SocketAddr,
    },
    /// The connection uses TCP from now on.
    OverTcp,
    /// No packet from the peer for six seconds. Reported once until the peer is heard again.
    Silent {
        /// Last known address of the peer.
        peer: SocketAddr,
        /// Duration of the silence.
        silent: Duration,
        /// Whether this end dials the peer over TCP; otherwise it waits for the peer to dial.
        dials: bool,
        /// Silence after which this end gives up.
        ends_after: Duration,
    },
    /// A peer that was reported silent is heard again.
    HeardAgain {
        /// Present address of the peer.
        peer: SocketAddr,
        /// Duration of the silence.
        silent: Duration,
    },
    /// The relay did not answer for two seconds. The attempts go on.
    NoRelayYet {
        /// The ticket's relay.
        relay: Address,
    },
    /// The relay refuses this end. The attempts go on.
    RelayRefuses {
        /// The ticket's relay.
        relay: Address,
        /// The relay's reason.
        reason: Refusal,
    },
    /// Both ends met at a relay and found a direct route.
    Direct {
        /// The other end.
        peer: SocketAddr,
        /// Network elements on the direct route.
        through: Through,
    },
    /// The relay is reached over TCP.
    RelayOverTcp {
        /// The ticket's relay.
        relay: Address,
    },
    /// Both ends met at a relay and send through it from now on.
    Relayed {
        /// The ticket's relay.
        relay: Address,
        /// Why the route is not direct.
        why: WhyRelayed,
    },
}

/// Why a transfer goes through the relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyRelayed {
    /// The user chose the relay.
    Chosen,
    /// No direct route let a datagram through in time.
    NoDirectWay,
    /// The direct route fell silent.
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
                    WhyRelayed::Chosen => "as requested",
                    WhyRelayed::NoDirectWay => "because no direct way let a datagram through",
                    WhyRelayed::DirectWayDied => "because the direct way has fallen silent",
                };
                write!(f, "relayed by {relay}, {why}")
            }
        }
    }
}

/// Text for a relay's refusal.
fn words_of_refusal(reason: Refusal) -> &'static str {
    match reason {
        Refusal::Full => "it has as many sessions as it takes",
        Refusal::TooMany => "it has as many sessions of this host as it takes from one",
        Refusal::Taken => "another peer with this ticket is connected",
    }
}

/// Transport of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// UDP, or TCP where no UDP passes.
    #[default]
    Any,
    /// UDP only.
    Udp,
    /// TCP only.
    Tcp,
}

/// Callback for each [`Notice`].
pub type Notify = Arc<dyn Fn(Notice) + Send + Sync>;
