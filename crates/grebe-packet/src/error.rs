/// What this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// What can be wrong with a packet, a ticket or a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Bytes that no peer of the protocol sends.
    #[error("not a packet of this protocol: {what}")]
    Malformed {
        /// What is wrong with them.
        what: &'static str,
    },
    /// A word that is no ticket, or not for this. Never quotes the word, which is a secret.
    #[error(
        "not a ticket: {what}; a ticket is one word of 100 letters and digits or more, which begins with grebe: copy it whole"
    )]
    Ticket {
        /// What is wrong with it.
        what: &'static str,
    },
    /// Text that cannot name a host.
    #[error("not the name or address of a host: {what}")]
    Address {
        /// What is wrong with it.
        what: &'static str,
    },
    /// The system has no random numbers.
    #[error("cannot make a key: {0}")]
    Random(#[from] getrandom::Error),
}
