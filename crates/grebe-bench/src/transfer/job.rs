//! What the processes of a run are told to do, and how they do it.

use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use grebe_transfer::{Purpose, ReceiveListener, ReceiveOptions, SendOptions, Source, Ticket, send};
use serde::{Deserialize, Serialize};

use super::row::PhaseRow;
use crate::{Error, Result};

/// One line of JSON on standard input. When that ends, so does the process.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Job {
    /// Answers with a ticket, then, when the files are whole, with nothing.
    Receive { directory: PathBuf, host: IpAddr },
    /// Answers with [`Sent`].
    Send { file: PathBuf, ticket: String, device: Option<String> },
    /// Answers with its address, then with the bytes that came, within `patience_s` from the first.
    TcpReceive { file: PathBuf, host: IpAddr, patience_s: f64 },
    /// Answers with nothing when it is connected, then with the seconds.
    TcpSend { file: PathBuf, to: SocketAddr, congestion: Option<String> },
    /// Sets the network namespace up for long distances. Answers with what could not be set.
    Widen,
    /// Removes a directory once the process that started this one is gone without having done so.
    Guard { directory: PathBuf },
    /// Keeps a program running. When it is to end, it is interrupted; answers with what the program said.
    Keep { program: PathBuf, arguments: Vec<String> },
}

/// What a sender did.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Sent {
    /// From the start to the receiver's last word.
    pub seconds: f64,
    pub packets: u64,
    pub lost: u64,
    pub wire_bytes: u64,
    /// What the network device sent meanwhile.
    pub device_bytes: Option<u64>,
    pub phases: Vec<PhaseRow>,
}

/// What a job says: each answer is a line of JSON, `{"Ok": ...}` or `{"Err": "why"}`.
pub(super) type Answer<T> = std::result::Result<T, String>;

type Done = std::result::Result<(), Box<dyn std::error::Error>>;

/// Runs a process of a run: the job comes as a line of JSON on standard input, the answers go out on standard output.
///
/// # Errors
/// Where the job cannot be read or nobody listens. What fails in the job itself is an answer.
pub fn peer_main() -> Result<()> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(Error::io("read the job"))?;
    let job: Job = serde_json::from_str(&line)
        .map_err(|error| Error::Process { side: "job", reason: error.to_string() })?;
    match job {
        Job::Keep { program, arguments } => return say(&keep(&program, &arguments)),
        Job::Guard { directory } => {
            guard(&directory);
            return Ok(());
        }
        _ => {}
    }
    // Who started this process is gone when its standard input is closed.
    thread::spawn(|| {
        wait_for_the_end_of_input();
        std::process::exit(1);
    });
    let done = match job {
        Job::Receive { directory, host } => receive(&directory, host),
        Job::Send { file, ticket, device } => send_file(file, &ticket, device.as_deref()),
        Job::TcpReceive { file, host, patience_s } => tcp_receive(&file, host, patience_s),
        Job::TcpSend { file, to, congestion } => tcp_send(&file, to, congestion.as_deref()),
        Job::Widen => say(&Ok(widen())).map_err(Into::into),
        Job::Guard { .. } | Job::Keep { .. } => Ok(()),
    };
    match done {
        Ok(()) => Ok(()),
        Err(error) => say::<()>(&Err(error.to_string())),
    }
}

fn say<T: Serialize>(answer: &Answer<T>) -> Result<()> {
    let text = serde_json::to_string(answer)
        .map_err(|error| Error::Process { side: "job", reason: error.to_string() })?;
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{text}").and_then(|()| stdout.flush()).map_err(Error::io("answer"))
}

fn wait_for_the_end_of_input() {
    // An input that cannot be read has ended.
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
}

fn receive(directory: &Path, host: IpAddr) -> Done {
    let listener = ReceiveListener::bind(SocketAddr::new(host, 0), TICKET_LIFETIME)?;
    say(&Ok(listener.ticket().word().as_str()))?;
    listener.receive(directory, &ReceiveOptions::default(), |_| {})?;
    Ok(say(&Ok(()))?)
}

