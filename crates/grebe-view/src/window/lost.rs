//! What the person is told of a gap that the pointer is on.

use std::ops::Range;

use grebe_scope::Engineering;

use crate::face::Face;

impl Face {
    /// What is missing in a stretch of the picture (0.0 left edge, 1.0 right edge), and where it was lost.
    pub(crate) fn lost_words(&self, part: Range<f64>) -> String {
        let index = |part: f64| self.picture.left_index + part * self.picture.span_samples;
        let (from, to) = (index(part.start), index(part.end));
        let inside = self.picture.gaps.iter().filter(|gap| gap.start as f64 <= to && gap.end as f64 >= from);
        let mut places: Vec<&str> = Vec::new();
        let mut samples = 0;
        for gap in inside {
            samples += gap.end - gap.start;
            let place = self.places.of(gap).unwrap_or("somewhere");
            if !places.contains(&place) {
                places.push(place);
            }
        }
        match places.is_empty() {
            true => "lost".into(),
            false => format!("lost: {}, {}", places.join(", "), Engineering::new(samples as f64, "S")),
        }
    }
}
