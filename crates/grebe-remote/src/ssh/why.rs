//! Reasons why a remote command did not start or ended, with a remedy.

use crate::hello::{Call, VERSION};
use crate::host::SshHost;

/// End of a command, or of `ssh` itself.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// Exit status; `None`: killed by a signal.
    pub(crate) status: Option<i32>,
    /// Last lines of output.
    pub(crate) said: String,
    /// Those that the login printed before the command began.
    pub(crate) printed: String,
    /// Reason for giving up the login.
    pub(crate) stuck: Option<String>,
}

/// The intended command, for error messages.
pub(crate) struct Purpose<'a> {
    pub(crate) host: &'a SshHost,
    /// Name of grebe on the remote host.
    pub(crate) program: &'a str,
    /// The command.
    pub(crate) call: &'a Call,
}

impl Purpose<'_> {
    /// Reason why it is not ready.
    pub(crate) fn why(&self, ended: &Ended) -> String {
        let Self { host, program, call: Call { arguments, instead, .. } } = self;
        let has = |words: &[&str]| words.iter().any(|word| ended.said.to_lowercase().contains(word));
        let last = ended.last_line();
        if let Some(why) = &ended.stuck {
            return self.why_stuck(why, &ended.printed);
        }
        match ended.status {
            Some(255) if has(&["host key verification failed", "identification has changed"]) => {
                format!("ssh does not trust the key of {host}: {last} (`ssh {host}` by hand says more)")
            }
            Some(255) if ended.is_refused() => {
                format!("{host} refused the login: {last} (`ssh {host}` by hand has to work first)")
            }
            Some(255) => format!("ssh cannot reach {host}: {last}"),
            _ if ended.is_missing(program) => {
                let can_bring = self.call.can_bootstrap && cfg!(unix);
                let bring = if can_bring { ", or bring this one along: --bootstrap" } else { "" };
                format!(
                    "`{program}` is not installed on {host}: install grebe there, or give its path: --remote-path /path/to/grebe{bring}"
                )
            }
            Some(126) => format!("`{program}` cannot be run at {host}: {last}"),
            Some(2) if ended.is_too_old() => format!(
                "the grebe at {host} is too old to be started from here: install {} there, or {instead}",
                VERSION
            ),
            Some(_) => format!("`{program} {arguments}` at {host} ended: {last}"),
            None => format!("ssh to {host} was killed: {last}"),
        }
    }

    /// Reason for giving up the login.
    fn why_stuck(&self, why: &str, printed: &str) -> String {
        let Self { host, program, call: Call { arguments, .. } } = self;
        let end = printed.trim().lines().last().unwrap_or_default();
        let letters = end.chars().count();
        let end: String = end.chars().skip(letters.saturating_sub(SHOWN_LETTERS)).collect();
        let printed = if end.is_empty() {
            "nothing was printed".to_owned()
        } else {
            format!("the last it printed is \"{end}\"")
        };
        format!(
            "the login at {host} does not come to run `{program} {arguments}`: {why}, and {printed}; a startup file there (.bashrc, \
             .zshenv, .cshrc, config.fish) waits for input, starts another shell or prints without end: `ssh {host} true` has to end by \
             itself"
        )
    }
}

impl Ended {
    /// Whether the remote shell did not find the program.
    pub(crate) fn is_missing(&self, program: &str) -> bool {
        let said = self.said.to_lowercase();
        let is_said = || ["command not found", "not recognized"].iter().any(|words| said.contains(words));
        self.stuck.is_none()
            && (self.status == Some(127)
                || self.status != Some(255) && (is_said() || self.is_unknown(program)))
    }

    /// Whether the remote shell does not know a word. In all languages, shells of Windows quote the word or begin a
    /// line with it.
    pub(crate) fn is_unknown(&self, word: &str) -> bool {
        let is_named = |line: &str| {
            let is_quoted = |(at, _): (usize, &str)| {
                let (before, after) =
                    (line[..at].chars().next_back(), line[at + word.len()..].chars().next());
                before.is_some_and(is_quote) && after.is_some_and(is_quote)
            };
            line.strip_prefix(word).is_some_and(|rest| rest.starts_with(" : "))
                || line.match_indices(word).any(is_quoted)
        };
        self.stuck.is_none() && self.status != Some(255) && self.said.lines().any(is_named)
    }

    /// Whether the remote grebe does not know its arguments.
    pub(crate) fn is_too_old(&self) -> bool {
        let words =
            ["unrecognized subcommand", "unexpected argument", "required arguments were not provided"];
        self.status == Some(2) && words.iter().any(|words| self.said.contains(words))
    }

    /// Whether the login was refused.
    pub(crate) fn is_refused(&self) -> bool {
        let said = self.said.to_lowercase();
        self.status == Some(255)
            && ["permission denied", "too many authentication failures"]
                .iter()
                .any(|words| said.contains(words))
    }

    /// Its last line of output.
    pub(crate) fn last_line(&self) -> &str {
        let last = self.said.lines().map(str::trim).rfind(|line| !line.is_empty());
        last.unwrap_or("it gave no reason")
    }
}

/// Anything but ASCII may be a quotation mark in another code page.
fn is_quote(letter: char) -> bool {
    matches!(letter, '\'' | '"' | '`') || !letter.is_ascii()
}

const SHOWN_LETTERS: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_without_a_ready_line_says_what_to_do() {
        let host = SshHost { user: Some("me".to_owned()), host: "lab".to_owned(), port: None };
        let call = Call {
            arguments: "cp --serve",
            protocol: 1,
            does: "copies",
            instead: "say --bootstrap",
            can_bootstrap: true,
        };
        let purpose = Purpose { host: &host, program: "grebe", call: &call };
        for (status, said, words) in [
            (
                Some(255),
                "ssh: connect to host lab port 22: Connection refused",
                "cannot reach me@lab: ssh: connect",
            ),
            (Some(255), "ssh: Could not resolve hostname lab", "cannot reach"),
            (
                Some(255),
                "banner\nme@lab: Permission denied (publickey).\n",
                "refused the login: me@lab: Permission",
            ),
            (Some(255), "Host key verification failed.", "does not trust the key"),
            (Some(127), "sh: 1: grebe: not found", "--remote-path"),
            (Some(1), "grebe: Command not found.", "--remote-path"),
            (Some(1), "Der Befehl \"grebe\" ist entweder falsch geschrieben oder", "--remote-path"),
            (Some(126), "sh: 1: grebe: Permission denied", "cannot be run"),
            (Some(2), "error: unexpected argument '--serve' found", "too old"),
            (Some(2), "error: unrecognized subcommand 'cp'", "or say --bootstrap"),
            (Some(2), "error: the following required arguments were not provided:\n  <URI>", "too old"),
            (Some(1), "grebe: cannot open 0.0.0.0:80", "`grebe cp --serve` at me@lab ended: grebe: cannot"),
            (None, "", "was killed: it gave no reason"),
        ] {
            let why = purpose.why(&Ended { status, said: said.to_owned(), ..Ended::default() });
            assert!(why.contains(words), "{why}");
        }
    }
}
