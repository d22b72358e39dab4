//! Configuration of remote hosts: defaults, and a section per host.
//!
//! ```toml
//! [defaults]
//! mode = "background"
//! exclude = ["*.tmp"]
//!
//! [hosts.lab]
//! name = "me@lab.example.org"    # host name for ssh; default: lab
//! remote-path = "/opt/grebe/grebe"
//! port = 4733
//! ```
//!
//! The command line overrides the host's section, which overrides the defaults.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use grebe_connection::{Address, Mode};
use grebe_flow::{RateHz, plain_words};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::error::{During, Error, Result};
use crate::hello::Meet;
use crate::host::{self, SshHost};
use crate::route::{ModeName, Terms, Via};
use crate::ssh::Ssh;

/// The whole configuration.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    defaults: HostOptions,
    hosts: BTreeMap<String, HostOptions>,
}

/// Options for reaching a host, from the defaults, a host's section, or a command line.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct HostOptions {
    /// Host name for `ssh`, only in a host's section.
    pub name: Option<String>,
    /// Address for datagrams, if it differs from that of `ssh`.
    pub address: Option<String>,
    /// `ssh` command with options: `ssh -p 2222`.
    pub ssh: Option<String>,
    /// Program on the remote host.
    pub remote_path: Option<String>,
    /// Installs this program on a host without one.
    pub bootstrap: Option<bool>,
    /// Allowed routes.
    pub via: Option<Via>,
    /// Port for the data on the remote host.
    pub port: Option<u16>,
    /// Relay for ends that cannot reach each other.
    #[serde(deserialize_with = "relay")]
    pub relay: Option<Address>,
    /// Maximum bits per second on the wire.
    #[serde(deserialize_with = "rate")]
    pub bwlimit: Option<f64>,
    /// Share of a shared path.
    #[serde(deserialize_with = "mode")]
    pub mode: Option<Mode>,
    /// Exclude patterns for copies.
    pub exclude: Vec<String>,
}

/// Options for reaching a host, with defaults filled in.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The host.
    pub host: SshHost,
    /// The `ssh` command.
    pub ssh: Ssh,
    /// Program on the remote host.
    pub program: String,
    /// Whether to install this program on a host without one.
    pub bootstrap: bool,
    /// Allowed routes.
    pub via: Via,
    /// Port for the data on the remote host; 0 is any.
    pub port: u16,
    /// Address for datagrams, if it differs from that of `ssh`.
    pub address: Option<String>,
    /// Relay for ends that cannot reach each other.
    pub relay: Option<Address>,
    /// Maximum bits per second on the wire.
    pub limit_bits_per_s: Option<f64>,
    /// Share of a shared path.
    pub mode: Mode,
}

impl Settings {
    /// Terms that both ends must know.
    pub fn terms(&self) -> Terms {
        Terms { via: self.via, mode: self.mode, limit_bits_per_s: self.limit_bits_per_s }
    }

    /// How to reach the other end, if not only over `ssh`.
    pub fn meet(&self) -> Meet {
        match self.via {
            Via::Ssh => Meet::Here,
            Via::Tcp => Meet::Listen { port: self.port, relay: None },
            _ => Meet::Listen { port: self.port, relay: self.relay.as_ref().map(ToString::to_string) },
        }
    }
}

