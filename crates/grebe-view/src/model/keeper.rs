//! Who keeps stretches of the stream, and changes to its annotations, for good.

use std::ops::Range;
use std::sync::mpsc::{Receiver, channel};

use grebe_frame::AnnotationEdit;

/// A stretch of the stream that a person wants to keep.
#[derive(Debug, Clone, PartialEq)]
pub enum KeptStretch {
    /// What came last: so much as whoever keeps it was set up for.
    Last,
    /// What is on the screen: samples by their indexes in the stream.
    Screen {
        /// From the first to behind the last, gaps included. There is at least one.
        samples: Range<u64>,
        /// Samples per second and channel.
        rate_hz: f64,
    },
}

/// Keeps stretches of the stream beside the scope: by the recorder of a ring, for example.
pub struct StretchKeeper {
    /// What it says of [`KeptStretch::Last`]: `the last 20 s`.
    pub last: String,
    /// Begins to keep a stretch, without waiting. What becomes of it comes as one line for a person.
    pub keep: Box<dyn Fn(KeptStretch) -> Receiver<String> + Send>,
}

/// Takes changes to the annotations: into the pictures of all who look, and where a recording is shown, into that.
pub struct Annotator {
    /// Where they go: `written into x.sigmf-meta`, `kept in this session`.
    pub place: String,
    /// Makes a change, without waiting. What became of it comes as one line for a person.
    pub edit: Box<dyn Fn(AnnotationEdit) -> Receiver<String> + Send>,
}

impl Annotator {
    /// One for who looks from afar at what takes no changes.
    pub fn refusing() -> Annotator {
        let refuse = |_| {
            let (tell, told) = channel();
            // Its receiver is here.
            let _ = tell.send("not changed: this server takes no annotations".to_owned());
            told
        };
        Annotator { place: "this server takes no annotations".into(), edit: Box::new(refuse) }
    }
}
