//! Labels on written samples.

use grebe_frame::StreamAnnotation;
use serde_json::{Map, Value};

use super::{SigmfWriter, too_many};
use crate::annotation_fields::annotation_fields;
use crate::error::Error;
use crate::sigmf::layout::Annotation;
use crate::sigmf::metadata_writer::Event;

impl SigmfWriter {
    /// Labels a stretch of the stream whose first sample is already written, by the indices passed to
    /// [`write`](Self::write). Parts in a gap are excluded.
    ///
    /// # Errors
    /// [`Error::Process`] beyond a million labels.
    pub fn annotate(
        &mut self,
        first_sample_index: u64,
        length_samples: u64,
        label: &str,
    ) -> Result<(), Error> {
        let rest = Map::from_iter([("core:label".to_owned(), Value::from(label))]);
        self.annotate_with(first_sample_index, length_samples, rest)
    }

    /// As [`annotate`](Self::annotate), with all that an annotation of a stream says.
    ///
    /// # Errors
    /// As for [`annotate`](Self::annotate).
    pub fn annotate_as(&mut self, annotation: &StreamAnnotation) -> Result<(), Error> {
        let StreamAnnotation { first_sample_index, length_samples, .. } = *annotation;
        self.annotate_with(first_sample_index, length_samples, annotation_fields(annotation))
    }

    /// As [`annotate`](Self::annotate), with any annotation fields.
    pub(crate) fn annotate_with(
        &mut self,
        first_sample_index: u64,
        length_samples: u64,
        rest: Map<String, Value>,
    ) -> Result<(), Error> {
        self.count_annotation()?;
        self.tell(Event::Annotation { first_sample_index, length_samples, rest });
        Ok(())
    }

    /// Labels a stretch of the file.
    pub(crate) fn annotate_file(
        &mut self,
        position: u64,
        length_samples: u64,
        rest: Map<String, Value>,
    ) -> Result<(), Error> {
        self.count_annotation()?;
        let annotation = Annotation { sample_start: position, sample_count: Some(length_samples), rest };
        self.tell(Event::Placed(annotation));
        Ok(())
    }

    fn count_annotation(&mut self) -> Result<(), Error> {
        if self.annotations == ANNOTATIONS_MAX {
            return Err(too_many("number of annotations", self.annotations));
        }
        self.annotations += 1;
        Ok(())
    }
}

const ANNOTATIONS_MAX: u64 = 1 << 20;
