//! Lists, without a front end.

use super::*;
use crate::data::feed::ScopeFeed;
use crate::data::status::SourceStatus;
use crate::model::options::ViewOptions;
use crate::testing::sine_batch;

/// A scope over two channels.
fn model() -> ViewModel {
    let (mut feed, link) = ScopeFeed::new(1 << 20);
    feed.ingest(&sine_batch(0, 2, 1000, 1e3)).unwrap();
    feed.finish();
    let mut model = ViewModel::new(link, ViewOptions::new(SourceStatus::default), crate::png::encode);
    model.request(100);
    model.refresh();
    model
}

fn on(model: &ViewModel) -> Vec<String> {
    model.list_entries().into_iter().filter(|entry| entry.is_on).map(|entry| entry.text).collect()
}

#[test]
fn each_line_of_each_list_is_what_is_set_once_it_is_chosen() {
    let mut model = model();
    for setting in Setting::EACH.into_iter().filter(|setting| !setting.is_many() && !setting.is_deed()) {
        model.act(Action::Choices(setting));
        let lines = model.list_entries();
        assert_eq!(
            lines.is_empty(),
            matches!(setting, Setting::Wave | Setting::Source | Setting::Modulation),
            "{setting:?}"
        );
        assert!(lines.iter().filter(|line| line.is_on).count() <= 1, "{setting:?}");
        for (place, line) in lines.iter().enumerate() {
            model.act(Action::Choices(setting));
            model.act(Action::Choose(place));
            assert!(model.list().is_none(), "{setting:?} closes when it is answered");
            model.act(Action::Choices(setting));
            assert_eq!(on(&model), std::slice::from_ref(&line.text), "{setting:?}");
        }
    }
}

#[test]
fn a_key_goes_on_by_one_and_shows_the_list_for_a_while() {
    let mut model = model();
    for setting in
        [Setting::TriggerKind, Setting::TriggerPlace, Setting::Weighting, Setting::Averages, Setting::Math]
    {
        model.act(Action::Choices(setting));
        let lines: Vec<String> = model.list_entries().into_iter().map(|line| line.text).collect();
        let first = lines.iter().position(|line| *line == on(&model)[0]).unwrap();
        // One round returns to the first value.
        for turn in 1..=lines.len() {
            model.act(Action::Next(setting));
            assert_eq!(on(&model), [lines[(first + turn) % lines.len()].clone()], "{setting:?}");
        }
    }
    let left_ns = model.list_closes_in_ns().unwrap();
    assert!(left_ns <= SEEN_NS);
    assert!(!model.close_seen_list(monotonic_ns()) && model.list().is_some());
    assert!(model.close_seen_list(monotonic_ns() + SEEN_NS) && model.list().is_none());
    // A list that was opened explicitly stays.
    model.act(Action::Choices(Setting::Math));
    assert!(!model.close_seen_list(u64::MAX));
}

#[test]
fn the_arrows_set_what_they_pass_and_other_keys_close_the_list() {
    let mut model = model();
    model.act(Action::Choices(Setting::TriggerKind));
    model.act(Action::Mark(1));
    assert_eq!(model.controls.trigger.settings.kind, TriggerKind::Pulse);
    model.act(Action::Mark(-2));
    assert_eq!(model.controls.trigger.settings.kind, TriggerKind::Dropout);
    model.act(Action::Take);
    assert!(model.list().is_none());
    assert_eq!(model.controls.trigger.settings.kind, TriggerKind::Dropout);
    model.act(Action::Choices(Setting::Averages));
    model.act(Action::Longer);
    assert!(model.list().is_none());
    // Escape closes the list before the help.
    model.act(Action::Help);
    model.act(Action::Choices(Setting::Averages));
    model.act(Action::Back);
    assert!(model.list().is_none() && model.controls.is_help_open);
}

#[test]
fn measurements_are_chosen_for_all_channels_or_for_one() {
    let mut model = model();
    model.act(Action::Measure);
    model.request(100);
    model.refresh();
    let before = model.quantity_columns();
    assert_eq!((before.len(), model.measurement_rows()[0].cells.len()), (9, 10));
    let overshoot = Quantity::Overshoot as usize;
    model.act(Action::Choices(Setting::Quantities));
    model.act(Action::Mark(overshoot as i32));
    assert_eq!(model.quantity_columns(), before, "passing a line does not choose it");
    model.act(Action::Take);
    assert!(model.list().is_some(), "more can be chosen");
    assert_eq!(model.quantity_columns().len(), 10);
    assert_eq!(model.list_title(), "measurements of all channels");
    model.act(Action::Choose(Quantity::ALL.len()));
    assert_eq!(model.list_title(), "measurements of CH1");
    model.act(Action::Choose(Quantity::PeakToPeak as usize));
    let rows = model.measurement_rows();
    assert_eq!((rows[0].cells[1].as_str(), rows[1].cells[1].as_str()), ("", "9.998 k"), "{rows:?}");
}

#[test]
fn the_list_of_all_settings_says_what_is_set_and_opens_each() {
    let mut model = model();
    model.act(Action::Choices(Setting::All));
    let kind = model.list_entries().iter().position(|line| line.text.contains("edge")).unwrap();
    assert!(
        model.list_entries().iter().all(|line| !line.text.contains("waveform")),
        "nobody makes waves here"
    );
    model.act(Action::Mark(kind as i32));
    assert_eq!(model.list().map(|list| list.setting), Some(Setting::All));
    model.act(Action::Take);
    assert_eq!(model.list().map(|list| list.setting), Some(Setting::TriggerKind));
}
