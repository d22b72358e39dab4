//! Which stretch of time is shown, and where time counts from.

use super::Controls;
use crate::picture::Picture;
use crate::span;

impl Controls {
    /// Moves by a part of the screen, to the right where positive; holds the picture.
    pub(crate) fn pan(&mut self, picture: &Picture, part: f64) {
        self.hold(picture, self.right_index(picture) + part * self.span_samples(picture));
    }

    /// Goes to a 1-2-5 step next to the span, keeping what lies under `at` (0.0 left edge, 1.0 right edge) in place
    /// where the picture is held.
    pub(crate) fn zoom(&mut self, picture: &Picture, is_shorter: bool, at: f64) {
        let (span, samples) = (self.span.unwrap_or(picture.span()), self.span_samples(picture));
        let next = match is_shorter {
            true => span::shorter(span, rate_hz(picture)),
            false => span::longer(span),
        };
        self.span = Some(next);
        if self.held_at.is_some() {
            let fixed = self.right_index(picture) - (1.0 - at) * samples;
            self.hold(picture, fixed + (1.0 - at) * self.span_samples(picture));
        }
    }

    /// The value of the time axis at the left edge: time counts from the trigger, else from the newest sample, and for a
    /// held picture from where it counted when it was held.
    pub(crate) fn axis_start(&self, picture: &Picture) -> f64 {
        (picture.left_index - self.reference(picture)) / picture.rate_or_one()
    }

    pub(super) fn reference(&self, picture: &Picture) -> f64 {
        match (self.held_at, picture.trigger.and_then(|trigger| trigger.at)) {
            (Some(_), _) => self.reference,
            (None, Some(at)) => at,
            (None, None) => picture.right_index(),
        }
    }

    /// The right edge as it is set: the picture may be older than the setting.
    pub(super) fn right_index(&self, picture: &Picture) -> f64 {
        self.held_at.unwrap_or(picture.right_index())
    }

    pub(super) fn span_samples(&self, picture: &Picture) -> f64 {
        self.span.map_or(picture.span_samples, |span| span * picture.rate_or_one())
    }

    /// Holds the picture at a trigger, which stands where triggers do.
    pub(crate) fn hold_trigger(&mut self, picture: &Picture, at: f64) {
        let post = (1.0 - self.trigger.position) * self.span_samples(picture);
        self.held_at = Some(at + post);
        self.reference = at;
        self.held_trigger = Some(at);
    }

    /// The trigger that the picture is held at.
    pub(crate) fn held_trigger(&self) -> Option<f64> {
        self.held_trigger.filter(|_| self.held_at.is_some())
    }

    /// Holds the right edge at a sample index, within a screen of what there is.
    pub(super) fn hold(&mut self, picture: &Picture, right_index: f64) {
        if self.held_at.is_none() {
            self.reference = self.reference(picture);
            self.held_trigger = None;
        }
        let (oldest, next) = (picture.oldest_index as f64, picture.next_index as f64);
        let air = self.span_samples(picture) * 0.5;
        self.held_at = Some(right_index.clamp(oldest + air.min(next - oldest), next + air));
    }
}

fn rate_hz(picture: &Picture) -> f64 {
    picture.stream.map_or(0.0, |stream| stream.rate_hz)
}
