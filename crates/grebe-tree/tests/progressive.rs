//! Tests of recordings viewed while they arrive: order, requests, and the state after either end leaves.

#[path = "trees/ends.rs"]
#[allow(dead_code, reason = "the other tests use the rest")]
mod ends;

use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use grebe_testing::Rng;
use grebe_tree::{Arriving, Cancel, Options, Progress, ReceiveTree, Result, SendTree, receive, send};

use ends::{copied, progress, run};

const GROUP: usize = 256 << 10;

fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut noise = vec![0; bytes];
    Rng::with_seed(seed).fill(&mut noise);
    noise
}

/// A recording of some blocks, its summary, and another file.
fn plant(at: &Path) -> Vec<u8> {
    fs::create_dir_all(at).unwrap();
    let data = noise(1, 23 * GROUP + 1_234);
    fs::write(at.join("run7.sigmf-meta"), "{}").unwrap();
    fs::write(at.join("run7.sigmf-data"), &data).unwrap();
    fs::write(at.join("run7.grebe-summary"), noise(2, 9 * GROUP)).unwrap();
    fs::write(at.join("other.bin"), noise(3, 3 * GROUP)).unwrap();
    data
}

fn options() -> Options {
    Options { progressive: true, ..Options::archive() }
}

fn assert_same(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (one, other) = (fs::read(entry.path()).unwrap(), fs::read(to.join(entry.file_name())).unwrap());
        let blocks = one.len().max(other.len()).div_ceil(GROUP);
        let part = |of: &[u8], block: usize| of.chunks(GROUP).nth(block).map(<[u8]>::to_vec);
        let differ: Vec<usize> = (0..blocks).filter(|&at| part(&one, at) != part(&other, at)).collect();
        assert!(
            differ.is_empty(),
            "{:?}, of {} and {} bytes: blocks {differ:?}",
            entry.file_name(),
            one.len(),
            other.len()
        );
        let modified = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
        assert_eq!(modified(&entry.path()), modified(&to.join(entry.file_name())));
    }
    assert!(!to.join(".grebe-partial").exists(), "nothing is left");
}

/// Waits for a state, as long as the machine needs.
fn until<T>(what: &str, mut state: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(state) = state() {
            return state;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn recordings_arrive_as_they_are_and_are_not_sent_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    plant(&from);
    let sources = [from.join(".")];
    let first = copied(&sources, &to, &options());
    assert_eq!((first.files_copied, first.left_out.len()), (4, 0));
    assert_same(&from, &to);
    let again = copied(&sources, &to, &options());
    assert_eq!((again.files_copied, again.files_same, again.data_bytes), (0, 4, 0));
}

#[test]
fn holes_stay_holes_and_travel_as_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    fs::create_dir(&from).unwrap();
    let file = fs::File::create(from.join("x.sigmf-data")).unwrap();
    file.set_len(64 << 20).unwrap();
    {
        use std::io::{Seek, SeekFrom, Write};
        let mut file = &file;
        file.seek(SeekFrom::Start(40 << 20)).unwrap();
        file.write_all(b"in the middle").unwrap();
    }
    drop(file);
    let report = copied(&[from.join(".")], &to, &options());
    assert_same(&from, &to);
    // A file system without holes sends everything.
    #[cfg(target_os = "linux")]
    assert!(report.data_bytes <= 1 << 20, "{}", report.data_bytes);
    #[cfg(not(target_os = "linux"))]
    let _ = report;
}

