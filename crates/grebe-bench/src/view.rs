//! The scope's window, fed by a generator in a process of its own; first without traces, then with them.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::row::{Progress, Row, Tell, percent};
use crate::runs::time;

/// Options of the bench.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Also one channel of 1M, 10M, 100M and 1G samples per second over each of shm://, pipe: and udp://.
    #[arg(long)]
    pub all_rates: bool,
    /// How long one run takes.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time)]
    pub duration: Duration,
}

/// How the samples come, and how many per second and channel, as the command takes it.
type Feed = (&'static str, u32, &'static str);

/// Measures everything that the options name. `grebe` makes the command, which generates (`sg`) and shows (`view`).
///
/// # Errors
/// Where the generator or the window fails; its words are in the error.
pub fn run(options: &Options, grebe: impl Fn() -> Command, tell: Tell) -> Result<()> {
    let mut feeds = vec![("shm", 1, "1G"), ("shm", 4, "1G")];
    if options.all_rates {
        for transport in ["shm", "pipe", "udp"] {
            feeds.extend(["1M", "10M", "100M", "1G"].map(|rate| (transport, 1, rate)));
        }
    }
    for feed in feeds {
        let (transport, channels, rate) = feed;
        tell(Progress::Doing(&format!("{channels} channels of {rate} over {transport}")));
        let result = measure(&grebe, options.duration, feed)?;
        tell(Progress::Row(&row(feed, &result)));
    }
    Ok(())
}

fn measure(
    grebe: &impl Fn() -> Command,
    duration: Duration,
    (transport, channels, rate): Feed,
) -> Result<Value> {
    let uri = match transport {
        "shm" => format!("shm://bench-view-{}", std::process::id()),
        "pipe" => "pipe:".to_owned(),
        // A port that is probably free, from the unregistered range.
        _ => format!("udp://127.0.0.1:{}", 49_152 + std::process::id() % 16_000),
    };
    let mut generator = grebe();
    let channels = channels.to_string();
    // All of the stream's memory is for the one reader there is.
    let to = if transport == "shm" { format!("{uri}?readers=1") } else { uri.clone() };
    generator.args(["sg", "--channels", &channels, "--rate", rate, "--to", &to, "--tethered"]);
    generator.stdin(Stdio::piped()).stderr(Stdio::null());
    generator.stdout(if transport == "pipe" { Stdio::piped() } else { Stdio::null() });
    let mut generator = Ended(generator.spawn().map_err(Error::io("start the generator"))?);
    let mut view = grebe();
    let length = format!("{}ms", duration.as_millis());
    view.args(["view", &uri, "--bench", &length, "--size", "1280x720", "--no-session"]);
    view.stdin(generator.0.stdout.take().map_or(Stdio::null(), Stdio::from)).stdout(Stdio::piped());
    let output = view.output().map_err(Error::io("start the window"))?;
    if !output.status.success() {
        return Err(Error::peer("window", String::from_utf8_lossy(&output.stderr).trim()));
    }
    serde_json::from_slice(&output.stdout).map_err(|_| Error::peer("window", "it gave no result"))
}

fn row((transport, channels, rate): Feed, result: &Value) -> Row {
    let number = |path: &str| result.pointer(path).and_then(Value::as_f64).unwrap_or(0.0);
    let ms = |path: &str| format!("{:.1}", number(path));
    // The window without traces, which draws as often as it can.
    let share = number("/traces/per_s") / number("/baseline/per_s");
    let of_limit = share.is_finite().then_some(share);
    let json = json!({
        "transport": transport,
        "channels": channels,
        "rate": rate,
        "of_limit": of_limit,
        "result": result,
    });
    Row::new("The scope's window, 1280 x 720", &json)
        .name("transport", transport)
        .name("channels", channels)
        .name("rate", rate)
        .cell("pictures/s", ms("/traces/per_s"))
        .cell("of limit", percent(of_limit))
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
