//! When samples were made: from a generator's clock over UDP into a recording, and played from there on another day.

use std::io::{BufRead, Read};
use std::net::UdpSocket;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use crate::support::remote_host::{Host, STEP_NS, STEPS, far_clock, near_clock};
use crate::support::{Good, Listener, run, text};
use grebe::flow::{UtcClock, clock_id, monotonic_ns};
use grebe::frame::Header;
use grebe::recording::{SampleFile, Segment};

/// Hands datagrams on to a receiver, but for the frames of these sequences.
struct Relay {
    address: String,
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Relay {
    fn start(to: String, without: std::ops::Range<u64>) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let address = socket.local_addr().unwrap().to_string();
        let is_over = Arc::new(AtomicBool::new(false));
        let ended = is_over.clone();
        let thread = thread::spawn(move || {
            let mut datagram = vec![0; 65_536];
            while !ended.load(Ordering::Relaxed) {
                let Ok(bytes) = socket.recv(&mut datagram) else { continue };
                let header = Header::parse(&datagram[..bytes]);
                if !header.is_ok_and(|header| without.contains(&header.sequence)) {
                    // The receiver may be gone once it has the end.
                    let _ = socket.send_to(&datagram[..bytes], &to);
                }
            }
        });
        Self { address, is_over, thread }
    }

    fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

fn segments(path: &Path) -> Vec<Segment> {
    SampleFile::open(path).unwrap().segments().to_vec()
}

#[test]
fn a_time_without_a_zone_is_read_as_utc_and_without_a_time_none_is_made_up() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).with_extension("sigmf-meta");
    let named = |path: &Path| path.to_str().unwrap().to_owned();
    for (name, time, expected) in [
        ("zone", Some("2020-01-02T03:04:05"), Some("2020-01-02T03:04:05.000000Z")),
        ("none", None, None),
        ("other", Some("yesterday"), None),
    ] {
        let from = place(name);
        let mut capture = serde_json::json!({"core:sample_start": 0});
        if let Some(time) = time {
            capture["core:datetime"] = time.into();
        }
        let global = serde_json::json!({"core:datatype": "ri16_le", "core:sample_rate": 1000, "core:version": "1.0.0"});
        let meta = serde_json::json!({"global": global, "captures": [capture], "annotations": []});
        std::fs::write(&from, meta.to_string()).unwrap();
        std::fs::write(from.with_extension("sigmf-data"), [0; 200]).unwrap();
        let (converted, recorded) = (place(&format!("{name}-converted")), place(&format!("{name}-recorded")));
        let said = run(&["convert", &named(&from), &named(&converted)]).good();
        let noted = text(&said.stderr).contains("core:datetime");
        assert_eq!(noted, time.is_some(), "{}", text(&said.stderr));
        let recorder = Listener::record(&recorded, &[]);
        run(&["play", &named(&from), "--to", &recorder.uri()]).good();
        assert_eq!(recorder.finish().0, Some(0));
        for file in [converted, recorded] {
            let meta: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
            assert_eq!(meta["captures"][0]["core:datetime"].as_str(), expected, "{}", file.display());
        }
    }
}

#[test]
fn a_played_recording_keeps_the_times_of_its_samples() {
    const RATE_HZ: u64 = 400_000;
    let folder = tempfile::tempdir().unwrap();
    let (first, again) = (folder.path().join("a.sigmf-meta"), folder.path().join("b.sigmf-meta"));
    let recorder = Listener::record(&first, &[]);
    let relay = Relay::start(recorder.address.clone(), 10..12);
    let before = SystemTime::now();
    let to = format!("udp://{}", relay.address);
    let sent = run(&[
        "sg",
        "--channels",
        "1",
        "--rate",
        "400k",
        "--samples",
        "30k",
        "--datagram-size",
        "1400",
        "--to",
        &to,
    ]);
    let after = SystemTime::now();
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    let (status, report, said) = recorder.finish();
    relay.end();
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(report["losses"]["network_frames"], 2, "{said}");
    let recorded = segments(&first);
    assert_eq!(recorded.len(), 2);
    let made = recorded[0].recorded_at.unwrap();
    assert!(before <= made && made <= after, "{made:?} is not between {before:?} and {after:?}");
    let knows_its_error = UtcClock::default().renewed(monotonic_ns()).unwrap().error_ns.is_some();
    assert_eq!(recorded[0].recorded_error_ns.is_some(), knows_its_error);
    // Behind the gap, to the microsecond that the file has: a tenth of a sample.
    let missing = recorded[1].first_sample_index - recorded[0].first_sample_index;
    let later = recorded[1].recorded_at.unwrap().duration_since(made).unwrap();
    let expected = Duration::from_nanos(missing * 1_000_000_000 / RATE_HZ);
    assert!(later.abs_diff(expected) <= Duration::from_micros(1), "{later:?} instead of {expected:?}");

    let recorder = Listener::record(&again, &[]);
    run(&["play", first.to_str().unwrap(), "--to", &recorder.uri(), "--speed", "3"]).good();
    let (status, _, said) = recorder.finish();
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(segments(&again), recorded, "not when they were played");
}

