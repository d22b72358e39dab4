//! The history of one stream, and everything that is computed of it for a picture.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use grebe_frame::{Frame, SampleFormat};
use grebe_scope::{Error as ScopeError, RangeStats, Value};

use crate::data::columns::{Extent, sample_at};
use crate::data::extract::{Extract, ExtractSamples};
use crate::data::lane::{LaneId, Part};
use crate::data::math::MathLane;
use crate::data::measure::{PictureMeasurer, Seen};
use crate::data::overview::Overview;
use crate::data::persistence::{Persistence, PersistenceView};
use crate::data::picture::{Picture, StreamInfo};
use crate::data::samples::{self, Kind};
use crate::data::signal::SignalMeasurer;
use crate::data::spectrum::SpectrumAnalyzer;
use crate::data::tracks::Tracks;
use crate::data::trigger::{TriggerMode, TriggerSearch, TriggerSettings, TriggerView};
use crate::data::viewport::{Viewport, Window};
use crate::data::xy::XyPlotter;

/// What a scope keeps of a stream: of one kind of samples inside, of none outside.
pub(crate) trait History: fmt::Debug + Send {
    /// Whether it can go on with a stream like this.
    fn is_for(&self, format: SampleFormat, channels: usize) -> bool;

    /// Another stream of the same kind begins.
    fn clear(&mut self);

    /// Takes a frame that is neither late nor a duplicate.
    ///
    /// # Errors
    /// [`ScopeError::OutOfMemory`].
    fn append(&mut self, frame: &Frame<'_>, first: u64) -> Result<(), ScopeError>;

    /// The index after the newest sample.
    fn next_index(&self) -> u64;

    /// Puts all that is seen of the samples into the picture.
    fn show(&mut self, viewport: &Viewport, moment: Moment, picture: &mut Picture);

    /// Copies samples of all channels.
    fn extract(&mut self, rate_hz: f64, range: Range<u64>) -> Extract;

    /// Looks for what came without being appended, and for what is known better: whether a picture would be another.
    fn refresh(&mut self) -> bool {
        false
    }
}

/// When a picture is made, and of what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) stream: StreamInfo,
    pub(crate) span: f64,
    pub(crate) is_ended: bool,
    pub(crate) now_ns: u64,
}

/// A history for a stream like this, within about `budget_bytes`.
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

/// The history of samples of one kind.
#[derive(Debug)]
pub(super) struct Kept<K: Kind> {
    pub(super) tracks: Tracks<K>,
    trigger: Option<TriggerSearch<K>>,
    persistence: Option<Persistence<K>>,
    measure: PictureMeasurer<K>,
    math: Option<MathLane<K>>,
    spectrum: SpectrumAnalyzer<K>,
    signal: SignalMeasurer<K>,
    xy: XyPlotter<K>,
    overview: Overview,
}

/// What is known of all samples in a window, also of those that are not held.
pub(super) type Whole<'a, K> = &'a dyn Fn(LaneId) -> Option<RangeStats<K>>;

impl<K: Kind> Kept<K> {
    pub(super) fn new(
        format: SampleFormat,
        channels: usize,
        budget_bytes: usize,
    ) -> Result<Kept<K>, ScopeError> {
        Ok(Kept {
            tracks: Tracks::new(format, channels, budget_bytes)?,
            trigger: None,
            persistence: None,
            measure: PictureMeasurer::default(),
            math: None,
            spectrum: SpectrumAnalyzer::default(),
            signal: SignalMeasurer::default(),
            xy: XyPlotter::default(),
            overview: Overview::default(),
        })
    }

    /// Keeps the parts that the viewport has to do with.
    pub(super) fn keep_parts(&mut self, viewport: &Viewport, is_whole: bool) {
        let trigger = viewport.trigger.filter(|settings| settings.mode != TriggerMode::Roll);
        let math = viewport.math.iter().flat_map(|math| [math.a.lane.part, math.b.lane.part]);
        let xy = viewport.xy.iter().flat_map(|xy| [xy.x.part, xy.y.part]);
        let others = trigger.iter().map(|settings| settings.lane.part).chain(math).chain(xy);
        let others: Vec<Part> = others.collect();
        let is_wanted = |part: Part| viewport.lanes.has_part(part) || others.contains(&part);
        if self.tracks.keep_parts(is_wanted, is_whole) {
            // Their places in a block are others.
            self.persistence = None;
            self.trigger = None;
        }
    }

