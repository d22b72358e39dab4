//! The prompt, without a front end.

use super::*;
use crate::data::feed::ScopeFeed;
use crate::data::picture::StreamInfo;
use crate::data::status::SourceStatus;
use crate::model::action::Action;
use crate::model::options::ViewOptions;
use crate::model::setting::Setting;

fn model(options: ViewOptions) -> ViewModel {
    let (_, link) = ScopeFeed::new(1 << 20);
    let mut model = ViewModel::new(link, options, crate::png::encode);
    model.seen.picture.stream = Some(StreamInfo {
        format: Default::default(),
        channels: 1,
        rate_hz: 1e6,
        block_samples: 10,
        generator_drops: 0,
    });
    model
}

fn typed(model: &mut ViewModel, text: &str) -> Option<String> {
    model.type_text(|line| *line = text.to_owned());
    model.answer();
    model.open.prompt.as_ref().and_then(|prompt| prompt.refused.clone())
}

#[test]
fn the_times_of_a_trigger_are_typed_with_prefixes_and_nonsense_changes_nothing() {
    let mut model = model(ViewOptions::new(SourceStatus::default));
    model.act(Action::Ask(Question::TriggerTime));
    assert!(model.open.prompt.is_none(), "an edge has no time");
    model.act(Action::Next(Setting::TriggerKind));
    model.act(Action::Ask(Question::TriggerTime));
    assert_eq!(typed(&mut model, "20u..1.5 ms"), None);
    let set = |model: &ViewModel| {
        let settings = model.controls.trigger.settings;
        (settings.pulse_min_s, settings.pulse_max_s)
    };
    let (min, max) = set(&model);
    assert!((min.unwrap() - 20e-6).abs() < 1e-15 && (max.unwrap() - 1.5e-3).abs() < 1e-15);
    model.act(Action::Ask(Question::TriggerTime));
    assert_eq!(model.open.prompt.as_ref().unwrap().text, "20 \u{b5}s..1.5 ms");
    assert!(typed(&mut model, "2 lightyears").unwrap().contains("2 lightyears"));
    assert_eq!(set(&model), (min, max));
    // The prompt stays open for another try; escape changes nothing.
    assert!(model.open.prompt.is_some());
    model.act(Action::Back);
    assert!(model.open.prompt.is_none() && !model.is_done());
    model.act(Action::Ask(Question::TriggerTime));
    assert_eq!(typed(&mut model, ""), None);
    assert_eq!(set(&model), (None, None));
    model.controls.trigger.set_kind(TriggerKind::Dropout);
    model.act(Action::Ask(Question::TriggerTime));
    assert_eq!(typed(&mut model, "250m"), None);
    assert_eq!(model.controls.trigger.settings.dropout_s, Some(0.25));
}

#[test]
fn another_file_takes_the_place_of_the_stream_and_what_cannot_be_opened_is_said() {
    let mut options = ViewOptions::new(SourceStatus::default);
    options.open = Some(Box::new(|path| match path.to_str() {
        Some("good.wav") => {
            let (_, link) = ScopeFeed::new(1 << 20);
            let status = || SourceStatus { name: "good.wav".into(), ..SourceStatus::default() };
            Ok((link, ViewOptions::new(status)))
        }
        _ => Err("no such file".into()),
    }));
    let mut model = model(options);
    let first = model.link.clone();
    model.act(Action::Theme);
    let theme = model.controls.theme;
    model.act(Action::Ask(Question::File));
    assert_eq!(typed(&mut model, "bad.wav").as_deref(), Some("no such file"));
    assert!(!model.take_replaced() && !first.is_closed());
    assert_eq!(typed(&mut model, "good.wav"), None);
    assert!(model.take_replaced() && !model.take_replaced());
    assert!(first.is_closed() && !model.is_done());
    assert_eq!((model.seen.hud.source.as_str(), model.controls.theme), ("good.wav", theme));
    model.drop_file(std::path::Path::new("worse.wav"));
    assert!(model.open.message.as_ref().unwrap().0.contains("no such file"));
}

