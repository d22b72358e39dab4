//! State that only the source knows, and the place where each gap was lost.

use std::collections::VecDeque;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::data::picture::GapMark;

/// Losses and names that frames do not show. The owner of the source fills it in. Unknown fields stay `None` and are
/// not shown.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceStatus {
    /// The source as the person named it: `udp://:5000`.
    pub name: String,
    /// Whether the producer uses this host's clock, since the same boot. Latency is then absolute.
    pub is_same_boot: bool,
    /// Loss on the network, at the input of the stream.
    pub network: Option<Loss>,
    /// Loss because this reader of shared memory was too slow; `network` is then `None`.
    pub shared_memory: Option<Loss>,
    /// Datagrams that the kernel dropped because its buffer was full. `network` includes them.
    pub kernel_datagrams: Option<u64>,
    /// Loss in the queue before the scope.
    pub queue: Option<Loss>,
    /// Datagrams that are not frames.
    pub refused_datagrams: u64,
    /// Datagrams from another sender to the same port, which the source ignores.
    pub foreign_datagrams: u64,
    /// Sender of the last ignored datagram, if known.
    pub second_sender: Option<SocketAddr>,
    /// How to send a signal: one line, shown until data comes.
    pub advice: Option<String>,
    /// Whether it is a recording: its losses happened before it was made.
    pub is_recording: bool,
    /// Whether its recorder still runs, so that new samples appear.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_being_recorded: bool,
    /// One line to show while it is set: a clamped buffer, a source that reopens.
    pub notice: Option<String>,
}

/// Loss in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Loss {
    /// Frames.
    pub frames: u64,
    /// Samples per channel.
    pub samples: u64,
}

/// Assigns each gap to a place, by the source's counters that grew.
#[derive(Debug, Default)]
pub(crate) struct GapPlaces {
    /// Last values: frames lost on the network, datagrams in the kernel, frames in shared memory and in the queue.
    seen: [u64; 4],
    /// Number of the first unassigned gap.
    next: u64,
    /// Gaps by number, each with the place of its loss.
    named: VecDeque<(u64, String)>,
}

impl GapPlaces {
    /// Reads the source's counters, and assigns the new gaps to those that grew.
    pub(crate) fn look(&mut self, gaps: &[GapMark], status: &SourceStatus) {
        let now = [
            status.network.map_or(0, |loss| loss.frames),
            status.kernel_datagrams.unwrap_or(0),
            status.shared_memory.map_or(0, |loss| loss.frames),
            status.queue.map_or(0, |loss| loss.frames),
        ];
        let [network, kernel, shared_memory, queue] =
            std::array::from_fn(|place| now[place] > self.seen[place]);
        // The network's count includes the kernel's drops, so the kernel takes precedence.
        let grown = [
            (kernel, "kernel"),
            (network && !kernel, "network"),
            (shared_memory, "shared memory"),
            (queue, "queue"),
        ];
        let grown: Vec<&str> = grown.iter().filter(|(has, _)| *has).map(|(_, name)| *name).collect();
        let new: Vec<&GapMark> = gaps.iter().filter(|gap| gap.number >= self.next).collect();
        let has_lost_frames = new.iter().any(|gap| gap.lost_frames > 0);
        // The counters may be a moment late: then the next call assigns the gap.
        let is_counted = [status.network, status.shared_memory, status.queue].iter().any(Option::is_some);
        if has_lost_frames && grown.is_empty() && is_counted {
            return;
        }
        for gap in new {
            let made = if status.is_recording { "missing in the recording" } else { "generator" };
            let lost = if grown.is_empty() { "on the way".to_owned() } else { grown.join(" + ") };
            let place = match (gap.generator_samples > 0, gap.lost_frames > 0) {
                (true, false) => made.to_owned(),
                (true, true) => format!("{made} + {lost}"),
                _ => lost,
            };
            self.named.push_back((gap.number, place));
            self.next = gap.number + 1;
        }
        let beyond = self.named.len().saturating_sub(NAMED_MAX);
        self.named.drain(..beyond);
        self.seen = now;
    }

    pub(crate) fn of(&self, gap: &GapMark) -> Option<&str> {
        self.named.iter().find(|(number, _)| *number == gap.number).map(|(_, place)| place.as_str())
    }
}

const NAMED_MAX: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(number: u64, generator_samples: u64, lost_frames: u64) -> GapMark {
        GapMark { number, start: number * 100, end: number * 100 + 10, generator_samples, lost_frames }
    }

    fn status(network: u64, kernel: u64, queue: u64) -> SourceStatus {
        let loss = |frames| Some(Loss { frames, samples: frames * 10 });
        SourceStatus {
            network: loss(network),
            kernel_datagrams: Some(kernel),
            queue: loss(queue),
            ..SourceStatus::default()
        }
    }

    #[test]
    fn a_gap_is_named_by_the_counter_that_grew_with_it() {
        let mut places = GapPlaces::default();
        let mut gaps = Vec::new();
        for (number, status, generator, lost, expected) in [
            (0, status(0, 0, 0), 5, 0, "generator"),
            (1, status(2, 0, 0), 0, 2, "network"),
            (2, status(4, 2, 0), 0, 2, "kernel"),
            (3, status(4, 2, 1), 0, 1, "queue"),
            (4, status(5, 2, 2), 7, 2, "generator + network + queue"),
        ] {
            gaps.push(gap(number, generator, lost));
            places.look(&gaps, &status);
            assert_eq!(places.of(&gaps[number as usize]), Some(expected));
        }
        assert_eq!(places.of(&gaps[1]), Some("network"), "a name stays");
    }

    #[test]
    fn a_reader_of_shared_memory_was_not_on_a_network() {
        let status = SourceStatus {
            shared_memory: Some(Loss { frames: 4, samples: 40 }),
            queue: Some(Loss::default()),
            ..SourceStatus::default()
        };
        let (mut places, gaps) = (GapPlaces::default(), [gap(0, 0, 4)]);
        places.look(&gaps, &status);
        assert_eq!(places.of(&gaps[0]), Some("shared memory"));
    }

    #[test]
    fn a_counter_that_is_late_names_the_gap_at_the_next_look() {
        let (mut places, gaps) = (GapPlaces::default(), [gap(0, 0, 3)]);
        places.look(&gaps, &status(0, 0, 0));
        assert_eq!(places.of(&gaps[0]), None);
        places.look(&gaps, &status(0, 0, 3));
        assert_eq!(places.of(&gaps[0]), Some("queue"));
        let unknown = [gap(0, 0, 3)];
        let mut places = GapPlaces::default();
        places.look(&unknown, &SourceStatus::default());
        assert_eq!(places.of(&unknown[0]), Some("on the way"));
    }
}
