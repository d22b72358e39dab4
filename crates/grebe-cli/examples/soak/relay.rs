//! A relay that loses datagrams on purpose, and knows which.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Result;
use grebe_frame::Header;

use crate::soak::Dice;

/// Loss that was injected into a stream.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Injected {
    pub(crate) frames: u64,
    pub(crate) samples: u64,
}

/// Passes datagrams on to everybody, and loses some on purpose.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    targets: Arc<Mutex<Vec<Target>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

struct Target {
    to: SocketAddr,
    /// Datagrams of a thousand that are lost.
    per_mille: u64,
    has_begun: bool,
    injected: Injected,
    /// Losses since the last datagram. Without another datagram they remain unknown.
    pending: Injected,
}

impl Relay {
    pub(crate) fn start(seed: u64) -> Result<Self> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.set_read_timeout(Some(Duration::from_millis(20)))?;
        let address = socket.local_addr()?;
        let (targets, is_over) = (Arc::<Mutex<Vec<Target>>>::default(), Arc::<AtomicBool>::default());
        let (to, over) = (targets.clone(), is_over.clone());
        let thread = thread::spawn(move || {
            let (mut dice, mut buffer, mut last) = (Dice(seed | 1), [0; 65_536], None);
            while !over.load(Ordering::Relaxed) {
                if let Ok(bytes) = socket.recv(&mut buffer)
                    && let Ok(header) = Header::parse_datagram(&buffer[..bytes])
                {
                    let mut targets = to.lock().unwrap_or_else(PoisonError::into_inner);
                    pass(&socket, &buffer[..bytes], header, &mut last, &mut targets, &mut dice);
                }
            }
        });
        Ok(Self { address, targets, is_over, thread: Some(thread) })
    }

    /// From now on passes on to there, too; with the number of the target.
    pub(crate) fn add(&self, to: SocketAddr, per_mille: u64) -> usize {
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        targets.push(Target {
            to,
            per_mille,
            has_begun: false,
            injected: Injected::default(),
            pending: Injected::default(),
        });
        targets.len() - 1
    }

    pub(crate) fn injected(&self, target: usize) -> Injected {
        let targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        targets.get(target).map_or(Injected::default(), |target| target.injected)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn pass(
    socket: &UdpSocket,
    datagram: &[u8],
    header: Header,
    last: &mut Option<Header>,
    targets: &mut [Target],
    dice: &mut Dice,
) {
    // Datagrams that this relay missed are lost, too. A younger stream starts over.
    let before = last.filter(|last| last.sequence < header.sequence);
    let missed = before.map_or(Injected::default(), |last| {
        let not_made = header.sg_drops_total - last.sg_drops_total;
        let samples = header.first_sample_index - last.next_sample_index() - not_made;
        Injected { frames: header.sequence - last.sequence - 1, samples }
    });
    if last.is_none_or(|last| last.sequence != header.sequence) {
        *last = Some(header);
    }
    for target in targets {
        if target.has_begun {
            target.pending.frames += missed.frames;
            target.pending.samples += missed.samples;
        }
        if target.has_begun && !header.is_end_of_stream() && dice.roll(1_000) < target.per_mille {
            target.pending.frames += 1;
            target.pending.samples += u64::from(header.block_length_samples);
            continue;
        }
        let pending = std::mem::take(&mut target.pending);
        target.injected.frames += pending.frames;
        target.injected.samples += pending.samples;
        target.has_begun |= !header.is_end_of_stream();
        // Nobody may listen there any more.
        let _ = socket.send_to(datagram, target.to);
    }
}
