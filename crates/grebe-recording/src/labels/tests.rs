use serde_json::json;

use super::*;

fn file(annotations: Vec<Annotation>) -> SampleFile {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.i8");
    std::fs::write(&path, vec![0; 1_000_000]).unwrap();
    SampleFile::open(&path).unwrap().annotated(annotations)
}

fn annotation(position: u64, length_samples: u64, label: &str) -> Annotation {
    let fields = json!({"core:label": label}).as_object().unwrap().clone();
    Annotation { position, length_samples, fields }
}

#[test]
fn annotations_are_announced_early_and_repeatedly_longest_first() {
    let mut all: Vec<_> =
        (0..1_000u64).map(|at| annotation(100 + at * 10, at % 30, &format!("{at}"))).collect();
    all.insert(0, annotation(50, 900_000, "longest"));
    let (mut labels, note) = Labels::of(&file(all));
    assert_eq!(note, None);
    let (mut times_said, mut renewals) = (vec![0; 1_000], 0);
    for position in (0..12_000).step_by(5) {
        let Some(due) = labels.due() else { continue };
        if due > position {
            continue;
        }
        renewals += 1;
        let said = labels.around(position, 0, 10_000);
        assert!(said.len() <= UPCOMING + KEPT, "{}", said.len());
        assert!(said.is_sorted_by_key(|annotation| annotation.first_sample_index));
        assert!(said.iter().any(|annotation| annotation.label.as_deref() == Some("longest")));
        for annotation in said {
            let Some(number) = annotation.label.and_then(|label| label.parse::<usize>().ok()) else {
                continue;
            };
            assert_eq!(annotation.first_sample_index, 10_000 + 100 + number as u64 * 10);
            assert!(times_said[number] > 0 || position < 100 + number as u64 * 10, "{number} is late");
            times_said[number] += 1;
        }
    }
    assert!(renewals > 1_000 / UPCOMING && labels.due().is_none());
    assert!(times_said[..990].iter().all(|&times| times >= 2), "{times_said:?}");
}

#[test]
fn many_annotations_at_one_place_are_sent_together_and_excess_is_counted() {
    let all = |count: usize| (0..count).map(|at| annotation(70, 5, &format!("{at}"))).collect();
    let (mut labels, note) = Labels::of(&file(all(100)));
    assert_eq!((note, labels.around(70, 0, 0).len()), (None, 100));
    let (mut labels, note) = Labels::of(&file(all(300)));
    let kept = labels.all.len();
    assert!(kept > 100 && note.unwrap().starts_with(&format!("{} annotations", 300 - kept)));
    assert_eq!(labels.around(0, 0, 0).len(), UPCOMING);
    assert_eq!((labels.due(), labels.around(70, 0, 0).len()), (Some(70), KEPT + kept - UPCOMING));
}
