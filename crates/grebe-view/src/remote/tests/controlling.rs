//! Controls of a source, with and without the right.

use grebe_frame::{AnnotationEdit, StreamAnnotation};

use super::*;
use crate::model::generator::{GeneratorRemote, GeneratorWish};
use crate::model::keeper::{Annotator, KeptStretch, StretchKeeper};
use crate::model::receiver::{ReceiverRemote, Tuned};

/// A source whose generator, receiver and keeper note their requests.
fn controlled(noted: &Arc<Mutex<Vec<String>>>) -> SharedControls {
    let note = |noted: &Arc<Mutex<Vec<String>>>, words: String| noted.lock().unwrap().push(words);
    let (told, tuned, kept, edited) = (noted.clone(), noted.clone(), noted.clone(), noted.clone());
    let now = Arc::new(Mutex::new(Tuned { frequency_hz: 1e8, rate_hz: 1e6, gain_db: None }));
    let later = now.clone();
    SharedControls::new(SourceControls {
        generator: Some(GeneratorRemote {
            waves: vec!["sine".into(), "square".into()],
            tell: Box::new(move |wish| match wish {
                GeneratorWish::Rate(rate_hz) if rate_hz > 1e6 => Err("too fast for me".into()),
                wish => {
                    note(&told, format!("{wish:?}"));
                    Ok(())
                }
            }),
        }),
        receiver: Some(ReceiverRemote {
            tuned: Box::new(move || *now.lock().unwrap()),
            tune: Box::new(move |wanted| {
                *later.lock().unwrap() = wanted;
                note(&tuned, format!("{} {:?}", wanted.frequency_hz, wanted.gain_db));
                Ok(())
            }),
        }),
        keeper: Some(StretchKeeper {
            last: "the last 20 s".into(),
            keep: Box::new(move |stretch| {
                note(&kept, format!("{stretch:?}"));
                let (said, told) = std::sync::mpsc::channel();
                said.send("kept in x.sigmf-meta".into()).unwrap();
                told
            }),
        }),
        annotator: Some(Annotator {
            place: "written into x.sigmf-meta".into(),
            edit: Box::new(move |edit| {
                note(&edited, format!("{:?}", edit.each(|it| it.label.clone().unwrap_or_default())));
                let (said, told) = std::sync::mpsc::channel();
                said.send("written into x.sigmf-meta".into()).unwrap();
                told
            }),
        }),
    })
}

#[test]
fn who_may_control_has_the_source_changed_and_who_may_only_look_is_told_so() {
    let (_feed, there) = ScopeFeed::new(1 << 20);
    let noted = Arc::default();
    let controls = controlled(&noted);
    let tuned = Tuned { frequency_hz: 433.92e6, rate_hz: 1e6, gain_db: Some(20.0) };
    let screen = || KeptStretch::Screen { samples: 10..20, rate_hz: 1e3 };
    let mut pair = pair_with(&there, controls.clone(), Right::Control);
    pair.carry();
    let SourceControls { generator, receiver, keeper, annotator } = pair.scope.controls();
    let (generator, receiver, keeper) = (generator.unwrap(), receiver.unwrap(), keeper.unwrap());
    let annotator = annotator.unwrap();
    assert_eq!(annotator.place, "written into x.sigmf-meta");
    assert_eq!(generator.waves, ["sine", "square"]);
    assert_eq!(((receiver.tuned)().frequency_hz, keeper.last.as_str()), (1e8, "the last 20 s"));
    (generator.tell)(GeneratorWish::Wave("square".into())).unwrap();
    (generator.tell)(GeneratorWish::Rate(5e5)).unwrap();
    (receiver.tune)(tuned).unwrap();
    assert_eq!((receiver.tuned)(), tuned, "relative changes count from the requested tuning");
    let told = (keeper.keep)(screen());
    pair.carry();
    assert_eq!(
        *noted.lock().unwrap(),
        [
            "Wave(\"square\")",
            "Rate(500000.0)",
            "433920000 Some(20.0)",
            "Screen { samples: 10..20, rate_hz: 1000.0 }"
        ]
    );
    assert_eq!(told.try_recv().unwrap(), "kept in x.sigmf-meta");
    assert_eq!(pair.session.take_changed().unwrap(), "samples 10 to 20 kept");
    let burst = || StreamAnnotation { label: Some("burst".into()), ..StreamAnnotation::default() };
    let told = (annotator.edit)(AnnotationEdit::Add(burst()));
    let long = StreamAnnotation { comment: Some("x".repeat(2_000)), ..burst() };
    let too_long = (annotator.edit)(AnnotationEdit::Replace { before: burst(), after: long });
    pair.carry();
    assert_eq!(noted.lock().unwrap().last().unwrap(), "Add(\"burst\")");
    assert_eq!(told.try_recv().unwrap(), "written into x.sigmf-meta");
    assert!(too_long.try_recv().unwrap().contains("too long"));
    assert_eq!(pair.session.take_changed().unwrap(), "an annotation added");
    // A refusal of the source arrives as an error.
    (generator.tell)(GeneratorWish::Rate(2e6)).unwrap();
    pair.carry();
    assert_eq!((pair.scope.status())().notice.as_deref(), Some("too fast for me"));
    pair.scope.lost("it was cut");
    assert!((generator.tell)(GeneratorWish::TogglePause).unwrap_err().contains("no connection"));

    noted.lock().unwrap().clear();
    let mut pair = pair_with(&there, controls, Right::Look);
    pair.carry();
    let SourceControls { generator, receiver, keeper, annotator } = pair.scope.controls();
    let (generator, receiver, keeper) = (generator.unwrap(), receiver.unwrap(), keeper.unwrap());
    let edit = annotator.unwrap().edit;
    assert!(edit(AnnotationEdit::Remove(burst())).try_recv().unwrap().contains("--control"));
    for refused in [(generator.tell)(GeneratorWish::TogglePause), (receiver.tune)(tuned)] {
        assert!(refused.unwrap_err().contains("--control"));
    }
    assert!((keeper.keep)(KeptStretch::Last).try_recv().unwrap().contains("--control"));
    // The server checks the right too.
    for wish in [
        r#""pause""#,
        r#"{"wave":"sine"}"#,
        r#"{"tune":{"frequency_hz":1,"rate_hz":1}}"#,
        r#"{"keep":{"number":1}}"#,
        r#"{"annotate":{"number":2,"edit":{"add":{"core:sample_start":5,"core:label":"x"}}}}"#,
    ] {
        pair.session.take(&format!(r#"{{"control":{wish}}}"#), monotonic_ns()).unwrap();
    }
    assert_eq!(pair.session.take_changed(), None);
    pair.carry();
    assert!(noted.lock().unwrap().is_empty(), "nothing was changed");
    assert!((pair.scope.status())().notice.unwrap().contains("--control"));
}
