//! What the two ends of a copy tell each other through `ssh`, beside the data: lines of JSON.
//!
//! ```text
//!  this end                          the end that ssh started
//!                <=stdout==    MARK    it has begun: before, a login may do anything with what it is sent
//!    Hello       ==stdin==>            what to do, and which ways there are
//!                <=stdout==    Ready   a ticket, where the data may come another way than by ssh
//!    Turn        ==stdin==>            only where neither UDP nor TCP came through: then both carry the data
//!                <=stderr==    Event   how it ended, and between two others how far it is
//! ```

use std::path::{Path, PathBuf};

use anyhow::Result;
use grebe_transfer::Mode;
use grebe_tree::Fsync;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::figures::{Figures, Outcome};
use crate::cli::{MODES, Via, WAYS, What};
use crate::ending::Usage;
use crate::ssh::EVENT;

/// Changes with what these lines mean.
pub(super) const PROTOCOL: u32 = 1;

/// The first line: what the other end is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) protocol: u32,
    pub(super) version: String,
    pub(super) task: Task,
    /// Where neither end of the data is the one that was told.
    pub(super) what: Option<Wishes>,
    pub(super) meet: Meet,
    #[serde(flatten)]
    pub(super) terms: Terms,
    /// What it is to say while it copies: the data does not pass by this end.
    pub(super) tells: Tells,
}

/// How the data goes, as both ends have to know it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(in crate::command) struct Terms {
    #[serde(with = "via_name")]
    pub(in crate::command) via: Via,
    #[serde(with = "mode_name")]
    pub(in crate::command) mode: Mode,
    pub(in crate::command) limit_bits_per_s: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Task {
    Send {
        sources: Vec<PathText>,
        /// One file of a recording stands for all of it, and recordings get their summaries.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        recordings: bool,
        /// The receiver has said that nothing is there.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_fresh: bool,
    },
    Receive {
        destination: PathText,
    },
}

/// How its peer reaches it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::command) enum Meet {
    /// By what it prints: a ticket for this port; 0 is any. Where that is not reached, both meet at the relay.
    Listen {
        port: u16,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        relay: Option<String>,
    },
    /// It goes to the peer.
    Connect { ticket: String },
    /// Through `ssh`.
    Here,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Tells {
    /// Only what fails.
    Failures,
    /// How far it is, and what came of it.
    Figures,
    /// Each file, too.
    Files,
}

/// What both ends have to know of what is copied, see [`What`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(super) struct Wishes {
    pub(super) recursive: bool,
    pub(super) archive: bool,
    pub(super) xattrs: bool,
    pub(super) exclude: Vec<String>,
    pub(super) dry_run: bool,
    pub(super) checksum: bool,
    pub(super) delete: bool,
    pub(super) whole_file: bool,
    pub(super) also_look_in: Vec<PathText>,
    pub(super) index: bool,
    /// Everything is on the disk before the end, and since there is `fsync_file` contents before they get their names.
    pub(super) fsync: bool,
    /// Each file before it is told, too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) fsync_file: bool,
    pub(super) force: bool,
    pub(super) one_file_system: bool,
    pub(super) progressive: bool,
    pub(super) only_wanted: bool,
    pub(super) first: Vec<String>,
    /// Each end that copies knows of them.
    pub(super) short_hashes: bool,
}

/// What the other end prints when it is ready, or that it cannot be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::command) struct Ready {
    pub(super) protocol: u32,
    pub(super) version: String,
    pub(super) ticket: Option<String>,
    /// The address of its own to which `ssh` connected.
    pub(super) reached_at: Option<String>,
    /// Between two others: which way it reached its peer, if it did.
    pub(super) way: Option<Way>,
    /// It knows of orders in which files and their parts are sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) knows_order: bool,
    /// It knows of short hashes in signatures.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) knows_short_hashes: bool,
    /// It knows of flushing each file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) knows_fsync_file: bool,
    /// It is to receive, nothing is there, and it answers for that: content need not wait for its first message.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_fresh: bool,
}

