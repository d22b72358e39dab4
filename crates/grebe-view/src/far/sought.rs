//! What a far viewer searches for.

use grebe_scope::Scale;
use serde::{Deserialize, Serialize};

use crate::data::finding::Sought;
use crate::data::lane::CHANNELS_MAX;

/// What a viewer has looked for, by a number that what is found has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct FarSought {
    pub(crate) number: u64,
    pub(super) words: String,
    /// Of each channel units per count, and units at a count of zero.
    #[serde(default)]
    scales: Vec<(f64, f64)>,
}

impl FarSought {
    pub(super) fn new(number: u64, sought: Sought) -> FarSought {
        // What is no number cannot be said.
        let known = |value: f64, otherwise: f64| if value.is_finite() { value } else { otherwise };
        let scales = sought.scales.iter().map(|scale| (known(scale.factor, 1.0), known(scale.offset, 0.0)));
        FarSought { number, words: sought.words, scales: scales.collect() }
    }

    /// Within what one viewer may cost.
    pub(super) fn sought(self) -> Sought {
        let scales = self.scales.into_iter().take(CHANNELS_MAX);
        Sought {
            words: self.words.chars().take(WORDS_MAX).collect(),
            scales: scales.map(|(factor, offset)| Scale { factor, offset }).collect(),
        }
    }
}

const WORDS_MAX: usize = 1000;
