//! What a name says of a stream in shared memory: `shm://adc?readers=2`.

use grebe_flow::SizeBytes;

use grebe_process::query::{Pairs, Query};

/// A stream in shared memory, and what either end may add: `shm://NAME?policy=drop_latest` for who reads it,
/// `shm://NAME?readers=2&wait=2&block=no` for who makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShmName {
    /// The stream.
    pub name: String,
    /// `policy=`: what happens when this reader is too slow; `None`: what whoever opens the stream chose.
    pub policy: Option<grebe_shm::Policy>,
    /// `wait=`: the stream begins once so many processes read it.
    pub wait_consumers: u16,
    /// `block=no`: no reader may make the stream wait.
    pub allow_block: bool,
    /// `readers=`: how many may read it at a time, who share its memory out among them; `None`: 4.
    pub readers_max: Option<u16>,
    /// `memory=`: bytes of samples that it holds, 16 MiB to 16 GiB: for how long a reader may stall; `None`: 256 MiB.
    pub memory_bytes: Option<u64>,
}

impl ShmName {
    /// How the stream is to be made, with frames of at most so many bytes.
    pub(crate) fn publisher_options(&self, frame_bytes_max: Option<usize>) -> grebe_shm::PublisherOptions {
        let options = grebe_shm::PublisherOptions::default();
        let options = grebe_shm::PublisherOptions {
            allow_block: self.allow_block,
            consumers_max: self.readers_max.map_or(options.consumers_max, usize::from),
            chunks: self.memory_bytes.map_or(options.chunks, |bytes| bytes as usize / options.chunk_bytes),
            ..options
        };
        match frame_bytes_max {
            Some(bytes) if bytes > options.chunk_bytes => of_large_chunks(options, bytes),
            _ => options,
        }
    }

    /// Reads what stands behind `shm://`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (name, mut query) = Query::split(text)?;
        let name = name.strip_suffix('/').unwrap_or(name).to_owned();
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.len() > 64
            || !name.starts_with(|c: char| c.is_ascii_alphanumeric())
            || !name.chars().all(good)
        {
            return Err("needs a name of 1 to 64 letters, digits, '-', '_' and '.': shm://adc".to_owned());
        }
        let shm = Self {
            name,
            policy: query.parsed("policy")?,
            readers_max: query.whole("readers", 1..=64)?,
            memory_bytes: query.value("memory", "16M to 16G, for example 1G", |value| {
                let bytes = value.parse::<SizeBytes>().ok().map(|bytes| bytes.0 as u64);
                bytes.filter(|bytes| SHM_BYTES.contains(bytes))
            })?,
            wait_consumers: query
                .value("wait", "a number of readers", |value| value.parse().ok())?
                .unwrap_or(0),
            allow_block: query.yes_or_no("block")?.unwrap_or(true),
        };
        query.end()?;
        let readers_max = shm.publisher_options(None).consumers_max;
        if usize::from(shm.wait_consumers) > readers_max {
            let wanted = shm.wait_consumers;
            return Err(format!(
                "waits for {wanted} readers and lets {readers_max} in: add readers={wanted}"
            ));
        }
        Ok(shm)
    }

    /// The pairs of the name.
    pub(super) fn pairs(&self) -> Pairs {
        Pairs::default()
            .add("policy", self.policy)
            .add("readers", self.readers_max)
            .add("memory", self.memory_bytes)
            .add("wait", Some(self.wait_consumers).filter(|&readers| readers > 0))
            .add("block", (!self.allow_block).then_some("no"))
    }
}

/// Chunks that hold a frame of so many bytes: as much memory as ever, or as much more as a few of them for everybody take.
fn of_large_chunks(options: grebe_shm::PublisherOptions, bytes: usize) -> grebe_shm::PublisherOptions {
    let memory_bytes = options.chunks * options.chunk_bytes;
    // More than can be is refused where the stream is made.
    let chunk_bytes = bytes.checked_next_multiple_of(64).unwrap_or(usize::MAX);
    let options = grebe_shm::PublisherOptions { chunk_bytes, reserve_chunks: CHUNKS_IN_HAND, ..options };
    let own = options.reserve_chunks + options.resting_chunks();
    let chunks = (memory_bytes / chunk_bytes).max(own + CHUNKS_A_READER * options.consumers_max);
    grebe_shm::PublisherOptions { chunks, ..options }
}

/// What `memory=` may be.
const SHM_BYTES: std::ops::RangeInclusive<u64> = 16 << 20..=16 << 30;

/// Large chunks that a producer fills, and that wait to be lent.
const CHUNKS_IN_HAND: usize = 6;
/// Large chunks that a reader has at least: one that it reads, and others that wait.
const CHUNKS_A_READER: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_is_cut_into_chunks_that_hold_the_largest_frame() {
        let shm = ShmName::parse("a?readers=3").unwrap();
        let usual = shm.publisher_options(None);
        let memory_bytes = usual.chunk_bytes * usual.chunks;
        assert_eq!((usual.chunk_bytes, usual.consumers_max), (256 << 10, 3));
        assert_eq!(shm.publisher_options(Some(256 << 10)).chunks, usual.chunks);
        for memory_bytes in [16 << 20, 1 << 30, 16 << 30] {
            let shm = ShmName { memory_bytes: Some(memory_bytes), readers_max: Some(64), ..shm.clone() };
            let options = shm.publisher_options(None);
            assert_eq!(options.chunks as u64 * options.chunk_bytes as u64, memory_bytes);
            assert!(options.chunks > options.reserve_chunks + options.resting_chunks());
        }
        for frame_bytes in [500_001_usize, (4 << 20) + 64, 64 << 20] {
            let large = shm.publisher_options(Some(frame_bytes));
            assert_eq!(large.chunk_bytes, frame_bytes.next_multiple_of(64));
            assert!((1..=usual.resting_chunks()).contains(&large.resting_chunks()));
            assert!(large.reserve_chunks > 5, "for the producer itself");
            let own = large.reserve_chunks + large.resting_chunks();
            assert!(large.chunks >= own + 3 * CHUNKS_A_READER, "a few for everybody");
            assert!(large.chunks * large.chunk_bytes > memory_bytes - large.chunk_bytes, "no less than ever");
        }
    }
}
