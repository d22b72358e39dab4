//! Messages between the ends of a graph: a first line of JSON through `ssh`, then messages between samples.
//!
//! ```text
//!  this end                             the end that ssh started
//!    Hello       ==first line==>          its part of the graph, and the routes for samples
//!                <=its first line= Ready  the graph is valid on that host
//!    Meet, Reach, Join                    direct connections with other hosts: see `peers`
//!    Build       ==>            Built     its stages are open
//!    Start       ==>            Counts    four times a second
//!    Stop, End   ==>            Ended     with the last counters
//! ```
//!
//! Both ends send messages several times within [`SILENT_FOR`]. Silence means a broken route, or a stopped process.

use std::time::{Duration, Instant};

use grebe_flow::Snapshot;
use grebe_frame::ClockReading;
use grebe_remote::{Call, Route, Terms};
use serde::{Deserialize, Serialize};

/// Part of a graph. The protocol version changes with these messages, and with the data on links.
pub(super) const JOINS: Call = Call {
    arguments: "run --serve",
    protocol: 3,
    does: "joins graphs",
    instead: "install this one with --bootstrap",
    can_bootstrap: true,
};

/// Task of the other end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct PartTask {
    /// Name of the graph, for `grebe top`.
    pub(super) name: String,
    /// Its part of the graph, as a file.
    pub(super) part: String,
    /// The part restarts after a failure.
    pub(super) restarts: bool,
    /// For a restarted part: the last epoch of each link.
    pub(super) again: Option<Vec<(u16, u32)>>,
}

/// Message of the coordinator. A `peer` is another host of the graph, by the number of its part. A `round` counts the
/// attempts of two hosts to connect; messages of earlier rounds are ignored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ToHost {
    /// Request for a clock reading; the number comes back.
    Clock(u64),
    /// Request for test bytes.
    Fill(u64),
    /// Listen for a peer, at this port if free. An earlier direct connection ends: its links go through the
    /// coordinator, and wait until they join.
    Meet {
        peer: u16,
        round: u32,
        terms: Terms,
        port: u16,
    },
    /// Connect to a peer by its ticket.
    Reach {
        peer: u16,
        round: u32,
        ticket: String,
    },
    /// These links go directly to or from a peer, over the connection that this host made, or the peer made. Each
    /// begins an epoch, except for epoch 0 at the start.
    Join {
        peer: u16,
        round: u32,
        is_ours: bool,
        /// The links join again after a break; until then they wait.
        is_kept: bool,
        links: Vec<(u16, u32)>,
    },
    /// No link goes directly to this peer.
    Part(u16),
    /// A peer is gone, and may come back: data for it waits.
    Away(u16),
    /// Send test bytes to a peer.
    FillPeer {
        peer: u16,
        bytes: u64,
    },
    /// A peer, or the route to it, is gone for good.
    Lost(u16),
    /// Open all stages.
    Build,
    Start,
    /// End the sources, and process queued samples.
    Stop,
    /// End all stages soon.
    End,
    /// Keep-alive.
    Here,
}

/// Message of another host.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ToCoordinator {
    /// Message for the user.
    Note(String),
    /// Clock reading, with the number of the request.
    Clock(u64, ClockReading),
    /// Amount of test bytes, and the time in which they came.
    Filled(Filled),
    /// Ticket for a peer; `None`: this host cannot listen. No data of this host uses an earlier direct connection any
    /// more.
    Ticket {
        peer: u16,
        round: u32,
        ticket: Option<String>,
    },
    /// This host has connected to a peer (`is_ours`), or the peer to it, by this route; `None`: neither.
    Met {
        peer: u16,
        round: u32,
        is_ours: bool,
        #[serde(rename = "way")]
        route: Option<Route>,
    },
    /// As `Filled`, from a peer.
    PeerFilled {
        peer: u16,
        filled: Filled,
    },
    /// Reason for the break of a direct connection.
    Broke {
        peer: u16,
        round: u32,
        why: String,
    },
    /// Whether messages of a peer arrive, if that changed.
    Hears {
        peer: u16,
        round: u32,
        hears: bool,
    },
    Built,
    Counts(Snapshot),
    Ended {
        counts: Snapshot,
        failed: Option<Failed>,
    },
}

/// Reason, and exit status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Failed {
    pub(super) why: String,
    pub(super) status: u8,
}

/// Test bytes, and their time from the first piece to the last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Filled {
    pub(super) bytes: u64,
    pub(super) ns: u64,
}

/// Test bytes as messages; the last one is marked.
pub(super) fn filler(bytes: u64) -> impl Iterator<Item = Vec<u8>> {
    let pieces = bytes.div_ceil(PIECE_BYTES as u64).max(2);
    let mut noise = 0x9e37_79b9_7f4a_7c15u64;
    (1..=pieces).map(move |piece| {
        let mut words = vec![FILLER, u8::from(piece == pieces)];
        while words.len() < PIECE_BYTES {
            // Incompressible, because `ssh` may compress.
            noise ^= noise << 13;
            noise ^= noise >> 7;
            noise ^= noise << 17;
            words.extend(noise.to_le_bytes());
        }
        words
    })
}

