//! Edges between two hosts that are both not this one: which of them go directly, as the process sees it that runs the graph.
//!
//! Both hosts wait for each other and go to each other at once, with keys and addresses that pass through here; what is there first is taken.
//! How that goes at a host, see `peers`.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use grebe_flow::{Cut, CutEdge, Restart};
use serde_json::{Value, json};

use super::check::{self, Found};
use super::far::{Far, Heard, News};
use super::lines::{ToHere, ToThere};
use crate::cli::Via;
use crate::command::cp::lines::{Terms, Way};
use crate::interrupt;

/// All pairs of other hosts that have edges between them.
#[derive(Default)]
pub(super) struct Pairs(Vec<Pair>);

struct Pair {
    /// Their places among the other hosts. Its first edge leads from the first to the second.
    at: [usize; 2],
    links: Vec<u16>,
    has_both_directions: bool,
    goes: Goes,
    /// Since when nothing passes any more, and why.
    broke: Option<(Instant, String)>,
    is_gone: bool,
}

/// How samples go from one host to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goes {
    Directly(Way),
    /// Through this host, and why.
    Through(&'static str),
}

/// Two hosts that find each other, maybe.
#[derive(Default)]
struct Meeting {
    /// Of each end: whether it has reached the other one, once that is known; and whether the other one has reached it.
    reached: [Option<Option<Way>>; 2],
    was_reached: [bool; 2],
}

/// A way between two hosts that broke.
pub(super) struct Broken {
    pub(super) what: String,
    pub(super) links: Vec<u16>,
}

impl Pairs {
    pub(super) fn of(cut: &Cut, far: &[Far]) -> Self {
        let place = |part: usize| far.iter().position(|far| far.part == part);
        let mut pairs: Vec<Pair> = Vec::new();
        for (link, edge) in (0..).zip(&cut.links) {
            let (Some(from), Some(to)) = (place(edge.from), place(edge.to)) else { continue };
            match pairs.iter_mut().find(|pair| pair.at == [from, to] || pair.at == [to, from]) {
                Some(pair) => {
                    pair.links.push(link);
                    pair.has_both_directions |= pair.at[0] != from;
                }
                None => pairs.push(Pair {
                    at: [from, to],
                    links: vec![link],
                    has_both_directions: false,
                    goes: Goes::Through(UNREACHED),
                    broke: None,
                    is_gone: false,
                }),
            }
        }
        Self(pairs)
    }

