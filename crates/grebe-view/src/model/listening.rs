//! The sound of the box on the waterfall.

use super::action::{Action, BoxDeed};
use super::controls::TimeFrequencyBox;
use super::open::Entry;
use super::setting::Setting;
use super::view_model::ViewModel;
use super::widget::Widget;
use crate::data::listening::{HeardBox, Listener};
use crate::data::viewport::Region;

impl ViewModel {
    /// Whether boxes can be heard here.
    pub(super) fn has_sound(&self) -> bool {
        self.options.listener.is_some() && self.options.hear.is_some()
    }

    /// Starts to make the sound of the box, or ends that.
    pub(super) fn listen(&mut self) {
        if self.open.listening.take().is_some() {
            return self.say("stopped".into());
        }
        let Some(listener) = self.options.listener.as_ref().filter(|_| self.options.hear.is_some()) else {
            return self
                .say("no sound from here: use the page of grebe serve, or grebe play --demodulate".into());
        };
        let (Some([.., low_hz, high_hz]), Some(region), Some(modulation)) =
            (self.box_place(), self.region(), self.modulation())
        else {
            return self.say("sound needs the sample rate of the stream".into());
        };
        let Region { channel, samples, .. } = region;
        self.open.listening =
            Some(listener.listen(HeardBox { channel, samples, low_hz, high_hz, modulation }));
    }

    /// Passes a finished sound on; returns whether there was any.
    pub(super) fn look_at_sound(&mut self) -> bool {
        let Some(ended) = self.open.listening.as_ref().and_then(|listening| listening.take()) else {
            return false;
        };
        self.open.listening = None;
        match (ended, &self.options.hear) {
            (Ok(sound), Some(hear)) => {
                let missing = sound.missing.clone();
                hear(sound);
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
        let percent = self.open.listening.as_ref().map(|listening| listening.percent());
        let words = percent.map_or("listen".into(), |percent| format!("stop, {percent} %"));
        vec![
            Widget::button(words, "play the sound of the box; again: do not", Action::Box(BoxDeed::Listen)),
            Widget::choice(name, "modulation of the sound", Setting::Modulation),
        ]
    }
}

#[cfg(test)]
mod tests {
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
        options.hear = Some(Box::new(move |sound| hears.lock().unwrap().push(sound)));
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
        let sound = Sound { rate_hz: 8_000, samples: vec![1, -1], missing: "only the first 60 s".into() };
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
