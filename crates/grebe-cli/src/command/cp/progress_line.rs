//! Progress line of a copy. A narrow terminal shows the most important parts.

use std::time::{Duration, Instant};

use console::measure_text_width;
use grebe_scope::Engineering;

use super::figures::Figures;
use super::path_text::PathText;
use crate::cli::printable;
use crate::transfer::{size, time_left};
use crate::units::grouped;

/// Content of the line.
pub(super) struct Line<'a> {
    pub(super) figures: &'a Figures,
    pub(super) bytes_per_s: f64,
    pub(super) files_per_s: f64,
    pub(super) left: Option<Duration>,
    pub(super) long_file: Option<&'a LongFile>,
}

/// File that takes long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LongFile {
    pub(super) name: PathText,
    pub(super) done_bytes: u64,
    pub(super) total_bytes: u64,
    pub(super) since: Instant,
    /// Time of its last progress.
    at: Instant,
}

/// Large files in progress; events name one at a time.
#[derive(Debug, Default)]
pub(super) struct LongFiles {
    under_way: Vec<LongFile>,
}

impl Line<'_> {
    /// The whole line, without a limit.
    pub(super) fn whole(&self) -> String {
        let mut parts = self.parts();
        if let Some(file) = self.shown_file() {
            parts.insert(Part::File, file_words(file, NAME_SHOWN));
        }
        parts.join()
    }

    /// The line in `columns` columns: the bar goes first, then the least important parts.
    pub(super) fn within(&self, columns: usize) -> String {
        let mut parts = self.parts();
        let file = self.shown_file();
        if let Some(file) = file {
            parts.insert(Part::File, file_words(file, NAME_SHORTEST));
        }
        for least in [Part::LeftOut, Part::Files, Part::Rate, Part::File, Part::Left] {
            if parts.columns() <= columns {
                break;
            }
            parts.remove(least);
        }
        if let Some(file) = file.filter(|_| parts.has(Part::File)) {
            // The name takes the remaining room.
            let room = columns.saturating_sub(parts.columns());
            parts.insert(Part::File, file_words(file, (NAME_SHORTEST + room).min(NAME_SHOWN)));
        }
        let room = columns.saturating_sub(parts.columns() + GAP.len());
        let bar = BARS.into_iter().find(|bar| *bar <= room).filter(|_| self.figures.is_scanned);
        if let Some(bar) = bar {
            parts.insert(Part::Bar, self.bar(bar));
        }
        cut(parts.join(), columns)
    }

    fn parts(&self) -> Parts {
        let Figures { files_done, files_found, .. } = *self.figures;
        let mut parts = Parts::default();
        let share = if self.figures.is_scanned {
            format!("{:>3} %", self.of_all(100))
        } else {
            "scanning".to_owned()
        };
        parts.insert(Part::Share, share);
        // If all files are empty, only their number matters.
        if self.figures.bytes_found > 0 {
            parts.insert(Part::Bytes, self.bytes());
        }
        let rate_bits_per_s = self.bytes_per_s * 8.0;
        if rate_bits_per_s >= 1e3 {
            parts.insert(Part::Rate, Engineering::new(rate_bits_per_s, "bit/s").to_string());
        } else if self.files_per_s >= 1.0 {
            parts.insert(Part::Rate, format!("{:.0} files/s", self.files_per_s));
        }
        if let Some(left) = self.left.filter(|left| !left.is_zero()) {
            parts.insert(Part::Left, time_left(left.as_secs().max(1), 1.0));
        }
        if !self.is_one_file() {
            let found = grouped(files_found);
            parts.insert(Part::Files, format!("{} of {found} files", grouped(files_done)));
        }
        if self.figures.left_out > 0 {
            parts.insert(Part::LeftOut, format!("{} left out", grouped(self.figures.left_out)));
        }
        parts
    }

    /// `28.1 of 50 MB`, `980 kB of 50 MB`.
    fn bytes(&self) -> String {
        let found = size(self.figures.bytes_found);
        let done = size(self.figures.bytes_done.min(self.figures.bytes_found));
        match (done.split_once(' '), found.split_once(' ')) {
            (Some((number, unit)), Some((_, of))) if unit == of => format!("{number} of {found}"),
            _ => format!("{done} of {found}"),
        }
    }

    /// Progress in `parts` steps.
    fn of_all(&self, parts: u64) -> u64 {
        let Figures { files_done, files_found, bytes_done, bytes_found, .. } = *self.figures;
        let (done, found) =
            if bytes_found > 0 { (bytes_done, bytes_found) } else { (files_done, files_found) };
        parts_done(done, found, parts)
    }

    fn bar(&self, columns: usize) -> String {
        let full = self.of_all(columns as u64) as usize;
        format!("{}{}", "█".repeat(full), "░".repeat(columns - full))
    }

    /// With a single file, the line itself shows its progress.
    fn shown_file(&self) -> Option<&LongFile> {
        self.long_file.filter(|_| !self.is_one_file())
    }

    fn is_one_file(&self) -> bool {
        self.figures.is_scanned && self.figures.files_found == 1
    }
}

