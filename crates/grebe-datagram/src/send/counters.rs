/// What a sender has done since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SendCounters {
    /// Datagrams that the kernel took.
    pub datagrams: u64,
    /// Their bytes, without headers of UDP and below.
    pub bytes: u64,
    /// Kernel buffers they were in; with GSO fewer than datagrams.
    pub messages: u64,
    /// System calls that sent.
    pub syscalls: u64,
    /// Datagrams that were copied in user space.
    pub copies: u64,
    /// Times the kernel had no room and was waited for.
    pub backoffs: u64,
    /// Times a message that GSO could not send was sent again as plain datagrams.
    pub gso_fallbacks: u64,
    /// Times the peer's host said that nobody listens.
    pub refused: u64,
    /// Datagrams that were pushed and never sent, because of an error.
    pub unsent: u64,
}
