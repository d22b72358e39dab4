//! Tests Unix properties beside names and content.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;

use grebe_tree::{Cancel, Options, SendTree, copy};

use crate::ends::{copied, progress, sorted};
use crate::generate::{assert_same, scratch};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn without_options_new_modes_follow_the_umask_and_old_ones_stay() {
    let (from, into) = (scratch(), scratch());
    let there = into.path().join("t");
    for (name, bits) in [("open", 0o777), ("suid", 0o4755), ("kept", 0o666), ("large", 0o666)] {
        fs::create_dir_all(from.path().join("t")).unwrap();
        fs::write(from.path().join("t").join(name), vec![0; if name == "large" { 1 << 20 } else { 3 }])
            .unwrap();
        fs::set_permissions(from.path().join("t").join(name), Permissions::from_mode(bits)).unwrap();
    }
    fs::create_dir(&there).unwrap();
    fs::write(there.join("kept"), "older").unwrap();
    fs::set_permissions(there.join("kept"), Permissions::from_mode(0o640)).unwrap();
    let mask = 0o777
        & !mode(&{
            File::create(into.path().join("probe")).unwrap();
            into.path().join("probe")
        })
        & 0o666;
    let options = Options { recursive: true, ..Options::default() };
    copied(&[from.path().join("t")], into.path(), &options);
    assert_eq!(mode(&there.join("open")) & 0o666, 0o666 & !mask);
    assert_eq!(mode(&there.join("large")), 0o666 & !mask);
    assert_eq!(mode(&there.join("suid")) & 0o7000, 0);
    assert_eq!(mode(&there.join("kept")), 0o640);
    copied(&[from.path().join("t")], into.path(), &Options::archive());
    assert_eq!(["open", "suid", "kept"].map(|name| mode(&there.join(name))), [0o777, 0o4755, 0o666]);
}

#[test]
fn new_content_does_not_get_the_privileges_of_the_old_one() {
    let (from, into) = (scratch(), scratch());
    for (name, old) in [("other", "old"), ("same", "new")] {
        fs::write(from.path().join(name), "new").unwrap();
        fs::write(into.path().join(name), old).unwrap();
        fs::set_permissions(into.path().join(name), Permissions::from_mode(0o6751)).unwrap();
        File::open(into.path().join(name)).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    }
    let sources = ["other", "same"].map(|name| from.path().join(name));
    copied(&sources, into.path(), &Options { checksum: true, ..Options::default() });
    assert_eq!(fs::read(into.path().join("other")).unwrap(), b"new");
    assert_eq!(["other", "same"].map(|name| mode(&into.path().join(name))), [0o751, 0o6751]);
}

#[test]
fn names_are_bytes() {
    let (from, into) = (scratch(), scratch());
    let all: [&[u8]; 6] = [b"\xff\xfe", b"line\nbreak", b"a:b", b"-rf", b"\x1b[2J", b"*?[x]"];
    fs::create_dir(from.path().join("t")).unwrap();
    for name in all {
        fs::write(from.path().join("t").join(OsStr::from_bytes(name)), name).unwrap();
    }
    let report = copied(&[from.path().join("t")], into.path(), &Options::archive());
    assert_eq!((report.files_copied, report.left_out_count), (6, 0));
    assert_same(from.path(), into.path());
}

#[test]
fn hard_links_are_kept_on_request() {
    let (from, into, apart) = (scratch(), scratch(), scratch());
    fs::create_dir_all(from.path().join("t/deep")).unwrap();
    fs::write(from.path().join("t/deep/one"), "content").unwrap();
    fs::hard_link(from.path().join("t/deep/one"), from.path().join("t/two")).unwrap();
    fs::hard_link(from.path().join("t/deep/one"), from.path().join("t/deep/three")).unwrap();
    fs::write(from.path().join("t/empty"), "").unwrap();
    fs::hard_link(from.path().join("t/empty"), from.path().join("t/nothing")).unwrap();
    let sources = [from.path().join("t")];
    for round in 0..2 {
        let links = if round == 0 { 3 } else { 0 };
        let dry = Options { dry_run: true, ..Options::archive() };
        assert_eq!(copied(&sources, into.path(), &dry).links_made, links, "a dry run tells the truth");
        let report = copied(&sources, into.path(), &Options::archive());
        assert_eq!(report.links_made, links);
        assert_eq!(report.data_bytes, if round == 0 { 7 } else { 0 });
        let inode = |name: &str| fs::metadata(into.path().join("t").join(name)).unwrap().ino();
        assert!(inode("deep/one") == inode("two") && inode("two") == inode("deep/three"));
        assert_eq!(inode("empty"), inode("nothing"));
    }
    assert_same(from.path(), into.path());
    // The first name became a file of its own, and the others follow it again.
    fs::remove_file(into.path().join("t/two")).unwrap();
    fs::write(into.path().join("t/two"), "other").unwrap();
    assert_eq!(copied(&sources, into.path(), &Options::archive()).links_made, 2);
    assert_same(from.path(), into.path());
    let report = copied(&sources, apart.path(), &Options { recursive: true, ..Options::default() });
    assert_eq!((report.files_copied, report.links_made), (5, 0));
}

