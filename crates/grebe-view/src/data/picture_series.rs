//! Computations on a history for one viewer, with its own trigger, averages and pace.

use std::ops::Range;
use std::sync::Arc;

use crate::data::columns::{Extent, sample_at};
use crate::data::lane::{LaneId, Part};
use crate::data::math::MathLane;
use crate::data::measure::{PictureMeasurer, Seen, Whole};
use crate::data::overview::Overview;
use crate::data::persistence::{Persistence, PersistenceView};
use crate::data::picture::{Picture, StreamInfo};
use crate::data::region::RegionMeasurer;
use crate::data::samples::Kind;
use crate::data::signal::SignalMeasurer;
use crate::data::spectrum::SpectrumAnalyzer;
use crate::data::tracks::Tracks;
use crate::data::trigger::{TriggerMode, TriggerSearch, TriggerSettings, TriggerView};
use crate::data::viewport::{CursorTimes, Viewport, Window};
use crate::data::xy::XyPlotter;

/// The time of a picture, and the state of the stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) stream: StreamInfo,
    pub(crate) span: f64,
    pub(crate) is_ended: bool,
    pub(crate) now_ns: u64,
}

/// The state that one viewer keeps from picture to picture.
#[derive(Debug)]
pub(super) struct PictureSeries<K: Kind> {
    trigger: Option<TriggerSearch<K>>,
    persistence: Option<Persistence<K>>,
    /// Maximum memory for its trigger records.
    pub(super) room_bytes: usize,
    measure: PictureMeasurer<K>,
    math: Option<MathLane<K>>,
    spectrum: SpectrumAnalyzer<K>,
    signal: SignalMeasurer<K>,
    pub(super) region: RegionMeasurer,
    xy: XyPlotter<K>,
    overview: Overview,
    /// Parts of complex channels that its viewport needs.
    parts: Vec<Part>,
    /// Place of the triggering lane in incoming blocks.
    triggering: Option<usize>,
}

impl<K: Kind> Default for PictureSeries<K> {
    fn default() -> PictureSeries<K> {
        PictureSeries {
            trigger: None,
            persistence: None,
            room_bytes: 0,
            measure: PictureMeasurer::default(),
            math: None,
            spectrum: SpectrumAnalyzer::default(),
            signal: SignalMeasurer::default(),
            region: RegionMeasurer::default(),
            xy: XyPlotter::default(),
            overview: Overview::default(),
            parts: Vec::new(),
            triggering: None,
        }
    }
}

impl<K: Kind> PictureSeries<K> {
    /// Notes the parts that the viewport needs.
    pub(super) fn want_parts(&mut self, viewport: &Viewport) {
        let trigger = viewport.trigger.filter(|settings| settings.mode != TriggerMode::Roll);
        let math = viewport.math.iter().flat_map(|math| [math.a.lane.part, math.b.lane.part]);
        let xy = viewport.xy.iter().flat_map(|xy| [xy.x.part, xy.y.part]);
        let others = trigger.iter().map(|settings| settings.lane.part).chain(math).chain(xy);
        let shown = Part::COMPLEX.into_iter().filter(|&part| viewport.lanes.has_part(part));
        self.parts = shown.chain(others).collect();
    }

    pub(super) fn wants_part(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }

    /// Starts another stream of the same kind.
    pub(super) fn clear(&mut self) {
        self.spectrum.forget();
        self.xy = XyPlotter::default();
        self.trigger = None;
        self.persistence = None;
    }

    /// Called when the lanes move to other places in a block.
    pub(super) fn forget_places(&mut self) {
        self.persistence = None;
    }

    /// Discards found triggers, so that the search starts again.
    pub(super) fn forget_trigger(&mut self) {
        self.trigger = None;
    }

    /// Determines the places of its lanes in the next block.
    pub(super) fn expect(&mut self, tracks: &Tracks<K>) {
        self.triggering = self.trigger.as_ref().and_then(|trigger| tracks.place(trigger.lane()));
    }

    /// Takes a block of all lanes.
    pub(super) fn append(&mut self, first: u64, lanes: &[&[K]]) {
        if let (Some(trigger), Some(place)) = (&mut self.trigger, self.triggering) {
            trigger.scan(first, lanes[place]);
        }
        if let Some(persistence) = &mut self.persistence {
            persistence.append(first, lanes);
        }
    }

    /// Its triggers within a range.
    pub(super) fn triggers_in(&self, window: Range<f64>) -> Vec<f64> {
        self.trigger.as_ref().map_or(Vec::new(), |trigger| trigger.recent_in(window))
    }

