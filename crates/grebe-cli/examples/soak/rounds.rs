//! Rounds of the soak, and their checks.

use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use grebe_process::synth::{ChannelSpec, Generator, Wave};
use grebe_recording::SampleFile;
use serde_json::Value;

use crate::processes::{Ended, Room, Running};
use crate::relay::{Injected, Relay};
use crate::soak::Dice;

/// Sum over all rounds.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) rounds: u64,
    pub(crate) kills: u64,
    pub(crate) stops: u64,
    pub(crate) starts: u64,
    /// Recordings that were compared, and the samples in them.
    pub(crate) recordings: u64,
    pub(crate) samples: u64,
    /// Faults that were injected into the streams of bystanders and reported by them.
    pub(crate) lost_frames: u64,
    pub(crate) lost_samples: u64,
    pub(crate) failures: Vec<String>,
}

/// Plays a round over one of the transports; what it was, in words.
pub(crate) fn play(room: &mut Room, dice: &mut Dice, tally: &mut Tally) -> Result<String> {
    let over = ["shm", "shm", "udp", "udp", "pipe"][dice.roll(5) as usize];
    let (kills, stops) = (tally.kills, tally.stops);
    let mut round = Round { room, dice, tally, over, relay: None, victims: Vec::new(), made: 0 };
    if over == "udp" {
        round.relay = Some(Relay::start(round.dice.roll(u64::MAX))?);
    }
    // A generator that is killed is started again under the same name.
    let acts = 1 + round.dice.roll(2);
    for act in 1..=acts {
        round.act(act < acts)?;
    }
    round.end_victims()?;
    drop(round);
    Ok(format!("{over}, {acts} generators, {} killed, {} stopped", tally.kills - kills, tally.stops - stops))
}

const RATE: &str = "500k";
const SAMPLES: u64 = 1_500_000;
/// Longer than a bystander takes, also on a busy machine, to see that a generator was killed.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(15);

struct Round<'a> {
    room: &'a mut Room,
    dice: &'a mut Dice,
    tally: &'a mut Tally,
    over: &'static str,
    relay: Option<Relay>,
    victims: Vec<Victim>,
    /// Processes so far, for names.
    made: u64,
}

/// A process that may be killed and stopped.
struct Victim {
    process: Running,
    kind: Kind,
}

enum Kind {
    Recorder(PathBuf),
    Picture(PathBuf),
    Terminal,
}