#[test]
fn another_source_of_the_server_takes_the_place_of_the_one_that_is_shown() {
    use crate::SourceMenu;
    use crate::model::setting::Setting;

    fn options(shown: usize) -> ViewOptions {
        let open = |number: usize| {
            let (opened, came) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                let there = (ScopeFeed::new(1 << 20).1, options(number));
                let _ = opened.send(if number == 2 { Err("it is gone".to_owned()) } else { Ok(there) });
            });
            came
        };
        let names = vec!["shm://adc".to_owned(), "udp://:5000".into(), "gone".into()];
        let name = names[shown].clone();
        let sources = Some(SourceMenu { names, shown, open: Box::new(open) });
        let status = move || SourceStatus { name: name.clone(), ..SourceStatus::default() };
        ViewOptions { sources, ..ViewOptions::new(status) }
    }
    let mut model = model(options(0));
    let first = model.link.clone();
    model.act(Action::Choices(Setting::Source));
    let lines: Vec<(String, bool)> = model.list_entries().into_iter().map(|it| (it.text, it.is_on)).collect();
    assert_eq!(lines[..2], [("1 shm://adc".to_owned(), true), ("2 udp://:5000".into(), false)]);
    // Moving over a line opens nothing.
    model.act(Action::Mark(1));
    assert!(!first.is_closed() && model.list().is_some());
    model.act(Action::Take);
    // The old source stays until the new one is open.
    assert!(model.is_opening() && !model.take_replaced() && !first.is_closed() && model.list().is_none());
    model.renew_hud(1);
    assert!(
        model.seen.hud.notice.as_ref().unwrap().contains("going to udp://:5000"),
        "{:?}",
        model.seen.hud.notice
    );
    let wait = |model: &mut ViewModel| {
        while model.is_opening() {
            std::thread::sleep(std::time::Duration::from_millis(1));
            model.refresh();
        }
    };
    wait(&mut model);
    assert!(model.take_replaced() && first.is_closed());
    assert_eq!(model.seen.hud.source, "udp://:5000");
    // A person can still choose the present source.
    model.act(Action::Choices(Setting::Source));
    model.act(Action::Choose(0));
    model.act(Action::Choices(Setting::Source));
    model.act(Action::Choose(1));
    assert!(!model.is_opening() && !model.take_replaced());
    model.act(Action::Choices(Setting::Source));
    model.act(Action::Choose(2));
    wait(&mut model);
    assert!(!model.take_replaced() && model.open.message.as_ref().unwrap().0.contains("it is gone"));
    assert!(crate::model::keys::keys(&model).any(|group| group.title == "sources"));
}

#[test]
fn without_anybody_to_open_files_that_is_said() {
    let mut model = model(ViewOptions::new(SourceStatus::default));
    model.act(Action::Ask(Question::File));
    assert!(model.open.prompt.is_none() && model.open.message.is_some());
}

#[test]
fn a_receiver_is_tuned_by_what_is_typed_and_shows_what_it_is_tuned_to() {
    use std::sync::{Arc, Mutex};

    use crate::model::receiver::{ReceiverRemote, Tuned};

    let mut without = model(ViewOptions::new(SourceStatus::default));
    without.act(Action::Ask(Question::Tuning(Tunable::Frequency)));
    assert!(
        without.open.prompt.is_none()
            && without.open.message.as_ref().is_some_and(|(said, _)| said.contains("no receiver"))
    );

    let tuned = Arc::new(Mutex::new(Tuned { frequency_hz: 100e6, rate_hz: 2.4e6, gain_db: None }));
    let (now, later) = (tuned.clone(), tuned.clone());
    let receiver = ReceiverRemote {
        tuned: Box::new(move || *now.lock().unwrap()),
        tune: Box::new(move |wanted| {
            *later.lock().unwrap() = wanted;
            Ok(())
        }),
    };
    let options = ViewOptions { receiver: Some(receiver), ..ViewOptions::new(SourceStatus::default) };
    let mut model = model(options);
    for (what, shown, text) in [
        (Tunable::Frequency, "100 MHz", "+33.92M"),
        (Tunable::Gain, "auto", "20.7"),
        (Tunable::Rate, "2.4 MHz", "1M"),
    ] {
        model.act(Action::Ask(Question::Tuning(what)));
        assert_eq!(model.open.prompt.as_ref().unwrap().text, shown);
        assert!(typed(&mut model, "lots").unwrap().contains(what.name()));
        assert_eq!(typed(&mut model, text), None);
    }
    let expected = Tuned { frequency_hz: 133.92e6, rate_hz: 1e6, gain_db: Some(20.7) };
    assert_eq!(*tuned.lock().unwrap(), expected);
    assert!(crate::model::keys::keys(&model).any(|group| group.title == "receiver"));
}
