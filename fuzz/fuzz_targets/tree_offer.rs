#![no_main]

#[path = "tree/stream.rs"]
#[allow(dead_code, reason = "each target uses its part")]
mod stream;

use std::fs;
use std::io::{Cursor, sink};
use std::sync::Arc;

use grebe_tree::{Cancel, Reception, receive_offer};
use libfuzzer_sys::fuzz_target;
use stream::{frames, offer};

// A sender without a login offers and sends arbitrary messages: nothing outside changes, no existing file is
// replaced, and no more arrives than was offered.
fuzz_target!(|input: (u8, u16, Vec<Vec<u8>>, Vec<(u8, Vec<u8>)>)| {
    let (files, bytes, names, said) = input;
    let ground = tempfile::tempdir().expect("a temporary directory");
    let (directory, outside) = (ground.path().join("destination"), ground.path().join("outside"));
    fs::create_dir(&directory).expect("a directory");
    fs::create_dir(&outside).expect("a directory");
    fs::write(outside.join("sentinel"), "untouched").expect("a file");
    fs::write(directory.join("a"), "precious").expect("a file");
    std::os::unix::fs::symlink(&outside, directory.join("b")).expect("a link");
    let stream = frames(offer(files, bytes, &names), &said);
    let reception =
        Reception { directory: directory.clone(), overwrite: false, accept: None, sender_waits: false };
    let _ = receive_offer(Cursor::new(stream), sink(), &reception, &[], &Arc::default(), &Cancel::default());
    assert_eq!(fs::read(outside.join("sentinel")).expect("it is there"), b"untouched");
    assert_eq!(fs::read_dir(&outside).expect("it is there").count(), 1);
    assert_eq!(fs::read_dir(ground.path()).expect("it is there").count(), 2);
    assert_eq!(fs::read(directory.join("a")).expect("it is there"), b"precious");
    assert!(fs::symlink_metadata(directory.join("b")).expect("it is there").is_symlink());
});
