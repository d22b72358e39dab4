//! Kills consumers and producers (SIGKILL, TerminateProcess) at any point, and checks detection time, loss at bystanders in
//! other processes, and leftovers.
//!
//! `cargo test -p grebe-shm --test kills -- long` kills 200 consumers and 50 producers instead of 15 and 5.

#[cfg(not(all(any(target_os = "linux", target_os = "macos", windows), not(loom))))]
fn main() {
    println!("skipped: this system has no shared memory");
}

#[cfg(all(any(target_os = "linux", target_os = "macos", windows), not(loom)))]
fn main() {
    kills::main();
}

#[cfg(all(any(target_os = "linux", target_os = "macos", windows), not(loom)))]
mod kills {
    use std::fs;
    use std::io::{BufRead as _, BufReader};
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command, Stdio};
    use std::sync::{Arc, OnceLock};
    use std::thread::JoinHandle;
    use std::time::{Duration, Instant};

    use grebe_frame::{Batch, BatchPool, Header};
    use grebe_shm::{Error, Policy, Publisher, PublisherOptions, Subscriber, SubscriberOptions};

    pub(crate) fn main() {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        match arguments.as_slice() {
            ["consumer", folder, what] => consumer(Path::new(folder), what),
            ["bystander", folder] => bystander(Path::new(folder)),
            ["producer", folder] => producer(Path::new(folder)),
            _ => {
                let (consumers, producers) = if arguments.contains(&"long") { (200, 50) } else { (15, 5) };
                kill_consumers(consumers);
                kill_producers(producers);
            }
        }
    }

    /// Activity of a consumer when it is killed.
    #[cfg(unix)]
    const AT: &[&str] = &["joining", "claiming", "holding", "taking_nothing", "stopped"];
    /// No signal stops a process.
    #[cfg(windows)]
    const AT: &[&str] = &["joining", "claiming", "holding", "taking_nothing"];

    /// This process is the producer. Beside the successive victims there is a consumer that must see every
    /// frame.
    fn kill_consumers(count: u32) {
        let folder = tempfile::tempdir().unwrap();
        let (mut publisher, mut pool) = stream(folder.path());
        let files = open_files();
        let bystander = spawn(&["bystander", folder.path().to_str().unwrap()]);
        assert!(publisher.wait_for_consumers(1, Duration::from_secs(30)));
        let mut load = Load::new();
        let mut noticed = Vec::new();
        for turn in 0..count {
            let at = AT[turn as usize % AT.len()];
            let victim = spawn(&["consumer", folder.path().to_str().unwrap(), at]);
            let until = Instant::now() + Duration::from_secs(30);
            while publisher.totals().consumers < 2 && Instant::now() < until {
                load.send(&mut publisher, &mut pool);
            }
            let killing = Killing::soon(victim, at, turn);
            // A consumer that joins repeatedly may be outside, and is then not missed.
            let began = loop {
                load.send(&mut publisher, &mut pool);
                match killing.began.get() {
                    Some(began) if publisher.totals().consumers < 2 => break began,
                    _ => assert!(Instant::now() < until, "never noticed: killed while {at}"),
                }
            };
            noticed.push(began.elapsed());
            killing.thread.join().unwrap();
            // It may have been admitted at the last moment.
            while publisher.totals().consumers > 1 {
                load.send(&mut publisher, &mut pool);
            }
        }
        publisher.end(Some(&load.end()));
        let (seen, lost) = report(bystander);
        assert_eq!((seen, lost), (load.sequence, 0), "frames that the bystander saw and lost");
        soon("all chunks come home", || {
            publisher.reap();
            pool.available() + PublisherOptions::default().resting_chunks() == pool.chunks()
        });
        soon("no handle is left open", || open_files() <= files);
        tell("consumers", &mut noticed, seen);
    }

    /// This process is a consumer of each producer, and takes complete batches.
    fn kill_producers(count: u32) {
        let folder = tempfile::tempdir().unwrap();
        let (mut noticed, mut frames) = (Vec::new(), 0);
        let files = open_files();
        for turn in 0..count {
            let policy = [Policy::Block, Policy::DropOldest, Policy::DropLatest][turn as usize % 3];
            let mut victim = spawn(&["producer", folder.path().to_str().unwrap()]);
            let mut reader = Reader::join(folder.path(), policy);
            reader.read_for(Duration::from_micros(u64::from(turn.wrapping_mul(7919) % 20_000)));
            let began = Instant::now();
            victim.kill().unwrap();
            let ended = reader.read_for(Duration::from_secs(30));
            noticed.push(began.elapsed());
            assert!(matches!(ended, Some(Error::ProducerGone { .. })), "{ended:?}");
            // Complete batches arrived in order; a drop at the very end leaves no visible gap.
            let dropped = if policy == Policy::Block { 0 } else { reader.subscriber.dropped_frames() };
            assert!(reader.lost <= dropped, "{} lost, {dropped} dropped, policy {policy}", reader.lost);
            frames += reader.frames;
            victim.wait().unwrap();
        }
        assert_eq!(grebe_shm::streams(Some(folder.path())).unwrap(), [""; 0]);
        let left = fs::read_dir(folder.path()).unwrap().flatten();
        let left: Vec<PathBuf> = left.map(|entry| entry.path()).filter(|path| is_socket(path)).collect();
        assert!(left.is_empty(), "left over: {left:?}");
        assert_eq!(open_files(), files);
        tell("producers", &mut noticed, frames);
    }

    fn tell(who: &str, noticed: &mut [Duration], frames: u64) {
        noticed.sort();
        let ms = |place: usize| noticed[place.min(noticed.len() - 1)].as_secs_f64() * 1e3;
        println!(
            "{} {who} killed beside {frames} frames: noticed after {:.2} ms (median), {:.2} (95 %), {:.2} (worst); \
             bystanders lost 0, left over 0",
            noticed.len(),
            ms(noticed.len() / 2),
            ms(noticed.len() * 95 / 100),
            ms(noticed.len() - 1),
        );
    }

    fn consumer(folder: &Path, at: &str) {
        if at == "joining" {
            loop {
                // Refused if the producer has not yet noticed that the last one is gone.
                let _ = Subscriber::connect("x", &options(folder, Policy::DropLatest));
            }
        }
        let policy = if at == "stopped" { Policy::DropOldest } else { Policy::Block };
        let mut subscriber = Subscriber::connect("x", &options(folder, policy)).unwrap();
        let mut held = Vec::new();
        loop {
            match at {
                "taking_nothing" => std::thread::sleep(Duration::from_secs(1)),
                "holding" if held.len() >= 16 => {
                    held.remove(0);
                }
                "holding" => held.extend(subscriber.pop().unwrap()),
                _ => drop(subscriber.pop().unwrap()),
            }
        }
    }

    /// Reads every byte to the end, and reports the amount.
    fn bystander(folder: &Path) {
        let mut reader = Reader::join(folder, Policy::Block);
        assert!(reader.read_for(Duration::from_secs(3600)).is_none());
        println!("{} {}", reader.frames, reader.lost);
    }

    fn producer(folder: &Path) {
        let (mut publisher, mut pool) = stream(folder);
        let mut load = Load::new();
        loop {
            load.send(&mut publisher, &mut pool);
        }
    }

    /// Frames at some 300 MB/s.
    struct Load {
        began: Instant,
        sequence: u64,
    }

    impl Load {
        fn new() -> Self {
            Self { began: Instant::now(), sequence: 0 }
        }

        /// Sends the next batch once it is due.
        fn send(&mut self, publisher: &mut Publisher, pool: &mut BatchPool) {
            let due = FRAME_EVERY * self.sequence as u32;
            std::thread::sleep(due.saturating_sub(self.began.elapsed()));
            let batch = batch(pool, self.sequence);
            publisher.send(&batch, || false).unwrap();
            self.sequence += 1;
        }

        fn end(&self) -> Header {
            header(self.sequence).end_of_stream(0)
        }
    }

    /// Kills a consumer while the producer continues.
    struct Killing {
        began: Arc<OnceLock<Instant>>,
        thread: JoinHandle<()>,
    }

    impl Killing {
        fn soon(mut victim: Child, at: &str, turn: u32) -> Self {
            let began = Arc::new(OnceLock::new());
            let (noted, is_stopped, takes_nothing) = (began.clone(), at == "stopped", at == "taking_nothing");
            let thread = std::thread::spawn(move || {
                // At any point of its loop.
                std::thread::sleep(Duration::from_micros(u64::from(turn.wrapping_mul(7919) % 5000)));
                if is_stopped {
                    signal("STOP", &victim);
                }
                if is_stopped || takes_nothing {
                    // Long enough for a full queue, at which the producer waits for a blocking consumer.
                    std::thread::sleep(Duration::from_millis(25));
                }
                noted.get_or_init(Instant::now);
                victim.kill().unwrap();
                victim.wait().unwrap();
            });
            Self { began, thread }
        }
    }

    struct Reader {
        subscriber: Subscriber,
        next: Option<u64>,
        frames: u64,
        lost: u64,
    }

    impl Reader {
        fn join(folder: &Path, policy: Policy) -> Self {
            let until = Instant::now() + Duration::from_secs(30);
            loop {
                match Subscriber::connect("x", &options(folder, policy)) {
                    Ok(subscriber) => return Self { subscriber, next: None, frames: 0, lost: 0 },
                    Err(Error::NoStream { .. } | Error::ProducerGone { .. }) if Instant::now() < until => {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }

        /// Reads until the time is over or the stream has ended. Returns the error, if any.
        fn read_for(&mut self, time: Duration) -> Option<Error> {
            let began = Instant::now();
            while began.elapsed() < time && !self.subscriber.is_ended() {
                while let Some(batch) = self.subscriber.pop().unwrap() {
                    for frame in batch.frames() {
                        let sequence = frame.header().sequence;
                        self.lost += sequence - self.next.unwrap_or(sequence);
                        self.next = Some(sequence + 1);
                        self.frames += 1;
                        assert!(
                            frame.channel::<i16>(0).unwrap().iter().all(|&sample| sample == sequence as i16),
                            "torn"
                        );
                    }
                }
                if let Err(error) = self.subscriber.wait(Duration::from_millis(1)) {
                    return Some(error);
                }
            }
            None
        }
    }

    fn stream(folder: &Path) -> (Publisher, BatchPool) {
        let options = PublisherOptions { directory: Some(folder.to_owned()), ..PublisherOptions::default() };
        Publisher::create("x", options).unwrap()
    }

    fn options(folder: &Path, policy: Policy) -> SubscriberOptions {
        SubscriberOptions { policy, directory: Some(folder.to_owned()), ..SubscriberOptions::default() }
    }

    fn header(sequence: u64) -> Header {
        Header { sequence, channel_count: 1, block_length_samples: BLOCK, ..Header::default() }
    }

    fn batch(pool: &mut BatchPool, sequence: u64) -> Batch {
        let mut batch = pool.acquire().expect("the quotas leave the producer its own chunks");
        batch.push::<i16>(&header(sequence), |_, samples| samples.fill(sequence as i16)).unwrap();
        batch.freeze()
    }

    fn spawn(arguments: &[&str]) -> Child {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()
    }

    fn report(mut bystander: Child) -> (u64, u64) {
        let mut line = String::new();
        BufReader::new(bystander.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(bystander.wait().unwrap().success());
        let mut numbers = line.split_whitespace().map(|number| number.parse().unwrap());
        (numbers.next().unwrap(), numbers.next().unwrap())
    }

    fn signal(name: &str, child: &Child) {
        let sent = Command::new("sh").args(["-c", &format!("kill -{name} {}", child.id())]).status().unwrap();
        assert!(sent.success());
    }

    fn soon(what: &str, mut is_so: impl FnMut() -> bool) {
        let until = Instant::now() + Duration::from_secs(30);
        while !is_so() {
            assert!(Instant::now() < until, "{what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn is_socket(path: &Path) -> bool {
        path.extension() == Some("shm".as_ref())
    }

    #[cfg(unix)]
    fn open_files() -> usize {
        fs::read_dir("/dev/fd").unwrap().count()
    }

    #[cfg(windows)]
    fn open_files() -> usize {
        use windows_sys::Win32::System::Threading::{GetCurrentProcess, GetProcessHandleCount};
        let mut count = 0;
        // SAFETY: `count` is valid.
        assert!(unsafe { GetProcessHandleCount(GetCurrentProcess(), &mut count) } != 0);
        count as usize
    }

    const BLOCK: u32 = 32_000;
    const FRAME_EVERY: Duration = Duration::from_micros(200);
}
