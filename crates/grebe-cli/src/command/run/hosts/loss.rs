//! Loss and return of hosts, and of routes between them.

use grebe_flow::{CutEdge, LINK_IN, LINK_OUT, Policy, Restart, Running};

use super::super::direct::Turn;
use super::super::lines::{GONE, SILENT_FOR, ToHost};
use super::super::login::Connected;
use super::super::remote_host::{RemoteHost, State};
use super::super::restart::RestartState;
use super::Coordinator;
use crate::ending::{OnOtherHost, one_line};
use crate::graph::Progress;
use crate::output::note;

impl Coordinator {
    /// Detects the loss and the return of a host.
    pub(super) fn watch_host(&mut self, at: usize, progress: &Progress) {
        let remote = &mut self.remote[at];
        if remote.state == State::Away {
            self.bring_back(at, progress);
        } else if !remote.is_over() && remote.is_gone() {
            self.lose(at, None, progress);
        } else if remote.state == State::Built && remote.silence() > SILENT_FOR {
            let silent = format!("no message from {} for {} s", remote.name, SILENT_FOR.as_secs());
            self.lose(at, Some(silent), progress);
        }
    }

    /// Handles changes of routes between other hosts.
    pub(super) fn turn_pairs(&mut self, say: &impl Fn(&str)) {
        while let Some(turn) = self.pairs.next(&self.remote, self.has_started, self.stopping.is_some()) {
            match turn {
                Turn::Note(note) => say(&note),
                Turn::Joins { pair, made_by, links } => {
                    let way = self.join_pair(pair, made_by, &links);
                    way.iter().for_each(|way| say(way));
                }
                Turn::Broken { what, links } => self.lose_route(what, &links, say),
            }
        }
    }

    /// Joins the links of two other hosts, directly or through here; returns the route.
    fn join_pair(&mut self, pair: usize, made_by: Option<usize>, links: &[u16]) -> Option<String> {
        let begins = |&link: &u16| {
            // The hosts are up before samples flow, and begin in the first epoch.
            let epoch = &mut self.epochs[usize::from(link)];
            *epoch += u32::from(self.has_started && made_by.is_some());
            (link, *epoch)
        };
        let begun = links.iter().map(begins).collect();
        let way = self.pairs.join(pair, made_by, begun, &self.remote);
        if self.has_started && made_by.is_none() {
            for &link in links {
                let CutEdge { from, to, .. } = self.cut.links[usize::from(link)];
                self.join(link, from, to);
            }
        }
        way
    }

    /// Handles the loss of the route between two running hosts.
    fn lose_route(&mut self, what: String, links: &[u16], say: &impl Fn(&str)) {
        let is_waited_for =
            self.links().any(|(link, edge)| links.contains(&link) && edge.queue.policy == Policy::Block);
        if !is_waited_for && self.stopping.is_none() {
            say(&format!("{what}; the rest of the graph continues without it"));
        }
        let lost = OnOtherHost { what, status: GONE };
        match is_waited_for {
            true => self.fail(lost.into()),
            false => {
                self.failed.get_or_insert_with(|| lost.into());
            }
        }
    }

    /// Whether a host that goes away now restarts.
    pub(super) fn is_restarted(&self, at: usize) -> bool {
        self.remote[at].restart == Restart::Always && self.has_started && self.stopping.is_none()
    }

    /// Handles the loss of a host.
    fn lose(&mut self, at: usize, why: Option<String>, progress: &Progress) {
        match self.is_restarted(at) {
            true => self.leave(at, &why.unwrap_or_default(), &|words| progress.say(words)),
            false => self.lose_for_good(at, why),
        }
    }

    /// Ends its links. The graph ends if one of them makes its producer wait.
    pub(super) fn lose_for_good(&mut self, at: usize, broke: Option<String>) {
        let was_built = self.remote[at].state == State::Built;
        self.cut_off(at);
        let remote = &mut self.remote[at];
        let why = one_line(&remote.why_lost());
        let why = broke.map_or_else(|| why.clone(), |broke| format!("{why}: {broke}"));
        let (part, name) = (remote.part, remote.name.clone());
        let blocks = |edge: &CutEdge| edge.queue.policy == Policy::Block;
        let is_waited_for = self.links_of(part).any(|(_, edge)| blocks(edge));
        let lost = OnOtherHost { what: why.clone(), status: GONE };
        match (!was_built || is_waited_for) && self.stopping.is_none() {
            true => self.fail(lost.into()),
            false => {
                if self.stopping.is_none() {
                    note!("{why}; the rest of the graph continues without {name}");
                }
                self.failed.get_or_insert_with(|| lost.into());
            }
        }
    }

    /// Ends all data to and from a host.
    fn cut_off(&mut self, at: usize) {
        let remote = &mut self.remote[at];
        remote.state = State::Lost;
        remote.outbox.hang_up();
        remote.outbox.close();
        let part = remote.part;
        self.pairs.lose(at, &self.remote);
        for (link, edge) in self.links_of(part).filter(|(link, _)| !self.pairs.has(*link)) {
            match (edge.from == part, self.outbox(if edge.from == part { edge.to } else { edge.from })) {
                (true, Some(consumer)) => consumer.end_link(link),
                (true, None) => self.here.end(link),
                (false, Some(producer)) => {
                    producer.tell_away(link);
                    producer.close_link(link);
                }
                // Its outbox is closed.
                (false, None) => {}
            }
        }
    }

