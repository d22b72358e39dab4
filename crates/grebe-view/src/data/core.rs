//! The scope without a thread or a clock: batches in, pictures out.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use grebe_frame::{Arrival, Batch, Frame, Gap, Header, SampleFormat, StreamTracker};
use grebe_scope::{Column, ColumnGrid, Error as ScopeError, Interpolation, Pyramid};

use crate::data::clip::is_clipped;
use crate::data::extract::Extract;
use crate::data::interpolate::line_between;
use crate::data::math::{MATH_CHANNEL, MathChannel};
use crate::data::measure::PictureMeasurer;
use crate::data::meter::{FlowMeter, TransitMeter};
use crate::data::overview::Overview;
use crate::data::persistence::{Persistence, PersistenceView};
use crate::data::picture::{ChannelColumns, GapMark, NotShown, Picture, StreamInfo};
use crate::data::spectrum::SpectrumAnalyzer;
use crate::data::told::{Change, ChangeMark, Told};
use crate::data::trigger::{TriggerMode, TriggerSearch, TriggerView};
use crate::data::viewport::{Viewport, Window, default_span};

/// Keeps the history of one stream within a budget and answers viewports of it.
///
/// The caller says what time it is, in nanoseconds of the monotonic clock.
#[derive(Debug, Default)]
pub struct ScopeCore {
    budget_bytes: usize,
    tracker: StreamTracker,
    pyramid: Option<Pyramid>,
    stream: Option<StreamInfo>,
    not_shown: Option<NotShown>,
    told: Told,
    trigger: Option<TriggerSearch>,
    persistence: Option<Persistence>,
    measure: PictureMeasurer,
    math: Option<MathChannel>,
    spectrum: SpectrumAnalyzer,
    overview: Overview,
    /// The last gaps, oldest first, and the number of the next.
    gaps: VecDeque<GapMark>,
    gap_number: u64,
    streams: u64,
    is_ended: bool,
    flow: FlowMeter,
    transit: TransitMeter,
    newest_ts_ns: u64,
    newest_arrival_ns: u64,
}

impl ScopeCore {
    /// A scope whose history takes at most about `budget_bytes`.
    pub fn new(budget_bytes: usize) -> ScopeCore {
        ScopeCore { budget_bytes, ..ScopeCore::default() }
    }

    /// Takes a batch that arrived at `now_ns`. Late and duplicate frames are counted and not drawn; a sender that began
    /// again begins a new picture.
    ///
    /// # Errors
    /// [`ScopeError::Budget`] and [`ScopeError::OutOfMemory`], when a stream begins.
    pub fn ingest(&mut self, batch: &Batch, now_ns: u64) -> Result<(), ScopeError> {
        let (mut frames, mut samples, mut bytes) = (0, 0, 0);
        for frame in batch.frames() {
            let header = frame.header();
            if self.is_ended && !header.is_end_of_stream() {
                // The next stream: its clock may be another machine's, and older.
                self.tracker.forget();
            }
            let arrival = self.tracker.arrive(&header);
            frames += 1;
            samples += u64::from(header.channel_count) * u64::from(header.block_length_samples);
            bytes += header.frame_bytes() as u64;
            if arrival.is_new() {
                self.take(&frame, &header, arrival)?;
                self.newest_ts_ns = header.producer_ts_ns;
            }
        }
        self.told.hear(batch, self.pyramid.as_ref().map_or(u64::MAX, Pyramid::next_index));
        if frames > 0 {
            self.flow.add(now_ns, frames, samples, bytes);
            self.transit.add(now_ns, self.newest_ts_ns);
            self.newest_arrival_ns = now_ns;
        }
        Ok(())
    }

    pub(crate) fn end(&mut self) {
        self.is_ended = true;
    }