#[test]
fn an_interrupted_progressive_copy_is_evenly_spread_and_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let data = plant(&from);
    fs::remove_file(from.join("other.bin")).unwrap();
    let sources = [from.join(".")];
    // The summary and a third of the data.
    let cut = (9 * GROUP + 8 * GROUP + GROUP / 2) as i64;
    let (sent, received) = run(&sources, &to, &options(), true, Some(cut));
    assert!(sent.is_err() && received.is_err());
    assert_eq!(fs::read(to.join("run7.sigmf-meta")).unwrap(), b"{}", "it came first");
    assert!(!to.join("run7.sigmf-data").exists(), "it has no name before it is whole");
    let arriving = Arriving::find(&to.join("run7.sigmf-data")).unwrap().unwrap();
    assert_eq!(arriving.bytes(), data.len() as u64);
    let part = fs::read(arriving.part()).unwrap();
    let mut come = Vec::new();
    for block in 0..data.len().div_ceil(GROUP) {
        let range = block * GROUP..((block + 1) * GROUP).min(data.len());
        if arriving.is_here(&(range.start as u64..range.end as u64)) {
            assert!(part[range.clone()] == data[range], "block {block}");
            come.push(block);
        }
    }
    assert!((3..12).contains(&come.len()), "{come:?}");
    assert!(
        come[0] == 0 && come.windows(2).all(|pair| pair[1] - pair[0] <= 8),
        "{come:?} are spread over 24"
    );

    let left = arriving.come_bytes();
    drop(arriving);
    let (sent, received) = run(&sources, &to, &options(), true, None);
    sent.unwrap();
    let report = received.unwrap();
    assert!(
        report.data_bytes <= (data.len() as u64 + 9 * GROUP as u64) - left,
        "{} and {left}",
        report.data_bytes
    );
    assert_same(&from, &to);
}

#[test]
fn either_kind_of_copy_finishes_an_interrupted_one() {
    for seed in 0..60 {
        let mut rng = Rng::with_seed(seed);
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        plant(&from);
        let sources = [from.join(".")];
        let one = |rng: &mut Rng| Options { progressive: rng.u64(0..3) > 0, ..Options::archive() };
        let mut story = format!("seed {seed}");
        for _ in 0..rng.u64(1..4) {
            let cut = rng.u64(0..37 * GROUP as u64) as i64;
            let (options, sender_knows) = (one(&mut rng), rng.u64(0..2) == 0);
            let (sent, received) = run(&sources, &to, &options, sender_knows, Some(cut));
            let why =
                (sent.err().map(|error| error.to_string()), received.err().map(|error| error.to_string()));
            story.push_str(&format!("; {cut} bytes, progressive {}, {why:?}", options.progressive));
        }
        let options = one(&mut rng);
        story.push_str(&format!("; then progressive {}", options.progressive));
        println!("{story}");
        let (sent, received) = run(&sources, &to, &options, true, None);
        assert!(sent.is_ok() && received.is_ok(), "{story}: {sent:?} {received:?}");
        assert_same(&from, &to);
    }
}

/// Both ends in threads, until cancelled.
struct Running {
    cancel: Cancel,
    ends: Vec<thread::JoinHandle<Result<grebe_tree::Report>>>,
}

impl Running {
    fn start(from: &Path, to: &Path, options: Options) -> Self {
        let (sent_out, sent_in) = io::pipe().unwrap();
        let (said_out, said_in) = io::pipe().unwrap();
        let cancel = Cancel::default();
        let sending = SendTree { sources: vec![from.join(".")], options: Some(options), is_fresh: false };
        let receiving = ReceiveTree { destination: to.to_path_buf(), options: None, is_fresh: false };
        let (one, other) = (cancel.clone(), cancel.clone());
        let sender = thread::spawn(move || send(said_out, sent_in, &sending, &progress(), &one));
        let receiver = thread::spawn(move || receive(sent_out, said_in, &receiving, &progress(), &other));
        Self { cancel, ends: vec![sender, receiver] }
    }

    fn wait(mut self) -> Vec<Result<grebe_tree::Report>> {
        self.ends.drain(..).map(|end| end.join().unwrap()).collect()
    }
}

fn arriving(path: &Path) -> Arriving {
    until("a part", || Arriving::find(path).unwrap())
}

fn wait_for(arriving: &mut Arriving, stretch: std::ops::Range<u64>) {
    until("the requested range", || {
        arriving.refresh().unwrap();
        arriving.is_here(&stretch).then_some(())
    });
}

