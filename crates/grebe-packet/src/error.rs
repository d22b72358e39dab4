/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// Error in a packet, a ticket or a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Malformed bytes, which no peer of the protocol sends.
    #[error("not a packet of this protocol: {what}")]
    Malformed {
        /// The fault.
        what: &'static str,
    },
    /// Invalid ticket, or one for another purpose. Never quotes the word, because it is a secret.
    #[error(
        "not a ticket: {what}; a ticket is one word of 100 letters and digits or more, which begins with grebe: copy it whole"
    )]
    Ticket {
        /// The fault.
        what: &'static str,
    },
    /// Invalid host name.
    #[error("not the name or address of a host: {what}")]
    Address {
        /// The fault.
        what: &'static str,
    },
    /// The system has no random numbers.
    #[error("cannot make a key: {0}")]
    Random(#[from] getrandom::Error),
}