    /// What `viewport` shows at `now_ns`.
    pub fn answer(&mut self, viewport: &Viewport, now_ns: u64) -> Picture {
        let span = viewport.span.unwrap_or_else(|| default_span(self.stream.map_or(0.0, |s| s.rate_hz)));
        let (right_edge, trigger) = self.triggered(viewport, span);
        let persistence = self.persistence(viewport, span, now_ns);
        let (Some(stream), Some(pyramid)) = (self.stream, &self.pyramid) else {
            return Picture {
                stream: self.stream,
                description: self.told.now(),
                not_shown: self.not_shown,
                answers: Some(*viewport),
                is_ended: self.is_ended,
                counts: self.tracker.counts(),
                flow: self.flow.flow(now_ns),
                newest_ts_ns: self.newest_ts_ns,
                newest_arrival_ns: self.newest_arrival_ns,
                transit_min_ns: self.transit.min_ns(),
                streams: self.streams,
                ..Picture::waiting()
            };
        };
        let extent = Extent::of(viewport, span * stream.rate_or_one(), right_edge, pyramid);
        let window = extent.left_index..extent.left_index + extent.span_samples;
        let rate = stream.rate_or_one();
        self.math = MathChannel::renew(self.math.take(), pyramid, viewport.math, rate, window.clone());
        let math = self.math.as_ref().map(MathChannel::history);
        let (measured, measured_count) =
            self.measure.measure(pyramid, math, viewport, stream.rate_hz, window.clone(), now_ns);
        let at = viewport.cursors.map(|(times, from)| {
            let from = from.or(trigger.and_then(|trigger| trigger.at)).unwrap_or(window.end);
            times.map(|time| (from + time * rate).round().max(0.0) as u64)
        });
        let shown = (0..stream.channels).filter(|&channel| viewport.channels.contains(channel));
        let shown = shown.map(|channel| (channel, pyramid, channel));
        let shown = shown.chain(math.map(|(history, _)| (MATH_CHANNEL, history, 0)));
        Picture {
            stream: Some(stream),
            description: self.told.now(),
            not_shown: self.not_shown,
            changes: self.told.changes_in(&window),
            answers: Some(*viewport),
            is_ended: self.is_ended,
            grid: extent.grid,
            first_column: extent.first_column,
            left_index: extent.left_index,
            span_samples: extent.span_samples,
            channels: shown
                .map(|(channel, pyramid, place)| ChannelColumns {
                    mean: mean(pyramid, place, window.clone()),
                    at_cursors: at.map_or([None; 2], |at| at.map(|index| sample(pyramid, place, index))),
                    ..channel_columns(pyramid, (channel, place), &extent, viewport.interpolation)
                })
                .collect(),
            math: math.map(|(_, scale)| scale),
            oldest_index: pyramid.oldest().unwrap_or(0),
            next_index: pyramid.next_index(),
            counts: self.tracker.counts(),
            flow: self.flow.flow(now_ns),
            newest_ts_ns: self.newest_ts_ns,
            newest_arrival_ns: self.newest_arrival_ns,
            transit_min_ns: self.transit.min_ns(),
            trigger,
            gaps: self.gaps_in(window.clone()),
            streams: self.streams,
            triggers: self.trigger.as_ref().map_or(Vec::new(), TriggerSearch::recent),
            persistence,
            measured,
            measured_count,
            overview: self.overview.view(pyramid, viewport, self.is_ended, now_ns),
            spectrum: self.spectrum.view(pyramid, viewport, window, now_ns),
            memory_bytes: pyramid.memory_bytes(),
        }
    }

    /// The samples of a stretch, as far as the history still holds each of them; at most the newest 2^24 per channel.
    pub(crate) fn extract(&self, range: Range<u64>) -> Extract {
        let (Some(stream), Some(pyramid)) = (self.stream, &self.pyramid) else { return Extract::default() };
        let within = range.start as f64..range.end as f64;
        let triggers = self.trigger.as_ref().map_or(Vec::new(), |trigger| trigger.recent_in(within));
        Extract::of(pyramid, stream.rate_hz, range, triggers)
    }

