//! Takes changes to the annotations of a scope: into its pictures, and into the recording that it shows.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use grebe_frame::AnnotationEdit;
use grebe_recording::{Error, SampleFile};
use grebe_view::{Annotator, ScopeLink};

/// For the scope behind `link`; without a recording, changes are kept in its session.
pub(crate) fn annotator_of(link: &ScopeLink, recording: Option<PathBuf>) -> Annotator {
    let place = match recording.as_deref().map(SampleFile::annotation_place) {
        Some(Ok(place)) => format!("written into {}", place.display()),
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
    let edit = SampleFile::open(path)?.edit_of_stream(edit)?;
    Ok(SampleFile::edit_annotations(path, &[edit])?.places)
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
}
