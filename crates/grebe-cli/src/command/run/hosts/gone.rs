//! Hosts, and ways between them, that are gone, come back, or never do.

use grebe_flow::{CutEdge, LINK_IN, LINK_OUT, Policy, Restart, Running};

use super::super::comeback::Comeback;
use super::super::direct::Turn;
use super::super::far::{Far, State};
use super::super::lines::{GONE, SILENT_FOR, ToThere};
use super::super::login::Connected;
use super::Whole;
use crate::ending::{Elsewhere, one_line};
use crate::graph::Progress;
use crate::output::note;

impl Whole {
    /// Sees that a host is gone, or is there again.
    pub(super) fn look_after(&mut self, at: usize, progress: &Progress) {
        let far = &mut self.far[at];
        if far.state == State::Away {
            self.bring_back(at, progress);
        } else if !far.is_over() && far.is_gone() {
            self.lose(at, None, progress);
        } else if far.state == State::Built && far.silence() > SILENT_FOR {
            let silent = format!("nothing came from {} for {} s", far.name, SILENT_FOR.as_secs());
            self.lose(at, Some(silent), progress);
        }
    }

    /// Does what is to be done about the ways between other hosts: joins links where two have found each other, or have not; sees that a way is gone.
    pub(super) fn turn_pairs(&mut self, say: &impl Fn(&str)) {
        while let Some(turn) = self.pairs.next(&self.far, self.has_started, self.stopping.is_some()) {
            match turn {
                Turn::Note(note) => say(&note),
                Turn::Joins { pair, made_by, links } => {
                    let way = self.join_pair(pair, made_by, &links);
                    way.iter().for_each(|way| say(way));
                }
                Turn::Broken { what, links } => self.lose_way(what, &links, say),
            }
        }
    }

    /// The links of two other hosts are joined, directly or through here; which way they go.
    fn join_pair(&mut self, pair: usize, made_by: Option<usize>, links: &[u16]) -> Option<String> {
        let begins = |&link: &u16| {
            // They are there before anything is sent, and begin in the era that the graph starts with.
            let era = &mut self.eras[usize::from(link)];
            *era += u32::from(self.has_started && made_by.is_some());
            (link, *era)
        };
        let begun = links.iter().map(begins).collect();
        let way = self.pairs.join(pair, made_by, begun, &self.far);
        if self.has_started && made_by.is_none() {
            for &link in links {
                let CutEdge { from, to, .. } = self.cut.links[usize::from(link)];
                self.join(link, from, to);
            }
        }
        way
    }

    /// The way between two hosts is gone that are both there.
    fn lose_way(&mut self, what: String, links: &[u16], say: &impl Fn(&str)) {
        let is_waited_for =
            self.links().any(|(link, edge)| links.contains(&link) && edge.queue.policy == Policy::Block);
        if !is_waited_for && self.stopping.is_none() {
            say(&format!("{what}; the rest of the graph goes on without it"));
        }
        let lost = Elsewhere { what, status: GONE };
        match is_waited_for {
            true => self.fail(lost.into()),
            false => {
                self.failed.get_or_insert_with(|| lost.into());
            }
        }
    }

    /// Whether a host that goes away now is started again.
    pub(super) fn is_restarted(&self, at: usize) -> bool {
        self.far[at].restart == Restart::Always && self.has_started && self.stopping.is_none()
    }

    /// A host is gone without a word.
    fn lose(&mut self, at: usize, why: Option<String>, progress: &Progress) {
        match self.is_restarted(at) {
            true => self.leave(at, &why.unwrap_or_default(), &|words| progress.say(words)),
            false => self.lose_for_good(at, why),
        }
    }

    /// Its links end, and where one of them makes its producer wait, the graph does.
    pub(super) fn lose_for_good(&mut self, at: usize, broke: Option<String>) {
        let was_built = self.far[at].state == State::Built;
        self.cut_off(at);
        let far = &mut self.far[at];
        let why = one_line(&far.why_lost());
        let why = broke.map_or_else(|| why.clone(), |broke| format!("{why}: {broke}"));
        let (part, name) = (far.part, far.name.clone());
        let blocks = |edge: &CutEdge| edge.queue.policy == Policy::Block;
        let is_waited_for = self.links_of(part).any(|(_, edge)| blocks(edge));
        let lost = Elsewhere { what: why.clone(), status: GONE };
        match (!was_built || is_waited_for) && self.stopping.is_none() {
            true => self.fail(lost.into()),
            false => {
                if self.stopping.is_none() {
                    note!("{why}; the rest of the graph goes on without {name}");
                }
                self.failed.get_or_insert_with(|| lost.into());
            }
        }
    }

