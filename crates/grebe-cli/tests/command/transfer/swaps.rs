//! Attacks by other users of the same machine: files that are replaced after the listing, and a partial folder that
//! is not the receiver's.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;

use super::peers::{Waiting, file, moved, names, path, receive, sent};

/// Replacement of a file or its directory between the check and its turn.
fn swap(what: &str, sent: &Path, secret: &Path) {
    let (directory, name) = (sent.join("d"), sent.join("d/file"));
    match what {
        "a link" => {
            fs::remove_file(&name).unwrap();
            symlink(secret.join("file"), &name).unwrap();
        }
        "a pipe" => {
            fs::remove_file(&name).unwrap();
            assert!(Command::new("mkfifo").arg(&name).status().unwrap().success());
        }
        "another file" => fs::rename(secret.join("file"), &name).unwrap(),
        _ => {
            fs::rename(&directory, sent.join("moved")).unwrap();
            symlink(secret, &directory).unwrap();
        }
    }
}

#[test]
fn an_object_that_replaces_a_file_is_neither_sent_nor_awaited() {
    for what in ["a link", "a pipe", "another file", "a link to a directory"] {
        let (from, secret, into) =
            (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(from.path().join("d")).unwrap();
        fs::write(from.path().join("d/file"), [b'p'; 300_000]).unwrap();
        fs::write(secret.path().join("file"), [b'S'; 300_000]).unwrap();
        let (large, contents) = file(from.path(), "large.bin", 1_000_000);
        let mut sender =
            Waiting::start(&["send", path(&from.path().join("d")), path(&large), "--bwlimit", "8M"]);
        swap(what, from.path(), secret.path());
        let receiver = receive(&sender.ticket, into.path());
        // Its place until it is complete.
        let mut is_there = false;
        while !into.path().join("large.bin").exists() && !is_there {
            is_there = Command::new("grep")
                .args(["-rqs", "SSSSSSSS"])
                .arg(into.path())
                .status()
                .is_ok_and(|found| found.success());
            if sender.is_over() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert!(!is_there, "{what}: it was sent");
        let (sender, receiver) = (sender.finish(), sent(receiver));
        assert_eq!((sender.status, receiver.status), (Some(4), Some(4)), "{what}: {}", sender.said);
        let left_out = &sender.result["left_out"];
        let gone = if what == "a link to a directory" { "d" } else { "d/file" };
        assert_eq!(left_out[0]["path"], gone, "{what}: {left_out}");
        assert!(!into.path().join("d/file").exists(), "{what}");
        assert!(fs::read(into.path().join("large.bin")).unwrap() == contents, "{what}");
    }
}

#[test]
fn a_folder_that_others_can_enter_is_not_used() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (one, _) = file(from.path(), "one", 1_000);
    let folder = into.path().join(".grebe-partial");
    fs::create_dir(&folder).unwrap();
    let mut cases = vec![("open to all", 0o777, None)];
    if chown(&folder, Some(65_534), None).is_ok() {
        cases
            .extend([("another user's", 0o700, Some(65_534)), ("another user's, open", 0o777, Some(65_534))]);
    } else {
        eprintln!("skipped: only root can give a folder to another user");
    }
    for (what, mode, owner) in cases {
        chown(&folder, owner.or(Some(fs::metadata(into.path()).unwrap().uid())), None).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
        let (sender, receiver) = moved(&[&one], into.path(), &[]);
        assert_eq!((sender.status, receiver.status), (Some(4), Some(4)), "{what}: {}", receiver.said);
        assert!(receiver.said.contains("is not this user's own"), "{}", receiver.said);
        assert_eq!(names(&folder), [""; 0], "{what}");
        assert_eq!(names(into.path()), [".grebe-partial"], "{what}");
    }
}
