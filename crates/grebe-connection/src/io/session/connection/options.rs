//! Options of a connection.

use std::sync::Arc;
use std::time::Duration;

use grebe_packet::Cancel;
use grebe_relay::Via;

use crate::io::session::{KEEP_TRYING, Notify, Transport};
use crate::proto::congestion::Mode;

/// Returns a listener's greeting.
pub type Greet = dyn Fn() -> Vec<u8> + Send + Sync;

/// Options of a connection.
#[derive(Clone)]
pub struct ConnectionOptions {
    /// Share of a shared path to take for this end's stream.
    pub mode: Mode,
    /// Maximum rate on the wire of this end's stream, in bits per second. `None`: no limit.
    pub limit_bits_per_s: Option<f64>,
    /// Whether the holder of the ticket measures the path by a train of 32 packets in the handshake, which saves a
    /// round trip. For an end that writes much.
    pub measures: bool,
    /// Transport that the holder of the ticket uses. The listener accepts both.
    pub transport: Transport,
    /// Allowed routes if the ticket names a relay.
    pub via: Via,
    /// Maximum time to wait for the first answer.
    pub answer_within: Duration,
    /// Maximum silence of the other end after it has answered once. A live end sends at least once per
    /// second, whatever its application does.
    pub keep_trying: Duration,
    /// Aborts the connection: notifies the other end, and fails all later reads and writes.
    pub cancel: Cancel,
    /// Callback for events before the end.
    pub notify: Notify,
    /// Called by a listener when the other end connects. Returns the first bytes for its reader, 31 at most.
    /// They travel with the answer to the handshake, a round trip ahead of the writer's.
    pub greet: Option<Arc<Greet>>,
}

impl Default for ConnectionOptions {
    fn default() -> Self {
        Self {
            mode: Mode::Fair,
            limit_bits_per_s: None,
            measures: false,
            transport: Transport::Any,
            via: Via::Any,
            answer_within: Duration::from_secs(10),
            keep_trying: KEEP_TRYING,
            cancel: Cancel::default(),
            notify: Arc::new(|_| {}),
            greet: None,
        }
    }
}

/// One kernel buffer of coalesced datagrams.
pub(super) const SLOT_BYTES: usize = 65_536;
