//! Takes changes to the annotations of a scope: into its pictures, and into the recording that it shows. In a ring, they go to
//! the part with their first sample.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use grebe_frame::{AnnotationEdit, StreamAnnotation};
use grebe_recording::{Error, SampleFile, ring_part_paths};
use grebe_view::{Annotator, ScopeLink};

/// For the scope behind `link`; without a recording or the folder of a ring, changes are kept in its session.
pub(crate) fn annotator_of(link: &ScopeLink, recording: Option<PathBuf>) -> Annotator {
    let place = match recording.as_deref().map(place_of) {
        Some(Ok(place)) => format!("written into {place}"),
        Some(Err(error)) => format!("{KEPT}: {error}"),
        None => format!("{KEPT}; R saves them"),
    };
    let (link, writer) = (link.clone(), recording.map(Writer::start));
    let edit = move |edit: AnnotationEdit| {
        let (said, told) = channel();
        link.annotate(edit.clone());
        match &writer {
            Some(writer) => writer.write(edit, said),
            // The scope may be gone.
            None => drop(said.send(KEPT.to_owned())),
        }
        told
    };
    Annotator { place, edit: Box::new(edit) }
}

fn place_of(path: &Path) -> Result<String, Error> {
    if path.is_dir() {
        return Ok(format!("the part of the ring in {}", path.display()));
    }
    Ok(SampleFile::annotation_place(path)?.display().to_string())
}

/// Writes in a thread, because a scope must not wait for a disk. Dropping it waits until all is written.
struct Writer {
    edits: Option<Sender<(AnnotationEdit, Sender<String>)>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    fn start(path: PathBuf) -> Self {
        let (edits, asked) = channel();
        let thread = std::thread::Builder::new().name("grebe-annotate".into());
        // Without a thread each change is refused.
        let thread = thread.spawn(move || write_each(&path, &asked)).ok();
        Self { edits: Some(edits), thread }
    }

    fn write(&self, edit: AnnotationEdit, said: Sender<String>) {
        let refused = self.edits.as_ref().and_then(|edits| edits.send((edit, said)).err());
        if let Some(refused) = refused {
            let _ = refused.0.1.send(format!("{KEPT}: nothing writes them"));
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.edits.take());
        // A panic was already reported.
        self.thread.take().map(JoinHandle::join);
    }
}

fn write_each(path: &Path, asked: &Receiver<(AnnotationEdit, Sender<String>)>) {
    for (edit, said) in asked {
        let words = match write(path, &edit) {
            Ok(places) => {
                let places: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
                format!("annotations written into {}", places.join(", "))
            }
            Err(error) => format!("{KEPT}: {error}"),
        };
        let _ = said.send(words);
    }
}

fn write(path: &Path, edit: &AnnotationEdit) -> Result<Vec<PathBuf>, Error> {
    if path.is_dir() {
        return write_in_ring(path, edit);
    }
    let edit = SampleFile::open(path)?.edit_of_stream(edit)?;
    Ok(SampleFile::edit_annotations(path, &[edit])?.places)
}

fn write_in_ring(folder: &Path, edit: &AnnotationEdit) -> Result<Vec<PathBuf>, Error> {
    match edit {
        AnnotationEdit::Add(it) => {
            let (part, it) = part_of(folder, it)?;
            write(&part, &AnnotationEdit::Add(it))
        }
        AnnotationEdit::Remove(it) => {
            let (part, it) = part_of(folder, it)?;
            write(&part, &AnnotationEdit::Remove(it))
        }
        AnnotationEdit::Replace { before, after } => {
            let ((from, before), (to, after)) = (part_of(folder, before)?, part_of(folder, after)?);
            if from == to {
                return write(&from, &AnnotationEdit::Replace { before, after });
            }
            let mut places = write(&to, &AnnotationEdit::Add(after))?;
            places.extend(write(&from, &AnnotationEdit::Remove(before))?);
            Ok(places)
        }
    }
}

/// The part of a ring with the first sample of an annotation, and the annotation up to the end of that part.
fn part_of(folder: &Path, annotation: &StreamAnnotation) -> Result<(PathBuf, StreamAnnotation), Error> {
    let first = annotation.first_sample_index;
    for path in ring_part_paths(folder).into_iter().rev() {
        // One without samples yet does not open, nor does one that is removed just now.
        let Ok(file) = SampleFile::open(&path) else { continue };
        let (Some(oldest), Some(newest)) = (file.segments().first(), file.segments().last()) else {
            continue;
        };
        let end = newest.first_sample_index + newest.length_samples;
        if (oldest.first_sample_index..end).contains(&first) {
            let length_samples = annotation.end_index().min(end) - first;
            return Ok((path, StreamAnnotation { length_samples, ..annotation.clone() }));
        }
    }
    let what = "no part of the ring has the first sample of the annotation: it was removed, or is in a gap";
    Err(Error::Content { path: folder.into(), what: what.to_owned() })
}

const KEPT: &str = "annotations kept in this session";

#[cfg(test)]
mod tests {
    use grebe_frame::StreamAnnotation;
    use grebe_recording::{SigmfSettings, SigmfWriter};
    use grebe_view::ScopeFeed;

    use super::*;

