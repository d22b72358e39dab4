//! Files of several arrays: which one has the samples, and which number is their rate.

use std::path::{Path, PathBuf};

use grebe_process::query::Query;

use crate::error::{Error, ProcessError};
use crate::name_facts::Hint;
use crate::path_query::split;
use crate::table::Heading;

/// An array of a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Listed {
    pub(crate) name: String,
    /// As its program writes it.
    pub(crate) shape: String,
    /// The value of a single number.
    pub(crate) number: Option<f64>,
}

/// The query after the '?' of a name.
pub(crate) struct ArrayQuery {
    pub(crate) path: PathBuf,
    rate_hz: Option<f64>,
    array: Option<String>,
}

/// The chosen array.
#[derive(Debug, PartialEq)]
pub(crate) struct Chosen {
    /// From 0.
    pub(crate) number: usize,
    /// 0: unknown.
    pub(crate) rate_hz: f64,
    pub(crate) notes: Vec<String>,
}

impl ArrayQuery {
    pub(crate) fn parse(written: &Path) -> Result<Self, Error> {
        let (path, query) = split(written);
        let read = || {
            let mut query = Query::new(query.unwrap_or_default())?;
            let array = query.take("array").map(str::to_owned);
            let rate_hz = query.rate_hz()?;
            query
                .end()
                .map(|()| Self { path, rate_hz, array })
                .map_err(|why| format!("{why}; the file says the rest"))
        };
        read().map_err(|reason: String| {
            ProcessError::Name { name: written.display().to_string(), reason }.into()
        })
    }

    /// The requested array, or the only one. The rate comes from the file name, or from a number with a name
    /// of a rate.
    pub(crate) fn choose(&self, written: &Path, arrays: &[Listed]) -> Result<Chosen, Error> {
        let list = |what: &str| {
            let all: Vec<String> = arrays
                .iter()
                .filter(|it| it.number.is_none())
                .map(|it| format!("{} {}", it.name, it.shape))
                .collect();
            // Their times, often beside them, are none of samples.
            let is_time = |it: &&Listed| Heading::of(&it.name).time().is_some();
            let several = || arrays.iter().filter(|it| it.number.is_none());
            let example = several().find(|it| !is_time(it)).or_else(|| several().next());
            let example = example.map_or("x", |it| &it.name);
            let hint = Hint::new(written).with(&format!("array={example}"));
            Error::Field {
                path: self.path.clone(),
                what: format!("{what} {}: name one, as in {hint}", all.join(", ")),
            }
        };
        let mut several = arrays.iter().enumerate().filter(|(_, it)| it.number.is_none());
        let number = match &self.array {
            Some(asked) => arrays
                .iter()
                .position(|it| it.name == *asked && it.number.is_none())
                .ok_or_else(|| list(&format!("has no array {asked}; it holds")))?,
            None => match (several.next(), several.next()) {
                (Some((only, _)), None) => only,
                (None, _) => return Err(Error::Empty { path: self.path.clone() }),
                _ => return Err(list("holds several arrays,")),
            },
        };
        let said = arrays.iter().find_map(|it| Some((&it.name, it.number.filter(|_| is_rate(&it.name))?)));
        let said = said.filter(|(_, rate_hz)| *rate_hz > 0.0 && rate_hz.is_finite());
        let mut notes = Vec::new();
        let rate_hz = match (self.rate_hz, said) {
            (Some(rate_hz), _) => rate_hz,
            (None, Some((name, rate_hz))) => {
                let other = Hint::new(written).with("rate=1M");
                notes.push(format!("its {name} is taken as the rate, {rate_hz} S/s; {other} says otherwise"));
                rate_hz
            }
            (None, None) => {
                notes.push(Hint::new(written).no_rate("48k"));
                0.0
            }
        };
        Ok(Chosen { number, rate_hz, notes })
    }
}

fn is_rate(name: &str) -> bool {
    let plain: String = name.to_ascii_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
    ["fs", "rate", "samplerate", "samplingrate", "samplingfrequency", "sampleratehz", "fshz"]
        .contains(&plain.as_str())
}
