//! Announcement of a stream: JSON of a few lines.

use std::fmt;

use grebe_frame::Description;
use serde::{Deserialize, Serialize};

use crate::name::StreamName;

/// Description, origin and routes of a stream.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct What {
    /// The host that makes it.
    pub host: String,
    /// That host since it was started: two processes that say the same can share memory.
    pub boot: String,
    /// Its network there, as containers of one host have one each: 0 where the system has no such number.
    #[serde(skip_serializing_if = "is_zero_u64")]
    pub network: u64,
    /// The process.
    pub pid: u32,
    /// The command: `sg`.
    pub command: String,
    /// When the stream was announced, in milliseconds since 1970.
    pub since_unix_ms: u64,
    /// URIs by which the stream can be read, the host's own words for it.
    #[serde(rename = "ways")]
    pub routes: Vec<String>,
    /// Whether it is sent by UDP to readers that ask for that.
    #[serde(skip_serializing_if = "is_false")]
    pub udp_on_request: bool,
    /// Format of a sample; empty before the first.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub format: String,
    /// Channels; 0 until there are samples.
    #[serde(skip_serializing_if = "is_zero")]
    pub channels: u32,
    /// Samples per second and channel; 0 where that is not known.
    #[serde(skip_serializing_if = "is_unknown")]
    pub sample_rate_hz: f64,
    /// Messages of frames that were sent over Zenoh, read or not.
    #[serde(skip_serializing_if = "is_zero_u64")]
    pub messages: u64,
    /// The producer's description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<Box<Description>>,
}

/// A stream that somebody announces.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The producer's session: another one, where a producer was started again.
    pub session: String,
    /// The stream.
    pub name: StreamName,
    /// Its announcement.
    pub what: What,
}

impl What {
    /// Of this process: its host, its number, now.
    pub fn of_this_process(command: &str) -> Self {
        let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        Self {
            host: host_name(),
            boot: boot_id(),
            network: network_id(),
            pid: std::process::id(),
            command: command.to_owned(),
            since_unix_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            ..Self::default()
        }
    }

    /// As it is sent; without its description where that would be too long.
    pub fn to_json(&self) -> String {
        let json = |what: &Self| serde_json::to_string(what).unwrap_or_else(|_| "{}".to_owned());
        let whole = json(self);
        if whole.len() <= JSON_BYTES_MAX { whole } else { json(&Self { description: None, ..self.clone() }) }
    }

    /// Parses an announcement. Makes it safe for a terminal, and limits its length.
    ///
    /// # Errors
    /// The reason why it is not an announcement.
    pub fn parse(json: &[u8]) -> Result<Self, String> {
        if json.len() > JSON_BYTES_MAX {
            return Err(format!("has {} bytes; the limit is {JSON_BYTES_MAX}", json.len()));
        }
        let mut what: Self = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        let texts = [&mut what.host, &mut what.boot, &mut what.command, &mut what.format];
        texts.into_iter().chain(&mut what.routes).for_each(tame);
        what.routes.truncate(ROUTES_MAX);
        what.sample_rate_hz =
            Some(what.sample_rate_hz).filter(|hz| hz.is_finite() && *hz > 0.0).unwrap_or(0.0);
        Ok(what)
    }

    /// Text for the route of a producer that sends on request.
    pub const UDP_ON_REQUEST: &str = "udp on request";

    /// By which ways it can be had, for people.
    pub fn shown_routes(&self) -> Vec<&str> {
        let (zenoh, given): (Vec<&str>, Vec<&str>) =
            self.routes.iter().map(String::as_str).partition(|route| route.starts_with("zenoh://"));
        let on_request = self.udp_on_request.then_some(Self::UDP_ON_REQUEST);
        given.into_iter().chain(on_request).chain(zenoh).collect()
    }

    /// Whether what it sends to this host comes to this process: it has the same addresses.
    pub fn is_on_this_network(&self) -> bool {
        let is_here = if self.boot.is_empty() { self.host == host_name() } else { self.is_here() };
        is_here && self.network == network_id()
    }

    /// Whether it is made on this machine, since it was started.
    pub fn is_here(&self) -> bool {
        !self.boot.is_empty() && self.boot == boot_id()
    }
}

impl fmt::Display for What {
    /// `mast3 (sg, process 12)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, process {})", self.host, self.command, self.pid)
    }
}

impl Found {
    /// Reads the answer of a producer to the question what its streams are; `key` is that of the answer.
    ///
    /// # Errors
    /// Why it is none.
    pub fn parse(key: &str, json: &[u8]) -> Result<Self, String> {
        let told = token(key, WHAT).and_then(|(session, name)| Some((session, name.parse().ok()?)));
        let (session, name) = told.ok_or_else(|| format!("{key} is not a key of an announcement"))?;
        What::parse(json).map(|what| Self { session, name, what })
    }
}

/// Session and stream of a key `PREFIX/SESSION/STREAM`.
pub(crate) fn token(key: &str, prefix: &str) -> Option<(String, String)> {
    let (session, stream) = key.strip_prefix(prefix)?.split_once('/')?;
    let is_session =
        !session.is_empty() && session.len() <= 64 && session.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_session && !stream.is_empty()).then(|| (session.to_owned(), stream.to_owned()))
}

