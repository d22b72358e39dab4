//! `zenoh://KEY`, and names of streams.

use std::path::Path;

use grebe_shm::Policy;
use grebe_zenoh::{StreamName, check_key};

use grebe_process::query::{Pairs, Query, Words};
use grebe_recording::is_recording;

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
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (key, mut query) = Query::split(text)?;
        check_key(key)?;
        let key = Self {
            key: key.to_owned(),
            policy: query.parsed("policy")?,
            waits: query.flag("wait")?,
            reconnects: query.flag("reconnect")?,
        };
        query.end()?;
        Ok(key)
    }

    /// The pairs of the name.
    pub(super) fn pairs(&self) -> Pairs {
        Pairs::default()
            .add("policy", self.policy)
            .flag("wait", self.waits)
            .flag("reconnect", self.reconnects)
    }
}

impl NamedStream {
    /// A name of a stream, where it looks like one and like no recording; otherwise `None`.
    pub(super) fn parse(text: &str) -> Option<Result<Self, String>> {
        let (name, query) = text.split_once('?').unwrap_or((text, ""));
        let name: StreamName = name.parse().ok().filter(|_| !is_recording(Path::new(name)))?;
        // A raw file has a query of its own.
        if is_recording(Path::new(text)) {
            return None;
        }
        let read = |query| {
            let mut query = Query::new(query)?;
            let way = query.choice("way", Way::WORDS)?;
            query.end()?;
            Ok(Self { name, way })
        };
        Some(read(query))
    }
}

impl Way {
    pub(super) const WORDS: &Words<Self> = &[("shm", Self::Shm), ("udp", Self::Udp), ("zenoh", Self::Zenoh)];

    /// As a name says it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Shm => "shm",
            Self::Udp => "udp",
            Self::Zenoh => "zenoh",
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
            ("zenoh://a?colour=red", "known: policy, wait, reconnect"),
            ("lab/adc?way=horse", "has way=horse: give shm, udp or zenoh"),
            ("adc", "not the URI of a stream"),
            ("/lab/adc", "not the URI of a stream"),
        ] {
            let error = text.parse::<Uri>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
