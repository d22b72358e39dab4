//! Names that Zenoh announces.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Killed, data, example, finish, free_port, grebe, run, signal, text, wait_until};

/// Ends with the test.
pub(crate) struct Running(Option<Child>, BufReader<ChildStderr>, String);

impl Running {
    fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = grebe(arguments);
        command.envs(environment.iter().copied());
        Self::of(command)
    }

    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self(Some(child), stderr, String::new())
    }

    /// Reads on until it has said this.
    pub(crate) fn says(self, words: &str) -> Self {
        self.says_times(words, 1)
    }

    /// Reads until this message has come this many times.
    fn says_times(mut self, words: &str, times: usize) -> Self {
        while self.2.matches(words).count() < times {
            assert!(self.1.read_line(&mut self.2).unwrap() > 0, "not {times} times '{words}' in: {}", self.2);
        }
        self
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(name, self.0.as_ref().unwrap().id());
    }

    pub(crate) fn finish(mut self) -> (Output, String) {
        let output = finish(self.0.take().unwrap());
        self.1.read_to_string(&mut self.2).unwrap();
        (output, std::mem::take(&mut self.2))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Another one for each test, and each run of it.
fn name(of: &str) -> String {
    format!("test-{}/{of}/adc", std::process::id())
}

fn listed(name: &str) -> Option<serde_json::Value> {
    let output = run(&["ls", name, "--json"]);
    let found: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    found.into_iter().find(|it| it["channels"].as_u64() > Some(0))
}

/// Waits until the list says so.
fn await_list(name: &str, is_there: bool) -> Option<serde_json::Value> {
    let began = Instant::now();
    loop {
        let found = listed(name);
        if found.is_some() == is_there {
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{name}: {found:?}");
    }
}

fn metadata(file: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

#[test]
#[cfg_attr(not(feature = "zenoh"), ignore = "built without Zenoh")]
fn a_picture_of_a_name_that_nobody_announces_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let (name, picture) = (name("nobody"), folder.path().join("x.png"));
    let output = run(&["view", &name, "--png", picture.to_str().unwrap()]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("no producer announces {name}")) && !picture.exists(), "{said}");
}

#[test]
#[cfg_attr(not(feature = "zenoh"), ignore = "built without Zenoh")]
fn a_named_stream_is_listed_and_read_by_the_best_way_or_the_one_that_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let (name, memory) = (name("ways"), format!("shm://lab-ways-{}", std::process::id()));
    let sg = ["sg", "--rate", "100k", "--channels", "2", "--name", &name, "--to", &memory];
    let producer = Running::start(&sg, &[]).says("announced as");
    let found = await_list(&name, true).unwrap();
    assert_eq!((found["format"].as_str(), found["channels"].as_u64()), (Some("i16"), Some(2)));
    assert_eq!((found["sample_rate_hz"].as_f64(), found["command"].as_str()), (Some(1e5), Some("sg")));
    assert_eq!(found["ways"].as_array().unwrap().len(), 2, "{found}");
    let ways: &[(&str, &str)] = if cfg!(target_os = "linux") {
        &[("", &memory), ("?route=shm", &memory), ("?route=zenoh", "zenoh://grebe/data/")]
    } else {
        &[("?route=zenoh", "zenoh://grebe/data/")]
    };
    for (way, by) in ways {
        let file = folder.path().join(format!("{}.sigmf-meta", way.len()));
        let from = format!("{name}{way}");
        let output = run(&["record", &from, file.to_str().unwrap(), "--samples", "20k", "--json"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(said.contains(&format!(" by {by}")), "{said}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["samples"].as_u64(), Some(20_000), "{report}");
    }
    let output = run(&[
        "record",
        &format!("{name}?route=udp"),
        folder.path().join("x.sigmf-meta").to_str().unwrap(),
        "--no-udp-on-request",
    ]);
    assert!(text(&output.stderr).contains("cannot be read by udp"), "{}", text(&output.stderr));
    let output = run(&["sg", "--name", &name, "--samples", "10"]);
    assert!(text(&output.stderr).contains("is announced already, by "), "{}", text(&output.stderr));
    producer.signal("-INT");
    let (output, said) = producer.finish();
    assert_eq!(output.status.code(), Some(130), "{said}");
    await_list(&name, false);
}

#[cfg(target_os = "linux")]
#[test]
#[cfg_attr(not(feature = "zenoh"), ignore = "built without Zenoh")]
fn a_sender_that_waits_for_a_reader_is_found_by_its_name_and_so_is_what_somebody_records() {
    let folder = tempfile::tempdir().unwrap();
    let (sent, recorded) = (name("waits"), name("recorded"));
    let memory = format!("shm://lab-waits-{}?wait=1", std::process::id());
    let producer =
        Running::start(&["sg", "--rate", "100k", "--name", &sent, "--to", &memory], &[]).says("announced as");
    let file = folder.path().join("first.sigmf-meta");
    let arguments = ["record", &sent, file.to_str().unwrap(), "--name", &recorded, "--json"];
    let recorder = Running::start(&arguments, &[]).says(" by shm://");
    let found = await_list(&recorded, true).unwrap();
    assert_eq!((found["command"].as_str(), found["channels"].as_u64()), (Some("record"), Some(1)));
    let again = folder.path().join("second.sigmf-meta");
    let output = run(&["record", &recorded, again.to_str().unwrap(), "--samples", "20k"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(data(&again).len(), 40_000);
    producer.signal("-INT");
    producer.finish();
    let (output, said) = recorder.finish();
    assert_eq!(output.status.code(), Some(0), "{said}");
    // Its name does not keep a recorder going that is done.
    let short = folder.path().join("short.sigmf-meta");
    let arguments = ["--duration", "100ms", "--name", &recorded];
    let arguments =
        [&["record", "synth:sine?rate=100k&channels=1", short.to_str().unwrap()][..], &arguments].concat();
    assert_eq!(run(&arguments).status.code(), Some(0));
    assert_eq!(data(&short).len(), 20_000);
    let first = &metadata(&file)["captures"][0];
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let late = first["core:global_index"].as_u64().unwrap_or(0);
    assert!(
        report["losses"]["generator_samples"].as_u64() >= Some(late),
        "the first sample waited for its reader: {first}"
    );
}

#[test]
#[cfg_attr(not(feature = "zenoh"), ignore = "built without Zenoh")]
fn counters_of_processes_are_listed_by_stream_and_vanish_with_them() {
    let folder = tempfile::tempdir().unwrap();
    let (name, file) = (name("counts"), folder.path().join("came.sigmf-meta"));
    let producer = Running::start(&["sg", "--rate", "100k", "--name", &name], &[]).says("announced as");
    let recorder = Running::start(&["record", &name, file.to_str().unwrap()], &[]).says(" by zenoh://");
    let shown = |pattern: &str| -> Vec<serde_json::Value> {
        let output = run(&["top", pattern, "--once", "--json"]);
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let await_shown = |is_so: &dyn Fn(&[serde_json::Value]) -> bool| {
        let began = Instant::now();
        loop {
            let shown = shown(&name);
            if is_so(&shown) {
                return shown;
            }
            assert!(began.elapsed() < Duration::from_secs(30), "{shown:?}");
        }
    };
    let both = await_shown(&|shown| {
        shown.len() == 2 && shown.iter().all(|it| it["interval_s"].as_f64() > Some(0.0))
    });
    let mut names: Vec<&str> = both.iter().filter_map(|it| it["name"].as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["record", "sg"]);
    for one in &both {
        assert_eq!(one["streams"], serde_json::json!([name]), "{one}");
        assert!(one["host"].as_str().is_some_and(|host| !host.is_empty()), "{one}");
        assert!(one["stages"].as_array().is_some_and(|stages| stages.len() >= 2), "{one}");
    }
    let table = text(&run(&["top", &name, "--once"]).stdout).to_owned();
    assert!(table.contains("running for") && table.contains(&name) && table.contains(" on "), "{table}");
    producer.signal("-KILL");
    await_shown(&|shown| shown.len() == 1 && shown[0]["name"] == "record");
    drop(recorder);
    let output = run(&["top", &name, "--once"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("no process reports counters"), "{}", text(&output.stderr));
}

#[test]
#[cfg_attr(not(feature = "zenoh"), ignore = "built without Zenoh")]
fn a_recording_comes_over_zenoh_as_it_was_sent() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("came.sigmf-meta");
    let key = format!("zenoh://test/{}/ecg", std::process::id());
    let record = Running::start(&["record", &key, file.to_str().unwrap(), "--json"], &[]);
    let ecg = example("ecg.sigmf-meta");
    let output =
        run(&["play", ecg.to_str().unwrap(), "--to", &format!("{key}?wait&policy=block"), "--speed", "1000"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let (output, said) = record.finish();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(data(&file), data(&ecg));
    let of = |file: &Path| {
        let lead = metadata(file)["global"]["grebe:channels"][0].clone();
        ["name", "unit", "scale"].map(|key| lead[key].clone())
    };
    assert_eq!(of(&file), of(&ecg), "what the stream is has come, too");
}

#[test]
#[cfg_attr(not(feature = "zenoh"), ignore = "built without Zenoh")]
fn a_killed_producer_disappears_and_continues_after_a_mark_when_it_returns() {
    let folder = tempfile::tempdir().unwrap();
    let (name, file) = (name("returns"), folder.path().join("came.sigmf-meta"));
    let first = Running::start(&["sg", "--rate", "10k", "--name", &name], &[]).says("announced as");
    let record =
        Running::start(&["record", &name, file.to_str().unwrap(), "--json"], &[]).says(" by zenoh://");
    wait_until("nothing is recorded", || file.exists());
    first.signal("-KILL");
    await_list(&name, false);
    let again = Running::start(&["sg", "--rate", "10k", "--name", &name], &[]);
    // The new route is reported before samples come.
    let record = record.says_times(" by zenoh://", 2);
    wait_until("nothing more is recorded", || metadata(&file)["captures"].as_array().unwrap().len() >= 2);
    again.signal("-INT");
    let (output, said) = again.finish();
    assert_eq!(output.status.code(), Some(130), "{said}");
    let (output, said) = record.finish();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let meta = metadata(&file);
    let labels: Vec<&str> = meta["annotations"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["core:label"].as_str().or(it["core:comment"].as_str()))
        .collect();
    assert!(labels.iter().any(|label| label.contains("the sender began again")), "{meta}");
    assert_eq!(meta["captures"].as_array().unwrap().len(), 2, "{meta}");
}

#[test]
#[cfg_attr(not(feature = "zenoh"), ignore = "built without Zenoh")]
fn without_an_end_a_key_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("came.sigmf-meta");
    let key = format!("zenoh://test/{}/gone", std::process::id());
    let record = Running::start(&["record", &key, file.to_str().unwrap()], &[]);
    let producer = Running::start(&["sg", "--rate", "10k", "--to", &format!("{key}?wait")], &[]);
    wait_until("nothing is recorded", || file.exists());
    producer.signal("-KILL");
    let (output, said) = record.finish();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("its producer is gone"), "{said}");
    assert!(!data(&file).is_empty(), "what came is good");
}

#[test]
#[cfg_attr(not(feature = "zenoh"), ignore = "built without Zenoh")]
fn all_data_passes_through_a_given_router() {
    let folder = tempfile::tempdir().unwrap();
    let free = format!("127.0.0.1:{}", free_port());
    let config = folder.path().join("router.json5");
    let text_of = format!(
        "{{ mode: 'router', listen: {{ endpoints: ['tcp/{free}'] }}, scouting: {{ multicast: {{ enabled: false }} }} }}"
    );
    std::fs::write(&config, text_of).unwrap();
    let router = format!("tcp/{free}");
    let output = run(&["ls", "--router", &router]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains(&format!("cannot join the lab by the router {router}")),
        "{}",
        text(&output.stderr)
    );
    // A session in the mode of a router is what zenohd is.
    let _router = Running::start(&["ls", "-w", "--zenoh", config.to_str().unwrap()], &[]).says("watching");
    let name = name("router");
    let environment = [("GREBE_ROUTER", router.as_str())];
    let producer =
        Running::start(&["sg", "--rate", "100k", "--name", &name], &environment).says("announced as");
    assert_eq!(listed(&name), None, "it is not seen beside the router");
    let file = folder.path().join("came.sigmf-meta");
    let output = run(&["record", &name, file.to_str().unwrap(), "--samples", "20k", "--router", &router]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(data(&file).len(), 40_000, "{said}");
    drop(producer);
}

/// The two configurations of docs/zenoh-router.md with the paths of a test, its certificates, and users.
struct Site {
    folder: tempfile::TempDir,
    port: u16,
}

impl Site {
    /// `None` with a note if openssl is missing.
    fn make() -> Option<Self> {
        let page =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/zenoh-router.md"));
        let page = page.unwrap();
        let block = |language: &str, number: usize| {
            let fence = format!("```{language}\n");
            page.split(&fence).nth(number).unwrap().split("```").next().unwrap().to_owned()
        };
        let folder = tempfile::tempdir().unwrap();
        let commands = page.split("```sh\n").find(|block| block.starts_with("openssl")).unwrap();
        let commands = commands.split("```").next().unwrap();
        let run = Command::new("sh").arg("-ec").arg(commands).current_dir(&folder).output();
        match run {
            Ok(output) if output.status.success() => {}
            output => {
                println!("skipped: no openssl that makes certificates: {output:?}");
                return None;
            }
        }
        let site = Self { folder, port: free_port() };
        site.write("users", "mast:rain\nlook:sun\ndeaf:rain\n");
        // And one who may ask, but not receive.
        let deaf = r#"{ id: "ask", permission: "allow", flows: ["ingress"], key_exprs: ["grebe/**"],
            messages: ["declare_liveliness_subscriber", "liveliness_query", "query"] }, { id: "look""#;
        let router = site.here(&block("json5", 1)).replace(r#"{ id: "look""#, deaf);
        let router = router.replace("subjects: [ {", r#"subjects: [ { id: "deaf", usernames: ["deaf"] }, {"#);
        let router =
            router.replace("policies: [", r#"policies: [ { rules: ["ask", "see"], subjects: ["deaf"] },"#);
        assert_eq!(router.matches("deaf").count(), 3, "{router}");
        site.write("router.json5", &router);
        for (user, password) in [("mast", "rain"), ("look", "sun"), ("deaf", "rain"), ("stranger", "rain")] {
            let text = site.here(&block("json5", 2)).replace("user: \"mast\"", &format!("user: \"{user}\""));
            let text = text.replace("password: \"...\"", &format!("password: \"{password}\""));
            site.write(&format!("{user}.json5"), &text);
        }
        Some(site)
    }

    fn here(&self, text: &str) -> String {
        text.replace("/etc/lab", self.folder.path().to_str().unwrap())
            .replace("0.0.0.0:7447", &format!("127.0.0.1:{}", self.port))
            .replace("lab-server:7447", &format!("localhost:{}", self.port))
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.folder.path().join(file), text).unwrap();
    }

    fn path(&self, file: &str) -> String {
        self.folder.path().join(file).to_str().unwrap().to_owned()
    }

    /// zenohd where ZENOHD names one, and else a session in the mode of a router, which is the same code.
    fn router(&self) -> Killed {
        let config = self.path("router.json5");
        let mut command = match std::env::var_os("ZENOHD") {
            Some(zenohd) => {
                println!("by {}", zenohd.display());
                let mut command = Command::new(zenohd);
                command.args(["-c", &config]);
                command
            }
            None => grebe(&["ls", "-w", "--zenoh", &config]),
        };
        let child = Killed(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        wait_until("no router", || std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok());
        child
    }
}

#[test]
#[cfg_attr(not(feature = "zenoh"), ignore = "built without Zenoh")]
fn a_user_without_permission_is_refused_with_the_reason() {
    let Some(site) = Site::make() else { return };
    let _router = site.router();
    let (mast, look) = (site.path("mast.json5"), site.path("look.json5"));
    let name = name("rights");
    let fails = |arguments: &[&str], words: &str| {
        let output = run(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains(words) && !said.contains(".rs"), "{arguments:?}: {said}");
    };
    // Nobody gets in without the right password, or to a router with another's certificate.
    fails(&["ls", "--zenoh", &site.path("stranger.json5")], "does not know this user and password");
    fails(&["ls", "--router", &format!("tls/localhost:{}", site.port)], "its certificate is not accepted");
    // A mast announces and sends, and who looks finds it and reads.
    let sg = ["sg", "--rate", "100k", "--name", &name, "--zenoh", &mast];
    let producer = Running::start(&sg, &[]).says("announced as");
    let output = run(&["ls", &name, "--zenoh", &look]);
    assert!(text(&output.stdout).contains(&name), "{}", text(&output.stderr));
    let file = site.path("came.sigmf-meta");
    let output = run(&["record", &name, &file, "--samples", "20k", "--zenoh", &look]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(data(Path::new(&file)).len(), 40_000);
    drop(producer);
    // A reader without access rights gets the reason why nothing arrives.
    let unheard = format!("{name}/deaf");
    let sg = ["sg", "--rate", "100k", "--name", &unheard, "--zenoh", &mast];
    let producer = Running::start(&sg, &[]).says("announced as");
    let file = site.path("nothing.sigmf-meta");
    let deaf = site.path("deaf.json5");
    let reader = Running::start(&["record", &unheard, &file, "--zenoh", &deaf], &[])
        .says("although its producer sends");
    drop((reader, producer));
    // A reader must not announce, and a key without a rule is denied.
    fails(
        &["sg", "--rate", "100k", "--name", "test/forbidden", "--zenoh", &look],
        "does not let this user announce it",
    );
    fails(
        &["sg", "--rate", "100k", "--to", "zenoh://other/key", "--zenoh", &mast],
        "does not let this user send its samples",
    );
    let output = run(&["ls", "nothing", "--zenoh", &look]);
    assert_eq!(output.status.code(), Some(0), "an empty list is not an error");
    assert!(text(&output.stderr).contains("may hide streams"), "{}", text(&output.stderr));
}
