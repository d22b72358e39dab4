//! `iperf3` with TCP: no file, no hash, no encryption.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::options::Options;
use super::program::{Finished, Kept, find, free_port};
use crate::error::{Error, Result};

pub(super) struct Iperf(PathBuf);

impl Iperf {
    /// Why it is left out, where it is not there.
    pub(super) fn find() -> std::result::Result<Self, String> {
        find("iperf3").map(Self).ok_or_else(|| "it is not installed".to_owned())
    }

    /// Seconds for so many bytes.
    pub(super) fn run(&self, options: &Options) -> Result<f64> {
        let (port, bytes) = (free_port()?.to_string(), options.size_bytes.to_string());
        let arguments = ["-s", "-1", "-B", "127.0.0.1", "-p", &port];
        let _server =
            Kept::start(options.launcher.command(), "iperf3 server", &self.0, &arguments, &options.cancel)?;
        let until = Instant::now() + Duration::from_secs(5);
        loop {
            let mut client = Command::new(&self.0);
            client.args(["-c", "127.0.0.1", "-p", &port, "-n", &bytes, "-J"]);
            let finished = Finished::run(&mut client, &options.cancel)?;
            if let Some(seconds) = seconds_of(&finished.stdout) {
                return Ok(seconds * options.size_bytes as f64
                    / received_of(&finished.stdout).unwrap_or(1.0).max(1.0));
            }
            // The server may not listen yet.
            if Instant::now() >= until {
                let reason = error_of(&finished.stdout).unwrap_or_else(|| finished.why());
                return Err(Error::peer("iperf3", reason));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn seconds_of(json: &str) -> Option<f64> {
    number(json, "/end/sum_received/seconds").filter(|&seconds| seconds > 0.0)
}

fn received_of(json: &str) -> Option<f64> {
    number(json, "/end/sum_received/bytes").filter(|&bytes| bytes > 0.0)
}

fn number(json: &str, path: &str) -> Option<f64> {
    serde_json::from_str::<Value>(json).ok()?.pointer(path)?.as_f64()
}

fn error_of(json: &str) -> Option<String> {
    serde_json::from_str::<Value>(json).ok()?.get("error")?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_report_is_read_and_so_is_its_error() {
        let good = r#"{"end": {"sum_received": {"seconds": 0.5, "bytes": 1000}}}"#;
        assert_eq!((seconds_of(good), received_of(good)), (Some(0.5), Some(1_000.0)));
        let bad = r#"{"end": {}, "error": "unable to connect"}"#;
        assert_eq!((seconds_of(bad), error_of(bad).as_deref()), (None, Some("unable to connect")));
        assert_eq!(seconds_of("not json"), None);
    }
}