/// Measures test bytes as they arrive.
#[derive(Debug, Default)]
pub(super) struct FillMeter {
    began: Option<Instant>,
    bytes: u64,
}

impl FillMeter {
    /// `None` if this is not a piece of test bytes; else the result after the last piece.
    pub(super) fn take(&mut self, words: &[u8]) -> Option<Option<Filled>> {
        let &[FILLER, is_last, ..] = words else { return None };
        let Some(began) = self.began else {
            (self.began, self.bytes) = (Some(Instant::now()), 0);
            return Some(None);
        };
        self.bytes += words.len() as u64;
        let done =
            (is_last != 0).then(|| Filled { bytes: self.bytes, ns: began.elapsed().as_nanos() as u64 });
        if done.is_some() {
            self.began = None;
        }
        Some(done)
    }
}

/// As it travels between samples. Serialization cannot fail.
pub(super) fn words(of: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(of).unwrap_or_default()
}

/// Exit status if another host is gone.
pub(super) const GONE: u8 = 3;
/// Limit of one request.
pub(super) const FILL_BYTES_MAX: u64 = 64 << 20;
/// JSON never begins with this byte.
const FILLER: u8 = 0xff;
const PIECE_BYTES: usize = 16 << 10;
/// A host that is silent for this long is gone.
pub(super) const SILENT_FOR: Duration = Duration::from_secs(30);
/// A direct connection that is silent for this long counts as broken, and its links join again if they are kept. This
/// is six times [`ALIVE_EVERY`], and keep-alives are acknowledged, so half of the packets may be lost. A slow
/// consumer does not cause silence, because readers wait for no stage. A busy machine delays a thread by tenths of a
/// second. TCP repeats lost data after 0.2, 0.6 and 1.4 s, in time.
pub(super) const DEAD_AFTER: Duration = Duration::from_millis(2_500);
/// Interval of keep-alives on a direct connection.
pub(super) const ALIVE_EVERY: Duration = Duration::from_millis(400);
/// Interval of keep-alives of the coordinator; other hosts report counters four times a second.
pub(super) const HERE_EVERY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use grebe_connection::Mode;
    use grebe_flow::StageSnapshot;
    use grebe_remote::Via;

    use super::*;

    #[test]
    fn the_length_of_an_unknown_line_counts_from_its_first_piece() {
        let mut meter = FillMeter::default();
        assert_eq!(meter.take(&words(&ToHost::Build)), None);
        for bytes in [1, 100_000] {
            let told: Vec<_> = filler(bytes).map(|words| meter.take(&words).unwrap()).collect();
            let (last, before) = told.split_last().unwrap();
            assert!(before.iter().all(Option::is_none) && !before.is_empty());
            let filled = last.unwrap();
            assert!(filled.bytes >= PIECE_BYTES as u64 && filled.bytes + 2 * PIECE_BYTES as u64 >= bytes);
            assert!(serde_json::from_slice::<ToHost>(&filler(bytes).next().unwrap()).is_err());
        }
    }

    #[test]
    fn lines_between_hosts_round_trip() {
        let terms = Terms { via: Via::Tcp, mode: Mode::Fair, limit_bits_per_s: Some(2e6) };
        for said in [
            ToHost::Clock(7),
            ToHost::Fill(9),
            ToHost::Meet { peer: 1, round: 2, terms, port: 7 },
            ToHost::Reach { peer: 1, round: 2, ticket: "grebea".to_owned() },
            ToHost::Join { peer: 1, round: 2, is_ours: true, is_kept: true, links: vec![(0, 1), (3, 0)] },
            ToHost::Part(1),
            ToHost::Away(1),
            ToHost::FillPeer { peer: 1, bytes: 9 },
            ToHost::Lost(1),
            ToHost::Build,
            ToHost::Stop,
            ToHost::End,
            ToHost::Here,
        ] {
            assert_eq!(serde_json::from_slice::<ToHost>(&words(&said)).unwrap(), said);
        }
        let stage = StageSnapshot {
            name: "adc".to_owned(),
            frames_out: 7,
            own: vec![("lost_frames".into(), 3), ("clients".into(), 2)],
            own_gauges: vec!["clients".into()],
            ..StageSnapshot::default()
        };
        let counts = Snapshot { at_ns: 5, stages: vec![stage], queues: Vec::new() };
        let failed = Some(Failed { why: "adc: the disk is full".to_owned(), status: 5 });
        let said = words(&ToCoordinator::Ended { counts, failed });
        let Ok(ToCoordinator::Ended { counts, failed: Some(failed) }) = serde_json::from_slice(&said) else {
            panic!("{}", String::from_utf8_lossy(&said))
        };
        assert_eq!((counts.stages[0].own("lost_frames"), failed.status), (Some(3), 5));
        assert_eq!(counts.stages[0].own_gauges, ["clients"]);
    }
}
