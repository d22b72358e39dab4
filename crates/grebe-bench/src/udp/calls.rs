//! Benefit of batches for a receiver: many small datagrams from several senders, one or many per call.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use grebe_datagram::{Options, Receiver};
use grebe_frame::SampleFormat;
use serde_json::json;

use crate::error::{Error, Result};
use crate::limit::{self, Handling};
use crate::row::{Progress, Row, Tell};
use crate::runs::Spread;
use crate::stream::{Stream, Work};
use crate::system;

/// A receiving technique: it gets a non-blocking socket and a stop condition, and returns the number of datagrams and of
/// calls.
pub type ReceiveCalls = fn(UdpSocket, &dyn Fn() -> bool) -> io::Result<(u64, u64)>;

/// Results of one receiver.
#[derive(Debug, Clone, Copy)]
struct Received {
    sent_per_sec: f64,
    recv_per_sec: f64,
    per_call: f64,
    /// CPU time per received datagram, in nanoseconds; `None` if not reported.
    cpu_ns: Option<f64>,
}

/// Receives small datagrams from 1, 2, 4 and 8 senders, for `duration` each and in turns: by one blocking call per
/// datagram, by calls of up to 32, and by other programs' techniques. Rows of the median runs.
///
/// # Errors
/// Where a socket fails.
pub fn run(
    duration: Duration,
    repeats: usize,
    others: &[(&'static str, ReceiveCalls)],
    tell: Tell,
) -> Result<()> {
    let mut techniques = vec![("one_call", Some(one_call as ReceiveCalls))];
    techniques.extend(others.iter().map(|&(name, calls)| (name, Some(calls))));
    techniques.push(("batches of 32", None));
    let limit_per_sec = limit_per_sec(duration)?;
    for senders in [1, 2, 4, 8] {
        let mut runs: Vec<Vec<Received>> = techniques.iter().map(|_| Vec::new()).collect();
        for _ in 0..repeats.max(1) {
            for ((_, calls), runs) in techniques.iter().zip(&mut runs) {
                runs.push(calls.map_or_else(
                    || batched(senders, duration),
                    |calls| by_calls(calls, senders, duration),
                )?);
            }
        }
        let median = |of: fn(&Received) -> f64, runs: &[Received]| Spread::over(runs, of).median;
        let baseline = median(|run| run.recv_per_sec, &runs[0]);
        for ((technique, _), runs) in techniques.iter().zip(&runs) {
            let rate = median(|run| run.recv_per_sec, runs);
            let sent = median(|run| run.sent_per_sec, runs);
            let per_call = median(|run| run.per_call, runs);
            let cpu_ns = runs[0].cpu_ns.map(|_| median(|run| run.cpu_ns.unwrap_or(0.0), runs));
            let json = json!({
                "technique": technique,
                "senders": senders,
                "sent_per_sec": sent,
                "recv_per_sec": rate,
                "per_call": per_call,
                "cpu_ns": cpu_ns,
                "ratio": rate / baseline,
                "of_limit": rate / limit_per_sec,
                "runs": runs.len(),
            });
            let row = Row::new(format!("Receiving datagrams of {DATAGRAM_BYTES} bytes"), &json)
                .name("technique", technique)
                .cell("senders", senders)
                .cell("k/s", format!("{:.0}", rate / 1e3))
                .cell("k/s sent", format!("{:.0}", sent / 1e3))
                .cell("per call", format!("{per_call:.1}"))
                .cell("ns CPU each", cpu_ns.map_or(String::new(), |ns| format!("{ns:.0}")))
                .cell("of limit", format!("{:.1}%", rate / limit_per_sec * 100.0))
                .cell("times one_call", format!("{:.2}", rate / baseline))
                .cell("runs", runs.len());
            tell(Progress::Row(&row));
        }
    }
    Ok(())
}

/// Frames of that size that one core hands to another, which copies and compares each.
fn limit_per_sec(duration: Duration) -> Result<f64> {
    let stream =
        Stream { label: "copy", format: SampleFormat::I16, channels: 1, block: None, target_msps: None };
    let block = stream.block_for(DATAGRAM_BYTES, 1)?;
    Ok(limit::run(stream, block, duration, &[Work::Compare], Handling::Copy)?.frames_per_sec)
}

fn by_calls(calls: ReceiveCalls, senders: usize, duration: Duration) -> Result<Received> {
    let receiver = bind(&options())?;
    let socket = receiver.try_clone_socket().map_err(Error::io("copy a socket"))?;
    let address = receiver.local_addr()?;
    measure(senders, duration, address, |stop| calls(socket, stop).map_err(Error::io("receive")))
}

fn one_call(socket: UdpSocket, stop: &dyn Fn() -> bool) -> io::Result<(u64, u64)> {
    socket.set_nonblocking(false)?;
    socket.set_read_timeout(Some(Duration::from_millis(20)))?;
    let (mut buffer, mut count) = ([0; 2_048], 0);
    while !stop() {
        match socket.recv_from(&mut buffer) {
            Ok(_) => count += 1,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
    }
    Ok((count, count))
}

fn batched(senders: usize, duration: Duration) -> Result<Received> {
    let mut receiver = bind(&Options { gro: false, slots: 32, ..options() })?;
    let address = receiver.local_addr()?;
    measure(senders, duration, address, |stop| {
        let (mut count, mut calls) = (0, 0);
        while !stop() {
            let outcome = receiver.recv(|| Some(vec![0; 2_048]), |slot, _| Some(slot))?;
            count += outcome.datagrams as u64;
            calls += 1;
        }
        Ok((count, calls))
    })
}

fn options() -> Options {
    Options { recv_timeout: Duration::from_millis(20), ..Options::default() }
}

fn bind(options: &Options) -> Result<Receiver<Vec<u8>>> {
    Ok(Receiver::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), options)?)
}

fn measure(
    senders: usize,
    duration: Duration,
    to: SocketAddr,
    receive: impl FnOnce(&dyn Fn() -> bool) -> Result<(u64, u64)>,
) -> Result<Received> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sending: Vec<_> = (0..senders).map(|_| scope.spawn(|| send(to, &stop))).collect();
        let (began, cpu_before) = (Instant::now(), system::thread_cpu());
        let received = receive(&|| began.elapsed() >= duration);
        let elapsed = began.elapsed().as_secs_f64();
        let cpu = system::since(system::thread_cpu(), cpu_before);
        stop.store(true, Ordering::Relaxed);
        let mut sent = 0;
        for sender in sending {
            let sender = sender.join().map_err(|_| Error::peer("sender", "its thread panicked"))?;
            sent += sender.map_err(Error::io("send"))?;
        }
        let (count, calls) = received?;
        Ok(Received {
            sent_per_sec: sent as f64 / elapsed,
            recv_per_sec: count as f64 / elapsed,
            per_call: count as f64 / calls.max(1) as f64,
            cpu_ns: cpu.map(|cpu| cpu.as_nanos() as f64 / count.max(1) as f64),
        })
    })
}

/// Sends as fast as it goes; how many datagrams.
fn send(to: SocketAddr, stop: &AtomicBool) -> io::Result<u64> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect(to)?;
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        socket.send(&[7; DATAGRAM_BYTES])?;
        count += 1;
    }
    Ok(count)
}

const DATAGRAM_BYTES: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_and_calls_are_counted() {
        let one = by_calls(one_call, 1, Duration::from_millis(60)).unwrap();
        assert!((one.per_call - 1.0).abs() < f64::EPSILON);
        let many = batched(1, Duration::from_millis(60)).unwrap();
        assert!(many.recv_per_sec > 0.0 && many.per_call > 0.0);
        let mut lines = Vec::new();
        run(Duration::from_millis(5), 1, &[], &mut |progress| {
            if let Progress::Row(row) = progress {
                lines.push(row.line());
            }
        })
        .unwrap();
        assert_eq!(lines.len(), 8);
        assert!(lines.iter().all(|line| line.contains("per call")), "{lines:?}");
    }
}
