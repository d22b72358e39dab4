#![no_main]

#[path = "tree/stream.rs"]
#[allow(dead_code, reason = "each target uses its part")]
mod stream;

use std::fs;
use std::io::{Cursor, sink};
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use grebe_tree::{Cancel, Options, SendTree, send};
use libfuzzer_sys::fuzz_target;
use stream::{frames, hello};

/// Files, two of them large, one of these in blocks.
static SOURCE: LazyLock<PathBuf> = LazyLock::new(|| {
    let source = std::env::temp_dir().join(format!("grebe-fuzz-tree-{}", std::process::id()));
    fs::create_dir_all(source.join("d")).expect("a directory");
    for (name, bytes) in
        [("d/small", 5), ("large", 1_500_000), ("middle", 70_000), ("x.sigmf-data", 2_200_000)]
    {
        fs::write(source.join(name), vec![b'x'; bytes]).expect("a file");
    }
    source
});

// A receiver sends arbitrary messages: the sender must end in every case.
fuzz_target!(|input: (bool, bool, Vec<(u8, Vec<u8>)>)| {
    let (checksum, progressive, said) = input;
    let stream = frames(hello(true, None), &said);
    let options = Options { checksum, progressive, ..Options::archive() };
    let tree = SendTree { sources: vec![SOURCE.clone()], options: Some(options), is_fresh: false };
    let _ = send(Cursor::new(stream), sink(), &tree, &Arc::default(), &Cancel::default());
});
