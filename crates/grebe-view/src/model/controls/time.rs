//! The visible range of time, and the zero of its axis.

use crate::data::picture::Picture;
use crate::data::viewport::{Window, fitted_span, longer_span, shorter_span};

/// Settings of the time axis.
#[derive(Debug, Default)]
pub(crate) struct TimeAxis {
    /// In units of the axis; `None` leaves the choice to the scope.
    pub(crate) span: Option<f64>,
    /// The right edge, as a sample index, while the picture is held.
    held_at: Option<f64>,
    /// The sample index of time zero when the picture was held.
    reference: f64,
    /// The trigger at which the picture is held.
    held_trigger: Option<f64>,
    /// The common edge with other scopes on the same axis, while the picture is not held.
    common: Option<CommonEdge>,
    /// Number of changes by a person.
    times_set: u64,
}

/// The right edge that several scopes share, in the sample indices of one of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CommonEdge {
    /// The right edge.
    pub(crate) at: f64,
    /// The sample of time zero; `None`: the right edge of the visible picture.
    pub(crate) reference: Option<f64>,
}

impl TimeAxis {
    pub(crate) fn is_held(&self) -> bool {
        self.held_at.is_some()
    }

    pub(crate) fn release(&mut self) {
        self.held_at = None;
        self.times_set += 1;
    }

    /// Shows the range of other scopes with their span; holds it if they do.
    pub(crate) fn follow(&mut self, edge: CommonEdge, span: f64, is_held: bool) {
        self.span = Some(span);
        self.held_at = is_held.then_some(edge.at);
        self.held_trigger = None;
        if is_held {
            self.reference = edge.reference.unwrap_or(edge.at);
        }
        self.common = (!is_held).then_some(edge);
    }

    /// Sets the common edge; `None`: the scope stands alone.
    pub(crate) fn set_common(&mut self, edge: Option<CommonEdge>) {
        self.common = edge;
    }

    /// Number of changes by a person.
    pub(crate) fn times_set(&self) -> u64 {
        self.times_set
    }

    pub(crate) fn window(&self) -> Window {
        let common = self.common.map(|edge| edge.at);
        self.held_at.or(common).map_or(Window::Latest, |at| Window::Ending { at })
    }

    /// The sample index of time zero, in a picture that does not follow its own stream.
    pub(super) fn held_reference(&self) -> Option<f64> {
        match self.held_at {
            Some(_) => Some(self.reference),
            None => self.common.map(|edge| edge.reference.unwrap_or(edge.at)),
        }
    }

    /// Moves by a part of the screen, to the right if positive; holds the picture.
    pub(crate) fn pan(&mut self, picture: &Picture, part: f64) {
        self.hold(picture, self.right_index(picture) + part * self.span_samples(picture));
    }

    /// Takes the next 1-2-5 step of the span. In a held picture, the sample at `at` (0.0 left edge, 1.0 right edge)
    /// stays in place.
    pub(crate) fn zoom(&mut self, picture: &Picture, is_shorter: bool, at: f64) {
        self.times_set += 1;
        let samples = self.span_samples(picture);
        let rate_hz = picture.stream.map_or(0.0, |stream| stream.rate_hz);
        self.span = Some(match is_shorter {
            true => shorter_span(self.span_or(picture), rate_hz),
            false => longer_span(self.span_or(picture), rate_hz),
        });
        if self.is_held() {
            let fixed = self.right_index(picture) - (1.0 - at) * samples;
            self.hold(picture, fixed + (1.0 - at) * self.span_samples(picture));
        }
    }

    /// Sets a span that holds the whole history, and shows it. If the stream is followed, it still is.
    pub(crate) fn fit(&mut self, picture: &Picture, is_followed: bool) {
        let held = (picture.next_index - picture.oldest_index) as f64;
        if held > 0.0 {
            self.set_span(picture, held);
            match is_followed && !self.is_held() {
                true => self.release(),
                false => self.hold(picture, picture.next_index as f64),
            }
        }
    }

