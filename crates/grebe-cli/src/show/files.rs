//! Settings files of the scope.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use grebe_recording::write_whole;
use grebe_view::Session;

/// Settings file of a source, in the system's folder for program state.
pub(crate) fn session_of_source(name: &str) -> Option<PathBuf> {
    let home = |variable: &str| std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
    let state = home("XDG_STATE_HOME").filter(|path| path.is_absolute());
    let state =
        state.or_else(|| home("LOCALAPPDATA")).or_else(|| Some(home("HOME")?.join(".local/state")))?;
    Some(state.join("grebe").join("sessions").join(file_name(name)))
}

/// Reads settings; `None` if the file does not exist. Devices and FIFOs are refused, because reading may never end.
pub(super) fn read_session(path: &Path) -> Result<Option<Session>> {
    if fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        return Ok(None);
    }
    match fs::read_to_string(path) {
        Ok(text) => {
            let session = Session::from_toml(&text);
            Ok(Some(session.with_context(|| format!("{}", path.display()))?))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Writes settings.
pub(super) fn write_session(path: &Path, session: &Session) -> Result<()> {
    let failed = || format!("cannot write settings to {}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(failed)?;
    }
    let text = format!("# Settings of a scope: grebe view --session FILE\n{}", session.to_toml());
    write_whole(path, text.as_bytes()).with_context(failed)
}

/// Letters and digits of the name, and a hash for uniqueness.
fn file_name(name: &str) -> String {
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let plain: String = plain.trim_matches('-').chars().rev().take(60).collect();
    let plain: String = plain.chars().rev().collect();
    // FNV-1a is the same on all machines and in all versions.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{plain}-{:08x}.toml", hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_have_files_of_their_own() {
        let names = ["udp://:5000", "udp://:5001", "udp:::5000", "/data/a b.wav", &"x/".repeat(500)];
        let files: Vec<String> = names.iter().map(|name| file_name(name)).collect();
        for (place, file) in files.iter().enumerate() {
            assert!(file.len() < 100 && !file.contains(['/', ':', ' ', '\\']), "{file}");
            assert!(!files[..place].contains(file), "{file}");
        }
    }

    #[test]
    fn a_session_is_kept_and_found_again_and_a_damaged_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/one.toml");
        assert!(read_session(&path).unwrap().is_none());
        let session = Session::from_toml("span_s = 0.5").unwrap();
        write_session(&path, &session).unwrap();
        assert_eq!(read_session(&path).unwrap(), Some(session));
        fs::write(&path, "span_s = [").unwrap();
        let error = format!("{:#}", read_session(&path).unwrap_err());
        assert!(error.contains("one.toml"), "{error}");
    }
}