    /// Lets the hosts of all pairs look for each other at once. What else is heard meanwhile is put aside.
    pub(super) fn meet(&mut self, far: &mut [Far], heard: &Receiver<Heard>, others: &mut Vec<Heard>) {
        let mut meetings: Vec<Option<Meeting>> = Vec::new();
        for pair in &mut self.0 {
            let via = pair.via(far);
            if let Ok(via) = via {
                for (at, peer) in pair.both_ways() {
                    let settings = far[at].settings();
                    let (terms, port) = (Terms { via, ..settings.terms() }, settings.port);
                    far[at].say(ToThere::Meet { peer: far[peer].number(), terms, port });
                }
            }
            pair.goes = Goes::Through(via.err().unwrap_or(UNREACHED));
            meetings.push(via.is_ok().then(Meeting::default));
        }
        let until = Instant::now() + DECIDED_WITHIN;
        while meetings.iter().any(Option::is_some) && Instant::now() < until && !interrupt::is_pending() {
            let heard = match heard.recv_timeout(LOOK_EVERY) {
                Ok(heard) => heard,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let is_closed = matches!(heard.news, News::Closed(_));
            for (pair, place) in self.0.iter_mut().zip(&mut meetings) {
                let Some(end) = pair.at.iter().position(|&at| at == heard.at) else { continue };
                if let Some(meeting) = place
                    && (is_closed || pair.hear(meeting, end, &heard.news, far))
                {
                    *place = None;
                }
            }
            if !matches!(heard.news, News::Said(ToHere::Ticket { .. } | ToHere::Met { .. })) {
                others.push(heard);
            }
        }
        for pair in self.0.iter().filter(|pair| !pair.is_direct()) {
            pair.tell_both(far, ToThere::Part);
        }
    }

    /// Whether a link goes directly.
    pub(super) fn has(&self, link: u16) -> bool {
        self.0.iter().any(|pair| pair.is_direct() && pair.links.contains(&link))
    }

    /// Which way the samples go between others, for people.
    pub(super) fn ways(&self, far: &[Far]) -> Vec<String> {
        let ways = self.0.iter().map(|pair| {
            let names = pair.names(far);
            match pair.goes {
                Goes::Directly(way) => format!("{names}: samples go over {}, directly", way.name()),
                Goes::Through(why) => format!("{names}: samples go through this host, {why}"),
            }
        });
        ways.collect()
    }

    /// The same for programs; `way` is null where they go through this host.
    pub(super) fn json(&self, far: &[Far]) -> Vec<Value> {
        let ways = self.0.iter().map(|pair| {
            let [from, to] = pair.at.map(|at| &far[at].name);
            let way = match pair.goes {
                Goes::Directly(way) => Some(way),
                Goes::Through(_) => None,
            };
            json!({ "host": from, "other": to, "way": way })
        });
        ways.collect()
    }

    /// Looks whether direct ways are good for their edges: the names of both hosts, and what was found.
    pub(super) fn look(
        &self,
        far: &[Far],
        links: &[CutEdge],
        is_wide: bool,
        mut next: impl FnMut(usize, Instant) -> Option<Heard>,
    ) -> Vec<(String, Found)> {
        let mut found = Vec::new();
        for (from, to) in self.0.iter().filter(|pair| pair.is_direct()).flat_map(Pair::both_ways) {
            let names = format!("{} -> {}", far[from].name, far[to].name);
            let next = |until| next(to, until);
            found.push((names, check::look_between(&far[from], &far[to], links, is_wide, next)));
        }
        found
    }

    /// A host is gone for good: told to those that are linked to it directly.
    pub(super) fn lose(&self, at: usize, far: &[Far]) {
        let with = self.0.iter().filter(|pair| pair.is_direct()).flat_map(Pair::both_ways);
        for (other, gone) in with.filter(|&(_, gone)| gone == at) {
            far[other].say(ToThere::Lost(far[gone].number()));
        }
    }

    /// Nothing passes between a host and another one any more, as it says. One of them may be gone, which shows soon.
    pub(super) fn note_broken(&mut self, at: usize, peer: u16, why: String, far: &[Far]) {
        let is_it =
            |pair: &&mut Pair| pair.both_ways().any(|(own, other)| own == at && far[other].number() == peer);
        if let Some(pair) = self.0.iter_mut().find(is_it).filter(|pair| !pair.is_gone) {
            pair.broke.get_or_insert_with(|| (Instant::now(), why));
        }
    }

    /// A way that broke between hosts that are both there. Both are told.
    pub(super) fn next_broken(&mut self, far: &[Far]) -> Option<Broken> {
        for pair in &mut self.0 {
            let Some((since, _)) = &pair.broke else { continue };
            let since = since.elapsed();
            let is_there = |at: &usize| far[*at].is_there() && far[*at].silence() < since;
            let is_over = pair.at.iter().any(|at| far[*at].is_over());
            if !is_over && (since < SHOWS_WITHIN || !pair.at.iter().all(is_there)) {
                continue;
            }
            let (_, why) = pair.broke.take()?;
            pair.is_gone = true;
            pair.tell_both(far, ToThere::Lost);
            if !is_over {
                let [from, to] = pair.at.map(|at| &far[at].name);
                let what = format!("the way between {from} and {to} is gone: {why}");
                return Some(Broken { what, links: pair.links.clone() });
            }
        }
        None
    }
}

impl Pair {
    fn is_direct(&self) -> bool {
        matches!(self.goes, Goes::Directly(_))
    }

    /// Each of the hosts, and the other one.
    fn both_ways(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let [one, other] = self.at;
        [(one, other), (other, one)].into_iter()
    }

    fn tell_both(&self, far: &[Far], said: impl Fn(u16) -> ToThere) {
        for (at, peer) in self.both_ways() {
            far[at].say(said(far[peer].number()));
        }
    }

    fn names(&self, far: &[Far]) -> String {
        let [from, to] = self.at.map(|at| &far[at].name);
        let arrow = if self.has_both_directions { "<->" } else { "->" };
        format!("{from} {arrow} {to}")
    }