    /// Shows a part of the screen (0.0 left edge, 1.0 right edge) in the middle, as large as possible; holds the picture.
    pub(crate) fn show_part(&mut self, picture: &Picture, [a, b]: [f64; 2]) {
        let (samples, right) = (self.span_samples(picture), self.right_index(picture));
        let middle = right - (1.0 - (a + b) / 2.0) * samples;
        self.hold(picture, right);
        self.set_span(picture, (a - b).abs() * samples);
        self.show_at(picture, middle);
    }

    /// Shows a sample index in the middle; holds the picture.
    pub(crate) fn show_at(&mut self, picture: &Picture, index: f64) {
        self.hold(picture, index + self.span_samples(picture) / 2.0);
    }

    /// Shows a range of any length up to a sample index, as touch gestures need it; holds the picture.
    pub(crate) fn show_stretch(&mut self, picture: &Picture, right_index: f64, samples: f64) {
        let now = self.span_samples(picture);
        // A range that only moves keeps its span, digit by digit.
        if (samples - now).abs() > now * 1e-3 {
            self.set_span(picture, samples);
        }
        self.hold(picture, right_index);
    }

    fn set_span(&mut self, picture: &Picture, samples: f64) {
        self.times_set += 1;
        let rate_hz = picture.stream.map_or(0.0, |stream| stream.rate_hz);
        self.span = Some(fitted_span(samples / picture.rate_or_one(), rate_hz));
    }

    /// The value of the time axis at the left edge. Time counts from the trigger, else from the newest sample; in a
    /// held picture it counts from the same sample as before.
    pub(crate) fn start(&self, picture: &Picture) -> f64 {
        (picture.left_index - self.reference(picture)) / picture.rate_or_one()
    }

    /// The fixed span, or the scope's own.
    pub(crate) fn span_or(&self, picture: &Picture) -> f64 {
        self.span.unwrap_or(picture.span())
    }

    /// Holds the picture at a trigger, at `position` of the screen (0.0 left edge, 1.0 right edge).
    pub(crate) fn hold_trigger(&mut self, picture: &Picture, at: f64, position: f64) {
        self.times_set += 1;
        self.held_at = Some(at + (1.0 - position) * self.span_samples(picture));
        self.reference = at;
        self.held_trigger = Some(at);
    }

    /// The trigger at which the picture is held.
    pub(crate) fn held_trigger(&self) -> Option<f64> {
        self.held_trigger.filter(|_| self.is_held())
    }

    /// The sample index of the right edge, if the picture is held.
    pub(crate) fn held_at(&self) -> Option<f64> {
        self.held_at
    }

    /// Holds the picture there, without limits.
    pub(crate) fn hold_at(&mut self, right_index: f64) {
        self.times_set += 1;
        (self.held_at, self.reference, self.held_trigger) = (Some(right_index), right_index, None);
    }

    /// Holds the right edge at a sample index, within a screen of the history.
    pub(super) fn hold(&mut self, picture: &Picture, right_index: f64) {
        if !self.is_held() {
            self.reference = self.reference(picture);
            self.held_trigger = None;
        }
        self.times_set += 1;
        let (oldest, next) = (picture.oldest_index as f64, picture.next_index as f64);
        let margin = self.span_samples(picture) * 0.5;
        self.held_at = Some(right_index.clamp(oldest + margin.min(next - oldest), next + margin));
    }

    /// The sample index of time zero.
    pub(crate) fn reference(&self, picture: &Picture) -> f64 {
        match (self.held_at, self.common) {
            (Some(_), _) => self.reference,
            (None, Some(edge)) => edge.reference.unwrap_or(picture.right_index()),
            (None, None) => picture.trigger.and_then(|trigger| trigger.at).unwrap_or(picture.right_index()),
        }
    }

    /// The right edge of the settings: the picture may be older.
    fn right_index(&self, picture: &Picture) -> f64 {
        self.held_at.unwrap_or(picture.right_index())
    }

    fn span_samples(&self, picture: &Picture) -> f64 {
        self.span.map_or(picture.span_samples, |span| span * picture.rate_or_one())
    }
}
