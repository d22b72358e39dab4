//! Tests offers between ends without mutual login: acceptance, existing files, resumption.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use grebe_tree::{
    Accept, Cancel, Error, Offer, Offering, Reception, Report, Result, receive_offer, send_offer,
};

use crate::ends::{over_cut_pipes, progress};
use crate::generate::scratch;

fn write(root: &Path, files: &[(&str, &str)]) {
    for (name, content) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

fn at(path: &Path, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

fn look(sources: &[PathBuf]) -> Offering {
    Offering::look(sources, &["*.tmp".to_owned()], &Cancel::default()).unwrap()
}

fn reception(into: &Path, overwrite: bool) -> Reception {
    Reception { directory: into.to_path_buf(), overwrite, accept: None, sender_waits: false }
}

fn run(offering: Offering, reception: &Reception, cut: Option<i64>) -> (Result<Report>, Result<Report>) {
    over_cut_pipes(
        cut,
        move |answers, writer| send_offer(answers, writer, &offering, &progress(), &Cancel::default()),
        |reader, answers| receive_offer(reader, answers, reception, &[], &progress(), &Cancel::default()),
    )
}

/// Both ends must succeed. Returns the receiver's report.
fn transfer(sources: &[PathBuf], into: &Path, overwrite: bool) -> Report {
    let (sent, received) = run(look(sources), &reception(into, overwrite), None);
    let (sent, received) = (sent.unwrap(), received.unwrap());
    assert_eq!((sent.files_copied, sent.left_out_count), (received.files_copied, received.left_out_count));
    received
}

fn whys(report: &Report) -> Vec<(String, &str)> {
    let mut whys: Vec<_> = report.left_out.iter().map(|left| (left.shown_name(), &left.why[..])).collect();
    whys.sort();
    whys
}

#[test]
fn offered_files_arrive_and_links_and_excluded_names_do_not() {
    let (from, into) = (scratch(), scratch());
    write(from.path(), &[("one", "1"), ("d/two", "22"), ("d/x.tmp", ""), ("d/deep/three", "333")]);
    #[cfg(unix)]
    std::os::unix::fs::symlink("/etc/passwd", from.path().join("d/link")).unwrap();
    let offered = Arc::new(Mutex::new(Offer::default()));
    let told = offered.clone();
    let accept = Arc::new(move |offer: &Offer| {
        *told.lock().unwrap() = offer.clone();
        true
    });
    let reception = Reception { accept: Some(accept), ..reception(into.path(), false) };
    // A trailing slash has no meaning here.
    let offering = look(&[from.path().join("one"), from.path().join("d/")]);
    let (sent, received) = run(offering, &reception, None);
    let (_, received) = (sent.unwrap(), received.unwrap());
    let offered = offered.lock().unwrap().clone();
    assert_eq!(
        (&offered.names[..], offered.files, offered.bytes),
        (&["one", "d"].map(String::from)[..], 3, 6)
    );
    assert_eq!(received.paths, [into.path().join("one"), into.path().join("d")]);
    assert_eq!(fs::read(into.path().join("d/deep/three")).unwrap(), b"333");
    assert!(!into.path().join("d/x.tmp").exists() && !into.path().join("d/link").exists());
    assert_eq!(received.left_out.len(), usize::from(cfg!(unix)), "{received:?}");
    assert_eq!(fs::read_dir(into.path()).unwrap().count(), 2, "nothing of ours is left");
}

#[test]
fn existing_files_stay_without_overwrite() {
    let (from, into) = (scratch(), scratch());
    let names = ["same", "same bytes", "other", "longer"];
    write(from.path(), &names.map(|name| (name, "new")));
    write(from.path(), &[("d/new", "1"), ("fresh", "2")]);
    write(into.path(), &[("same", "new"), ("same bytes", "new"), ("other", "old"), ("longer", "older")]);
    write(into.path(), &[("d/old", "0")]);
    for name in names {
        at(&from.path().join(name), 1_000_000_000);
        at(&into.path().join(name), if name == "same" { 1_000_000_000 } else { 1_100_000_000 });
    }
    let sources: Vec<_> = names.iter().chain(&["d", "fresh"]).map(|name| from.path().join(name)).collect();
    let report = transfer(&sources, into.path(), false);
    assert_eq!((report.files_copied, report.files_same), (1, 2), "{report:?}");
    let whys = whys(&report);
    assert_eq!(
        whys.iter().map(|(name, _)| &name[..]).collect::<Vec<_>>(),
        ["d", "longer", "other"],
        "{whys:?}"
    );
    assert!(whys.iter().all(|(_, why)| why.contains("--overwrite")), "{whys:?}");
    let read = |name: &str| fs::read_to_string(into.path().join(name)).unwrap();
    assert_eq!((&read("other")[..], &read("longer")[..], &read("fresh")[..]), ("old", "older", "2"));
    assert!(!into.path().join("d/new").exists());

    let report = transfer(&sources, into.path(), true);
    assert_eq!(report.left_out, [], "{report:?}");
    assert_eq!(
        (&read("other")[..], &read("longer")[..], &read("d/new")[..], &read("d/old")[..]),
        ("new", "new", "1", "0")
    );
    let again = transfer(&sources, into.path(), true);
    assert_eq!((again.files_copied, again.files_same), (0, 6));
}

#[test]
fn an_interrupted_offer_resumes_directories_included() {
    let (from, into) = (scratch(), scratch());
    write(from.path(), &[("d/large", &"a".repeat(6_000_000)), ("d/small", "1")]);
    let sources = [from.path().join("d")];
    let (_, received) = run(look(&sources), &reception(into.path(), false), Some(4_000_000));
    assert!(received.is_err() && into.path().join("d").is_dir());
    let report = transfer(&sources, into.path(), false);
    assert!(report.left_out.is_empty() && report.data_bytes < 4_000_000, "{report:?}");
    assert_eq!(fs::read(into.path().join("d/large")).unwrap().len(), 6_000_000);
    assert!(!into.path().join(".grebe-partial").exists());
    // Now it exists.
    assert_eq!(whys(&transfer(&sources, into.path(), false)).len(), 1);
}

#[test]
fn declined_files_are_not_sent_and_the_sender_learns_it() {
    let (from, into) = (scratch(), scratch());
    write(from.path(), &[("one", &"1".repeat(6_000_000))]);
    for sender_waits in [true, false] {
        let accept = Some::<Arc<Accept>>(Arc::new(|_: &Offer| false));
        let reception = Reception { accept, sender_waits, ..reception(into.path(), false) };
        let (sent, received) = run(look(&[from.path().join("one")]), &reception, None);
        assert!(matches!(received, Err(Error::Declined)), "{received:?}");
        assert!(matches!(&sent, Err(Error::Peer { what }) if what.contains("declined")), "{sent:?}");
        assert_eq!(fs::read_dir(into.path()).unwrap().count(), 0);
    }
}

#[derive(Clone, Default)]
struct Sent(Arc<Mutex<Vec<u8>>>);

impl io::Write for Sent {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sent {
    fn count(&self, what: &[u8]) -> usize {
        self.0.lock().unwrap().windows(what.len()).filter(|window| *window == what).count()
    }
}

#[test]
fn content_leaves_before_acceptance_if_nothing_is_asked_and_nothing_exists() {
    let from = scratch();
    write(from.path(), &[("name", "content")]);
    for (is_empty, sender_waits, names, contents) in
        [(true, false, 2, 1), (false, false, 2, 0), (true, true, 1, 0)]
    {
        let into = scratch();
        if !is_empty {
            write(into.path(), &[("other", "0")]);
        }
        let reception = Reception { sender_waits, ..reception(into.path(), false) };
        let (mut greeting, sent, cancel) = (Vec::new(), Sent::default(), Cancel::default());
        let ahead = reception.greeting();
        for (ahead, says) in [(&[][..], &ahead[..]), (&ahead, &[])] {
            greeting.clear();
            let ended = receive_offer(io::empty(), &mut greeting, &reception, ahead, &progress(), &cancel);
            assert!(matches!(ended, Err(Error::Closed)), "{ended:?}");
            assert_eq!(greeting, says, "once");
        }
        // The receiver falls silent.
        let (answers, _open) = io::pipe().unwrap();
        let answers = io::Cursor::new(ahead).chain(answers);
        let offering = look(&[from.path().join("name")]);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while (sent.count(b"name"), sent.count(b"content")) != (names, contents) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                // Time for anything else to leave.
                std::thread::sleep(Duration::from_millis(200));
                cancel.cancel();
            });
            let ended = send_offer(answers, sent.clone(), &offering, &progress(), &cancel);
            assert!(matches!(ended, Err(Error::Cancelled)), "{ended:?}");
        });
        assert_eq!((sent.count(b"name"), sent.count(b"content")), (names, contents));
    }
}

