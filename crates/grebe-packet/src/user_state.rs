//! What either end remembers.

use std::path::PathBuf;

/// Where programs keep what is of one user and of no other machine; `None` where the system names no such folder. It may have to be made.
pub fn user_state() -> Option<PathBuf> {
    let directory = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = if cfg!(windows) {
        directory("LOCALAPPDATA")?
    } else if cfg!(target_os = "macos") {
        directory("HOME")?.join("Library/Application Support")
    } else {
        directory("XDG_STATE_HOME").or_else(|| Some(directory("HOME")?.join(".local/state")))?
    };
    Some(state.join("grebe"))
}
