//! Serial ports and permissions. The check opens none, because that resets boards.

#[cfg(target_os = "linux")]
use grebe_stages::serial_ports;

use super::check::Check;

#[cfg(target_os = "linux")]
pub(super) fn checks() -> Vec<Check> {
    use rustix::fs::{Access, access};

    let ports = serial_ports();
    let path = |uri: &str| uri.trim_start_matches("serial://").to_owned();
    let refused: Vec<String> = ports
        .iter()
        .map(|port| path(&port.uri))
        .filter(|path| access(path.as_str(), Access::READ_OK | Access::WRITE_OK).is_err())
        .collect();
    let found: Vec<String> = ports
        .iter()
        .map(|port| match port.what.as_str() {
            "" => path(&port.uri),
            what => format!("{} ({what})", path(&port.uri)),
        })
        .collect();
    vec![match (found.as_slice(), refused.as_slice()) {
        ([], _) => Check::ok(AREA, NAME, "none"),
        (_, []) => Check::ok(AREA, NAME, found.join(", ")),
        _ => Check::limited(
            AREA,
            NAME,
            found.join(", "),
            &format!("{} cannot be opened by this user", refused.join(", ")),
        )
        .fixed_by("sudo usermod -aG dialout $USER"),
    }]
}

#[cfg(not(target_os = "linux"))]
pub(super) fn checks() -> Vec<Check> {
    let costs = if cfg!(unix) { "name them: serial:///dev/cu.usbmodem1" } else { "serial: cannot be used" };
    let found = if cfg!(unix) { "not listed here" } else { "only on Linux and macOS" };
    vec![Check::limited(AREA, NAME, found, costs)]
}

const AREA: &str = "devices";
const NAME: &str = "serial ports";
