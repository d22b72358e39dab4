//! Two other hosts with edges between them, from the view of the coordinator.

use std::time::{Duration, Instant};

use grebe_flow::{Cut, Policy, Restart};
use grebe_remote::{Route, Terms, Via};

use super::lines::{DEAD_AFTER, SILENT_FOR, ToCoordinator, ToHost};
use super::remote_host::{News, RemoteHost};
use crate::cli::printable;

pub(super) struct Pair {
    /// Their positions. The first edge leads from the first to the second.
    pub(super) at: [usize; 2],
    pub(super) links: Vec<u16>,
    has_both_directions: bool,
    /// Permitted routes between them, or the reason against a direct connection.
    via: Result<Via, &'static str>,
    /// Its edges join again after a break: a host restarts, or the producer does not wait.
    is_kept: bool,
    pub(super) goes: PairRoute,
    /// They have been connected before.
    was_direct: bool,
    /// Number of attempts to connect.
    round: u32,
    meeting: Option<Meeting>,
    trouble: Option<LinkFault>,
    apart_since: Option<Instant>,
    is_gone: bool,
}

/// Route of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PairRoute {
    Directly(Route),
    /// Through this host, with the reason.
    Through(&'static str),
}

/// Two hosts that connect to each other.
struct Meeting {
    began: Instant,
    /// Per end: it takes part, and uses no earlier connection.
    is_at_it: [bool; 2],
    at_it_since: Option<Instant>,
    /// Per end: whether it has connected, once known; and whether the other has connected to it.
    reached: [Option<Option<Route>>; 2],
    was_reached: [bool; 2],
}

/// Problem of a direct connection, with its start.
enum LinkFault {
    Broke {
        since: Instant,
        why: String,
    },
    /// This end receives nothing.
    Silence {
        since: Instant,
        end: usize,
        is_told: bool,
    },
    /// It receives messages again.
    Received {
        since: Instant,
        end: usize,
    },
}

/// Change of the route.
pub(super) enum Outcome {
    /// Message for the user.
    Note(String),
    /// Join the links: over the connection of this end, or through this host.
    Join(Option<usize>),
    /// The route is gone without replacement.
    Broken(String),
}

impl Pair {
    /// With one link, from the first host to the second.
    pub(super) fn new(at: [usize; 2], link: u16, remote: &[RemoteHost]) -> Self {
        let [one, other] = at.map(|at| &remote[at]);
        let via = common_via(one.settings().via, other.settings().via).ok_or("as --via and cp.toml say");
        Self {
            at,
            links: vec![link],
            has_both_directions: false,
            via,
            is_kept: false,
            goes: PairRoute::Through(via.err().unwrap_or(UNREACHED)),
            was_direct: false,
            round: 0,
            meeting: None,
            trouble: None,
            apart_since: None,
            is_gone: false,
        }
    }

    pub(super) fn add(&mut self, link: u16, from: usize) {
        self.links.push(link);
        self.has_both_directions |= self.at[0] != from;
    }

    /// All links are known.
    pub(super) fn complete(&mut self, cut: &Cut, remote: &[RemoteHost]) {
        let blocks = |&link: &u16| cut.links[usize::from(link)].queue.policy == Policy::Block;
        let is_restarted = self.at.iter().any(|&at| remote[at].restart == Restart::Always);
        self.is_kept = is_restarted || !self.links.iter().any(blocks);
    }

    pub(super) fn is_direct(&self) -> bool {
        matches!(self.goes, PairRoute::Directly(_))
    }

    pub(super) fn is_meeting(&self) -> bool {
        self.meeting.is_some()
    }

    /// Each host with the other one.
    pub(super) fn directions(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let [one, other] = self.at;
        [(one, other), (other, one)].into_iter()
    }

    pub(super) fn names(&self, remote: &[RemoteHost]) -> String {
        let [from, to] = self.at.map(|at| &remote[at].name);
        let arrow = if self.has_both_directions { "<->" } else { "->" };
        format!("{from} {arrow} {to}")
    }

