//! The history of one stream, and all computations on it for pictures.

use std::fmt;

use grebe_frame::{Description, Frame, SampleFormat};
use grebe_scope::{Error as ScopeError, Value};

use crate::data::columns::Extent;
use crate::data::extract::{Extract, ExtractSamples, WantedExtract};
use crate::data::picture::Picture;
use crate::data::picture_series::{Moment, PictureSeries};
use crate::data::recording::RecordingOutline;
use crate::data::samples::{self, Kind};
use crate::data::tracks::Tracks;
use crate::data::viewport::Viewport;

/// Identifies a viewer. Each viewer has its own trigger and averages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Viewer(pub(crate) u64);

/// The samples that a scope keeps of a stream. Hides which of the two kinds of samples they are.
pub(crate) trait History: fmt::Debug + Send {
    /// Whether the history fits such a stream.
    fn is_for(&self, format: SampleFormat, channels: usize) -> bool;

    /// Starts another stream of the same kind.
    fn clear(&mut self);

    /// Takes the stream's present description.
    fn describe(&mut self, _: &Description) {}

    /// Takes a frame that is neither late nor a duplicate.
    ///
    /// # Errors
    /// [`ScopeError::OutOfMemory`].
    fn append(&mut self, frame: &Frame<'_>, first: u64) -> Result<(), ScopeError>;

    /// The index after the newest sample.
    fn next_index(&self) -> u64;

    /// Adds everything that depends on samples to the picture.
    fn show(&mut self, viewer: Viewer, viewport: &Viewport, moment: Moment, picture: &mut Picture);

    /// Copies the newest samples of a range of all channels, with a viewer's triggers, within the viewer's limit.
    fn extract(&mut self, viewer: Viewer, rate_hz: f64, wanted: WantedExtract) -> Extract;

    /// Forgets a viewer.
    fn forget(&mut self, viewer: Viewer);

    /// Checks for samples that were not appended, and for better summaries. Returns whether pictures would change, and the
    /// outline of a recording that grew or was cut.
    fn refresh(&mut self) -> (bool, Option<&RecordingOutline>) {
        (false, None)
    }
}

/// Creates a history for such a stream, within about `budget_bytes`.
///
/// # Errors
/// [`ScopeError::Budget`] and [`ScopeError::OutOfMemory`].
pub(crate) fn history_for(
    format: SampleFormat,
    channels: usize,
    budget_bytes: usize,
) -> Result<Box<dyn History>, ScopeError> {
    if samples::is_short(format) {
        return Ok(Box::new(Kept::<i16>::new(format, channels, budget_bytes)?));
    }
    Ok(Box::new(Kept::<f32>::new(format, channels, budget_bytes)?))
}

/// The history of samples of one kind, and the computations for each viewer.
#[derive(Debug)]
pub(super) struct Kept<K: Kind> {
    pub(super) tracks: Tracks<K>,
    looks: Vec<(Viewer, PictureSeries<K>)>,
    /// Maximum memory for the trigger records of all viewers.
    record_bytes_max: usize,
}

impl<K: Kind> Kept<K> {
    pub(super) fn new(
        format: SampleFormat,
        channels: usize,
        budget_bytes: usize,
    ) -> Result<Kept<K>, ScopeError> {
        let tracks = Tracks::new(format, channels, budget_bytes)?;
        Ok(Kept { tracks, looks: Vec::new(), record_bytes_max: budget_bytes / RECORD_SHARE })
    }

    /// The state of a viewer, beside the shared samples.
    pub(super) fn look(&mut self, viewer: Viewer) -> (&Tracks<K>, &mut PictureSeries<K>) {
        let place = self.looks.iter().position(|(it, _)| *it == viewer).unwrap_or_else(|| {
            self.looks.push((viewer, PictureSeries::default()));
            self.looks.len() - 1
        });
        let others = self.looks.iter().filter(|(it, _)| *it != viewer).map(|(_, look)| look.record_bytes());
        let room_bytes = self.record_bytes_max.saturating_sub(others.sum());
        let look = &mut self.looks[place].1;
        look.room_bytes = room_bytes;
        (&self.tracks, look)
    }

