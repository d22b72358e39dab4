//! Files to read, in their order.

use std::collections::VecDeque;

use crate::blocks::describes;
use crate::directories::Directories;
use crate::error::Result;
use crate::exclude::Exclude;
use crate::options::Options;
use crate::send::job::{How, Wanted};

/// Files that match `first`, then the others in order of the answers.
pub(super) struct ReadyFiles {
    patterns: Exclude,
    /// Descriptions of recordings precede their samples.
    is_progressive: bool,
    first: VecDeque<(Wanted, How)>,
    rest: VecDeque<(Wanted, How)>,
    bytes: u64,
    /// The rest waits, because more files for the front may still be found.
    is_held: bool,
}

impl ReadyFiles {
    pub(super) fn new(options: &Options) -> Result<Self> {
        Ok(Self {
            patterns: Exclude::new(&options.first)?,
            is_progressive: options.progressive,
            first: VecDeque::new(),
            rest: VecDeque::new(),
            bytes: 0,
            is_held: !options.first.is_empty(),
        })
    }

    pub(super) fn push(&mut self, file: Wanted, how: How, directories: &Directories) {
        self.bytes += file.bytes;
        let is_first = self.is_progressive && describes(&file.name)
            || !self.patterns.is_empty()
                && self.patterns.matches(&directories.path_of(file.place, &file.name), false);
        if is_first { &mut self.first } else { &mut self.rest }.push_back((file, how));
    }

    pub(super) fn pop(&mut self) -> Option<(Wanted, How)> {
        let next = self.first.pop_front();
        let next = if self.is_held { next } else { next.or_else(|| self.rest.pop_front()) }?;
        self.bytes -= next.0.bytes;
        Some(next)
    }

    /// Puts back the file that was taken last.
    pub(super) fn put_back(&mut self, file: Wanted, how: How) {
        self.bytes += file.bytes;
        self.first.push_front((file, how));
    }

    /// Releases the waiting files: all names are known, or more than fit.
    pub(super) fn release(&mut self) {
        self.is_held = false;
    }

    /// Whether no file can be taken now.
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_empty() && (self.is_held || self.rest.is_empty())
    }

    /// Number of waiting files, including those that cannot be taken yet.
    pub(super) fn files(&self) -> usize {
        self.first.len() + self.rest.len()
    }

    /// Bytes of all waiting files.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::Directory;

    fn ready(options: Options, names: &[&str]) -> (ReadyFiles, tempfile::TempDir) {
        let root = tempfile::tempdir().unwrap();
        let directories = Directories::default();
        let top = directories.add_root(Directory::open(root.path()).unwrap(), b"");
        let mut ready = ReadyFiles::new(&options).unwrap();
        for (name, id) in names.iter().zip(0..) {
            let file = Wanted {
                id,
                place: top,
                name: name.as_bytes().into(),
                follows: false,
                bytes: 10,
                modified_ns: 0,
                touched: 0,
                attribute_bytes: 0,
            };
            ready.push(file, How::Whole, &directories);
        }
        (ready, root)
    }

    fn names(ready: &mut ReadyFiles) -> Vec<String> {
        std::iter::from_fn(|| ready.pop())
            .map(|(file, _)| String::from_utf8(file.name.into()).unwrap())
            .collect()
    }

    #[test]
    fn files_of_first_precede_and_the_others_wait_for_all_names() {
        let options = Options { first: vec!["*.json".to_owned()], ..Options::default() };
        let (mut ready, _root) = ready(options, &["a", "b.json", "c", "d.json"]);
        assert_eq!(names(&mut ready), ["b.json", "d.json"]);
        assert!(ready.is_empty() && ready.files() == 2);
        ready.release();
        assert_eq!((names(&mut ready), ready.bytes()), (vec!["a".to_owned(), "c".to_owned()], 0));
    }

    #[test]
    fn metadata_of_recordings_is_sent_without_waiting() {
        let options = Options { progressive: true, ..Options::default() };
        let (mut ready, _root) = ready(options, &["a", "x.sigmf-data", "x.sigmf-meta"]);
        assert_eq!(names(&mut ready), ["x.sigmf-meta", "a", "x.sigmf-data"]);
        let (mut plain, _root) = self::ready(Options::default(), &["a", "x.sigmf-meta"]);
        assert_eq!(names(&mut plain), ["a", "x.sigmf-meta"]);
    }

    #[test]
    fn a_file_put_back_is_next() {
        let (mut ready, _root) = ready(Options::default(), &["a", "b"]);
        let (file, how) = ready.pop().unwrap();
        ready.put_back(file, how);
        assert_eq!(names(&mut ready), ["a", "b"]);
    }
}
