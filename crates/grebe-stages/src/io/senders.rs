//! Whose stream a port takes, where anybody may send to it.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::second_sender::SecondSender;
use crate::error::Error;
use crate::silence::Silence;

/// Who sends to a port: the stream is the first one's, until it has been silent for half a second.
#[derive(Debug)]
pub(crate) struct Senders {
    taken: Option<SocketAddr>,
    /// Whether two addresses may be one sender's.
    is_same: fn(SocketAddr, SocketAddr) -> bool,
    silence: Silence,
    second: SecondSender,
    told: Option<SocketAddr>,
    foreign_datagrams: u64,
}

/// Whose a datagram is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    Ours,
    /// Of who has just become the sender, behind another.
    Newcomer,
    /// It is left out, and counted.
    Foreign,
}

impl Senders {
    pub(crate) fn new(is_same: fn(SocketAddr, SocketAddr) -> bool) -> Self {
        Self {
            taken: None,
            is_same,
            silence: Silence::begin(),
            second: SecondSender::default(),
            told: None,
            foreign_datagrams: 0,
        }
    }

    /// Makes silence an error once it has lasted for so long.
    pub(crate) fn ends_after(&mut self, timeout: Option<Duration>) {
        self.silence.ends_after(timeout);
    }

    /// # Errors
    /// [`Error::Idle`]: nothing came for as long as was asked for.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.silence.check()
    }

    /// `datagrams` have come together.
    pub(crate) fn hear(&mut self, from: SocketAddr, datagrams: usize, now: Instant) -> Whose {
        let is_ours = self.taken.is_some_and(|taken| (self.is_same)(taken, from));
        if !is_ours && !self.silence.gives_way(now) {
            self.foreign_datagrams += datagrams as u64;
            if self.told != Some(from) {
                self.second.note(from);
                self.told = Some(from);
            }
            return Whose::Foreign;
        }
        self.silence.heard(now);
        match self.taken.replace(from) {
            Some(_) if !is_ours => Whose::Newcomer,
            _ => Whose::Ours,
        }
    }

    pub(crate) fn foreign_datagrams(&self) -> u64 {
        self.foreign_datagrams
    }

    /// Who else sends to the port.
    pub(crate) fn second(&self) -> SecondSender {
        self.second.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_keeps_its_stream_while_it_sends_and_the_other_is_counted_and_told() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let (first, other) = (address("10.0.0.1:7"), address("10.0.0.1:8"));
        let mut senders = Senders::new(|one, other| one == other);
        let (second, now) = (senders.second(), Instant::now());
        let at = |ms| now + Duration::from_millis(ms);
        assert_eq!(senders.hear(first, 1, at(0)), Whose::Ours);
        assert_eq!((senders.hear(other, 3, at(400)), second.address()), (Whose::Foreign, Some(other)));
        assert_eq!(senders.hear(first, 1, at(499)), Whose::Ours);
        assert_eq!(senders.hear(other, 2, at(998)), Whose::Foreign);
        assert_eq!((senders.hear(other, 1, at(999)), senders.foreign_datagrams()), (Whose::Newcomer, 5));
        assert_eq!([first, other].map(|it| senders.hear(it, 1, at(1000))), [Whose::Foreign, Whose::Ours]);
    }

    #[test]
    fn where_the_host_is_the_sender_its_ports_are_one() {
        let address = |port| SocketAddr::from(([10, 0, 0, 1], port));
        let mut senders = Senders::new(|one, other| one.ip() == other.ip());
        let now = Instant::now();
        assert_eq!([7, 8].map(|port| senders.hear(address(port), 1, now)), [Whose::Ours; 2]);
        assert_eq!(senders.second().address(), None);
    }
}