    /// Keeps the parts of complex channels that any viewport needs. `viewport` is that of `viewer` from now on.
    pub(super) fn keep_parts(&mut self, viewer: Viewer, viewport: &Viewport, is_whole: bool) {
        self.look(viewer).1.want_parts(viewport);
        let Kept { tracks, looks, .. } = self;
        if tracks.keep_parts(|part| looks.iter().any(|(_, look)| look.wants_part(part)), is_whole) {
            looks.iter_mut().for_each(|(_, look)| look.forget_places());
            self.look(viewer).1.forget_trigger();
        }
    }
}

impl<K: Kind + IntoExtract> History for Kept<K> {
    fn is_for(&self, format: SampleFormat, channels: usize) -> bool {
        self.tracks.is_for(format, channels)
    }

    fn clear(&mut self) {
        self.tracks.clear();
        self.looks.iter_mut().for_each(|(_, look)| look.clear());
    }

    fn append(&mut self, frame: &Frame<'_>, first: u64) -> Result<(), ScopeError> {
        let Kept { tracks, looks, .. } = self;
        looks.iter_mut().for_each(|(_, look)| look.expect(tracks));
        tracks.append(frame, first, |lanes| {
            looks.iter_mut().for_each(|(_, look)| look.append(first, lanes));
        })
    }

    fn describe(&mut self, description: &Description) {
        let full_scale = description.full_scale(self.tracks.format());
        if self.tracks.set_bits_full_scale(full_scale) {
            self.looks.iter_mut().for_each(|(_, look)| look.clear());
        }
    }

    fn next_index(&self) -> u64 {
        self.tracks.sampled().next_index()
    }

    fn show(&mut self, viewer: Viewer, viewport: &Viewport, moment: Moment, picture: &mut Picture) {
        self.keep_parts(viewer, viewport, moment.is_ended);
        let (tracks, look) = self.look(viewer);
        let (right_edge, trigger) = look.triggered(tracks, viewport, &moment);
        let history = tracks.sampled();
        let all = history.oldest().unwrap_or(0)..history.next_index();
        let (lanes, span) = (tracks.lanes(viewport.lanes).count(), moment.span * moment.stream.rate_or_one());
        let extent = Extent::of(viewport, lanes, span, right_edge, &all);
        look.region.measure(viewport, all.clone(), moment.now_ns, |_, work| work(tracks));
        look.fill(tracks, viewport, &moment, &extent, trigger, &|_| None, picture);
        (picture.oldest_index, picture.next_index) = (all.start, all.end);
    }

    fn extract(&mut self, viewer: Viewer, rate_hz: f64, wanted: WantedExtract) -> Extract {
        let (tracks, look) = self.look(viewer);
        let range = wanted.range_of(tracks.sampled().channels());
        let triggers = look.triggers_in(range.start as f64..range.end as f64);
        Extract::of(tracks, rate_hz, range, triggers, K::into_extract)
    }

    fn forget(&mut self, viewer: Viewer) {
        self.looks.retain(|(it, _)| *it != viewer);
    }
}

/// The records' memory, as a divisor of the history's memory.
const RECORD_SHARE: usize = 4;

/// Converts samples of one kind to those of an extract.
pub(super) trait IntoExtract: Value {
    fn into_extract(lanes: Vec<Vec<Self>>) -> ExtractSamples;
}

impl IntoExtract for i16 {
    fn into_extract(lanes: Vec<Vec<i16>>) -> ExtractSamples {
        ExtractSamples::I16(lanes)
    }
}

impl IntoExtract for f32 {
    fn into_extract(lanes: Vec<Vec<f32>>) -> ExtractSamples {
        ExtractSamples::F32(lanes)
    }
}