    /// Nothing will come from a host any more, and nothing goes there.
    fn cut_off(&mut self, at: usize) {
        let far = &mut self.far[at];
        far.state = State::Lost;
        far.outbox.hang_up();
        far.outbox.close();
        let part = far.part;
        self.pairs.lose(at, &self.far);
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

    /// A host is away, and will be started again: who sends there waits or drops, and who hears from there waits.
    pub(super) fn leave(&mut self, at: usize, why: &str, say: &impl Fn(&str)) {
        let far = &mut self.far[at];
        let before = far.comeback.take();
        far.comeback = Some(Comeback::of(before));
        if !why.is_empty() {
            say(&format!("{why}; {} is started again", far.name));
        }
        far.leave(at, why.is_empty().then_some(&self.tells));
        let part = far.part;
        self.pairs.leave(at, &self.far);
        for (link, edge) in self.links_of(part) {
            if let Some(producer) = self.outbox(edge.from).filter(|_| edge.to == part) {
                producer.tell_away(link);
            }
        }
    }

    /// Tries to start a host again, or gives it up where nothing is left for it to do.
    fn bring_back(&mut self, at: usize, progress: &Progress) {
        if self.is_needless(at) {
            return self.give_up(at);
        }
        let eras =
            self.links_of(self.far[at].part).map(|(link, _)| (link, self.eras[usize::from(link)])).collect();
        let far = &mut self.far[at];
        let login = far.login();
        let Some(comeback) = &mut far.comeback else { return };
        if comeback.is_due() {
            comeback.attempt(login, eras);
        }
        match comeback.outcome() {
            None => {}
            Some(Ok(connected)) => self.reopen(at, connected),
            Some(Err(error)) => {
                let why = one_line(&error);
                if comeback.is_news(&why) {
                    progress.say(&format!("{} is not there yet: {why}", far.name));
                }
            }
        }
    }

    fn reopen(&mut self, at: usize, connected: Connected) {
        self.far[at].come_back(connected);
        self.open(at);
        self.far[at].say(ToThere::Build);
    }

    /// A host that was started again has opened its part.
    pub(super) fn is_back(&mut self, at: usize, say: &impl Fn(&str)) {
        let far = &mut self.far[at];
        far.state = State::Built;
        far.count().come_back();
        far.say(ToThere::Start);
        let away = far.comeback.as_mut().map(Comeback::is_there).unwrap_or_default();
        let way = far.route().map(|route| format!("; samples go over {}", route.name())).unwrap_or_default();
        say(&format!("{} is there again, after {:.1} s{way}", far.name, away.as_secs_f64()));
        let part = far.part;
        let looking = self.pairs.come_back(at, &self.far);
        let links: Vec<_> = self.links_of(part).map(|(link, edge)| (link, edge.from, edge.to)).collect();
        for (link, from, to) in links.into_iter().filter(|(link, ..)| !looking.contains(link)) {
            self.join(link, from, to);
        }
    }

    /// The two ends of a link are joined, if both are there.
    fn join(&mut self, link: u16, from: usize, to: usize) {
        let far = |part| self.far.iter().find(|far| far.part == part);
        let (producer, consumer) = (far(from), far(to));
        let is_there = |far: Option<&Far>| far.is_none_or(|far| far.state == State::Built);
        let is_over = |far: Option<&Far>| far.is_some_and(Far::is_over);
        match (producer, consumer) {
            (_, Some(consumer)) if is_over(producer) => consumer.outbox.end_link(link),
            (Some(producer), _) if is_over(consumer) => producer.outbox.close_link(link),
            _ if !is_there(producer) || !is_there(consumer) => {}
            (producer, consumer) => {
                let era = self.eras[usize::from(link)] + 1;
                match (producer, consumer) {
                    (Some(producer), _) => producer.outbox.tell_join(link, era),
                    (None, Some(consumer)) => consumer.outbox.join(link, era),
                    // A link has an end on another host.
                    (None, None) => {}
                }
                self.eras[usize::from(link)] = era;
            }
        }
    }

    /// Whether a host that is away has nothing to do any more: all that it is linked to is over, and it does nothing by itself.
    fn is_needless(&self, at: usize) -> bool {
        let part = self.far[at].part;
        let is_over = |part: usize| match self.far.iter().find(|far| far.part == part) {
            Some(far) => far.is_over(),
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

    /// A host that is away is not waited for any more.
    pub(super) fn give_up(&mut self, at: usize) {
        let away = self.far[at].comeback.as_ref().map(|comeback| comeback.away_since.elapsed());
        let away = away.unwrap_or_default().as_secs_f64();
        let what = format!("{} is gone, for {away:.1} s now", self.far[at].name);
        self.cut_off(at);
        self.failed.get_or_insert_with(|| Elsewhere { what, status: GONE }.into());
    }
}
