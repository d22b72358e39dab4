//! What the two ends of a graph tell each other: the first line in JSON through `ssh`, and then words between the samples.
//!
//! ```text
//!  this end                             the end that ssh started
//!    Hello       ==first line==>          its part of the graph, and which ways there are for the samples
//!                <=its first line= Ready  it is a graph there, too
//!    Meet, Reach, Join                    which other hosts it goes to directly: see `peers`
//!    Build       ==>            Built     its stages are open
//!    Start       ==>            Counts    four times a second
//!    Stop, End   ==>            Ended     with the last counters
//! ```
//!
//! Each says something several times within [`SILENT_FOR`]: where nothing comes, the way is cut, or the other end stands still.

use std::time::{Duration, Instant};

use grebe_flow::Snapshot;
use grebe_frame::ClockReading;
use grebe_remote::{Call, Route, Terms};
use serde::{Deserialize, Serialize};

/// A part of a graph. Its protocol changes with what these lines mean, and with what passes over a link.
pub(super) const JOINS: Call = Call {
    arguments: "run --serve",
    protocol: 3,
    does: "joins graphs",
    instead: "bring this one along: --bootstrap",
    can_bootstrap: true,
};

/// What the other end is to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct PartTask {
    /// What the graph is called, for those who look on there.
    pub(super) name: String,
    /// Its part of the graph, as a file.
    pub(super) part: String,
    /// It will be started again where it fails.
    pub(super) restarts: bool,
    /// It takes the place of one that is gone: for each link, the last era that began.
    pub(super) again: Option<Vec<(u16, u32)>>,
}

/// What the end that was asked to run the graph says. A `peer` is another host of the graph, by the number of its part; a `round` is the
/// how-many-eth time that the two look for each other, so that what is said of one before is of no interest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ToThere {
    /// Say what the clock shows; the number comes back.
    Clock(u64),
    /// Send so many bytes that mean nothing.
    Fill(u64),
    /// Wait for a peer, at this port if it is free. A direct way to it that there was is over: its links go through the process that runs the
    /// graph, and wait until they are joined.
    Meet {
        peer: u16,
        round: u32,
        terms: Terms,
        port: u16,
    },
    /// Go to a peer, which waits with this ticket.
    Reach {
        peer: u16,
        round: u32,
        ticket: String,
    },
    /// These links go directly to or from a peer: over the connection that this host has made, or the one that the peer has. Each begins an
    /// era there, but for the one (0) that the graph starts with.
    Join {
        peer: u16,
        round: u32,
        is_ours: bool,
        /// They are joined anew where that breaks: until then they stay.
        is_kept: bool,
        links: Vec<(u16, u32)>,
    },
    /// No link goes directly to a peer, which is looked for no more.
    Part(u16),
    /// A peer is gone, and may come back: what is sent there waits.
    Away(u16),
    /// Send so many bytes that mean nothing to a peer.
    FillPeer {
        peer: u16,
        bytes: u64,
    },
    /// A peer is gone for good, or the way to it.
    Lost(u16),
    /// Open everything.
    Build,
    Start,
    /// End the sources, and go on with what is under way.
    Stop,
    /// End everything soon.
    End,
    /// Nothing is to be done.
    Here,
}

/// What the other end says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ToHere {
    /// What a person should know.
    Note(String),
    /// Which question this answers, and what the clock showed then.
    Clock(u64, ClockReading),
    /// So many bytes that mean nothing came within so many nanoseconds.
    Filled(Filled),
    /// It waits for a peer, which needs this to come; `None`: it cannot wait. Nothing of this host passes over a direct way that there was.
    Ticket {
        peer: u16,
        round: u32,
        ticket: Option<String>,
    },
    /// It has reached a peer (`is_ours`) or was reached by it, so; `None`: it was not.
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
    /// Why nothing passes any more between it and a peer.
    Broke {
        peer: u16,
        round: u32,
        why: String,
    },
    /// Nothing comes over the way from a peer, not even that it is there, or something comes again.
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

/// Why it could not, and the exit status of that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Failed {
    pub(super) why: String,
    pub(super) status: u8,
}

/// Bytes that mean nothing, and how long they took to come: from the first piece to the last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Filled {
    pub(super) bytes: u64,
    pub(super) ns: u64,
}

