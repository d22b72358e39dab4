//! What only the source knows about a stream.

/// Losses and names that cannot be seen in the frames. Whoever opens the source fills it in; what is unknown stays `None`
/// and is not shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceStatus {
    /// The source as the person named it: `udp://:5000`.
    pub name: String,
    /// Whether the producer's clock is this machine's, since the same boot: latency is then absolute.
    pub is_same_boot: bool,
    /// What is missing where the stream comes in from the network.
    pub network: Option<Loss>,
    /// What this reader of shared memory was too late for; `network` is `None` then.
    pub shared_memory: Option<Loss>,
    /// Datagrams the kernel dropped for want of buffer; they are missing in `network` too.
    pub kernel_datagrams: Option<u64>,
    /// What the queue before the scope dropped while the scope was busy.
    pub queue: Option<Loss>,
    /// Datagrams that were no frames.
    pub refused_datagrams: u64,
    /// One line to be shown as long as it is set: a clamped buffer, a source that is being reopened.
    pub notice: Option<String>,
}

/// What was lost in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Loss {
    /// Frames.
    pub frames: u64,
    /// Samples per channel.
    pub samples: u64,
}