#[test]
fn an_offer_that_cannot_be_read_is_an_error_before_a_peer_connects() {
    let from = scratch();
    let error = |name: &str| {
        Offering::look(&[from.path().join(name)], &[], &Cancel::default()).unwrap_err().to_string()
    };
    assert!(error("missing").contains("missing"));
    write(from.path(), &[(".grebe-partial", "")]);
    assert!(error(".grebe-partial").contains("grebe's own"), "{}", error(".grebe-partial"));
    assert!(
        Offering::look(&[PathBuf::from("/")], &[], &Cancel::default())
            .unwrap_err()
            .to_string()
            .contains("no name")
    );
    #[cfg(unix)]
    {
        let null = Offering::look(&[PathBuf::from("/dev/null")], &[], &Cancel::default()).unwrap_err();
        assert!(null.to_string().contains("neither a file nor a directory"), "{null}");
    }
}

#[test]
fn two_receivers_or_two_senders_are_an_error() {
    let (from, into, other) = (scratch(), scratch(), scratch());
    write(from.path(), &[("one", "1")]);
    let second = reception(other.path(), false);
    let (first, second) = over_cut_pipes(
        None,
        move |reader, writer| receive_offer(reader, writer, &second, &[], &progress(), &Cancel::default()),
        |reader, writer| {
            let reception = reception(into.path(), false);
            receive_offer(reader, writer, &reception, &[], &progress(), &Cancel::default())
        },
    );
    assert!(matches!(first, Err(Error::Roles { .. } | Error::Peer { .. })), "{first:?}");
    assert!(matches!(second, Err(Error::Roles { .. } | Error::Peer { .. })), "{second:?}");
    let offerings = [look(&[from.path().join("one")]), look(&[from.path().join("one")])];
    let [one, two] = offerings;
    let (first, second) = over_cut_pipes(
        None,
        move |reader, writer| send_offer(reader, writer, &one, &progress(), &Cancel::default()),
        |reader, writer| send_offer(reader, writer, &two, &progress(), &Cancel::default()),
    );
    assert!(first.is_err() && second.is_err());
}

