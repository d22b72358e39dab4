//! `grebe cp` within one machine: results, messages, exit statuses.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Stdio;

use crate::support::trees::{assert_same, file, plant, things};
use crate::support::{Good, finish, grebe, path, run, text, wait_until};
use serde_json::Value;

/// Runs it to its end: exit status, result in JSON, messages.
fn cp(arguments: &[&str]) -> (Option<i32>, Value, String) {
    let output = run(&[&["cp", "--no-config", "--json"], arguments].concat());
    let stdout = text(&output.stdout);
    let result = stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let result = result.rev().find_map(|line| line.get("result").cloned()).unwrap_or_default();
    (output.status.code(), result, text(&output.stderr))
}

#[test]
fn an_archive_is_the_same_and_the_second_time_there_is_nothing_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    plant(&from);
    let (status, result, said) = cp(&["-a", path(&from), path(&to)]);
    assert_eq!(status, Some(0), "{said}");
    assert_same(&from, &to, "copied");
    let inode = |name: &str| fs::metadata(to.join(name)).unwrap().ino();
    assert_eq!(inode("plain.txt"), inode("deep/same as plain.txt"), "one file of two names");
    let files = result["files_copied"].as_u64().unwrap();
    assert!(files >= 59, "{result}");
    assert_eq!(result["complete"], true);

    let before = things(&to);
    let (status, result, said) = cp(&["-a", &format!("{}/", path(&from)), path(&to)]);
    assert_eq!((status, result["files_copied"].as_u64()), (Some(0), Some(0)), "{said} {result}");
    assert!(result["files_same"].as_u64().unwrap() >= files, "{result}");
    assert_eq!(things(&to), before);
}

#[test]
fn a_copy_into_an_existing_directory_is_reported_the_first_time() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("a"), folder.path().join("b"));
    fs::create_dir(&from).unwrap();
    file(&from.join("x"), b"x", 1);
    let notes = |source: &str| {
        let output = run(&["cp", "--no-config", "-r", source, path(&to)]).good();
        text(&output.stderr).contains("b exists: the copy is ")
    };
    let contents = format!("{}/", path(&from));
    assert_eq!([path(&from), &contents, path(&from), path(&from)].map(notes), [false, false, true, false]);
    assert!(to.join("a/x").is_file());
}

/// An interrupted copy under a new name is not an existing directory: the same command goes on in it, and says nothing else.
#[test]
fn an_interrupted_copy_under_a_new_name_goes_on_under_it() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("a"), folder.path().join("new"));
    fs::create_dir(&from).unwrap();
    (0..3_000).for_each(|number| file(&from.join(format!("{number}")), b"x", 1));
    let copy = ["cp", "--no-config", "-r", path(&from), path(&to)];
    let names = || fs::read_dir(&to).map_or(0, Iterator::count);
    let is_killed_in_between = (0..20).any(|_| {
        let _ = fs::remove_dir_all(&to);
        let mut child = grebe(&copy).spawn().unwrap();
        wait_until("nothing comes", || names() > 0);
        child.kill().unwrap();
        child.wait().unwrap();
        names() < 3_000
    });
    assert!(is_killed_in_between, "each copy was too fast");
    let again = run(&copy).good();
    assert!(!text(&again.stderr).contains("exists"), "{}", text(&again.stderr));
    assert_eq!(names(), 3_000);
    let inside = run(&copy).good();
    assert!(text(&inside.stderr).contains("new exists: the copy is "), "{}", text(&inside.stderr));
}

#[test]
fn within_one_machine_progressive_names_its_limit() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("a.sigmf-meta");
    fs::write(&from, "{}").unwrap();
    let to = folder.path().join("b.sigmf-meta");
    let said = |more: &[&str]| {
        let copy = ["cp", "--no-config", path(&from), path(&to)];
        text(&run(&[&copy, more].concat()).good().stderr)
    };
    assert!(said(&["--progressive"]).contains("name all files of a recording"));
    assert!(!said(&[]).contains("--progressive"));
}

