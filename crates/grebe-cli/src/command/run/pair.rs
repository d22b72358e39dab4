//! Two other hosts with edges between them, as the process sees them that runs the graph: how they find each other, and what becomes of their way.

use std::time::{Duration, Instant};

use grebe_flow::{Cut, Policy, Restart};
use grebe_remote::{Route, Terms, Via};

use super::far::{Far, News};
use super::lines::{DEAD_AFTER, SILENT_FOR, ToHere, ToThere};
use crate::cli::printable;

pub(super) struct Pair {
    /// Their places among the other hosts. Its first edge leads from the first to the second.
    pub(super) at: [usize; 2],
    pub(super) links: Vec<u16>,
    has_both_directions: bool,
    /// By which ways they may go to each other, else why they are not to.
    via: Result<Via, &'static str>,
    /// Its edges are joined anew where the way breaks: a host is started again, or nobody waits.
    is_kept: bool,
    pub(super) goes: Goes,
    /// Once, one of them reached the other.
    was_direct: bool,
    /// How often they have looked for each other.
    round: u32,
    meeting: Option<Meeting>,
    trouble: Option<Trouble>,
    apart_since: Option<Instant>,
    is_gone: bool,
}

/// How samples go from one host to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goes {
    Directly(Route),
    /// Through this host, and why.
    Through(&'static str),
}

/// Two hosts that look for each other.
struct Meeting {
    began: Instant,
    /// Of each end: whether it is at it, and no way that there was before is used there.
    is_at_it: [bool; 2],
    at_it_since: Option<Instant>,
    /// Of each end: whether it has reached the other one, once that is known; and whether the other one has reached it.
    reached: [Option<Option<Route>>; 2],
    was_reached: [bool; 2],
}

/// What is wrong with a direct way, and since when.
enum Trouble {
    Broke {
        since: Instant,
        why: String,
    },
    /// This end hears nothing.
    Silence {
        since: Instant,
        end: usize,
        is_told: bool,
    },
    /// It hears something again.
    Heard {
        since: Instant,
        end: usize,
    },
}

/// What is to be done about a way.
pub(super) enum Outcome {
    /// A person is to know this.
    Note(String),
    /// The links are to be joined: over the connection that this end has made, or through this host.
    Join(Option<usize>),
    /// It is over, and nothing takes its place.
    Broken(String),
}

