//! Query of a stream's name, `key=value&flag`, read and written in the same way for every scheme.
//!
//! ```text
//!  split -> take each key that the scheme knows -> end: any other key is an error that lists the known ones
//! ```

use std::fmt::{self, Display, Write as _};
use std::str::FromStr;

use grebe_flow::{RateHz, nearest};
use grebe_frame::{MAX_CHANNELS, SampleFormat};

/// Words of a choice with their meanings, for reading and writing.
pub type Words<T> = [(&'static str, T)];

/// Remaining pairs of a query.
#[derive(Debug)]
pub struct Query<'a> {
    pairs: Vec<(&'a str, &'a str)>,
    known: Vec<&'static str>,
}

impl<'a> Query<'a> {
    /// Splits a name at its `?`.
    ///
    /// # Errors
    /// A duplicate key.
    pub fn split(name: &'a str) -> Result<(&'a str, Self), String> {
        let (name, query) = name.split_once('?').unwrap_or((name, ""));
        Ok((name, Self::new(query)?))
    }

    /// Parses the pairs after a `?`.
    ///
    /// # Errors
    /// A duplicate key.
    pub fn new(query: &'a str) -> Result<Self, String> {
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if pairs.iter().any(|(other, _)| *other == key) {
                return Err(format!("has '{key}' twice"));
            }
            pairs.push((key, value));
        }
        Ok(Self { pairs, known: Vec::new() })
    }

    /// Adds a key to the suggestions for mistyped ones. It belongs to the same name without `format=`.
    pub fn mention(&mut self, key: &'static str) {
        if !self.pairs.iter().any(|(other, _)| *other == "format") {
            self.known.push(key);
        }
    }

    /// Takes the value of a key as written.
    pub fn take(&mut self, key: &'static str) -> Option<&'a str> {
        self.known.push(key);
        let at = self.pairs.iter().position(|(other, _)| *other == key)?;
        Some(self.pairs.remove(at).1)
    }

    /// Takes the value of a key through `read`; `must` describes valid values.
    ///
    /// # Errors
    /// `read` returns `None`.
    pub fn value<T>(
        &mut self,
        key: &'static str,
        must: impl Display,
        read: impl FnOnce(&'a str) -> Option<T>,
    ) -> Result<Option<T>, String> {
        let Some(value) = self.take(key) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| wrong(key, value, must))
    }

    /// Takes a value that reports its own errors.
    ///
    /// # Errors
    /// The error of its type.
    pub fn parsed<T: FromStr<Err: Display>>(&mut self, key: &'static str) -> Result<Option<T>, String> {
        let Some(value) = self.take(key) else { return Ok(None) };
        value.parse().map(Some).map_err(|error| format!("has a wrong {key}: {error}"))
    }

    /// Takes a whole number within a range.
    ///
    /// # Errors
    /// Not a whole number, or out of range.
    pub fn whole<T>(
        &mut self,
        key: &'static str,
        range: std::ops::RangeInclusive<T>,
    ) -> Result<Option<T>, String>
    where
        T: FromStr + PartialOrd + Display,
    {
        let must = format!("{} to {}", range.start(), range.end());
        self.value(key, must, |value| value.parse().ok().filter(|number| range.contains(number)))
    }

    /// Takes a positive number of samples per second.
    ///
    /// # Errors
    /// Not a positive number.
    pub fn rate_hz(&mut self) -> Result<Option<f64>, String> {
        self.value("rate", "samples per second, as in 2.4M", positive)
    }

    /// Takes a frequency in hertz, 0 or above.
    ///
    /// # Errors
    /// Not such a number.
    pub fn hertz(&mut self, key: &'static str) -> Result<Option<f64>, String> {
        self.value(key, "hertz, as in 433.92M", |value| match value.parse() {
            Ok(RateHz(hz)) => Some(hz),
            Err(_) => finite(value).filter(|&hz| hz == 0.0).map(|_| 0.0),
        })
    }

    /// Takes the number of channels.
    ///
    /// # Errors
    /// 0, or more than a frame holds.
    pub fn channels(&mut self) -> Result<Option<usize>, String> {
        self.whole("channels", 1..=MAX_CHANNELS as usize)
    }

    /// Takes a sample format by name.
    ///
    /// # Errors
    /// Unknown format.
    pub fn format(&mut self, key: &'static str) -> Result<Option<SampleFormat>, String> {
        let all = SampleFormat::ALL.map(SampleFormat::name).join(", ");
        self.value(key, format_args!("one of {all}"), |value| value.parse().ok())
    }

    /// Takes a text that is not empty.
    ///
    /// # Errors
    /// Empty text.
    pub fn text(&mut self, key: &'static str, must: &str) -> Result<Option<String>, String> {
        self.value(key, must, |value| Some(value.to_owned()).filter(|text| !text.is_empty()))
    }

    /// Takes one of several words.
    ///
    /// # Errors
    /// Another word.
    pub fn choice<T: Copy>(&mut self, key: &'static str, words: &Words<T>) -> Result<Option<T>, String> {
        let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let must = match all.split_last() {
            Some((last, [])) => (*last).to_owned(),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
            None => String::new(),
        };
        let find = |value: &str| words.iter().find(|(word, _)| *word == value).map(|(_, meaning)| *meaning);
        self.value(key, must, find)
    }

    /// Takes `yes` or `no`.
    ///
    /// # Errors
    /// Another word.
    pub fn yes_or_no(&mut self, key: &'static str) -> Result<Option<bool>, String> {
        self.choice(key, &[("yes", true), ("no", false)])
    }

    /// Takes a key without a value, and returns whether it is present.
    ///
    /// # Errors
    /// It has a value.
    pub fn flag(&mut self, key: &'static str) -> Result<bool, String> {
        match self.take(key) {
            Some("") => Ok(true),
            Some(value) => Err(format!("has {key}={value}: {key} takes no value")),
            None => Ok(false),
        }
    }

    /// Takes all `PREFIX.NAME=value`; errors list `known`.
    pub fn named(&mut self, known: &'static str, prefix: &str) -> Vec<(&'a str, &'a str)> {
        self.known.push(known);
        let name = |key: &'a str| key.strip_prefix(prefix)?.strip_prefix('.').filter(|name| !name.is_empty());
        let (named, rest) = self.pairs.iter().partition(|(key, _)| name(key).is_some());
        self.pairs = rest;
        named_of(named, name)
    }

    /// Refuses keys of another carrier or scheme, and names it.
    ///
    /// # Errors
    /// One of them is present.
    pub fn refuse(&self, keys: &[&str], of: &str) -> Result<(), String> {
        match self.pairs.iter().find(|(key, _)| keys.contains(key)) {
            Some((key, _)) => Err(format!("has {key}, which is for {of}")),
            None => Ok(()),
        }
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// An unknown key, with the nearest known one and the full list.
    pub fn end(self) -> Result<(), String> {
        let Some((key, _)) = self.pairs.first() else { return Ok(()) };
        let meant = nearest(key, self.known.iter().copied());
        let meant = meant.map_or_else(String::new, |meant| format!(" - did you mean '{meant}'?"));
        Err(format!("has an unknown '{key}'{meant}; known: {}", self.known.join(", ")))
    }
}

fn named_of<'a>(
    named: Vec<(&'a str, &'a str)>,
    name: impl Fn(&'a str) -> Option<&'a str>,
) -> Vec<(&'a str, &'a str)> {
    named.into_iter().filter_map(|(key, value)| Some((name(key)?, value))).collect()
}

/// Message about an invalid value, common to all schemes.
pub fn wrong(key: &str, value: &str, must: impl Display) -> String {
    format!("has {key}={value}: give {must}")
}

/// Parses a finite number.
pub fn finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Parses positive hertz.
pub fn positive(text: &str) -> Option<f64> {
    text.parse().ok().map(|RateHz(hz)| hz).filter(|hz| *hz > 0.0 && hz.is_finite())
}

/// Writes a query: `?a=1&b`, or nothing.
#[derive(Debug, Default)]
pub struct Pairs(String);

impl Pairs {
    /// Adds `key=value` if there is a value.
    pub fn add(mut self, key: &str, value: Option<impl Display>) -> Self {
        if let Some(value) = value {
            self.key(key);
            let _ = write!(self.0, "={value}");
        }
        self
    }

    /// Adds `PREFIX.NAME=value` for each item.
    pub fn named(self, prefix: &str, all: &[(String, impl Display)]) -> Self {
        all.iter().fold(self, |pairs, (name, value)| pairs.add(&format!("{prefix}.{name}"), Some(value)))
    }

    /// Adds a key without a value.
    pub fn flag(mut self, key: &str, is_there: bool) -> Self {
        if is_there {
            self.key(key);
        }
        self
    }

    /// Adds the word of a choice, unless it is the default.
    pub fn choice<T: Copy + PartialEq>(
        self,
        key: &str,
        words: &Words<T>,
        chosen: T,
        otherwise: Option<T>,
    ) -> Self {
        let word = words.iter().find(|(_, meaning)| *meaning == chosen && otherwise != Some(chosen));
        self.add(key, word.map(|(word, _)| word))
    }

    fn key(&mut self, key: &str) {
        self.0.push(if self.0.is_empty() { '?' } else { '&' });
        self.0.push_str(key);
    }
}

impl Display for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_is_read_once_and_the_others_are_unknown() {
        let (name, mut query) =
            Query::split("x?rate=2.4M&channels=2&listen&gain.LNA=3&gain.=1&rat=5").unwrap();
        assert_eq!((name, query.rate_hz(), query.channels()), ("x", Ok(Some(2.4e6)), Ok(Some(2))));
        assert_eq!((query.flag("listen"), query.flag("reconnect")), (Ok(true), Ok(false)));
        assert_eq!(query.named("gain.NAME", "gain"), [("LNA", "3")]);
        assert_eq!(
            query.end().unwrap_err(),
            "has an unknown 'gain.'; known: rate, channels, listen, reconnect, gain.NAME"
        );
        let mut query = Query::new("chanels=5").unwrap();
        assert_eq!(query.channels(), Ok(None));
        assert_eq!(
            query.end().unwrap_err(),
            "has an unknown 'chanels' - did you mean 'channels'?; known: channels"
        );
        assert_eq!(Query::new("a=1&b&a=2").unwrap_err(), "has 'a' twice");
    }

    #[test]
    fn wrong_values_have_one_form_of_message() {
        let words = [("red", 1), ("green", 2), ("blue", 3)];
        let query = |text| Query::new(text).unwrap();
        assert_eq!(query("rate=0").rate_hz().unwrap_err(), "has rate=0: give samples per second, as in 2.4M");
        assert_eq!(query("channels=256").channels().unwrap_err(), "has channels=256: give 1 to 255");
        assert_eq!(query("c=pink").choice("c", &words).unwrap_err(), "has c=pink: give red, green or blue");
        assert_eq!(query("c=green").choice("c", &words), Ok(Some(2)));
        assert_eq!(query("f=yes").flag("f").unwrap_err(), "has f=yes: f takes no value");
        assert_eq!(
            query("baud=5").refuse(&["baud"], "serial:").unwrap_err(),
            "has baud, which is for serial:"
        );
        assert_eq!(query("name=").text("name", "a name").unwrap_err(), "has name=: give a name");
        assert_eq!((query("f=0").hertz("f"), query("f=-1").hertz("f").is_err()), (Ok(Some(0.0)), true));
    }

    #[test]
    fn pairs_are_written_in_their_order() {
        let words = [("red", 1), ("green", 2)];
        let pairs =
            Pairs::default().add("rate", Some(5)).add("x", None::<u8>).flag("listen", true).flag("no", false);
        assert_eq!(
            pairs.choice("c", &words, 2, Some(1)).choice("d", &words, 1, Some(1)).to_string(),
            "?rate=5&listen&c=green"
        );
        assert_eq!(Pairs::default().to_string(), "");
    }
}
