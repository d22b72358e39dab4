//! What the front ends have in common: the newest picture, the settings, the words around it.

use std::net::SocketAddr;
use std::sync::Arc;

use grebe_flow::monotonic_ns;
use grebe_frame::Description;
use grebe_scope::{Column, MeasurementStatistics, Scale, Ticks};

use super::action::SaveWhat;
use super::channel::ChannelSetup;
use super::choices::OpenList;
use super::controls::Controls;
use super::generator::Generator;
use super::hud::Hud;
use super::options::ViewOptions;
use super::prompt::Prompt;
use super::session::Session;
use super::update::CpuMeter;
use super::vertical::ValueRange;
use crate::data::link::ScopeLink;
use crate::data::math::{LANES, MATH_CHANNEL, MathInput, MathOperation, MathSettings};
use crate::data::picture::Picture;
use crate::data::status::GapPlaces;
use crate::data::trigger::TriggerView;
use crate::data::viewport::{DIVISIONS, Viewport};
use crate::error::Error;

/// One scope as a person sees and handles it, without the screen: every front end draws one.
pub(crate) struct ViewModel {
    pub(crate) link: ScopeLink,
    pub(crate) options: ViewOptions,
    pub(crate) controls: Controls,
    pub(crate) picture: Picture,
    pub(crate) hud: Hud,
    pub(crate) generator: Generator,
    /// In which place the gaps were lost.
    pub(super) gap_places: GapPlaces,
    /// What the stream said of itself, as far as the lanes know it.
    pub(super) heard: Option<Arc<Description>>,
    /// By channel, since the view changed.
    pub(super) statistics: [MeasurementStatistics; LANES],
    /// The last measurement that is in the statistics, and of which span.
    pub(super) counted: (u64, f64),
    /// What is to be done with the samples that the history was asked for.
    pub(super) asked: Option<Asked>,
    /// Columns of the strip with all of the history, where the front end shows one.
    pub(crate) overview_columns: Option<usize>,
    pub(super) draw_png: DrawPng,
    /// When the words around the picture were made; 0: they are due.
    pub(super) hud_made_ns: u64,
    /// The list that is open, and the line that is typed.
    pub(super) list: Option<OpenList>,
    pub(crate) prompt: Option<Prompt>,
    /// Whether a front end has still to notice that another source is shown.
    pub(super) is_replaced: bool,
    /// Senders to the same port that were told of.
    pub(super) told_senders: Vec<SocketAddr>,
    /// A message to be shown for a while, and since when.
    pub(super) message: Option<(String, u64)>,
    /// Pictures taken, and since when.
    pub(super) taken: (u32, u64),
    pub(super) pictures_per_s: f64,
    pub(super) cpu: CpuMeter,
    /// Part of one core that this process uses.
    pub(super) cpu_part: Option<f64>,
}

/// Draws what the model shows as a PNG file of so many pixels. The model cannot know how: whoever shows it says.
pub(crate) type DrawPng = fn(&mut ViewModel, width: u32, height: u32) -> Result<Vec<u8>, Error>;

impl ViewModel {
    pub(crate) fn new(link: ScopeLink, mut options: ViewOptions, draw_png: DrawPng) -> ViewModel {
        link.begin_viewing();
        let picture = Picture::waiting();
        let mut model = ViewModel {
            controls: options.controls(),
            hud: Hud::new(&picture, &(options.status)(), false, 0.0, monotonic_ns()),
            generator: Generator::new(options.generator.take()),
            link,
            options,
            picture,
            gap_places: GapPlaces::default(),
            heard: None,
            statistics: Default::default(),
            counted: (0, 0.0),
            asked: None,
            overview_columns: None,
            draw_png,
            hud_made_ns: 0,
            list: None,
            prompt: None,
            is_replaced: false,
            told_senders: Vec::new(),
            message: None,
            taken: (0, 0),
            pictures_per_s: 0.0,
            cpu: CpuMeter::default(),
            cpu_part: None,
        };
        model.greet();
        model
    }

    /// Asks for the picture that the settings describe, `columns` wide; returns whether the request changed.
    pub(crate) fn request(&self, columns: usize) -> bool {
        self.link.request(self.viewport(columns))
    }

    /// The picture that the settings describe, `columns` wide.
    pub(crate) fn viewport(&self, columns: usize) -> Viewport {
        let mut viewport = self.controls.viewport(&self.picture, columns);
        viewport.math = self.math_settings();
        viewport.overview = self.overview_columns;
        if self.controls.is_measuring {
            viewport.measure =
                Some(std::array::from_fn(|channel| self.controls.lanes.setups[channel].dc_scale()));
        }
        if self.controls.show.persistence {
            viewport.persistence = Some(std::array::from_fn(|channel| {
                let setup = self.setup(channel);
                let range =
                    self.controls.lanes.range(channel).unwrap_or(ValueRange { bottom: -1.0, top: 1.0 });
                let count = |value: f64| ((value - setup.offset) / setup.scale).round() as i16;
                let (a, b) = (count(range.bottom), count(range.top));
                (a.min(b), a.max(b))
            }));
        }
        viewport
    }