#[test]
fn names_are_taken_as_rsync_takes_them() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("one")).unwrap();
    file(&at("one/a"), b"a", 1);
    file(&at("b"), b"b", 2);
    fs::create_dir(at("into")).unwrap();
    // Into a directory that is there; the contents of one; a new name; several.
    for (sources, destination, expected) in [
        (vec!["one"], "into", "into/one/a"),
        (vec!["one/"], "into", "into/a"),
        (vec!["b"], "into", "into/b"),
        (vec!["b"], "c", "c"),
        (vec!["b", "one/a"], "both", "both/a"),
    ] {
        let sources: Vec<_> =
            sources.iter().map(|name| folder.path().join(name).display().to_string()).collect();
        let destination = at(destination);
        let mut arguments = vec!["-r"];
        arguments.extend(sources.iter().map(String::as_str));
        arguments.push(path(&destination));
        let (status, _, said) = cp(&arguments);
        assert_eq!(status, Some(0), "{arguments:?}: {said}");
        assert!(at(expected).is_file(), "{arguments:?}: {expected}");
    }
}

#[test]
fn a_dry_run_changes_nothing_and_lists_the_changes() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    plant(&from);
    fs::create_dir(&to).unwrap();
    file(&to.join("old"), b"old", 3);
    let before = things(folder.path());
    let source = format!("{}/", path(&from));
    let output = run(&["cp", "--no-config", "-an", "--delete", &source, path(&to)]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(things(folder.path()), before);
    let listed = text(&output.stdout);
    for line in ["copy plain.txt", "copy new\\nline", "copy deep/er/large.bin", "make empty", "remove old"] {
        assert!(listed.lines().any(|listed| listed.trim_end_matches('/') == line), "{line} in {listed}");
    }
    assert!(text(&output.stderr).contains("would copy"), "{}", text(&output.stderr));
}

#[test]
fn delete_spares_excluded_names_and_removes_the_others_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    fs::create_dir_all(from.join("deep")).unwrap();
    fs::create_dir_all(to.join("gone")).unwrap();
    file(&from.join("a.bin"), b"a", 1);
    file(&from.join("deep/a.tmp"), b"a", 1);
    file(&to.join("gone/b"), b"b", 1);
    file(&to.join("mine.tmp"), b"mine", 1);
    let source = format!("{}/", path(&from));
    let (status, result, said) = cp(&["-r", "--exclude", "*.tmp", "--delete", &source, path(&to)]);
    assert_eq!(status, Some(0), "{said}");
    let names: Vec<_> = things(&to).into_keys().map(|name| name.display().to_string()).collect();
    assert_eq!(names, ["a.bin", "deep", "mine.tmp"], "what is excluded is not removed");
    assert_eq!(result["deleted"].as_u64(), Some(2), "{result}");
}

#[test]
fn nothing_is_removed_while_something_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    fs::create_dir_all(from.join("deep")).unwrap();
    fs::create_dir_all(to.join("deep")).unwrap();
    file(&from.join("a.bin"), b"a", 1);
    file(&to.join("deep/only here"), b"b", 1);
    let pipe = from.join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let arguments = ["-r", "--delete", &format!("{}/", path(&from)), path(&to)];
    let dry_run = [&["-n"][..], &arguments].concat();
    for arguments in [&dry_run[..], &arguments] {
        let (status, result, said) = cp(arguments);
        assert_eq!((status, result["deleted"].as_u64()), (Some(4), Some(0)), "{said} {result}");
        let last = result["left_out"].as_array().unwrap().last().unwrap();
        assert!(last["why"].as_str().unwrap().contains("--delete"), "{result}");
        assert!(to.join("deep/only here").exists());
    }
    fs::remove_file(pipe).unwrap();
    let (status, result, said) = cp(&arguments);
    assert_eq!((status, result["deleted"].as_u64()), (Some(0), Some(1)), "{said} {result}");
    assert!(!to.join("deep/only here").exists());
}

