use std::fs;

use super::*;
use crate::io::disk::system::NameRules;

fn index() -> Index {
    let entry =
        |name: &str, bytes| Entry { name: name.into(), bytes, mode: 0o666, modified_unix_ns: 1_500_000_000 };
    Index {
        entries: vec![entry("d", None), entry("d/a", Some(3)), entry("d/b", Some(0)), entry("f", Some(4))],
    }
}

const INDEX_BYTES: u64 = 10;

const CONTENT: [u8; 32] = [7; 32];

fn open(directory: &Path) -> Arc<Directory> {
    Arc::new(Directory::open(directory).unwrap())
}

fn create(directory: &Path, overwrite: bool) -> Result<Target> {
    create_of(directory, index(), overwrite)
}

fn create_of(directory: &Path, index: Index, overwrite: bool) -> Result<Target> {
    let open = open(directory);
    let folder = Folder::make(&open, directory, &CONTENT)?;
    Target::create(&open, directory, folder, index, INDEX_BYTES, overwrite)
}

fn reopen(directory: &Path, named: bool) -> Option<Target> {
    let open = open(directory);
    let folder = Folder::find(&open, directory, &CONTENT).unwrap().unwrap();
    Target::reopen(&open, directory, folder, index(), INDEX_BYTES, false, named)
}

fn part_path(target: &Target, entry: &Entry) -> PathBuf {
    target.folder.path_of(part_name(entry))
}

fn give_names(target: &mut Target, damaged: &RangeSet) -> Named {
    target.settle(damaged).unwrap();
    target.make_safe().unwrap();
    target.give_names().unwrap()
}

fn finish(target: &mut Target) -> Named {
    let named = give_names(target, &RangeSet::default());
    target.remove_folder();
    named
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn files_get_their_names_when_all_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let mut target = create(directory.path(), false).unwrap();
    target.write(5, b"indexabcdef").unwrap();
    target.write(16, b"g\0\0\0").unwrap();
    assert_eq!(names(directory.path()), [".grebe-partial"], "nothing has its name");
    let mut read = [1; 12];
    target.read(8, &mut read);
    assert_eq!(&read, b"\0\0abcdefg\0\0\0");
    assert_eq!(finish(&mut target).paths, [at("d"), at("f")]);
    assert_eq!(
        (fs::read(at("d/a")).unwrap(), fs::read(at("f")).unwrap()),
        (b"abc".to_vec(), b"defg".to_vec())
    );
    let meta = fs::metadata(at("f")).unwrap();
    assert_eq!(meta.modified().unwrap().duration_since(UNIX_EPOCH).unwrap(), Duration::from_millis(1_500));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::write(at("own"), b"").unwrap();
        let own = fs::metadata(at("own")).unwrap().permissions().mode();
        assert_eq!(meta.permissions().mode() & 0o777, own & 0o777, "the user's umask holds");
        fs::remove_file(at("own")).unwrap();
    }
    assert_eq!(names(directory.path()), ["d", "f"]);
}

#[test]
#[cfg(unix)]
fn a_named_pipe_is_replaced_by_nothing_whatever_is_asked() {
    use std::os::unix::fs::FileTypeExt;

    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("f");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut target = create(directory.path(), true).unwrap();
    let named = finish(&mut target);
    assert_eq!(named.paths, [directory.path().join("d")]);
    assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
}

#[test]
fn nothing_that_is_there_is_replaced_unasked_and_the_others_come() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    for name in ["f", "f.part", "d.part"] {
        fs::write(at(name), b"precious").unwrap();
    }
    let mut target = create(directory.path(), false).unwrap();
    target.write(10, b"abcdefg\0\0\0").unwrap();
    let named = finish(&mut target);
    assert_eq!((named.paths, named.left_out.len()), (vec![at("d")], 1));
    assert_eq!(named.left_out[0].path, at("f"));
    assert!(matches!(create(directory.path(), false), Err(Error::Exists { .. })), "nothing is left");
    for name in ["f", "f.part", "d.part"] {
        assert_eq!(fs::read(at(name)).unwrap(), b"precious");
    }
    let mut target = create(directory.path(), true).unwrap();
    target.write(10, b"abcdefg\0\0\0").unwrap();
    assert_eq!(finish(&mut target).left_out[0].path, at("d"), "directories are never replaced");
    assert_eq!(fs::read(at("f")).unwrap(), b"defg");
}

