//! A radio on another host, by SoapyRemote: our module behind its server.

use crate::support::{Killed, free_port};
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use grebe::recording::SampleFile;

use super::radio::{counted, module, record};

/// Starts a program; `None`, with a message, if this machine lacks it.
fn start(command: &mut Command) -> Option<Killed> {
    match command.stderr(Stdio::null()).spawn() {
        Ok(child) => Some(Killed(child)),
        Err(error) => {
            println!("skipped: {} for a radio of another host: {error}", command.get_program().display());
            None
        }
    }
}

/// Our own message bus and its address, because the server needs one to announce itself.
fn bus() -> Option<(Killed, String)> {
    let mut command = Command::new("dbus-daemon");
    let mut bus = start(command.args(["--session", "--nofork", "--print-address"]).stdout(Stdio::piped()))?;
    let mut address = String::new();
    BufReader::new(bus.0.stdout.take().unwrap()).read_line(&mut address).unwrap();
    Some((bus, address.trim().to_owned()))
}

/// A server on a port that was free a moment ago.
fn server(bus: &str) -> Option<(Killed, u16)> {
    let modules = Command::new("SoapySDRUtil").arg("--info").output();
    if !modules.is_ok_and(|it| String::from_utf8_lossy(&it.stdout).contains("remoteSupport")) {
        println!("skipped: no module for SoapyRemote, or no SoapySDRUtil to ask for it");
        return None;
    }
    let began = Instant::now();
    loop {
        let port = free_port();
        let mut command = Command::new("SoapySDRServer");
        command.arg(format!("--bind=127.0.0.1:{port}")).env("SOAPY_SDR_PLUGIN_PATH", module()?);
        let mut server = start(command.env("DBUS_SYSTEM_BUS_ADDRESS", bus).stdout(Stdio::null()))?;
        // Another process may have taken the port: then the server ends.
        while server.0.try_wait().unwrap().is_none() {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Some((server, port));
            }
            assert!(began.elapsed() < Duration::from_secs(60), "the server does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(began.elapsed() < Duration::from_secs(60), "no server stays");
    }
}

#[test]
fn a_radio_over_soapyremote_works_like_a_local_one() {
    let Some(_) = module() else { return };
    let Some((_bus, address)) = bus() else { return };
    let Some((_server, port)) = server(&address) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sigmf-meta");
    let uri = format!(
        "soapy:driver=remote, remote=tcp://127.0.0.1:{port}, remote:driver=grebe_test, time=1, paced=1?rate=1M&frequency=50M&gain=7&stream.remote:prot=tcp"
    );
    let (report, said) = record(&uri, &path, "300k");
    let mut file = SampleFile::open(&path).unwrap();
    let description = file.description(0).unwrap();
    assert_eq!((description.centre_frequency_hz, description.gain_db), (Some(50e6), Some(7.0)), "{said}");
    // Over TCP nothing is lost in transit. Samples that the server dropped are a gap at their index.
    let segments = file.segments().to_vec();
    let samples = counted(&mut file, 0);
    for segment in &segments {
        let part = &samples[segment.position as usize..][..segment.length_samples as usize];
        let first = part[0].0;
        assert!((first..).zip(part).all(|(number, it)| it.0 == number), "{report}");
        assert_eq!(first - samples[0].0, segment.first_sample_index, "{report}");
    }
}
