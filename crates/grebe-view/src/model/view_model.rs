//! The state that all front ends share: settings, visible state, open dialogs.

use std::sync::Arc;

use grebe_flow::monotonic_ns;
use grebe_scope::{Column, Scale, Ticks};

use super::channel::ChannelSetup;
use super::controls::Controls;
use super::generator::Generator;
use super::open::Open;
use super::options::ViewOptions;
use super::seen::Seen;
use super::session::Session;
use super::standing::Standing;
use super::vertical::ValueRange;
use crate::data::lane::{LaneId, Part};
use crate::data::link::ScopeLink;
use crate::data::math::{MathInput, MathOperation, MathSettings};
use crate::data::trigger::TriggerView;
use crate::data::viewport::{CountRange, DIVISIONS, Viewport};
use crate::error::Error;

/// One scope without its screen: every front end draws one.
pub(crate) struct ViewModel {
    pub(crate) link: ScopeLink,
    pub(crate) options: ViewOptions,
    pub(crate) controls: Controls,
    pub(crate) seen: Seen,
    pub(crate) open: Open,
    /// Its relation to the common time axis, if it is one of several.
    pub(crate) standing: Standing,
    pub(crate) generator: Generator,
    /// Cells of the X-Y plot, if the front end shows one.
    pub(crate) xy_size: Option<(usize, usize)>,
    /// Columns of the overview strip, if the front end shows one.
    pub(crate) overview_columns: Option<usize>,
    pub(super) draw_png: DrawPng,
}

/// Draws the model as a PNG file of a given size. The front end provides it, because the model cannot draw.
pub(crate) type DrawPng = fn(&mut ViewModel, width: u32, height: u32) -> Result<Vec<u8>, Error>;

impl ViewModel {
    pub(crate) fn new(link: ScopeLink, mut options: ViewOptions, draw_png: DrawPng) -> ViewModel {
        link.begin_viewing();
        let mut model = ViewModel {
            controls: options.controls(),
            seen: Seen::new(&(options.status)()),
            open: Open::default(),
            generator: Generator::new(options.generator.take()),
            link,
            options,
            standing: Standing::default(),
            xy_size: None,
            overview_columns: None,
            draw_png,
        };
        model.greet();
        model
    }

    /// Requests the picture of the present settings, `columns` wide; returns whether another one will follow than before.
    pub(crate) fn request(&mut self, columns: usize) -> bool {
        if std::mem::take(&mut self.standing.wants_news) {
            self.link.request_anew(self.viewport(columns));
            return true;
        }
        self.link.request(self.viewport(columns))
    }

    /// The viewport of the present settings, `columns` wide.
    pub(crate) fn viewport(&self, columns: usize) -> Viewport {
        let mut viewport = self.controls.viewport(&self.seen.picture, columns);
        viewport.math = self.math_settings();
        viewport.overview = self.overview_columns;
        viewport.xy = self.xy_settings();
        viewport.annotations = self.annotation_query();
        viewport.region = self.region();
        if self.controls.is_measuring {
            let scales = self.lanes_shown().map(|lane| (lane, self.unresolved_setup(lane).dc_scale()));
            viewport.measure = Some(Arc::new(scales.collect()));
            viewport.against = self.controls.against;
        }
        if self.controls.show.persistence {
            let range = |lane: LaneId| {
                let setup = self.setup(lane);
                let range = self.controls.lanes.range(lane).unwrap_or(ValueRange { bottom: -1.0, top: 1.0 });
                let count = |value: f64| (value - setup.offset) / setup.scale;
                let (a, b) = (count(range.bottom), count(range.top));
                (lane, CountRange { low: a.min(b), high: a.max(b) })
            };
            viewport.persistence = Some(Arc::new(self.lanes_shown().map(range).collect()));
        }
        viewport
    }

    /// Whether the picture is held, and is the one that was requested for its place: an older one may still be shown.
    pub(crate) fn is_held_window_shown(&self) -> bool {
        let answered = self.seen.picture.answers.as_ref();
        let window = self.controls.time.window();
        self.controls.time.is_held() && answered.is_some_and(|answered| answered.window == window)
    }

