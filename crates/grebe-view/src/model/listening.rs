//! The sound of the box on the waterfall.

use super::action::{Action, BoxDeed};
use super::controls::TimeFrequencyBox;
use super::open::Entry;
use super::setting::Setting;
use super::view_model::ViewModel;
use super::widget::Widget;
use crate::data::listening::{HeardBox, Listener, Playing};
use crate::data::viewport::Region;

impl ViewModel {
    /// Whether boxes can be heard here.
    pub(super) fn has_sound(&self) -> bool {
        self.options.listener.is_some() && self.options.hear.is_some()
    }

    /// Starts to make the sound of the box; ends one that is being made or played.
    pub(super) fn listen(&mut self) {
        if self.stop_sound() {
            return;
        }
        if !self.has_sound() {
            return self
                .say("no sound from here: use the page of grebe serve, or grebe play --demodulate".into());
        }
        let heard = self.heard_box();
        self.open.listening = heard.zip(self.options.listener.as_ref()).map(|(heard, it)| it.listen(heard));
    }

    /// Plays the sound of the box's band from now on; ends one that is being made or played.
    pub(super) fn listen_live(&mut self) {
        if self.stop_sound() {
            return;
        }
        let Some(heard) = self.heard_box() else { return };
        self.open.playing = self.options.hear_live.as_ref().and_then(|hear_live| hear_live(heard));
    }

    /// Ends the sound that is being made or played; returns whether there was any.
    fn stop_sound(&mut self) -> bool {
        let (made, played) = (self.open.listening.take(), self.open.playing.take());
        let is_stopped = made.is_some() || played.is_some();
        if is_stopped {
            self.say("stopped".into());
        }
        is_stopped
    }

    /// The box with its modulation; says why there is none.
    fn heard_box(&mut self) -> Option<HeardBox> {
        let (Some([.., low_hz, high_hz]), Some(region), Some(modulation)) =
            (self.box_place(), self.region(), self.modulation())
        else {
            self.say("sound needs the sample rate of the stream".into());
            return None;
        };
        let Region { channel, samples, .. } = region;
        Some(HeardBox { channel, samples, low_hz, high_hz, modulation })
    }

    /// Whether the sound of a band can go on with its stream.
    fn has_live_sound(&self) -> bool {
        self.options.hear_live.is_some() && !self.seen.picture.is_ended
    }

    /// Passes a finished sound on, and takes the end of one; returns whether there was any.
    pub(super) fn look_at_sound(&mut self) -> bool {
        let ended = self.open.playing.as_mut().and_then(Playing::ended);
        let has_ended = ended.is_some();
        if let Some(why) = ended {
            self.open.playing = None;
            self.say(why);
        }
        let Some(made) = self.open.listening.as_ref().and_then(|listening| listening.take()) else {
            return has_ended;
        };
        self.open.listening = None;
        match (made, &self.options.hear) {
            (Ok(sound), Some(hear)) => {
                let missing = sound.missing.clone();
                self.open.playing = hear(sound);
                if !missing.is_empty() {
                    self.say(missing);
                }
            }
            (Ok(_), None) => {}
            (Err(why), _) => self.say(format!("not played: {why}")),
        }
        true
    }

    /// The chosen modulation, or the one whose usual bandwidth is nearest to that of the box.
    fn modulation(&self) -> Option<usize> {
        let Listener { modulations, .. } = self.options.listener.as_ref()?;
        let TimeFrequencyBox { frequencies: [low, high], .. } = self.controls.boxed?;
        let ratio = |place: &usize| ((high - low) / modulations[*place].1).ln().abs();
        let nearest = (0..modulations.len()).min_by(|a, b| ratio(a).total_cmp(&ratio(b)));
        self.open.modulation.or(nearest)
    }

    pub(super) fn modulation_entries(&self) -> Vec<Entry> {
        let modulations = self.options.listener.iter().flat_map(|listener| &listener.modulations);
        let now = self.modulation().or(self.open.modulation);
        let entry = |(place, (name, _)): (usize, &(String, f64))| Entry {
            text: name.clone(),
            is_on: now == Some(place),
        };
        modulations.enumerate().map(entry).collect()
    }

    pub(super) fn choose_modulation(&mut self, place: usize) {
        self.open.modulation = Some(place).filter(|_| place < self.modulation_entries().len());
    }

