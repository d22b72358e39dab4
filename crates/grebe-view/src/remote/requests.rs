//! Messages from a remote viewer to its server: JSON, an object with one key.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::data::finding::Sought;
use crate::data::trigger::{TriggerCoupling, TriggerSettings};
use crate::data::viewport::Viewport;
use crate::remote::control::Wish;

/// A message of a viewer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    Hello(Hello),
    Viewport(Box<RemoteViewport>),
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
    /// Starts a search of the whole history; `None` cancels it.
    Find(Option<Search>),
}

/// A search, with the number that its results carry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Search {
    pub(crate) number: u64,
    #[serde(flatten)]
    pub(crate) sought: Sought,
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
    /// The server's source to show, counted from 1.
    #[serde(default = "first_source")]
    pub(crate) source: usize,
    /// Present when the viewer is a page, which receives ready-made texts and widgets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) page: Option<PageHello>,
}

/// A page's own part of its first message.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PageHello {
    /// Settings from its last session, or from its link.
    pub(crate) view: String,
    /// Whether the page uses a light theme.
    pub(crate) is_light: bool,
}

pub(crate) fn first_source() -> usize {
    1
}

/// A viewport with its number. Missing keys default to those of [`Viewport::latest`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RemoteViewport {
    /// Counts from 1. Each picture carries the number of the viewport that it answers.
    pub(crate) number: u64,
    #[serde(flatten)]
    viewport: Viewport,
}

impl RemoteViewport {
    pub(crate) fn new(number: u64, viewport: &Viewport) -> RemoteViewport {
        RemoteViewport { number, viewport: viewport.clone() }
    }

    /// The requested viewport, limited to the cost of one viewer.
    pub(crate) fn viewport(&self) -> Viewport {
        bounded(self.viewport.clone())
    }
}

/// Limits a viewport to the cost of one viewer. The memory for trigger records is limited later, when the lanes are known.
pub(crate) fn bounded(mut viewport: Viewport) -> Viewport {
    viewport.span = viewport.span.filter(|span| *span > 0.0).map(|span| span.clamp(SPAN_MIN, SPAN_MAX));
    viewport.trigger = viewport.trigger.map(bounded_trigger);
    viewport.columns = viewport.columns.clamp(1, COLUMNS_MAX);
    viewport.overview = viewport.overview.map(|columns| columns.min(OVERVIEW_MAX));
    if let Some(spectrum) = &mut viewport.spectrum {
        spectrum.size = spectrum.size.min(TRANSFORM_MAX);
        spectrum.averages = spectrum.averages.clamp(1, AVERAGES_MAX);
    }
    if let Some(xy) = &mut viewport.xy {
        xy.size = (xy.size.0.clamp(1, CELLS_MAX), xy.size.1.clamp(1, CELLS_MAX));
    }
    if let Some(query) = &mut viewport.annotations {
        query.words = query.words.chars().take(WORDS_MAX).collect();
    }
    if let Some(ranges) = &mut viewport.persistence {
        let some = ranges.iter().take(DENSITIES_MAX).map(|(lane, range)| (lane, *range)).collect();
        *ranges = Arc::new(some);
    }
    viewport
}

/// Limits the settings of a trigger to useful values.
pub(crate) fn bounded_trigger(trigger: TriggerSettings) -> TriggerSettings {
    let time = |time: f64| time.clamp(0.0, SPAN_MAX);
    TriggerSettings {
        hysteresis: trigger.hysteresis.filter(|it| *it >= 0.0),
        position: trigger.position.clamp(0.0, 1.0),
        coupling: match trigger.coupling {
            TriggerCoupling::Dc => TriggerCoupling::Dc,
            filtered => filtered.with_corner_hz(filtered.set_corner_hz().filter(|hz| *hz > 0.0)),
        },
        holdoff_s: time(trigger.holdoff_s),
        pulse_min_s: trigger.pulse_min_s.map(time),
        pulse_max_s: trigger.pulse_max_s.map(time),
        dropout_s: trigger.dropout_s.map(time),
        ..trigger
    }
}

