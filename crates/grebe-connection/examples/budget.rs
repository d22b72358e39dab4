//! Cost of each step of a transfer alone on this machine, in nanoseconds per byte on one core.
//!
//!     cargo run --release -p grebe-connection --example budget -- DIR
//!
//! DIR is the directory of the files; tmpfs shows the limit of the machine.

#[cfg(unix)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::path::PathBuf::from(std::env::args_os().nth(1).ok_or("budget DIR")?);
    steps::all(&directory)
}

#[cfg(not(unix))]
fn main() {
    eprintln!("the time of one thread is known on Unix only");
}

#[cfg(unix)]
mod steps {
    use std::error::Error;
    use std::fs::{File, OpenOptions};
    use std::hint::black_box;
    use std::net::{SocketAddr, UdpSocket};
    use std::os::unix::fs::FileExt;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::time::{Duration, Instant};

    use grebe_datagram::{Options, Receiver, Sender};
    use ring::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

    const GROUP_BYTES: usize = 256 << 10;
    const FILE_BYTES: usize = 512 << 20;

    type Outcome = Result<(), Box<dyn Error>>;

    pub(crate) fn all(directory: &Path) -> Outcome {
        println!("two threads, one cache line: {:.0} ns there and back", canary_ns());
        hash();
        seal();
        copy();
        file(directory)?;
        for bytes in [1_472, 8_192, 65_507] {
            datagrams(bytes)?;
        }
        println!("two threads, one cache line: {:.0} ns there and back", canary_ns());
        Ok(())
    }

    fn show(what: &str, bytes: usize, took: Duration) {
        let ns = took.as_nanos() as f64 / bytes as f64;
        println!("{what:<44} {ns:6.3} ns/B {:6.1} Gbit/s", 8.0 / ns);
    }

    /// Shortest of five runs.
    fn best(mut run: impl FnMut()) -> Duration {
        let mut timed = || {
            let start = Instant::now();
            run();
            start.elapsed()
        };
        (0..5).map(|_| timed()).min().unwrap_or_default()
    }

    fn canary_ns() -> f64 {
        let (turn, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    if turn.load(Ordering::Acquire) % 2 == 1 {
                        turn.fetch_add(1, Ordering::AcqRel);
                    }
                }
            });
            let (start, mut trips) = (Instant::now(), 0);
            while start.elapsed() < Duration::from_millis(100) {
                for _ in 0..100 {
                    turn.fetch_add(1, Ordering::AcqRel);
                    while turn.load(Ordering::Acquire) % 2 == 1 {}
                    trips += 1;
                }
            }
            stop.store(true, Ordering::Relaxed);
            start.elapsed().as_nanos() as f64 / f64::from(trips)
        })
    }

    fn hash() {
        for (what, groups) in [("BLAKE3, 256 KiB in cache", 1), ("BLAKE3, out of memory", 256)] {
            let bytes = vec![7_u8; groups * GROUP_BYTES];
            let took = best(|| {
                for group in bytes.chunks(GROUP_BYTES).cycle().take(256) {
                    black_box(blake3::hash(group));
                }
            });
            show(what, 256 * GROUP_BYTES, took);
        }
    }

    fn seal() {
        for (name, cipher) in [("AES-256-GCM", &AES_256_GCM), ("ChaCha20-Poly1305", &CHACHA20_POLY1305)] {
            let Ok(key) = UnboundKey::new(cipher, &[9; 32]).map(LessSafeKey::new) else { return };
            for bytes in [1_444, 8_192, 65_470] {
                let mut packet = vec![1_u8; bytes];
                let count = (64 << 20) / bytes;
                let took = best(|| {
                    for number in 0..count as u64 {
                        let mut nonce = [0; 12];
                        nonce[4..].copy_from_slice(&number.to_be_bytes());
                        let nonce = Nonce::assume_unique_for_key(nonce);
                        let _ =
                            black_box(key.seal_in_place_separate_tag(nonce, Aad::from(&[1; 9]), &mut packet));
                    }
                });
                show(&format!("{name}, {bytes} B"), count * bytes, took);
            }
        }
    }

    fn copy() {
        let mut to = vec![1_u8; 2 << 20];
        for (what, groups) in [("copy, in cache", 1), ("copy, out of memory", 256)] {
            let from = vec![2_u8; groups * GROUP_BYTES];
            let took = best(|| {
                for (index, group) in from.chunks(GROUP_BYTES).cycle().take(512).enumerate() {
                    to[index % 4 * GROUP_BYTES..][..GROUP_BYTES].copy_from_slice(black_box(group));
                }
            });
            show(what, 512 * GROUP_BYTES, took);
        }
    }

    fn file(directory: &Path) -> Outcome {
        let path = directory.join("budget.part");
        let mut group = vec![3_u8; GROUP_BYTES];
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        let start = Instant::now();
        write(&file, &group)?;
        show("write, new pages", FILE_BYTES, start.elapsed());
        let start = Instant::now();
        write(&file, &group)?;
        show("write, pages that are there", FILE_BYTES, start.elapsed());
        let took = best(|| {
            for at in 0..FILE_BYTES / GROUP_BYTES {
                let _ = file.read_exact_at(&mut group, (at * GROUP_BYTES) as u64);
            }
        });
        show("read", FILE_BYTES, took);
        std::fs::remove_file(&path)?;
        Ok(())
    }

    fn write(file: &File, group: &[u8]) -> std::io::Result<()> {
        (0..FILE_BYTES / GROUP_BYTES).try_for_each(|at| file.write_all_at(group, (at * GROUP_BYTES) as u64))
    }

    /// Time of each side's thread, and of both together. The receiver discards the data.
    fn datagrams(bytes: usize) -> Outcome {
        let options = Options::default();
        let mut receiver = Receiver::bind("127.0.0.1:0".parse()?, &options)?;
        let to: SocketAddr = receiver.local_addr()?;
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let receiving = scope.spawn(|| {
                let (began, mut got) = (thread_time(), 0);
                while !stop.load(Ordering::Relaxed) {
                    let outcome = receiver.recv(|| Some(vec![0_u8; 65_536]), |slot, _| Some(slot));
                    got += outcome.unwrap_or_default().bytes;
                }
                (thread_time() - began, got)
            });
            let mut sender = Sender::connect(to, &options)?;
            let slab = vec![5_u8; 65_507 / bytes * bytes];
            let (began, start, mut sent) = (thread_time(), Instant::now(), 0);
            while sent < 2 << 30 {
                let mut batch = sender.batch();
                for _ in 0..8 {
                    batch.push_run(&slab, bytes)?;
                    sent += slab.len();
                }
                batch.flush()?;
            }
            let (sending, took) = (thread_time() - began, start.elapsed());
            stop.store(true, Ordering::Relaxed);
            UdpSocket::bind("127.0.0.1:0")?.send_to(&[0], to)?;
            let (receiving, got) = receiving.join().map_err(|_| "the receiver's thread is gone")?;
            let got = got.max(1);
            show(&format!("UDP, {bytes} B, sender"), sent, sending);
            show(&format!("UDP, {bytes} B, receiver"), got, receiving);
            show(&format!("UDP, {bytes} B, both at once"), got, took);
            Ok(())
        })
    }

    fn thread_time() -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
    }
}
