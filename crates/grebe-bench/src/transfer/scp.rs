//! `scp` to this machine, through an ssh server of our own with keys of its own, all of which go with it.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::options::Options;
use super::program::{Finished, Kept, find, free_port};
use super::room::Room;
use super::tasks::LOOPBACK;
use crate::error::{Error, Result};

pub(super) struct Scp {
    scp: PathBuf,
    port: u16,
    keys: PathBuf,
    _server: Kept,
}

impl Scp {
    /// Starts the server, and logs in once. The inner error says why it is left out.
    pub(super) fn start(options: &Options, room: &Room) -> Result<std::result::Result<Self, String>> {
        let [Some(sshd), Some(keygen), Some(scp)] = ["sshd", "ssh-keygen", "scp"].map(find) else {
            return Ok(Err("sshd, ssh-keygen and scp are not all installed".to_owned()));
        };
        let keys = room.keys();
        std::fs::create_dir(&keys).map_err(Error::io("make a directory for keys"))?;
        for key in ["host", "user"] {
            let mut make = Command::new(&keygen);
            make.args(["-q", "-t", "ed25519", "-N", "", "-C", "grebe bench", "-f"]).arg(keys.join(key));
            let made = Finished::run(&mut make, &options.cancel)?;
            if !made.status.success() {
                return Ok(Err(format!("ssh-keygen: {}", made.why())));
            }
        }
        let port = free_port()?;
        let arguments = server_arguments(port, &keys);
        let server = Kept::start(options.launcher.command(), "ssh server", sshd, &arguments, &options.cancel);
        let mut server = match server {
            Ok(server) => server,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let listens = || {
            let address = SocketAddr::new(LOOPBACK, port);
            TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_ok()
        };
        match server.wait_until(listens) {
            Ok(()) => {}
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            Err(Error::Peer { reason, .. }) => return Ok(Err(one_line(&reason))),
            Err(error) => return Ok(Err(error.to_string())),
        }
        let this = Self { scp, port, _server: server, keys };
        // A machine may refuse a login that its server takes: better known before anything is measured.
        let probe = this.keys.join("user.pub");
        let tried = this.copy(&probe, &this.keys.join("copy"), options)?;
        Ok(tried
            .map(|_| this)
            .map_err(|why| format!("this user cannot log in here, even with a key ({why})")))
    }

    /// Seconds for a file, connecting and logging in with them. The inner error says why it failed.
    pub(super) fn copy(
        &self,
        from: &Path,
        to: &Path,
        options: &Options,
    ) -> Result<std::result::Result<f64, String>> {
        let known = format!("UserKnownHostsFile={}", self.keys.join("known").display());
        let mut scp = Command::new(&self.scp);
        scp.args(["-q", "-F", "/dev/null", "-P", &self.port.to_string(), "-i"]).arg(self.keys.join("user"));
        for option in [
            "BatchMode=yes",
            "IdentitiesOnly=yes",
            "IdentityAgent=none",
            "StrictHostKeyChecking=no",
            "LogLevel=ERROR",
            "Compression=no",
            &known,
        ] {
            scp.args(["-o", option]);
        }
        scp.arg(from).arg(format!("{LOOPBACK}:{}", to.display()));
        let copied = Finished::run(&mut scp, &options.cancel)?;
        Ok(if copied.status.success() { Ok(copied.took.as_secs_f64()) } else { Err(copied.why()) })
    }
}

/// A server for this user's one key, that reads no configuration but this.
fn server_arguments(port: u16, keys: &Path) -> Vec<String> {
    let mut arguments: Vec<String> = ["-D", "-e", "-f", "/dev/null"].map(str::to_owned).to_vec();
    for option in [
        format!("Port={port}"),
        format!("ListenAddress={LOOPBACK}"),
        format!("HostKey={}", keys.join("host").display()),
        format!("AuthorizedKeysFile={}", keys.join("user.pub").display()),
        "PidFile=none".to_owned(),
        "UsePAM=no".to_owned(),
        // The keys lie in a directory of this user alone, below one that belongs to all.
        "StrictModes=no".to_owned(),
        "PasswordAuthentication=no".to_owned(),
        "KbdInteractiveAuthentication=no".to_owned(),
        "PermitRootLogin=prohibit-password".to_owned(),
        "Subsystem=sftp internal-sftp".to_owned(),
    ] {
        arguments.extend(["-o".to_owned(), option]);
    }
    arguments
}

/// The last line is the one that says why.
fn one_line(text: &str) -> String {
    text.trim().lines().last().unwrap_or_default().trim().to_owned()
}
