//! Other programs that grebe can use.

use std::process::{Command, Stdio};

use super::Check;

const AREA: &str = "tools";

pub(super) fn checks() -> Vec<Check> {
    vec![ssh()]
}

fn ssh() -> Check {
    let asked = Command::new("ssh").arg("-V").stdin(Stdio::null()).output();
    match asked {
        Ok(output) if output.status.success() => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            Check::ok(AREA, "ssh", said.lines().next().unwrap_or("there").trim().to_owned())
        }
        _ => Check::missing(AREA, "ssh", "not found", "the far end has to be started by hand")
            .fixed_by("sudo apt-get install openssh-client"),
    }
}