/// What is said behind the ticket where it was of no use: the data comes here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Turn {
    DataFollows,
}

/// What the other end says while it copies, and at its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::command) enum Event {
    Progress(Figures),
    File(FileDone),
    Result(Outcome),
    Failed { why: String, status: u8 },
}

/// What was done with a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::command) struct FileDone {
    pub(super) name: PathText,
    /// `copied`, `same`, `made`, `removed`, `left out`.
    pub(super) done: String,
    pub(super) bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) why: Option<String>,
}

/// Which way data goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::command) enum Way {
    Udp,
    Tcp,
    /// Over UDP, passed on by a relay.
    Relay,
    Ssh,
    /// Within this machine.
    Disk,
}

/// A path of the other end: text where it is text, and its bytes where not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(in crate::command) enum PathText {
    Text(String),
    Bytes { bytes: Vec<u8> },
}

impl Wishes {
    pub(super) fn of(what: &What) -> Self {
        let what = what.clone();
        Self {
            recursive: what.recursive || what.archive,
            archive: what.archive,
            xattrs: what.xattrs,
            exclude: what.exclude,
            dry_run: what.dry_run,
            checksum: what.checksum,
            delete: what.delete,
            whole_file: what.whole_file,
            also_look_in: what.also_look_in.iter().map(|path| PathText::of_path(path)).collect(),
            index: what.index,
            fsync: what.fsync != Fsync::Never,
            fsync_file: what.fsync == Fsync::File,
            force: what.force,
            one_file_system: what.one_file_system,
            progressive: what.progressive,
            only_wanted: false,
            first: what.first,
            short_hashes: true,
        }
    }

    /// Whether it needs an end that knows of an order.
    pub(super) fn has_order(&self) -> bool {
        self.progressive || !self.first.is_empty()
    }

    pub(super) fn without_order(&mut self) {
        self.progressive = false;
        self.first.clear();
    }
}

impl Event {
    /// As a line for the process that started this one.
    pub(in crate::command) fn line(&self) -> String {
        let event = serde_json::to_string(self).unwrap_or_default();
        format!("{EVENT}{event}}}")
    }

    pub(super) fn read(line: &str) -> Option<Self> {
        let event = line.strip_prefix(EVENT)?.strip_suffix('}')?;
        serde_json::from_str(event).ok()
    }
}

impl Ready {
    /// Of this program, which speaks so, and has nothing else to say.
    pub(in crate::command) fn of(protocol: u32) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self {
            protocol,
            version,
            ticket: None,
            reached_at: None,
            way: None,
            knows_order: true,
            knows_short_hashes: true,
            knows_fsync_file: true,
            is_fresh: false,
        }
    }

    pub(in crate::command) fn line(&self) -> String {
        serde_json::json!({ READY: self }).to_string()
    }

    pub(super) fn read(line: &str) -> Option<Self> {
        let mut line: serde_json::Value = serde_json::from_str(line).ok()?;
        serde_json::from_value(line.get_mut(READY)?.take()).ok()
    }
}

impl Way {
    pub(in crate::command) fn name(self) -> &'static str {
        match self {
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
            Self::Relay => "UDP by the relay",
            Self::Ssh => "ssh",
            Self::Disk => "disk",
        }
    }
}

impl PathText {
    pub(super) fn of(bytes: &[u8]) -> Self {
        match str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Bytes { bytes: bytes.to_vec() },
        }
    }

    /// A path here.
    pub(super) fn of_path(path: &Path) -> Self {
        Self::of(path.as_os_str().as_encoded_bytes())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes { bytes } => bytes,
        }
    }

    /// As a path here, whatever its letters mean to a shell.
    pub(super) fn as_it_is(&self) -> Result<PathBuf> {
        of_bytes(self.bytes())
    }

    /// As a path here, `~` being the home.
    pub(super) fn path(&self) -> Result<PathBuf> {
        let bytes = self.bytes();
        let below = if bytes == b"~" { Some(&[][..]) } else { bytes.strip_prefix(b"~/") };
        let Some(below) = below else { return of_bytes(bytes) };
        let home = std::env::home_dir().ok_or_else(|| Usage("there is no home here for `~`".to_owned()))?;
        Ok(if below.is_empty() { home } else { home.join(of_bytes(below)?) })
    }
}