    pub(crate) fn is_done(&self) -> bool {
        self.controls.is_done || self.link.is_closed()
    }

    pub(super) fn say(&mut self, text: String) {
        self.message = Some((text, monotonic_ns()));
        self.hud_made_ns = 0;
    }

    pub(crate) fn trigger_marks(&self) -> TriggerMarks {
        let Some(trigger) = self.picture.trigger else { return TriggerMarks::default() };
        let part = trigger.at.map(|at| (at - self.picture.left_index) / self.picture.span_samples);
        TriggerMarks {
            part: part.filter(|part| (0.0..=1.0).contains(part)),
            levels: match trigger.settings.kind.has_two_levels() {
                true => vec![trigger.level, trigger.upper],
                false => vec![trigger.level],
            }
            .into_iter()
            .map(|level| (trigger.settings.channel, f64::from(level) + self.level_zero(&trigger)))
            .collect(),
        }
    }

    /// The raw count that the trigger's level counts from: with LF reject, the mean of the visible samples, in place of the
    /// wandering baseline.
    pub(crate) fn level_zero(&self, trigger: &TriggerView) -> f64 {
        let channel = trigger.settings.channel;
        let shown = self.picture.channels.iter().find(|data| data.channel == channel);
        let mean = shown.map_or(0.0, |data| data.mean);
        if trigger.settings.coupling.is_lf_reject() { mean } else { 0.0 }
    }

    /// The time axis: values at the left and the right edge, and its ticks, ten per screen.
    pub(crate) fn axis(&self) -> (f64, f64, Ticks) {
        let (start, span) = (self.controls.time.start(&self.picture), self.picture.span());
        (start, start + span, Ticks::with_step(start, start + span, span / DIVISIONS))
    }

    /// The lane that stands in front where all channels share one: that of the selected channel.
    pub(crate) fn front_lane(&self) -> usize {
        let selected = self.controls.lanes.selected;
        self.picture.channels.iter().position(|data| data.channel == selected).unwrap_or(0)
    }

    pub(crate) fn range(&mut self, place: usize) -> ValueRange {
        let data = &self.picture.channels[place];
        let setup = self.setup(data.channel);
        let seen = extremes(&data.columns, &setup);
        self.controls.lanes.follow(data.channel, seen, setup.scale.abs())
    }

    /// The meaning of a channel's numbers in the current picture.
    pub(crate) fn setup(&self, channel: usize) -> ChannelSetup {
        let shown = self.picture.channels.iter().find(|data| data.channel == channel);
        let mean = shown.map_or(0.0, |data| data.mean);
        let own = &self.controls.lanes.setups[channel % LANES];
        match self.controls.math.filter(|_| channel == MATH_CHANNEL) {
            Some(operation) => self.math_setup(operation, own).resolved(mean),
            None => own.resolved(mean),
        }
    }

    /// The setup of the math channel: it follows from its inputs, and changes from picture to picture.
    fn math_setup(&self, operation: MathOperation, own: &ChannelSetup) -> ChannelSetup {
        let [a, b] = self.controls.math_inputs.map(|channel| &self.controls.lanes.setups[channel % LANES]);
        let [name_a, name_b] = self
            .controls
            .math_inputs
            .map(|channel| self.controls.lanes.setups[channel % LANES].label(channel));
        let scale = self.picture.math.unwrap_or(Scale::COUNTS);
        ChannelSetup {
            name: if own.name.is_empty() { operation.words(&name_a, &name_b) } else { own.name.clone() },
            unit: operation.unit(&a.unit, &b.unit, self.picture.axis_unit()),
            scale: scale.factor,
            offset: scale.offset,
            ..own.clone()
        }
    }

    fn math_settings(&self) -> Option<MathSettings> {
        let input = |channel: usize| {
            let setup = &self.controls.lanes.setups[channel % LANES];
            MathInput { channel, scale: setup.dc_scale(), is_ac: setup.is_ac }
        };
        let [a, b] = self.controls.math_inputs.map(input);
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

/// Why samples were asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Asked {
    Save(SaveWhat),
    Autoset {
        /// So many of the newest.
        samples: u64,
    },
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct TriggerMarks {
    /// Place of the trigger, 0.0 left edge to 1.0 right edge.
    pub(crate) part: Option<f64>,
    /// The channel and its level in raw counts, or both levels.
    pub(crate) levels: Vec<(usize, f64)>,
}

pub(crate) fn extremes(columns: &[Column], setup: &ChannelSetup) -> Option<ValueRange> {
    let visible = columns.iter().filter(|column| !column.is_empty());
    let (min, max) = visible.fold((i16::MAX, i16::MIN), |(min, max), c| (min.min(c.min), max.max(c.max)));
    let (a, b) = (setup.value(f64::from(min)), setup.value(f64::from(max)));
    (min <= max).then(|| ValueRange { bottom: a.min(b), top: a.max(b) })
}