#[test]
fn links_are_copied_and_followed_only_where_they_are_named() {
    let (from, into) = (scratch(), scratch());
    fs::create_dir_all(from.path().join("t/real")).unwrap();
    fs::write(from.path().join("t/real/file"), "content").unwrap();
    symlink("real/file", from.path().join("t/to-file")).unwrap();
    symlink("real", from.path().join("t/to-directory")).unwrap();
    symlink("loop", from.path().join("t/loop")).unwrap();
    let recursive = Options { recursive: true, ..Options::default() };
    copied(&[from.path().join("t")], into.path(), &recursive);
    assert_eq!(fs::read_link(into.path().join("t/loop")).unwrap(), Path::new("loop"));
    assert_eq!(fs::read_link(into.path().join("t/to-directory")).unwrap(), Path::new("real"));
    assert_eq!(copied(&[from.path().join("t")], into.path(), &recursive).links_made, 0);
    let named = ["t/to-file", "t/to-directory"].map(|name| from.path().join(name));
    copied(&named, into.path(), &recursive);
    assert!(into.path().join("to-file").symlink_metadata().unwrap().is_file());
    assert_eq!(fs::read(into.path().join("to-directory/file")).unwrap(), b"content");
    assert!(into.path().join("to-directory").symlink_metadata().unwrap().is_dir());
    // As an archive they are links, and replace the earlier copies.
    let report = copied(&named[..1], into.path(), &Options::archive());
    assert_eq!(report.links_made, 1);
    assert_eq!(fs::read_link(into.path().join("to-file")).unwrap(), Path::new("real/file"));
}

#[test]
fn ten_gigabytes_of_hole_are_kilobytes_on_the_way_and_on_the_disk() {
    let (from, into) = (scratch(), scratch());
    let path = from.path().join("sparse");
    let mut file = File::create(&path).unwrap();
    for place in [0, 5_000_000_000, 9_999_999_999] {
        file.seek(SeekFrom::Start(place)).unwrap();
        file.write_all(b"x").unwrap();
    }
    file.set_len(10_000_000_000).unwrap();
    drop(file);
    let report = copied(std::slice::from_ref(&path), into.path(), &Options::default());
    assert!(report.read_bytes < 100_000, "{}", report.read_bytes);
    let there = into.path().join("sparse");
    let blocks = |path: &Path| fs::metadata(path).unwrap().blocks();
    assert_eq!(fs::metadata(&there).unwrap().len(), 10_000_000_000);
    assert!(blocks(&there) <= blocks(&path) + 8, "{} {}", blocks(&there), blocks(&path));
    for place in [0, 5_000_000_000, 9_999_999_999] {
        let mut byte = [0];
        std::os::unix::fs::FileExt::read_exact_at(&File::open(&there).unwrap(), &mut byte, place).unwrap();
        assert_eq!(&byte, b"x");
    }
    let tree = SendTree { sources: vec![path], options: Some(Options::default()), is_fresh: false };
    copy(&tree, &into.path().join("local"), &progress(), &Cancel::default()).unwrap();
    assert!(blocks(&into.path().join("local")) <= blocks(&there) + 8);
}

#[test]
fn directories_that_cannot_be_written_are_filled_all_the_same() {
    let (from, into) = (scratch(), scratch());
    fs::create_dir_all(from.path().join("t/closed/deep")).unwrap();
    fs::write(from.path().join("t/closed/deep/file"), "1").unwrap();
    for name in ["t/closed/deep", "t/closed"] {
        fs::set_permissions(from.path().join(name), Permissions::from_mode(0o555)).unwrap();
    }
    copied(&[from.path().join("t")], into.path(), &Options::archive());
    assert_same(from.path(), into.path());
    fs::set_permissions(from.path().join("t/closed"), Permissions::from_mode(0o755)).unwrap();
    fs::write(from.path().join("t/closed/new"), "2").unwrap();
    fs::set_permissions(from.path().join("t/closed"), Permissions::from_mode(0o555)).unwrap();
    copied(&[from.path().join("t")], into.path(), &Options::archive());
    assert_same(from.path(), into.path());
    for root in [from.path(), into.path()] {
        for name in ["t/closed", "t/closed/deep"] {
            fs::set_permissions(root.join(name), Permissions::from_mode(0o755)).unwrap();
        }
    }
}

