//! Connections with other processes: shared memory and pipes, and `ssh` to other machines.

use std::process::{Command, Stdio};

use super::check::{Check, installs};

const AREA: &str = "local";

pub(super) fn checks() -> Vec<Check> {
    vec![
        shared_memory(),
        #[cfg(target_os = "linux")]
        runtime_directory(),
        #[cfg(target_os = "linux")]
        pipes(),
        ssh(),
    ]
}

fn shared_memory() -> Check {
    let (name, costs) = ("shared memory", "streams between processes use UDP or pipes");
    match grebe_shm::check() {
        Ok(()) => Check::ok(AREA, name, "memory that readers cannot write to"),
        Err(error) if cfg!(target_os = "linux") => {
            Check::missing(AREA, name, format!("{error} (Linux 5.1 has it)"), costs)
        }
        Err(error) => Check::missing(AREA, name, error.to_string(), costs),
    }
}

#[cfg(target_os = "linux")]
fn runtime_directory() -> Check {
    match std::env::var("XDG_RUNTIME_DIR") {
        Ok(path) if std::path::Path::new(&path).is_dir() => Check::ok(AREA, "runtime directory", path),
        Ok(path) => {
            let fix = format!("sudo install -d -m 0700 -o \"$USER\" {path}");
            Check::limited(AREA, "runtime directory", format!("{path} does not exist"), INSTEAD).fixed_by(fix)
        }
        Err(_) => Check::limited(AREA, "runtime directory", "XDG_RUNTIME_DIR is not set", INSTEAD),
    }
}

#[cfg(target_os = "linux")]
fn pipes() -> Check {
    use rustix::pipe::{fcntl_setpipe_size, pipe};

    let grown = pipe().and_then(|(_reader, writer)| fcntl_setpipe_size(&writer, PIPE_BYTES));
    let limit = super::check::line_of("/proc/sys/fs/pipe-max-size").unwrap_or_default();
    match grown {
        Ok(_) => Check::ok(AREA, "pipes", format!("{} KiB", PIPE_BYTES >> 10)),
        Err(_) => Check::limited(AREA, "pipes", format!("{limit} bytes at most"), "more wake-ups a megabyte")
            .fixed_by(format!("sudo sysctl -w fs.pipe-max-size={PIPE_BYTES}")),
    }
}

fn ssh() -> Check {
    let asked = Command::new("ssh").arg("-V").stdin(Stdio::null()).output();
    match asked {
        Ok(output) if output.status.success() => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            Check::ok("tools", "ssh", said.lines().next().unwrap_or("there").trim().to_owned())
        }
        _ => Check::missing("tools", "ssh", "not found", "the other end must be started by hand")
            .fixed_if(installs("openssh-client", "")),
    }
}

#[cfg(target_os = "linux")]
const INSTEAD: &str = "sockets of running instances are in a private temporary folder";
#[cfg(target_os = "linux")]
const PIPE_BYTES: usize = 1 << 20;
