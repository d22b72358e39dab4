//! Set of recordings on several disks that belong together, and their possible paths.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A set of alternating recordings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StripeSet {
    /// Distinguishes them from others of the same names.
    pub(crate) id: String,
    /// Index of this one.
    pub(crate) member: usize,
    /// The metadata of all of them, as they were when they were made: absolute paths.
    pub(crate) recordings: Vec<String>,
}

impl StripeSet {
    /// Whether a recorder can have written it.
    pub(super) fn is_valid(&self) -> bool {
        self.member < self.recordings.len() && self.recordings.len() <= MEMBERS_MAX
    }

    /// Possible paths of another member: relative to this one, if the disks have moved, or its original path.
    pub(super) fn places(&self, own: &Path, other: usize) -> [PathBuf; 2] {
        let was = PathBuf::from(&self.recordings[other]);
        let own = std::path::absolute(own).unwrap_or_else(|_| own.to_owned());
        let moved =
            self.recordings.get(self.member).and_then(|own_was| moved(&own, Path::new(own_was), &was));
        [moved.unwrap_or_else(|| was.clone()), was]
    }
}

/// Path that relates to `own` as `other_was` relates to `own_was`.
fn moved(own: &Path, own_was: &Path, other_was: &Path) -> Option<PathBuf> {
    let common = own_was.components().zip(other_was.components()).take_while(|(a, b)| a == b).count();
    let above = own_was.components().count() - common;
    let folder = own.ancestors().nth(above)?;
    let rest: PathBuf = other_was.components().skip(common).collect();
    rest.components().all(|part| matches!(part, Component::Normal(_))).then(|| folder.join(rest))
}

/// More disks than a recorder has; a file that names more is not searched for them.
const MEMBERS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_disk_is_found_where_both_went() {
        let set = StripeSet {
            id: "1".into(),
            member: 0,
            recordings: vec!["/mnt/a/day/x.sigmf-meta".into(), "/mnt/b/x.sigmf-meta".into()],
        };
        let places = |own: &str| set.places(Path::new(own), 1);
        let was = PathBuf::from("/mnt/b/x.sigmf-meta");
        assert_eq!(places("/mnt/a/day/x.sigmf-meta"), [was.clone(), was.clone()]);
        assert_eq!(
            places("/archive/7/a/day/x.sigmf-meta"),
            ["/archive/7/b/x.sigmf-meta".into(), was.clone()]
        );
        // Too near the root for both.
        assert_eq!(places("/x.sigmf-meta"), [was.clone(), was]);
    }
}
