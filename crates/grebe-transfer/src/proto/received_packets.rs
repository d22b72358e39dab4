//! Received packets: one bitmap is the replay window and the source of feedback.

use grebe_packet::ReplayWindow;

/// The packet numbers that arrived, of the newest 65,536. A path that reorders by more than this loses packets.
pub type ReceivedPackets = ReplayWindow<1_024>;
