//! The scope without a thread or a clock: it takes batches and returns pictures.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use grebe_frame::{AnnotationEdit, Arrival, Batch, Description, Frame, Gap, Header, StreamTracker};
use grebe_scope::Error as ScopeError;

use crate::data::descriptions::{Change, ChangeMark, Descriptions};
use crate::data::extract::{Extract, WantedExtract};
use crate::data::history::{History, Viewer, history_for};
use crate::data::meter::{FlowMeter, TransitMeter};
use crate::data::picture::{GapMark, Picture, StreamInfo};
use crate::data::picture_series::Moment;
use crate::data::recorded;
use crate::data::recording::{Recording, RecordingOutline};
use crate::data::viewport::{Viewport, default_span};

/// Keeps the history of one stream within a budget, and answers viewports.
///
/// The caller passes the time, in nanoseconds of the monotonic clock.
#[derive(Debug, Default)]
pub struct ScopeCore {
    budget_bytes: usize,
    tracker: StreamTracker,
    history: Option<Box<dyn History>>,
    stream: Option<StreamInfo>,
    told: Descriptions,
    /// The description that the history knows.
    described: Option<Arc<Description>>,
    /// The last gaps, oldest first, and the number of the next.
    gaps: VecDeque<GapMark>,
    gap_number: u64,
    streams: u64,
    is_ended: bool,
    flow: FlowMeter,
    transit: TransitMeter,
    newest_ts_ns: u64,
    /// First sample index of the frame with that time stamp.
    newest_first_index: u64,
    newest_arrival_ns: u64,
}

impl ScopeCore {
    /// A scope whose history takes at most about `budget_bytes`.
    pub fn new(budget_bytes: usize) -> ScopeCore {
        ScopeCore { budget_bytes, ..ScopeCore::default() }
    }

    /// A scope of a recording. It reads only the samples that a picture needs.
    ///
    /// # Errors
    /// [`ScopeError::OutOfMemory`].
    pub fn of_recording(recording: Box<dyn Recording>) -> Result<ScopeCore, ScopeError> {
        let mut core = ScopeCore { streams: 1, is_ended: true, ..ScopeCore::default() };
        core.take_outline(recording.outline());
        core.history = Some(recorded::history_for(recording)?);
        Ok(core)
    }

    /// Takes what a recording says of its samples, from all of it.
    fn take_outline(&mut self, outline: &RecordingOutline) {
        self.stream = Some(StreamInfo {
            channels: outline.channels,
            format: outline.format,
            rate_hz: outline.rate_hz,
            block_samples: 0,
            generator_drops: outline.missing_samples(),
        });
        self.told.take_all(&outline.descriptions, &outline.annotations);
    }

    /// Checks whether the recording grew or has better summaries. Returns whether pictures would change.
    pub(crate) fn refresh(&mut self) -> bool {
        let Some(mut history) = self.history.take() else { return false };
        let (is_changed, outline) = history.refresh();
        outline.into_iter().for_each(|outline| self.take_outline(outline));
        self.history = Some(history);
        is_changed
    }

    /// Takes a batch that arrived at `now_ns`. Late and duplicate frames are counted, but not drawn. A restarted
    /// sender starts a new picture.
    ///
    /// # Errors
    /// [`ScopeError::Budget`] and [`ScopeError::OutOfMemory`], when a stream begins.
    pub fn ingest(&mut self, batch: &Batch, now_ns: u64) -> Result<(), ScopeError> {
        let (mut frames, mut samples, mut bytes) = (0, 0, 0);
        for frame in batch.frames() {
            let header = frame.header();
            if self.is_ended && !header.is_end_of_stream() {
                // The next stream may have the older clock of another host.
                self.tracker.forget();
            }
            let arrival = self.tracker.arrive(&header);
            frames += 1;
            samples += u64::from(header.channel_count) * u64::from(header.block_length_samples);
            bytes += header.frame_bytes() as u64;
            if arrival.is_new() {
                self.take(&frame, &header, arrival, batch.description())?;
                (self.newest_ts_ns, self.newest_first_index) =
                    (header.producer_ts_ns, header.first_sample_index);
            }
        }
        self.told.hear(batch, self.history.as_ref().map_or(u64::MAX, |history| history.next_index()));
        if frames > 0 {
            let newest = self.newest_header();
            self.told.note_time(&newest, now_ns);
            self.flow.add(now_ns, frames, samples, bytes);
            self.transit.add(now_ns, self.newest_ts_ns);
            self.newest_arrival_ns = now_ns;
        }
        Ok(())
    }

    /// The fields of the newest frame's header that give times.
    fn newest_header(&self) -> Header {
        Header {
            producer_ts_ns: self.newest_ts_ns,
            first_sample_index: self.newest_first_index,
            sample_rate_hz: self.stream.map_or(0.0, |stream| stream.rate_hz),
            ..Header::default()
        }
    }

    pub(crate) fn end(&mut self) {
        self.is_ended = true;
    }

    /// The picture for `viewport` at `now_ns`.
    pub fn answer(&mut self, viewport: &Viewport, now_ns: u64) -> Picture {
        self.answer_for(Viewer::default(), viewport, now_ns)
    }

