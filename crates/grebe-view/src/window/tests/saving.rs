//! Saved files, and saved settings.

use std::sync::{Arc, Mutex};

use super::*;
use crate::data::extract::{Extract, ExtractSamples};

#[test]
fn what_is_saved_can_be_read_again() {
    let folder = std::env::temp_dir().join(format!("grebe-view-save-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut panes = panes(ThemeChoice::Dark);
    panes.model.options.folder = folder.clone();
    let mut harness = harness(panes);
    press(&mut harness, "DSM");
    let notice = harness.state().model.seen.hud.notice.clone();
    assert!(notice.is_some_and(|notice| notice.contains("switch measurements on")));
    press(&mut harness, "vM");
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    assert!(read("udp_5000-2.png").starts_with(b"\x89PNG"));
    let csv = String::from_utf8(read("udp_5000.csv")).unwrap();
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("sample,time (s),CH1,CH2,CH3"));
    assert_eq!(lines.next(), Some("0,-2,0,0,0"));
    assert_eq!(csv.lines().count(), 1 + 1800, "lost samples have no line");
    let csv = String::from_utf8(read("udp_5000-3.csv")).unwrap();
    assert!(!csv.contains("trigger"), "nothing triggers: {csv}");
    assert!(csv.contains("\nCH2,frequency,Hz,4,4,4,4,,1\n"), "{csv}");
    press(&mut harness, "mrM");
    let csv = String::from_utf8(read("udp_5000-4.csv")).unwrap();
    assert!(csv.contains("\nCH2,trigger interval,s,,0.25,0.25,0.25,0,4\n"), "{csv}");
    assert!(csv.contains("\nCH2,trigger rate,1/min,240,,,,,4\n"), "{csv}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_recording_has_the_visible_samples_and_the_triggers_within() {
    let saved: Arc<Mutex<Option<Extract>>> = Arc::default();
    let mut panes = panes(ThemeChoice::Dark);
    let keep = saved.clone();
    panes.model.options.export = Some(Box::new(move |path, extract, _| {
        *keep.lock().unwrap() = Some(extract.clone());
        Ok(path.to_owned())
    }));
    let mut harness = harness(panes);
    harness.get_by_label("auto").click();
    harness.run();
    harness.get_by_label("+").click();
    harness.run();
    harness.get_by_label("save").click();
    harness.run();
    harness.get_by_label("recording (SigMF)  R").click();
    harness.run();
    let model = &harness.state().model;
    assert!(
        model.seen.hud.notice.as_ref().is_some_and(|notice| notice.contains(".sigmf-meta")),
        "{:?}",
        model.seen.hud
    );
    let extract = saved.lock().unwrap().take().unwrap();
    let picture = &model.seen.picture;
    assert_eq!(extract.range, picture.left_index as u64..picture.right_index() as u64);
    assert_eq!(extract.rate_hz, 1e3);
    assert!(
        extract.runs.iter().all(|run| matches!(&run.samples, ExtractSamples::I16(lanes) if lanes.len() == 3))
    );
    let visible =
        picture.triggers.iter().filter(|at| (picture.left_index..picture.right_index()).contains(at));
    let visible: Vec<f64> = visible.copied().collect();
    assert!(!visible.is_empty() && extract.triggers == visible, "{:?} {visible:?}", extract.triggers);
}

#[test]
fn a_session_restores_what_was_set() {
    let mut harness = dark();
    press(&mut harness, "mmecfo2V:LCEE");
    let session = crate::model::session::Session::of(&harness.state().model.controls);
    let session = crate::model::session::Session::from_toml(&session.to_toml()).unwrap();
    let mut fresh = panes(ThemeChoice::Dark);
    session.restore(&mut fresh.model.controls);
    let harness = self::harness(fresh);
    harness.get_by_label("falling");
    harness.get_by_label("LF reject 1 Hz \u{b7} 20 ms");
    harness.get_by_label("CH1 level");
    harness.get_by_label("settings of M CH1 \u{2212} CH2");
    harness.get_by_label("time");
    assert_eq!(harness.state().lanes_shown(), "1 3 math");
    assert!(
        harness.state().model.controls.show.overlay && harness.state().model.controls.cursors.times.is_some()
    );
}
