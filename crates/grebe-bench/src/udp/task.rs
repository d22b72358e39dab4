//! One run, as both sides are told it.

use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::options::{Options, Technique};
use crate::error::Result;
use crate::peer::Task;
use crate::stream::{Plan, Stream};

/// One run, as both sides are told it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct UdpTask {
    pub(super) plan: Plan,
    pub(super) burst: usize,
    pub(super) technique: Technique,
    pub(super) privileged: bool,
    pub(super) latency: Duration,
    pub(super) recv_buffer_bytes: usize,
    pub(super) host: IpAddr,
}

impl Task for UdpTask {
    const BENCH: &'static str = "udp";
}

impl UdpTask {
    pub(super) fn new(
        options: &Options,
        stream: Stream,
        datagram_bytes: usize,
        privileged: bool,
    ) -> Result<Self> {
        let block = stream.block_for(datagram_bytes, 1)?;
        let mut plan = Plan {
            format: stream.format,
            channels: stream.channels,
            block,
            target_msps: stream.target_msps,
            duration: options.runs.duration,
            // A quarter of the latency budget, as the product's sender flushes.
            tick: options.latency / 4,
            late_max: Duration::from_millis(50),
            burst_max: None,
            frames_max: 1,
        };
        // Between two looks at the clock; at full speed, a latency stamp is as old as that.
        plan.frames_max = ((2 << 20) / plan.frame_bytes()).clamp(1, 512);
        let (latency, recv_buffer_bytes, host) = (options.latency, options.recv_buffer, options.host);
        Ok(Self {
            plan,
            burst: 1,
            technique: Technique::OneCall,
            privileged,
            latency,
            recv_buffer_bytes,
            host,
        })
    }

    pub(super) fn socket_options(&self) -> grebe_datagram::Options {
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
