//! Opening a file in place of what is shown: by a path that is typed, with completion, or by one that was dropped.

use std::fs;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use super::options::ViewOptions;
use super::view_model::ViewModel;
use crate::data::link::ScopeLink;

impl ViewModel {
    /// Shows a file in place of the stream.
    ///
    /// # Errors
    /// One line for a person; what was shown goes on.
    pub(crate) fn open_file(&mut self, typed: &str) -> Result<(), String> {
        let path = path_of(typed);
        if typed.trim().is_empty() || path.is_dir() {
            return Err("name a file: tab completes what is typed".into());
        }
        let Some(open) = &self.options.open else { return Err("no file can be opened from here".into()) };
        let (link, mut options) = open(&path)?;
        // Whoever opened the first file opens the next.
        options.open = options.open.or(self.options.open.take());
        self.replace(link, options);
        Ok(())
    }

    /// Shows another source in place of this one, whose settings are kept as it is dropped.
    pub(super) fn replace(&mut self, link: ScopeLink, mut options: ViewOptions) {
        options.theme = Some(self.controls.theme);
        self.link.close();
        *self = ViewModel::new(link, options, self.draw_png);
        self.is_replaced = true;
    }

    /// Opens a file that a person dropped, and says why where it cannot.
    pub(crate) fn drop_file(&mut self, path: &Path) {
        if let Err(why) = self.open_file(&path.to_string_lossy()) {
            self.say(format!("not opened: {why}"));
        }
    }

    /// Whether another source took this one's place since the last call.
    pub(crate) fn take_replaced(&mut self) -> bool {
        std::mem::take(&mut self.is_replaced)
    }
}

/// Names that begin as the last part of what is typed, folders with a separator behind them; hidden ones only where a dot is typed.
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

/// What is typed, as far as all names that it can become agree.
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

/// The folder with its separator, and the part of a name behind it.
fn split(typed: &str) -> (&str, &str) {
    let at = typed.rfind(['/', MAIN_SEPARATOR]).map_or(0, |at| at + 1);
    typed.split_at(at)
}

/// `~` is the home folder, as in a shell.
fn path_of(typed: &str) -> PathBuf {
    let typed = typed.trim();
    match (typed.strip_prefix("~/"), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(typed),
    }
}

/// Of a folder; who has more types on.
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
