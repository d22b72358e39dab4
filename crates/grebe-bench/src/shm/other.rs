use crate::error::Result;

/// Another program's shared memory, measured in turn with ours: the same frames, chunks, checks and queue lengths.
pub trait Other: Send + Sync {
    /// What it is called in results.
    fn name(&self) -> &'static str;

    /// Offers the stream, in the producer's process and before a consumer starts.
    ///
    /// # Errors
    /// What the program says.
    fn producer(&self, stream: &OtherStream) -> Result<Box<dyn ChunkSender>>;

    /// Reads the stream, in a consumer's process: hands each chunk to `take`, which says whether the stream has ended.
    ///
    /// # Errors
    /// What the program says.
    fn consume(&self, stream: &OtherStream, take: &mut dyn FnMut(&[u8]) -> bool) -> Result<()>;
}

/// The producer of another program's stream.
pub trait ChunkSender {
    /// Waits until so many consumers are there.
    ///
    /// # Errors
    /// Where they do not come.
    fn wait_for(&mut self, consumers: usize) -> Result<()>;

    /// Sends a chunk of so many bytes, all of which `fill` writes.
    ///
    /// # Errors
    /// What the program says.
    fn send(&mut self, bytes: usize, fill: &mut dyn FnMut(&mut [u8])) -> Result<()>;
}

/// A stream as another program is told it.
#[derive(Debug, Clone)]
pub struct OtherStream {
    /// A name that no other stream has.
    pub name: String,
    /// Bytes of a chunk, at most.
    pub chunk_bytes: usize,
    /// Chunks that may wait for a consumer.
    pub queue_chunks: usize,
    /// Whether the stream has a rate: then the oldest chunk makes room, else the producer waits.
    pub has_rate: bool,
}