impl Round<'_> {
    /// A generator's life, beside a bystander and victims. Where it `is_doomed`, the generator is killed.
    fn act(&mut self, is_doomed: bool) -> Result<()> {
        let (mut source, bystander, file, injected) = self.begin()?;
        let mut bystander = Some(bystander);
        let began = Instant::now();
        let doom = Duration::from_millis(500 + self.dice.roll(2_000));
        let mut was_killed = false;
        while !source.is_over() {
            thread::sleep(Duration::from_millis(30 + self.dice.roll(200)));
            if is_doomed && began.elapsed() > doom {
                was_killed = !source.is_over();
                break;
            }
            match self.dice.roll(8) {
                0 | 1 => self.kill_one()?,
                2 | 3 => self.stop_or_continue_one(),
                4 | 5 if self.over != "pipe" && self.victims.len() < 3 => self.start_victim()?,
                6 => {
                    source.stop();
                    thread::sleep(Duration::from_millis(20 + self.dice.roll(200)));
                    source.go_on();
                    self.tally.stops += 1;
                }
                7 if self.over == "pipe" => {
                    bystander.iter_mut().for_each(Running::stop);
                    thread::sleep(Duration::from_millis(20 + self.dice.roll(200)));
                    bystander.iter_mut().for_each(Running::go_on);
                    self.tally.stops += 1;
                }
                _ => {}
            }
        }
        let made = if was_killed {
            self.tally.kills += 1;
            source.kill()?;
            None
        } else {
            let ended = source.end()?;
            let report = self.report(&ended, &[0]);
            // A recorder that writes into standard output says its result there.
            report.or_else(|| (self.over == "pipe").then_some(Value::Null))
        };
        let Some(mut bystander) = bystander.take() else { return Ok(()) };
        // A generator that was killed before the bystander met it is waited for for ever.
        let has_met = !was_killed || bystander.is_over_within(GIVEN_UP_AFTER);
        let ended = if has_met { bystander.end()? } else { bystander.interrupt()? };
        if !has_met {
            if ended.status.code() != Some(130) || !ended.stdout.is_empty() || file.exists() {
                self.fail(format!(
                    "{} does not notice that its generator is gone: {}",
                    ended.name, ended.said
                ));
            }
            return Ok(());
        }
        let injected =
            injected.map(|at| self.relay.as_ref().map_or(Injected::default(), |relay| relay.injected(at)));
        self.check_bystander(&ended, &file, made, injected.unwrap_or_default())
    }

    /// Starts the bystander and the generator; returns the bystander's file and the injected faults.
    fn begin(&mut self) -> Result<(Running, Running, PathBuf, Option<usize>)> {
        self.made += 1;
        self.tally.starts += 2;
        let (number, file) = (self.made, self.room.path(&format!("bystander-{}.sigmf-meta", self.made)));
        let (named, path) = (format!("generator {number}"), file.display().to_string());
        let record = |from: &str| ["record".to_owned(), from.to_owned(), path.clone(), "--json".to_owned()];
        let samples = SAMPLES.to_string();
        let sg = |to: &str| {
            let fixed =
                ["sg", "--rate", RATE, "--wave", "noise", "--samples", &samples, "--json", "--to", to];
            fixed.map(str::to_owned)
        };
        let start = |room: &Room, name: &str, arguments: &[String], input| {
            room.start(name.to_owned(), &arguments.iter().map(String::as_str).collect::<Vec<_>>(), input)
        };
        let bystander = format!("bystander {number}");
        if self.over == "shm" {
            let bystander = start(self.room, &bystander, &record("shm://soak"), Stdio::null())?;
            // Four read at once at most, but a scope whose terminal was killed takes a while to go.
            let source = start(self.room, &named, &sg("shm://soak?wait=1&readers=8"), Stdio::null())?;
            return Ok((source, bystander, file, None));
        }
        let Some(relay) = &self.relay else {
            let mut arguments = sg("pipe:").to_vec();
            arguments.retain(|argument| argument != "--json");
            let mut source = start(self.room, &named, &arguments, Stdio::null())?;
            let samples = source.output();
            return Ok((source, start(self.room, &bystander, &record("pipe:"), samples)?, file, None));
        };
        let address = free_address()?;
        let mut arguments = record(&format!("udp://{address}")).to_vec();
        arguments.extend(["--idle-timeout", "5s"].map(str::to_owned));
        let bystander = start(self.room, &bystander, &arguments, Stdio::null())?;
        wait_for(address)?;
        let at = relay.add(address, self.dice.roll(20));
        let mut arguments = sg(&format!("udp://{}", relay.address)).to_vec();
        arguments.extend(["--datagram-size", "1400"].map(str::to_owned));
        Ok((start(self.room, &named, &arguments, Stdio::null())?, bystander, file, Some(at)))
    }

    fn start_victim(&mut self) -> Result<()> {
        self.made += 1;
        self.tally.starts += 1;
        let number = self.made;
        let address = free_address()?;
        let (uri, drops) = match &self.relay {
            Some(_) => (format!("udp://{address}"), ""),
            None => ("shm://soak".to_owned(), "?policy=drop_oldest"),
        };
        let kind = match self.dice.roll(4) {
            0 | 1 => Kind::Recorder(self.room.path(&format!("victim-{number}.sigmf-meta"))),
            2 => Kind::Picture(self.room.path(&format!("picture-{number}.png"))),
            _ => Kind::Terminal,
        };
        let process = match &kind {
            Kind::Recorder(file) => {
                let (from, file) = (format!("{uri}{drops}"), file.display().to_string());
                Some(self.room.start(
                    format!("recorder {number}"),
                    &["record", &from, &file, "--json"],
                    Stdio::null(),
                )?)
            }
            Kind::Picture(file) => {
                let file = file.display().to_string();
                let arguments = ["view", &uri, "--png", &file, "--after", "500ms", "--no-session"];
                Some(self.room.start(format!("picture {number}"), &arguments, Stdio::null())?)
            }
            Kind::Terminal => self
                .room
                .start_in_terminal(format!("terminal {number}"), &["view", &uri, "--term", "--no-session"])?,
        };
        if let (Some(relay), Some(_)) = (&self.relay, &process) {
            relay.add(address, self.dice.roll(20));
        }
        self.victims.extend(process.map(|process| Victim { process, kind }));
        Ok(())
    }

    fn pick(&mut self) -> Option<usize> {
        let count = self.victims.len() as u64;
        (count > 0).then(|| self.dice.roll(count) as usize)
    }

    fn kill_one(&mut self) -> Result<()> {
        let Some(at) = self.pick() else { return Ok(()) };
        let Victim { process, kind } = self.victims.swap_remove(at);
        let name = process.name.clone();
        match process.kill()? {
            Some(ended) => self.check_victim(ended, &kind),
            None => {
                self.tally.kills += 1;
                // The recording is valid up to there, if it had begun.
                if let Kind::Recorder(file) = &kind
                    && file.exists()
                {
                    self.check_file(&name, file);
                }
                Ok(())
            }
        }
    }

    fn stop_or_continue_one(&mut self) {
        let Some(at) = self.pick() else { return };
        let process = &mut self.victims[at].process;
        if process.is_stopped {
            process.go_on();
        } else {
            process.stop();
            self.tally.stops += 1;
        }
    }

    fn end_victims(&mut self) -> Result<()> {
        for Victim { mut process, kind } in std::mem::take(&mut self.victims) {
            process.go_on();
            // Processes that saw the end of the stream end by themselves.
            process.is_over_within(Duration::from_secs(1));
            let ended = process.interrupt()?;
            self.check_victim(ended, &kind)?;
        }
        Ok(())
    }

    fn check_victim(&mut self, ended: Ended, kind: &Kind) -> Result<()> {
        match kind {
            Kind::Recorder(file) => {
                // 1: a late reader may receive only the end. 3: the generator is gone. 130: interrupted.
                let is_recorded = file.exists();
                let report = self.report(&ended, if is_recorded { &[0, 3, 130] } else { &[1, 3, 130] });
                let recorded = if is_recorded { self.check_file(&ended.name, file) } else { None };
                if let (Some(report), Some(recorded)) = (report, recorded) {
                    let lost = number(&report, "/losses/network_samples")
                        + number(&report, "/losses/generator_samples");
                    self.expect(&ended, "samples in the file", number(&report, "/samples"), recorded.samples);
                    // Of a second generator's stream it is not known when it joined.
                    if recorded.streams == 1 && lost < recorded.missing {
                        self.fail(format!(
                            "{}: {lost} samples lost, {} are missing",
                            ended.name, recorded.missing
                        ));
                    }
                }
            }
            Kind::Picture(file) => {
                if ended.status.code() == Some(0)
                    && !std::fs::read(file).is_ok_and(|bytes| bytes.starts_with(b"\x89PNG"))
                {
                    self.fail(format!("{}: no picture is in {}", ended.name, file.display()));
                }
            }
            Kind::Terminal => {}
        }
        if ended.status.code() == Some(101) || ended.said.contains("panicked") {
            self.fail(format!("{} panicked: {}", ended.name, ended.said));
        }
        Ok(())
    }

    /// `made` is the generator's report, if it ended well.
    fn check_bystander(
        &mut self,
        ended: &Ended,
        file: &Path,
        made: Option<Value>,
        injected: Injected,
    ) -> Result<()> {
        let is_recorded = file.exists();
        let statuses: &[i32] = match (made.is_some(), is_recorded) {
            (true, true) => &[0],
            // Under a load that leaves the generator no time, its whole stream may fall due before its first frame.
            (true, false) => &[1],
            // It may have been killed behind its end of stream.
            (false, true) => &[0, 3],
            (false, false) => &[1, 3],
        };
        let is_whole = ended.status.code() != Some(3);
        let report = self.report(ended, statuses);
        if report.is_none() && !is_whole && !is_recorded {
            // The generator was killed while they met.
            return Ok(());
        }
        let recorded = if is_recorded { self.check_file(&ended.name, file) } else { Some(Recorded::NOTHING) };
        let (Some(recorded), Some(report)) = (recorded, report) else {
            self.fail(format!("{} has no report of its recording: {}", ended.name, ended.said));
            return Ok(());
        };
        if !is_recorded && !ended.said.contains("was not written") {
            self.fail(format!("{} does not report the missing recording: {}", ended.name, ended.said));
        }
        let lost = number(&report, "/losses/network_samples");
        let not_made = number(&report, "/losses/generator_samples");
        self.expect(ended, "samples in the file", number(&report, "/samples"), recorded.samples);
        self.expect(
            ended,
            "frames lost on the way",
            number(&report, "/losses/network_frames"),
            injected.frames,
        );
        self.expect(ended, "samples lost on the way", lost, injected.samples);
        // Samples before its first frame were never made, unless it joined late: the generator may wait for another
        // reader.
        let (first, got) = (recorded.first, recorded.samples + lost + not_made);
        let before = if self.over == "shm" && first + got <= SAMPLES { first } else { 0 };
        if is_whole {
            self.expect(ended, "samples in all", before + got, SAMPLES);
        } else {
            let is_late = self.over == "shm" && lost + not_made == recorded.missing;
            let missing = if is_late { recorded.missing } else { first + recorded.missing };
            self.expect(ended, "samples missing in the file", lost + not_made, missing);
        }
        if let Some(made) = made.filter(|made| !made.is_null()) {
            let dropped = number(&made, "/losses/generator_samples");
            // A late reader missed earlier samples. If there were none, it would not have been late.
            let unseen = dropped.checked_sub(not_made).filter(|&unseen| unseen < before);
            self.expect(ended, "samples not generated", not_made, dropped - unseen.unwrap_or(0));
        }
        self.tally.lost_frames += injected.frames;
        self.tally.lost_samples += not_made;
        Ok(())
    }

    /// Compares each sample of a recording with the generator's value at its index.
    fn check_file(&mut self, name: &str, file: &Path) -> Option<Recorded> {
        match check(file) {
            Ok(recorded) => {
                self.tally.recordings += 1;
                self.tally.samples += recorded.samples;
                Some(recorded)
            }
            // It was ended before the first sample came.
            Err(error) if format!("{error:#}").contains("holds no samples") => None,
            Err(error) => {
                self.fail(format!("{name}: {error:#}"));
                None
            }
        }
    }

    /// JSON output of a process.
    fn report(&mut self, ended: &Ended, statuses: &[i32]) -> Option<Value> {
        let is_good = ended.status.code().is_some_and(|status| statuses.contains(&status));
        if !is_good || ended.said.contains("panicked") {
            self.fail(format!("{} ended with {}: {}", ended.name, ended.status, ended.said));
        }
        serde_json::from_slice(&ended.stdout).ok()
    }

    fn expect(&mut self, of: &Ended, what: &str, got: u64, expected: u64) {
        if got != expected {
            self.fail(format!("{}: {what}: {got}, not {expected} ({})", of.name, of.said));
        }
    }

    fn fail(&mut self, what: String) {
        self.tally.failures.push(format!("over {}: {what}", self.over));
    }
}

