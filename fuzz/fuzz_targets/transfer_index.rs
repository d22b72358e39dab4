#![no_main]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use grebe_transfer::internals::Index;
use libfuzzer_sys::fuzz_target;

// The list of files that a peer offers: whatever is accepted stays inside the directory, and is read again as it was.
fuzz_target!(|bytes: &[u8]| {
    let Ok(index) = Index::decode(bytes) else { return };
    for entry in &index.entries {
        assert!(
            Path::new(OsStr::from_bytes(&entry.name))
                .components()
                .all(|part| matches!(part, Component::Normal(_)))
        );
    }
    assert_eq!(Index::decode(&index.encode()).expect("what is written is read"), index);
});