impl LongFiles {
    /// Takes in the current file. If several are in progress, events name them in turn.
    pub(super) fn add(&mut self, now: Instant, current: Option<&(PathText, u64, u64)>) {
        if let Some((name, done_bytes, total_bytes)) = current {
            let (done_bytes, total_bytes) = (*done_bytes, *total_bytes);
            match self.under_way.iter_mut().find(|file| file.name == *name) {
                Some(file) => (file.done_bytes, file.total_bytes, file.at) = (done_bytes, total_bytes, now),
                None => {
                    let name = name.clone();
                    self.under_way.push(LongFile { name, done_bytes, total_bytes, since: now, at: now });
                }
            }
        }
        self.under_way.retain(|file| {
            file.done_bytes < file.total_bytes && now.duration_since(file.at) < FORGOTTEN_AFTER
        });
    }

    /// The file in progress for the longest time, after some seconds.
    pub(super) fn longest(&self) -> Option<&LongFile> {
        self.under_way.first().filter(|file| file.at.duration_since(file.since) >= LONG)
    }
}

/// Parts of a line, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Bar,
    Share,
    Bytes,
    Rate,
    Left,
    Files,
    File,
    LeftOut,
}

#[derive(Default)]
struct Parts(Vec<(Part, String)>);

impl Parts {
    fn insert(&mut self, part: Part, words: String) {
        self.remove(part);
        let at = self.0.partition_point(|(other, _)| *other < part);
        self.0.insert(at, (part, words));
    }

    fn remove(&mut self, part: Part) {
        self.0.retain(|(other, _)| *other != part);
    }

    fn has(&self, part: Part) -> bool {
        self.0.iter().any(|(other, _)| *other == part)
    }

    fn columns(&self) -> usize {
        measure_text_width(&self.join())
    }

    fn join(&self) -> String {
        self.0.iter().map(|(_, words)| words.as_str()).collect::<Vec<_>>().join(GAP)
    }
}

fn file_words(file: &LongFile, columns: usize) -> String {
    let percent = parts_done(file.done_bytes, file.total_bytes, 100);
    format!("{} {percent} %", short(&printable(file.name.bytes()), columns))
}

/// Rounded down: complete only when all is done.
fn parts_done(done: u64, of: u64, parts: u64) -> u64 {
    (u128::from(done.min(of)) * u128::from(parts) / u128::from(of.max(1))) as u64
}

/// The end of a long name, because it tells more than the beginning.
fn short(name: &str, columns: usize) -> String {
    if measure_text_width(name) <= columns {
        return name.to_owned();
    }
    let mut end = name;
    while measure_text_width(end) >= columns {
        let mut letters = end.chars();
        letters.next();
        end = letters.as_str();
    }
    format!("…{end}")
}

fn cut(mut line: String, columns: usize) -> String {
    while measure_text_width(&line) > columns {
        line.pop();
    }
    line
}