/// How far two values of the signal were made from each other.
fn apart_ns(one: i64, other: i64) -> u64 {
    let steps = (one - other).rem_euclid(STEPS as i64);
    steps.min(STEPS as i64 - steps) as u64 * STEP_NS
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "elsewhere the processes of a host have no clock in common")]
fn streams_of_two_hosts_whose_clocks_differ_are_recorded_on_one_time_axis() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let to = path("both.sigmf-meta");
    let arguments = ["record", "udp://127.0.0.1:0", "udp://127.0.0.1:0", to.to_str().unwrap(), "--json"];
    let (recorder, first, mut stderr) =
        crate::support::listening(&[&arguments[..], &["--duration", "2500ms"]].concat());
    let mut second = String::new();
    stderr.read_line(&mut second).unwrap();
    let second = second.trim().rsplit(' ').next().unwrap().to_owned();
    // The same signal at both; the second begins a moment later, as streams do.
    let near = Host::start(&first, near_clock());
    thread::sleep(Duration::from_millis(150));
    let far = Host::start(&second, far_clock());
    let output = crate::support::finish(recorder);
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    assert!(output.status.success(), "{said}");
    drop((near, far));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let (one, two) = (path("both_1.sigmf-meta"), path("both_2.sigmf-meta"));
    let (ours, of_second) = (format!("{:016x}", clock_id()), &told["recordings"][1]["axes"]);
    let stated = of_second.as_array().unwrap().iter().find(|axis| axis["clock"] == *ours).unwrap();
    assert!(stated["error_ns"].as_u64().is_some_and(|error_ns| error_ns > 0), "{told}");
    let mut files = [&one, &two].map(|path| SampleFile::open(path).unwrap());
    for file in &mut files {
        assert_eq!(file.gaps().count(), 0, "a new measurement is not a gap");
        let values = values(file).remove(0);
        for position in (0..values.len()).step_by(5_000) {
            let axis = file.axis_by(clock_id(), position as u64).unwrap();
            // The value says when it was, to a step.
            let off_ns = apart_ns((axis.ns as u64 / STEP_NS) as i64, values[position].into());
            assert!(off_ns <= axis.error_ns + 2 * STEP_NS, "sample {position}: {off_ns} ns off, {axis:?}");
        }
    }
    // In UTC it begins by this host's, also before that was measured: the far host takes the year 2001 for now.
    let since = SystemTime::now().duration_since(files[1].time_at(0).unwrap()).unwrap();
    assert!(since < Duration::from_secs(60), "{since:?}");
    let axis = files[1].axis_by(clock_id(), 0).unwrap();
    println!("{axis:?}, of {} segments", files[1].segments().len());
    let tied = path("both.sigmf-collection");
    assert_eq!(told["collection"].as_str(), tied.to_str());
    let mut both = SampleFile::open(&tied).unwrap();
    let values = values(&mut both);
    assert!(values[0].len() > 150_000, "{} samples of both", values[0].len());
    // To the end, however far apart their rates have brought the clocks by then.
    for (number, (&one, &other)) in values[0].iter().zip(&values[1]).enumerate() {
        let off_ns = apart_ns(one.into(), other.into());
        assert!(off_ns <= axis.error_ns + 3 * STEP_NS, "{one} beside {other} at {number}: {axis:?}");
    }
    let info = text(&run(&["info", two.to_str().unwrap()]).stdout);
    assert!(info.contains("time axis") && info.contains("(this host's)"), "{info}");
    let again = run(&["record", "synth:", "synth:", to.to_str().unwrap()]);
    assert!(text(&again.stderr).contains("exists already"), "{}", text(&again.stderr));
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "elsewhere the processes of a host have no clock in common")]
fn streams_of_two_hosts_whose_clocks_differ_are_shown_on_one_time_axis() {
    let folder = tempfile::tempdir().unwrap();
    let png = folder.path().join("both.png");
    for mode in ["auto", "roll"] {
        // Beside a heavy load nothing may have come by then of a stream, or of the other clock.
        let seen = (0..10).any(|_| are_shown_at_one_moment(png.to_str().unwrap(), mode));
        assert!(seen, "never were samples of both there, and their clocks known ({mode})");
    }
}