    /// Route of the samples, for people.
    pub(super) fn route_text(&self, remote: &[RemoteHost]) -> String {
        let names = self.names(remote);
        match self.goes {
            PairRoute::Directly(way) => format!("{names}: samples go over {}, directly", way.name()),
            PairRoute::Through(why) => format!("{names}: samples go through this host, {why}"),
        }
    }

    /// Lets both connect, if permitted.
    pub(super) fn meet(&mut self, remote: &[RemoteHost]) {
        let Ok(via) = self.via else { return };
        self.disconnect();
        self.round += 1;
        for (at, peer) in self.directions() {
            let settings = remote[at].settings();
            let (terms, port) = (Terms { via, ..settings.terms() }, settings.port);
            remote[at].say(ToHost::Meet { peer: remote[peer].number(), round: self.round, terms, port });
        }
        self.meeting = Some(Meeting::new());
    }

    /// One of them is back. Returns whether they connect again; those that never connected do not.
    pub(super) fn reconnect(&mut self, remote: &[RemoteHost]) -> bool {
        let is_of_use = self.was_direct && !self.is_gone && self.at.iter().all(|&at| remote[at].is_built());
        if is_of_use {
            self.meet(remote);
        }
        is_of_use
    }

    /// One of them is gone, and may come back: notifies the other.
    pub(super) fn leave(&mut self, at: usize, remote: &[RemoteHost]) {
        if self.is_direct() || self.is_meeting() {
            self.send_other(at, remote, ToHost::Away);
        }
        self.disconnect();
    }

    /// One of them is gone for good.
    pub(super) fn lose(&mut self, at: usize, remote: &[RemoteHost]) {
        if self.is_direct() {
            self.send_other(at, remote, ToHost::Lost);
        } else if self.is_meeting() {
            self.send_other(at, remote, ToHost::Part);
        }
        (self.is_gone, self.meeting) = (true, None);
    }

    /// Ends the direct connection.
    fn disconnect(&mut self) {
        (self.meeting, self.trouble) = (None, None);
        if self.is_direct() {
            self.goes = PairRoute::Through(APART);
            self.apart_since.get_or_insert_with(Instant::now);
        }
    }

    /// Joins links, each with the epoch that begins.
    pub(super) fn join(&mut self, made_by: Option<usize>, links: Vec<(u16, u32)>, remote: &[RemoteHost]) {
        self.meeting = None;
        for (end, (at, peer)) in self.directions().enumerate().filter(|(_, (at, _))| remote[*at].is_there()) {
            let peer = remote[peer].number();
            remote[at].say(match made_by {
                Some(made_by) => ToHost::Join {
                    peer,
                    round: self.round,
                    is_ours: end == made_by,
                    is_kept: self.is_kept,
                    links: links.clone(),
                },
                None => ToHost::Part(peer),
            });
        }
    }

    /// Time for which its links were not joined.
    pub(super) fn take_outage(&mut self) -> Option<Duration> {
        self.apart_since.take().map(|since| since.elapsed())
    }

    /// Takes in a message of a host; returns whether it concerns this pair.
    pub(super) fn handle(&mut self, at: usize, news: &News, remote: &mut [RemoteHost]) -> bool {
        let (Some(end), News::Said(said)) = (self.at.iter().position(|&it| it == at), news) else {
            return false;
        };
        let other = self.at[1 - end];
        let is_of = |peer: u16| peer == remote[other].number();
        match said {
            ToCoordinator::Ticket { peer, round, ticket } if is_of(*peer) => {
                let Some(meeting) = self.meeting.as_mut().filter(|_| *round == self.round) else {
                    return true;
                };
                meeting.is_at_it[end] = true;
                let ticket = ticket.as_ref().and_then(|ticket| remote[at].ticket_for_others(ticket));
                match ticket {
                    Some(ticket) => {
                        remote[other].say(ToHost::Reach { peer: remote[at].number(), round: *round, ticket });
                    }
                    None => meeting.reached[1 - end] = Some(None),
                }
            }
            ToCoordinator::Met { peer, round, is_ours, route } if is_of(*peer) => {
                if let Some(meeting) = self.meeting.as_mut().filter(|_| *round == self.round) {
                    match is_ours {
                        true => meeting.reached[end] = Some(*route),
                        false => meeting.was_reached[end] |= route.is_some(),
                    }
                }
            }
            ToCoordinator::Broke { peer, round, why } if is_of(*peer) => {
                let is_new = !matches!(self.trouble, Some(LinkFault::Broke { .. }));
                if *round == self.round && self.is_direct() && is_new && !self.is_gone {
                    let why = printable(why.as_bytes());
                    self.trouble = Some(LinkFault::Broke { since: Instant::now(), why });
                }
            }
            ToCoordinator::Hears { peer, round, hears } if is_of(*peer) => {
                if *round == self.round && self.is_direct() && !self.is_gone {
                    self.note_silence(end, *hears);
                }
            }
            _ => return false,
        }
        true
    }