/// Name of this host.
pub fn host_name() -> String {
    #[cfg(unix)]
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    let name = std::env::var("COMPUTERNAME").unwrap_or_default();
    if name.is_empty() { "unknown".to_owned() } else { name }
}

/// Another one each time that this machine is started; empty where the system has none.
pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Another one for each network of this machine (its network namespaces).
#[cfg(target_os = "linux")]
fn network_id() -> u64 {
    std::fs::metadata("/proc/self/ns/net").map_or(0, |of| std::os::unix::fs::MetadataExt::ino(&of))
}

#[cfg(not(target_os = "linux"))]
fn network_id() -> u64 {
    0
}

/// A line of text, and not a long one.
fn tame(text: &mut String) {
    if text.len() > TEXT_BYTES_MAX || text.contains(char::is_control) {
        *text = text.chars().filter(|c| !c.is_control()).take(TEXT_BYTES_MAX / 4).collect();
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero_u64(number: &u64) -> bool {
    *number == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_false(value: &bool) -> bool {
    !*value
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_unknown(hz: &f64) -> bool {
    *hz == 0.0
}

/// Key of a producer's description of a stream, by query.
pub(crate) const WHAT: &str = "grebe/what/";
/// That a stream of some name is there: a token that goes with its producer.
#[cfg_attr(not(feature = "zenoh"), allow(dead_code))]
pub(crate) const HERE: &str = "grebe/here/";
/// The same of one that has but a key.
#[cfg_attr(not(feature = "zenoh"), allow(dead_code))]
pub(crate) const LIVE: &str = "grebe/live/";
/// Key of requests to a producer for UDP.
#[cfg_attr(not(feature = "zenoh"), allow(dead_code))]
pub(crate) const UDP: &str = "grebe/udp/";
/// Key of a process's counts, with a token per process.
#[cfg_attr(not(feature = "zenoh"), allow(dead_code))]
pub(crate) const COUNTS: &str = "grebe/counts/";
const JSON_BYTES_MAX: usize = 128 << 10;
const TEXT_BYTES_MAX: usize = 512;
const ROUTES_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_round_trip() {
        let description = Description { centre_frequency_hz: Some(1e8), ..Description::default() };
        let what = What {
            routes: vec!["shm://adc".to_owned()],
            format: "i16".to_owned(),
            channels: 2,
            sample_rate_hz: 1e6,
            description: Some(Box::new(description)),
            ..What::of_this_process("sg")
        };
        assert_eq!(What::parse(what.to_json().as_bytes()), Ok(what.clone()));
        let found = Found::parse("grebe/what/a1/lab/adc", what.to_json().as_bytes()).unwrap();
        assert_eq!((found.session.as_str(), found.name.as_str()), ("a1", "lab/adc"));
        assert!(cfg!(not(target_os = "linux")) || what.is_here());
        assert!(what.is_on_this_network());
        let container = What { network: what.network + 1, udp_on_request: true, ..what.clone() };
        assert!(!container.is_on_this_network());
        assert_eq!(What::parse(container.to_json().as_bytes()), Ok(container));
        let elsewhere = What { boot: "x".to_owned(), ..what };
        assert!(!elsewhere.is_here() && !elsewhere.is_on_this_network());
    }

    #[test]
    fn words_of_strangers_are_shown_without_control_characters() {
        let json = r#"{"host":"a\u001b[2Jb","ways":["shm://x\n"],"sample_rate_hz":-5,"unknown":1}"#;
        let what = What::parse(json.as_bytes()).unwrap();
        assert_eq!(
            (what.host.as_str(), what.routes[0].as_str(), what.sample_rate_hz),
            ("a[2Jb", "shm://x", 0.0)
        );
        assert_eq!(What::parse(b"{}"), Ok(What::default()));
        let many = format!(r#"{{"host":"{}","ways":[{}"x"]}}"#, "h".repeat(5_000), "\"x\",".repeat(40));
        let what = What::parse(many.as_bytes()).unwrap();
        assert_eq!((what.host.len(), what.routes.len()), (128, 16));
        for bad in ["", "\"x\"", "5", "{\"pid\":-1}", &" ".repeat(JSON_BYTES_MAX + 1)] {
            assert!(What::parse(bad.as_bytes()).is_err());
        }
        for key in ["grebe/what/a1", "grebe/what/zz/lab/adc", "grebe/here/a1/lab/adc", "grebe/what/a1/x", "x"]
        {
            assert!(Found::parse(key, b"{}").is_err(), "{key}");
        }
    }

    #[test]
    fn a_description_that_is_too_long_is_left_out() {
        let description = Description { notes: Some("x".repeat(JSON_BYTES_MAX)), ..Description::default() };
        let what = What { description: Some(Box::new(description)), ..What::default() };
        assert_eq!(What::parse(what.to_json().as_bytes()).unwrap().description, None);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), key in ".{0,60}") {
            let _ = Found::parse(&key, &bytes);
        }
    }
}
