//! Streams in shared memory of this user's processes.

use super::bridge::{Bridge, Device};

pub(super) fn list() -> Bridge {
    let found = grebe_shm::streams(None).map_err(|error| error.to_string());
    let device = |name: String| Device { uri: format!("shm://{name}"), about: String::new() };
    Bridge::of("streams in shared memory", found.map(|names| names.into_iter().map(device).collect()))
}
