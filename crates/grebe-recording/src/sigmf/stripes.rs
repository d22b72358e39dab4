//! A stream that is recorded on several disks, which take turns: a recording on each of them, and all of them as one.
//!
//! ```text
//!   /disk1/NAME.sigmf-meta   captures  0 .. 8M, 16M .. 24M, ...   each a recording with gaps, which any program reads
//!   /disk2/NAME.sigmf-meta   captures  8M .. 16M, 24M .. 28M, ...
//! ```
//! Each says which others there are, and each of its captures where it stands in the whole: so one of them opens all of them, whichever
//! of the recorder's moments was its last.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::archive::Files;
use super::collection::members;
use super::layout::Base;
use super::reader::{Opened, open_one};
use crate::error::Error;
use crate::sample_file::{SampleFile, StripeMember};

/// Which recordings take turns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StripeSet {
    /// What tells them from others of the same names.
    pub(crate) id: String,
    /// Which of them this is.
    pub(crate) member: usize,
    /// The metadata of all of them, as they were when they were made: absolute paths.
    pub(crate) recordings: Vec<String>,
}

impl StripeSet {
    /// Whether it can be what a recorder wrote.
    pub(super) fn is_valid(&self) -> bool {
        self.member < self.recordings.len() && self.recordings.len() <= MEMBERS_MAX
    }

    /// Where another of them may be: from here as it was from there, where the disks are at other places now, or where it was.
    fn places(&self, own: &Path, other: usize) -> [PathBuf; 2] {
        let was = PathBuf::from(&self.recordings[other]);
        let own = std::path::absolute(own).unwrap_or_else(|_| own.to_owned());
        let moved =
            self.recordings.get(self.member).and_then(|own_was| moved(&own, Path::new(own_was), &was));
        [moved.unwrap_or_else(|| was.clone()), was]
    }
}

/// Where `other_was` is, seen from `own` as it was seen from `own_was`.
fn moved(own: &Path, own_was: &Path, other_was: &Path) -> Option<PathBuf> {
    let common = own_was.components().zip(other_was.components()).take_while(|(a, b)| a == b).count();
    let above = own_was.components().count() - common;
    let folder = own.ancestors().nth(above)?;
    let rest: PathBuf = other_was.components().skip(common).collect();
    rest.components().all(|part| matches!(part, Component::Normal(_))).then(|| folder.join(rest))
}

/// All the recordings that belong to one that was opened, as one.
pub(super) fn open_all(path: &Path, first: Opened) -> Result<SampleFile, Error> {
    let Some((set, _)) = &first.stripes else { return Ok(first.file) };
    let set = set.clone();
    let mut notes: Vec<String> = first.file.notes().to_vec();
    let mut is_whole = true;
    let mut members = Vec::new();
    let mut own = Some(first);
    for number in 0..set.recordings.len() {
        let member = if number == set.member { own.take() } else { other(path, &set, number, &mut notes) };
        let Some(Opened { file, stripes: Some((_, stripes)) }) = member else {
            is_whole &= number == set.member;
            continue;
        };
        let is_alike = |StripeMember { file: first, .. }: &StripeMember| {
            let kind = |file: &SampleFile| (file.format(), file.channels(), file.sample_rate_hz());
            kind(first) == kind(&file) && first.source_count() == file.source_count()
        };
        if !members.first().is_none_or(is_alike) {
            is_whole = false;
            notes.push(format!(
                "{}: is of another kind than the others, and left out",
                set.recordings[number]
            ));
            continue;
        }
        if number != set.member {
            notes.extend(
                file.notes().iter().filter(|&note| !notes.contains(note)).cloned().collect::<Vec<_>>(),
            );
        }
        members.push(StripeMember { file, stripes });
    }
    Ok(SampleFile::striped(members, notes)?.all_there(is_whole))
}

/// One of the others, where it is there; why not is noted.
fn other(path: &Path, set: &StripeSet, number: usize, notes: &mut Vec<String>) -> Option<Opened> {
    let mut why = None;
    for place in set.places(path, number) {
        match open_one(&Files::Folder, &place) {
            Ok(opened) if opened.stripes.as_ref().is_some_and(|(its, _)| its.id == set.id) => {
                return Some(opened);
            }
            Ok(_) => {
                why.get_or_insert_with(|| format!("{} is another recording", place.display()));
            }
            // It got none before its recorder was cut off.
            Err(Error::Empty { .. }) => {
                why.get_or_insert_with(|| format!("{} holds no sample", place.display()));
            }
            Err(error) => {
                why.get_or_insert_with(|| error.to_string());
            }
        }
    }
    let lost = "what was recorded there is missing";
    notes.push(format!("{}; {lost}", why.unwrap_or_else(|| set.recordings[number].clone())));
    None
}

/// The metadata of all recordings that belong to the one of this base, as far as they are there.
pub(super) fn all_bases(own: &Base, set: &StripeSet) -> Vec<Base> {
    let is_there =
        |place: &PathBuf| place.exists() || members(&Files::Folder, place).is_ok_and(|it| it.is_some());
    let place = |number: usize| match number == set.member {
        true => Some(own.clone()),
        false => set.places(&own.meta(), number).into_iter().find(is_there).map(|place| Base::of(&place)),
    };
    (0..set.recordings.len()).filter_map(place).collect()
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