const GAP: &str = "  ";
/// Fixed lengths, because a bar that changes with each digit misleads.
const BARS: [usize; 2] = [20, 10];
const NAME_SHOWN: usize = 32;
const NAME_SHORTEST: usize = 10;
const LONG: Duration = Duration::from_secs(3);
const FORGOTTEN_AFTER: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn figures() -> Figures {
        Figures {
            files_found: 201,
            bytes_found: 50_000_000_000,
            is_scanned: true,
            bytes_done: 28_123_000_000,
            ..Figures::default()
        }
    }

    fn file(name: &str) -> LongFile {
        let now = Instant::now();
        let name = PathText::of(name.as_bytes());
        LongFile { name, done_bytes: 28_000_000_000, total_bytes: 40_000_000_000, since: now, at: now }
    }

    fn line<'a>(figures: &'a Figures, long_file: Option<&'a LongFile>) -> Line<'a> {
        let left = Some(Duration::from_secs(1_790));
        Line { figures, bytes_per_s: 12.2e6, files_per_s: 0.0, left, long_file }
    }

    #[test]
    fn while_one_large_file_goes_first_the_line_says_what_moves_and_of_which_file() {
        let (figures, file) = (figures(), file("runs/7/large.bin"));
        let said = line(&figures, Some(&file)).whole();
        let words = " 56 %  28.1 of 50 GB  97.6 Mbit/s  29:50 left  0 of 201 files  runs/7/large.bin 70 %";
        assert_eq!(said, words);
        assert_eq!(line(&figures, Some(&file)).within(120), format!("███████████░░░░░░░░░  {words}"));
        let said = line(&figures, None).within(80);
        assert_eq!(said, "█████░░░░░   56 %  28.1 of 50 GB  97.6 Mbit/s  29:50 left  0 of 201 files");
    }

    #[test]
    fn a_narrow_terminal_has_the_most_important() {
        let (figures, file) = (Figures { left_out: 2, ..figures() }, file("runs/7/quite/large.bin"));
        let said = |columns| line(&figures, Some(&file)).within(columns);
        assert_eq!(
            said(80),
            " 56 %  28.1 of 50 GB  97.6 Mbit/s  29:50 left  0 of 201 files  …e/large.bin 70 %"
        );
        assert_eq!(said(64), " 56 %  28.1 of 50 GB  97.6 Mbit/s  29:50 left  …e/large.bin 70 %");
        assert_eq!(said(34), " 56 %  28.1 of 50 GB  29:50 left");
        assert_eq!(said(10), " 56 %  28.");
        for columns in 0..=200 {
            assert!(measure_text_width(&said(columns)) <= columns, "{:?} in {columns}", said(columns));
        }
    }

    #[test]
    fn wide_letters_take_two_columns() {
        let (figures, file) = (figures(), file("測定/とても長い名前のファイル.bin"));
        for columns in 60..=120 {
            let said = line(&figures, Some(&file)).within(columns);
            assert!(measure_text_width(&said) <= columns, "{said:?} in {columns}");
        }
        assert_eq!(short("測定/ab", 5), "…/ab");
    }

    #[test]
    fn one_file_has_no_count_or_name_and_growing_totals_say_scanning() {
        let (one, long) = (Figures { files_found: 1, ..figures() }, file("large.bin"));
        assert_eq!(line(&one, Some(&long)).whole(), " 56 %  28.1 of 50 GB  97.6 Mbit/s  29:50 left");
        let scanning = Figures { is_scanned: false, bytes_done: 980_000, files_done: 12, ..figures() };
        let said = Line { left: None, ..line(&scanning, Some(&long)) }.within(80);
        assert_eq!(said, "scanning  980 kB of 50 GB  97.6 Mbit/s  12 of 201 files  large.bin 70 %");
        let empty = Figures { bytes_found: 0, bytes_done: 0, files_done: 67, ..figures() };
        let said = Line { bytes_per_s: 0.0, files_per_s: 33.0, left: None, ..line(&empty, None) }.whole();
        assert_eq!(said, " 33 %  33 files/s  67 of 201 files");
    }

    #[test]
    fn a_file_counts_as_long_after_some_seconds_also_beside_others() {
        let began = Instant::now();
        let mut files = LongFiles::default();
        let at = |tenths: u64| began + Duration::from_millis(100 * tenths);
        let part = |name: &str, done| (PathText::of(name.as_bytes()), done, 1_000);
        for tenths in 0..40 {
            // Blocks of two files in turn.
            let name = if tenths % 2 == 0 { "one" } else { "other" };
            files.add(at(tenths), Some(&part(name, tenths)));
            let longest = files.longest().map(|file| (file.name.clone(), file.done_bytes));
            let wanted = (tenths >= 30).then(|| (PathText::of(b"one"), tenths - tenths % 2));
            assert_eq!(longest, wanted, "after {tenths} tenths of a second");
        }
        files.add(at(40), Some(&part("one", 1_000)));
        assert_eq!(
            files.longest().map(|file| file.name.clone()),
            Some(PathText::of(b"other")),
            "one is done"
        );
        files.add(at(60), None);
        assert_eq!(files.longest(), None, "nothing was heard of it");
    }
}