    /// The right edge that the trigger wants, and its state. A held window does not move.
    pub(super) fn triggered(
        &mut self,
        tracks: &Tracks<K>,
        viewport: &Viewport,
        moment: &Moment,
    ) -> (Option<f64>, Option<TriggerView>) {
        let Some(settings) = viewport.trigger.filter(|settings| settings.mode != TriggerMode::Roll) else {
            self.trigger = None;
            return (None, None);
        };
        let settings = TriggerSettings { lane: trigger_lane(tracks, &settings), ..settings };
        let Some(track) = tracks.track(settings.lane) else { return (None, None) };
        let rate = moment.stream.rate_or_one();
        let span_samples = moment.span * rate;
        // An exact picture of an ended stream must not depend on when the search started.
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

    /// Memory of its trigger records, in bytes.
    pub(super) fn record_bytes(&self) -> usize {
        self.persistence.as_ref().map_or(0, Persistence::memory_bytes)
    }

    /// The densities of all triggers, if the viewport asks for them and there is a trigger.
    ///
    /// # Errors
    /// The reason for their absence, in words for the viewer.
    fn persistence(
        &mut self,
        tracks: &Tracks<K>,
        viewport: &Viewport,
        moment: &Moment,
    ) -> Result<Option<Arc<PersistenceView>>, String> {
        let (Some(ranges), Some(run), Some(trigger)) =
            (&viewport.persistence, &self.trigger, viewport.trigger)
        else {
            self.persistence = None;
            return Ok(None);
        };
        let span_samples = moment.span * moment.stream.rate_or_one();
        if !self.persistence.as_mut().is_some_and(|it| it.adopt(ranges, &trigger, span_samples)) {
            self.persistence = None;
            let made = Persistence::new(ranges, trigger, run, span_samples, tracks, self.room_bytes)?;
            self.persistence = Some(made);
        }
        Ok(self.persistence.as_mut().and_then(|it| it.view(moment.now_ns)))
    }

    /// The number of a waterfall that is made from samples outside the history.
    pub(super) fn next_spectrum_number(&mut self) -> u64 {
        self.spectrum.next_number()
    }

    /// Adds everything that depends on held samples to the picture: within `extent`, with the state of the trigger.
    #[expect(clippy::too_many_arguments, reason = "each is another thing, and there are two callers")]
    pub(super) fn fill(
        &mut self,
        tracks: &Tracks<K>,
        viewport: &Viewport,
        moment: &Moment,
        extent: &Extent,
        trigger: Option<TriggerView>,
        whole: Whole<'_, K>,
        picture: &mut Picture,
    ) {
        (picture.persistence, picture.refused) = match self.persistence(tracks, viewport, moment) {
            Ok(view) => (view, None),
            Err(why) => (None, Some(why)),
        };
        let PictureSeries { measure, math, spectrum, signal, xy, overview, .. } = self;
        let rate = moment.stream.rate_or_one();
        let window = extent.window();
        *math = MathLane::renew(math.take(), tracks, viewport.math, rate, window.clone());
        let math = math.as_ref().map(MathLane::track);
        let seen = Seen { window: window.clone(), rate_hz: moment.stream.rate_hz, whole };
        (picture.measured, picture.measured_count) =
            measure.measure(tracks, math, viewport, &seen, moment.now_ns);
        let at = viewport.cursors.map(|CursorTimes { times, from }| {
            let from = from.or(trigger.and_then(|trigger| trigger.at)).unwrap_or(window.end);
            times.map(|time| (from + time * rate).round().max(0.0) as u64)
        });
        let ends = tracks.ends().map(|(low, high)| (K::from_f64(low), K::from_f64(high)));
        let of = |lane: LaneId| {
            let track = tracks.track(lane)?;
            // Derived values have their own range.
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
        let middle = picture.left_index + picture.span_samples / 2.0;
        picture.triggers = match (&self.trigger, viewport.window) {
            (None, _) => Vec::new(),
            (Some(trigger), Window::Latest) => trigger.recent(),
            // Newer triggers do not push out those that a person steps through.
            (Some(trigger), Window::Ending { .. }) => trigger.recent_around(middle),
        };
        picture.overview = overview.view(tracks, viewport, moment.is_ended, moment.now_ns);
        picture.signals = signal.measure(tracks, viewport, window.clone(), moment.now_ns);
        picture.region.clone_from(&self.region.measured);
        picture.xy = xy.view(tracks, viewport, &window, moment.now_ns);
        picture.spectrum = spectrum.view(tracks, viewport, window, (moment.is_ended, moment.now_ns));
        picture.memory_bytes = tracks.memory_bytes();
    }
}

/// The lane that triggers: the selected one, or the nearest existing one.
fn trigger_lane<K: Kind>(tracks: &Tracks<K>, settings: &TriggerSettings) -> LaneId {
    let LaneId { channel, part } = settings.lane;
    let is_complex = tracks.format().is_complex();
    let channel = channel.min(tracks.channels() - 1);
    let lane = LaneId { channel, part };
    if tracks.track(lane).is_some() { lane } else { LaneId::first_of(channel, is_complex) }
}
