//! Creating, finding, changing and undoing annotations, and their destinations.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use grebe_frame::{BatchPool, Description, Header};

use super::*;
use crate::data::feed::ScopeFeed;
use crate::data::link::ScopeLink;
use crate::data::status::SourceStatus;
use crate::model::keeper::Annotator;
use crate::model::options::ViewOptions;
use crate::model::setting::Setting;

/// 10 s of a stream of 1 kS/s, with the last 2 s visible.
fn model(options: ViewOptions) -> (ViewModel, ScopeFeed) {
    let (mut feed, link) = ScopeFeed::new(4 << 20);
    let said = |first_sample_index, label: &str| StreamAnnotation {
        first_sample_index,
        length_samples: 100,
        label: Some(label.into()),
        ..StreamAnnotation::default()
    };
    let told = Description {
        annotations: vec![said(1_000, "early"), said(8_500, "there")],
        ..Description::default()
    };
    let told = Arc::new(told);
    for block in 0..10 {
        let mut pool = BatchPool::new(1, 8192);
        pool.describe(Some(Arc::clone(&told)));
        let header = Header {
            sequence: block,
            channel_count: 1,
            block_length_samples: 1_000,
            sample_rate_hz: 1e3,
            first_sample_index: block * 1_000,
            ..Header::default()
        };
        let mut batch = pool.acquire().unwrap();
        batch.push::<i16>(&header, |_, samples| samples.fill(100)).unwrap();
        feed.ingest(&batch.freeze()).unwrap();
    }
    feed.finish();
    let mut model = ViewModel::new(link, options, crate::png::encode);
    model.controls.time.span = Some(2.0);
    look(&mut model);
    (model, feed)
}

fn options() -> ViewOptions {
    ViewOptions::new(SourceStatus::default)
}

fn look(model: &mut ViewModel) {
    for _ in 0..2 {
        model.request(200);
        model.refresh();
    }
}

fn marks(model: &ViewModel) -> Vec<(f64, f64, String)> {
    let mut marks: Vec<_> =
        model.annotation_marks().into_iter().map(|it| (it.parts[0], it.parts[1], it.words)).collect();
    marks.sort_by(|a, b| a.0.total_cmp(&b.0));
    marks.iter().map(|it| ((it.0 * 1e3).round() / 1e3, (it.1 * 1e3).round() / 1e3, it.2.clone())).collect()
}

fn answer(model: &mut ViewModel, text: &str) {
    assert!(model.open.prompt.is_some(), "nothing is asked");
    model.type_text(|typed| *typed = text.into());
    model.answer();
    look(model);
}

#[test]
fn a_stretch_between_cursors_is_named_edited_deleted_and_brought_back() {
    let (mut model, _feed) = model(options());
    assert_eq!(marks(&model), [(0.25, 0.3, "there".to_owned())]);
    model.act(Action::Annotate);
    assert!(model.controls.cursors.times.is_some() && model.open.prompt.is_none(), "first the cursors");
    let (start, ..) = model.axis();
    model.controls.cursors.set_time(0, start + 1.5);
    model.controls.cursors.set_time(1, start + 1.0);
    model.act(Action::Annotate);
    answer(&mut model, "  ");
    assert_eq!(model.open.prompt.as_ref().unwrap().refused.as_deref(), Some("give it a name"));
    answer(&mut model, "burst; two of them #FF8800");
    assert!(model.open.prompt.is_none());
    let burst = model.open.annotations.chosen.clone().unwrap();
    assert_eq!((burst.first_sample_index, burst.length_samples), (9_000, 500));
    assert_eq!((burst.comment.as_deref(), burst.color.as_deref()), (Some("two of them"), Some("#ff8800")));
    let mark = model.annotation_marks().into_iter().find(|mark| mark.is_chosen).unwrap();
    assert_eq!((mark.color, mark.words.as_str()), (Some([255, 136, 0]), "burst"));
    model.act(Action::EditAnnotation);
    assert_eq!(model.open.prompt.as_ref().unwrap().text, "burst; two of them #ff8800");
    answer(&mut model, "renamed");
    let there = (0.25, 0.3, "there".to_owned());
    assert_eq!(marks(&model), [there.clone(), (0.5, 0.75, "renamed".to_owned())]);
    // An annotation of the stream changes, too.
    model.act(Action::Annotations);
    look(&mut model);
    assert_eq!(model.annotations_counted(), "3");
    model.press(crate::model::widget::Press::Annotation(0));
    look(&mut model);
    assert_eq!(model.open.annotations.chosen.as_ref().unwrap().label.as_deref(), Some("early"));
    assert!(model.controls.time.is_held());
    let middle = model.seen.picture.left_index + model.seen.picture.span_samples / 2.0;
    assert!((middle - 1_050.0).abs() < 2.0, "{middle}");
    model.act(Action::DeleteAnnotation);
    look(&mut model);
    assert_eq!((marks(&model), model.annotations_counted()), (vec![], "2".to_owned()));
    // Deleted, renamed, named: each is taken back.
    for count in ["3", "3", "2"] {
        model.act(Action::UndoAnnotation);
        look(&mut model);
        assert_eq!(model.annotations_counted(), count);
    }
    let list = model.annotation_list().unwrap();
    let labels: Vec<_> = list.rows.iter().filter_map(|row| row.label.as_deref()).collect();
    assert_eq!(labels, ["early", "there"], "all is as it was");
}