#[test]
fn a_file_that_is_there_with_its_length_and_time_is_no_error() {
    let directory = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let _ = fs::remove_dir_all(directory.path().join("d"));
        let mut target = create(directory.path(), false).unwrap();
        target.write(10, b"abcdefg\0\0\0").unwrap();
        let named = finish(&mut target);
        assert_eq!((named.paths.len(), named.left_out), (2, vec![]));
    }
    for (there, is_same) in [(b"defg", true), (b"EDFG", false)] {
        fs::write(directory.path().join("f"), there).unwrap();
        let mut target = create(directory.path(), false).unwrap();
        target.write(10, b"abcdefg\0\0\0").unwrap();
        let named = finish(&mut target);
        assert_eq!(
            (named.paths.len(), named.left_out.is_empty()),
            (usize::from(is_same), false),
            "{named:?}"
        );
        assert_eq!(target.all_exist().is_none(), is_same);
        assert_eq!(fs::read(directory.path().join("f")).unwrap(), there);
    }
}

#[test]
fn what_came_meanwhile_is_not_replaced_either_and_nothing_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    let mut target = create(directory.path(), false).unwrap();
    target.write(10, b"abcdefg\0\0\0").unwrap();
    fs::write(directory.path().join("f"), b"precious").unwrap();
    let named = give_names(&mut target, &RangeSet::default());
    assert!(named.is_kept && named.left_out[0].why.contains("meanwhile"), "{named:?}");
    assert_eq!(fs::read(directory.path().join("f")).unwrap(), b"precious");
    assert_eq!(fs::read(part_path(&target, &index().entries[3])).unwrap(), b"defg");
}

#[test]
fn what_changed_at_the_sender_or_came_damaged_gets_no_name() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let mut target = create(directory.path(), false).unwrap();
    target.write(10, b"abcdefg\x01\0\0").unwrap();
    let mut damaged = RangeSet::default();
    damaged.insert(16..17);
    let named = give_names(&mut target, &damaged);
    assert_eq!(named.paths, [at("d")]);
    let left_out: Vec<_> = named.left_out.iter().map(|left| left.path.clone()).collect();
    assert_eq!(left_out, [at("d/a"), at("f")]);
    assert_eq!(names(&at("d")), ["b"]);
    assert!(!at("f").exists());
}

#[cfg(unix)]
#[test]
fn a_name_that_cannot_be_had_is_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let mut index = index();
    index.entries[0].name = vec![b'd'; 300];
    for number in 1..3 {
        index.entries[number].name = [&[b'd'; 300][..], &index.entries[number].name[1..]].concat();
    }
    let mut target = create_of(directory.path(), index, false).unwrap();
    target.write(10, b"abcdefg\0\0\0").unwrap();
    let named = finish(&mut target);
    assert_eq!((named.paths, named.left_out.len()), (vec![directory.path().join("f")], 1));
}

#[test]
fn an_earlier_session_is_found_only_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let target = create(directory.path(), false).unwrap();
    assert!(reopen(directory.path(), false).is_some());
    fs::write(part_path(&target, &index().entries[1]), b"longer").unwrap();
    assert!(reopen(directory.path(), false).is_none());
}

#[cfg(unix)]
#[test]
fn a_link_in_the_place_of_the_folder_is_not_followed() {
    let (directory, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::os::unix::fs::symlink(elsewhere.path(), directory.path().join(".grebe-partial")).unwrap();
    assert!(create(directory.path(), false).is_err());
    assert_eq!(names(elsewhere.path()), [""; 0]);
}

#[test]
fn a_kill_between_two_names_is_made_good() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let mut target = create(directory.path(), false).unwrap();
    target.write(10, b"abcdefg\0\0\0").unwrap();
    // The directory has its name, the file has both.
    let entries = index().entries;
    fs::rename(part_path(&target, &entries[0]), at("d")).unwrap();
    fs::hard_link(part_path(&target, &entries[3]), at("f")).unwrap();
    let mut target = reopen(directory.path(), true).unwrap();
    assert_eq!(finish(&mut target).paths, [at("d"), at("f")]);
    assert_eq!(fs::read(at("f")).unwrap(), b"defg");
    assert_eq!(names(directory.path()), ["d", "f"]);
}

#[test]
fn what_has_another_name_here_is_listed_and_what_is_left_out_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let open = open(directory.path());
    let folder = Folder::make(&open, directory.path(), &CONTENT).unwrap();
    let mut index = index();
    for (entry, name) in index.entries.iter_mut().zip(["con", "con/a.fits", "con/12:00.fits", "b*"]) {
        entry.name = name.into();
    }
    let mut target = Target::place(&open, directory.path(), folder, index, false).unwrap();
    let names = |target: &Target, rules| -> Vec<_> {
        target.renamed(rules).into_iter().map(|renamed| renamed.name).collect()
    };
    assert_eq!(names(&target, NameRules::Windows), ["con", "con/12:00.fits", "b*"]);
    assert_eq!(names(&target, NameRules::Unix), [""; 0]);
    target.fates[3] = Fate::LeftOut("it exists".to_owned());
    assert_eq!(names(&target, NameRules::Windows), ["con", "con/12:00.fits"]);
}