    /// The buttons for the sound of the box.
    pub(super) fn sound_controls(&self) -> Vec<Widget> {
        let now = self.modulation_entries().into_iter().find(|entry| entry.is_on);
        let Some(name) = now.filter(|_| self.has_sound()).map(|entry| entry.text) else { return Vec::new() };
        let button = |words: String, title: &str, deed| Widget::button(words, title, Action::Box(deed));
        let (words, title) = match (&self.open.listening, &self.open.playing) {
            (Some(listening), _) => (format!("stop, {} %", listening.percent()), STOP),
            (None, Some(_)) => ("stop".into(), STOP),
            (None, None) => ("listen".into(), "play the sound of the box"),
        };
        let mut widgets = vec![button(words, title, BoxDeed::Listen)];
        if self.has_live_sound() && !self.is_heard() {
            widgets.push(button(
                "live".into(),
                "play the sound of its band from now on",
                BoxDeed::ListenLive,
            ));
        }
        widgets.push(Widget::choice(name, "modulation of the sound", Setting::Modulation));
        widgets
    }

    /// Entries for the sound in the list of the box.
    pub(super) fn sound_deeds(&self) -> Vec<(String, Action)> {
        let entry = |words: &str, deed| (words.to_owned(), Action::Box(deed));
        let words = if self.is_heard() { "stop its sound" } else { "listen to it" };
        let mut entries = vec![entry(words, BoxDeed::Listen)];
        if self.has_live_sound() && !self.is_heard() {
            entries.push(entry("listen to its band from now on", BoxDeed::ListenLive));
        }
        let now = self.modulation_entries().into_iter().find(|entry| entry.is_on && self.has_sound());
        entries.extend(
            now.map(|entry| (format!("modulation: {}", entry.text), Action::Choices(Setting::Modulation))),
        );
        entries
    }

    fn is_heard(&self) -> bool {
        self.open.listening.is_some() || self.open.playing.is_some()
    }
}

