//! The receiver of the stream, if it can be tuned.

use grebe_scope::{Engineering, parse_quantity};
use serde::{Deserialize, Serialize};

/// Tunes the receiver of a stream.
pub struct ReceiverRemote {
    /// Its present tuning.
    pub tuned: Box<dyn Fn() -> Tuned + Send>,
    /// Tunes it without waiting. The stream follows, unless the receiver refuses. An error is one line for a person.
    pub tune: Box<dyn Fn(Tuned) -> Result<(), String> + Send>,
}

/// Tuning of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tuned {
    /// Centre frequency in hertz.
    pub frequency_hz: f64,
    /// Samples per second.
    pub rate_hz: f64,
    /// Gain in dB; `None`: automatic.
    #[serde(default)]
    pub gain_db: Option<f64>,
}

/// A parameter of the tuning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Tunable {
    Frequency,
    Rate,
    Gain,
}

impl Tunable {
    pub(crate) const ALL: [Self; 3] = [Self::Frequency, Self::Rate, Self::Gain];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Frequency => "frequency",
            Self::Rate => "rate",
            Self::Gain => "gain",
        }
    }

    /// The question, in words.
    pub(crate) fn question(self) -> &'static str {
        match self {
            Self::Frequency => "the receiver's frequency, as 433.92M; +25k and -25k move it",
            Self::Rate => "the receiver's samples a second, as 2.4M",
            Self::Gain => "the receiver's gain in dB, as 20; auto: its own; +3 and -3 change it",
        }
    }
}

impl Tuned {
    /// Whether a receiver could have this tuning.
    pub(crate) fn is_possible(&self) -> bool {
        let Tuned { frequency_hz, rate_hz, gain_db } = *self;
        let is_finite = frequency_hz.is_finite() && rate_hz.is_finite() && gain_db.is_none_or(f64::is_finite);
        is_finite && frequency_hz >= 0.0 && rate_hz > 0.0
    }

    /// One of them, as a person writes it.
    pub(crate) fn text(&self, what: Tunable) -> String {
        let hertz = |hz| Engineering::new(hz, "Hz").digits(9).to_string();
        match what {
            Tunable::Frequency => hertz(self.frequency_hz),
            Tunable::Rate => hertz(self.rate_hz),
            Tunable::Gain => {
                self.gain_db.map_or_else(|| "auto".to_owned(), |gain_db| format!("{gain_db} dB"))
            }
        }
    }

    /// Replaces one of them by a typed value.
    ///
    /// # Errors
    /// One line for a person.
    pub(crate) fn with(self, what: Tunable, text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (by, number) = match text.split_at_checked(1) {
            Some(("+", rest)) => (Some(1.0), rest),
            Some(("-", rest)) => (Some(-1.0), rest),
            _ => (None, text),
        };
        let from = |now: f64, number: f64| by.map_or(number, |sign| now + sign * number);
        let refused = || format!("{text} is no {}: {}", what.name(), what.question());
        match what {
            Tunable::Frequency => {
                let hz = parse_quantity(number, "Hz").map(|hz| from(self.frequency_hz, hz));
                let frequency_hz = hz.filter(|hz| *hz >= 0.0).ok_or_else(refused)?;
                Ok(Self { frequency_hz, ..self })
            }
            Tunable::Rate => {
                let rate_hz = parse_quantity(text, "Hz").filter(|hz| *hz > 0.0).ok_or_else(refused)?;
                Ok(Self { rate_hz, ..self })
            }
            Tunable::Gain if text == "auto" => Ok(Self { gain_db: None, ..self }),
            Tunable::Gain => {
                let db = number.strip_suffix("dB").unwrap_or(number).trim().parse().ok();
                let db = db.filter(|db: &f64| db.is_finite()).ok_or_else(refused)?;
                // An automatic gain is unknown, so a typed sign belongs to the number itself.
                let gain_db = self.gain_db.map_or_else(|| db * by.unwrap_or(1.0), |now| from(now, db));
                Ok(Self { gain_db: Some(gain_db), ..self })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_writes_is_what_the_receiver_is_tuned_to() {
        let now = Tuned { frequency_hz: 100e6, rate_hz: 2.4e6, gain_db: None };
        let frequency = |text| now.with(Tunable::Frequency, text).map(|tuned| tuned.frequency_hz);
        assert_eq!(frequency("433.92M"), Ok(433.92e6));
        assert_eq!(frequency(" 0.4 GHz "), Ok(0.4e9));
        assert_eq!((frequency("+25k"), frequency("-1M")), (Ok(100.025e6), Ok(99e6)));
        assert_eq!(now.with(Tunable::Rate, "1M").map(|tuned| tuned.rate_hz), Ok(1e6));
        let gain = |now: Tuned, text| now.with(Tunable::Gain, text).map(|tuned| tuned.gain_db);
        assert_eq!(
            (gain(now, "20"), gain(now, "-3 dB"), gain(now, "auto")),
            (Ok(Some(20.0)), Ok(Some(-3.0)), Ok(None))
        );
        let set = Tuned { gain_db: Some(20.0), ..now };
        assert_eq!(
            (gain(set, "+3"), gain(set, "-3 dB"), gain(set, "auto")),
            (Ok(Some(23.0)), Ok(Some(17.0)), Ok(None))
        );
        for what in Tunable::ALL {
            for bad in ["", "x", "+", "nan", "-200M"] {
                let refused = now.with(what, bad);
                assert!(refused.is_err_and(|why| why.contains(what.name())), "{what:?} {bad}");
            }
            let again = set.with(what, &set.text(what)).unwrap();
            assert_eq!(again, set, "{what:?}: what is shown is understood");
        }
    }
}
