//! Typed paths and their completion.

use std::fs;
use std::path::{MAIN_SEPARATOR, PathBuf};

/// Names that complete the last part of a path, with a separator after folders. Hidden ones need a typed dot.
pub(super) fn matches(typed: &str) -> Vec<String> {
    let (folder, start) = split(typed);
    let listed = fs::read_dir(if folder.is_empty() { PathBuf::from(".") } else { path_of(folder) });
    let names = listed.into_iter().flatten().flatten().take(LISTED_MAX).filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let is_meant = name.starts_with(start) && (!name.starts_with('.') || start.starts_with('.'));
        let is_folder = is_meant && entry.path().is_dir();
        is_meant.then(|| if is_folder { format!("{name}{MAIN_SEPARATOR}") } else { name })
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Extends a typed path as far as all its completions agree.
pub(super) fn completed(typed: &str) -> String {
    let names = matches(typed);
    let Some(first) = names.first() else { return typed.to_owned() };
    let agree = |a: &str, b: &str| {
        a.char_indices()
            .zip(b.chars())
            .find(|((_, a), b)| a != b)
            .map_or(a.len().min(b.len()), |((at, _), _)| at)
    };
    let length = names.iter().fold(first.len(), |length, name| length.min(agree(first, name)));
    let (folder, _) = split(typed);
    format!("{folder}{}", &first[..length])
}

/// Splits a path into the folder with its separator, and the start of a name.
fn split(typed: &str) -> (&str, &str) {
    let at = typed.rfind(['/', MAIN_SEPARATOR]).map_or(0, |at| at + 1);
    typed.split_at(at)
}

/// Expands `~` to the home folder, as a shell does.
pub(super) fn path_of(typed: &str) -> PathBuf {
    let typed = typed.trim();
    match (typed.strip_prefix("~/"), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(typed),
    }
}

/// Maximum entries of a folder; a longer typed text narrows them.
const LISTED_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_completed_as_far_as_the_names_agree() {
        let folder = std::env::temp_dir().join(format!("grebe-open-{}", std::process::id()));
        fs::create_dir_all(folder.join("recordings")).unwrap();
        for name in ["ecg-1.wav", "ecg-2.wav", "\u{5fc3}\u{96fb}\u{56f3}.wav", ".hidden"] {
            fs::write(folder.join(name), "").unwrap();
        }
        let typed = |text: &str| format!("{}{MAIN_SEPARATOR}{text}", folder.display());
        assert_eq!(matches(&typed("")).len(), 4);
        assert_eq!(matches(&typed(".")), [".hidden"]);
        assert_eq!(completed(&typed("e")), typed("ecg-"));
        assert_eq!(completed(&typed("ecg-2")), typed("ecg-2.wav"));
        assert_eq!(completed(&typed("\u{5fc3}")), typed("\u{5fc3}\u{96fb}\u{56f3}.wav"));
        assert_eq!(completed(&typed("rec")), typed(&format!("recordings{MAIN_SEPARATOR}")));
        assert_eq!(completed(&typed("nothing")), typed("nothing"));
        fs::remove_dir_all(folder).unwrap();
    }
}
