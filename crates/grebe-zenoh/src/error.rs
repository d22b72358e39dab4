use std::path::PathBuf;

/// An error about a lab or a stream in it. The message names the item, and a remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what the fields of its variant are")]
pub enum Error {
    /// The build lacks the feature `zenoh`.
    #[error(
        "this grebe was built without Zenoh, which names of streams and zenoh:// need: build it with cargo build --release --features zenoh"
    )]
    NotBuilt,
    /// A configuration that Zenoh refuses.
    #[error("cannot use {} as a configuration of Zenoh: {why}", path.display())]
    Config { path: PathBuf, why: String },
    /// An invalid address of a router.
    #[error("'{router}' is not a router: write tcp/HOST:7447, or tls/HOST:7447")]
    Router { router: String },
    /// No router answers, or none accepts this process.
    #[error("cannot join the lab by {reach}: {why}")]
    Join { reach: String, why: String },
    /// Two streams with one name.
    #[error("{name} is announced already, by {by}: choose another name")]
    Taken { name: String, by: String },
    /// Access control silently drops messages of this process.
    #[error(
        "others cannot see {what}: the access control at {reach} does not let this user {may}; docs/zenoh-router.md has suitable rules"
    )]
    Unseen { what: String, reach: String, may: &'static str },
    /// An error of Zenoh.
    #[error("cannot {action}: {why}")]
    Zenoh { action: String, why: String },
}
