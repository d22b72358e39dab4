//! What is said of the source: what only its server knows.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::data::status::{Loss, SourceStatus};
use crate::far::control::FarTuned;

/// What only the source knows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct FarStatus {
    name: String,
    is_same_boot: bool,
    network: Option<FarLoss>,
    shared_memory: Option<FarLoss>,
    kernel_datagrams: Option<u64>,
    queue: Option<FarLoss>,
    refused_datagrams: u64,
    foreign_datagrams: u64,
    second_sender: Option<SocketAddr>,
    advice: Option<String>,
    is_recording: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_being_recorded: bool,
    notice: Option<String>,
    /// What its receiver is tuned to.
    pub(crate) tuned: Option<FarTuned>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct FarLoss {
    frames: u64,
    samples: u64,
}

impl FarStatus {
    pub(crate) fn of(status: &SourceStatus, tuned: Option<FarTuned>) -> FarStatus {
        let loss = |loss: Option<Loss>| loss.map(|Loss { frames, samples }| FarLoss { frames, samples });
        FarStatus {
            name: status.name.clone(),
            is_same_boot: status.is_same_boot,
            network: loss(status.network),
            shared_memory: loss(status.shared_memory),
            kernel_datagrams: status.kernel_datagrams,
            queue: loss(status.queue),
            refused_datagrams: status.refused_datagrams,
            foreign_datagrams: status.foreign_datagrams,
            second_sender: status.second_sender,
            advice: status.advice.clone(),
            is_recording: status.is_recording,
            is_being_recorded: status.is_being_recorded,
            notice: status.notice.clone(),
            tuned,
        }
    }

    pub(crate) fn status(&self) -> SourceStatus {
        let loss = |loss: Option<FarLoss>| loss.map(|FarLoss { frames, samples }| Loss { frames, samples });
        SourceStatus {
            name: self.name.clone(),
            is_same_boot: self.is_same_boot,
            network: loss(self.network),
            shared_memory: loss(self.shared_memory),
            kernel_datagrams: self.kernel_datagrams,
            queue: loss(self.queue),
            refused_datagrams: self.refused_datagrams,
            foreign_datagrams: self.foreign_datagrams,
            second_sender: self.second_sender,
            advice: self.advice.clone(),
            is_recording: self.is_recording,
            is_being_recorded: self.is_being_recorded,
            notice: self.notice.clone(),
        }
    }
}