#[test]
fn a_table_is_filtered_and_a_list_has_the_same() {
    let (mut model, _feed) = model(options());
    model.act(Action::Choices(Setting::Annotations));
    look(&mut model);
    let entries: Vec<String> = model.list_entries().into_iter().map(|entry| entry.text).collect();
    assert_eq!(&entries[DEEDS.len()..], ["1 s +100 ms  early", "8.5 s +100 ms  there"]);
    model.act(Action::Choose(DEEDS.len() - 1));
    answer(&mut model, "THE");
    model.act(Action::Annotations);
    look(&mut model);
    assert_eq!(model.annotations_counted(), "1 of 2");
    model.set_field(Field::AnnotationFilter, "").unwrap();
    look(&mut model);
    assert_eq!(model.annotations_counted(), "2");
    model.press(crate::model::widget::Press::Annotation(1));
    model.set_field(Field::AnnotationLow, "1.5k").unwrap();
    model.set_field(Field::AnnotationHigh, "2 kHz").unwrap();
    assert!(model.set_field(Field::AnnotationColor, "red").is_err());
    look(&mut model);
    let marks: Vec<_> = model.annotation_marks().into_iter().map(|it| it.words).collect();
    assert_eq!(marks, ["there 1.5 kHz \u{2026} 2 kHz"]);
    assert_eq!(model.field_text(Field::AnnotationHigh), "2 kHz");
}

#[test]
fn a_box_on_the_waterfall_has_its_times_and_frequencies() {
    let mut of = options();
    (of.initial.spectrum, of.initial.waterfall) = (true, true);
    let (mut model, _feed) = model(of);
    let times = model.waterfall_times().expect("there are samples");
    let part = AnnotatedPart { times: [0.5, 1.0], frequencies: Some([0.75, 0.25]) };
    model.act(Action::AnnotatePart(part));
    answer(&mut model, "box");
    let chosen = model.open.annotations.chosen.clone().unwrap();
    assert_eq!((chosen.lower_edge_hz, chosen.upper_edge_hz), (Some(125.0), Some(375.0)));
    let samples = (times.top - times.bottom) * 1e3;
    assert!((chosen.length_samples as f64 - samples / 2.0).abs() <= 1.0, "{chosen:?} {times:?}");
    let mark = model.waterfall_marks().into_iter().find(|mark| mark.is_chosen).unwrap();
    assert!((mark.rows[0], mark.parts[0], mark.parts[1]) == (mark.rows[0].max(0.0), 0.25, 0.75), "{mark:?}");
    assert!(mark.rows[0] < 0.01 && (mark.rows[1] - 0.5).abs() < 0.01, "{mark:?}");

    // From elsewhere, the table leads to its frequencies, too.
    model.controls.spectrum_zoom = (0.9, 1.0);
    model.act(Action::Annotations);
    look(&mut model);
    let list = model.annotation_list().unwrap();
    let place = list.rows.iter().position(|row| row.label.as_deref() == Some("box")).unwrap();
    model.press(crate::model::widget::Press::Annotation(place));
    let (from, to) = model.controls.spectrum_zoom;
    assert!((from - 0.1875).abs() < 1e-9 && (to - 0.8125).abs() < 1e-9, "{from} {to}");
    model.press(crate::model::widget::Press::Annotation(place));
    assert_eq!(model.controls.spectrum_zoom, (from, to), "it is visible");
}

#[test]
fn who_takes_changes_gets_each_and_what_he_says_is_shown() {
    let (tell, edits) = channel();
    let mut of = options();
    let edit = move |edit| -> Receiver<String> {
        tell.send(edit).unwrap();
        let (said, told) = channel();
        said.send("kept in this session only: the disk is full".into()).unwrap();
        told
    };
    of.annotator = Some(Annotator { place: "written into x".into(), edit: Box::new(edit) });
    let (mut model, _feed) = model(of);
    assert_eq!(model.annotation_place(), "written into x");
    model.act(Action::AnnotatePart(AnnotatedPart { times: [0.5, 0.25], frequencies: None }));
    answer(&mut model, "mine");
    let AnnotationEdit::Add(added) = edits.try_recv().unwrap() else { panic!() };
    assert_eq!((added.first_sample_index, added.length_samples), (8_500, 500));
    assert!(model.seen.hud.notice.as_deref().is_some_and(|notice| notice.contains("the disk is full")));
    model.act(Action::UndoAnnotation);
    assert_eq!(edits.try_recv().unwrap(), AnnotationEdit::Remove(added));
    let refusing = Annotator::refusing();
    let edit = AnnotationEdit::Add(StreamAnnotation::default());
    assert!((refusing.edit)(edit).recv().unwrap().starts_with("not changed"));
}

#[test]
fn all_who_look_see_a_change_and_what_is_saved_has_it() {
    let (mut model, _feed) = model(options());
    let other: ScopeLink = model.link.another();
    let mut other = ViewModel::new(other, options(), crate::png::encode);
    other.controls.time.span = Some(2.0);
    model.act(Action::AnnotatePart(AnnotatedPart { times: [0.5, 0.25], frequencies: None }));
    answer(&mut model, "mine");
    look(&mut other);
    assert_eq!(other.annotation_marks().len(), 2);
    let link = &model.link;
    link.request_extract(8_000..10_000);
    let extract = link.take_extract().unwrap();
    let labels: Vec<_> = extract.annotations.iter().filter_map(|it| it.label.as_deref()).collect();
    assert_eq!(labels, ["there", "mine"]);
}
