//! One end of a copy: reads or writes the tree.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use grebe_connection::{Cancel, shown};
use grebe_remote::Channel;
use grebe_tree::{Fsync, Options, Progress, ReceiveTree, SendTree};

use super::figures::Outcome;
use super::lines::{CopyOptions, Task};
use super::path_text::PathText;
use super::recordings;
use crate::ending::Usage;

/// Runs this end's part. `is_fresh`: the receiver's destination is empty.
pub(super) fn run(
    task: &Task,
    copy_options: Option<&CopyOptions>,
    is_fresh: bool,
    channel: Channel,
    progress: &Arc<Progress>,
    cancel: &Cancel,
) -> Result<Outcome> {
    let options = copy_options.map(CopyOptions::options).transpose()?;
    let Channel { reader, writer, .. } = channel;
    let report = match task {
        Task::Send { sources, recordings, .. } => {
            let mut sources = paths(sources)?;
            // Temporary summaries exist until the end of the copy.
            let _borrowed = if *recordings { recordings::complete(&mut sources, cancel) } else { None };
            let tree = SendTree { sources, options, is_fresh };
            grebe_tree::send(reader, writer, &tree, progress, cancel)?
        }
        Task::Receive { destination, .. } => {
            let tree = ReceiveTree { destination: destination.path()?, options, is_fresh };
            grebe_tree::receive(reader, writer, &tree, progress, cancel)?
        }
    };
    Ok(Outcome::of(report, &progress.snapshot()))
}

/// Runs both parts, within this machine.
pub(super) fn copy(
    sources: Vec<PathBuf>,
    destination: &Path,
    copy_options: &CopyOptions,
    progress: &Arc<Progress>,
    cancel: &Cancel,
) -> Result<Outcome> {
    let tree = SendTree { sources, options: Some(copy_options.options()?), is_fresh: false };
    let report = grebe_tree::copy(&tree, destination, progress, cancel)?;
    Ok(Outcome::of(report, &progress.snapshot()))
}

impl CopyOptions {
    fn options(&self) -> Result<Options> {
        let mut options = if self.archive { Options::archive() } else { Options::default() };
        options.recursive = self.recursive;
        options.attributes = self.xattrs;
        options.checksum = self.checksum;
        options.dry_run = self.dry_run;
        options.delete = self.delete;
        options.force = self.force;
        options.whole_file = self.whole_file;
        options.index = self.index;
        options.fsync = match (self.fsync, self.fsync_file) {
            (_, true) => Fsync::File,
            (true, _) => Fsync::Batch,
            _ => Fsync::Never,
        };
        options.one_file_system = self.one_file_system;
        options.progressive = self.progressive;
        options.only_wanted = self.only_wanted;
        options.short_hashes = self.short_hashes;
        options.first.clone_from(&self.first);
        options.exclude.clone_from(&self.exclude);
        options.also_look_in = self.also_search.iter().map(PathText::as_it_is).collect::<Result<_>>()?;
        Ok(options)
    }
}

/// Expands patterns in paths from the other end, because no shell has done so.
fn paths(named: &[PathText]) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for named in named {
        let path = named.path()?;
        match path.to_str().filter(|text| text.contains(['*', '?', '['])) {
            Some(pattern) if path.symlink_metadata().is_err() => paths.extend(matches(pattern, &path)?),
            _ => paths.push(path),
        }
    }
    Ok(paths)
}

fn matches(pattern: &str, path: &Path) -> Result<Vec<PathBuf>> {
    // As in a shell, a pattern matches a leading dot only if it has one.
    let as_a_shell = glob::MatchOptions {
        require_literal_separator: true,
        require_literal_leading_dot: true,
        ..glob::MatchOptions::new()
    };
    let found = glob::glob_with(pattern, as_a_shell);
    let found = found.with_context(|| Usage(format!("{} is neither a path nor a pattern", shown(path))))?;
    let found: Vec<_> = found.filter_map(Result::ok).collect();
    if found.is_empty() {
        return Err(Usage(format!("nothing matches {}", shown(path))).into());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_looked_for_and_names_with_such_letters_are_names() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.bin", "b.bin", ".c.bin", "[x]*"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        let found = |pattern: &str| {
            let named = PathText::of(folder.path().join(pattern).as_os_str().as_encoded_bytes());
            let found = paths(&[named]).map_err(|error| format!("{error:#}"))?;
            let names = found.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
            Ok::<_, String>(names.collect::<Vec<_>>())
        };
        assert_eq!(found("*.bin").unwrap(), ["a.bin", "b.bin"]);
        assert_eq!(found("[x]*").unwrap(), ["[x]*"], "it is there");
        assert_eq!(found("none").unwrap(), ["none"], "whoever opens it says that it is not there");
        assert!(found("*.dat").unwrap_err().contains("nothing matches"));
    }
}
