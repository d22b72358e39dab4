//! Locks a port to one sender until it is silent for 500 ms, for datagrams without a beginning of a stream.

use std::net::SocketAddr;
use std::time::Instant;

use super::ownership::{Ownership, Whose};
use super::silence::Silence;
use crate::error::Error;
use crate::transport::SecondSender;

/// The senders to a port. The first owns the stream until it is silent for half a second.
#[derive(Debug)]
pub(crate) struct Senders {
    port: Ownership<SocketAddr>,
    has_ended: bool,
    /// Whether two addresses may belong to one sender.
    is_same: fn(SocketAddr, SocketAddr) -> bool,
    second: SecondSender,
}

impl Senders {
    pub(crate) fn new(is_same: fn(SocketAddr, SocketAddr) -> bool) -> Self {
        Self { port: Ownership::default(), has_ended: false, is_same, second: SecondSender::default() }
    }

    pub(crate) fn silence(&mut self) -> &mut Silence {
        &mut self.port.silence
    }

    /// # Errors
    /// [`Error::Idle`]: no datagram within the timeout.
    pub(crate) fn check(&mut self) -> Result<(), Error> {
        self.port.silence.check()
    }

    /// Handles an arrival of `datagrams`.
    pub(crate) fn hear(&mut self, from: SocketAddr, datagrams: usize, now: Instant) -> Whose {
        let is_ours = self.port.owner().is_some_and(|owner| (self.is_same)(owner, from));
        let comes_back = self.has_ended && self.port.was_owner(from);
        if !is_ours && !comes_back && !self.port.silence.allows_takeover(now) {
            self.count_foreign(from, datagrams, now);
            return Whose::Foreign;
        }
        self.port.silence.reset(now);
        // Another port of the same sender becomes the owner with its first data.
        if is_ours {
            return Whose::Ours;
        }
        let whose = self.port.give(from, true);
        self.second.forget(from);
        self.has_ended &= whose == Whose::Ours;
        whose
    }

    /// Data came from this port of the sender, so its end may too.
    pub(crate) fn took(&mut self, from: SocketAddr) {
        self.port.move_to(from);
    }

    /// Handles an empty datagram: the end of the stream, if its owner sent it.
    pub(crate) fn hear_end(&mut self, from: SocketAddr, now: Instant) {
        if self.port.is_owner(from) {
            self.has_ended = true;
        } else {
            self.count_foreign(from, 1, now);
        }
    }

    /// Whether the stream has ended and the previous owner no longer sends.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.has_ended && !self.port.is_disputed(now)
    }

    fn count_foreign(&mut self, from: SocketAddr, datagrams: usize, now: Instant) {
        if self.port.count_foreign(from, datagrams as u64, now) {
            self.second.note(from);
        }
    }

    pub(crate) fn foreign_datagrams(&self) -> u64 {
        self.port.foreign()
    }

    /// Another sender to the port.
    pub(crate) fn second(&self) -> SecondSender {
        self.second.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_first_sender_keeps_the_stream_and_the_other_is_counted_and_reported() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let (first, other) = (address("10.0.0.1:7"), address("10.0.0.1:8"));
        let mut senders = Senders::new(|one, other| one == other);
        let (second, now) = (senders.second(), Instant::now());
        let at = |ms| now + Duration::from_millis(ms);
        assert_eq!(senders.hear(first, 1, at(0)), Whose::Ours);
        assert_eq!((senders.hear(other, 3, at(400)), second.address()), (Whose::Foreign, Some(other)));
        assert_eq!(senders.hear(first, 1, at(499)), Whose::Ours);
        (550..998).step_by(100).for_each(|ms| senders.port.silence.listen(at(ms)));
        assert_eq!(senders.hear(other, 2, at(998)), Whose::Foreign);
        assert_eq!((senders.hear(other, 1, at(999)), senders.foreign_datagrams()), (Whose::Newcomer, 5));
        assert_eq!(second.address(), None, "its stream is shown");
        assert_eq!([first, other].map(|it| senders.hear(it, 1, at(1000))), [Whose::Foreign, Whose::Ours]);
    }

    #[test]
    fn an_empty_datagram_ends_the_stream_of_who_sends_it_and_no_other() {
        let address = |port| SocketAddr::from(([10, 0, 0, 1], port));
        let (first, other) = (address(7), address(8));
        let mut senders = Senders::new(|one, other| one == other);
        let now = Instant::now();
        let at = |ms| now + Duration::from_millis(ms);
        senders.hear_end(other, at(0));
        assert!(!senders.is_over(at(0)), "nobody sent anything");
        senders.hear(first, 1, at(1));
        senders.hear_end(other, at(2_000));
        assert!(!senders.is_over(at(2_000)), "after a silence neither");
        assert_eq!((senders.foreign_datagrams(), senders.second().address()), (2, Some(other)));
        senders.hear_end(first, at(2_001));
        assert!(senders.is_over(at(2_001)));
    }

    #[test]
    fn the_end_of_a_takeover_does_not_end_the_first_sender() {
        let address = |port| SocketAddr::from(([10, 0, 0, 1], port));
        let (first, other) = (address(7), address(8));
        let mut senders = Senders::new(|one, other| one == other);
        let now = Instant::now();
        let at = |ms| now + Duration::from_millis(ms);
        senders.hear(first, 1, at(0));
        [200, 400].into_iter().for_each(|ms| senders.port.silence.listen(at(ms)));
        assert_eq!(senders.hear(other, 1, at(600)), Whose::Newcomer);
        assert_eq!(senders.hear(first, 1, at(700)), Whose::Foreign);
        senders.hear_end(other, at(800));
        assert!(!senders.is_over(at(800)));
        assert!(senders.is_over(at(1_200)), "it has fallen silent, too");
        assert_eq!(senders.hear(first, 1, at(810)), Whose::Newcomer);
        assert!(!senders.is_over(at(9_000)));
        senders.hear_end(first, at(9_001));
        assert!(senders.is_over(at(9_001)));
    }

    #[test]
    fn a_sending_host_may_change_its_port() {
        let address = |port| SocketAddr::from(([10, 0, 0, 1], port));
        let mut senders = Senders::new(|one, other| one.ip() == other.ip());
        let now = Instant::now();
        assert_eq!([7, 8].map(|port| senders.hear(address(port), 1, now)), [Whose::Ours; 2]);
        assert_eq!(senders.second().address(), None);
        senders.hear_end(address(8), now);
        assert!(!senders.is_over(now), "nothing of the stream came from that port");
        senders.took(address(8));
        senders.hear_end(address(8), now);
        assert!(senders.is_over(now));
    }
}
