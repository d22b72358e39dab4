//! The processes of a run, which carry out their tasks.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use grebe_connection::{Cancel, ConnectionListener, ConnectionOptions, Purpose, Ticket, connect};
use grebe_remote::{Offering, Reception, send};

use super::options::TransferTask;
use super::programs::{guard, keep};
use super::row::{PhaseRow, Sent};
use crate::error::Result;
use crate::peer::{end_with_input, say, say_either};

type Done<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Runs a process. An error of its task is an answer.
pub(crate) fn peer(task: TransferTask) -> Result<()> {
    if !matches!(task, TransferTask::Guard { .. } | TransferTask::Keep { .. }) {
        end_with_input();
    }
    let done = match task {
        TransferTask::Receive { directory, host } => receive(&directory, host),
        TransferTask::Send { file, ticket, device } => send_file(file, &ticket, device.as_deref()),
        TransferTask::TcpReceive { file, host, patience_s } => tcp_receive(&file, host, patience_s),
        TransferTask::TcpSend { file, to, congestion } => tcp_send(&file, to, congestion.as_deref()),
        TransferTask::Widen => return say(&widen()),
        TransferTask::Keep { program, arguments } => return say_either(&keep(&program, &arguments)),
        TransferTask::Guard { directory } => {
            guard(&directory);
            Ok(())
        }
    };
    done.or_else(|error| say_either::<()>(&Err(error.to_string())))
}

fn receive(directory: &Path, host: IpAddr) -> Done {
    let at = SocketAddr::new(host, 0);
    let listener = ConnectionListener::bind(at, Purpose::Transfer, Duration::from_secs(60))?;
    say(&listener.ticket.word().as_str())?;
    let connection = listener.accept(&ConnectionOptions::default())?;
    let reception =
        Reception { directory: directory.to_path_buf(), overwrite: false, accept: None, sender_waits: false };
    grebe_remote::receive(connection, &reception, &Cancel::default(), |_| {})?;
    Ok(say(&())?)
}

fn send_file(file: PathBuf, ticket: &str, device: Option<&str>) -> Done {
    let ticket = Ticket::from_word(ticket, Purpose::Transfer)?;
    let sent_before = device.and_then(sent_by);
    let began = Instant::now();
    let offering = Offering::look(&[file], &[], &Cancel::default())?;
    let connection = connect(&ticket, &ConnectionOptions::default())?;
    let met = began.elapsed();
    let report = send(connection, &offering, &Cancel::default(), |_| {})?;
    let seconds = began.elapsed().as_secs_f64();
    let device_bytes = device.and_then(sent_by).zip(sent_before).map(|(after, before)| after - before);
    let handshake =
        PhaseRow { phase: "handshake".to_owned(), entries: 1, round_trips: 1, seconds: met.as_secs_f64() };
    let mut phases = PhaseRow::of(&report.connection.phases);
    phases.insert(0, handshake);
    let counters = &report.connection.counters;
    Ok(say(&Sent {
        seconds,
        wire_bytes: device_bytes.unwrap_or(counters.wire_bytes),
        lost: counters.lost as f64 / counters.packets.max(1) as f64,
        phases,
    })?)
}

/// Bytes that a device of this network namespace has sent.
fn sent_by(device: &str) -> Option<u64> {
    sent_in(&std::fs::read_to_string("/proc/self/net/dev").ok()?, device)
}

fn sent_in(text: &str, device: &str) -> Option<u64> {
    let counters = text.lines().find_map(|line| line.trim().strip_prefix(device)?.strip_prefix(':'))?;
    counters.split_whitespace().nth(8)?.parse().ok()
}

/// The simplest receiver: writes all bytes without a check.
fn tcp_receive(file: &Path, host: IpAddr, patience_s: f64) -> Done {
    let listener = TcpListener::bind(SocketAddr::new(host, 0))?;
    say(&listener.local_addr()?)?;
    let (mut stream, _) = listener.accept()?;
    let until = Instant::now() + Duration::from_secs_f64(patience_s);
    let (mut file, mut block, mut bytes) = (File::create(file)?, vec![0; BLOCK_BYTES], 0_u64);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(say(&bytes)?);
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
    Ok(say(&bytes)?)
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
    say(&())?;
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
    Ok(say(&began.elapsed().as_secs_f64())?)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn connect_with(to: SocketAddr, congestion: &str) -> Done<TcpStream> {
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
fn connect_with(_: SocketAddr, _: &str) -> Done<TcpStream> {
    Err("only on Linux can a program choose how TCP reacts to loss".into())
}

/// TCP needs buffers of a path's rate times its round trip; and IPv6 would put packets of its own on the wire.
fn widen() -> Vec<String> {
    let settings = [
        ("net/ipv4/tcp_rmem", "4096 131072 67108864"),
        ("net/ipv4/tcp_wmem", "4096 65536 67108864"),
        ("net/ipv6/conf/all/disable_ipv6", "1"),
    ];
    let refused = |(name, value): (&str, &str)| {
        let path = Path::new("/proc/sys").join(name);
        // Without IPv6 there is nothing to turn off.
        let is_needed = path.exists() || !name.contains("ipv6");
        let error = is_needed.then(|| std::fs::write(path, value))?.err()?;
        Some(format!("{} = {value}: {error}", name.replace('/', ".")))
    };
    settings.into_iter().filter_map(refused).collect()
}

const BLOCK_BYTES: usize = 1 << 20;

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
}
