//! Takes new state: the picture, the statistics of its measurements, the texts around it.

use std::net::SocketAddr;

use grebe_flow::monotonic_ns;
use grebe_scope::{Engineering, Slope};

use super::open::ExtractReason;
use super::seen::hud::{self, DC, Hud, RunState, TriggerWords};
use super::trigger_time::time_words;
use super::view_model::ViewModel;
use crate::data::lane::LaneId;
use crate::data::status::SourceStatus;
use crate::data::trigger::{TriggerKind, TriggerView};
use crate::model::channel::ChannelSetup;

impl ViewModel {
    /// Takes the newest picture; returns whether anything visible has changed.
    pub(crate) fn refresh(&mut self) -> bool {
        let was_opened = self.look_at_opened();
        self.take_next();
        let is_new = self.show_next();
        self.refresh_words() || is_new || was_opened
    }

    /// Takes the newest picture; [`show_next`](Self::show_next) shows it.
    pub(super) fn take_next(&mut self) {
        self.seen.next = self.link.take().or(self.seen.next.take());
    }

    /// Shows the last taken picture; returns whether there was one.
    pub(super) fn show_next(&mut self) -> bool {
        let next = self.seen.next.take();
        let is_new = next.is_some();
        if let Some(mut picture) = next {
            // Measurements without a scale are in counts: those of a first picture, which was requested before its
            // lanes were known. The math lane follows from its inputs.
            if let Some(asked) = picture.answers.as_ref().and_then(|answered| answered.measure.clone()) {
                let is_scaled = |lane: LaneId| lane.is_math() || asked.get(lane).is_some();
                picture.measured.retain(|measured| is_scaled(measured.lane));
            }
            // The texts follow at once if the span changed, or if they were not being updated.
            if picture.span_samples != self.seen.picture.span_samples || self.seen.hud.state != RunState::Live
            {
                self.seen.hud_made_ns = 0;
            }
            let is_other = self.seen.picture.streams > 0 && picture.streams > self.seen.picture.streams;
            self.seen.picture = picture;
            if self.hear() {
                self.seen.hud_made_ns = 0;
            }
            if is_other {
                self.say(format!("another stream began: {}", hud::stream_text(&self.seen.picture)));
            }
            self.forget_other_channels();
            self.zoom_to_band();
            self.take_initial_box();
            self.place_markers(false);
            self.seen.taken.0 += 1;
            self.seen.count_measurements();
        }
        is_new
    }

    /// Drops the options of channels that the stream does not have, once it is known.
    fn forget_other_channels(&mut self) {
        let Some(stream) = self.seen.picture.stream else { return };
        let given = &mut self.options.initial.channels;
        for channel in stream.channels..given.len() {
            *self.controls.lanes.channel_mut(channel) = ChannelSetup::default();
        }
        given.truncate(stream.channels);
    }

    /// Updates the texts around the picture; returns whether anything visible changed.
    pub(super) fn refresh_words(&mut self) -> bool {
        let was_answered = self.take_samples();
        let was_kept = self.look_at_kept();
        let was_found = self.look_at_found();
        let was_heard = self.look_at_sound();
        let is_list_closed = self.close_seen_list(monotonic_ns());
        let was_opened = self.look_at_opened();
        self.refresh_hud()
            || was_opened
            || was_answered
            || was_kept
            || was_found
            || was_heard
            || is_list_closed
    }

    /// Takes samples from the history; returns whether any arrived.
    fn take_samples(&mut self) -> bool {
        let Some(extract) = self.link.take_extract() else { return false };
        match self.open.asked.take() {
            Some(ExtractReason::Save(what)) => self.end_save(what, &extract),
            Some(ExtractReason::Autoset { samples }) => self.end_autoset(&extract, samples),
            None => return false,
        }
        true
    }

    /// Updates the texts a few times per second: digits that change with every frame are unreadable.
    fn refresh_hud(&mut self) -> bool {
        let now_ns = monotonic_ns();
        let status = (self.options.status)();
        let state = RunState::of(&self.seen.picture, &status, self.controls.time.is_held(), now_ns);
        let is_due = now_ns.saturating_sub(self.seen.hud_made_ns) >= HUD_INTERVAL_NS;
        // Digits of a still signal stay, but the source's notice may change.
        let is_moving =
            state == RunState::Live || self.seen.hud_made_ns == 0 || status.notice != self.seen.told;
        if state == self.seen.hud.state && !(is_due && is_moving) {
            return false;
        }
        self.renew_hud(now_ns);
        true
    }

    /// Updates the texts now.
    pub(crate) fn renew_hud(&mut self, now_ns: u64) {
        self.seen.count_pictures(now_ns);
        let status = (self.options.status)();
        self.seen.told.clone_from(&status.notice);
        self.seen.gap_places.look(&self.seen.picture.gaps, &status);
        self.look_for_second_sender(&status);
        let is_paused = self.controls.time.is_held();
        self.seen.hud = Hud::new(&self.seen.picture, &status, is_paused, self.seen.pictures_per_s, now_ns);
        self.seen.hud.costs = self.seen.costs();
        self.seen.hud.facts.extend(self.standing.words());
        self.seen.hud.trigger = self.seen.picture.trigger.map(|trigger| self.trigger_words(&trigger));
        self.open.message =
            self.open.message.take().filter(|(_, since_ns)| now_ns.saturating_sub(*since_ns) < MESSAGE_NS);
        if let Some((text, _)) = &self.open.message {
            self.seen.hud.notice = Some(text.clone());
        }
        if let Some(words) = self.opening_words() {
            self.seen.hud.notice = Some(words);
        }
        if self.generator.is_paused {
            self.seen.hud.notice = Some("the generator is paused (G)".into());
        }
        self.seen.hud_made_ns = now_ns;
    }

