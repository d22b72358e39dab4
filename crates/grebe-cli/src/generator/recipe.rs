//! Which generator a person wants.

use std::process::Command;

use anyhow::{Context as _, Result};
use clap::Parser as _;
use grebe_stages::Uri;

use crate::cli::{self, Cli};
use crate::ending::Usage;

/// What a person wants to be started: `sg ...`, `play ...`, or another program that writes frames to its standard output.
pub(crate) struct Recipe {
    pub(super) command: Command,
    /// Where its stream is read.
    pub(crate) uri: Uri,
    /// Whether it takes commands.
    pub(super) is_remote: bool,
}

impl Recipe {
    /// Reads the words of a command; `uri` is where its stream should go, where the command does not say.
    pub(crate) fn parse(text: &str, uri: Option<&Uri>) -> Result<Self> {
        let mut words = split(text)?;
        let name = words
            .first()
            .cloned()
            .ok_or_else(|| Usage("--spawn: give a command, as 'sg --rate 1M'".into()))?;
        if !matches!(name.as_str(), "sg" | "play") {
            let mut command = Command::new(&name);
            command.args(&words[1..]);
            return Ok(Self { command, uri: uri.cloned().unwrap_or(Uri::Pipe), is_remote: false });
        }
        if !words.iter().any(|word| word == "--to" || word.starts_with("--to=")) {
            words.extend(["--to".into(), uri.unwrap_or(&Uri::Pipe).to_string()]);
        }
        let read = Cli::try_parse_from(std::iter::once("grebe".to_owned()).chain(words.iter().cloned()));
        let read = read.map_err(|error| {
            let text = error.render().to_string();
            Usage(format!(
                "--spawn: {}",
                text.lines().next().unwrap_or_default().trim_start_matches("error: ")
            ))
        })?;
        let (to, is_remote) = match read.command {
            Some(cli::Command::Sg(sg)) => (sg.to.clone(), sg.as_play().is_none()),
            Some(cli::Command::Play(play)) => (play.to, false),
            _ => (Uri::Pipe, false),
        };
        let mut command = this_command()?;
        command.args(&words).arg(if is_remote { "--remote" } else { "--tethered" });
        Ok(Self { command, uri: uri.cloned().unwrap_or(to), is_remote })
    }
}

/// This command, to be started once more.
pub(crate) fn this_command() -> Result<Command> {
    Ok(Command::new(std::env::current_exe().context("cannot find the grebe command itself")?))
}

/// Splits words as a shell does: at spaces, except between quotation marks.
fn split(text: &str) -> Result<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in text.chars() {
        match (c, quote) {
            (c, Some(mark)) if c == mark => quote = None,
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err(Usage(format!("--spawn: a quotation mark is not closed in: {text}")).into());
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_told_apart_as_by_a_shell() {
        assert_eq!(split(" sg  --wave 'a b.wav' \"\" x").unwrap(), ["sg", "--wave", "a b.wav", "", "x"]);
        assert!(split("sg 'open").is_err());
    }

    #[test]
    fn a_generator_sends_where_the_viewer_looks() {
        let uri = |text, uri: Option<&str>| {
            let uri: Option<Uri> = uri.map(|uri| uri.parse().unwrap());
            Recipe::parse(text, uri.as_ref()).map(|recipe| (recipe.uri.to_string(), recipe.is_remote))
        };
        assert_eq!(uri("sg --rate 1M", None).unwrap(), ("pipe:".into(), true));
        assert_eq!(uri("sg", Some("shm://lab")).unwrap(), ("shm://lab".into(), true));
        assert_eq!(uri("sg --to shm://lab", None).unwrap(), ("shm://lab".into(), true));
        assert_eq!(uri("sg --wave a.wav", None).unwrap(), ("pipe:".into(), false));
        assert_eq!(uri("play a.wav", None).unwrap(), ("pipe:".into(), false));
        assert_eq!(uri("my-adc --fast", None).unwrap(), ("pipe:".into(), false));
        assert!(uri("sg --rate much", None).unwrap_err().to_string().contains("much"));
        assert!(uri("", None).is_err());
    }
}