#[test]
fn a_viewer_gets_the_viewed_range_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let data = plant(&from);
    let running = Running::start(&from, &to, Options { only_wanted: true, ..options() });
    let mut summary = arriving(&to.join("run7.grebe-summary"));
    // Both of its ends arrive unasked.
    wait_for(&mut summary, 0..10);
    wait_for(&mut summary, 9 * GROUP as u64 - 1..9 * GROUP as u64);
    assert!(summary.come_bytes() <= 3 * GROUP as u64);

    let mut arriving = arriving(&to.join("run7.sigmf-data"));
    assert_eq!(arriving.come_bytes(), 0, "nobody looked");
    let (first, other) = (5 * GROUP as u64 + 7..7 * GROUP as u64, 22 * GROUP as u64..data.len() as u64);
    arriving.want(std::slice::from_ref(&first)).unwrap();
    wait_for(&mut arriving, first.clone());
    // Elsewhere, and beyond the end.
    arriving.want(&[other.clone(), 1 << 40..1 << 41]).unwrap();
    wait_for(&mut arriving, other.clone());
    assert_eq!(arriving.come_bytes(), 2 * GROUP as u64 + GROUP as u64 + 1_234);
    let part = fs::read(arriving.part()).unwrap();
    for stretch in [first, other] {
        let stretch = stretch.start as usize..stretch.end as usize;
        assert!(part[stretch.clone()] == data[stretch]);
    }
    running.cancel.cancel();
    assert!(running.wait().iter().all(Result::is_err));
    assert!(!to.join("run7.sigmf-data").exists());
}

#[test]
fn a_file_that_changes_while_it_arrives_is_never_mixed() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    plant(&from);
    fs::remove_file(from.join("run7.grebe-summary")).unwrap();
    let running = Running::start(&from, &to, Options { only_wanted: true, ..options() });
    let mut arriving = arriving(&to.join("run7.sigmf-data"));
    arriving.want(std::slice::from_ref(&(0..5 * GROUP as u64))).unwrap();
    wait_for(&mut arriving, 0..5 * GROUP as u64);
    // New content, with the rest requested.
    let new = noise(9, 20 * GROUP);
    fs::write(from.join("run7.sigmf-data"), &new).unwrap();
    let later = SystemTime::now() + Duration::from_secs(5);
    fs::File::options().write(true).open(from.join("run7.sigmf-data")).unwrap().set_modified(later).unwrap();
    arriving.want(std::slice::from_ref(&(0..1 << 40))).unwrap();
    let ended = running.wait();
    assert!(ended.iter().all(Result::is_ok), "{ended:?}");
    assert!(fs::read(to.join("run7.sigmf-data")).unwrap() == new);
    assert_same(&from, &to);
}

#[test]
fn requested_ranges_are_sent_first() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    for folder in ["a", "b", "z"] {
        fs::create_dir_all(from.join(folder)).unwrap();
        for number in 0..40 {
            fs::write(from.join(folder).join(format!("{number}.bin")), noise(number, 9_000)).unwrap();
        }
        fs::write(from.join(folder).join("notes.json"), folder).unwrap();
    }
    let (sent_out, sent_in) = io::pipe().unwrap();
    let (said_out, said_in) = io::pipe().unwrap();
    let options = Options { first: vec!["*.json".to_owned()], ..Options::archive() };
    let sending = SendTree { sources: vec![from.clone()], options: Some(options), is_fresh: false };
    let receiving = ReceiveTree { destination: to.clone(), options: None, is_fresh: false };
    let names = Arc::new(Mutex::new(Vec::new()));
    let told = names.clone();
    let sender = thread::spawn(move || {
        let progress = Arc::new(Progress::with_notify(move |event| {
            told.lock().unwrap().push(String::from_utf8_lossy(event.name).into_owned());
        }));
        send(said_out, sent_in, &sending, &progress, &Cancel::default())
    });
    receive(sent_out, said_in, &receiving, &progress(), &Cancel::default()).unwrap();
    sender.join().unwrap().unwrap();
    let names = names.lock().unwrap();
    assert_eq!(names.len(), 123);
    let mut first: Vec<&str> = names[..3].iter().map(|name| name.rsplit('/').next().unwrap()).collect();
    first.dedup();
    assert_eq!(first, ["notes.json"], "{names:?}");
}
