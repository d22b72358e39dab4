//! Sound devices.

use grebe_stages::{sound_devices, sound_library};

use super::bridge::{Bridge, Device};

pub(super) fn list() -> Bridge {
    let found = sound_library().map_err(|error| {
        if cfg!(target_os = "linux") {
            format!("cannot load the ALSA library: {error}")
        } else {
            error.to_string()
        }
    });
    let devices = || sound_devices().into_iter().map(|it| Device { uri: it.uri, about: it.what }).collect();
    Bridge::of("sound devices", found.map(|_| devices()))
}