    /// A host is away and will restart: its senders wait or drop, its receivers wait.
    pub(super) fn leave(&mut self, at: usize, why: &str, say: &impl Fn(&str)) {
        let remote = &mut self.remote[at];
        let before = remote.restart_state.take();
        remote.restart_state = Some(RestartState::of(before));
        if !why.is_empty() {
            say(&format!("{why}; restarting {}", remote.name));
        }
        remote.leave(at, why.is_empty().then_some(&self.tells));
        let part = remote.part;
        self.pairs.leave(at, &self.remote);
        for (link, edge) in self.links_of(part) {
            if let Some(producer) = self.outbox(edge.from).filter(|_| edge.to == part) {
                producer.tell_away(link);
            }
        }
    }

    /// Attempts a restart, or gives up if nothing is left to do.
    fn bring_back(&mut self, at: usize, progress: &Progress) {
        if self.is_needless(at) {
            return self.give_up(at);
        }
        let epochs = self
            .links_of(self.remote[at].part)
            .map(|(link, _)| (link, self.epochs[usize::from(link)]))
            .collect();
        let remote = &mut self.remote[at];
        let login = remote.login();
        let Some(restart_state) = &mut remote.restart_state else { return };
        if restart_state.is_due() {
            restart_state.attempt(login, epochs);
        }
        match restart_state.outcome() {
            None => {}
            Some(Ok(connected)) => self.reopen(at, connected),
            Some(Err(error)) => {
                let why = one_line(&error);
                if restart_state.is_news(&why) {
                    progress.say(&format!("{} is not back yet: {why}", remote.name));
                }
            }
        }
    }

    fn reopen(&mut self, at: usize, connected: Connected) {
        self.remote[at].come_back(connected);
        self.open(at);
        self.remote[at].say(ToHost::Build);
    }

    /// A restarted host has opened its part.
    pub(super) fn is_back(&mut self, at: usize, say: &impl Fn(&str)) {
        let remote = &mut self.remote[at];
        remote.state = State::Built;
        remote.count().come_back();
        remote.say(ToHost::Start);
        let away = remote.restart_state.as_mut().map(RestartState::mark_back).unwrap_or_default();
        let way =
            remote.route().map(|route| format!("; samples go over {}", route.name())).unwrap_or_default();
        say(&format!("{} is back after {:.1} s{way}", remote.name, away.as_secs_f64()));
        let part = remote.part;
        let looking = self.pairs.come_back(at, &self.remote);
        let links: Vec<_> = self.links_of(part).map(|(link, edge)| (link, edge.from, edge.to)).collect();
        for (link, from, to) in links.into_iter().filter(|(link, ..)| !looking.contains(link)) {
            self.join(link, from, to);
        }
    }

    /// Joins the two ends of a link, if both are up.
    fn join(&mut self, link: u16, from: usize, to: usize) {
        let remote = |part| self.remote.iter().find(|remote| remote.part == part);
        let (producer, consumer) = (remote(from), remote(to));
        let is_there = |remote: Option<&RemoteHost>| remote.is_none_or(|remote| remote.state == State::Built);
        let is_over = |remote: Option<&RemoteHost>| remote.is_some_and(RemoteHost::is_over);
        match (producer, consumer) {
            (_, Some(consumer)) if is_over(producer) => consumer.outbox.end_link(link),
            (Some(producer), _) if is_over(consumer) => producer.outbox.close_link(link),
            _ if !is_there(producer) || !is_there(consumer) => {}
            (producer, consumer) => {
                let epoch = self.epochs[usize::from(link)] + 1;
                match (producer, consumer) {
                    (Some(producer), _) => producer.outbox.tell_join(link, epoch),
                    (None, Some(consumer)) => consumer.outbox.join(link, epoch),
                    // A link has an end on another host.
                    (None, None) => {}
                }
                self.epochs[usize::from(link)] = epoch;
            }
        }
    }

    /// Whether a host that is away is no longer needed: all its links have ended, and it has no stages of its own.
    fn is_needless(&self, at: usize) -> bool {
        let part = self.remote[at].part;
        let is_over = |part: usize| match self.remote.iter().find(|remote| remote.part == part) {
            Some(remote) => remote.is_over(),
            None => self.running.as_ref().is_none_or(Running::is_ended),
        };
        let mut others =
            self.links_of(part).map(|(_, edge)| if edge.from == part { edge.to } else { edge.from });
        if !others.by_ref().all(is_over) || self.links_of(part).next().is_none() {
            return false;
        }
        let file = &self.cut.parts[part].file;
        let has_input = |id: &str| file.edges().iter().any(|edge| edge.to.0 == id);
        let has_source = file.stages().iter().any(|stage| stage.kind != LINK_IN && !has_input(&stage.id));
        !(has_source && file.ends().any(|stage| stage.kind != LINK_OUT))
    }

    /// Stops waiting for a host that is away.
    pub(super) fn give_up(&mut self, at: usize) {
        let away =
            self.remote[at].restart_state.as_ref().map(|restart_state| restart_state.away_since.elapsed());
        let away = away.unwrap_or_default().as_secs_f64();
        let what = format!("{} has been gone for {away:.1} s", self.remote[at].name);
        self.cut_off(at);
        self.failed.get_or_insert_with(|| OnOtherHost { what, status: GONE }.into());
    }
}