    /// Where the trigger wants the right edge, and its state. A held window stays where it is.
    fn triggered(&mut self, viewport: &Viewport, span: f64) -> (Option<f64>, Option<TriggerView>) {
        let settings = viewport.trigger.filter(|settings| settings.mode != TriggerMode::Roll);
        let (Some(settings), Some(stream), Some(pyramid)) = (settings, self.stream, &self.pyramid) else {
            self.trigger = None;
            return (None, None);
        };
        let span_samples = span * stream.rate_or_one();
        // What was found while the stream came depends on when it was looked for.
        let is_whole = viewport.is_exact && self.is_ended;
        if is_whole {
            self.trigger = None;
        }
        if !self.trigger.as_mut().is_some_and(|run| run.adopt(&settings, span_samples, pyramid)) {
            let mut run =
                TriggerSearch::new(settings, span_samples, stream.rate_or_one(), pyramid, is_whole).ok();
            if let (Some(run), Some(before)) = (&mut run, &self.trigger) {
                run.carry_on(before);
            }
            self.trigger = run;
        }
        let Some(run) = &mut self.trigger else { return (None, None) };
        let (right_edge, view) = run.window(span_samples, pyramid.oldest().unwrap_or(0));
        (right_edge.filter(|_| viewport.window == Window::Latest), Some(view))
    }

    /// The densities of all triggers, where the viewport asks for them and there is a trigger.
    fn persistence(&mut self, viewport: &Viewport, span: f64, now_ns: u64) -> Option<Arc<PersistenceView>> {
        let (Some(settings), Some(run), Some(pyramid), Some(stream), Some(trigger)) =
            (viewport.persistence, &self.trigger, &self.pyramid, self.stream, viewport.trigger)
        else {
            self.persistence = None;
            return None;
        };
        let span_samples = span * stream.rate_or_one();
        if !self.persistence.as_ref().is_some_and(|it| it.is_for(&settings, &trigger, span_samples)) {
            self.persistence = Persistence::new(settings, trigger, run, span_samples, pyramid).ok();
        }
        self.persistence.as_mut()?.view(now_ns)
    }

