//! What a far viewer says: JSON, an object with one key.

mod trigger;

use std::sync::Arc;

use grebe_scope::{Interpolation, Scale, Window as Weighting};
use serde::{Deserialize, Serialize};

use crate::data::lane::{CHANNELS_MAX, LaneId, LaneMask, Part};
use crate::data::math::{MathInput, MathOperation, MathSettings};
use crate::data::viewport::XySettings;
use crate::data::viewport::{SpectrumSettings, Viewport, Window};
use crate::far::control::Wish;
use crate::far::sought::FarSought;
pub(crate) use trigger::{FarTrigger, SPAN_MAX};

/// A message of a viewer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Asked {
    Hello(Hello),
    Viewport(Box<FarViewport>),
    Ack(u64),
    Ping {
        at: f64,
    },
    Extract {
        number: u64,
        from: u64,
        to: u64,
    },
    Control(Wish),
    /// Events to be looked for in all that is held; `None`: no longer.
    Find(Option<FarSought>),
}

/// The first message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) protocol: u32,
    #[serde(default)]
    pub(crate) token: String,
    #[serde(default)]
    pub(crate) program: String,
    #[serde(default = "pictures_per_s_max")]
    pub(crate) pictures_per_s: f64,
    /// Which of the sources that the server shows, from 1.
    #[serde(default = "first_source")]
    pub(crate) source: usize,
    /// It is a page, which is told in words what it shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) page: Option<PageHello>,
}

/// What a page says of itself first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PageHello {
    /// What was set when it was told that last, or as its link says.
    pub(crate) view: String,
    /// Whether its surroundings are bright.
    pub(crate) is_light: bool,
}

pub(crate) fn first_source() -> usize {
    1
}