    fn note(first_sample_index: u64, length_samples: u64, label: &str) -> StreamAnnotation {
        let label = Some(label.to_owned());
        StreamAnnotation { first_sample_index, length_samples, label, ..StreamAnnotation::default() }
    }

    #[test]
    fn changes_of_a_scope_stand_in_the_recording_where_its_stream_has_them() {
        let folder = tempfile::tempdir().unwrap();
        let settings = SigmfSettings { channels: 1, sample_rate_hz: 1e3, ..SigmfSettings::default() };
        let mut writer = SigmfWriter::create(&folder.path().join("x"), &settings).unwrap();
        writer.write(100, &[&[1i16; 50]]).unwrap();
        writer.write(1_000, &[&[1i16; 50]]).unwrap();
        let foreign = [("core:label".into(), "old".into()), ("x:y".into(), 5.into())];
        writer.finish().unwrap();
        let path = folder.path().join("x.sigmf-meta");
        let old = grebe_recording::Annotation {
            position: 2,
            length_samples: 3,
            fields: foreign.into_iter().collect(),
        };
        SampleFile::edit_annotations(&path, &[AnnotationEdit::Add(old)]).unwrap();
        let (_feed, link) = ScopeFeed::new(1 << 20);
        let annotator = annotator_of(&link, Some(path.clone()));
        assert!(annotator.place.ends_with("x.sigmf-meta"), "{}", annotator.place);
        // Across the gap. A changed annotation keeps fields that a stream does not carry.
        let told = (annotator.edit)(AnnotationEdit::Add(note(140, 870, "across")));
        assert!(told.recv().unwrap().starts_with("annotations written into"));
        let renamed = StreamAnnotation { comment: Some("c".into()), ..note(102, 3, "new") };
        let edit = AnnotationEdit::Replace { before: note(102, 3, "old"), after: renamed };
        (annotator.edit)(edit).recv().unwrap();
        let gone = (annotator.edit)(AnnotationEdit::Remove(note(102, 3, "old"))).recv().unwrap();
        assert!(gone.contains("not in the file"), "{gone}");
        drop(annotator);
        let file = SampleFile::open(&path).unwrap();
        let all = file.annotations();
        let places: Vec<_> = all.iter().map(|it| (it.position, it.length_samples)).collect();
        assert_eq!(places, [(2, 3), (40, 20)]);
        assert_eq!((all[0].text("core:label"), all[0].text("core:comment")), ("new", "c"));
        assert_eq!(all[0].fields["x:y"], 5);
        assert_eq!(file.stream_annotations()[1], note(140, 870, "across"));
    }

    #[test]
    fn changes_in_a_ring_go_to_the_part_with_their_first_sample() {
        let folder = tempfile::tempdir().unwrap();
        let part = |number: u32| folder.path().join(format!("ring_{number:06}.sigmf-meta"));
        for (number, first) in [(7, 1_000), (8, 1_050), (9, 1_200)] {
            let settings = SigmfSettings { channels: 1, sample_rate_hz: 1e3, ..SigmfSettings::default() };
            let mut writer = SigmfWriter::create(&part(number), &settings).unwrap();
            writer.write(first, &[&[1i16; 50]]).unwrap();
            writer.finish().unwrap();
        }
        let (_feed, link) = ScopeFeed::new(1 << 20);
        let annotator = annotator_of(&link, Some(folder.path().to_owned()));
        assert!(annotator.place.contains("the part of the ring in"), "{}", annotator.place);
        let change = |edit: AnnotationEdit| (annotator.edit)(edit).recv().unwrap();
        let add = |it| change(AnnotationEdit::Add(it));
        let is_in = |words: &str, number| words.ends_with(&part(number).display().to_string());
        let labels = |number| {
            let file = SampleFile::open(part(number)).unwrap();
            let of = |it: StreamAnnotation| (it.first_sample_index, it.length_samples, it.label.unwrap());
            file.stream_annotations().into_iter().map(of).collect::<Vec<_>>()
        };
        let label = |first, length, label: &str| (first, length, label.to_owned());
        // Up to the end of its part.
        assert!(is_in(&add(note(1_040, 30, "long")), 7));
        assert!(is_in(&add(note(1_200, 0, "point")), 9));
        assert_eq!((labels(7), labels(9)), (vec![label(1_040, 10, "long")], vec![label(1_200, 0, "point")]));
        // Renamed in its part, then moved to another.
        change(AnnotationEdit::Replace { before: note(1_040, 30, "long"), after: note(1_040, 30, "new") });
        assert_eq!(labels(7), [label(1_040, 10, "new")]);
        change(AnnotationEdit::Replace { before: note(1_040, 30, "new"), after: note(1_060, 5, "new") });
        assert_eq!((labels(7), labels(8)), (Vec::new(), vec![label(1_060, 5, "new")]));
        change(AnnotationEdit::Remove(note(1_060, 5, "new")));
        assert_eq!(labels(8), []);
        // Missing samples, and a part that the recorder has removed.
        for first in [1_150, 900, 1_250] {
            let words = add(note(first, 1, "nowhere"));
            assert!(words.starts_with(KEPT) && words.contains("was removed, or is in a gap"), "{words}");
        }
        assert_eq!((labels(8), labels(9)), (Vec::new(), vec![label(1_200, 0, "point")]));
    }
}