    /// By which ways they may go to each other, as both are set; else why they are not to.
    fn via(&self, far: &[Far]) -> Result<Via, &'static str> {
        let [one, other] = self.at.map(|at| &far[at]);
        if one.restart == Restart::Always || other.restart == Restart::Always {
            return Err("since one of them is started again where it goes away");
        }
        common_via(one.settings().via, other.settings().via).ok_or("as --via and cp.toml say")
    }

    /// Takes in what one of its ends has said; whether it is decided.
    fn hear(&mut self, meeting: &mut Meeting, end: usize, news: &News, far: &mut [Far]) -> bool {
        let (at, other) = (self.at[end], self.at[1 - end]);
        let number = far[other].number();
        let is_peer = |peer: u16| peer == number;
        match news {
            News::Said(ToHere::Ticket { peer, ticket }) if is_peer(*peer) => {
                let ticket = ticket.as_ref().and_then(|ticket| far[at].ticket_for_others(ticket));
                match ticket {
                    Some(ticket) => far[other].say(ToThere::Reach { peer: far[at].number(), ticket }),
                    None => meeting.reached[1 - end] = Some(None),
                }
            }
            News::Said(ToHere::Met { peer, is_ours: true, way }) if is_peer(*peer) => {
                meeting.reached[end] = Some(*way);
            }
            News::Said(ToHere::Met { peer, is_ours: false, way }) if is_peer(*peer) => {
                meeting.was_reached[end] |= way.is_some();
            }
            _ => {}
        }
        match meeting.outcome() {
            None => return false,
            Some(None) => {}
            Some(Some((goes, way))) => {
                self.goes = Goes::Directly(way);
                for (end, (at, peer)) in self.both_ways().enumerate() {
                    let (peer, links) = (far[peer].number(), self.links.clone());
                    far[at].say(ToThere::Join { peer, is_ours: end == goes, links });
                }
            }
        }
        true
    }
}

impl Meeting {
    /// Which end has made the connection, and how; `Some(None)`: neither will.
    fn outcome(&self) -> Option<Option<(usize, Way)>> {
        let met = (0..2).find_map(|end| match self.reached[end] {
            Some(Some(way)) if self.was_reached[1 - end] => Some((end, way)),
            _ => None,
        });
        let is_in_vain = self.reached.iter().all(|reached| matches!(reached, Some(None)));
        match met {
            Some(met) => Some(Some(met)),
            None => is_in_vain.then_some(None),
        }
    }
}

/// The ways that two hosts may take to each other, as each is set for its way from here; `None`: none.
fn common_via(one: Via, other: Via) -> Option<Via> {
    let via = match (one, other) {
        (Via::Auto, via) | (via, Via::Auto) => via,
        (one, other) if one == other => one,
        _ => return None,
    };
    // By ssh or by a relay, each is only reached from here.
    (!matches!(via, Via::Ssh | Via::Relay)).then_some(via)
}

const UNREACHED: &str = "since neither reaches the other";
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// A host says within two seconds whether it has reached another one, but for the way there and back.
const DECIDED_WITHIN: Duration = Duration::from_secs(4);
/// A host that is gone is known to be so by then, or silent.
const SHOWS_WITHIN: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_at_both_ends_first_is_taken() {
        let mut meeting = Meeting::default();
        assert_eq!(meeting.outcome(), None);
        meeting.reached[0] = Some(None);
        assert_eq!(meeting.outcome(), None, "the other one may reach it");
        meeting.reached[1] = Some(Some(Way::Tcp));
        assert_eq!(meeting.outcome(), None, "the first does not know yet");
        meeting.was_reached[0] = true;
        assert_eq!(meeting.outcome(), Some(Some((1, Way::Tcp))));
        let in_vain = Meeting { reached: [Some(None); 2], was_reached: [false; 2] };
        assert_eq!(in_vain.outcome(), Some(None));
    }

    #[test]
    fn what_one_host_is_set_to_holds_for_both() {
        for (one, other, via) in [
            (Via::Auto, Via::Auto, Some(Via::Auto)),
            (Via::Auto, Via::Tcp, Some(Via::Tcp)),
            (Via::Udp, Via::Udp, Some(Via::Udp)),
            (Via::Udp, Via::Tcp, None),
            (Via::Auto, Via::Ssh, None),
            (Via::Relay, Via::Relay, None),
        ] {
            assert_eq!((common_via(one, other), common_via(other, one)), (via, via), "{one:?}, {other:?}");
        }
    }
}
