//! `kill -9` of this end, of the other one or of the `ssh` between them, and blackouts, at any moment and over any way: both ends are
//! gone soon, and the same command begun again ends with the right tree. In half of the stories an older one is there before.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use super::sshd::Sshd;
use super::{path, run, there};
use crate::support::kills::play_stories;
use crate::support::trees::{assert_same, file, noise, plant};
use crate::support::{finish, signal, text, wait_until};

#[test]
fn after_kills_the_same_command_completes_the_tree() {
    let Some(sshd) = Sshd::start() else { return };
    play_stories(|seed| Story::new(seed, &sshd).play());
}

/// The data goes from one to the other, and not by here: that one of them is gone, this end hears from its ssh alone.
#[test]
fn between_machines_a_killed_end_is_noticed_at_once() {
    let Some(sshd) = Sshd::start() else { return };
    for killed in ["the receiver", "the sender"] {
        let story = Story::new(1_000 + killed.len() as u64, &sshd);
        let (from, to) = (story.folder.path().join("from"), story.folder.path().join("to"));
        plant(&from);
        file(&from.join("large.bin"), &noise(40_000_000, 1), 1);
        let (source, place) = (format!("{}/", there(&from)), format!("store:{}", to.display()));
        let mut child =
            sshd.cp_with(&story.program, &["-a", "--bwlimit", "10M", &source, &place]).spawn().unwrap();
        // Begun in this order, and something has come.
        wait_until(&format!("{killed}: nothing comes"), || {
            story.others().len() >= 2 && to.join("plain.txt").exists()
        });
        kill(story.others()[usize::from(killed == "the sender")]);
        story.has_ended(&mut child);
        let output = finish(child);
        let (status, said) = (output.status.code(), text(&output.stderr));
        assert!(matches!(status, Some(1 | 3)), "{killed}: {status:?} {said}");
        story.wait_until_all_are_gone();
        let again = run(&mut sshd.cp_with(&story.program, &["-a", &source, &place]));
        assert_eq!(again.status, Some(0), "{killed}: {}", again.said);
        assert_same(&from, &to, killed);
    }
}

/// One tree, cut off a few times and then not.
struct Story<'a> {
    seed: u64,
    random: u64,
    sshd: &'a Sshd,
    folder: tempfile::TempDir,
    /// Notes its process id, and becomes grebe.
    program: String,
}

impl<'a> Story<'a> {
    fn new(seed: u64, sshd: &'a Sshd) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pids = folder.path().join("pids");
        let exe = env!("CARGO_BIN_EXE_grebe");
        let script = format!("echo $$ >> '{}'; exec {exe} \"$@\"", pids.display());
        let program = sshd.script(&format!("story{seed}"), &script);
        Self { seed, random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, sshd, folder, program }
    }

    fn play(mut self) {
        println!("story {}", self.seed);
        let (from, to) = (self.folder.path().join("from"), self.folder.path().join("to"));
        plant(&from);
        for number in 0..8 {
            file(
                &from.join(format!("{number}.bin")),
                &noise(700_000 + number * 1_000, number as u64),
                number as u64,
            );
        }
        file(&from.join("large.bin"), &noise(6_000_000, 99), 9);
        let is_there = self.below(2) == 0;
        if is_there {
            self.plant_older(&to);
        }
        let via = ["udp", "tcp", "ssh", "udp"][self.below(4) as usize];
        let is_push = self.below(2) == 0;
        // So slow that the kill comes in between.
        let more: &[&str] = if self.below(2) == 0 { &["--delete", "--checksum"] } else { &["--delete"] };
        let slowly = [more, &["--bwlimit", "40M"]].concat();
        let arguments = self.arguments(&from, &to, via, is_push, &slowly);
        for _ in 0..=self.below(2) {
            self.cut_off(&arguments);
        }
        let arguments = self.arguments(&from, &to, via, is_push, more);
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let ended = run(&mut self.sshd.cp_with(&self.program, &arguments));
        let why =
            format!("story {}, {via}, push {is_push}, older {is_there}, {more:?}: {}", self.seed, ended.said);
        assert_eq!(ended.status, Some(0), "{why}");
        assert_same(&from, &to, &why);
        self.wait_until_all_are_gone();
    }