    /// Reports another sender to the same port once; the counter shows the amount.
    fn look_for_second_sender(&mut self, status: &SourceStatus) {
        if status.second_sender.is_none() {
            // The ignored sender has become the stream's sender, or the source is new.
            self.open.message.take_if(|(text, _)| text.ends_with(LEFT_OUT));
        }
        let Some(from) = status.second_sender.filter(|_| status.foreign_datagrams > 0) else { return };
        if self.seen.told_senders.contains(&from) || self.seen.told_senders.len() >= TOLD_MAX {
            return;
        }
        self.seen.told_senders.push(from);
        // A dual-stack socket sees an IPv4 sender under an IPv6 address.
        let from = SocketAddr::new(from.ip().to_canonical(), from.port());
        self.say(format!("{from}{LEFT_OUT}"));
    }

    fn trigger_words(&self, trigger: &TriggerView) -> TriggerWords {
        let setup = self.setup(trigger.settings.lane);
        let is_down = trigger.settings.slope == Slope::Falling;
        let pick = |up, down| if is_down { down } else { up };
        let is_relative = trigger.settings.coupling.is_lf_reject();
        let zero = if is_relative { setup.offset } else { 0.0 };
        let show = |count: f64| Engineering::new(setup.value(count) - zero, &setup.unit).to_string();
        let unit = self.seen.picture.axis_unit();
        let corner = trigger.settings.coupling.corner_hz(self.seen.picture.span());
        let hertz = if unit == "s" { "Hz" } else { "/S" };
        let holdoff_s = trigger.settings.holdoff_s;
        TriggerWords {
            source: setup.label(trigger.settings.lane),
            kind: trigger.settings.kind,
            slope: match trigger.settings.kind {
                TriggerKind::Edge => pick("rising", "falling"),
                TriggerKind::Pulse | TriggerKind::Runt => pick("positive", "negative"),
                TriggerKind::Window => pick("leaves", "enters"),
                TriggerKind::Dropout => "either",
            },
            level: match trigger.settings.kind.has_two_levels() {
                true => format!("{} \u{2026} {}", show(trigger.level), show(trigger.upper)),
                false => show(trigger.level),
            },
            coupling: corner.map_or(DC.into(), |corner| {
                format!("{} {}", trigger.settings.coupling.name(), Engineering::new(corner, hertz))
            }),
            noise_reject: if trigger.settings.is_noise_reject { " noise reject" } else { "" },
            time: time_words(&trigger.settings, self.seen.picture.span(), unit),
            holdoff: if holdoff_s > 0.0 {
                Engineering::new(holdoff_s, unit).to_string()
            } else {
                String::new()
            },
            hysteresis: match trigger.settings.hysteresis {
                Some(_) => {
                    let (value, unit) = self.trigger_hysteresis(trigger);
                    Engineering::new(value, &unit).to_string()
                }
                None => String::new(),
            },
            state: trigger.state,
        }
    }

    /// The hysteresis and its unit.
    pub(crate) fn trigger_hysteresis(&self, trigger: &TriggerView) -> (f64, String) {
        let setup = self.setup(trigger.settings.lane);
        (trigger.hysteresis * setup.scale.abs(), setup.unit)
    }
}

/// End of the message about a second sender.
const LEFT_OUT: &str = " also sends to this port, and is ignored";
/// Maximum senders to report.
const TOLD_MAX: usize = 8;
/// Minimum interval between updates of the texts.
const HUD_INTERVAL_NS: u64 = 150_000_000;
/// How long a message is shown.
const MESSAGE_NS: u64 = 6_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::feed::ScopeFeed;
    use crate::model::options::ViewOptions;

    #[test]
    fn another_sender_is_told_once_with_its_address() {
        let (_, link) = ScopeFeed::new(1 << 20);
        let mut model = ViewModel::new(link, ViewOptions::new(SourceStatus::default), crate::png::encode);
        let status = |foreign_datagrams, from: &str| SourceStatus {
            foreign_datagrams,
            second_sender: from.parse().ok(),
            ..SourceStatus::default()
        };
        let mut told = |status| {
            model.open.message = None;
            model.look_for_second_sender(&status);
            model.open.message.take().map(|(text, _)| text)
        };
        assert_eq!(told(SourceStatus::default()), None);
        assert_eq!(told(status(0, "10.0.0.7:4000")), None);
        let text = told(status(1234, "[::ffff:10.0.0.7]:4000")).unwrap();
        assert!(text.starts_with("10.0.0.7:4000 "), "{text}");
        assert_eq!(told(status(9999, "[::ffff:10.0.0.7]:4000")), None, "once");
        assert!(told(status(9999, "10.0.0.8:4000")).is_some(), "a third is another one");
        // Its stream is shown now, so the message about it must disappear.
        model.look_for_second_sender(&status(9999, "10.0.0.9:4000"));
        assert!(model.open.message.is_some());
        model.look_for_second_sender(&SourceStatus { foreign_datagrams: 9999, ..SourceStatus::default() });
        assert_eq!(model.open.message, None);
    }
}