    /// Takes a frame that is neither late nor a duplicate.
    fn take(&mut self, frame: &Frame<'_>, header: &Header, arrival: Arrival) -> Result<(), ScopeError> {
        let sent = header.channel_count as usize;
        let not_shown = match header.format {
            SampleFormat::I16 if sent <= MATH_CHANNEL => None,
            SampleFormat::I16 => Some(NotShown::Channels { sent }),
            format => Some(NotShown::Format(format)),
        };
        let channels = if header.format == SampleFormat::I16 { sent.min(MATH_CHANNEL) } else { 0 };
        let is_other_rate = self.stream.is_some_and(|stream| {
            // The end of a stream may come without its rate.
            header.block_length_samples > 0 && stream.rate_hz != header.sample_rate_hz
        });
        if matches!(arrival, Arrival::First | Arrival::Restart) || is_other_rate {
            self.begin(channels)?;
            self.not_shown = not_shown;
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
            rate_hz: header.sample_rate_hz,
            block_samples: match (header.block_length_samples, self.stream) {
                (0, Some(stream)) => stream.block_samples,
                (block, _) => block,
            },
            generator_drops: header.sg_drops_total,
        });
        let Some(pyramid) = &mut self.pyramid else { return Ok(()) };
        let mut samples: [Cow<'_, [i16]>; MATH_CHANNEL] = Default::default();
        for (channel, samples) in samples.iter_mut().enumerate().take(channels) {
            // A frame that says the same of itself as the one before has these channels; one that does not begins anew.
            let Ok(found) = frame.channel(channel) else { return Ok(()) };
            *samples = found;
        }
        let block: [&[i16]; MATH_CHANNEL] = std::array::from_fn(|channel| samples[channel].as_ref());
        if let Some(trigger) = &mut self.trigger {
            trigger.append(header.first_sample_index, &block[..channels]);
        }
        if let Some(persistence) = &mut self.persistence {
            persistence.append(header.first_sample_index, &block[..channels]);
        }
        match pyramid.append(header.first_sample_index, &block[..channels]) {
            // The tracker lets nothing pass that goes back; an index beyond the pyramid's range is a damaged header.
            Err(ScopeError::IndexWentBack { .. } | ScopeError::IndexTooLarge { .. }) => Ok(()),
            other => other,
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

    fn begin(&mut self, channels: usize) -> Result<(), ScopeError> {
        match &mut self.pyramid {
            pyramid if channels == 0 => *pyramid = None,
            Some(pyramid) if pyramid.channels() == channels => pyramid.clear(),
            // Frees the old one first: two do not fit into the budget.
            pyramid => {
                *pyramid = None;
                *pyramid = Some(Pyramid::new(channels, self.budget_bytes)?);
            }
        }
        self.streams += 1;
        self.told.forget();
        self.gaps.clear();
        self.stream = None;
        self.trigger = None;
        self.persistence = None;
        self.transit = TransitMeter::default();
        Ok(())
    }
}

/// The sample at an index, where it is still held singly.
fn sample(pyramid: &Pyramid, channel: usize, index: u64) -> Option<i16> {
    let mut found = None;
    pyramid.samples(channel, index..index.saturating_add(1), |_, samples| found = samples.first().copied());
    found
}

/// The mean of what is visible, in raw counts; 0 where nothing is.
fn mean(pyramid: &Pyramid, channel: usize, window: Range<f64>) -> f64 {
    let range = window.start.max(0.0) as u64..window.end.max(0.0) as u64;
    pyramid.range_stats(channel, range).mean().unwrap_or(0.0)
}

/// Where the columns of a picture lie.
struct Extent {
    grid: ColumnGrid,
    columns: usize,
    first_column: i64,
    left_index: f64,
    span_samples: f64,
}

impl Extent {
    fn of(viewport: &Viewport, span_samples: f64, right_edge: Option<f64>, pyramid: &Pyramid) -> Extent {
        let columns = viewport.columns_in_range();
        let window = right_edge.map_or(viewport.window, |at| Window::Ending { at });
        let mut grid = ColumnGrid::new(span_samples / columns as f64);
        let mut first_column = end_column(pyramid, grid, window) - columns as i64;
        let oldest = pyramid.oldest().unwrap_or(0);
        let is_all = (pyramid.next_index() - oldest) as f64 <= span_samples;
        if viewport.is_exact
            && is_all
            && window == Window::Latest
            && first_column > grid.column_at(oldest) as i64
        {
            // All fits but for a part of a column: a picture of a whole file shows the whole.
            grid = ColumnGrid::new(span_samples / (columns as f64 - 1.0).max(1.0));
            first_column = end_column(pyramid, grid, window) - columns as i64;
        }
        Extent {
            grid,
            columns,
            first_column,
            left_index: first_column as f64 * grid.samples_per_column(),
            span_samples: columns as f64 * grid.samples_per_column(),
        }
    }
}

/// Number of the column after the right edge.
fn end_column(pyramid: &Pyramid, grid: ColumnGrid, window: Window) -> i64 {
    let column = match window {
        Window::Latest => pyramid.newest().map_or(0, |newest| grid.column_at(newest) + 1) as i64,
        Window::Ending { at } => grid.position(at).round() as i64,
    };
    column.clamp(-COLUMN_END, COLUMN_END)
}

fn channel_columns(
    pyramid: &Pyramid,
    (channel, place): (usize, usize),
    extent: &Extent,
    interpolation: Interpolation,
) -> ChannelColumns {
    let Extent { grid, columns, first_column, .. } = *extent;
    let mut out = vec![Column::OUTSIDE; columns];
    let before = usize::try_from(-first_column).unwrap_or(0).min(columns);
    let (first, out_inside) = (first_column.max(0) as u64, &mut out[before..]);
    pyramid.columns(place, grid, first, out_inside);
    // What is computed has a range of its own.
    let is_clipped = channel != MATH_CHANNEL && is_clipped(pyramid, place, grid, first, out_inside);
    let line = (grid.samples_per_column() < 1.0).then(|| {
        let mut line = line_between(pyramid, place, grid, first, interpolation, out_inside);
        line.shift_right(before);
        line
    });
    ChannelColumns { channel, columns: out, line, is_clipped, mean: 0.0, at_cursors: [None; 2] }
}

const GAPS_MAX: usize = 256;
/// Beyond any stream, and far from overflow in both directions.
const COLUMN_END: i64 = 1 << 62;

#[cfg(test)]
mod tests;
