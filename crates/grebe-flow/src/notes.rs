//! Notices of running stages for the user.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The newest notices of a graph's stages, for any number of readers.
#[derive(Debug, Default)]
pub(crate) struct Notes(Mutex<NoteState>);

#[derive(Debug, Default)]
struct NoteState {
    /// Total number of notices.
    count: u64,
    last: VecDeque<String>,
}

impl Notes {
    pub(crate) fn tell(&self, words: String) {
        let mut told = self.lock();
        told.count += 1;
        if told.last.len() == KEPT {
            told.last.pop_front();
        }
        told.last.push_back(words);
    }

    /// Notices since `seen`, a count of earlier notices, which is updated.
    pub(crate) fn since(&self, seen: &mut u64) -> Vec<String> {
        let told = self.lock();
        let news = usize::try_from(told.count - *seen).unwrap_or(usize::MAX).min(told.last.len());
        *seen = told.count;
        told.last.iter().skip(told.last.len() - news).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, NoteState> {
        // A panicking stage leaves complete notices.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// More than a user reads at once.
const KEPT: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reader_gets_each_note_once_and_of_too_many_the_newest() {
        let notes = Notes::default();
        let (mut first, mut second) = (0, 0);
        assert!(notes.since(&mut first).is_empty());
        notes.tell("gone".to_owned());
        assert_eq!(notes.since(&mut first), ["gone"]);
        notes.tell("back".to_owned());
        assert_eq!(
            (notes.since(&mut first), notes.since(&mut second)),
            (vec!["back".into()], vec!["gone".into(), "back".into()])
        );
        (0..100).for_each(|at| notes.tell(at.to_string()));
        let last = notes.since(&mut second);
        assert_eq!(
            (last.len(), last.first().map(String::as_str), last.last().map(String::as_str)),
            (64, Some("36"), Some("99"))
        );
        assert!(notes.since(&mut second).is_empty());
    }
}
