//! `grebe cp` to volumes that are not as a system's own: without case, without owners, modes or fine times. They are
//! images of NTFS and exFAT, mounted by FUSE as root, where the programs for that are there.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::support::trees::{file, noise};
use crate::support::{path, run, text};
use serde_json::Value;

/// A volume, until it is dropped.
struct Volume {
    kind: &'static str,
    folder: tempfile::TempDir,
    loop_device: Option<String>,
}

impl Volume {
    /// Both kinds that ignore case, as far as they can be had here.
    fn all() -> Vec<Self> {
        let volumes = [Self::ntfs("ignore_case"), Self::exfat()];
        volumes.into_iter().flatten().collect()
    }

    fn ntfs(options: &str) -> Option<Self> {
        let mut volume = Self::image("NTFS");
        let image = volume.image_path();
        let is_there = did("mkntfs", &["-F", "-Q", path(&image)])
            && did("lowntfs-3g", &["-o", options, path(&image), path(&volume.path())]);
        volume.kind = if is_there { "NTFS" } else { return volume.skipped("mkntfs and lowntfs-3g") };
        Some(volume)
    }

    fn exfat() -> Option<Self> {
        let mut volume = Self::image("exFAT");
        let image = volume.image_path();
        let said = Command::new("losetup").args(["-f", "--show", path(&image)]).output();
        let device = said.ok().filter(|said| said.status.success()).map(|said| text(&said.stdout));
        volume.loop_device = device.map(|device| device.trim().to_owned());
        let Some(device) = volume.loop_device.clone() else { return volume.skipped("a loop device") };
        let is_there =
            did("mkfs.exfat", &[&device]) && did("mount.exfat-fuse", &[&device, path(&volume.path())]);
        if is_there { Some(volume) } else { volume.skipped("mkfs.exfat and mount.exfat-fuse") }
    }

    fn image(kind: &'static str) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let volume = Self { kind, folder, loop_device: None };
        fs::create_dir(volume.path()).unwrap();
        fs::File::create(volume.image_path()).unwrap().set_len(40 << 20).unwrap();
        volume
    }

    fn skipped(self, needs: &str) -> Option<Self> {
        eprintln!("skipped on {}: it needs root, FUSE, {needs}", self.kind);
        None
    }

    fn image_path(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("volume")
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).output();
        if let Some(device) = &self.loop_device {
            let _ = Command::new("losetup").args(["-d", device]).output();
        }
    }
}