    /// The requested lanes.
    fn lanes_shown(&self) -> impl Iterator<Item = LaneId> {
        self.seen.picture.stream.into_iter().flat_map(|stream| stream.lanes(self.controls.shown))
    }

    /// The lane of the keys.
    pub(crate) fn selected(&self) -> LaneId {
        self.controls.selected(&self.seen.picture)
    }

    /// The lane whose colour and name stand for the whole channel.
    pub(crate) fn channel_lane(&self, channel: usize) -> LaneId {
        self.seen.picture.stream.map_or(LaneId::real(channel), |stream| stream.first_lane(channel))
    }

    /// The name of a whole channel.
    pub(crate) fn channel_label(&self, channel: usize) -> String {
        self.controls.lanes.setup(LaneId::real(channel)).label(LaneId::real(channel))
    }

    pub(crate) fn is_done(&self) -> bool {
        self.controls.is_done || self.link.is_closed()
    }

    /// Shows a message for a while.
    pub(crate) fn say(&mut self, text: String) {
        self.open.message = Some((text, monotonic_ns()));
        self.seen.hud_made_ns = 0;
    }

    pub(crate) fn trigger_marks(&self) -> TriggerMarks {
        let Some(trigger) = self.seen.picture.trigger else { return TriggerMarks::default() };
        let time = &self.controls.time;
        // A held picture stays with its trigger, even when newer ones arrive.
        let held = Some(time.reference(&self.seen.picture))
            .filter(|at| time.held_trigger() == Some(*at) || self.seen.picture.triggers.contains(at));
        let at = if time.is_held() { held } else { trigger.at };
        let part = at.map(|at| (at - self.seen.picture.left_index) / self.seen.picture.span_samples);
        TriggerMarks {
            part: part.filter(|part| (0.0..=1.0).contains(part)),
            levels: match trigger.settings.kind.has_two_levels() {
                true => vec![trigger.level, trigger.upper],
                false => vec![trigger.level],
            }
            .into_iter()
            .map(|level| (trigger.settings.lane, level + self.level_zero(&trigger)))
            .collect(),
        }
    }

    /// The raw count from which the trigger's level counts: with LF reject, the mean of the visible samples, which
    /// stands for the wandering baseline.
    pub(crate) fn level_zero(&self, trigger: &TriggerView) -> f64 {
        let lane = trigger.settings.lane;
        let shown = self.seen.picture.lanes.iter().find(|data| data.lane == lane);
        let mean = shown.map_or(0.0, |data| data.mean);
        if trigger.settings.coupling.is_lf_reject() { mean } else { 0.0 }
    }

    /// The time axis: values at the left and the right edge, and its ticks, ten per screen.
    pub(crate) fn axis(&self) -> (f64, f64, Ticks) {
        let (start, span) = (self.controls.time.start(&self.seen.picture), self.seen.picture.span());
        (start, start + span, Ticks::with_step(start, start + span, span / DIVISIONS))
    }

    /// The place of the front lane, if all share one: the selected lane.
    pub(crate) fn front_lane(&self) -> usize {
        let selected = self.selected();
        self.seen.picture.lanes.iter().position(|data| data.lane == selected).unwrap_or(0)
    }

    pub(crate) fn range(&mut self, place: usize) -> ValueRange {
        let data = &self.seen.picture.lanes[place];
        let setup = self.setup(data.lane);
        let seen = extremes(&data.columns, &setup);
        let resolution = self.resolution(data.lane, &setup, seen);
        self.controls.lanes.follow(data.lane, seen, resolution)
    }

    /// The resolution of a lane in its unit: a count of integers, or a small part of the values.
    pub(crate) fn resolution(&self, lane: LaneId, setup: &ChannelSetup, seen: Option<ValueRange>) -> f64 {
        let is_float = self.seen.picture.stream.is_some_and(|stream| stream.format.is_float());
        if lane.part.is_sampled() && !is_float {
            return setup.scale.abs();
        }
        let height = seen.map_or(0.0, |seen| seen.top.abs().max(seen.bottom.abs()));
        if height > 0.0 { height * 1e-6 } else { setup.scale.abs() * 1e-3 }
    }

