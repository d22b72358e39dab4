//! Libraries for devices, which are loaded on first use.

use grebe_stages::{IS_STATIC, SoapyLibrary, soapy_library, sound_devices, sound_library};

use super::check::{self, Check};

const AREA: &str = "devices";
/// The command that installs libraries; none for a static build, which cannot load them.
fn installs(debian: &str, homebrew: &str) -> Option<String> {
    if IS_STATIC { None } else { check::installs(debian, homebrew) }
}

const NOT_FOUND: &str =
    if IS_STATIC { "not in a static build, which loads no libraries" } else { "not found" };

pub(super) fn checks() -> Vec<Check> {
    vec![soapy(), sound()]
}

fn soapy() -> Check {
    let name = "SoapySDR";
    match soapy_library() {
        Ok(SoapyLibrary { version, modules }) if modules.is_empty() => {
            let costs = "soapy: finds no radio, because each needs the module of its driver";
            Check::limited(AREA, name, format!("{version}, without modules"), costs)
                .fixed_if(installs("soapysdr0.8-module-all", ""))
        }
        Ok(SoapyLibrary { version, modules }) => {
            Check::ok(AREA, name, format!("{version}, with modules for {}", modules.join(", ")))
        }
        Err(_) => Check::missing(AREA, name, NOT_FOUND, "radios behind SoapySDR (soapy:) cannot be used")
            .fixed_if(installs("libsoapysdr0.8 soapysdr0.8-module-all", "soapysdr")),
    }
}

fn sound() -> Check {
    match sound_library() {
        Ok(version) if sound_devices().is_empty() => Check::limited(
            AREA,
            SOUND,
            format!("{version}, which names no device"),
            "audio: finds nothing to open",
        ),
        Ok(version) => Check::ok(AREA, SOUND, version),
        Err(_) if cfg!(target_os = "linux") => {
            Check::missing(AREA, SOUND, NOT_FOUND, "sound devices (audio:) cannot be used")
                .fixed_if(installs("libasound2", ""))
        }
        Err(error) => Check::missing(AREA, SOUND, error.to_string(), "sound devices (audio:) cannot be used"),
    }
}

/// The sound of this system.
const SOUND: &str = if cfg!(windows) {
    "WASAPI"
} else if cfg!(target_os = "macos") {
    "CoreAudio"
} else {
    "ALSA"
};