/// Pieces that mean nothing, as words for the other end; the last one says so.
pub(super) fn filler(bytes: u64) -> impl Iterator<Item = Vec<u8>> {
    let pieces = bytes.div_ceil(PIECE_BYTES as u64).max(2);
    let mut noise = 0x9e37_79b9_7f4a_7c15u64;
    (1..=pieces).map(move |piece| {
        let mut words = vec![FILLER, u8::from(piece == pieces)];
        while words.len() < PIECE_BYTES {
            // No `ssh` makes it shorter.
            noise ^= noise << 13;
            noise ^= noise >> 7;
            noise ^= noise << 17;
            words.extend(noise.to_le_bytes());
        }
        words
    })
}

/// Measures pieces that mean nothing as they come.
#[derive(Debug, Default)]
pub(super) struct FillMeter {
    began: Option<Instant>,
    bytes: u64,
}

impl FillMeter {
    /// Whether the words mean nothing, and then what has come, once all has.
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

/// As it passes between samples. Nothing in it can fail to be JSON.
pub(super) fn words(of: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(of).unwrap_or_default()
}

/// The exit status where another host is gone.
pub(super) const GONE: u8 = 3;
/// More is not asked for at once.
pub(super) const FILL_BYTES_MAX: u64 = 64 << 20;
/// No JSON begins so.
const FILLER: u8 = 0xff;
const PIECE_BYTES: usize = 16 << 10;
/// A host that says nothing for so long is gone.
pub(super) const SILENT_FOR: Duration = Duration::from_secs(30);
/// Where nothing at all has come over a direct way for so long, a person is told, and links are joined anew where they are kept. That is six times
/// [`ALIVE_EVERY`], and each is confirmed, so that a path may lose half of its packets. It is no slow consumer: readers and the connection's thread
/// wait for no stage. It is no busy machine: a thread that shares two processors with eight others waits for tenths of a second. And it is no short
/// interruption: TCP repeats what was lost after 0.2, 0.6 and 1.4 s, and is heard again in time.
pub(super) const DEAD_AFTER: Duration = Duration::from_millis(2_500);
/// How often a host says over a direct way that it is there.
pub(super) const ALIVE_EVERY: Duration = Duration::from_millis(400);
/// How often the end that was asked to run the graph says that it is there; the others count four times a second.
pub(super) const HERE_EVERY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use grebe_connection::Mode;
    use grebe_flow::StageSnapshot;
    use grebe_remote::Via;

    use super::*;

    #[test]
    fn what_means_nothing_is_measured_from_its_first_piece_on() {
        let mut meter = FillMeter::default();
        assert_eq!(meter.take(&words(&ToThere::Build)), None);
        for bytes in [1, 100_000] {
            let told: Vec<_> = filler(bytes).map(|words| meter.take(&words).unwrap()).collect();
            let (last, before) = told.split_last().unwrap();
            assert!(before.iter().all(Option::is_none) && !before.is_empty());
            let filled = last.unwrap();
            assert!(filled.bytes >= PIECE_BYTES as u64 && filled.bytes + 2 * PIECE_BYTES as u64 >= bytes);
            assert!(serde_json::from_slice::<ToThere>(&filler(bytes).next().unwrap()).is_err());
        }
    }

    #[test]
    fn what_is_said_is_understood() {
        let terms = Terms { via: Via::Tcp, mode: Mode::Fair, limit_bits_per_s: Some(2e6) };
        for said in [
            ToThere::Clock(7),
            ToThere::Fill(9),
            ToThere::Meet { peer: 1, round: 2, terms, port: 7 },
            ToThere::Reach { peer: 1, round: 2, ticket: "grebea".to_owned() },
            ToThere::Join { peer: 1, round: 2, is_ours: true, is_kept: true, links: vec![(0, 1), (3, 0)] },
            ToThere::Part(1),
            ToThere::Away(1),
            ToThere::FillPeer { peer: 1, bytes: 9 },
            ToThere::Lost(1),
            ToThere::Build,
            ToThere::Stop,
            ToThere::End,
            ToThere::Here,
        ] {
            assert_eq!(serde_json::from_slice::<ToThere>(&words(&said)).unwrap(), said);
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
        let said = words(&ToHere::Ended { counts, failed });
        let Ok(ToHere::Ended { counts, failed: Some(failed) }) = serde_json::from_slice(&said) else {
            panic!("{}", String::from_utf8_lossy(&said))
        };
        assert_eq!((counts.stages[0].own("lost_frames"), failed.status), (Some(3), 5));
        assert_eq!(counts.stages[0].own_gauges, ["clients"]);
    }
}