    /// The meaning of a lane's numbers in the present picture.
    pub(crate) fn setup(&self, lane: LaneId) -> ChannelSetup {
        let shown = self.seen.picture.lanes.iter().find(|data| data.lane == lane);
        self.unresolved_setup(lane).resolved(shown.map_or(0.0, |data| data.mean))
    }

    /// The same before inversion and AC coupling.
    pub(crate) fn unresolved_setup(&self, lane: LaneId) -> ChannelSetup {
        let own = self.controls.lanes.setup(lane);
        let rate_hz = self.seen.picture.stream.map_or(0.0, |stream| stream.rate_hz);
        match (lane.part, self.controls.math) {
            (Part::Math, Some(operation)) => self.math_setup(operation, &own),
            (Part::Frequency, _) if rate_hz > 0.0 => {
                ChannelSetup { unit: "Hz".into(), scale: rate_hz, ..own }
            }
            _ => own,
        }
    }

    /// The setup of the math lane, which depends on its inputs and changes from picture to picture.
    fn math_setup(&self, operation: MathOperation, own: &ChannelSetup) -> ChannelSetup {
        let inputs = self.math_inputs();
        let [a, b] = inputs.map(|lane| self.unresolved_setup(lane));
        let [name_a, name_b] = [a.label(inputs[0]), b.label(inputs[1])];
        let scale = self.seen.picture.math.unwrap_or(Scale::COUNTS);
        ChannelSetup {
            name: if own.name.is_empty() { operation.words(&name_a, &name_b) } else { own.name.clone() },
            unit: operation.unit(&a.unit, &b.unit, self.seen.picture.axis_unit()),
            scale: scale.factor,
            offset: scale.offset,
            ..own.clone()
        }
    }

    /// The inputs of the math lane; for a complex stream I and Q in place of real channels.
    pub(crate) fn math_inputs(&self) -> [LaneId; 2] {
        let [a, b] = self.controls.math_inputs;
        let is_complex = self.seen.picture.stream.is_some_and(|stream| stream.format.is_complex());
        match (is_complex, a.part == Part::Real, b.part == Part::Real) {
            (true, true, true) => {
                [LaneId { channel: 0, part: Part::I }, LaneId { channel: 0, part: Part::Q }]
            }
            (false, false, _) | (false, _, false) => [LaneId::real(0), LaneId::real(1)],
            _ => [a, b],
        }
    }

    fn math_settings(&self) -> Option<MathSettings> {
        let input = |lane: LaneId| {
            let setup = self.unresolved_setup(lane);
            MathInput { lane, scale: setup.dc_scale(), is_ac: setup.is_ac }
        };
        let [a, b] = self.math_inputs().map(input);
        self.controls.math.map(|operation| MathSettings { operation, a, b })
    }
}

impl Drop for ViewModel {
    fn drop(&mut self) {
        if let Some(keep) = self.options.keep_session.take() {
            keep(&Session::of(&self.controls));
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct TriggerMarks {
    /// Place of the trigger, 0.0 left edge to 1.0 right edge.
    pub(crate) part: Option<f64>,
    /// The lane and its level in raw counts, or both levels.
    pub(crate) levels: Vec<(LaneId, f64)>,
}

pub(crate) fn extremes(columns: &[Column<f32>], setup: &ChannelSetup) -> Option<ValueRange> {
    let visible = columns.iter().filter(|column| !column.is_empty());
    // Infinite values do not belong to a range.
    let ends = visible.flat_map(|column| [column.min, column.max]).filter(|end| end.is_finite());
    let (min, max) = ends.fold((f32::MAX, f32::MIN), |(min, max), end| (min.min(end), max.max(end)));
    let (a, b) = (setup.value(min.into()), setup.value(max.into()));
    (min <= max).then(|| ValueRange { bottom: a.min(b), top: a.max(b) })
}
