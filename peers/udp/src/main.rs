//! quinn-udp and plain `std` sockets beside grebe-datagram, in turns, with the same frames, checks and buffers. Also
//! the benefit of batches for a receiver, against one datagram per wake-up of tokio.
//!
//! `cargo run --release -- [ROUNDS] [SECONDS]`. Runs iperf3 first if it is installed. Receivers are threads, so that
//! all start in the same manner.

mod iperf;

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use grebe_bench::udp::{self, Buffers, Options, Other};
use grebe_bench::{Checker, Error, FrameSender, Frames, Progress, Row, Runs, markdown};
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use tokio::io::Interest;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let repeats: u16 = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let seconds: f64 = arguments.next().map_or(Ok(0.5), |text| text.parse())?;
    let duration = Duration::from_secs_f64(seconds);
    let mut rows: Vec<Row> = Vec::new();
    let mut tell = |progress: Progress| {
        if let Progress::Row(row) = progress {
            eprintln!("{}", row.line());
            rows.push(row.clone());
        }
    };
    for bytes in [192, 1_400, 4_000, 9_000, 16_000, 32_000, 65_000] {
        eprintln!("{bytes} bytes: iperf3 {}", iperf_words(bytes, repeats.into(), seconds));
        let options = Options {
            datagram_size: vec![bytes],
            buffers: Buffers::Privileged,
            runs: Runs { duration, repeats },
            others: vec![Arc::new(QuinnUdp)],
            ..Options::default()
        };
        udp::run(&options, &mut tell)?;
    }
    udp::receive_calls(duration, repeats.into(), &[("tokio", tokio_receive)], &mut tell)?;
    println!("{}", markdown(&rows));
    Ok(())
}

fn iperf_words(bytes: usize, repeats: usize, seconds: f64) -> String {
    let seconds = seconds.ceil().max(1.0) as u32;
    let mut runs: Vec<_> = (0..repeats).filter_map(|_| iperf::run(bytes, seconds)).collect();
    runs.sort_by(|a, b| a.msps.total_cmp(&b.msps));
    let lost: u64 = runs.iter().map(|run| run.lost).sum();
    match runs.get(runs.len() / 2) {
        Some(median) => format!("{:.0} MSPS, lost {lost}", median.msps),
        None => "is not installed".to_owned(),
    }
}

/// quinn-udp, as its users send and receive.
#[derive(Debug)]
struct QuinnUdp;

impl Other for QuinnUdp {
    fn name(&self) -> &'static str {
        "quinn-udp"
    }

    fn sender(&self, to: SocketAddr, socket: UdpSocket) -> Result<Box<dyn FrameSender>, Error> {
        Ok(Box::new(Quinn::new(to, socket).map_err(refused("open a socket"))?))
    }

    fn receive(&self, socket: UdpSocket, checker: &mut Checker) -> Result<(), Error> {
        quinn_receive(socket, checker).map_err(refused("receive"))
    }
}

/// One contiguous buffer of equal segments per call.
struct Quinn {
    socket: UdpSocket,
    state: UdpSocketState,
    to: SocketAddr,
    contents: Vec<u8>,
}

impl Quinn {
    fn new(to: SocketAddr, socket: UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        Ok(Self { socket, state, to, contents: Vec::with_capacity(65_536) })
    }

    fn flush(&mut self, segment: usize) -> io::Result<()> {
        let transmit = Transmit {
            destination: self.to,
            ecn: None,
            contents: &self.contents,
            segment_size: (self.contents.len() > segment).then_some(segment),
            src_ip: None,
        };
        loop {
            match self.state.try_send((&self.socket).into(), &transmit) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::yield_now(),
                other => break other?,
            }
        }
        self.contents.clear();
        Ok(())
    }
}

impl FrameSender for Quinn {
    fn send(&mut self, frames: &Frames<'_>) -> grebe_bench::Result<()> {
        let most = self.state.max_gso_segments();
        let (mut segment, mut count) = (0, 0);
        for (header, payload) in frames.iter() {
            segment = header.len() + payload.len();
            if count == most || self.contents.len() + segment > 65_507 {
                self.flush(segment).map_err(refused("send"))?;
                count = 0;
            }
            self.contents.extend_from_slice(header);
            self.contents.extend_from_slice(payload);
            count += 1;
        }
        self.flush(segment).map_err(refused("send"))
    }
}

fn quinn_receive(socket: UdpSocket, checker: &mut Checker) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let state = UdpSocketState::new((&socket).into())?;
        let socket = tokio::net::UdpSocket::from_std(socket)?;
        let mut buffers = vec![vec![0_u8; 65_536]; BATCH_SIZE];
        let mut last = Instant::now();
        while !checker.is_over(last) {
            let ready = tokio::time::timeout(Duration::from_millis(50), socket.readable()).await;
            if ready.is_err() {
                continue;
            }
            let mut metas = [RecvMeta::default(); BATCH_SIZE];
            let received = socket.try_io(Interest::READABLE, || {
                let mut slices: Vec<_> = buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
                state.recv((&socket).into(), &mut slices, &mut metas)
            });
            let Ok(count) = received else { continue };
            let now_ns = Checker::now_ns();
            for (buffer, meta) in buffers.iter().zip(&metas[..count]) {
                for datagram in buffer[..meta.len].chunks(meta.stride.max(1)) {
                    checker.datagram(datagram, now_ns);
                }
            }
            checker.call(None);
            last = Instant::now();
        }
        Ok(())
    })
}

/// As most asynchronous programs receive.
fn tokio_receive(socket: UdpSocket, stop: &dyn Fn() -> bool) -> io::Result<(u64, u64)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let socket = tokio::net::UdpSocket::from_std(socket)?;
        let (mut buffer, mut count) = ([0; 2_048], 0);
        while !stop() {
            // The wake-up, then one datagram.
            socket.readable().await?;
            if socket.try_recv_from(&mut buffer).is_ok() {
                count += 1;
            }
        }
        Ok((count, count))
    })
}

fn refused(action: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Io { action, source }
}
