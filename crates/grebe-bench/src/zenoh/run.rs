//! Runs in turns, and their summary.

use std::path::{Path, PathBuf};
use std::time::Duration;

use grebe_connection::Cancel;
use serde_json::json;

use super::options::{End, Options, Part, Technique, ZenohTask};
use super::seen::Seen;
use super::{baseline, ours};
use crate::canary::{self, Reading};
use crate::error::{Error, Result};
use crate::pairs::{Pairs, range};
use crate::peer::{self, Launcher, Peer};
use crate::row::{Progress, Row, Tell, digits};
use crate::runs::Spread;
use crate::system::free_port;

/// Measures everything that the options name.
///
/// # Errors
/// Where a process, a graph or Zenoh fails.
pub fn run(options: &Options, tell: Tell) -> Result<()> {
    let Some(launcher) = &options.launcher else {
        return Err(Error::Usage("nothing starts the ends of a run".to_owned()));
    };
    let directory = tempfile::tempdir().map_err(Error::io("make a folder for the run"))?;
    for &part in &options.parts {
        for &message_bytes in &options.sizes {
            let one = OneRun { part, message_bytes, duration: options.runs.duration };
            tell(Progress::Doing(&format!("{} of {}", part.name(), size(message_bytes))));
            let before = canary::read();
            let (mut seen_ours, mut seen_baseline) = (Vec::new(), Vec::new());
            let mut measure = |technique, all: &mut Vec<Seen>| {
                let seen = one.measure(technique, launcher, directory.path())?;
                all.push(seen);
                Ok(all.last().map_or(0.0, |seen| part.value(seen)))
            };
            let measure = std::cell::RefCell::new(&mut measure);
            let pairs = Pairs::measure(
                options.runs.repeats.into(),
                || (measure.borrow_mut())(Technique::Ours, &mut seen_ours),
                || (measure.borrow_mut())(Technique::Baseline, &mut seen_baseline),
            )?;
            let row = one.row(&pairs, &seen_ours, &seen_baseline, (before, canary::read()));
            tell(Progress::Row(&row));
        }
    }
    Ok(())
}

/// Runs an end as a process: the remote one reports readiness, the measuring one its counts.
pub(crate) fn peer(task: ZenohTask) -> Result<()> {
    peer::end_with_input();
    match (task.part, task.end, task.technique) {
        (Part::Throughput, End::Near, Technique::Ours) => ours::send(&task),
        (Part::Throughput, End::Near, Technique::Baseline) => baseline::send(&task),
        (Part::Throughput, End::Far, Technique::Ours) => peer::say(&ours::receive(&task)?),
        (Part::Throughput, End::Far, Technique::Baseline) => peer::say(&baseline::receive(&task)?),
        (Part::Ping, End::Near, Technique::Ours) => peer::say(&ours::ping(&task)?),
        (Part::Ping, End::Near, Technique::Baseline) => peer::say(&baseline::ping(&task)?),
        (Part::Ping, End::Far, Technique::Ours) => ours::pong(&task),
        (Part::Ping, End::Far, Technique::Baseline) => baseline::pong(&task),
    }
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Ping => "ping",
        }
    }

    /// The value to compare: higher is better for one, lower for the other.
    fn value(self, seen: &Seen) -> f64 {
        match self {
            Self::Throughput => seen.bytes as f64 / seen.seconds / 1e9,
            Self::Ping => seen.p50_us,
        }
    }
}

struct OneRun {
    part: Part,
    message_bytes: usize,
    duration: Duration,
}

impl OneRun {
    fn measure(&self, technique: Technique, launcher: &Launcher, directory: &Path) -> Result<Seen> {
        let port = free_port()?;
        let start = |end| {
            let config = write_config(end, port, directory)?;
            let Self { part, message_bytes, duration } = *self;
            let task = ZenohTask { part, technique, end, message_bytes, duration, config };
            let side = if end == End::Near { "near end" } else { "far end" };
            Peer::start(launcher.command(), side, &task, &Cancel::default())
        };
        let mut far = start(End::Far)?;
        far.answer::<()>()?;
        let mut near = start(End::Near)?;
        match self.part {
            // The sender runs until it is stopped, so its answer is an error.
            Part::Throughput => loop {
                if let Some(seen) = far.answer_within(Duration::from_millis(20))? {
                    return Ok(seen);
                }
                near.answer_within::<()>(Duration::ZERO)?;
            },
            Part::Ping => near.answer(),
        }
    }

    fn row(&self, pairs: &Pairs, ours: &[Seen], baseline: &[Seen], machine: (Reading, Reading)) -> Row {
        let (of_ours, of_baseline) = (Spread::of(&pairs.ours), Spread::of(&pairs.baseline));
        let (unit, programs, ratio) = match self.part {
            Part::Throughput => ("GB/s", "z_pub_thr, z_sub_thr", pairs.ratio()),
            Part::Ping => ("us p50", "z_ping, z_pong", pairs.ratio().recip()),
        };
        let p99 = |all: &[Seen]| Spread::over(all, |seen| seen.p99_us);
        let lost: u64 = ours.iter().map(|seen| seen.lost).sum();
        let json = json!({
            "bench": self.part.name(),
            "message_bytes": self.message_bytes,
            "unit": unit,
            "ours": of_ours,
            "baseline_name": programs,
            "baseline": of_baseline,
            "ratio": ratio,
            "p99_us": (self.part == Part::Ping).then(|| (p99(ours), p99(baseline))),
            "lost_frames": lost,
            "runs_ours": ours,
            "runs_baseline": baseline,
            "machine_before": machine.0,
            "machine_after": machine.1,
        });
        let p99 = match self.part {
            Part::Throughput => String::new(),
            Part::Ping => format!("{}, {}", range(&p99(ours)), range(&p99(baseline))),
        };
        Row::new("Streams over Zenoh, beside what Zenoh's own programs do", &json)
            .name("bench", self.part.name())
            .name("message", size(self.message_bytes))
            .range("ours", format!("{} {unit}", range(&of_ours)))
            .text("baseline", format!("{programs}: {}", range(&of_baseline)))
            .cell("ratio", digits(ratio))
            .cell("us p99: ours, baseline", p99)
            .cell("lost", lost)
            .machine(Some(machine), "")
            .goal("ratio", ">= 0.9", digits(ratio), ratio >= 0.9)
    }
}

/// The same for both techniques: two peers, one connection of TCP, nobody else; all else as Zenoh has it by itself.
fn write_config(end: End, port: u16, directory: &Path) -> Result<PathBuf> {
    let address = format!("tcp/127.0.0.1:{port}");
    let (listens_at, connects_to) = match end {
        End::Far => (vec![address], vec![]),
        End::Near => (vec![], vec![address]),
    };
    let config = json!({
        "mode": "peer",
        "listen": { "endpoints": listens_at },
        "connect": { "endpoints": connects_to },
        "scouting": { "multicast": { "enabled": false } },
    });
    let path = directory.join(if end == End::Far { "far.json5" } else { "near.json5" });
    std::fs::write(&path, config.to_string()).map_err(Error::io("write a configuration"))?;
    Ok(path)
}

/// A size as people say it.
fn size(bytes: usize) -> String {
    match bytes {
        bytes if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        bytes if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_said_as_people_say_them() {
        assert_eq!([65_536, 1 << 20, 1_400].map(size), ["64 KiB", "1 MiB", "1400 bytes"]);
    }
}
