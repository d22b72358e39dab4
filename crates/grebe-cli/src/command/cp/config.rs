//! The configuration: what is so for all copies, and for a host.
//!
//! ```toml
//! [defaults]
//! mode = "background"
//! exclude = ["*.tmp"]
//!
//! [hosts.lab]
//! name = "me@lab.example.org"        # what ssh is given; without it, lab
//! remote-path = "/opt/grebe/grebe"
//! port = 4733
//! ```
//!
//! What the command line says counts more than what the host says, and that more than the defaults.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use grebe_transfer::{Address, Mode};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::lines::Terms;
use crate::cli::{How, Location, MODES, SshHost, Via, WAYS};
use crate::ending::Usage;
use crate::ssh::Ssh;
use crate::{transfer, units};

/// All of it.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(in crate::command) struct Config {
    defaults: Section,
    hosts: BTreeMap<String, Section>,
}

/// What can be said for all hosts, or for one.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Section {
    /// Of one host only.
    name: Option<String>,
    address: Option<String>,
    ssh: Option<String>,
    remote_path: Option<String>,
    bootstrap: Option<bool>,
    #[serde(deserialize_with = "via")]
    via: Option<Via>,
    port: Option<u16>,
    #[serde(deserialize_with = "relay")]
    relay: Option<Address>,
    #[serde(deserialize_with = "rate")]
    bwlimit: Option<f64>,
    #[serde(deserialize_with = "mode")]
    mode: Option<Mode>,
    exclude: Vec<String>,
}

/// How to get to a host: what was said, and where nothing was, the defaults.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::command) struct Settings {
    pub(in crate::command) host: SshHost,
    pub(in crate::command) ssh: Ssh,
    /// What is called there.
    pub(in crate::command) program: String,
    pub(in crate::command) bootstrap: bool,
    pub(in crate::command) via: Via,
    pub(in crate::command) port: u16,
    pub(in crate::command) address: Option<String>,
    pub(in crate::command) relay: Option<Address>,
    pub(in crate::command) limit_bits_per_s: Option<f64>,
    pub(in crate::command) mode: Mode,
}

impl Settings {
    /// What both ends have to know of that.
    pub(in crate::command) fn terms(&self) -> Terms {
        Terms { via: self.via, mode: self.mode, limit_bits_per_s: self.limit_bits_per_s }
    }
}

impl Config {
    /// The user's own: `~/.config/grebe/cp.toml`.
    pub(in crate::command) fn of_user() -> Result<Self> {
        let Some(path) = place() else { return Ok(Self::default()) };
        match std::fs::read_to_string(&path) {
            Ok(text) => Self::read(&text, &path),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Ok(Self::default())
            }
            Err(error) => Err(error)
                .with_context(|| format!("cannot read {} (--no-config does without)", path.display())),
        }
    }

    fn read(text: &str, path: &Path) -> Result<Self> {
        let config: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            let at = line.map(|line| format!(":{line}")).unwrap_or_default();
            // The rest of what is said repeats the line itself.
            let why = error.message().replace('\n', " ");
            Usage(format!("{}{at}: {} (--no-config does without)", path.display(), why.trim()))
        })?;
        if config.defaults.name.is_some() || config.defaults.address.is_some() {
            let why = "`name` and `address` are of one host: write them below [hosts.NAME]";
            return Err(Usage(format!("{}: {why}", path.display())).into());
        }
        Ok(config)
    }

    /// What is left out of copies to or from these places.
    pub(in crate::command) fn exclude(&self, places: &[Location]) -> Vec<String> {
        let hosts = places.iter().filter_map(|place| match place {
            Location::There { host, .. } => self.hosts.get(&host.host),
            Location::Here(_) => None,
        });
        let mut exclude = self.defaults.exclude.clone();
        exclude.extend(hosts.flat_map(|host| host.exclude.iter().cloned()));
        exclude
    }

    /// How to get to a host.
    pub(in crate::command) fn settings(&self, host: &SshHost, how: &How) -> Result<Settings> {
        let (all, none) = (&self.defaults, Section::default());
        let own = self.hosts.get(&host.host).unwrap_or(&none);
        let host = match own.name.as_deref().map(crate::cli::ssh_host) {
            Some(Ok(named)) => SshHost {
                user: host.user.clone().or(named.user),
                host: named.host,
                port: host.port.or(named.port),
            },
            Some(Err(why)) => {
                return Err(Usage(format!("cp.toml: the name of the host `{}`: {why}", host.host)).into());
            }
            None => host.clone(),
        };
        let ssh = how.ssh.as_deref().or(own.ssh.as_deref()).or(all.ssh.as_deref());
        let program =
            how.remote_path.as_deref().or(own.remote_path.as_deref()).or(all.remote_path.as_deref());
        let named = own.relay.as_ref().or(all.relay.as_ref());
        let relay = transfer::relay_of(how.relay.as_ref())?.or(named.cloned());
        let via = how.via.or(own.via).or(all.via).unwrap_or_default();
        if via == Via::Relay && relay.is_none() {
            return Err(Usage("--via relay needs a relay: --relay HOST, or GREBE_RELAY".to_owned()).into());
        }
        Ok(Settings {
            host,
            ssh: Ssh::by(ssh)?,
            program: program.unwrap_or("grebe").to_owned(),
            bootstrap: how.bootstrap || own.bootstrap.or(all.bootstrap).unwrap_or(false),
            via,
            relay,
            port: how.port.or(own.port).or(all.port).unwrap_or(0),
            address: how.address.clone().or_else(|| own.address.clone()),
            limit_bits_per_s: how.bwlimit.or(own.bwlimit).or(all.bwlimit),
            mode: how.mode.or(own.mode).or(all.mode).unwrap_or(Mode::Fair),
        })
    }
}