fn send_file(file: PathBuf, ticket: &str, device: Option<&str>) -> Done {
    let ticket = Ticket::from_word(ticket, Purpose::Transfer)?;
    let sent_before = device.and_then(sent_by);
    let began = Instant::now();
    let source = Arc::new(Source::open(&[file])?);
    let report = send(&source, &ticket, &SendOptions::default(), |_| {})?;
    let seconds = began.elapsed().as_secs_f64();
    let sent_after = device.and_then(sent_by);
    let mut phases = PhaseRow::of(&report.phases);
    let handshake = PhaseRow {
        phase: "handshake".to_owned(),
        entries: 1,
        round_trips: 1,
        seconds: report.handshake.as_secs_f64(),
    };
    phases.insert(0, handshake);
    Ok(say(&Ok(Sent {
        seconds,
        packets: report.counters.packets,
        lost: report.counters.lost,
        wire_bytes: report.counters.wire_bytes,
        device_bytes: sent_before.zip(sent_after).map(|(before, after)| after.saturating_sub(before)),
        phases,
    }))?)
}

/// Bytes that a device of this network namespace has sent.
fn sent_by(device: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/net/dev").ok()?;
    sent_in(&text, device)
}

fn sent_in(text: &str, device: &str) -> Option<u64> {
    let counters = text.lines().find_map(|line| line.trim().strip_prefix(device)?.strip_prefix(':'))?;
    counters.split_whitespace().nth(8)?.parse().ok()
}