    /// The lane that triggers: the one that was set, or the nearest that there is.
    fn trigger_lane(&self, settings: &TriggerSettings) -> LaneId {
        let LaneId { channel, part } = settings.lane;
        let is_complex = self.tracks.format().is_complex();
        let channel = channel.min(self.tracks.channels() - 1);
        let lane = LaneId { channel, part };
        if self.tracks.track(lane).is_some() { lane } else { LaneId::first_of(channel, is_complex) }
    }

    /// Where the trigger wants the right edge, and its state. A held window stays where it is.
    pub(super) fn triggered(
        &mut self,
        viewport: &Viewport,
        moment: &Moment,
    ) -> (Option<f64>, Option<TriggerView>) {
        let Some(settings) = viewport.trigger.filter(|settings| settings.mode != TriggerMode::Roll) else {
            self.trigger = None;
            return (None, None);
        };
        let settings = TriggerSettings { lane: self.trigger_lane(&settings), ..settings };
        let Some(track) = self.tracks.track(settings.lane) else { return (None, None) };
        let rate = moment.stream.rate_or_one();
        let span_samples = moment.span * rate;
        // What was found while the stream came depends on when it was looked for.
        let is_whole = viewport.is_exact && moment.is_ended;
        if is_whole {
            self.trigger = None;
        }
        if !self.trigger.as_mut().is_some_and(|run| run.adopt(settings, span_samples, track)) {
            let mut run = TriggerSearch::new(settings, span_samples, rate, track, is_whole).ok();
            if let (Some(run), Some(before)) = (&mut run, &self.trigger) {
                run.carry_on(before);
            }
            self.trigger = run;
        }
        let oldest = track.pyramid.oldest().unwrap_or(0);
        let Some(run) = &mut self.trigger else { return (None, None) };
        let (right_edge, view) = run.window(span_samples, oldest);
        (right_edge.filter(|_| viewport.window == Window::Latest), Some(view))
    }

    /// The densities of all triggers, where the viewport asks for them and there is a trigger.
    fn persistence(&mut self, viewport: &Viewport, moment: &Moment) -> Option<Arc<PersistenceView>> {
        let (Some(ranges), Some(run), Some(trigger)) =
            (&viewport.persistence, &self.trigger, viewport.trigger)
        else {
            self.persistence = None;
            return None;
        };
        let span_samples = moment.span * moment.stream.rate_or_one();
        if !self.persistence.as_ref().is_some_and(|it| it.is_for(ranges, &trigger, span_samples)) {
            self.persistence = Persistence::new(ranges, trigger, run, span_samples, &self.tracks).ok();
        }
        self.persistence.as_mut()?.view(moment.now_ns)
    }

    /// The number of a waterfall that is made of what is not held.
    pub(super) fn next_spectrum_number(&mut self) -> u64 {
        self.spectrum.next_number()
    }