#[test]
fn checksum_compares_files_of_equal_size_and_time() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("a"), folder.path().join("b"));
    file(&from, b"new contents", 1);
    file(&to, b"old contents", 1);
    let (status, result, _) = cp(&[path(&from), path(&to)]);
    assert_eq!((status, result["files_copied"].as_u64()), (Some(0), Some(0)), "size and time are the same");
    assert_eq!(fs::read(&to).unwrap(), b"old contents");
    let (status, result, _) = cp(&["-c", path(&from), path(&to)]);
    assert_eq!((status, result["files_copied"].as_u64()), (Some(0), Some(1)), "{result}");
    assert_eq!(fs::read(&to).unwrap(), b"new contents");
}

#[test]
fn an_unreadable_file_is_named_and_the_others_arrive() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    fs::create_dir(&from).unwrap();
    file(&from.join("good"), b"good", 1);
    fs::create_dir(from.join("closed")).unwrap();
    file(&from.join("closed/x"), b"x", 1);
    fs::set_permissions(from.join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read_dir(from.join("closed")).is_ok() {
        println!("skipped: root reads everything");
        return;
    }
    let (status, result, said) = cp(&["-r", path(&from), path(&to)]);
    fs::set_permissions(from.join("closed"), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(status, Some(4), "{said}");
    assert_eq!(result["complete"], false);
    assert!(result["left_out"][0]["path"].as_str().unwrap().contains("closed"), "{result}");
    assert_eq!(fs::read(to.join("good")).unwrap(), b"good");
}

#[test]
fn mistakes_are_reported_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    fs::create_dir(folder.path().join("dir")).unwrap();
    fs::create_dir(folder.path().join("config")).unwrap();
    fs::create_dir(folder.path().join("config/grebe")).unwrap();
    fs::write(folder.path().join("config/grebe/cp.toml"), "[defaults]\n\nmodee = \"fair\"\n").unwrap();
    let (none, dir, to) = (at("none"), at("dir"), at("to"));
    for (arguments, status, words) in [
        (vec!["cp", "a"], 2, "2 values required"),
        (vec!["cp", "--no-config", "lab:a", "store:b", "c"], 2, "on several machines"),
        (vec!["cp", "--no-config", "a", "lab:b", "c"], 2, "on several machines"),
        (vec!["cp", "--no-config", "-oProxyCommand=x:y", "c"], 2, "unexpected argument"),
        (vec!["cp", "--no-config", "--", "-oProxyCommand=x:y", "c"], 2, "./NAME"),
        (vec!["cp", "--no-config", "--via", "pigeon", "a", "b"], 2, "auto, udp, tcp, relay, ssh"),
        (vec!["cp", "--no-config", "--ssh", "ssh 'x", "a", "lab:b"], 2, "quotes closed"),
        (vec!["cp", "--no-config", "--bwlimit", "fast", "a", "b"], 2, "--bwlimit"),
        (vec!["cp", &dir, &to], 2, "cp.toml:3: unknown 'modee' - did you mean 'mode'?"),
        (vec!["cp", "--no-config", "--log", "/nowhere/log", &dir, &to], 1, "--log"),
        (vec!["cp", "--no-config", "--exclude", "[", "-r", &dir, &to], 2, "invalid pattern '['"),
        (vec!["cp", "--no-config", &none, &to], 1, "none: file or directory not found"),
        (vec!["cp", "--no-config", &none, &none, &to], 1, "nor any of the other sources"),
    ] {
        let mut command = grebe(&arguments);
        command.env("XDG_CONFIG_HOME", at("config"));
        let output = finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
    assert!(!Path::new(&to).exists());
    // Existing sources arrive, even if others are missing.
    file(&folder.path().join("one"), b"one", 1);
    let (status, result, said) = cp(&[&at("one"), &none, &to]);
    assert_eq!((status, result["files_copied"].as_u64()), (Some(4), Some(1)), "{said}");
    assert!(result["left_out"][0]["path"].as_str().unwrap().contains("none"), "{result}");
}

#[test]
fn files_replace_devices_and_named_pipes_only_with_force() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("from")).unwrap();
    for name in ["a", "from/a", "from/b"] {
        file(&at(name), b"new", 1);
    }
    file(&at("empty"), b"", 1);
    fs::create_dir(at("to")).unwrap();
    for name in ["pipe", "to/a"] {
        assert!(std::process::Command::new("mkfifo").arg(at(name)).status().unwrap().success());
    }
    let is_pipe = |name: &str| {
        use std::os::unix::fs::FileTypeExt;
        fs::symlink_metadata(at(name)).unwrap().file_type().is_fifo()
    };
    for source in ["a", "empty"] {
        let (status, result, said) = cp(&[path(&at(source)), path(&at("pipe"))]);
        let why = result["left_out"][0]["why"].as_str().unwrap_or_default();
        assert!(status == Some(4) && why.contains("a named pipe has its name there"), "{said} {result}");
        assert!(is_pipe("pipe"), "{source}");
    }
    let from = format!("{}/", path(&at("from")));
    let (status, result, said) = cp(&["-a", &from, path(&at("to"))]);
    assert_eq!((status, result["files_copied"].as_u64()), (Some(4), Some(1)), "{said} {result}");
    assert!(is_pipe("to/a") && fs::read(at("to/b")).unwrap() == b"new");
    let (status, result, said) = cp(&["-a", "--force", &from, path(&at("to"))]);
    assert_eq!(status, Some(0), "{said} {result}");
    assert_eq!(fs::read(at("to/a")).unwrap(), b"new");
}