impl Config {
    /// Reads the user's configuration: `~/.config/grebe/cp.toml`.
    ///
    /// # Errors
    /// [`Error::Usage`] with the invalid line.
    pub fn of_user() -> Result<Self> {
        let Some(path) = place() else { return Ok(Self::default()) };
        match std::fs::read_to_string(&path) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Ok(Self::default())
            }
            failed => Self::read(&failed.during(format!("cannot read {}{WITHOUT}", path.display()))?, &path),
        }
    }

    fn read(text: &str, path: &Path) -> Result<Self> {
        let config: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            let at = line.map(|line| format!(":{line}")).unwrap_or_default();
            // The rest of the message repeats the line itself.
            let why = plain_words(&error.message().replace('\n', " "));
            Error::Usage(format!("{}{at}: {}{WITHOUT}", path.display(), why.trim()))
        })?;
        if config.defaults.name.is_some() || config.defaults.address.is_some() {
            let why = "`name` and `address` belong to one host: write them below [hosts.NAME]";
            return Err(Error::Usage(format!("{}: {why}", path.display())));
        }
        Ok(config)
    }

    /// Exclude patterns for copies to or from these hosts.
    pub fn exclude<'a>(&self, hosts: impl IntoIterator<Item = &'a SshHost>) -> Vec<String> {
        let hosts = hosts.into_iter().filter_map(|host| self.hosts.get(&host.host));
        let mut exclude = self.defaults.exclude.clone();
        exclude.extend(hosts.flat_map(|host| host.exclude.iter().cloned()));
        exclude
    }

    /// Settings for a host. `how` comes from the command line, and `note` shows messages to the user.
    ///
    /// # Errors
    /// [`Error::Usage`] for conflicting options.
    pub fn settings(&self, host: &SshHost, how: &HostOptions, note: fn(&str)) -> Result<Settings> {
        let none = HostOptions::default();
        let own = self.hosts.get(&host.host).unwrap_or(&none);
        let said = [how, own, &self.defaults];
        let host = match own.name.as_deref().map(host::ssh_host) {
            Some(Ok(named)) => SshHost {
                user: host.user.clone().or(named.user),
                host: named.host,
                port: host.port.or(named.port),
            },
            Some(Err(why)) => {
                return Err(Error::Usage(format!("cp.toml: the name of the host `{}`: {why}", host.host)));
            }
            None => host.clone(),
        };
        let via = said.iter().find_map(|it| it.via).unwrap_or_default();
        let named = said.iter().find_map(|it| it.relay.clone());
        let relay = host::relay_or_default(how.relay.as_ref())?.or(named);
        if via == Via::Relay && relay.is_none() {
            return Err(Error::Usage("--via relay needs a relay: --relay HOST, or GREBE_RELAY".to_owned()));
        }
        Ok(Settings {
            host,
            ssh: Ssh::by(said.iter().find_map(|it| it.ssh.as_deref()), note)?,
            program: said.iter().find_map(|it| it.remote_path.clone()).unwrap_or("grebe".to_owned()),
            bootstrap: said.iter().find_map(|it| it.bootstrap).unwrap_or(false),
            via,
            relay,
            port: said.iter().find_map(|it| it.port).unwrap_or(0),
            address: said.iter().find_map(|it| it.address.clone()),
            limit_bits_per_s: said.iter().find_map(|it| it.bwlimit),
            mode: said.iter().find_map(|it| it.mode).unwrap_or(Mode::Fair),
        })
    }
}

/// Path of the user's configuration, if the user has a home.
fn place() -> Option<PathBuf> {
    let directory = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let own = if cfg!(windows) { directory("APPDATA") } else { directory("XDG_CONFIG_HOME") };
    let own = own.or_else(|| Some(std::env::home_dir()?.join(".config")))?;
    Some(own.join("grebe").join("cp.toml"))
}

fn mode<'a, D: Deserializer<'a>>(from: D) -> Result<Option<Mode>, D::Error> {
    ModeName::deserialize(from).map(Some)
}

fn relay<'a, D: Deserializer<'a>>(from: D) -> Result<Option<Address>, D::Error> {
    host::relay(&String::deserialize(from)?).map(Some).map_err(D::Error::custom)
}

fn rate<'a, D: Deserializer<'a>>(from: D) -> Result<Option<f64>, D::Error> {
    let rate = String::deserialize(from)?.parse::<RateHz>();
    rate.map(|rate| Some(rate.0)).map_err(D::Error::custom)
}

const WITHOUT: &str = " (grebe cp --no-config does without)";

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
        let how = HostOptions { remote_path: Some("./grebe".to_owned()), ..HostOptions::default() };
        let lab = config.settings(&host("lab"), &how, |_| {}).unwrap();
        assert_eq!((lab.host.to_string().as_str(), lab.host.port), ("me@lab.example.org", Some(2_222)));
        assert_eq!((lab.program.as_str(), lab.port, lab.limit_bits_per_s), ("./grebe", 4_733, Some(1e9)));
        assert_eq!((lab.mode, lab.via), (Mode::Background, Via::Auto));
        assert_eq!(lab.relay.unwrap().to_string(), "relay.example.org:4737");
        let other = config.settings(&host("other"), &HostOptions::default(), |_| {}).unwrap();
        assert_eq!((other.host, other.limit_bits_per_s, other.port), (host("other"), Some(20e6), 0));
        assert_eq!(config.exclude([&host("lab")]), ["*.tmp", "/scratch"]);
        assert_eq!(config.exclude([]), ["*.tmp"]);
    }

    #[test]
    fn a_wrong_configuration_names_its_line() {
        for (text, words) in [
            ("\n[defaults]\nmodee = \"fair\"\n", "cp.toml:3: unknown 'modee' - did you mean 'mode'?"),
            (
                "[hosts.lab]\nmode = \"gready\"\n",
                "cp.toml:2: unknown 'gready' - did you mean 'greedy'?; known: fair, greedy, background",
            ),
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