    /// Puts what is seen of the held samples into the picture: within `extent`, with the state of the trigger.
    pub(super) fn fill(
        &mut self,
        viewport: &Viewport,
        moment: &Moment,
        extent: &Extent,
        trigger: Option<TriggerView>,
        whole: Whole<'_, K>,
        picture: &mut Picture,
    ) {
        picture.persistence = self.persistence(viewport, moment);
        let Kept { tracks, measure, math, spectrum, signal, xy, overview, .. } = self;
        let rate = moment.stream.rate_or_one();
        let window = extent.window();
        *math = MathLane::renew(math.take(), tracks, viewport.math, rate, window.clone());
        let math = math.as_ref().map(MathLane::track);
        let seen = Seen { window: window.clone(), rate_hz: moment.stream.rate_hz, whole };
        (picture.measured, picture.measured_count) =
            measure.measure(tracks, math, viewport, &seen, moment.now_ns);
        let at = viewport.cursors.map(|(times, from)| {
            let from = from.or(trigger.and_then(|trigger| trigger.at)).unwrap_or(window.end);
            times.map(|time| (from + time * rate).round().max(0.0) as u64)
        });
        let ends = samples::ends(tracks.format()).map(|(low, high)| (K::from_f64(low), K::from_f64(high)));
        let of = |lane: LaneId| {
            let track = tracks.track(lane)?;
            // What is computed has a range of its own.
            let ends = ends.filter(|_| lane.part.is_sampled());
            let mut shown = extent.lane(lane, track, ends, viewport.interpolation);
            shown.at_cursors = at.map_or([None; 2], |at| at.map(|index| sample_at(track, index)));
            Some(shown)
        };
        picture.lanes = tracks.lanes(viewport.lanes).filter_map(of).collect();
        if let Some((track, _)) = math {
            let mut shown = extent.lane(LaneId::MATH, track, None, viewport.interpolation);
            shown.at_cursors = at.map_or([None; 2], |at| at.map(|index| sample_at(track, index)));
            picture.lanes.push(shown);
        }
        picture.math = math.map(|(_, scale)| scale);
        picture.grid = extent.grid;
        picture.first_column = extent.first_column;
        picture.left_index = extent.left_index;
        picture.span_samples = extent.span_samples;
        picture.trigger = trigger;
        picture.triggers = self.trigger.as_ref().map_or(Vec::new(), TriggerSearch::recent);
        picture.overview = overview.view(tracks, viewport, moment.is_ended, moment.now_ns);
        picture.signals = signal.measure(tracks, viewport, window.clone(), moment.now_ns);
        picture.xy = xy.view(tracks, viewport, &window, moment.now_ns);
        picture.spectrum = spectrum.view(tracks, viewport, window, moment.now_ns);
        picture.memory_bytes = tracks.memory_bytes();
    }
}

impl<K: Kind + IntoExtract> History for Kept<K> {
    fn is_for(&self, format: SampleFormat, channels: usize) -> bool {
        self.tracks.is_for(format, channels)
    }

    fn clear(&mut self) {
        self.tracks.clear();
        self.xy = XyPlotter::default();
        self.trigger = None;
        self.persistence = None;
    }

    fn append(&mut self, frame: &Frame<'_>, first: u64) -> Result<(), ScopeError> {
        let triggering = self.trigger.as_ref().and_then(|trigger| self.tracks.place(trigger.lane()));
        let Kept { tracks, trigger, persistence, .. } = self;
        tracks.append(frame, first, |lanes| {
            if let (Some(trigger), Some(place)) = (trigger, triggering) {
                trigger.scan(first, lanes[place]);
            }
            if let Some(persistence) = persistence {
                persistence.append(first, lanes);
            }
        })
    }

    fn next_index(&self) -> u64 {
        self.tracks.sampled().next_index()
    }

    fn show(&mut self, viewport: &Viewport, moment: Moment, picture: &mut Picture) {
        self.keep_parts(viewport, moment.is_ended);
        let (right_edge, trigger) = self.triggered(viewport, &moment);
        let history = self.tracks.sampled();
        let all = history.oldest().unwrap_or(0)..history.next_index();
        let extent = Extent::of(viewport, moment.span * moment.stream.rate_or_one(), right_edge, &all);
        self.fill(viewport, &moment, &extent, trigger, &|_| None, picture);
        (picture.oldest_index, picture.next_index) = (all.start, all.end);
    }

    fn extract(&mut self, rate_hz: f64, range: Range<u64>) -> Extract {
        let within = range.start as f64..range.end as f64;
        let triggers = self.trigger.as_ref().map_or(Vec::new(), |trigger| trigger.recent_in(within));
        Extract::of(&self.tracks, rate_hz, range, triggers, K::into_extract)
    }
}

/// Samples of one kind as those of an extract.
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
