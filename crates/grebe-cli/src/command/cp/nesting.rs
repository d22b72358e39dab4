//! Copies of a directory into an existing one, where it keeps its name, as with `cp`.

use std::path::PathBuf;

use anyhow::Result;

use super::lines::Task;
use super::path_text::PathText;
use crate::cli::Location;

/// Note for the first time that a directory is copied into an existing one; `None` for contents and for several sources.
pub(super) fn note(sources: &[Location], destination: &str) -> Option<String> {
    let [source] = sources else { return None };
    let source = source.to_string();
    let (_, name) = source.rsplit_once(['/', ':']).unwrap_or(("", &source));
    let between = if destination.ends_with(['/', ':']) { "" } else { "/" };
    (!name.is_empty()).then(|| {
        format!(
            "{destination} exists: the copy is {destination}{between}{name}; to copy the contents of {source}, add a slash: {source}/"
        )
    })
}

/// Name of a single source, which it keeps in an existing directory; `None` for contents.
pub(super) fn kept_name(sources: &[PathText]) -> Option<PathText> {
    let [source] = sources else { return None };
    let name = source.bytes().rsplit(|byte| *byte == b'/').next()?;
    (!name.is_empty()).then(|| PathText::of(name))
}

/// Whether this end sends a single directory.
pub(super) fn sends_directory(task: &Task) -> bool {
    let Task::Send { sources, .. } = task else { return false };
    kept_name(sources).is_some() && sources[0].path().is_ok_and(|path| path.is_dir())
}

/// Whether this end receives the source into an existing directory, under a name that is not there yet.
pub(super) fn receives_inside(task: &Task) -> bool {
    let Task::Receive { destination, name: Some(name) } = task else { return false };
    let nested = || -> Result<(PathBuf, PathBuf)> {
        let destination = destination.path()?;
        Ok((destination.join(name.as_it_is()?), destination))
    };
    nested().is_ok_and(|(nested, destination)| grebe_tree::nests(&destination) && !nested.exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_directory_keeps_its_name() {
        let name = |sources: &[&str]| {
            let sources: Vec<_> = sources.iter().map(|source| PathText::of(source.as_bytes())).collect();
            kept_name(&sources).map(|name| String::from_utf8(name.bytes().to_vec()).unwrap())
        };
        assert_eq!(name(&["a/b"]).as_deref(), Some("b"));
        assert_eq!(name(&["a"]).as_deref(), Some("a"));
        assert_eq!(name(&["a/"]), None, "contents");
        assert_eq!(name(&["a", "b"]), None);
    }
}