    /// The same for one of several viewers, each with its own trigger and averages.
    pub(crate) fn answer_for(&mut self, viewer: Viewer, viewport: &Viewport, now_ns: u64) -> Picture {
        let span = viewport.span.unwrap_or_else(|| default_span(self.stream.map_or(0.0, |s| s.rate_hz)));
        let mut picture = Picture {
            stream: self.stream,
            description: self.told.now(),
            answers: Some(viewport.clone()),
            is_ended: self.is_ended,
            counts: self.tracker.counts(),
            flow: self.flow.flow(now_ns),
            newest_ts_ns: self.newest_ts_ns,
            newest_first_index: self.newest_first_index,
            newest_arrival_ns: self.newest_arrival_ns,
            transit_min_ns: self.transit.min_ns(),
            streams: self.streams,
            ..Picture::waiting()
        };
        let (Some(stream), Some(history)) = (self.stream, &mut self.history) else { return picture };
        history.show(
            viewer,
            viewport,
            Moment { stream, span, is_ended: self.is_ended, now_ns },
            &mut picture,
        );
        let window = picture.left_index..picture.right_index();
        picture.axis_points = self.told.axis_near(window.end);
        picture.changes = self.told.changes_in(&window);
        picture.annotations = {
            // A waterfall shows more time than the traces.
            let waterfall = picture.spectrum.as_ref().and_then(|view| view.waterfall.as_ref());
            let before = waterfall.map_or(window.start, |it| window.end - it.span_samples);
            self.told.annotations.shown_in(&(window.start.min(before)..window.end))
        };
        picture.listed = viewport.annotations.as_ref().map(|query| self.told.annotations.list(query));
        picture.gaps.extend(self.gaps_in(window));
        picture
    }

    /// Applies a change to the annotations.
    pub(crate) fn annotate(&mut self, edit: &AnnotationEdit) {
        self.told.annotations.edit(edit);
    }

    /// Copies the samples of a range that the history still holds: at most the newest 2^24 per channel, and at most
    /// the limit of the viewer.
    pub(crate) fn extract(&mut self, viewer: Viewer, wanted: WantedExtract) -> Extract {
        let (Some(stream), Some(history)) = (self.stream, &mut self.history) else {
            return Extract::default();
        };
        let extract = history.extract(viewer, stream.rate_hz, wanted);
        Extract { streams: self.streams, ..extract }.told(&self.told, &self.newest_header())
    }

    /// Forgets a viewer.
    pub(crate) fn forget(&mut self, viewer: Viewer) {
        if let Some(history) = &mut self.history {
            history.forget(viewer);
        }
    }

    /// Takes a frame that is neither late nor a duplicate.
    fn take(
        &mut self,
        frame: &Frame<'_>,
        header: &Header,
        arrival: Arrival,
        told: Option<&Arc<Description>>,
    ) -> Result<(), ScopeError> {
        let channels = header.channel_count as usize;
        let is_other_rate = self.stream.is_some_and(|stream| {
            // The last frame of a stream may lack the rate.
            header.block_length_samples > 0 && stream.rate_hz != header.sample_rate_hz
        });
        if matches!(arrival, Arrival::First | Arrival::Restart) || is_other_rate {
            self.begin(header)?;
            self.described = None;
        }
        if is_other_rate && matches!(arrival, Arrival::InOrder | Arrival::After(_)) {
            let change = Change::Rate { hz: header.sample_rate_hz };
            self.told.note(ChangeMark { index: header.first_sample_index, change });
        }
        if let Arrival::After(gap) = arrival {
            self.note_gap(header.first_sample_index, gap);
        }
        self.is_ended = header.is_end_of_stream();
        self.stream = Some(StreamInfo {
            channels,
            format: header.format,
            rate_hz: header.sample_rate_hz,
            block_samples: match (header.block_length_samples, self.stream) {
                (0, Some(stream)) => stream.block_samples,
                (block, _) => block,
            },
            generator_drops: header.sg_drops_total,
        });
        if let (Some(history), Some(told)) = (&mut self.history, told)
            && self.described.as_ref().is_none_or(|described| !Arc::ptr_eq(described, told))
        {
            history.describe(told);
            self.described = Some(told.clone());
        }
        match &mut self.history {
            Some(history) => history.append(frame, header.first_sample_index),
            None => Ok(()),
        }
    }

    fn note_gap(&mut self, end: u64, gap: Gap) {
        if self.gaps.len() == GAPS_MAX {
            self.gaps.pop_front();
        }
        self.gaps.push_back(GapMark {
            number: self.gap_number,
            start: end.saturating_sub(gap.samples),
            end,
            generator_samples: gap.generator_samples,
            lost_frames: gap.frames,
        });
        self.gap_number += 1;
    }

    fn gaps_in(&self, window: Range<f64>) -> Vec<GapMark> {
        let is_inside = |gap: &&GapMark| gap.end as f64 >= window.start && gap.start as f64 <= window.end;
        self.gaps.iter().filter(is_inside).copied().collect()
    }

    fn begin(&mut self, header: &Header) -> Result<(), ScopeError> {
        let (format, channels) = (header.format, header.channel_count as usize);
        match &mut self.history {
            history if channels == 0 => *history = None,
            Some(history) if history.is_for(format, channels) => history.clear(),
            // Free the old history first: two exceed the budget.
            history => {
                *history = None;
                *history = Some(history_for(format, channels, self.budget_bytes)?);
            }
        }
        self.streams += 1;
        self.told.forget();
        self.gaps.clear();
        self.stream = None;
        self.transit = TransitMeter::default();
        Ok(())
    }
}

const GAPS_MAX: usize = 256;

#[cfg(test)]
mod tests;
