#![no_main]

#[path = "tree/stream.rs"]
#[allow(dead_code, reason = "each target uses its part")]
mod stream;

use std::fs;
use std::io::{Cursor, sink};
use std::sync::Arc;

use grebe_tree::{Cancel, ReceiveTree, receive};
use libfuzzer_sys::fuzz_target;
use stream::{frames, hello};

// A sender with any options sends arbitrary messages: nothing outside the destination changes.
fuzz_target!(|input: (u32, bool, Vec<(u8, Vec<u8>)>)| {
    let (options, has_link, said) = input;
    let ground = tempfile::tempdir().expect("a temporary directory");
    let (destination, outside) = (ground.path().join("destination"), ground.path().join("outside"));
    fs::create_dir(&destination).expect("a directory");
    fs::create_dir(&outside).expect("a directory");
    fs::write(outside.join("sentinel"), "untouched").expect("a file");
    if has_link {
        std::os::unix::fs::symlink(&outside, destination.join("a")).expect("a link");
    }
    let stream = frames(hello(false, Some(options)), &said);
    let tree = ReceiveTree { destination, options: None, is_fresh: false };
    let _ = receive(Cursor::new(stream), sink(), &tree, &Arc::default(), &Cancel::default());
    assert_eq!(fs::read(outside.join("sentinel")).expect("it is there"), b"untouched");
    assert_eq!(fs::read_dir(&outside).expect("it is there").count(), 1);
    assert_eq!(fs::read_dir(ground.path()).expect("it is there").count(), 2);
});
