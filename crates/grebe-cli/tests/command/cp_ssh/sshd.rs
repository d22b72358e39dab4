//! A real `sshd` of this user alone, with keys of its own, on a port of the loopback interface.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Killed, free_port, grebe};

/// It runs until this is dropped.
pub(crate) struct Sshd {
    folder: tempfile::TempDir,
    child: Killed,
}

impl Sshd {
    /// `None`, with a message, if this machine has no server that would let this user in.
    pub(crate) fn start() -> Option<Self> {
        match Self::try_start() {
            Ok(sshd) => Some(sshd),
            Err(why) => {
                println!("skipped: no sshd for tests: {why}");
                None
            }
        }
    }

    fn try_start() -> Result<Self, String> {
        let sshd = ["/usr/sbin/sshd", "/usr/local/sbin/sshd", "/sbin/sshd"]
            .into_iter()
            .find(|path| Path::new(path).is_file());
        let sshd = sshd.ok_or("it is not installed (Debian: openssh-server)")?;
        // Debian's sshd wants it where root runs it, and only its service makes it.
        let _ = fs::create_dir("/run/sshd");
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for key in ["host", "user"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(at(key))
                .status();
            if !made.is_ok_and(|status| status.success()) {
                return Err("ssh-keygen makes no keys".to_owned());
            }
        }
        let (port, odd) = (free_port(), free_port());
        let server = format!(
            "ListenAddress 127.0.0.1\nPort {port}\nPort {odd}\nHostKey {host}\nAuthorizedKeysFile {user}.pub\nPidFile none\nUsePAM no\n\
             StrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n\
             MaxStartups 100\nSetEnv XDG_CACHE_HOME={cache} XDG_STATE_HOME={cache}\n\
             AcceptEnv LOGIN\nMatch LocalPort {odd}\n ForceCommand sh {login}\n",
            login = at("login").display(),
            host = at("host").display(),
            user = at("user").display(),
            cache = at("cache").display(),
        );
        fs::write(at("sshd_config"), server).unwrap();
        let client = format!(
            "Host lab store\n HostName 127.0.0.1\n Port {port}\n\
             Host odd\n HostName 127.0.0.1\n Port {odd}\n\
             Host shared\n HostName 127.0.0.1\n Port {port}\n ControlMaster auto\n ControlPersist 5\n ControlPath {control}\n\
             Host gone\n HostName 127.0.0.1\n Port 1\n\
             Host *\n IdentityFile {user}\n IdentitiesOnly yes\n IdentityAgent none\n BatchMode yes\n\
             \x20UserKnownHostsFile {known}\n StrictHostKeyChecking no\n",
            control = at("m").display(),
            user = at("user").display(),
            known = at("known").display(),
        );
        fs::write(at("config"), client).unwrap();
        // Runs a command as `sshd` does, in a home directory and a shell of the test.
        let login = format!(
            "unset SHLVL; export HOME={}/$LOGIN; exec $(cat \"$HOME/shell\") -c \"$SSH_ORIGINAL_COMMAND\"\n",
            folder.path().display()
        );
        fs::write(at("login"), login).unwrap();
        let log = fs::File::create(at("log")).unwrap();
        let child = Command::new(sshd)
            .args(["-D", "-e", "-f"])
            .arg(at("sshd_config"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        let mut this = Self { child: Killed(child.map_err(|error| error.to_string())?), folder };
        let until = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if Instant::now() > until || this.child.try_wait().is_ok_and(|ended| ended.is_some()) {
                return Err(format!("it does not listen: {}", this.log()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let login = Command::new("ssh").arg("-F").arg(this.config()).args(["lab", "true"]).output();
        match login {
            Ok(login) if login.status.success() => Ok(this),
            Ok(login) => Err(format!("no login: {}{}", String::from_utf8_lossy(&login.stderr), this.log())),
            Err(error) => Err(format!("ssh is missing: {error}")),
        }
    }

    /// `grebe cp` that finds this server as `lab` and `store`, its other end being this command as well.
    pub(crate) fn cp(&self, arguments: &[&str]) -> Command {
        self.cp_with(env!("CARGO_BIN_EXE_grebe"), arguments)
    }

    /// The same with another program at the other end.
    pub(crate) fn cp_with(&self, program: &str, arguments: &[&str]) -> Command {
        let ssh = self.ssh();
        let own = ["cp", "--no-config", "--ssh", &ssh, "--remote-path", program];
        let mut command = grebe(&[&own, arguments].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// A user who logs in to the host `odd` with a startup file of a shell; how `ssh` is started for that.
    pub(crate) fn login(&self, name: &str, shell: &str, file: &str, startup: &str) -> String {
        let home = self.folder.path().join(name);
        fs::create_dir(&home).unwrap();
        fs::write(home.join("shell"), shell).unwrap();
        fs::create_dir_all(home.join(file).parent().unwrap()).unwrap();
        fs::write(home.join(file), startup.to_owned() + "\n").unwrap();
        format!("{} -o SetEnv=LOGIN={name}", self.ssh())
    }

    pub(crate) fn ssh(&self) -> String {
        format!("ssh -F {}", self.config().display())
    }

    /// A script that the other end runs instead of grebe.
    pub(crate) fn script(&self, name: &str, script: &str) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Content of the user's cache on the other host.
    pub(crate) fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("config")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}