const STOP: &str = "end the sound";

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::data::feed::ScopeFeed;
    use crate::data::listening::{Listening, ListeningSide, Sound};
    use crate::data::status::SourceStatus;
    use crate::model::options::ViewOptions;
    use crate::testing::sine_batch;

    type Asked = Arc<Mutex<Vec<(HeardBox, ListeningSide)>>>;

    fn model(rate_hz: f64) -> (ViewModel, Asked, Arc<Mutex<Vec<Sound>>>) {
        let (mut feed, link) = ScopeFeed::new(1 << 20);
        let mut options = ViewOptions::new(SourceStatus::default);
        let (asked, heard) = (Asked::default(), Arc::<Mutex<Vec<Sound>>>::default());
        let (asks, hears) = (asked.clone(), heard.clone());
        let modulations = [("AM", 10e3), ("FM", 12.5e3), ("CW", 500.0)].map(|(name, hz)| (name.into(), hz));
        options.listener = Some(Listener::new(modulations.to_vec(), move |heard| {
            let (side, listening) = Listening::begin();
            asks.lock().unwrap().push((heard, side));
            listening
        }));
        options.hear = Some(Box::new(move |sound| {
            hears.lock().unwrap().push(sound);
            None
        }));
        let mut model = ViewModel::new(link, options, crate::png::encode);
        model.request(100);
        feed.ingest(&sine_batch(0, 1, 500, rate_hz)).unwrap();
        model.refresh();
        model.controls.boxed = Some(TimeFrequencyBox { samples: [100, 300], frequencies: [3e3, 3.6e3] });
        (model, asked, heard)
    }

    fn says(model: &ViewModel) -> &str {
        model.open.message.as_ref().map_or("", |(words, _)| words)
    }

    #[test]
    fn the_box_is_heard_as_its_bandwidth_suggests_or_as_chosen() {
        let (mut model, asked, heard) = model(1e5);
        model.act(Action::Box(BoxDeed::Listen));
        let (wanted, side) = asked.lock().unwrap().remove(0);
        let expected = HeardBox { channel: 0, samples: 100..300, low_hz: 3e3, high_hz: 3.6e3, modulation: 2 };
        assert_eq!(wanted, expected);
        side.tell(40);
        assert_eq!(model.sound_controls()[0].words, "stop, 40 %");
        assert!(!model.look_at_sound());
        let sound = Sound {
            rate_hz: 8_000,
            samples: vec![1, -1],
            missing: "only the first 60 s".into(),
            is_live: false,
        };
        side.end(Ok(sound.clone()));
        assert!(model.look_at_sound() && model.open.listening.is_none());
        assert_eq!((heard.lock().unwrap().pop(), says(&model)), (Some(sound), "only the first 60 s"));

        model.act(Action::Choices(Setting::Modulation));
        model.act(Action::Choose(0));
        assert_eq!(model.sound_controls()[1].words, "AM");
        model.act(Action::Box(BoxDeed::Listen));
        let (wanted, side) = asked.lock().unwrap().remove(0);
        assert_eq!(wanted.modulation, 0);
        model.act(Action::Box(BoxDeed::Listen));
        assert!(!side.is_wanted() && says(&model) == "stopped");
    }

    #[test]
    fn a_sound_that_plays_here_ends_by_the_same_key_or_by_itself() {
        let (mut model, asked, _) = model(1e5);
        let (broken, plays) = (Arc::<AtomicBool>::default(), Arc::new(()));
        let (breaks, player) = (broken.clone(), plays.clone());
        model.options.hear = Some(Box::new(move |_| {
            let (broken, player) = (broken.clone(), player.clone());
            Some(Playing::new(move || {
                let _ = &player;
                broken.load(Ordering::Relaxed).then(|| "not played: unplugged".into())
            }))
        }));
        let words =
            |model: &ViewModel| (model.sound_controls()[0].words.clone(), model.sound_deeds()[0].0.clone());
        let hear = |model: &mut ViewModel| {
            model.act(Action::Box(BoxDeed::Listen));
            asked.lock().unwrap().remove(0).1.end(Ok(Sound::default()));
            assert!(model.look_at_sound() && !model.look_at_sound());
            assert_eq!(
                (words(model), Arc::strong_count(&plays)),
                (("stop".into(), "stop its sound".into()), 3)
            );
        };
        hear(&mut model);
        model.act(Action::Box(BoxDeed::Listen));
        assert_eq!((says(&model), Arc::strong_count(&plays)), ("stopped", 2));
        assert_eq!(words(&model), ("listen".into(), "listen to it".into()));
        hear(&mut model);
        breaks.store(true, Ordering::Relaxed);
        assert!(model.look_at_sound() && !model.look_at_sound());
        assert_eq!((says(&model), Arc::strong_count(&plays)), ("not played: unplugged", 2));
        // The list of the box leads to that of the modulations.
        model.act(Action::Choices(Setting::Box));
        let modulation = model.list_entries().iter().position(|it| it.text == "modulation: CW").unwrap();
        model.act(Action::Choose(modulation));
        assert_eq!(model.list().map(|list| list.setting), Some(Setting::Modulation));
        model.act(Action::Choose(0));
        assert_eq!((model.list(), model.sound_deeds()[1].0.as_str()), (None, "modulation: AM"));
    }

    #[test]
    fn a_band_is_heard_live_while_its_stream_goes_on() {
        let (mut model, ..) = model(1e5);
        let words =
            |model: &ViewModel| model.sound_controls().into_iter().map(|it| it.words).collect::<Vec<_>>();
        assert_eq!(words(&model), ["listen", "CW"]);
        let heard = Arc::<Mutex<Vec<HeardBox>>>::default();
        let hears = heard.clone();
        model.options.hear_live = Some(Box::new(move |heard| {
            hears.lock().unwrap().push(heard);
            Some(Playing::new(|| None))
        }));
        assert_eq!(words(&model), ["listen", "live", "CW"]);
        model.act(Action::Box(BoxDeed::ListenLive));
        let HeardBox { channel, low_hz, high_hz, modulation, .. } = heard.lock().unwrap().pop().unwrap();
        assert_eq!((channel, low_hz, high_hz, modulation), (0, 3e3, 3.6e3, 2));
        assert!(!model.look_at_sound());
        assert_eq!(words(&model), ["stop", "CW"]);
        model.act(Action::Box(BoxDeed::ListenLive));
        assert_eq!((says(&model), words(&model).len(), heard.lock().unwrap().len()), ("stopped", 3, 0));
        model.seen.picture.is_ended = true;
        assert_eq!(words(&model), ["listen", "CW"]);
    }

    #[test]
    fn why_nothing_is_heard_is_said() {
        let (mut model, asked, _) = model(1e5);
        model.act(Action::Box(BoxDeed::Listen));
        asked.lock().unwrap().remove(0).1.end(Err("too wide".into()));
        assert!(model.look_at_sound() && says(&model) == "not played: too wide");
        model.act(Action::Box(BoxDeed::Listen));
        // As if its thread had panicked.
        asked.lock().unwrap().clear();
        assert!(model.look_at_sound() && says(&model).starts_with("not played: it ended"));
        model.options.hear = None;
        model.act(Action::Box(BoxDeed::Listen));
        assert!(says(&model).contains("grebe serve") && model.sound_controls().is_empty());
        let (mut model, ..) = self::model(0.0);
        model.act(Action::Box(BoxDeed::Listen));
        assert!(says(&model).contains("sample rate"), "{}", says(&model));
    }
}
