use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::stream::Stream;

/// How datagrams are handed to the kernel and taken from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Technique {
    /// One datagram per call, blocking: `send` and `recv` of `std`. The baseline.
    OneCall,
    /// Several datagrams per call.
    Mmsg,
    /// Several datagrams per call and kernel buffer; header and samples lie apart and are gathered by the kernel.
    Gso,
    /// The same, with frames written one behind the other, as grebe's sources make them: writing them is part of the run.
    GsoRun,
}

/// What can be spoiled in every hundredth frame, to see that it is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Fault {
    /// The samples of the frame before.
    Stale,
    /// The two halves of the payload the other way round.
    Swapped,
    /// Samples moved by one.
    Shifted,
}

/// One run, as both sides are told it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct UdpTask {
    pub channels: u32,
    pub block: u32,
    pub burst: usize,
    pub technique: Technique,
    pub privileged: bool,
    pub target_msps: Option<f64>,
    pub duration: Duration,
    pub latency: Duration,
    pub recv_buffer_bytes: usize,
    pub fault: Option<Fault>,
    pub host: IpAddr,
}

impl Technique {
    const ALL: [Technique; 4] = [Technique::OneCall, Technique::Mmsg, Technique::Gso, Technique::GsoRun];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Technique::OneCall => "one_call",
            Technique::Mmsg => "mmsg",
            Technique::Gso => "gso",
            Technique::GsoRun => "gso_run",
        }
    }

    pub(crate) fn by_name(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|technique| technique.name() == name);
        found.ok_or_else(|| Error::unknown("technique", name, &Self::ALL.map(Self::name)))
    }
}

impl UdpTask {
    pub(crate) fn options(&self) -> grebe_datagram::Options {
        let offload = matches!(self.technique, Technique::Gso | Technique::GsoRun);
        grebe_datagram::Options {
            recv_buffer_bytes: self.recv_buffer_bytes,
            force_buffers: self.privileged,
            batch: self.technique != Technique::OneCall,
            gso: offload,
            gro: offload,
            burst: self.burst,
            latency: self.latency,
            // One datagram per slot needs more slots for the same amortisation.
            slots: if offload { 8 } else { 64 },
            ..grebe_datagram::Options::default()
        }
    }
}

const fn stream(label: &'static str, channels: u32, block: Option<u32>, target_msps: Option<f64>) -> Stream {
    Stream { label, channels, block, target_msps }
}

/// The labels, channels, blocks and rates of the C++ program, so that its tables can be put beside ours.
const SCENARIOS: [Stream; 13] = [
    stream("1ch_max", 1, None, None),
    stream("1ch_256", 1, Some(256), None),
    stream("1ch_64", 1, Some(64), None),
    stream("2ch_max", 2, None, None),
    stream("4ch_max", 4, None, None),
    stream("1ch_1MSPS", 1, None, Some(1.0)),
    stream("1ch_10MSPS", 1, None, Some(10.0)),
    stream("1ch_100MSPS", 1, None, Some(100.0)),
    stream("1ch_1GSPS", 1, None, Some(1_000.0)),
    stream("4ch_1MSPS", 4, None, Some(1.0)),
    stream("4ch_10MSPS", 4, None, Some(10.0)),
    stream("4ch_100MSPS", 4, None, Some(100.0)),
    stream("4ch_1GSPS", 4, None, Some(1_000.0)),
];

/// The scenario with this label.
pub(crate) fn scenario(label: &str) -> Result<Stream> {
    let found = SCENARIOS.into_iter().find(|scenario| scenario.label == label);
    found.ok_or_else(|| Error::unknown("scenario", label, &SCENARIOS.map(|scenario| scenario.label)))
}
