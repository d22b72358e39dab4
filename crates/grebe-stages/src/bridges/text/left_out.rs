//! Lines that were not taken: how many, and one of them.

use std::time::Instant;

/// Skipped lines: garbage, and lines of words.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    pub(super) bad: Kept,
    pub(super) words: Kept,
    /// Since when only ignored lines arrived.
    pub(super) since: Option<Instant>,
    pub(super) is_told: bool,
}

#[derive(Debug, Default)]
pub(super) struct Kept {
    count: u64,
    example: String,
}

impl Kept {
    pub(super) fn keep(&mut self, line: &[u8]) {
        self.count += 1;
        if self.example.is_empty() {
            let text = String::from_utf8_lossy(line);
            let shown = text.trim().chars().map(|c| if c.is_control() { '\u{fffd}' } else { c });
            self.example = shown.take(SHOWN_CHARS).collect();
        }
    }

    /// The newest one was of use.
    pub(super) fn forget_one(&mut self) {
        self.count = self.count.saturating_sub(1);
        if self.count == 0 {
            self.example.clear();
        }
    }
}

impl LeftOut {
    /// None where the only lines of words are names of columns.
    pub(super) fn words(&self) -> Option<String> {
        let Kept { count, example } = if self.bad.count > 0 { &self.bad } else { &self.words };
        let all = self.bad.count + self.words.count;
        let lines = if all == 1 { "line was" } else { "lines were" };
        (*count > 0).then(|| format!("{all} {lines} not numbers, such as '{example}'"))
    }
}

const SHOWN_CHARS: usize = 60;