#[test]
fn special_and_unreadable_files_are_reported() {
    let (from, into) = (scratch(), scratch());
    fs::create_dir_all(from.path().join("t/locked")).unwrap();
    fs::write(from.path().join("t/secret"), "1").unwrap();
    fs::write(from.path().join("t/plain"), "2").unwrap();
    let made = Command::new("mkfifo").arg(from.path().join("t/pipe")).status().unwrap();
    assert!(made.success());
    let mut expected = vec!["t/pipe"];
    if is_root() {
        eprintln!("skipped: files that cannot be read: root reads them");
    } else {
        fs::set_permissions(from.path().join("t/secret"), Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(from.path().join("t/locked"), Permissions::from_mode(0o000)).unwrap();
        expected = vec!["t/locked", "t/pipe", "t/secret"];
    }
    let report =
        copied(&[from.path().join("t")], into.path(), &Options { delete: true, ..Options::archive() });
    let left_out: Vec<_> = sorted(&report).into_iter().map(|(name, _)| name).collect();
    assert_eq!(left_out, expected);
    assert_eq!(fs::read(into.path().join("t/plain")).unwrap(), b"2");
    fs::set_permissions(from.path().join("t/locked"), Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn owners_are_kept_if_root_receives() {
    if !is_root() {
        eprintln!("skipped: owners: only root gives files away");
        return;
    }
    let (from, into) = (scratch(), scratch());
    fs::create_dir_all(from.path().join("t/d")).unwrap();
    fs::write(from.path().join("t/d/f"), "1").unwrap();
    fs::set_permissions(from.path().join("t/d/f"), Permissions::from_mode(0o4755)).unwrap();
    symlink("f", from.path().join("t/d/l")).unwrap();
    for (name, user, group) in [("t/d", 1001, 1002), ("t/d/f", 1003, 1004)] {
        chown(from.path().join(name), Some(user), Some(group)).unwrap();
    }
    std::os::unix::fs::lchown(from.path().join("t/d/l"), Some(1005), Some(1006)).unwrap();
    fs::set_permissions(from.path().join("t/d/f"), Permissions::from_mode(0o4755)).unwrap();
    let owner = |root: &Path, name: &str| {
        let metadata = fs::symlink_metadata(root.join(name)).unwrap();
        (metadata.uid(), metadata.gid(), metadata.mode())
    };
    copied(&[from.path().join("t")], into.path(), &Options { owners: false, ..Options::archive() });
    assert_eq!(owner(into.path(), "t/d/f").0, 0);
    // Existing attributes are corrected.
    copied(&[from.path().join("t")], into.path(), &Options::archive());
    for name in ["t/d", "t/d/f"] {
        assert_eq!(owner(into.path(), name), owner(from.path(), name), "{name}");
    }
    let fresh = scratch();
    copied(&[from.path().join("t")], fresh.path(), &Options::archive());
    for name in ["t/d", "t/d/f", "t/d/l"] {
        assert_eq!(owner(fresh.path(), name), owner(from.path(), name), "{name}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn attributes_are_kept_on_request() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::create_dir_all(from.path().join("t/d")).unwrap();
    fs::write(from.path().join("t/f"), "1").unwrap();
    let set = |path: &Path, name: &str, value: &[u8]| {
        rustix::fs::setxattr(path, name, value, rustix::fs::XattrFlags::empty())
    };
    if set(&from.path().join("t/f"), "user.origin", b"run 7\0\xff").is_err() {
        eprintln!("skipped: attributes: this file system has none");
        return;
    }
    set(&from.path().join("t/d"), "user.of", b"directory").unwrap();
    let get = |path: &Path, name: &str| {
        let mut value = vec![0; 100];
        let length = rustix::fs::getxattr(path, name, &mut value[..]).ok()?;
        value.truncate(length);
        Some(value)
    };
    let with = Options { attributes: true, ..Options::archive() };
    copied(&[from.path().join("t")], into.path(), &Options::archive());
    assert_eq!(get(&into.path().join("t/f"), "user.origin"), None);
    set(&into.path().join("t/f"), "user.old", b"goes").unwrap();
    copied(&[from.path().join("t")], into.path(), &with);
    assert_eq!(get(&into.path().join("t/f"), "user.origin").unwrap(), b"run 7\0\xff");
    assert_eq!(get(&into.path().join("t/f"), "user.old"), None);
    assert_eq!(get(&into.path().join("t/d"), "user.of").unwrap(), b"directory");
    fs::remove_dir_all(into.path().join("t")).unwrap();
    copied(&[from.path().join("t")], into.path(), &with);
    assert_eq!(get(&into.path().join("t/f"), "user.origin").unwrap(), b"run 7\0\xff");
}

/// An ACL as Linux stores it: user 12,345, and a mask.
#[cfg(target_os = "linux")]
fn acl() -> Vec<u8> {
    let nobody = u32::MAX;
    let entries = [
        (0x01_u16, 6_u16, nobody),
        (0x02, 4, 12_345),
        (0x04, 4, nobody),
        (0x10, 6, nobody),
        (0x20, 0, nobody),
    ];
    let mut acl = 2_u32.to_le_bytes().to_vec();
    for (tag, may, id) in entries {
        acl.extend(tag.to_le_bytes());
        acl.extend(may.to_le_bytes());
        acl.extend(id.to_le_bytes());
    }
    acl
}

#[test]
#[cfg(target_os = "linux")]
fn access_control_lists_are_kept_with_the_attributes() {
    let (from, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::create_dir_all(from.path().join("t/d")).unwrap();
    fs::write(from.path().join("t/f"), "1").unwrap();
    let set = |path: &str, name: &str| {
        rustix::fs::setxattr(from.path().join(path), name, &acl(), rustix::fs::XattrFlags::empty())
    };
    if set("t/f", "system.posix_acl_access").is_err() {
        eprintln!("skipped: this file system has no ACLs");
        return;
    }
    set("t/d", "system.posix_acl_default").unwrap();
    let get = |path: &str, name: &str| {
        let mut value = [0; 100];
        let length = rustix::fs::getxattr(into.path().join(path), name, &mut value[..]).ok()?;
        Some(value[..length].to_vec())
    };
    copied(&[from.path().join("t")], into.path(), &Options { attributes: true, ..Options::archive() });
    assert_eq!(get("t/f", "system.posix_acl_access"), Some(acl()));
    assert_eq!(get("t/d", "system.posix_acl_default"), Some(acl()));
    assert_eq!(mode(&into.path().join("t/f")), mode(&from.path().join("t/f")));
}

#[test]
#[cfg(target_os = "linux")]
fn more_attributes_than_are_in_memory_at_once_arrive() {
    // Only tmpfs has attributes of 60 kB.
    let Ok(from) = tempfile::tempdir_in("/dev/shm") else { return eprintln!("skipped: no /dev/shm") };
    let into = tempfile::tempdir_in("/dev/shm").unwrap();
    let (value, names) = (vec![7; 60_000], ["user.a", "user.b"]);
    for number in 0..400 {
        // Empty files take another code path.
        let path = from.path().join(number.to_string());
        fs::write(&path, if number % 4 == 0 { "" } else { "x" }).unwrap();
        for name in names {
            if rustix::fs::setxattr(&path, name, &value, rustix::fs::XattrFlags::empty()).is_err() {
                return eprintln!("skipped: tmpfs has no attributes here");
            }
        }
    }
    let with = Options { attributes: true, ..Options::archive() };
    let report = copied(&[format!("{}/", from.path().display()).into()], into.path(), &with);
    assert_eq!((report.files_copied, report.left_out_count), (400, 0), "{:?}", sorted(&report));
    for number in 0..400 {
        for name in names {
            let mut got = vec![0; 60_001];
            let length =
                rustix::fs::getxattr(into.path().join(number.to_string()), name, &mut got[..]).unwrap();
            assert!(got[..length] == value, "{number} {name}");
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_ends_a_conversion_with_an_error_and_it_resumes_with_room() {
    use crate::ends::over_pipes;
    use crate::generate::snapshot;
    use grebe_tree::Error;

    let (from, into) = (scratch(), tempfile::tempdir().unwrap());
    let mount = |options: &str| {
        let made =
            Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(into.path()).output();
        made.is_ok_and(|made| made.status.success())
    };
    if !mount("size=6m") {
        eprintln!("skipped: a full disk: no file system can be mounted here");
        return;
    }
    let _unmount = Unmount(into.path());
    fs::create_dir(from.path().join("t")).unwrap();
    for name in ["a", "b", "c"] {
        fs::write(from.path().join("t").join(name), name.repeat(3 << 20)).unwrap();
    }
    let sources = [from.path().join("t")];
    let (sent, received) = over_pipes(&sources, into.path(), &Options::archive());
    assert!(matches!(received, Err(Error::NoRoom { .. })), "{received:?}");
    assert!(sent.unwrap_err().to_string().contains("no room left"));
    assert_eq!(snapshot(into.path()).get(Path::new("t/c")), None);
    assert!(mount("remount,size=40m"));
    let report = copied(&sources, into.path(), &Options::archive());
    assert!(report.files_same >= 1 && report.data_bytes < 7 << 20, "{report:?}");
    assert_same(from.path(), into.path());
}

#[cfg(target_os = "linux")]
struct Unmount<'a>(&'a Path);

#[cfg(target_os = "linux")]
impl Drop for Unmount<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}
