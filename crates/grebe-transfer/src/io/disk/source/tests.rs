use super::*;

fn read_all(source: &Arc<Source>) -> (Vec<u8>, Arc<Content>) {
    let content = Arc::new(Content::new(source.clone()));
    let mut bytes = vec![0; source.content_bytes as usize];
    ContentReader::new(content.clone()).read_at(&mut bytes, 0);
    (bytes, content)
}

#[test]
fn content_is_index_files_and_statuses_in_a_row() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("d/e")).unwrap();
    for (name, bytes) in [("d/a", &b"first"[..]), ("d/b", b""), ("d/e/c", b"second"), ("f", b"third")] {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    let paths = [folder.path().join("d"), folder.path().join("f")];
    let source = Arc::new(Source::open(&paths).unwrap());
    assert_eq!((source.names(), source.files(), source.file_bytes()), (&["d".into(), "f".into()][..], 4, 16));
    let index_bytes = source.index_bytes() as usize;
    let (whole, content) = read_all(&source);
    assert_eq!(&whole[index_bytes..], b"firstsecondthird\0\0\0\0");
    let index = Index::decode(&whole[..index_bytes]).unwrap();
    let names: Vec<_> = index.entries.iter().map(|entry| printable(&entry.name)).collect();
    assert_eq!(names, ["d", "d/a", "d/b", "d/e", "d/e/c", "f"]);
    let mut reader = ContentReader::new(content);
    let mut one = [0];
    for (at, byte) in whole.iter().enumerate() {
        reader.read_at(&mut one, at as u64);
        assert_eq!(one[0], *byte, "{at}");
    }
}

#[test]
fn a_file_that_changes_while_it_is_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let names = ["good", "grows", "gone", "shorter", "torn"];
    for name in names {
        fs::write(at(name), b"contents").unwrap();
    }
    let source = Arc::new(Source::open(&names.map(at)).unwrap());
    let content = Arc::new(Content::new(source.clone()));
    let mut reader = ContentReader::new(content.clone());
    let mut whole = vec![0; source.content_bytes as usize - 1];
    // All but a byte of the last file is read; then the first ones change behind the reader, and the others before it.
    reader.read_at(&mut whole[..(source.index_bytes() + 3 * 8) as usize], 0);
    fs::write(at("grows"), b"contents and more").unwrap();
    fs::remove_file(at("gone")).unwrap();
    fs::write(at("shorter"), b"cut").unwrap();
    fs::write(at("torn"), b"CONTENTS").unwrap();
    let mut whole = vec![0; source.content_bytes as usize];
    reader.read_at(&mut whole, 0);
    assert_eq!(whole[whole.len() - 5..], [0, 1, 2, 1, 1]);
    let left_out = content.left_out();
    assert_eq!(
        left_out.iter().map(|left| left.path.clone()).collect::<Vec<_>>(),
        names[1..].iter().map(|name| at(name)).collect::<Vec<_>>()
    );
}

#[test]
fn another_content_is_known_and_another_mode_is_not_another_content() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    fs::write(&path, b"one").unwrap();
    let paths = std::slice::from_ref(&path);
    let before = Source::open(paths).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    fs::hard_link(&path, folder.path().join("g")).unwrap();
    let after = Source::open(paths).unwrap();
    assert_eq!(after.content(), before.content());
    #[cfg(unix)]
    assert_ne!(after.touched(), before.touched());
    fs::write(&path, b"two").unwrap();
    assert_ne!(Source::open(paths).unwrap().content(), before.content());
}

#[test]
fn what_cannot_be_sent_is_said() {
    assert!(matches!(Source::open(&["/no/such/file".into()]), Err(Error::File { .. })));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    fs::write(&path, b"x").unwrap();
    assert!(matches!(Source::open(&[path.clone(), path]), Err(Error::Index { .. })), "twice the same name");
}

#[cfg(unix)]
#[test]
fn what_is_left_out_is_named_and_the_others_are_sent() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["a:b", "line\nend", ".grebe-partial"] {
        fs::write(at(name), b"x").unwrap();
    }
    fs::write(folder.path().join(OsStr::new("tab\t")), b"x").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", at("link")).unwrap();
    let source = Source::open(&[folder.path().to_path_buf()]).unwrap();
    assert_eq!(source.files(), 3);
    let left_out: Vec<_> = source.left_out().iter().map(|left| left.path.clone()).collect();
    assert_eq!(left_out, [at(".grebe-partial"), at("link")]);
}

/// What another user of the sender's machine may do to the files that are sent, over and over.
#[cfg(unix)]
fn swap_until(is_over: &std::sync::atomic::AtomicBool, root: &Path, secret: &Path) {
    let (directory, moved, name, new) =
        (root.join("d"), root.join("moved"), root.join("d/file"), root.join("new"));
    while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
        std::os::unix::fs::symlink(secret.join("file"), &new).unwrap();
        fs::rename(&new, &name).unwrap();
        fs::hard_link(secret.join("pipe"), &new).unwrap();
        fs::rename(&new, &name).unwrap();
        fs::write(&new, [b'p'; 5_000]).unwrap();
        fs::rename(&new, &name).unwrap();
        std::thread::yield_now();
        fs::rename(&directory, &moved).unwrap();
        std::os::unix::fs::symlink(secret, &directory).unwrap();
        fs::remove_file(&directory).unwrap();
        fs::rename(&moved, &directory).unwrap();
        std::thread::yield_now();
    }
}

#[cfg(unix)]
#[test]
fn a_thousand_swaps_bring_nothing_foreign_and_hold_nobody_up() {
    let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (root, secret) = (folder.path().to_path_buf(), outside.path().to_path_buf());
    fs::create_dir(root.join("d")).unwrap();
    fs::write(root.join("d/file"), [b'p'; 5_000]).unwrap();
    fs::write(secret.join("file"), [b'S'; 5_000]).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(secret.join("pipe")).status();
    assert!(pipe.unwrap().success());
    let is_over = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let swapping = {
        let (is_over, root, secret) = (is_over.clone(), root.clone(), secret.clone());
        std::thread::spawn(move || swap_until(&is_over, &root, &secret))
    };
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for _ in 0..1_000 {
            // It may be gone just now.
            let Ok(source) = Source::open(std::slice::from_ref(&root)) else { continue };
            let (bytes, _) = read_all(&Arc::new(source));
            let is_foreign = bytes.windows(8).any(|bytes| bytes == b"SSSSSSSS");
            tell.send(is_foreign).unwrap();
        }
    });
    let mut read = 0;
    loop {
        match told.recv_timeout(std::time::Duration::from_secs(60)) {
            Ok(is_foreign) => assert!(!is_foreign, "a foreign file is sent"),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
            Err(_) => panic!("a pipe is waited for"),
        }
        read += 1;
    }
    is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    swapping.join().unwrap();
    assert!(read > 100, "only {read} of 1,000 found anything");
}
