//! Direct connections between two other hosts, from the view of the coordinator (the process that runs the graph).
//!
//! Both hosts listen and connect to each other at once, with keys and addresses that pass through here. The first
//! connection wins. This happens at the start, after a restart of a host, and after a break. Without a direct
//! connection, samples go through the coordinator. `peers` has the side of a host, `pair` the state of two hosts.

use std::time::Instant;

use grebe_flow::{Cut, CutEdge};
use serde_json::{Value, json};

use super::check::{self, Found};
use super::pair::{Outcome, Pair, PairRoute};
use super::remote_host::{News, Received, RemoteHost};

/// All pairs of other hosts with edges between them.
#[derive(Default)]
pub(super) struct Pairs(Vec<Pair>);

/// Change of the route between two hosts.
pub(super) enum Turn {
    /// Message for the user.
    Note(String),
    /// Links to join.
    Joins { pair: usize, made_by: Option<usize>, links: Vec<u16> },
    /// The route is gone without replacement.
    Broken { what: String, links: Vec<u16> },
}

impl Pairs {
    pub(super) fn of(cut: &Cut, remote: &[RemoteHost]) -> Self {
        let place = |part: usize| remote.iter().position(|remote| remote.part == part);
        let mut pairs: Vec<Pair> = Vec::new();
        for (link, edge) in (0..).zip(&cut.links) {
            let (Some(from), Some(to)) = (place(edge.from), place(edge.to)) else { continue };
            match pairs.iter_mut().find(|pair| pair.at == [from, to] || pair.at == [to, from]) {
                Some(pair) => pair.add(link, from),
                None => pairs.push(Pair::new([from, to], link, remote)),
            }
        }
        pairs.iter_mut().for_each(|pair| pair.complete(cut, remote));
        Self(pairs)
    }

    /// Lets all pairs connect.
    pub(super) fn meet(&mut self, remote: &[RemoteHost]) {
        self.0.iter_mut().for_each(|pair| pair.meet(remote));
    }

    pub(super) fn are_meeting(&self) -> bool {
        self.0.iter().any(Pair::is_meeting)
    }

    /// Takes in a message of a host; returns whether it concerns a direct connection.
    pub(super) fn handle(&mut self, at: usize, news: &News, remote: &mut [RemoteHost]) -> bool {
        self.0.iter_mut().any(|pair| pair.handle(at, news, remote))
    }

    /// The next change of a route, see [`Pair::next`].
    pub(super) fn next(&mut self, remote: &[RemoteHost], is_at_work: bool, is_ending: bool) -> Option<Turn> {
        self.0.iter_mut().enumerate().find_map(|(number, pair)| {
            Some(match pair.next(remote, is_at_work, is_ending)? {
                Outcome::Note(note) => Turn::Note(note),
                Outcome::Join(made_by) => Turn::Joins { pair: number, made_by, links: pair.links.clone() },
                Outcome::Broken(what) => Turn::Broken { what, links: pair.links.clone() },
            })
        })
    }

    /// Sends both hosts the route of their links, each with the epoch that begins. Returns a message for the user if
    /// both are still connecting.
    pub(super) fn join(
        &mut self,
        pair: usize,
        made_by: Option<usize>,
        links: Vec<(u16, u32)>,
        remote: &[RemoteHost],
    ) -> Option<String> {
        let pair = &mut self.0[pair];
        pair.join(made_by, links, remote);
        let apart = pair.take_outage().map(|apart| format!(" (after {:.1} s)", apart.as_secs_f64()));
        let is_over = pair.at.iter().any(|&at| remote[at].is_over());
        (!is_over).then(|| pair.route_text(remote) + &apart.unwrap_or_default())
    }

    /// Whether a link is direct.
    pub(super) fn has(&self, link: u16) -> bool {
        self.0.iter().any(|pair| pair.is_direct() && pair.links.contains(&link))
    }

    /// Routes between other hosts, for people.
    pub(super) fn route_texts(&self, remote: &[RemoteHost]) -> Vec<String> {
        self.0.iter().map(|pair| pair.route_text(remote)).collect()
    }

    /// Routes for programs; `route` is null if samples go through this host.
    pub(super) fn json(&self, remote: &[RemoteHost], links: &[CutEdge]) -> Vec<Value> {
        let ways = self.0.iter().map(|pair| {
            let [from, to] = pair.at.map(|at| &remote[at].name);
            let way = match pair.goes {
                PairRoute::Directly(way) => Some(way),
                PairRoute::Through(_) => None,
            };
            let edges = pair.links.iter().map(|&link| {
                let edge = &links[usize::from(link)].edge;
                format!("{} -> {}", edge.from.0, edge.to.0)
            });
            json!({ "host": from, "other": to, "route": way, "edges": edges.collect::<Vec<_>>() })
        });
        ways.collect()
    }

    /// Checks direct routes: the names of both hosts, and the findings.
    pub(super) fn check(
        &self,
        remote: &[RemoteHost],
        links: &[CutEdge],
        is_wide: bool,
        mut next: impl FnMut(usize, Instant) -> Option<Received>,
    ) -> Vec<(String, Found)> {
        let mut found = Vec::new();
        for (from, to) in self.0.iter().filter(|pair| pair.is_direct()).flat_map(Pair::directions) {
            let names = format!("{} -> {}", remote[from].name, remote[to].name);
            let next = |until| next(to, until);
            found.push((names, check::check_route(&remote[from], &remote[to], links, is_wide, next)));
        }
        found
    }

    /// A host is gone, and may come back: its direct connections end, and data for it waits.
    pub(super) fn leave(&mut self, at: usize, remote: &[RemoteHost]) {
        self.of_host(at).for_each(|pair| pair.leave(at, remote));
    }

    /// A host is back: the links that wait for its new connections.
    pub(super) fn come_back(&mut self, at: usize, remote: &[RemoteHost]) -> Vec<u16> {
        let looking = self.of_host(at).filter_map(|pair| pair.reconnect(remote).then(|| pair.links.clone()));
        looking.flatten().collect()
    }

    /// A host is gone for good: notifies its direct peers.
    pub(super) fn lose(&mut self, at: usize, remote: &[RemoteHost]) {
        self.of_host(at).for_each(|pair| pair.lose(at, remote));
    }

    fn of_host(&mut self, at: usize) -> impl Iterator<Item = &mut Pair> {
        self.0.iter_mut().filter(move |pair| pair.at.contains(&at))
    }
}
