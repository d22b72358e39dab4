//! Names that the destination cannot distinguish because its file system ignores case.
//!
//! The file system decides which names are equal. Names of a directory that differ only in case are found by
//! their lower case. A probe file then shows whether the file system takes them for one.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::io;

use crate::directories::Place;
use crate::system::{Directory, Name};

/// Names of the present directory. Keeps names with a capital letter or a letter beyond ASCII, some 20 bytes
/// and the name each. Names arrive in byte order, in which these precede their possible equals.
#[derive(Debug, Default)]
pub(super) struct Met {
    place: Place,
    names: Vec<u8>,
    /// Start and end of a name, by the hash of its lower case.
    kept: HashMap<u64, (usize, usize)>,
    hasher: RandomState,
}

impl Met {
    /// Bytes that it holds, including some 50 for each name.
    pub(super) fn bytes(&self) -> usize {
        self.names.len() + 50 * self.kept.len()
    }

    /// Earlier name in the same directory that differs only in case. `keeps_all` for names in any order.
    pub(super) fn meet(&mut self, place: Place, name: &[u8], keeps_all: bool) -> Option<Box<[u8]>> {
        if place != self.place {
            *self = Self { place, ..Self::default() };
        }
        let is_kept = keeps_all || name.iter().any(|byte| byte.is_ascii_uppercase() || !byte.is_ascii());
        if !is_kept && self.kept.is_empty() {
            return None;
        }
        let hash = self.hasher.hash_one(small_letters(name));
        if let Some(&(start, end)) = self.kept.get(&hash) {
            return Some(&self.names[start..end]).filter(|first| *first != name).map(Box::from);
        }
        if is_kept {
            let start = self.names.len();
            self.names.extend_from_slice(name);
            self.kept.insert(hash, (start, self.names.len()));
        }
        None
    }
}

