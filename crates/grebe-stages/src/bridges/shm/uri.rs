//! Options of a stream in shared memory: `shm://adc?readers=2`.

use grebe_flow::SizeBytes;

use grebe_process::query::{Pairs, Query};

/// A stream in shared memory, with the options of either end: `shm://NAME?policy=drop_latest` for a reader,
/// `shm://NAME?readers=2&wait=2&block=no` for a producer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShmName {
    /// Name of the stream.
    pub name: String,
    /// `policy=`: the queue policy of this reader. `None`: the choice of the code that opens the stream.
    pub policy: Option<grebe_shm::Policy>,
    /// `wait=`: the stream starts after this many readers have joined.
    pub wait_consumers: u16,
    /// `block=no`: no reader may block the stream.
    pub allow_block: bool,
    /// `readers=`: maximum readers at a time, which share the memory. `None`: 4.
    pub readers_max: Option<u16>,
    /// `memory=`: bytes of samples, 16 MiB to 16 GiB, which limit the time that a reader may stall. `None`: 256 MiB.
    pub memory_bytes: Option<u64>,
}

impl ShmName {
    /// Options of the publisher, for frames of at most `frame_bytes_max`.
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

    /// Parses the part after `shm://`.
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

/// Chunks large enough for a frame of `bytes`. The memory stays the same, or grows so that every reader has a few
/// chunks.
fn of_large_chunks(options: grebe_shm::PublisherOptions, bytes: usize) -> grebe_shm::PublisherOptions {
    let memory_bytes = options.chunks * options.chunk_bytes;
    // The publisher refuses excessive values.
    let chunk_bytes = bytes.checked_next_multiple_of(64).unwrap_or(usize::MAX);
    let options = grebe_shm::PublisherOptions { chunk_bytes, reserve_chunks: CHUNKS_IN_HAND, ..options };
    let own = options.reserve_chunks + options.resting_chunks();
    let chunks = (memory_bytes / chunk_bytes).max(own + CHUNKS_A_READER * options.consumers_max);
    grebe_shm::PublisherOptions { chunks, ..options }
}

/// Range of `memory=`.
const SHM_BYTES: std::ops::RangeInclusive<u64> = 16 << 20..=16 << 30;

/// Large chunks that the producer fills, or that wait for a reader.
const CHUNKS_IN_HAND: usize = 6;
/// Minimum large chunks per reader: one in use, the others waiting.
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