/// A viewport with its number. What is left out is as in [`Viewport::latest`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct FarViewport {
    pub(crate) number: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ending: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    span: Option<f64>,
    columns: usize,
    /// `None`: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    channels: Option<Vec<usize>>,
    parts: Vec<Part>,
    sinc: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trigger: Option<FarTrigger>,
    #[serde(skip_serializing_if = "Option::is_none")]
    measure: Option<Vec<LaneScale>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    math: Option<FarMath>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursors: Option<FarCursors>,
    is_exact: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    spectrum: Option<FarSpectrum>,
    #[serde(skip_serializing_if = "Option::is_none")]
    persistence: Option<Vec<LaneRange>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    xy: Option<XySettings>,
    #[serde(skip_serializing_if = "Option::is_none")]
    overview: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct LaneScale {
    lane: LaneId,
    factor: f64,
    offset: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct LaneRange {
    lane: LaneId,
    low: f64,
    high: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct FarMath {
    operation: MathOperation,
    a: FarInput,
    b: FarInput,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct FarInput {
    lane: LaneId,
    factor: f64,
    offset: f64,
    #[serde(default)]
    is_ac: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct FarCursors {
    times: [f64; 2],
    #[serde(default)]
    from: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct FarSpectrum {
    size: usize,
    window: FarWeighting,
    averages: u32,
    is_peak_held: bool,
    waterfall: Option<usize>,
    band: Option<(f64, f64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FarWeighting {
    Rectangular,
    Hann,
    Hamming,
    Blackman,
    BlackmanHarris,
    FlatTop,
}

impl FarViewport {
    pub(crate) fn new(number: u64, viewport: &Viewport) -> FarViewport {
        let channels: Vec<usize> = (0..CHANNELS_MAX).filter(|&it| viewport.lanes.has_channel(it)).collect();
        let input = |input: &MathInput| FarInput {
            lane: input.lane,
            factor: input.scale.factor,
            offset: input.scale.offset,
            is_ac: input.is_ac,
        };
        FarViewport {
            number,
            ending: match viewport.window {
                Window::Latest => None,
                Window::Ending { at } => Some(at),
            },
            span: viewport.span,
            columns: viewport.columns,
            channels: (channels.len() < CHANNELS_MAX).then_some(channels),
            parts: Part::COMPLEX.into_iter().filter(|&part| viewport.lanes.has_part(part)).collect(),
            sinc: viewport.interpolation == Interpolation::Sinc,
            trigger: viewport.trigger.as_ref().map(FarTrigger::new),
            measure: viewport.measure.as_ref().map(|scales| {
                let of = |(lane, scale): (LaneId, &Scale)| LaneScale {
                    lane,
                    factor: scale.factor,
                    offset: scale.offset,
                };
                scales.iter().map(of).collect()
            }),
            math: viewport.math.map(|math| FarMath {
                operation: math.operation,
                a: input(&math.a),
                b: input(&math.b),
            }),
            cursors: viewport.cursors.map(|(times, from)| FarCursors { times, from }),
            is_exact: viewport.is_exact,
            spectrum: viewport.spectrum.map(|settings| FarSpectrum {
                size: settings.size,
                window: WEIGHTINGS
                    .iter()
                    .find(|(it, _)| *it == settings.window)
                    .map_or(FarWeighting::Hann, |it| it.1),
                averages: settings.averages,
                is_peak_held: settings.is_peak_held,
                waterfall: settings.waterfall,
                band: settings.band,
            }),
            persistence: viewport.persistence.as_ref().map(|ranges| {
                ranges.iter().map(|(lane, &(low, high))| LaneRange { lane, low, high }).collect()
            }),
            xy: viewport.xy,
            overview: viewport.overview,
        }
    }

    /// What is to be seen, within what one viewer may cost.
    pub(crate) fn viewport(&self) -> Viewport {
        bounded(self.unbounded())
    }

    fn unbounded(&self) -> Viewport {
        let mut lanes = LaneMask::ALL;
        if let Some(channels) = &self.channels {
            let mut channels: Vec<usize> = channels.iter().copied().filter(|&it| it < CHANNELS_MAX).collect();
            channels.sort_unstable();
            channels.dedup();
            lanes = lanes.only(channels);
        }
        for part in Part::COMPLEX {
            if lanes.has_part(part) != self.parts.contains(&part) {
                lanes = lanes.part_toggled(part);
            }
        }
        let input = |input: &FarInput| MathInput {
            lane: input.lane,
            scale: Scale { factor: input.factor, offset: input.offset },
            is_ac: input.is_ac,
        };
        Viewport {
            window: self.ending.map_or(Window::Latest, |at| Window::Ending { at }),
            span: self.span,
            columns: self.columns,
            lanes,
            interpolation: if self.sinc { Interpolation::Sinc } else { Interpolation::Linear },
            trigger: self.trigger.as_ref().map(FarTrigger::settings),
            measure: self.measure.as_ref().map(|scales| {
                let of = |it: &LaneScale| (it.lane, Scale { factor: it.factor, offset: it.offset });
                Arc::new(scales.iter().map(of).collect())
            }),
            math: self.math.as_ref().map(|math| MathSettings {
                operation: math.operation,
                a: input(&math.a),
                b: input(&math.b),
            }),
            cursors: self.cursors.as_ref().map(|cursors| (cursors.times, cursors.from)),
            is_exact: self.is_exact,
            spectrum: self.spectrum.as_ref().map(FarSpectrum::settings),
            persistence: self.persistence.as_ref().map(|ranges| {
                let of = |it: &LaneRange| (it.lane, (it.low, it.high));
                Arc::new(ranges.iter().map(of).collect())
            }),
            xy: self.xy,
            overview: self.overview,
        }
    }
}

impl Default for FarViewport {
    fn default() -> FarViewport {
        FarViewport::new(0, &Viewport::latest(1000))
    }
}

impl FarSpectrum {
    fn settings(&self) -> SpectrumSettings {
        SpectrumSettings {
            size: self.size,
            window: WEIGHTINGS.iter().find(|(_, it)| *it == self.window).map_or(Weighting::Hann, |it| it.0),
            averages: self.averages,
            is_peak_held: self.is_peak_held,
            waterfall: self.waterfall,
            band: self.band,
        }
    }
}

impl Default for FarSpectrum {
    fn default() -> FarSpectrum {
        let SpectrumSettings { size, averages, is_peak_held, waterfall, band, .. } =
            SpectrumSettings::default();
        FarSpectrum { size, window: FarWeighting::Hann, averages, is_peak_held, waterfall, band }
    }
}

/// A viewport within what one viewer may cost, whoever asks; what its records may take is bounded where their lanes are known.
pub(crate) fn bounded(mut viewport: Viewport) -> Viewport {
    viewport.span = viewport.span.filter(|span| *span > 0.0).map(|span| span.clamp(SPAN_MIN, SPAN_MAX));
    viewport.columns = viewport.columns.clamp(1, COLUMNS_MAX);
    viewport.overview = viewport.overview.map(|columns| columns.min(OVERVIEW_MAX));
    if let Some(spectrum) = &mut viewport.spectrum {
        spectrum.size = spectrum.size.min(TRANSFORM_MAX);
        spectrum.averages = spectrum.averages.clamp(1, AVERAGES_MAX);
    }
    if let Some(xy) = &mut viewport.xy {
        xy.size = (xy.size.0.clamp(1, CELLS_MAX), xy.size.1.clamp(1, CELLS_MAX));
    }
    if let Some(ranges) = &mut viewport.persistence {
        let some = ranges.iter().take(DENSITIES_MAX).map(|(lane, range)| (lane, *range)).collect();
        *ranges = Arc::new(some);
    }
    viewport
}

fn pictures_per_s_max() -> f64 {
    PICTURES_PER_S_MAX
}

const WEIGHTINGS: [(Weighting, FarWeighting); 6] = [
    (Weighting::Rectangular, FarWeighting::Rectangular),
    (Weighting::Hann, FarWeighting::Hann),
    (Weighting::Hamming, FarWeighting::Hamming),
    (Weighting::Blackman, FarWeighting::Blackman),
    (Weighting::BlackmanHarris, FarWeighting::BlackmanHarris),
    (Weighting::FlatTop, FarWeighting::FlatTop),
];

/// Bounds of what one viewer may ask for: they bound what it costs the thread that has the samples.
pub(crate) const COLUMNS_MAX: usize = 4096;
pub(crate) const OVERVIEW_MAX: usize = 2048;
pub(crate) const CELLS_MAX: usize = 1024;
pub(crate) const PICTURES_PER_S_MAX: f64 = 60.0;
const DENSITIES_MAX: usize = 8;
const TRANSFORM_MAX: usize = 1 << 16;
const AVERAGES_MAX: u32 = 1000;
const SPAN_MIN: f64 = 1e-12;

#[cfg(test)]
pub(crate) mod tests {
    use grebe_scope::Slope;
    use proptest::prelude::*;

    use super::*;
    use crate::data::trigger::{TriggerCoupling, TriggerKind, TriggerMode, TriggerSettings};

    fn lane() -> impl Strategy<Value = LaneId> + Clone {
        let parts = vec![Part::Real, Part::I, Part::Q, Part::MagnitudeDb, Part::Phase];
        (0..8usize, prop::sample::select(parts)).prop_map(|(channel, part)| LaneId { channel, part })
    }

    pub(crate) fn viewport() -> impl Strategy<Value = Viewport> {
        let number = -1e9..1e9f64;
        let trigger = (lane(), prop::option::of(number.clone()), 0.0..1.0, any::<bool>(), any::<u32>());
        let trigger = trigger.prop_map(|(lane, level, position, is_lf, shot)| TriggerSettings {
            lane,
            level,
            position,
            coupling: if is_lf {
                TriggerCoupling::LfReject { corner_hz: level.filter(|hz| *hz > 0.0) }
            } else {
                TriggerCoupling::Dc
            },
            slope: if is_lf { Slope::Either } else { Slope::Falling },
            kind: TriggerKind::ALL[shot as usize % 5],
            shot,
            ..TriggerSettings::new(TriggerMode::Normal)
        });
        let scale = (number.clone(), number.clone()).prop_map(|(factor, offset)| Scale { factor, offset });
        let input = (lane(), scale.clone(), any::<bool>()).prop_map(|(lane, scale, is_ac)| MathInput {
            lane,
            scale,
            is_ac,
        });
        let what = (
            prop::option::of(number.clone()),
            prop::option::of(1e-9..1e3f64),
            1..COLUMNS_MAX,
            prop::collection::btree_set(0..256usize, 0..9),
            prop::option::of(trigger),
            prop::option::of(prop::collection::vec((lane(), scale), 0..4)),
            prop::option::of((input.clone(), input)),
            prop::option::of(([number.clone(), number.clone()], prop::option::of(number))),
            any::<[bool; 4]>(),
        );
        what.prop_map(|(ending, span, columns, channels, trigger, scales, math, cursors, [a, b, c, d])| {
            Viewport {
                window: ending.map_or(Window::Latest, |at| Window::Ending { at }),
                span,
                columns,
                lanes: if a { LaneMask::ALL } else { LaneMask::ALL.only(channels).part_toggled(Part::Phase) },
                interpolation: if b { Interpolation::Sinc } else { Interpolation::Linear },
                trigger,
                measure: scales.map(|scales| Arc::new(scales.into_iter().collect())),
                math: math.map(|(a, b)| MathSettings { operation: MathOperation::Multiply, a, b }),
                cursors,
                is_exact: c,
                spectrum: d.then(|| SpectrumSettings {
                    waterfall: a.then_some(3),
                    band: b.then_some((-0.25, 0.1)),
                    ..SpectrumSettings::default()
                }),
                persistence: b.then(|| Arc::new([(LaneId::real(1), (-5.5, 7.25))].into_iter().collect())),
                xy: c.then_some(XySettings {
                    x: LaneId::real(0),
                    y: LaneId::real(1),
                    x_range: (0.1, 0.7),
                    y_range: (-1.0, 1.0),
                    size: (300, 200),
                    every: d.then_some(2.5),
                }),
                overview: d.then_some(700),
            }
        })
    }

    proptest! {
        #[test]
        fn a_viewport_is_the_same_behind_the_wire(viewport in viewport()) {
            let asked = Asked::Viewport(Box::new(FarViewport::new(7, &viewport)));
            let text = serde_json::to_string(&asked).unwrap();
            let Asked::Viewport(again) = serde_json::from_str(&text).unwrap() else { panic!("{text}") };
            prop_assert_eq!(again.viewport(), viewport);
        }
    }

    #[test]
    fn what_is_left_out_is_as_usual_and_what_is_too_much_is_cut() {
        let parse = |text: &str| match serde_json::from_str(text).unwrap() {
            Asked::Viewport(it) => it.viewport(),
            other => panic!("{other:?}"),
        };
        assert_eq!(parse(r#"{"viewport":{"number":1}}"#), Viewport::latest(1000));
        let much = parse(
            r#"{"viewport":{"number":1,"columns":9999999,"span":-1,"overview":99999,"channels":[1,1,999],
            "spectrum":{"size":1000000,"averages":0},"xy":{"x":"1","y":"2","x_range":[0,1],"y_range":[0,1],"size":[0,99999]},
            "trigger":{"mode":"auto","position":7,"holdoff_s":-3}}}"#,
        );
        assert_eq!((much.columns, much.span, much.overview), (COLUMNS_MAX, None, Some(OVERVIEW_MAX)));
        assert_eq!(much.lanes, LaneMask::ALL.only([1]));
        assert_eq!(much.spectrum.map(|it| (it.size, it.averages)), Some((TRANSFORM_MAX, 1)));
        assert_eq!(much.xy.map(|it| it.size), Some((1, CELLS_MAX)));
        assert_eq!(much.trigger.map(|it| (it.position, it.holdoff_s)), Some((1.0, 0.0)));
        assert!(serde_json::from_str::<Asked>(r#"{"viewport":{"xy":{"x":"nonsense"}}}"#).is_err());
        assert!(serde_json::from_str::<Asked>(r#"{"viewport":{"span":1e999}}"#).is_err());
    }
}
