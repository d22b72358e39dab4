//! Whether others see what this process announces: access control drops what it does not allow, and tells nobody.

use std::time::{Duration, Instant};

use zenoh::Wait;

use super::failure::failed;
use super::lab::Lab;
use super::watch::Watch;
use crate::error::Error;
use crate::name::StreamName;
use crate::options::Overflow;
use crate::what::HERE;

/// Checks through a second session of the same user that a router passes the announcement.
///
/// # Errors
/// The user lacks a permission, or cannot check.
pub(super) fn check(lab: &Lab, prefix: &'static str, stream: &str, data_key: &str) -> Result<(), Error> {
    if !lab.0.has_router {
        return Ok(());
    }
    let other = Lab::open(&lab.0.options)?;
    let unseen = |may| Error::Unseen { what: stream.to_owned(), reach: lab.reach().to_owned(), may };
    let until = Instant::now() + WITHIN;
    let watch = Watch::begin(&other, prefix, stream)?;
    while !watch.streams().iter().any(|(session, _)| *session == lab.id()) {
        let left = until.saturating_duration_since(Instant::now());
        if !watch.wait(watch.changes(), left.min(LOOK_EVERY)) && left.is_zero() {
            return Err(unseen(
                "announce it (liveliness_token), or not look for it (declare_liveliness_subscriber)",
            ));
        }
    }
    if prefix == HERE
        && let Ok(name) = stream.parse::<StreamName>()
        && other.what(&lab.id(), &name, WITHIN)?.is_none()
    {
        return Err(unseen("answer queries (declare_queryable, reply), or not query (query)"));
    }
    // A message without frames: readers pass it over.
    let receiver = other.receiver(data_key, Overflow::DropOldest)?;
    let until = Instant::now() + WITHIN;
    loop {
        lab.0.session.put(data_key, [0_u8; 0]).wait().map_err(failed(&format!("send to {data_key}")))?;
        if receiver.wait(LOOK_EVERY) {
            return Ok(());
        }
        if Instant::now() >= until {
            return Err(unseen("send its samples (put), or not receive them (declare_subscriber)"));
        }
    }
}

/// Timeout of a round trip through the router.
const WITHIN: Duration = Duration::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(50);