    fn note_silence(&mut self, end: usize, hears: bool) {
        match (&self.trouble, hears) {
            (None | Some(LinkFault::Received { .. }), false) => {
                self.trouble = Some(LinkFault::Silence { since: Instant::now(), end, is_told: false });
            }
            (&Some(LinkFault::Silence { since, end: of, is_told }), true) if of == end => {
                // The end is reported like the start.
                self.trouble = is_told.then_some(LinkFault::Received { since, end });
            }
            _ => {}
        }
    }

    /// The next action. A graph that `is_ending` joins no links again; before it `is_at_work`, no data has flowed.
    pub(super) fn next(
        &mut self,
        remote: &[RemoteHost],
        is_at_work: bool,
        is_ending: bool,
    ) -> Option<Outcome> {
        if let Some(meeting) = &mut self.meeting {
            let is_over = self.at.iter().any(|&at| remote[at].is_over());
            let met = if is_over { None } else { meeting.outcome(is_at_work)? };
            self.goes = match met {
                Some((_, way)) => PairRoute::Directly(way),
                None => PairRoute::Through(UNREACHED),
            };
            self.was_direct |= self.is_direct();
            return Some(Outcome::Join(met.map(|(end, _)| end)));
        }
        let trouble = self.trouble.as_mut().filter(|_| is_at_work)?;
        if self.at.iter().any(|&at| remote[at].is_over()) {
            // It has ended, and so has the other one's use of this route.
            (self.trouble, self.is_gone) = (None, true);
            self.send_both(remote, ToHost::Lost);
            return None;
        }
        let is_kept = self.is_kept && !is_ending;
        let [one, other] = self.at.map(|at| &remote[at].name);
        let what = match trouble {
            LinkFault::Broke { since, why } => {
                let since = since.elapsed();
                let is_there = |at: &usize| remote[*at].is_there() && remote[*at].silence() < since;
                let are_there = self.at.iter().all(is_there);
                // One of them may be gone, which shows soon.
                let is_clear = match is_kept {
                    true => since > SHOWS_WITHIN || are_there && since > SPEAKS_WITHIN,
                    false => are_there && since > SHOWS_WITHIN,
                };
                if !is_clear {
                    return None;
                }
                format!("the route between {one} and {other} is gone: {why}")
            }
            LinkFault::Silence { is_told: true, .. } => return None,
            LinkFault::Received { since, end } => {
                let silence_s = (since.elapsed() + DEAD_AFTER).as_secs_f64();
                let [hears, heard] = [*end, 1 - *end].map(|end| &remote[self.at[end]].name);
                let note = format!("{hears} receives data from {heard} again, after {silence_s:.1} s");
                self.trouble = None;
                return Some(Outcome::Note(note));
            }
            LinkFault::Silence { end, is_told, .. } => {
                *is_told = true;
                let (hears, silent) = (&remote[self.at[*end]], &remote[self.at[1 - *end]]);
                let nor = if silent.silence() > SPEAKS_WITHIN { ", nor has this host" } else { "" };
                let (hears, silent) = (&hears.name, &silent.name);
                let silence_s = DEAD_AFTER.as_secs_f64();
                format!(
                    "no data between {one} and {other}: {hears} has received nothing from {silent} for {silence_s} s{nor}"
                )
            }
        };
        match (is_kept, &self.trouble) {
            (true, _) => {
                self.meet(remote);
                Some(Outcome::Note(format!("{what}; reconnecting")))
            }
            (false, Some(LinkFault::Silence { .. })) => {
                let most_s = SILENT_FOR.as_secs();
                Some(Outcome::Note(format!(
                    "{what}; data waits or is dropped, by the policy of its edge, for {most_s} s at most"
                )))
            }
            (false, _) => {
                (self.trouble, self.is_gone) = (None, true);
                self.send_both(remote, ToHost::Lost);
                Some(Outcome::Broken(what))
            }
        }
    }

