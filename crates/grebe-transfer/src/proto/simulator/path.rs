//! The emulated path: a bottleneck, a delay and losses each way.

/// One direction of a path: a bottleneck with a queue, then a delay.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// Bits a second; 0: no limit.
    pub rate_bits_per_s: f64,
    /// Propagation delay of this direction.
    pub delay_us: u64,
    /// Each packet is late by up to this much, evenly distributed: packets overtake each other.
    pub jitter_us: u64,
    /// Bytes that the bottleneck's queue holds.
    pub queue_bytes: u64,
    /// The share of packets that is lost, 0 to 1.
    pub loss: f64,
    /// Losses come in runs of so many packets, with the same share.
    pub burst: u32,
    /// The share of packets that comes twice.
    pub duplicates: f64,
    /// Datagrams longer than this are lost, in bytes of UDP payload.
    pub datagram_bytes_max: usize,
}

/// Both directions of a path, and how they change.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Path {
    /// From the sender to the receiver.
    pub forward: Link,
    /// From the receiver to the sender.
    pub back: Link,
    /// From these times on, in ascending order, the path is another.
    pub changes: Vec<(u64, Link, Link)>,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            rate_bits_per_s: 0.0,
            delay_us: 0,
            jitter_us: 0,
            queue_bytes: 1 << 20,
            loss: 0.0,
            burst: 1,
            duplicates: 0.0,
            datagram_bytes_max: 1_472,
        }
    }
}

impl Path {
    /// The same link both ways, with the loss on the forward one only.
    pub fn symmetric(link: Link) -> Self {
        Self { back: Link { loss: 0.0, ..link.clone() }, forward: link, changes: Vec::new() }
    }
}
