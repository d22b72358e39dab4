//! The X-Y plot: the same in all front ends.

use grebe_scope::Engineering;

use crate::data::lane::{LaneId, Part};
use crate::data::picture::Picture;
use crate::data::viewport::XySettings;
use crate::model::controls::Controls;
use crate::model::vertical::ValueRange;
use crate::model::view_model::ViewModel;

/// An axis of the plot, in the unit of its lane.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct XyAxis {
    pub(crate) lane: LaneId,
    pub(crate) range: ValueRange,
    pub(crate) unit: String,
    pub(crate) label: String,
}

impl Controls {
    /// The lanes on the horizontal and the vertical axis.
    pub(crate) fn xy_lanes(&self, picture: &Picture) -> [LaneId; 2] {
        let selected = self.selected(picture).channel;
        let usual = match picture.stream {
            Some(stream) if stream.format.is_complex() => {
                [Part::I, Part::Q].map(|part| LaneId { channel: selected, part })
            }
            _ => [LaneId::real(0), LaneId::real(1)],
        };
        let is_there = |lane: &LaneId| {
            picture.stream.is_none_or(|stream| {
                let is_part = Part::COMPLEX.contains(&lane.part);
                lane.channel < stream.channels && is_part == stream.format.is_complex()
            })
        };
        [0, 1].map(|which| self.xy[which].filter(is_there).unwrap_or(usual[which]))
    }
}

impl ViewModel {
    /// The request for the data side.
    pub(super) fn xy_settings(&self) -> Option<XySettings> {
        let size = self.xy_size.filter(|_| self.controls.show.xy)?;
        let rate_hz = self.seen.picture.stream?.rate_hz;
        let [x, y] = self.xy_axes(size);
        let counts = |axis: &XyAxis| {
            let setup = self.setup(axis.lane);
            let count = |value: f64| (value - setup.offset) / setup.scale;
            let (a, b) = (count(axis.range.bottom), count(axis.range.top));
            (a.min(b), a.max(b))
        };
        let every = self.controls.symbol_rate_hz.map(|symbol_hz| rate_hz / symbol_hz);
        Some(XySettings {
            x: x.lane,
            y: y.lane,
            x_range: counts(&x),
            y_range: counts(&y),
            size,
            every: every.filter(|every| *every > 1.0),
        })
    }

    /// Both axes of a plot of `width` x `height` pixels. If both have the same unit, they have the same scale, so
    /// that circles are round.
    pub(crate) fn xy_axes(&self, (width, height): (usize, usize)) -> [XyAxis; 2] {
        let of = |lane: LaneId| {
            let setup = self.setup(lane);
            let range = self.controls.lanes.range(lane).unwrap_or(ValueRange { bottom: -1.0, top: 1.0 });
            XyAxis { lane, range, label: setup.label(lane), unit: setup.unit }
        };
        let [mut x, mut y] = self.controls.xy_lanes(&self.seen.picture).map(of);
        if x.unit == y.unit {
            let reach = |range: ValueRange| range.bottom.abs().max(range.top.abs());
            let half = reach(x.range).max(reach(y.range));
            let (width, height) = (width.max(1) as f64, height.max(1) as f64);
            let least = width.min(height);
            let [right, up] = [half * width / least, half * height / least];
            x.range = ValueRange { bottom: -right, top: right };
            y.range = ValueRange { bottom: -up, top: up };
        }
        [x, y]
    }

    /// Description of the plot.
    pub(crate) fn xy_words(&self) -> String {
        let [x, y] = self.controls.xy_lanes(&self.seen.picture).map(|lane| self.setup(lane).label(lane));
        let symbols =
            self.controls.symbol_rate_hz.map(|hz| format!(", {}", Engineering::new(hz, "symbols/s")));
        format!("{y} over {x}{}", symbols.unwrap_or_default())
    }
}
