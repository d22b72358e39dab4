//! Login to another host of a graph.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, anyhow};
use grebe_connection::{Cancel, ConnectionStatus, Notify};
use grebe_flow::{GraphFile, Part, Restart};
use grebe_remote::{Channel, Config, Hello, Remote, Route, Settings};

use super::lines::{JOINS, PartTask};
use crate::cli::{Routing, ssh_host};
use crate::command::remote::{self, dialer};
use crate::ending::Usage;
use crate::interrupt;

/// Everything for starting a host's part, repeatedly.
pub(super) struct Login {
    graph: String,
    part: GraphFile,
    pub(super) settings: Settings,
    restart: Restart,
    /// Ctrl-C cancels a login, but not an established connection, which carries the last samples.
    cancel: Cancel,
    is_connected: Arc<AtomicBool>,
    _ending: interrupt::Then,
}

/// Process on another host, with the connection to it.
pub(super) struct Connected {
    pub(super) route: Route,
    /// Dropped first, because the process ends with its input.
    pub(super) channel: Option<Channel>,
    pub(super) remote: Remote,
    pub(super) status: Option<ConnectionStatus>,
}

impl Login {
    pub(super) fn of(graph: &str, part: &Part, host: &str, config: &Config, how: &Routing) -> Result<Self> {
        let host = ssh_host(host).map_err(|why| Usage(format!("the host '{host}': {why}")))?;
        let mut settings = remote::settings(config, &host, &how.host_options())?;
        settings.ssh = settings.ssh.shielded().watched();
        let (cancel, is_connected) = (Cancel::default(), Arc::new(AtomicBool::new(false)));
        let (cancelled, connected) = (cancel.clone(), is_connected.clone());
        let _ending = interrupt::then(move || {
            if !connected.load(Ordering::Acquire) {
                cancelled.cancel();
            }
        });
        let (graph, part, restart) = (graph.to_owned(), part.file.clone(), part.restart);
        Ok(Self { graph, part, settings, restart, cancel, is_connected, _ending })
    }

    /// Logs in, sends the part, and connects. For a restart, `epochs` has the last epoch of each link.
    pub(super) fn connect(&self, epochs: Option<Vec<(u16, u32)>>) -> Result<Connected> {
        self.is_connected.store(false, Ordering::Release);
        let mut settings = self.settings.clone();
        if epochs.is_some() {
            settings.ssh = settings.ssh.unattended();
        }
        let mut remote = Remote::start(&settings, &JOINS, &self.hello(epochs), &interrupt::is_pending)?;
        let notify: Notify = Arc::new(|_| {});
        let channel = match remote.channel(&settings, &dialer(&settings, &self.cancel, &notify)) {
            Ok(channel) => channel,
            Err(error) => return Err(remote::explain(remote, error.into(), |_| {})),
        };
        self.is_connected.store(true, Ordering::Release);
        let (route, status) = (channel.route, channel.status.clone());
        Ok(Connected { route, channel: Some(channel), remote, status })
    }

    fn hello(&self, epochs: Option<Vec<(u16, u32)>>) -> Hello<PartTask> {
        let part = if epochs.is_some() { &restarted_part(&self.part) } else { &self.part };
        let task = PartTask {
            name: self.graph.clone(),
            part: part.to_toml(),
            restarts: self.restart == Restart::Always,
            again: epochs,
        };
        Hello::new(&JOINS, self.settings.meet(), self.settings.terms(), task)
    }
}

/// The part of a restarted host: recordings of the earlier process stay, and new ones get other names.
fn restarted_part(part: &GraphFile) -> GraphFile {
    part.with_params(|kind, params| {
        if kind == "record" {
            params.remove("overwrite");
            params.insert("numbered".to_owned(), true.into());
        }
    })
}

pub(super) fn why_lost(name: &str, connected: Option<Connected>) -> anyhow::Error {
    let error = anyhow!("{name} is gone");
    match connected {
        Some(connected) => {
            drop(connected.channel);
            remote::explain(connected.remote, error, |_| {})
        }
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn recorders_go_on_under_another_name() {
        let text = r#"
            stage = [
                { id = "a", kind = "synth", params = { rate = "1k" } },
                { id = "b", kind = "record", params = { file = "b.sigmf-meta", overwrite = true } },
            ]
            edge = [{ from = "a", to = "b" }]
        "#;
        let kinds = grebe_stages::kinds();
        let read = |text: &str| GraphFile::parse(text, Path::new("part"), &kinds).unwrap();
        let part = restarted_part(&read(text));
        assert_eq!(read(&part.to_toml()), part, "it is a graph where it runs");
        let params = &part.stages()[1].params;
        assert_eq!((params["numbered"].as_bool(), params.get("overwrite")), (Some(true), None));
        assert_eq!(part.stages()[0].params["rate"].as_str(), Some("1k"));
    }
}