    /// Leftovers of an earlier copy before the source changed: parts of each file, and of removed ones.
    fn plant_older(&mut self, at: &Path) {
        plant(at);
        fs::remove_dir_all(at.join("deep/er/est")).unwrap();
        fs::create_dir(at.join("gone")).unwrap();
        file(&at.join("gone/since"), b"removed at the source", 30);
        for number in 0..8 {
            let mut contents = noise(700_000 + number * 1_000, number as u64);
            let place = self.below(600_000) as usize;
            contents[place..place + 100].fill(0);
            file(&at.join(format!("{number}.bin")), &contents, 30 + number as u64);
        }
        let contents = noise(6_000_000, 99);
        let place = self.below(5_000_000) as usize;
        file(
            &at.join("large.bin"),
            &[&contents[..place], b"inserted", &contents[place + 400_000..]].concat(),
            40,
        );
    }

    fn arguments(&self, from: &Path, to: &Path, via: &str, is_push: bool, more: &[&str]) -> Vec<String> {
        // The contents of a folder: the same command means the same thing when its destination is there.
        let (from, to) = match is_push {
            true => (format!("{}/", path(from)), there(to)),
            false => (format!("{}/", there(from)), path(to).to_owned()),
        };
        let words = [&["-a", "--via", via], more].concat();
        words.into_iter().map(str::to_owned).chain([from, to]).collect()
    }

    /// A copy that is killed while it starts, on its way, or about its end.
    fn cut_off(&mut self, arguments: &[String]) {
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let mut child = self.sshd.cp_with(&self.program, &arguments).spawn().unwrap();
        let us = self.below(2_500_000);
        std::thread::sleep(Duration::from_micros(us));
        match self.below(6) {
            0 => kill(child.id()),
            1 => self.others().into_iter().for_each(kill),
            2 => of_parent(child.id()).into_iter().for_each(kill),
            3 => signal("-INT", child.id()),
            4 => self.black_out(&child, false),
            _ => self.black_out(&child, true),
        }
        self.has_ended(&mut child);
        let output = finish(child);
        let expected = matches!(output.status.code(), None | Some(0 | 1 | 3 | 130));
        assert!(expected, "story {}: {:?} {}", self.seed, output.status, text(&output.stderr));
        self.wait_until_all_are_gone();
    }

    /// This end gets no answer for a while. The copy continues afterwards, unless it is killed.
    fn black_out(&mut self, child: &Child, is_killed: bool) {
        let silent: Vec<_> = self.others().into_iter().chain(of_parent(child.id())).collect();
        silent.iter().for_each(|pid| stop(*pid));
        std::thread::sleep(Duration::from_millis(self.below(2_500)));
        if is_killed {
            kill(child.id());
        }
        silent.iter().for_each(|pid| go_on(*pid));
    }

    /// It notices within seconds, whichever side was killed.
    fn has_ended(&self, child: &mut Child) {
        wait_until(&format!("story {}: this end goes on for ever", self.seed), || {
            child.try_wait().unwrap().is_some()
        });
    }

    /// No process of the other end outlives this one.
    fn wait_until_all_are_gone(&self) {
        wait_until(&format!("story {}: the other end goes on for ever", self.seed), || {
            self.others().is_empty()
        });
    }

    /// The processes of the other end that still run.
    fn others(&self) -> Vec<u32> {
        let noted = fs::read_to_string(self.folder.path().join("pids")).unwrap_or_default();
        let runs = |pid: &u32| {
            let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let state = state.rsplit(')').next().and_then(|rest| rest.trim().chars().next());
            state.is_some_and(|state| state != 'Z')
        };
        noted.lines().filter_map(|pid| pid.parse().ok()).filter(runs).collect()
    }

    /// xorshift64.
    fn below(&mut self, end: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 16) % end
    }
}

fn kill(pid: u32) {
    send("-KILL", pid);
}

fn stop(pid: u32) {
    send("-STOP", pid);
}

fn go_on(pid: u32) {
    send("-CONT", pid);
}

/// It may have ended by itself.
fn send(signal: &str, pid: u32) {
    let _ =
        std::process::Command::new("sh").args(["-c", &format!("kill {signal} {pid} 2>/dev/null")]).status();
}

/// The processes that a process started: the `ssh`.
fn of_parent(parent: u32) -> Vec<u32> {
    let children = PathBuf::from(format!("/proc/{parent}/task/{parent}/children"));
    let children = fs::read_to_string(children).unwrap_or_default();
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}