    fn send_both(&self, remote: &[RemoteHost], said: impl Fn(u16) -> ToHost) {
        for (at, peer) in self.directions() {
            remote[at].say(said(remote[peer].number()));
        }
    }

    fn send_other(&self, at: usize, remote: &[RemoteHost], said: impl Fn(u16) -> ToHost) {
        for (other, gone) in self.directions().filter(|&(other, gone)| gone == at && remote[other].is_there())
        {
            remote[other].say(said(remote[gone].number()));
        }
    }
}

impl Meeting {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            is_at_it: [false; 2],
            at_it_since: None,
            reached: [None; 2],
            was_reached: [false; 2],
        }
    }

    /// The end that made the connection, and its route; `Some(None)`: neither will. In a graph that `is_at_work`,
    /// both must take part first, so that no data uses an earlier connection.
    fn outcome(&mut self, is_at_work: bool) -> Option<Option<(usize, Route)>> {
        let are_at_it = self.is_at_it.iter().all(|&is_at_it| is_at_it);
        if is_at_work && !are_at_it {
            return None;
        }
        let since = if is_at_work { *self.at_it_since.get_or_insert_with(Instant::now) } else { self.began };
        let met = (0..2).find_map(|end| match self.reached[end] {
            Some(Some(way)) if self.was_reached[1 - end] => Some((end, way)),
            _ => None,
        });
        let is_in_vain = self.reached.iter().all(|reached| matches!(reached, Some(None)));
        match met {
            Some(met) => Some(Some(met)),
            None => (is_in_vain || since.elapsed() > DECIDED_WITHIN).then_some(None),
        }
    }
}

/// Routes that both hosts permit; `None`: none.
fn common_via(one: Via, other: Via) -> Option<Via> {
    let via = match (one, other) {
        (Via::Auto, via) | (via, Via::Auto) => via,
        (one, other) if one == other => one,
        _ => return None,
    };
    // Hosts that are reached by ssh or a relay are reached from here only.
    (!matches!(via, Via::Ssh | Via::Relay)).then_some(via)
}

const UNREACHED: &str = "because neither reaches the other";
const APART: &str = "until both are back";
/// A host reports within two seconds whether it has connected, plus the round trip.
const DECIDED_WITHIN: Duration = Duration::from_secs(4);
/// Time in which the loss of a host becomes known.
const SHOWS_WITHIN: Duration = Duration::from_secs(2);
/// A running host has sent a message by then, because it sends four per second.
const SPEAKS_WITHIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_route_that_both_ends_have_is_taken() {
        let mut meeting = Meeting::new();
        assert_eq!(meeting.outcome(false), None);
        meeting.reached[0] = Some(None);
        assert_eq!(meeting.outcome(false), None, "the other one may reach it");
        meeting.reached[1] = Some(Some(Route::Tcp));
        assert_eq!(meeting.outcome(false), None, "the first does not know yet");
        meeting.was_reached[0] = true;
        assert_eq!(meeting.outcome(false), Some(Some((1, Route::Tcp))));
        assert_eq!(meeting.outcome(true), None, "they may still be on another way");
        meeting.is_at_it = [true; 2];
        assert_eq!(meeting.outcome(true), Some(Some((1, Route::Tcp))));
        let mut in_vain = Meeting { reached: [Some(None); 2], ..Meeting::new() };
        assert_eq!((in_vain.outcome(false), in_vain.outcome(true)), (Some(None), None));
    }

    #[test]
    fn a_setting_of_one_host_applies_to_both() {
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
