use std::path::PathBuf;

/// An error about a lab or a stream in it. The message names the item, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what the fields of its variant are")]
pub enum Error {
    /// The build lacks the feature `zenoh`.
    #[error(
        "this grebe was built without Zenoh, which names of streams and zenoh:// need: build it with cargo build --release --features zenoh"
    )]
    NotBuilt,
    /// A configuration that Zenoh does not take.
    #[error("cannot use {} as a configuration of Zenoh: {why}", path.display())]
    Config { path: PathBuf, why: String },
    /// A router's address that is none.
    #[error("'{router}' is not a router: write tcp/HOST:7447, or tls/HOST:7447")]
    Router { router: String },
    /// Nobody answers, or nobody lets us in.
    #[error("cannot join the lab by {reach}: {why}")]
    Join { reach: String, why: String },
    /// Two streams cannot have one name.
    #[error("{name} is announced already, by {by}: choose another name")]
    Taken { name: String, by: String },
    /// Access control drops what this process says, and says nothing.
    #[error(
        "{what} is not seen by others: the access control at {reach} does not let this user {may}; docs/many-hosts.md has rules that do"
    )]
    Unseen { what: String, reach: String, may: &'static str },
    /// Zenoh refused something.
    #[error("cannot {action}: {why}")]
    Zenoh { action: String, why: String },
}
