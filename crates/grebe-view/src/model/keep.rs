//! Saves a range of a stream that is being recorded into a ring.

use std::sync::mpsc::TryRecvError;

use super::action::SaveWhat;
use super::keeper::KeptStretch;
use super::view_model::ViewModel;

impl ViewModel {
    /// Whether a range can be saved.
    pub(crate) fn has_keeper(&self) -> bool {
        self.options.keeper.is_some()
    }

    /// The menu entries for ranges to save.
    pub(crate) fn keep_entries(&self) -> Vec<(String, SaveWhat)> {
        let Some(keeper) = &self.options.keeper else { return Vec::new() };
        let key = |what| if what == self.kept_by_key() { "  !" } else { "" };
        let last = format!("{}, from the ring{}", keeper.last, key(SaveWhat::Last));
        let screen = format!("the range on the screen, from the ring{}", key(SaveWhat::Screen));
        vec![(last, SaveWhat::Last), (screen, SaveWhat::Screen)]
    }

    /// The range that the key saves: that of a held picture, else the newest.
    pub(crate) fn kept_by_key(&self) -> SaveWhat {
        if self.controls.time.is_held() { SaveWhat::Screen } else { SaveWhat::Last }
    }

    pub(super) fn begin_keep(&mut self, what: SaveWhat) {
        let Some(keeper) = &self.options.keeper else {
            return self.say(NO_KEEPER.into());
        };
        let (stretch, words) = match what {
            SaveWhat::Screen => {
                let picture = &self.seen.picture;
                let end = (picture.right_index().max(0.0) as u64).min(picture.next_index);
                let samples = picture.left_index.max(0.0) as u64..end;
                if samples.is_empty() {
                    return self.say("not kept: nothing is on the screen".into());
                }
                (KeptStretch::Screen { samples, rate_hz: picture.rate_or_one() }, "the range on the screen")
            }
            _ => (KeptStretch::Last, keeper.last.as_str()),
        };
        let words = format!("keeping {words} \u{2026}");
        let told = (keeper.keep)(stretch);
        self.open.keeping.push(told);
        self.say(words);
    }

    /// Shows the outcome of pending saves; returns whether there was any.
    pub(super) fn look_at_kept(&mut self) -> bool {
        let mut said = None;
        self.open.keeping.retain(|told| match told.try_recv() {
            Ok(words) => {
                said = Some(words);
                false
            }
            Err(ended) => ended == TryRecvError::Empty,
        });
        let has_said = said.is_some();
        said.into_iter().for_each(|words| self.say(words));
        has_said
    }
}

const NO_KEEPER: &str = "nothing is saved: grebe record URI DIR --ring 30m keeps streams that it can read beside a scope; this source is not one";

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::data::feed::ScopeFeed;
    use crate::data::status::SourceStatus;
    use crate::model::action::Action;
    use crate::model::keeper::StretchKeeper;
    use crate::model::options::ViewOptions;
    use crate::testing::sine_batch;

    #[test]
    fn the_key_keeps_what_came_last_and_the_menu_what_is_on_the_screen() {
        let (mut feed, link) = ScopeFeed::new(1 << 20);
        let (asked, asks) = channel();
        let mut options = ViewOptions::new(SourceStatus::default);
        let keep = move |stretch| {
            let (tell, told) = channel();
            asked.send(stretch).unwrap();
            tell.send("kept all of it in x.sigmf-meta".to_owned()).unwrap();
            told
        };
        options.keeper = Some(StretchKeeper { last: "the last 20 s".into(), keep: Box::new(keep) });
        let mut model = ViewModel::new(link, options, crate::png::encode);
        model.act(Action::Save(SaveWhat::Screen));
        assert!(asks.try_recv().is_err(), "nothing came yet");
        model.request(100);
        feed.ingest(&sine_batch(0, 1, 500, 1e3)).unwrap();
        model.refresh();
        model.act(Action::Keep);
        assert_eq!(asks.try_recv(), Ok(KeptStretch::Last));
        assert!(
            model.open.message.as_ref().is_some_and(|(text, _)| text.starts_with("keeping the last 20 s"))
        );
        assert!(model.refresh());
        assert_eq!(model.seen.hud.notice.as_deref(), Some("kept all of it in x.sigmf-meta"));
        model.act(Action::Save(SaveWhat::Screen));
        let Ok(KeptStretch::Screen { samples, rate_hz }) = asks.try_recv() else { panic!("the screen") };
        assert_eq!((samples.end, rate_hz), (500, 1e3));
        model.act(Action::Pause);
        assert_eq!(model.kept_by_key(), SaveWhat::Screen, "a held picture");
    }

    #[test]
    fn without_a_ring_it_is_said_how_to_have_one() {
        let (_feed, link) = ScopeFeed::new(1 << 20);
        let mut model = ViewModel::new(link, ViewOptions::new(SourceStatus::default), crate::png::encode);
        model.act(Action::Keep);
        assert!(model.open.message.as_ref().is_some_and(|(text, _)| text.contains("--ring 30m")));
        assert!(model.keep_entries().is_empty());
    }
}
