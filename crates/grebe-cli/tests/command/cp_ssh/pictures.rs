//! A scope over `ssh` whose link dies, heals, or is left: in a terminal, as a person sees it.

use std::fs;

use super::sshd::Sshd;
use crate::support::screen::Screen;
use crate::support::{program, signal, text, wait_until};

/// A scope in a terminal, and how its `ssh` is started.
struct Scope {
    screen: Screen,
    ssh: String,
}

impl Scope {
    fn start(sshd: &Sshd) -> Option<Self> {
        let (ssh, program) = (sshd.ssh(), program());
        let view = [
            "view",
            "ssh://lab/synth:sine?rate=100k",
            "--term",
            "--no-session",
            "--ssh",
            &ssh,
            "--remote-path",
        ];
        let screen = Screen::start(&[&view[..], &[&program]].concat())?;
        screen.sees("LIVE");
        Some(Self { screen, ssh })
    }

    fn sees(&self, words: &str) {
        self.screen.sees(words);
    }

    /// The `ssh` processes that it has started and that run still.
    fn all_ssh(&self) -> Vec<u32> {
        let config = self.ssh.split_whitespace().last().unwrap();
        let is_it = |id: &u32| {
            let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            let line = text(&line).replace('\0', " ");
            line.starts_with("ssh ") && line.contains(config) && line.contains("serve --stdio")
        };
        let all = fs::read_dir("/proc").unwrap();
        all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).filter(is_it).collect()
    }

    fn ssh(&self) -> u32 {
        let found = self.all_ssh();
        assert_eq!(found.len(), 1, "{found:?}");
        found[0]
    }

    fn quit(mut self) {
        self.screen.quit();
        let left = self.all_ssh();
        left.iter().for_each(|id| signal("-KILL", *id));
        assert!(left.is_empty(), "{left:?} goes on without its scope");
    }
}

#[test]
fn a_dead_link_is_reported_and_a_short_outage_is_not() {
    let Some(sshd) = Sshd::start() else { return };
    let Some(scope) = Scope::start(&sshd) else { return };
    let ssh = scope.ssh();
    signal("-STOP", ssh);
    scope.sees("nothing has come from the server for");
    signal("-CONT", ssh);
    scope.screen.sees_no("nothing has come");
    scope.sees("LIVE");
    assert_eq!(scope.ssh(), ssh, "the same connection");
    scope.quit();
}

#[test]
fn a_link_that_stays_dead_is_opened_again() {
    let Some(sshd) = Sshd::start() else { return };
    let Some(scope) = Scope::start(&sshd) else { return };
    let ssh = scope.ssh();
    signal("-STOP", ssh);
    scope.sees("trying again");
    scope.screen.sees_no("trying again");
    scope.sees("LIVE");
    assert_ne!(scope.ssh(), ssh);
    // A server that sends its viewer away, or dies, is started again, too.
    signal("-KILL", scope.ssh());
    scope.sees("trying again");
    scope.screen.sees_no("trying again");
    scope.sees("LIVE");
    scope.quit();
}

#[test]
fn no_ssh_process_remains() {
    let Some(sshd) = Sshd::start() else { return };
    let Some(scope) = Scope::start(&sshd) else { return };
    signal("-STOP", scope.ssh());
    scope.sees("nothing has come");
    scope.quit();

    let Some(mut scope) = Scope::start(&sshd) else { return };
    let ssh = scope.ssh();
    let view = fs::read_to_string(format!("/proc/{ssh}/status")).unwrap();
    let view = view.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim().parse().unwrap();
    signal("-KILL", view);
    let _ = scope.screen.child.wait();
    wait_until("ssh goes on without its scope", || scope.all_ssh().is_empty());
}
