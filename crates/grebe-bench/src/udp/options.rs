use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use super::send::FrameSender;
use crate::error::Result;
use crate::peer::Launcher;
use crate::stream::{Checker, Turns};

/// What to measure; each combination of scenario, size, privilege, technique and burst is a row.
#[derive(Clone)]
pub struct Options {
    /// Scenarios by label.
    pub scenarios: Vec<String>,
    /// Bytes of header and samples together.
    pub datagram_bytes: Vec<usize>,
    /// Datagrams after which a batch is sent.
    pub bursts: Vec<usize>,
    /// By name: `one_call`, `mmsg`, `gso`, `gso_run`.
    pub techniques: Vec<String>,
    /// Whether to use the privilege that large buffers need.
    pub privileged: Vec<bool>,
    /// How long one run sends.
    pub duration: Duration,
    /// How often, and in which state of the machine.
    pub turns: Turns,
    /// Whether one call per datagram is measured in turn with the others.
    pub baseline: bool,
    /// The end-to-end latency budget.
    pub latency: Duration,
    /// Bytes of receive buffer to ask for.
    pub recv_buffer_bytes: usize,
    /// Starts the receiver as a process; `None`: it is a thread of this one.
    pub launcher: Option<Launcher>,
    /// Where the receiver binds, without the port.
    pub host: IpAddr,
    /// Other programs' techniques to measure in turn with ours.
    pub others: Vec<Arc<dyn Other>>,
}

/// Another program's technique to send and receive datagrams, under the same scenario, checks and socket buffers; its receiver
/// is a thread.
pub trait Other: Send + Sync {
    /// What it is called in results.
    fn name(&self) -> &'static str;

    /// A sender on a connected socket, which does not block.
    ///
    /// # Errors
    /// Where a socket fails.
    fn sender(&self, to: SocketAddr, socket: UdpSocket) -> Result<Box<dyn FrameSender>>;

    /// Receives from the bound socket, which does not block, until the checker says that the stream is over.
    ///
    /// # Errors
    /// Where the socket fails.
    fn receive(&self, socket: UdpSocket, checker: &mut Checker) -> Result<()>;
}

impl Default for Options {
    fn default() -> Self {
        Self {
            scenarios: vec!["1ch_max".to_owned()],
            datagram_bytes: vec![1_400, 65_000],
            bursts: vec![grebe_datagram::MAX_BURST_DATAGRAMS],
            techniques: vec!["gso".to_owned()],
            privileged: vec![true],
            duration: Duration::from_secs(1),
            turns: Turns::default(),
            baseline: true,
            latency: Duration::from_micros(500),
            recv_buffer_bytes: 32 << 20,
            launcher: None,
            host: Ipv4Addr::LOCALHOST.into(),
            others: Vec::new(),
        }
    }
}