/// The plainest way: what comes is written, and nothing is looked at.
fn tcp_receive(file: &Path, host: IpAddr, patience_s: f64) -> Done {
    let listener = TcpListener::bind(SocketAddr::new(host, 0))?;
    say(&Ok(listener.local_addr()?))?;
    let (mut stream, _) = listener.accept()?;
    let until = Instant::now() + Duration::from_secs_f64(patience_s);
    let (mut file, mut block, mut bytes) = (File::create(file)?, vec![0; BLOCK_BYTES], 0_u64);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(say(&Ok(bytes))?);
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut block) {
            Ok(0) => break,
            Ok(now) => {
                file.write_all(&block[..now])?;
                bytes += now as u64;
            }
            Err(error) if is_impatience(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    stream.write_all(b".")?;
    Ok(say(&Ok(bytes))?)
}

fn is_impatience(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

fn tcp_send(file: &Path, to: SocketAddr, congestion: Option<&str>) -> Done {
    let began = Instant::now();
    let mut stream = match congestion {
        None => TcpStream::connect(to)?,
        Some(name) => connect_with(to, name)?,
    };
    say(&Ok(()))?;
    let (mut file, mut block) = (File::open(file)?, vec![0; BLOCK_BYTES]);
    loop {
        match file.read(&mut block)? {
            0 => break,
            now => stream.write_all(&block[..now])?,
        }
    }
    stream.shutdown(std::net::Shutdown::Write)?;
    // The receiver's last word: all of it is written.
    stream.read_exact(&mut [0])?;
    Ok(say(&Ok(began.elapsed().as_secs_f64()))?)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn connect_with(
    to: SocketAddr,
    congestion: &str,
) -> std::result::Result<TcpStream, Box<dyn std::error::Error>> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_tcp_congestion(&socket, congestion).map_err(|error| {
        format!(
            "the kernel does not let a program choose {congestion} here ({error}); \
             net.ipv4.tcp_allowed_congestion_control lists what it does"
        )
    })?;
    connect(&socket, &to)?;
    Ok(TcpStream::from(socket))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn connect_with(_: SocketAddr, _: &str) -> std::result::Result<TcpStream, Box<dyn std::error::Error>> {
    Err("only on Linux can a program choose how TCP reacts to loss".into())
}

/// TCP needs buffers of a path's rate times its round trip; and IPv6 would put packets of its own on the wire.
fn widen() -> Vec<String> {
    [
        ("net/ipv4/tcp_rmem", "4096 131072 67108864"),
        ("net/ipv4/tcp_wmem", "4096 65536 67108864"),
        ("net/ipv6/conf/all/disable_ipv6", "1"),
    ]
    .into_iter()
    .filter_map(|(name, value)| {
        let path = Path::new("/proc/sys").join(name);
        // Without IPv6 there is nothing to turn off.
        let written =
            if path.exists() || !name.contains("ipv6") { std::fs::write(path, value) } else { Ok(()) };
        written.err().map(|error| format!("{} = {value}: {error}", name.replace('/', ".")))
    })
    .collect()
}

fn guard(directory: &Path) {
    wait_for_the_end_of_input();
    // Those who write there end at the same time, but perhaps a moment later.
    for _ in 0..10 {
        if std::fs::remove_dir_all(directory).is_ok() || !directory.exists() {
            return;
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// Runs a program until standard input ends, then interrupts it, so that it can tidy up. What it said last is the answer;
/// it is an error where the program ended by itself.
fn keep(program: &Path, arguments: &[String]) -> Answer<String> {
    let named = program.display();
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start {named}: {error}"))?;
    let stderr = child.stderr.take();
    let said = thread::spawn(move || stderr.map_or(String::new(), last_words));
    let (told, is_over) = mpsc::channel();
    thread::spawn(move || {
        wait_for_the_end_of_input();
        // Where nobody waits any more, the program has ended by itself.
        let _ = told.send(());
    });
    let words = |said: thread::JoinHandle<String>| said.join().unwrap_or_default();
    let poll =
        |child: &mut std::process::Child| child.try_wait().map_err(|error| format!("{named}: {error}"));
    while is_over.recv_timeout(POLL) == Err(mpsc::RecvTimeoutError::Timeout) {
        if let Some(status) = poll(&mut child)? {
            let words = words(said);
            return match words.trim() {
                "" => Err(format!("{named} ended: {status}")),
                words => Err(format!("{named} ended ({status}): {words}")),
            };
        }
    }
    interrupt(&mut child);
    let until = Instant::now() + KEPT_PATIENCE;
    while poll(&mut child)?.is_none() {
        if Instant::now() >= until {
            let _ = child.kill();
            let _ = child.wait();
            break;
        }
        thread::sleep(POLL);
    }
    Ok(words(said))
}

#[cfg(unix)]
fn interrupt(child: &mut std::process::Child) {
    use rustix::process::{Pid, Signal, kill_process};
    // It was not waited for since it ended, so that its number is still its own.
    let _ = kill_process(Pid::from_child(child), Signal::INT);
}

#[cfg(not(unix))]
fn interrupt(child: &mut std::process::Child) {
    let _ = child.kill();
}

/// The end of what a program says, however much that is.
fn last_words(mut stderr: impl Read) -> String {
    let (mut words, mut block) = (Vec::new(), [0; 4_096]);
    while let Ok(now) = stderr.read(&mut block)
        && now > 0
    {
        words.extend_from_slice(&block[..now]);
        if words.len() > LAST_WORDS_BYTES {
            words.drain(..words.len() - LAST_WORDS_BYTES);
        }
    }
    String::from_utf8_lossy(&words).into_owned()
}

/// This machine, for those who listen to itself only.
pub(super) const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// How long a program that was interrupted may take to end.
pub(super) const KEPT_PATIENCE: Duration = Duration::from_secs(5);

const LAST_WORDS_BYTES: usize = 1_024;
const BLOCK_BYTES: usize = 1 << 20;
const TICKET_LIFETIME: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_devices_sent_bytes_are_the_ninth_number() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes packets\n    lo: 1 2 3 4 5 6 7 8 9 10\n\
                    wan0:11 12 13 14 15 16 17 18 1900 20 21";
        assert_eq!(
            (sent_in(text, "lo"), sent_in(text, "wan0"), sent_in(text, "wan")),
            (Some(9), Some(1900), None)
        );
    }

    #[test]
    fn of_many_words_the_last_are_kept() {
        let many = "x".repeat(100_000) + "the end";
        let words = last_words(many.as_bytes());
        assert!(words.len() == LAST_WORDS_BYTES && words.ends_with("the end"));
    }
}