/// Whether a directory takes two names for one: creates a probe file that ends like the first name, and looks
/// it up by the second.
pub(super) fn are_one(directory: &Directory, ours: &[u8], one: &[u8], other: &[u8]) -> io::Result<bool> {
    let mut differ = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    // Not inside a character.
    while differ > 0 && one.get(differ).is_some_and(|byte| byte & 0xc0 == 0x80) {
        differ -= 1;
    }
    // A longer ending would not fit into a name, and differs no more.
    let end =
        |name: &[u8]| String::from_utf8_lossy(&name[differ..]).chars().take(ENDS_LETTERS).collect::<String>();
    let [one, other] = [one, other].map(|name| [ours, b"-", end(name).as_bytes()].concat());
    directory.create_file(&one, 0o600)?;
    let found = directory.metadata(&other);
    directory.remove_file(&one)?;
    match found {
        Ok(_) => Ok(one != other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// If the file system ignores case, removes names from `unlisted` that were listed in another case. `false`:
/// such names exist but cannot be identified.
pub(super) fn spare_listed(
    directory: &Directory,
    there: &[Name],
    listed: &HashSet<Box<[u8]>>,
    unlisted: &mut Vec<Box<[u8]>>,
) -> io::Result<bool> {
    let set = |names: &[Name]| names.iter().map(|name| name.bytes.clone()).collect::<HashSet<_>>();
    let before = set(there);
    let mut found: Vec<_> =
        listed.difference(&before).filter(|name| directory.metadata(name).is_ok()).collect();
    if found.is_empty() {
        return Ok(true);
    }
    // Names created meanwhile exist by now.
    let now = set(&directory.names()?);
    found.retain(|name| !now.contains(&***name));
    let file = |name: &[u8]| {
        let metadata = directory.metadata(name).ok()?;
        (metadata.inode > 0).then_some((metadata.device, metadata.inode))
    };
    let (mut by_letters, mut by_file) = (HashMap::new(), HashMap::new());
    for (at, name) in found.iter().enumerate() {
        by_letters.insert(small_letters(name), at);
        file(name).map(|file| by_file.insert(file, at));
    }
    let mut is_met = vec![false; found.len()];
    unlisted.retain(|name| {
        let is_by_file = || file(name).and_then(|file| by_file.get(&file));
        // Not every file system provides inode numbers.
        let at = by_letters.get(&small_letters(name)).or_else(is_by_file);
        at.inspect(|at| is_met[**at] = true).is_none()
    });
    Ok(is_met.into_iter().all(|is_met| is_met))
}

/// Common form of names that differ only in case.
fn small_letters(name: &[u8]) -> String {
    match str::from_utf8(name) {
        Ok(name) if name.is_ascii() => name.to_ascii_lowercase(),
        // Via upper case, because some letters are equal only that way.
        _ => String::from_utf8_lossy(name).to_uppercase().to_lowercase(),
    }
}

/// With our prefix, a name of this length fits into 255 bytes.
const ENDS_LETTERS: usize = 50;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn met(names: &[&str], keeps_all: bool) -> Vec<(String, String)> {
        let mut met = Met::default();
        let text = |name: &[u8]| String::from_utf8(name.to_vec()).unwrap();
        let ones = names.iter().filter_map(|name| {
            met.meet(7, name.as_bytes(), keeps_all).map(|first| (text(&first), (*name).to_owned()))
        });
        ones.collect()
    }

    #[test]
    fn names_that_differ_only_in_case_are_met_and_others_are_not() {
        let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
        assert_eq!(met(&["Logo.png", "a", "logo.pn", "logo.png"], false), [pair("Logo.png", "logo.png")]);
        assert_eq!(met(&["É", "é", "ß"], false), [pair("É", "é")]);
        assert_eq!(met(&["STRASSE", "straße"], false), [pair("STRASSE", "straße")]);
        assert_eq!(met(&["a", "b", "ab", "no.PNG"], false), []);
        assert_eq!(met(&["logo", "Logo"], true), [pair("logo", "Logo")]);
        assert_eq!(met(&["Logo", "Logo"], true), [], "the same name does not conflict");
        let mut met = Met::default();
        assert!(
            met.meet(1, b"A", false).is_none() && met.meet(2, b"a", false).is_none(),
            "another directory"
        );
        assert!(met.meet(3, b"\xff\xfe", false).is_none());
    }

    #[test]
    fn a_case_sensitive_file_system_is_recognised_and_no_test_file_stays() {
        let root = tempfile::tempdir().unwrap();
        let directory = Directory::open(root.path()).unwrap();
        let long = "x".repeat(255);
        for (one, other) in [("A", "a"), ("Same", "same"), (&long, &long.to_uppercase())] {
            let are = are_one(&directory, b".grebe-t1-1", one.as_bytes(), other.as_bytes()).unwrap();
            assert_eq!(are, root_ignores_case(&root), "{one} {other}");
        }
        assert!(directory.names().unwrap().is_empty());
    }

    #[test]
    fn a_name_made_during_the_check_is_not_taken_for_another() {
        let root = tempfile::tempdir().unwrap();
        let directory = Directory::open(root.path()).unwrap();
        std::fs::write(root.path().join("Old"), "").unwrap();
        let there = directory.names().unwrap();
        std::fs::write(root.path().join("new"), "").unwrap();
        let listed = HashSet::from([Box::from(&b"new"[..])]);
        let mut unlisted = vec![Box::from(&b"Old"[..])];
        assert!(spare_listed(&directory, &there, &listed, &mut unlisted).unwrap());
        assert_eq!(unlisted.len(), 1);
    }

    fn root_ignores_case(root: &tempfile::TempDir) -> bool {
        std::fs::write(root.path().join("x"), "").unwrap();
        let ignores = root.path().join("X").exists();
        std::fs::remove_file(root.path().join("x")).unwrap();
        ignores
    }

    proptest! {
        #[test]
        fn an_ordered_list_finds_all_names_that_differ_only_in_ascii_case(names in prop::collection::btree_set("[aAbB]{1,3}", 1..12)) {
            let mut met = Met::default();
            let left_out = names.iter().filter(|name| met.meet(1, name.as_bytes(), false).is_some()).count();
            let small: HashSet<_> = names.iter().map(|name| name.to_lowercase()).collect();
            prop_assert_eq!(names.len() - left_out, small.len());
        }
    }
}
