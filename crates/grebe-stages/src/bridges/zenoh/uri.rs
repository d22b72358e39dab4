//! `zenoh://KEY`, and names of streams.

use std::path::Path;

use grebe_shm::Policy;
use grebe_zenoh::{StreamName, check_key};

use grebe_process::query::{Pairs, Query, Words};
use grebe_recording::is_recording;

/// Frames under a Zenoh key, as [`Uri::Zenoh`](crate::Uri::Zenoh) names them.
///
/// | in the query | means | default |
/// |---|---|---|
/// | `policy=block` | a sender waits for slow links; Zenoh closes one that accepts nothing for 5 s. A slow reader holds up its link | a sender drops what a link cannot accept; a slow reader drops the oldest |
/// | `policy=drop_latest` | a slow reader drops new frames | the oldest |
/// | `wait` | a sender starts after a reader has joined | at once |
/// | `reconnect` | a reader waits for a lost producer | an error |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZenohKey {
    /// The key.
    pub key: String,
    /// The policy towards slow readers or links.
    pub policy: Option<Policy>,
    /// Whether a sender waits for a reader.
    pub waits: bool,
    /// Whether a reader waits for a producer to return.
    pub reconnects: bool,
}

/// A stream by name, as [`Uri::Named`](crate::Uri::Named) has it: `lab/mast3/adc`, or `?route=zenoh` to select a route
/// instead of the best one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedStream {
    /// The stream.
    pub name: StreamName,
    /// The route to use; `None`: the best.
    pub route: Option<Route>,
}

/// The route of a stream from its producer to a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Route {
    /// Shared memory.
    Shm,
    /// Datagrams, sent here anyway or on request.
    Udp,
    /// Messages of Zenoh.
    Zenoh,
}

impl ZenohKey {
    /// Parses the part after `zenoh://`.
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
    /// Parses a name of a stream. `None`: it does not look like one, or it is a recording.
    pub(super) fn parse(text: &str) -> Option<Result<Self, String>> {
        let (name, query) = text.split_once('?').unwrap_or((text, ""));
        let name: StreamName = name.parse().ok().filter(|_| !is_recording(Path::new(name)))?;
        // A raw file has a query of its own.
        if is_recording(Path::new(text)) {
            return None;
        }
        let read = |query| {
            let mut query = Query::new(query)?;
            let route = query.choice("route", Route::WORDS)?;
            query.end()?;
            Ok(Self { name, route })
        };
        Some(read(query))
    }
}

impl Route {
    pub(super) const WORDS: &Words<Self> = &[("shm", Self::Shm), ("udp", Self::Udp), ("zenoh", Self::Zenoh)];

    /// Its spelling in a name.
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
    fn printed_names_are_parsed_again() {
        for text in [
            "zenoh://adc",
            "zenoh://site/adc?policy=block&wait&reconnect",
            "lab/mast3/adc",
            "lab/mast3/adc?route=shm",
            "lab/mast3/adc?route=zenoh",
        ] {
            assert_eq!(text.parse::<Uri>().unwrap().to_string(), text);
        }
        assert!(matches!("lab/adc".parse(), Ok(Uri::Named(_))));
        assert!(matches!("lab/adc.sigmf-meta".parse(), Ok(Uri::File(_))), "a recording is a file");
        assert!(matches!("lab/x.cu8?rate=1M".parse(), Ok(Uri::File(_))));
    }

    #[test]
    fn invalid_options_are_refused() {
        for (text, reason) in [
            ("zenoh://", "not a Zenoh key"),
            ("zenoh://a/**", "not a Zenoh key"),
            ("zenoh://a?policy=some", "wrong policy"),
            ("zenoh://a?colour=red", "known: policy, wait, reconnect"),
            ("lab/adc?route=horse", "has route=horse: give shm, udp or zenoh"),
            ("adc", "not the URI of a stream"),
            ("/lab/adc", "not the URI of a stream"),
        ] {
            let error = text.parse::<Uri>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