#[cfg(unix)]
fn of_bytes(bytes: &[u8]) -> Result<PathBuf> {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    Ok(PathBuf::from(OsStr::from_bytes(bytes)))
}

#[cfg(not(unix))]
fn of_bytes(bytes: &[u8]) -> Result<PathBuf> {
    let text = str::from_utf8(bytes);
    let text =
        text.map_err(|_| Usage("a path that is no Unicode text names nothing on this system".to_owned()))?;
    Ok(PathBuf::from(text))
}

/// A value by the name that the command line has for it.
macro_rules! by_name {
    ($module:ident, $type:ty, $names:expr) => {
        mod $module {
            use super::*;

            pub(super) fn serialize<S: Serializer>(value: &$type, to: S) -> Result<S::Ok, S::Error> {
                let name = $names.iter().find(|choice| choice.2 == *value).map_or("", |choice| choice.0);
                to.serialize_str(name)
            }

            pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<$type, D::Error> {
                let name = String::deserialize(from)?;
                let choice = $names.iter().find(|choice| choice.0 == name);
                choice
                    .map(|choice| choice.2)
                    .ok_or_else(|| D::Error::custom(format!("{name:?} is not known")))
            }
        }
    };
}

by_name!(via_name, Via, WAYS);
by_name!(mode_name, Mode, MODES);

const READY: &str = "grebe-cp";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_and_its_answer_are_read_as_they_were_written() {
        let hello = Hello {
            protocol: PROTOCOL,
            version: "0.1.0".to_owned(),
            task: Task::Send {
                sources: vec![PathText::of(b"a b"), PathText::of(b"\xff\n")],
                recordings: true,
                is_fresh: false,
            },
            what: Some(Wishes { delete: true, exclude: vec!["*.o".to_owned()], ..Wishes::default() }),
            meet: Meet::Listen { port: 7, relay: Some("lab:4737".to_owned()) },
            terms: Terms { via: Via::Auto, mode: Mode::Background, limit_bits_per_s: Some(2e6) },
            tells: Tells::Figures,
        };
        let line = serde_json::to_string(&hello).unwrap();
        assert!(!line.contains('\n') && line.contains("\"background\""), "{line}");
        assert_eq!(serde_json::from_str::<Hello>(&line).unwrap(), hello);
        let older = serde_json::from_str::<Meet>("{\"listen\":{\"port\":7}}").unwrap();
        assert_eq!(older, Meet::Listen { port: 7, relay: None });

        let ready = Ready {
            protocol: 1,
            version: "0.1.0".to_owned(),
            ticket: Some("grebea".to_owned()),
            reached_at: None,
            way: None,
            knows_order: true,
            knows_short_hashes: true,
            knows_fsync_file: true,
            is_fresh: true,
        };
        assert_eq!(Ready::read(&ready.line()), Some(ready));
        assert_eq!(Ready::read("{\"a\":1}"), None);
        assert_eq!(Ready::read("Welcome"), None);

        let event = Event::Failed { why: "the disk\nis full".to_owned(), status: 5 };
        assert!(event.line().starts_with(EVENT) && !event.line().contains('\n'));
        assert_eq!(Event::read(&event.line()), Some(event));
    }

    #[test]
    fn a_tilde_is_the_home() {
        let home = std::env::home_dir().unwrap();
        assert_eq!(PathText::of(b"~").path().unwrap(), home);
        let below = PathText::of(b"~/x/").path().unwrap();
        assert!(
            below == home.join("x") && below.to_string_lossy().ends_with('/'),
            "what is in it: {below:?}"
        );
        assert_eq!(PathText::of(b"x/~").path().unwrap(), PathBuf::from("x/~"));
    }
}
