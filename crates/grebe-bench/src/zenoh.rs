//! Streams over Zenoh, beside programs that use Zenoh itself as its own `z_pub_thr`, `z_sub_thr`, `z_ping` and `z_pong` do: the same
//! version, configuration and size of a message, in turns.
//!
//! Each end is a process. Ours are graphs with the source and the sink of `zenoh://`, as every command has them.

#[cfg(feature = "zenoh")]
mod baseline;
mod options;
#[cfg(feature = "zenoh")]
mod ours;
#[cfg(feature = "zenoh")]
mod run;
#[cfg(feature = "zenoh")]
mod seen;

#[cfg(not(feature = "zenoh"))]
use self::without as imp;
#[cfg(feature = "zenoh")]
use run as imp;

pub(crate) use imp::peer;
pub use imp::run;
pub(crate) use options::ZenohTask;
pub use options::{Options, Part};

/// Where the feature `zenoh` was left out.
#[cfg(not(feature = "zenoh"))]
mod without {
    use super::options::{Options, ZenohTask};
    use crate::error::Result;
    use crate::row::Tell;

    /// # Errors
    /// Always: this was built without Zenoh.
    pub fn run(_: &Options, _: Tell) -> Result<()> {
        Err(grebe_zenoh::Error::NotBuilt.into())
    }

    pub(crate) fn peer(_: ZenohTask) -> Result<()> {
        Err(grebe_zenoh::Error::NotBuilt.into())
    }
}
