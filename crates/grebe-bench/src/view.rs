//! The scope's window, fed by a generator in a process of its own; first without traces, then with them.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::row::{Progress, Row, Tell};

/// What to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// The grebe command, which generates (`sg`) and shows (`view`).
    pub grebe: PathBuf,
    /// How long one run takes.
    pub duration: Duration,
    /// Whether each transport is measured at rates from 1 MS/s to 1 GS/s, beside one and four channels of 1 GS/s over shared memory.
    pub all_rates: bool,
}

/// How the samples come, and how many.
#[derive(Debug, Clone, Copy, Serialize)]
struct Feed {
    transport: &'static str,
    channels: u32,
    /// Samples per second and channel, as the command takes it.
    rate: &'static str,
}

/// What the window did.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    feed: Feed,
    result: Value,
}

/// Measures everything that the options name.
///
/// # Errors
/// Where the generator or the window fails; its words are in the error.
pub fn run(options: &Options, tell: Tell) -> Result<()> {
    let feed = |transport, channels, rate| Feed { transport, channels, rate };
    let mut feeds = vec![feed("shm", 1, "1G"), feed("shm", 4, "1G")];
    if options.all_rates {
        for transport in ["shm", "pipe", "udp"] {
            feeds.extend(["1M", "10M", "100M", "1G"].map(|rate| feed(transport, 1, rate)));
        }
    }
    for feed in feeds {
        tell(Progress::Doing(&format!(
            "{} channels of {} over {}",
            feed.channels, feed.rate, feed.transport
        )));
        let result = measure(options, feed)?;
        tell(Progress::Row(&row(Shown { feed, result })));
    }
    Ok(())
}

fn measure(options: &Options, feed: Feed) -> Result<Value> {
    let uri = match feed.transport {
        "shm" => format!("shm://bench-view-{}", std::process::id()),
        "pipe" => "pipe:".to_owned(),
        // A port that is likely to be free: one of those that nobody registers.
        _ => format!("udp://127.0.0.1:{}", 49_152 + std::process::id() % 16_000),
    };
    let mut generator = Command::new(&options.grebe);
    let channels = feed.channels.to_string();
    // All of the stream's memory is for the one reader there is.
    let to = if feed.transport == "shm" { format!("{uri}?readers=1") } else { uri.clone() };
    generator.args(["sg", "--channels", &channels, "--rate", feed.rate, "--to", &to, "--tethered"]);
    generator.stdin(Stdio::piped()).stderr(Stdio::null());
    generator.stdout(if feed.transport == "pipe" { Stdio::piped() } else { Stdio::null() });
    let mut generator = Ended(generator.spawn().map_err(Error::io("start the generator"))?);
    let mut view = Command::new(&options.grebe);
    let length = format!("{}ms", options.duration.as_millis());
    view.args(["view", &uri, "--bench", &length, "--size", "1280x720", "--no-session"]);
    view.stdin(generator.0.stdout.take().map_or(Stdio::null(), Stdio::from)).stdout(Stdio::piped());
    let output = view.output().map_err(Error::io("start the window"))?;
    if !output.status.success() {
        return Err(Error::peer("window", String::from_utf8_lossy(&output.stderr).trim()));
    }
    serde_json::from_slice(&output.stdout).map_err(|_| Error::peer("window", "it gave no result"))
}

fn row(shown: Shown) -> Row {
    let number = |path: &str| shown.result.pointer(path).and_then(Value::as_f64).unwrap_or(0.0);
    let ms = |path: &str| format!("{:.1}", number(path));
    Row::new("The scope's window, 1280 x 720", &shown)
        .name("transport", shown.feed.transport)
        .name("channels", shown.feed.channels)
        .name("rate", shown.feed.rate)
        .cell("pictures/s", ms("/traces/per_s"))
        .cell("missed", number("/misses"))
        .cell("ms p99 frame", ms("/traces/interval_ms_p99"))
        .cell("ms p99 CPU", ms("/traces/cpu_ms_p99"))
        .cell("ms latency p50/p99", format!("{}/{}", ms("/latency_ms_p50"), ms("/latency_ms_p99")))
        .cell("lost", number("/lost_frames"))
        .cell("frames/s of the window alone", format!("{:.0}", number("/baseline/per_s")))
        .cell("ms p99 of it", ms("/baseline/interval_ms_p99"))
}

/// Ends with this value.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It may be gone already, and then neither finds it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
