//! Recordings of a folder.

use std::fs;
use std::path::{Path, PathBuf};

use crate::kinds::kind_of;
use crate::sigmf::missing_collection_of;

/// The last changed recording of a folder, with all of its channels; `None` if there is none, or the folder
/// cannot be read. Raw samples do not count, because their format is unknown.
pub fn newest_recording(folder: &Path) -> Option<PathBuf> {
    let recordings =
        fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).filter(|path| is_whole(path));
    let newest = recordings.max_by_key(|path| path.metadata().and_then(|data| data.modified()).ok())?;
    Some(missing_collection_of(&newest).unwrap_or(newest))
}

/// Suggests what to name instead of a folder.
pub(super) fn what_is_in(folder: &Path) -> String {
    match newest_recording(folder) {
        Some(path) => format!("is a folder: name a recording in it; the newest is {}", path.display()),
        None => "is a folder, without a recording in it".to_owned(),
    }
}

/// Whether it is opened as a recording, and not as a part of one: samples beside their metadata, or a channel of a
/// collection.
fn is_whole(path: &Path) -> bool {
    let (Some(name), Some(extension)) = (path.file_stem(), path.extension()) else { return false };
    let name = name.to_string_lossy();
    let of_collection = name.rsplit_once("_ch").filter(|(_, channel)| channel.parse::<u8>().is_ok());
    let has_collection = |(name, _)| path.with_file_name(format!("{name}.sigmf-collection")).exists();
    let is_part = extension == "sigmf-data" || of_collection.is_some_and(has_collection);
    kind_of(path).is_some() && path.is_file() && !name.starts_with('.') && !is_part
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::SampleFile;

    #[test]
    fn the_newest_recording_is_found_and_its_folder_is_no_recording() {
        let folder = tempfile::tempdir().unwrap();
        let newest = || {
            let path = newest_recording(folder.path())?;
            Some(path.file_name().unwrap().to_string_lossy().into_owned())
        };
        let said = || SampleFile::open(folder.path()).unwrap_err().to_string();
        let now = SystemTime::now();
        let mut age_s = 100;
        let mut write = |name: &str| {
            age_s -= 1;
            let file = fs::File::create(folder.path().join(name)).unwrap();
            file.set_modified(now - Duration::from_secs(age_s)).unwrap();
        };
        write("notes.txt");
        assert_eq!(newest(), None);
        assert!(said().ends_with("is a folder, without a recording in it"), "{}", said());
        write("a.wav");
        assert_eq!(newest().as_deref(), Some("a.wav"));
        // All channels, although a part of them was written last.
        write("b.sigmf-collection");
        write("b_ch1.sigmf-meta");
        write("b_ch1.sigmf-data");
        assert_eq!(newest().as_deref(), Some("b.sigmf-collection"));
        write("alone_ch1.sigmf-meta");
        write("alone_ch1.sigmf-data");
        write(".hidden.sigmf-meta");
        fs::create_dir(folder.path().join("folder.wav")).unwrap();
        assert_eq!(newest().as_deref(), Some("alone_ch1.sigmf-meta"));
        assert!(said().ends_with("alone_ch1.sigmf-meta"), "{}", said());
        // All channels of a recording whose recorder was killed while it replaced the collection.
        let global = r#"{"core:datatype": "ri16_le", "core:version": "1.2.0", "core:collection": "cut"}"#;
        for name in ["cut_ch1.sigmf-meta", "cut_ch2.sigmf-meta"] {
            write(name);
            fs::write(folder.path().join(name), format!("{{\"global\": {global}}}")).unwrap();
        }
        assert_eq!(newest().as_deref(), Some("cut.sigmf-collection"));
    }
}