/// Where a user's configuration is, if this user has a place for one.
fn place() -> Option<PathBuf> {
    let directory = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let own = if cfg!(windows) { directory("APPDATA") } else { directory("XDG_CONFIG_HOME") };
    let own = own.or_else(|| Some(std::env::home_dir()?.join(".config")))?;
    Some(own.join("grebe").join("cp.toml"))
}

fn via<'a, D: Deserializer<'a>>(from: D) -> Result<Option<Via>, D::Error> {
    one_of(from, &WAYS)
}

fn mode<'a, D: Deserializer<'a>>(from: D) -> Result<Option<Mode>, D::Error> {
    one_of(from, &MODES)
}

fn one_of<'a, D: Deserializer<'a>, T: Copy>(
    from: D,
    choices: &[(&str, &str, T)],
) -> Result<Option<T>, D::Error> {
    let name = String::deserialize(from)?;
    let names: Vec<_> = choices.iter().map(|choice| choice.0).collect();
    let choice = choices.iter().find(|choice| choice.0 == name).map(|choice| choice.2);
    choice.map(Some).ok_or_else(|| D::Error::custom(format!("{name:?} is none of {}", names.join(", "))))
}

fn relay<'a, D: Deserializer<'a>>(from: D) -> Result<Option<Address>, D::Error> {
    let text = String::deserialize(from)?;
    crate::cli::relay(&text).map(Some).map_err(D::Error::custom)
}

fn rate<'a, D: Deserializer<'a>>(from: D) -> Result<Option<f64>, D::Error> {
    let text = String::deserialize(from)?;
    units::rate_hz(&text).map(Some).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
[defaults]
mode = "background"
bwlimit = "20M"
exclude = ["*.tmp"]

[hosts.lab]
name = "me@lab.example.org:2222"
remote-path = "/opt/grebe"
bwlimit = "1G"
port = 4733
relay = "relay.example.org"
exclude = ["/scratch"]
"#;

    fn host(host: &str) -> SshHost {
        SshHost { user: None, host: host.to_owned(), port: None }
    }

    #[test]
    fn the_command_line_counts_more_than_the_host_and_that_more_than_the_defaults() {
        let config = Config::read(TEXT, Path::new("cp.toml")).unwrap();
        let how = How { remote_path: Some("./grebe".to_owned()), ..How::default() };
        let lab = config.settings(&host("lab"), &how).unwrap();
        assert_eq!((lab.host.to_string().as_str(), lab.host.port), ("me@lab.example.org", Some(2_222)));
        assert_eq!((lab.program.as_str(), lab.port, lab.limit_bits_per_s), ("./grebe", 4_733, Some(1e9)));
        assert_eq!((lab.mode, lab.via), (Mode::Background, Via::Auto));
        assert_eq!(lab.relay.unwrap().to_string(), "relay.example.org:4737");
        let other = config.settings(&host("other"), &How::default()).unwrap();
        assert_eq!((other.host, other.limit_bits_per_s, other.port), (host("other"), Some(20e6), 0));
        let places = [Location::Here("a".into()), Location::There { host: host("lab"), path: Vec::new() }];
        assert_eq!(config.exclude(&places), ["*.tmp", "/scratch"]);
        assert_eq!(config.exclude(&places[..1]), ["*.tmp"]);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, words) in [
            ("\n[defaults]\nmodee = \"fair\"\n", "cp.toml:3: unknown field `modee`"),
            ("[hosts.lab]\nmode = \"gready\"\n", "cp.toml:2: \"gready\" is none of fair, greedy, background"),
            ("[hosts.lab]\nbwlimit = \"fast\"\n", "cp.toml:2: "),
            ("[hosts.lab]\nrelay = \"no port:x\"\n", "cp.toml:2: "),
            ("[defaults\n", "cp.toml:1: "),
            ("[defaults]\naddress = \"x\"\n", "below [hosts.NAME]"),
        ] {
            let error = Config::read(text, Path::new("cp.toml")).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
