//! State directory of the user.

use std::path::PathBuf;

/// Directory for state of this user and machine; `None` if the system defines none. It may not exist yet.
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
