//! Edges between two hosts that are both not this one: which of them go directly, as the process sees it that runs the graph.
//!
//! Both hosts wait for each other and go to each other at once, with keys and addresses that pass through here; what is there first is taken.
//! So at the start, where one of them was started again, and where the way between them is dead: then what neither reaches goes through here. How
//! that goes at a host, see `peers`; what is known of two hosts, see `pair`.

use std::time::Instant;

use grebe_flow::{Cut, CutEdge};
use serde_json::{Value, json};

use super::check::{self, Found};
use super::far::{Far, Heard, News};
use super::pair::{Goes, Outcome, Pair};

/// All pairs of other hosts that have edges between them.
#[derive(Default)]
pub(super) struct Pairs(Vec<Pair>);

/// What became of the way between two hosts.
pub(super) enum Turn {
    /// A person is to know this.
    Note(String),
    /// These links are to be joined.
    Joins { pair: usize, made_by: Option<usize>, links: Vec<u16> },
    /// It is gone, and nothing takes its place.
    Broken { what: String, links: Vec<u16> },
}

impl Pairs {
    pub(super) fn of(cut: &Cut, far: &[Far]) -> Self {
        let place = |part: usize| far.iter().position(|far| far.part == part);
        let mut pairs: Vec<Pair> = Vec::new();
        for (link, edge) in (0..).zip(&cut.links) {
            let (Some(from), Some(to)) = (place(edge.from), place(edge.to)) else { continue };
            match pairs.iter_mut().find(|pair| pair.at == [from, to] || pair.at == [to, from]) {
                Some(pair) => pair.add(link, from),
                None => pairs.push(Pair::new([from, to], link, far)),
            }
        }
        pairs.iter_mut().for_each(|pair| pair.complete(cut, far));
        Self(pairs)
    }

    /// Lets the hosts of all pairs look for each other at once.
    pub(super) fn meet(&mut self, far: &[Far]) {
        self.0.iter_mut().for_each(|pair| pair.meet(far));
    }

    pub(super) fn are_meeting(&self) -> bool {
        self.0.iter().any(Pair::is_meeting)
    }

    /// Takes in what a host has said; whether it is about a way to another one.
    pub(super) fn hear(&mut self, at: usize, news: &News, far: &mut [Far]) -> bool {
        self.0.iter_mut().any(|pair| pair.hear(at, news, far))
    }

    /// What is to be done about a way just now, see [`Pair::next`].
    pub(super) fn next(&mut self, far: &[Far], is_at_work: bool, is_ending: bool) -> Option<Turn> {
        self.0.iter_mut().enumerate().find_map(|(number, pair)| {
            Some(match pair.next(far, is_at_work, is_ending)? {
                Outcome::Note(note) => Turn::Note(note),
                Outcome::Join(made_by) => Turn::Joins { pair: number, made_by, links: pair.links.clone() },
                Outcome::Broken(what) => Turn::Broken { what, links: pair.links.clone() },
            })
        })
    }

    /// Tells both hosts of a pair how their links go, each with the era that begins there; what a person is to know of that, if both are still at it.
    pub(super) fn join(
        &mut self,
        pair: usize,
        made_by: Option<usize>,
        links: Vec<(u16, u32)>,
        far: &[Far],
    ) -> Option<String> {
        let pair = &mut self.0[pair];
        pair.join(made_by, links, far);
        let apart = pair.take_apart().map(|apart| format!(" (after {:.1} s)", apart.as_secs_f64()));
        let is_over = pair.at.iter().any(|&at| far[at].is_over());
        (!is_over).then(|| pair.way(far) + &apart.unwrap_or_default())
    }

    /// Whether a link goes directly.
    pub(super) fn has(&self, link: u16) -> bool {
        self.0.iter().any(|pair| pair.is_direct() && pair.links.contains(&link))
    }

    /// Which way the samples go between others, for people.
    pub(super) fn ways(&self, far: &[Far]) -> Vec<String> {
        self.0.iter().map(|pair| pair.way(far)).collect()
    }

    /// The same for programs; `way` is null where they go through this host.
    pub(super) fn json(&self, far: &[Far], links: &[CutEdge]) -> Vec<Value> {
        let ways = self.0.iter().map(|pair| {
            let [from, to] = pair.at.map(|at| &far[at].name);
            let way = match pair.goes {
                Goes::Directly(way) => Some(way),
                Goes::Through(_) => None,
            };
            let edges = pair.links.iter().map(|&link| {
                let edge = &links[usize::from(link)].edge;
                format!("{} -> {}", edge.from.0, edge.to.0)
            });
            json!({ "host": from, "other": to, "way": way, "edges": edges.collect::<Vec<_>>() })
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

    /// A host is gone, and may come back: its direct ways are over, and what goes there waits.
    pub(super) fn leave(&mut self, at: usize, far: &[Far]) {
        self.of_host(at).for_each(|pair| pair.leave(at, far));
    }

    /// A host is there again: the links that wait for what comes of its looking for others.
    pub(super) fn come_back(&mut self, at: usize, far: &[Far]) -> Vec<u16> {
        let looking = self.of_host(at).filter_map(|pair| pair.meet_again(far).then(|| pair.links.clone()));
        looking.flatten().collect()
    }

    /// A host is gone for good: told to those that are linked to it directly.
    pub(super) fn lose(&mut self, at: usize, far: &[Far]) {
        self.of_host(at).for_each(|pair| pair.lose(at, far));
    }

    fn of_host(&mut self, at: usize) -> impl Iterator<Item = &mut Pair> {
        self.0.iter_mut().filter(move |pair| pair.at.contains(&at))
    }
}