/// Looks at two hosts; whether both were there to be compared.
fn are_shown_at_one_moment(png: &str, mode: &str) -> bool {
    // Ports that were free a moment ago.
    let ports = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    let [first, second] = ports.map(|socket| socket.local_addr().unwrap().to_string());
    let hosts = [Host::start(&first, near_clock()), Host::start(&second, far_clock())];
    let [first, second] = [first, second].map(|address| format!("udp://{address}"));
    let arguments = ["view", &first, &second, "--png", png, "--json", "--no-session"];
    let output = run(&[&arguments[..], &["--span", "50ms", "--trigger", mode]].concat());
    drop(hosts);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(shown.len(), 2);
    let ours = format!("{:016x}", clock_id());
    let mut lefts = Vec::new();
    for stream in &shown {
        let axis = stream["axes"].as_array().unwrap().iter().find(|axis| axis["clock"] == *ours);
        let [min, max] = ["min", "max"].map(|key| stream["channels"][0][key].as_f64());
        let (Some(axis), Some(min), Some(max)) = (axis, min, max) else { return false };
        let (ns, error_ns) = (axis["ns"].as_u64().unwrap(), axis["error_ns"].as_u64().unwrap());
        // Unless the signal restarts or has a gap, the left edge has its lowest value.
        if max - min < 6_000.0 && stream["lost_samples"] == 0 {
            let off_ns = apart_ns((ns / STEP_NS) as i64, min as i64);
            assert!(off_ns <= error_ns + 3 * STEP_NS, "{off_ns} ns off: {stream}");
        }
        lefts.push((ns, error_ns));
    }
    assert!(lefts[1].1 > 0, "the far clock was measured");
    // Edges are those of columns, 1,180 of them.
    let apart_ns = lefts[0].0.abs_diff(lefts[1].0);
    assert!(apart_ns <= 2 * 50_000_000 / 1_000, "{apart_ns} ns between the left edges, {mode}");
    true
}

/// All samples of a file, by channel.
fn values(file: &mut SampleFile) -> Vec<Vec<i16>> {
    let mut bytes = Vec::new();
    file.read(0, file.len_samples() as usize, &mut bytes).unwrap();
    let samples: Vec<i16> = bytes.chunks_exact(2).map(|two| i16::from_le_bytes([two[0], two[1]])).collect();
    samples.chunks_exact(file.len_samples() as usize).map(<[i16]>::to_vec).collect()
}

/// A host as a network namespace at the other end of a wire. Only root can make one.
#[cfg(target_os = "linux")]
struct Wire {
    namespace: String,
    /// Of this end.
    address: String,
}

#[cfg(target_os = "linux")]
impl Wire {
    /// `Err`: the reason why this machine cannot make it.
    fn make() -> Result<Self, String> {
        let ip = |arguments: &str| {
            let made = std::process::Command::new("ip").args(arguments.split(' ')).output();
            match made {
                Ok(made) if made.status.success() => Ok(()),
                Ok(made) => Err(text(&made.stderr)),
                Err(error) => Err(format!("no ip: {error}")),
            }
        };
        let (id, subnet) = (std::process::id(), std::process::id() % 250);
        let wire = Self { namespace: format!("grtime{id}"), address: format!("10.213.{subnet}.1") };
        let Self { namespace, address } = &wire;
        ip(&format!("netns add {namespace}"))?;
        ip(&format!("link add grt{id} type veth peer name eth0 netns {namespace}"))?;
        ip(&format!("addr add {address}/24 dev grt{id}"))?;
        ip(&format!("link set grt{id} up"))?;
        ip(&format!("-n {namespace} addr add 10.213.{subnet}.2/24 dev eth0"))?;
        ip(&format!("-n {namespace} link set eth0 up"))?;
        let shifts = ["-T", "--monotonic", "37", "--fork", "true"];
        match std::process::Command::new("unshare").args(shifts).output() {
            Ok(shifted) if shifted.status.success() => Ok(wire),
            Ok(shifted) => Err(text(&shifted.stderr)),
            Err(error) => Err(format!("no unshare: {error}")),
        }
    }
}

#[cfg(target_os = "linux")]
impl Drop for Wire {
    fn drop(&mut self) {
        let _ = std::process::Command::new("ip").args(["netns", "del", &self.namespace]).output();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_sender_with_another_monotonic_clock_is_measured_over_the_wire() {
    const SHIFT_NS: i64 = 37_000_000_000;
    let wire = match Wire::make() {
        Ok(wire) => wire,
        Err(why) => return println!("skipped: {why}"),
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("far.sigmf-meta");
    let listen = format!("udp://{}:0", wire.address);
    let (recorder, address, _stderr) =
        crate::support::listening(&["record", &listen, file.to_str().unwrap(), "--json"]);
    let before_ns = monotonic_ns();
    std::process::Command::new("ip")
        .args(["netns", "exec", &wire.namespace, "unshare", "-T", "--monotonic", "37", "--fork"])
        .args([env!("CARGO_BIN_EXE_grebe"), "sg", "--channels", "1", "--rate", "100k", "--samples", "150k"])
        .args(["--to", &format!("udp://{address}")])
        .output()
        .unwrap()
        .good();
    crate::support::finish(recorder).good();
    let after_ns = monotonic_ns();
    let file = SampleFile::open(&file).unwrap();
    let ours = file.axis_by(clock_id(), 0).expect("it was measured");
    let within = before_ns as i64 - ours.error_ns as i64..after_ns as i64 + ours.error_ns as i64;
    assert!(within.contains(&ours.ns), "{ours:?} is not in {within:?}");
    for theirs in file.axis_clocks().into_iter().filter(|clock| *clock != clock_id()) {
        let theirs = file.axis_by(theirs, 0).unwrap();
        let off_ns = (theirs.ns - ours.ns).abs_diff(SHIFT_NS);
        println!("{off_ns} ns off, of {} at most", ours.error_ns);
        assert!(off_ns <= ours.error_ns, "{theirs:?} by their clock, {ours:?} by ours");
    }
}