impl Pair {
    /// With one link, from the first to the second of these hosts.
    pub(super) fn new(at: [usize; 2], link: u16, far: &[Far]) -> Self {
        let [one, other] = at.map(|at| &far[at]);
        let via = common_via(one.settings().via, other.settings().via).ok_or("as --via and cp.toml say");
        Self {
            at,
            links: vec![link],
            has_both_directions: false,
            via,
            is_kept: false,
            goes: Goes::Through(via.err().unwrap_or(UNREACHED)),
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

    /// All its links are known.
    pub(super) fn complete(&mut self, cut: &Cut, far: &[Far]) {
        let blocks = |&link: &u16| cut.links[usize::from(link)].queue.policy == Policy::Block;
        let is_restarted = self.at.iter().any(|&at| far[at].restart == Restart::Always);
        self.is_kept = is_restarted || !self.links.iter().any(blocks);
    }

    pub(super) fn is_direct(&self) -> bool {
        matches!(self.goes, Goes::Directly(_))
    }

    pub(super) fn is_meeting(&self) -> bool {
        self.meeting.is_some()
    }

    /// Each of the hosts, and the other one.
    pub(super) fn both_ways(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let [one, other] = self.at;
        [(one, other), (other, one)].into_iter()
    }

    pub(super) fn names(&self, far: &[Far]) -> String {
        let [from, to] = self.at.map(|at| &far[at].name);
        let arrow = if self.has_both_directions { "<->" } else { "->" };
        format!("{from} {arrow} {to}")
    }

    /// Which way the samples go, for people.
    pub(super) fn way(&self, far: &[Far]) -> String {
        let names = self.names(far);
        match self.goes {
            Goes::Directly(way) => format!("{names}: samples go over {}, directly", way.name()),
            Goes::Through(why) => format!("{names}: samples go through this host, {why}"),
        }
    }

    /// Lets both look for each other, where they may.
    pub(super) fn meet(&mut self, far: &[Far]) {
        let Ok(via) = self.via else { return };
        self.apart();
        self.round += 1;
        for (at, peer) in self.both_ways() {
            let settings = far[at].settings();
            let (terms, port) = (Terms { via, ..settings.terms() }, settings.port);
            far[at].say(ToThere::Meet { peer: far[peer].number(), round: self.round, terms, port });
        }
        self.meeting = Some(Meeting::new());
    }

    /// One of them is there again. Those that never reached each other do not try it again; whether these do.
    pub(super) fn meet_again(&mut self, far: &[Far]) -> bool {
        let is_of_use = self.was_direct && !self.is_gone && self.at.iter().all(|&at| far[at].is_built());
        if is_of_use {
            self.meet(far);
        }
        is_of_use
    }

    /// One of them is gone, and may come back: the other one is told.
    pub(super) fn leave(&mut self, at: usize, far: &[Far]) {
        if self.is_direct() || self.is_meeting() {
            self.say_to_other(at, far, ToThere::Away);
        }
        self.apart();
    }

    /// One of them is gone for good.
    pub(super) fn lose(&mut self, at: usize, far: &[Far]) {
        if self.is_direct() {
            self.say_to_other(at, far, ToThere::Lost);
        } else if self.is_meeting() {
            self.say_to_other(at, far, ToThere::Part);
        }
        (self.is_gone, self.meeting) = (true, None);
    }

    /// Nothing goes directly any more.
    fn apart(&mut self) {
        (self.meeting, self.trouble) = (None, None);
        if self.is_direct() {
            self.goes = Goes::Through(APART);
            self.apart_since.get_or_insert_with(Instant::now);
        }
    }

    /// Links are joined, each with the era that begins there.
    pub(super) fn join(&mut self, made_by: Option<usize>, links: Vec<(u16, u32)>, far: &[Far]) {
        self.meeting = None;
        for (end, (at, peer)) in self.both_ways().enumerate().filter(|(_, (at, _))| far[*at].is_there()) {
            let peer = far[peer].number();
            far[at].say(match made_by {
                Some(made_by) => ToThere::Join {
                    peer,
                    round: self.round,
                    is_ours: end == made_by,
                    is_kept: self.is_kept,
                    links: links.clone(),
                },
                None => ToThere::Part(peer),
            });
        }
    }

    /// How long its links were not joined.
    pub(super) fn take_apart(&mut self) -> Option<Duration> {
        self.apart_since.take().map(|since| since.elapsed())
    }

    /// Takes in what a host has said; whether it is about this pair.
    pub(super) fn hear(&mut self, at: usize, news: &News, far: &mut [Far]) -> bool {
        let (Some(end), News::Said(said)) = (self.at.iter().position(|&it| it == at), news) else {
            return false;
        };
        let other = self.at[1 - end];
        let is_of = |peer: u16| peer == far[other].number();
        match said {
            ToHere::Ticket { peer, round, ticket } if is_of(*peer) => {
                let Some(meeting) = self.meeting.as_mut().filter(|_| *round == self.round) else {
                    return true;
                };
                meeting.is_at_it[end] = true;
                let ticket = ticket.as_ref().and_then(|ticket| far[at].ticket_for_others(ticket));
                match ticket {
                    Some(ticket) => {
                        far[other].say(ToThere::Reach { peer: far[at].number(), round: *round, ticket });
                    }
                    None => meeting.reached[1 - end] = Some(None),
                }
            }
            ToHere::Met { peer, round, is_ours, route } if is_of(*peer) => {
                if let Some(meeting) = self.meeting.as_mut().filter(|_| *round == self.round) {
                    match is_ours {
                        true => meeting.reached[end] = Some(*route),
                        false => meeting.was_reached[end] |= route.is_some(),
                    }
                }
            }
            ToHere::Broke { peer, round, why } if is_of(*peer) => {
                let is_new = !matches!(self.trouble, Some(Trouble::Broke { .. }));
                if *round == self.round && self.is_direct() && is_new && !self.is_gone {
                    let why = printable(why.as_bytes());
                    self.trouble = Some(Trouble::Broke { since: Instant::now(), why });
                }
            }
            ToHere::Hears { peer, round, hears } if is_of(*peer) => {
                if *round == self.round && self.is_direct() && !self.is_gone {
                    self.note_hears(end, *hears);
                }
            }
            _ => return false,
        }
        true
    }

    fn note_hears(&mut self, end: usize, hears: bool) {
        match (&self.trouble, hears) {
            (None | Some(Trouble::Heard { .. }), false) => {
                self.trouble = Some(Trouble::Silence { since: Instant::now(), end, is_told: false });
            }
            (&Some(Trouble::Silence { since, end: of, is_told }), true) if of == end => {
                // Its end is told where its beginning was.
                self.trouble = is_told.then_some(Trouble::Heard { since, end });
            }
            _ => {}
        }
    }

    /// What is to be done just now. A graph that `is_ending` joins nothing anew; before it `is_at_work`, nothing has gone any way.
    pub(super) fn next(&mut self, far: &[Far], is_at_work: bool, is_ending: bool) -> Option<Outcome> {
        if let Some(meeting) = &mut self.meeting {
            let is_over = self.at.iter().any(|&at| far[at].is_over());
            let met = if is_over { None } else { meeting.outcome(is_at_work)? };
            self.goes = match met {
                Some((_, way)) => Goes::Directly(way),
                None => Goes::Through(UNREACHED),
            };
            self.was_direct |= self.is_direct();
            return Some(Outcome::Join(met.map(|(end, _)| end)));
        }
        let trouble = self.trouble.as_mut().filter(|_| is_at_work)?;
        if self.at.iter().any(|&at| far[at].is_over()) {
            // It has ended, and the other one with it as far as this way goes.
            (self.trouble, self.is_gone) = (None, true);
            self.tell_both(far, ToThere::Lost);
            return None;
        }
        let is_kept = self.is_kept && !is_ending;
        let [one, other] = self.at.map(|at| &far[at].name);
        let what = match trouble {
            Trouble::Broke { since, why } => {
                let since = since.elapsed();
                let is_there = |at: &usize| far[*at].is_there() && far[*at].silence() < since;
                let are_there = self.at.iter().all(is_there);
                // One of them may be gone, which shows soon.
                let is_clear = match is_kept {
                    true => since > SHOWS_WITHIN || are_there && since > SPEAKS_WITHIN,
                    false => are_there && since > SHOWS_WITHIN,
                };
                if !is_clear {
                    return None;
                }
                format!("the way between {one} and {other} is gone: {why}")
            }
            Trouble::Silence { is_told: true, .. } => return None,
            Trouble::Heard { since, end } => {
                let silence_s = (since.elapsed() + DEAD_AFTER).as_secs_f64();
                let [hears, heard] = [*end, 1 - *end].map(|end| &far[self.at[end]].name);
                let note = format!("{hears} hears {heard} again, after {silence_s:.1} s");
                self.trouble = None;
                return Some(Outcome::Note(note));
            }
            Trouble::Silence { end, is_told, .. } => {
                *is_told = true;
                let (hears, silent) = (&far[self.at[*end]], &far[self.at[1 - *end]]);
                let nor = if silent.silence() > SPEAKS_WITHIN { ", nor has this host" } else { "" };
                let (hears, silent) = (&hears.name, &silent.name);
                let silence_s = DEAD_AFTER.as_secs_f64();
                format!(
                    "nothing passes between {one} and {other}: {hears} has heard nothing from {silent} for {silence_s} s{nor}"
                )
            }
        };
        match (is_kept, &self.trouble) {
            (true, _) => {
                self.meet(far);
                Some(Outcome::Note(format!("{what}; what goes there is joined anew")))
            }
            (false, Some(Trouble::Silence { .. })) => {
                let most_s = SILENT_FOR.as_secs();
                Some(Outcome::Note(format!(
                    "{what}; what goes there waits or is dropped, as its policy says, for {most_s} s at most"
                )))
            }
            (false, _) => {
                (self.trouble, self.is_gone) = (None, true);
                self.tell_both(far, ToThere::Lost);
                Some(Outcome::Broken(what))
            }
        }
    }

    fn tell_both(&self, far: &[Far], said: impl Fn(u16) -> ToThere) {
        for (at, peer) in self.both_ways() {
            far[at].say(said(far[peer].number()));
        }
    }

    fn say_to_other(&self, at: usize, far: &[Far], said: impl Fn(u16) -> ToThere) {
        for (other, gone) in self.both_ways().filter(|&(other, gone)| gone == at && far[other].is_there()) {
            far[other].say(said(far[gone].number()));
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

    /// Which end has made the connection, and how; `Some(None)`: neither will. Where the graph `is_at_work`, both are at it before it is decided:
    /// nothing of theirs may still be on a way that there was before.
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
const APART: &str = "once both are there again";
/// A host says within two seconds whether it has reached another one, but for the way there and back.
const DECIDED_WITHIN: Duration = Duration::from_secs(4);
/// A host that is gone is known to be so by then, or silent.
const SHOWS_WITHIN: Duration = Duration::from_secs(2);
/// A host that is there has said something by then, as it does four times a second.
const SPEAKS_WITHIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_at_both_ends_first_is_taken() {
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