fn did(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

/// Runs it to its end: exit status, result in JSON, messages.
fn cp(arguments: &[&str]) -> (Option<i32>, Value, String) {
    let output = run(&[&["cp", "--no-config", "--json"], arguments].concat());
    let stdout = text(&output.stdout);
    let result = stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let result = result.rev().find_map(|line| line.get("result").cloned()).unwrap_or_default();
    (output.status.code(), result, text(&output.stderr))
}

fn contents(folder: &Path) -> String {
    format!("{}/", path(folder))
}

fn count(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

fn left_out(result: &Value) -> Vec<(String, String)> {
    let said = |value: &Value| value.as_str().unwrap().to_owned();
    let all = result["left_out"].as_array().unwrap();
    all.iter().map(|left| (said(&left["path"]), said(&left["why"]))).collect()
}

#[test]
fn delete_spares_a_name_that_differs_only_in_case_on_such_a_volume() {
    for volume in Volume::all() {
        let (from, to) = (volume.folder.path().join("from"), volume.path().join("to"));
        fs::create_dir_all(from.join("Night")).unwrap();
        file(&from.join("Take1.bin"), &noise(100_000, 1), 2);
        file(&from.join("Größe.bin"), &noise(100, 2), 2);
        file(&from.join("gone.bin"), &noise(100, 3), 2);
        file(&from.join("Night/a.bin"), &noise(50_000, 4), 2);
        let (status, _, said) = cp(&["-r", &contents(&from), path(&to)]);
        assert_eq!(status, Some(0), "{}: {said}", volume.kind);

        for (old, new) in [("Take1.bin", "take1.bin"), ("Größe.bin", "GRÖßE.bin"), ("Night", "NIGHT")] {
            fs::rename(from.join(old), from.join(new)).unwrap();
        }
        fs::remove_file(from.join("gone.bin")).unwrap();
        for round in 0..2 {
            let (status, result, said) = cp(&["-r", "--delete", &contents(&from), path(&to)]);
            assert_eq!(status, Some(0), "{} {round}: {said} {result}", volume.kind);
            assert_eq!(fs::read(to.join("take1.bin")).unwrap(), noise(100_000, 1), "{}", volume.kind);
            assert_eq!(fs::read(to.join("NIGHT/a.bin")).unwrap(), noise(50_000, 4), "{}", volume.kind);
            assert_eq!(fs::read(to.join("GRÖßE.bin")).unwrap(), noise(100, 2), "{}", volume.kind);
            assert_eq!(count(&to), 3, "{}: and deleted sources are removed", volume.kind);
            assert_eq!(result["deleted"], u64::from(round == 0), "{}: {result}", volume.kind);
        }
    }
}

#[test]
fn names_equal_on_the_volume_copy_the_first_and_report_the_others() {
    for volume in Volume::all() {
        let (from, to) = (volume.folder.path().join("from"), volume.path().join("to"));
        fs::create_dir_all(from.join("Runs")).unwrap();
        fs::create_dir_all(from.join("runs")).unwrap();
        file(&from.join("Logo.png"), b"the first", 2);
        file(&from.join("logo.png"), b"another one", 2);
        file(&from.join("other.png"), b"other", 2);
        file(&from.join("Runs/a"), b"a", 2);
        file(&from.join("runs/a"), b"b", 2);
        // Again, and the answer is the same.
        for round in 0..2 {
            let (status, result, said) = cp(&["-r", &contents(&from), path(&to)]);
            assert_eq!(status, Some(4), "{} {round}: {said} {result}", volume.kind);
            let left_out = left_out(&result);
            let names: Vec<_> = left_out.iter().map(|(name, _)| &**name).collect();
            assert_eq!(names, ["logo.png", "runs"], "{}: {left_out:?}", volume.kind);
            assert!(left_out[0].1.starts_with("Logo.png was copied, and"), "{left_out:?}");
            assert_eq!(result["files_copied"], if round == 0 { 3 } else { 0 }, "{}: {result}", volume.kind);
        }
        assert_eq!(fs::read(to.join("Logo.png")).unwrap(), b"the first");
        assert_eq!(fs::read(to.join("Runs/a")).unwrap(), b"a");
        assert_eq!((count(&to), count(&to.join("Runs"))), (3, 1), "{}", volume.kind);
    }
}

#[test]
fn two_sources_may_meet_there_too() {
    for volume in Volume::all() {
        let folder = volume.folder.path();
        for (at, name) in [("a", "logo.png"), ("b", "Logo.png")] {
            fs::create_dir(folder.join(at)).unwrap();
            file(&folder.join(at).join(name), at.as_bytes(), 2);
        }
        let (a, b) = (folder.join("a/logo.png"), folder.join("b/Logo.png"));
        let (status, result, said) = cp(&[path(&a), path(&b), path(&volume.path())]);
        assert_eq!((status, left_out(&result).len()), (Some(4), 1), "{}: {said} {result}", volume.kind);
        assert_eq!(fs::read(volume.path().join("logo.png")).unwrap(), b"a");
    }
}

#[test]
fn a_volume_without_owners_and_modes_is_copied_to_and_nothing_twice() {
    let mounted = [
        Volume::ntfs("ignore_case"),
        Volume::ntfs("uid=12345,gid=12345,umask=022"),
        Volume::ntfs("uid=12345,gid=12345,umask=077"),
        Volume::exfat(),
    ];
    for volume in mounted.into_iter().flatten() {
        let (from, to) = (volume.folder.path().join("from"), volume.path().join("to"));
        fs::create_dir_all(from.join("deep")).unwrap();
        file(&from.join("small.bin"), &noise(10_000, 1), 3);
        file(&from.join("deep/large.bin"), &noise(3_000_000, 2), 3);
        let odd = SystemTime::UNIX_EPOCH + Duration::new(1_700_000_001, 987_654_321);
        fs::File::open(from.join("small.bin")).unwrap().set_modified(odd).unwrap();
        let (status, result, said) = cp(&["-r", &contents(&from), path(&to)]);
        assert_eq!(
            (status, &result["files_copied"]),
            (Some(0), &2.into()),
            "{}: {said} {result}",
            volume.kind
        );
        let modified = fs::metadata(to.join("small.bin")).unwrap().modified().unwrap();
        assert!(odd.duration_since(modified).unwrap() < Duration::from_secs(2), "{}: its time", volume.kind);
        for arguments in [&["-r"][..], &["-rn"], &["-rc"]] {
            let (status, result, said) = cp(&[arguments, &[&contents(&from), path(&to)]].concat());
            assert_eq!(
                (status, &result["files_copied"]),
                (Some(0), &0.into()),
                "{}: {said} {result}",
                volume.kind
            );
        }
        // An unsupported attribute is reported once.
        let (status, result, said) = cp(&["-a", &contents(&from), path(&to)]);
        let left_out = left_out(&result);
        assert_eq!((status, &result["files_copied"]), (Some(4), &0.into()), "{}: {said}", volume.kind);
        assert!(
            left_out.len() <= 2 && left_out.iter().all(|(_, why)| why.contains("reported once")),
            "{left_out:?}"
        );
        assert!(left_out.iter().any(|(_, why)| why.contains("does not store modes")), "{left_out:?}");
        assert_eq!(fs::read(to.join("deep/large.bin")).unwrap(), noise(3_000_000, 2));
        assert_eq!(count(&to), 2, "nothing of ours stays");
    }
}

#[test]
fn a_part_on_such_a_volume_resumes() {
    for volume in Volume::all() {
        let (from, to) = (volume.folder.path().join("from"), volume.path().join("to"));
        fs::create_dir(&from).unwrap();
        file(&from.join("large.bin"), &noise(8_000_000, 2), 3);
        fs::create_dir_all(to.join(".grebe-partial")).unwrap();
        let (status, result, said) = cp(&["-r", &contents(&from), path(&to)]);
        assert_eq!(
            (status, &result["files_copied"]),
            (Some(0), &1.into()),
            "{}: {said} {result}",
            volume.kind
        );
        assert_eq!(count(&to), 1, "{}: the folder counts as our own, and is removed", volume.kind);
    }
}

#[test]
fn a_folder_of_another_owner_is_refused() {
    use std::os::unix::fs::{PermissionsExt, chown};
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    file(&from, b"from", 3);
    fs::create_dir(&to).unwrap();
    let partial = to.join(".grebe-partial");
    fs::create_dir(&partial).unwrap();
    fs::set_permissions(&to, fs::Permissions::from_mode(0o1777)).unwrap();
    for mode in [0o777, 0o700] {
        fs::set_permissions(&partial, fs::Permissions::from_mode(mode)).unwrap();
        if chown(&partial, Some(12_345), None).is_err() {
            eprintln!("skipped: only root gives a folder away");
            return;
        }
        let (status, result, said) = cp(&[path(&from), path(&to)]);
        assert_ne!(status, Some(0), "{result}");
        assert!(format!("{said}{result}").contains("not this user's own"), "{said} {result}");
        assert_eq!(
            (count(&partial), count(&to)),
            (0, 1),
            "nothing was put into it, and nothing of ours stays"
        );
    }
}
