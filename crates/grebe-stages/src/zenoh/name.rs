//! `zenoh://KEY`, and names of streams.

use std::fmt;
use std::path::Path;

use grebe_shm::Policy;
use grebe_zenoh::{StreamName, check_key};

use crate::file::is_recording;

/// Frames under a key of Zenoh's, as [`Uri::Zenoh`](crate::Uri::Zenoh) names them.
///
/// | in the query | means | without it |
/// |---|---|---|
/// | `policy=block` | a sender waits for links that cannot follow; Zenoh closes one that takes nothing for 5 s. A reader that is too slow holds up its link | a sender drops what a link cannot take; a slow reader drops the oldest |
/// | `policy=drop_latest` | a reader that is too slow drops what comes | the oldest |
/// | `wait` | a sender begins once somebody reads | at once |
/// | `reconnect` | a reader waits for a producer that is gone to return | that is an error |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZenohKey {
    /// The key.
    pub key: String,
    /// What happens where somebody is too slow.
    pub policy: Option<Policy>,
    /// Whether a sender waits for a reader.
    pub waits: bool,
    /// Whether a reader waits for a producer to return.
    pub reconnects: bool,
}

/// A stream that is found by its name, as [`Uri::Named`](crate::Uri::Named) has it: `lab/mast3/adc`, and `?way=zenoh` where another way than
/// the best is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedStream {
    /// The stream.
    pub name: StreamName,
    /// How a reader is to get it; `None`: as is best.
    pub way: Option<Way>,
}

/// How a stream goes from its producer to a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// Memory that both share.
    Shm,
    /// Datagrams that pass here anyway, or that the producer sends here because it is asked to.
    Udp,
    /// Messages of Zenoh's.
    Zenoh,
}

impl ZenohKey {
    /// What stands behind `zenoh://`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (key, query) = text.split_once('?').unwrap_or((text, ""));
        check_key(key)?;
        let mut name = Self { key: key.to_owned(), policy: None, waits: false, reconnects: false };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=').unwrap_or((pair, "")) {
                ("policy", policy) => {
                    name.policy =
                        Some(policy.parse().map_err(|error| format!("has a wrong policy: {error}"))?);
                }
                ("wait", "") => name.waits = true,
                ("reconnect", "") => name.reconnects = true,
                (other, _) => {
                    return Err(format!("has an unknown '{other}': known are policy=, wait and reconnect"));
                }
            }
        }
        Ok(name)
    }
}

impl NamedStream {
    /// A name of a stream, where it looks like one and like no recording; otherwise `None`.
    pub(crate) fn parse(text: &str) -> Option<Result<Self, String>> {
        let (name, query) = text.split_once('?').unwrap_or((text, ""));
        let name: StreamName = name.parse().ok().filter(|_| !is_recording(Path::new(name)))?;
        let way = match query {
            "" => None,
            "way=shm" => Some(Way::Shm),
            "way=udp" => Some(Way::Udp),
            "way=zenoh" => Some(Way::Zenoh),
            // A raw file has a query of its own.
            _ if is_recording(Path::new(text)) => return None,
            other => {
                return Some(Err(format!(
                    "has an unknown '{other}': known are way=shm, way=udp and way=zenoh"
                )));
            }
        };
        Some(Ok(Self { name, way }))
    }
}

impl Way {
    /// As a name says it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Shm => "shm",
            Self::Udp => "udp",
            Self::Zenoh => "zenoh",
        }
    }
}

impl fmt::Display for ZenohKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "zenoh://{}", self.key)?;
        let policy = self.policy.map(|policy| format!("policy={policy}"));
        let waits = self.waits.then(|| "wait".to_owned());
        let reconnects = self.reconnects.then(|| "reconnect".to_owned());
        let pairs: Vec<String> = [policy, waits, reconnects].into_iter().flatten().collect();
        if pairs.is_empty() { Ok(()) } else { write!(f, "?{}", pairs.join("&")) }
    }
}

impl fmt::Display for NamedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.way {
            Some(way) => write!(f, "{}?way={}", self.name, way.name()),
            None => write!(f, "{}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Uri;

    #[test]
    fn what_is_written_is_understood_again() {
        for text in [
            "zenoh://adc",
            "zenoh://site/adc?policy=block&wait&reconnect",
            "lab/mast3/adc",
            "lab/mast3/adc?way=shm",
            "lab/mast3/adc?way=zenoh",
        ] {
            assert_eq!(text.parse::<Uri>().unwrap().to_string(), text);
        }
        assert!(matches!("lab/adc".parse(), Ok(Uri::Named(_))));
        assert!(matches!("lab/adc.sigmf-meta".parse(), Ok(Uri::File(_))), "a recording is a file");
        assert!(matches!("lab/x.cu8?rate=1M".parse(), Ok(Uri::File(_))));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (text, reason) in [
            ("zenoh://", "no key of Zenoh's"),
            ("zenoh://a/**", "no key of Zenoh's"),
            ("zenoh://a?policy=some", "wrong policy"),
            ("zenoh://a?colour=red", "known are policy=, wait and reconnect"),
            ("lab/adc?way=horse", "known are way=shm, way=udp and way=zenoh"),
            ("adc", "names no stream"),
            ("/lab/adc", "names no stream"),
        ] {
            let error = text.parse::<Uri>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
