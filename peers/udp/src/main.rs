//! quinn-udp and plain `std` sockets beside grebe-datagram, interleaved, with the same frames, checks and buffers; and what a
//! receiver saves by batches against one datagram a wake-up of tokio.
//!
//! `cargo run --release -- [ROUNDS] [SECONDS]`. iperf3 is run beside them where it is installed. Receivers are threads here, so that all share one way to be started.

mod iperf;

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use grebe_bench::canary;
use grebe_bench::udp::{self, Frames, Outlet, Plan, RunResult, Scenario, Technique, Watch};
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use tokio::io::Interest;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let rounds: usize = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let seconds: f64 = arguments.next().map_or(Ok(0.5), |text| text.parse())?;
    let plan = Plan {
        techniques: vec![Technique::Gso],
        duration: Duration::from_secs_f64(seconds),
        repeats: 1,
        ..Plan::default()
    };
    println!(
        "| bytes | iperf3 MSPS (lost) | std MSPS | quinn-udp MSPS | grebe MSPS | grebe / std | grebe / quinn-udp | lost std, quinn, grebe | mood |"
    );
    println!("|--:|--:|--:|--:|--:|--:|--:|--:|---|");
    for bytes in [192, 1_400, 4_000, 9_000, 16_000, 32_000, 65_000] {
        let scenario = Scenario::by_label("1ch_max")?;
        let plan = Plan { datagram_bytes: vec![bytes], ..plan.clone() };
        let mut runs: [Vec<RunResult>; 3] = Default::default();
        let mut iperf = Vec::new();
        for _ in 0..rounds {
            iperf.extend(iperf::run(bytes, seconds.ceil().max(1.0) as u32));
            // The baseline of the bench is `std`.
            for row in udp::run(&plan, |_| {})? {
                runs[if row.technique == Technique::OneCall { 0 } else { 2 }].push(row);
            }
            runs[1].push(udp::run_other(
                &plan,
                scenario,
                bytes,
                |to, socket| Ok(Box::new(Quinn::new(to, socket).map_err(refused("open a socket"))?)),
                |socket, watch| quinn_receive(socket, watch).map_err(refused("receive")),
            )?);
        }
        let lost: Vec<_> = runs
            .iter()
            .map(|runs| runs.iter().map(|run| run.frames_sent - run.frames_recv).sum::<u64>().to_string())
            .collect();
        let corrupt: u64 = runs.iter().flatten().map(|run| run.corrupt).sum();
        assert_eq!(corrupt, 0, "frames that are not what they claim to be");
        let [std, quinn, grebe] = runs.map(median);
        println!(
            "| {bytes} | {} | {std:.0} | {quinn:.0} | {grebe:.0} | {:.2} | {:.2} | {} | {} |",
            iperf_cell(iperf),
            grebe / std,
            grebe / quinn,
            lost.join(", "),
            canary::read()
        );
    }
    amortisation(rounds, Duration::from_secs_f64(seconds))
}

fn amortisation(rounds: usize, duration: Duration) -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "\n| senders | blocking recvfrom k/s | tokio, one a wake-up k/s | batches of 32 k/s | to recvfrom | to tokio | datagrams a call | CPU ns a datagram: recvfrom, tokio, batch |"
    );
    println!("|--:|--:|--:|--:|--:|--:|--:|--:|");
    for senders in [1, 2, 4, 8] {
        let mut runs: [Vec<udp::Amortised>; 3] = Default::default();
        for _ in 0..rounds {
            let [one, many] = udp::amortise(senders, duration)?;
            runs[0].push(one);
            runs[1].push(udp::amortise_with(senders, duration, tokio_receive)?);
            runs[2].push(many);
        }
        let [one, tokio, many] = runs.map(|mut runs| {
            runs.sort_by(|a, b| a.recv_per_sec.total_cmp(&b.recv_per_sec));
            runs[runs.len() / 2]
        });
        println!(
            "| {senders} | {:.0} | {:.0} | {:.0} | {:.2} | {:.2} | {:.1} | {:.0}, {:.0}, {:.0} |",
            one.recv_per_sec / 1e3,
            tokio.recv_per_sec / 1e3,
            many.recv_per_sec / 1e3,
            many.recv_per_sec / one.recv_per_sec,
            many.recv_per_sec / tokio.recv_per_sec,
            many.per_call,
            one.cpu_ns.unwrap_or(0.0),
            tokio.cpu_ns.unwrap_or(0.0),
            many.cpu_ns.unwrap_or(0.0),
        );
    }
    Ok(())
}

/// As a program on quinn-udp sends: one contiguous buffer of equal segments a call.
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

impl Outlet for Quinn {
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

fn quinn_receive(socket: UdpSocket, watch: &mut Watch) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let state = UdpSocketState::new((&socket).into())?;
        let socket = tokio::net::UdpSocket::from_std(socket)?;
        let mut buffers = vec![vec![0_u8; 65_536]; BATCH_SIZE];
        let mut last = Instant::now();
        while !watch.is_over(last) {
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
            let now_ns = Watch::now_ns();
            for (buffer, meta) in buffers.iter().zip(&metas[..count]) {
                for datagram in buffer[..meta.len].chunks(meta.stride.max(1)) {
                    watch.frame(datagram, now_ns);
                }
            }
            watch.calls(1, None);
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

fn iperf_cell(mut runs: Vec<iperf::Run>) -> String {
    if runs.is_empty() {
        return "not installed".to_owned();
    }
    runs.sort_by(|a, b| a.msps.total_cmp(&b.msps));
    let lost: u64 = runs.iter().map(|run| run.lost).sum();
    format!("{:.0} ({lost})", runs[runs.len() / 2].msps)
}

fn median(mut runs: Vec<RunResult>) -> f64 {
    runs.sort_by(|a, b| a.throughput_msps.total_cmp(&b.throughput_msps));
    runs[runs.len() / 2].throughput_msps
}

fn refused(action: &'static str) -> impl FnOnce(io::Error) -> grebe_bench::Error {
    move |source| grebe_bench::Error::Io { action, source }
}
