//! A stream recorded on several disks in turn: one recording per disk, and all of them as one.
//!
//! ```text
//!   /disk1/NAME.sigmf-meta   captures  0 .. 8M, 16M .. 24M, ...   each a recording with gaps, which any program reads
//!   /disk2/NAME.sigmf-meta   captures  8M .. 16M, 24M .. 28M, ...
//! ```
//! Each recording names the others, and each capture states its place in the whole. So any of them opens all, even
//! after the recorder was killed.

use std::path::{Path, PathBuf};

use super::archive::Files;
use super::collection::members;
use super::layout::Base;
use super::reader::{Opened, open_one};
use super::stripe_set::StripeSet;
use crate::error::Error;
use crate::sample_file::{SampleFile, StripeMember};

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
            let kind = |file: &SampleFile| (file.format(), file.channels(), file.rate_hz());
            kind(first) == kind(&file) && first.source_count() == file.source_count()
        };
        if !members.first().is_none_or(is_alike) {
            is_whole = false;
            notes
                .push(format!("{}: is of another kind than the others, and ignored", set.recordings[number]));
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

/// Opens one of the others if it exists; a note has the reason of a failure.
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
            // It got no samples before its recorder was cut off.
            Err(Error::Empty { .. }) => {
                why.get_or_insert_with(|| format!("{} holds no sample", place.display()));
            }
            Err(error) => {
                why.get_or_insert_with(|| error.to_string());
            }
        }
    }
    let lost = "its samples are missing";
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