#[test]
fn the_log_has_a_line_for_each_file_and_quiet_says_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to, log) = (folder.path().join("from"), folder.path().join("to"), folder.path().join("log"));
    plant(&from);
    let arguments = ["cp", "--no-config", "-aq", "--log", path(&log), path(&from), path(&to)];
    let output = run(&arguments);
    assert_eq!(
        (output.status.code(), text(&output.stdout), text(&output.stderr)),
        (Some(0), String::new(), String::new())
    );
    let lines = fs::read_to_string(&log).unwrap();
    let of = |name: &str| lines.lines().filter(|line| line.ends_with(name)).collect::<Vec<_>>();
    let large = of("\tto/deep/er/large.bin");
    assert_eq!(large.len(), 1, "{lines}");
    assert!(large[0].contains("Z\tcopied\t3000000\t"), "{large:?}");
    assert_eq!(of("new\\nline").len(), 1, "one line, whatever the name: {lines}");
}

#[test]
fn a_reader_that_is_gone_stops_no_copy() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    plant(&from);
    fs::create_dir(&to).unwrap();
    for close in ["--verbose", "--json"] {
        let to = to.join(close);
        let mut command = grebe(&["cp", "--no-config", "-a", close, path(&from), path(&to)]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop((child.stdout.take(), child.stderr.take()));
        assert_eq!(finish(child).status.code(), Some(0), "{close}");
        assert_same(&from, &to, close);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_and_the_same_command_resumes_with_room() {
    let folder = tempfile::tempdir().unwrap();
    let (from, disk) = (folder.path().join("from"), folder.path().join("disk"));
    fs::create_dir(&disk).unwrap();
    fs::create_dir(&from).unwrap();
    let mount = |arguments: &[&str]| {
        let done =
            std::process::Command::new("mount").args(arguments).arg(&disk).stderr(Stdio::null()).status();
        done.is_ok_and(|status| status.success())
    };
    if !mount(&["-t", "tmpfs", "-o", "size=8m", "none"]) {
        println!("skipped: this user mounts nothing");
        return;
    }
    let _unmounts = Unmounts(&disk);
    for number in 0..6 {
        let contents = crate::support::trees::noise(2_500_000, number);
        file(&from.join(format!("{number}.bin")), &contents, number);
    }
    let to = disk.join("to");
    let (status, _, said) = cp(&["-r", path(&from), path(&to)]);
    assert_eq!(status, Some(5), "{said}");
    assert!(said.contains("no room") && said.contains("goes on"), "{said}");
    assert!(mount(&["-o", "remount,size=40m"]));
    let (status, _, said) = cp(&["-a", &format!("{}/", path(&from)), path(&to)]);
    assert_eq!(status, Some(0), "{said}");
    assert_same(&from, &to, "after there was room");
}

/// Takes a disk away again, however a test ends.
#[cfg(target_os = "linux")]
struct Unmounts<'a>(&'a Path);

#[cfg(target_os = "linux")]
impl Drop for Unmounts<'_> {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(self.0).status();
    }
}