fn pictures_per_s_max() -> f64 {
    PICTURES_PER_S_MAX
}

/// Limits per viewer: they bound the cost on the thread that holds the samples.
pub(crate) const COLUMNS_MAX: usize = 4096;
pub(crate) const OVERVIEW_MAX: usize = 2048;
pub(crate) const CELLS_MAX: usize = 1024;
pub(crate) const PICTURES_PER_S_MAX: f64 = 60.0;
const DENSITIES_MAX: usize = 8;
const WORDS_MAX: usize = 256;
const TRANSFORM_MAX: usize = 1 << 16;
const AVERAGES_MAX: u32 = 1000;
const SPAN_MIN: f64 = 1e-12;
const SPAN_MAX: f64 = 1e13;

#[cfg(test)]
pub(crate) mod tests {
    use grebe_scope::{Band, Interpolation, Scale, Slope};
    use proptest::prelude::*;

    use super::*;
    use crate::data::annotations::AnnotationQuery;
    use crate::data::lane::{LaneId, LaneMask, Part};
    use crate::data::math::{MathInput, MathOperation, MathSettings};
    use crate::data::trigger::{TriggerKind, TriggerMode};
    use crate::data::viewport::Region;
    use crate::data::viewport::{CountRange, CursorTimes, Detector, SpectrumSettings, Window, XySettings};

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
                against: None,
                window: ending.map_or(Window::Latest, |at| Window::Ending { at }),
                span,
                columns,
                lanes: if a { LaneMask::ALL } else { LaneMask::ALL.only(channels).part_toggled(Part::Phase) },
                interpolation: if b { Interpolation::Sinc } else { Interpolation::Linear },
                trigger,
                measure: scales.map(|scales| Arc::new(scales.into_iter().collect())),
                math: math.map(|(a, b)| MathSettings { operation: MathOperation::Multiply, a, b }),
                cursors: cursors.map(|(times, from)| CursorTimes { times, from }),
                is_exact: c,
                spectrum: d.then(|| SpectrumSettings {
                    waterfall: a.then_some(3),
                    detector: Detector::ALL[usize::from(c)],
                    band: b.then_some((-0.25, 0.1)),
                    ..SpectrumSettings::default()
                }),
                persistence: b.then(|| {
                    Arc::new([(LaneId::real(1), CountRange { low: -5.5, high: 7.25 })].into_iter().collect())
                }),
                xy: c.then_some(XySettings {
                    x: LaneId::real(0),
                    y: LaneId::real(1),
                    x_range: (0.1, 0.7),
                    y_range: (-1.0, 1.0),
                    size: (300, 200),
                    every: d.then_some(2.5),
                }),
                overview: d.then_some(700),
                region: c.then_some(Region {
                    channel: 1,
                    samples: 3..99,
                    band: Band { low: -0.25, high: 0.1 },
                }),
                annotations: a.then(|| AnnotationQuery { words: "burst".into(), around: 7 }),
            }
        })
    }

    proptest! {
        #[test]
        fn a_viewport_is_the_same_behind_the_wire(viewport in viewport()) {
            let asked = Request::Viewport(Box::new(RemoteViewport::new(7, &viewport)));
            let text = serde_json::to_string(&asked).unwrap();
            let Request::Viewport(again) = serde_json::from_str(&text).unwrap() else { panic!("{text}") };
            prop_assert_eq!(again.viewport(), viewport);
        }
    }

    #[test]
    fn what_is_left_out_is_as_usual_and_what_is_too_much_is_cut() {
        let parse = |text: &str| match serde_json::from_str(text).unwrap() {
            Request::Viewport(it) => it.viewport(),
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
        assert!(serde_json::from_str::<Request>(r#"{"viewport":{"xy":{"x":"nonsense"}}}"#).is_err());
        assert!(serde_json::from_str::<Request>(r#"{"viewport":{"span":1e999}}"#).is_err());
    }
}