fn number(report: &Value, path: &str) -> u64 {
    report.pointer(path).and_then(Value::as_u64).unwrap_or(0)
}

/// Content of a recording.
struct Recorded {
    first: u64,
    samples: u64,
    /// Samples between its segments.
    missing: u64,
    /// Generators whose streams are in it.
    streams: u64,
}

impl Recorded {
    /// No sample came, and no file was written.
    const NOTHING: Self = Self { first: 0, samples: 0, missing: 0, streams: 0 };
}

fn check(file: &Path) -> Result<Recorded> {
    let mut recording = SampleFile::open(file)?;
    let spec = ChannelSpec { wave: Wave::Noise { seed: 1 }, amplitude: 0.8, ..ChannelSpec::default() };
    let generator = Generator::new(&spec, 500e3)?;
    let segments = recording.segments().to_vec();
    let (mut missing, mut next) = (0, segments.first().map_or(0, |segment| segment.first_sample_index));
    let (first, mut streams, mut expected) = (next, 1, Vec::new());
    for segment in &segments {
        // A step back is the next generator's stream.
        let skipped = segment.first_sample_index.checked_sub(next);
        streams += u64::from(skipped.is_none());
        missing += skipped.unwrap_or(segment.first_sample_index);
        expected.resize(segment.length_samples as usize, 0);
        generator.fill(segment.first_sample_index, &mut expected);
        let block = recording.block(segment.position, expected.len())?;
        let got = block.channel::<i16>(0)?;
        if let Some(at) = got.iter().zip(&expected).position(|(got, expected)| got != expected) {
            bail!("sample {} is not what was generated", segment.first_sample_index + at as u64);
        }
        next = segment.first_sample_index + segment.length_samples;
    }
    Ok(Recorded { first, samples: recording.len_samples(), missing, streams })
}

/// An address of this machine that was free a moment ago.
fn free_address() -> Result<SocketAddr> {
    Ok(UdpSocket::bind("127.0.0.1:0")?.local_addr()?)
}

/// Waits until somebody listens there.
fn wait_for(address: SocketAddr) -> Result<()> {
    let until = Instant::now() + Duration::from_secs(10);
    while UdpSocket::bind(address).is_ok() {
        if Instant::now() > until {
            bail!("nobody listens on {address}");
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
