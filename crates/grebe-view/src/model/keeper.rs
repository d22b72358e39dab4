//! Interfaces for saving ranges of the stream, and changes to its annotations.

use std::ops::Range;
use std::sync::mpsc::{Receiver, channel};

use grebe_frame::AnnotationEdit;

/// A range of the stream to save.
#[derive(Debug, Clone, PartialEq)]
pub enum KeptStretch {
    /// The newest samples: the length that the keeper was set up for.
    Last,
    /// The visible range: samples by their indices in the stream.
    Screen {
        /// From the first to the last, end exclusive, gaps included. At least one.
        samples: Range<u64>,
        /// Samples per second and channel.
        rate_hz: f64,
    },
}

/// Saves ranges of the stream, for example from the ring of its recorder.
pub struct StretchKeeper {
    /// Description of [`KeptStretch::Last`]: `the last 20 s`.
    pub last: String,
    /// Starts to save a range, without waiting. The outcome arrives as one line for a person.
    pub keep: Box<dyn Fn(KeptStretch) -> Receiver<String> + Send>,
}

/// Takes changes to the annotations: for the pictures of all viewers and, if a recording is shown, for its metadata.
pub struct Annotator {
    /// Their destination: `written into x.sigmf-meta`, `kept in this session`.
    pub place: String,
    /// Makes a change, without waiting. The outcome arrives as one line for a person.
    pub edit: Box<dyn Fn(AnnotationEdit) -> Receiver<String> + Send>,
}

impl Annotator {
    /// For remote viewers of a source that takes no changes.
    pub fn refusing() -> Annotator {
        let refuse = |_| {
            let (tell, told) = channel();
            // The receiver is still in scope, so the channel is open.
            let _ = tell.send("not changed: this server takes no annotations".to_owned());
            told
        };
        Annotator { place: "this server takes no annotations".into(), edit: Box::new(refuse) }
    }
}
