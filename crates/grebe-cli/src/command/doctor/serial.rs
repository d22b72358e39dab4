//! Serial ports and permissions. The check opens none, because that resets boards.

use grebe_stages::serial_ports;

use super::check::Check;

pub(super) fn checks() -> Vec<Check> {
    let ports = serial_ports();
    let found: Vec<String> = ports
        .iter()
        .map(|port| match port.what.as_str() {
            "" => path(&port.uri).to_owned(),
            what => format!("{} ({what})", path(&port.uri)),
        })
        .collect();
    let refused: Vec<&str> =
        ports.iter().map(|port| path(&port.uri)).filter(|path| is_refused(path)).collect();
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

fn path(uri: &str) -> &str {
    uri.trim_start_matches("serial://")
}

/// Whether this user must not open it. Only Linux has permissions for serial ports.
#[cfg(target_os = "linux")]
fn is_refused(path: &str) -> bool {
    use rustix::fs::{Access, access};
    access(path, Access::READ_OK | Access::WRITE_OK).is_err()
}

#[cfg(not(target_os = "linux"))]
fn is_refused(_: &str) -> bool {
    false
}

const AREA: &str = "devices";
const NAME: &str = "serial ports";