/// A replacement between listing and sending must not be sent.
#[cfg(unix)]
#[test]
fn files_added_after_the_scan_are_not_sent() {
    use std::os::unix::fs::symlink;
    type Swap = fn(&Path, &Path);
    let swaps: [(&str, Swap); 5] = [
        ("a link", |sent, secret| {
            fs::remove_file(sent.join("d/file")).unwrap();
            symlink(secret.join("file"), sent.join("d/file")).unwrap();
        }),
        ("a pipe", |sent, _| {
            fs::remove_file(sent.join("d/file")).unwrap();
            let made = std::process::Command::new("mkfifo").arg(sent.join("d/file")).status();
            assert!(made.unwrap().success());
        }),
        ("another file", |sent, secret| fs::rename(secret.join("file"), sent.join("d/file")).unwrap()),
        ("a link to a directory", |sent, secret| {
            fs::rename(sent.join("d"), sent.join("moved")).unwrap();
            symlink(secret, sent.join("d")).unwrap();
        }),
        ("one more file", |sent, secret| {
            fs::remove_file(sent.join("d/file")).unwrap();
            fs::rename(secret.join("file"), sent.join("d/more")).unwrap();
        }),
    ];
    for (what, swap) in swaps {
        let (from, secret, into) = (scratch(), scratch(), scratch());
        write(from.path(), &[("d/file", "public"), ("e", "5")]);
        write(secret.path(), &[("file", "SECRET")]);
        let offering = look(&[from.path().join("d"), from.path().join("e")]);
        swap(from.path(), secret.path());
        let (sent, received) = run(offering, &reception(into.path(), false), None);
        let (sent, received) = (sent.unwrap(), received.unwrap());
        assert_eq!(whys(&sent).len(), 1, "{what}: {sent:?}");
        assert_eq!(received.left_out_count, 1, "{what}: {received:?}");
        assert_eq!(fs::read(into.path().join("e")).unwrap(), b"5", "{what}");
        let inside = fs::read_dir(into.path().join("d")).map_or(0, Iterator::count);
        assert_eq!(inside, 0, "{what}");
    }
}

#[test]
fn a_sender_learns_nothing_of_files_under_other_names() {
    let (from, into) = (scratch(), scratch());
    let content: String = (0..400_000).map(|number| format!("{number} ")).collect();
    write(from.path(), &[("new", &content)]);
    write(into.path(), &[("old", &content)]);
    for path in [from.path().join("new"), into.path().join("old")] {
        at(&path, 1_700_000_000);
    }
    // A copy by a login takes its content from there.
    let report = transfer(&[from.path().join("new")], into.path(), true);
    assert_eq!((report.files_copied, report.data_bytes), (1, content.len() as u64));
}
