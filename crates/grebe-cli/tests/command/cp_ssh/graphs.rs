//! A graph whose stages are behind a real `sshd`.

use std::fs;
use std::process::Stdio;

use super::sshd::Sshd;
use crate::support::{finish, grebe, signal, text, wait_until};

#[test]
fn one_ctrl_c_ends_a_graph_on_hosts_reached_by_ssh() {
    let Some(sshd) = Sshd::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let graph = r#"
        stage = [
            { id = "adc", kind = "synth", host = "lab", params = { rate = "200k", latency = "20ms" } },
            { id = "far", kind = "record", host = "store", params = { file = 'FOLDER/far.sigmf-meta' } },
            { id = "near", kind = "record", params = { file = 'FOLDER/near.sigmf-meta' } },
        ]
        edge = [{ from = "adc", to = "far" }, { from = "adc", to = "near" }]
    "#;
    fs::write(at("lab.toml"), graph.replace("FOLDER", folder.path().to_str().unwrap())).unwrap();
    let (ssh, file) = (sshd.ssh(), at("lab.toml"));
    let own = ["run", file.to_str().unwrap(), "--no-config", "--ssh", &ssh, "--remote-path"];
    let mut command = grebe(&[&own[..], &[env!("CARGO_BIN_EXE_grebe")]].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let data = |name: &str| fs::read(at(name)).unwrap_or_default();
    wait_until("nothing came", || data("far.sigmf-data").len().min(data("near.sigmf-data").len()) >= 50_000);
    signal("-INT", child.id());
    let output = finish(child);
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    let (far, near) = (data("far.sigmf-data"), data("near.sigmf-data"));
    assert!(far == near, "{} bytes there, {} here", far.len(), near.len());
    assert!(at("far.sigmf-meta").is_file() && at("near.sigmf-meta").is_file());
}

#[test]
fn a_killed_host_of_a_graph_is_restarted_by_ssh() {
    let Some(sshd) = Sshd::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let graph = r#"
        stage = [
            { id = "adc", kind = "synth", host = "lab", params = { rate = "200k", latency = "20ms" } },
            { id = "near", kind = "record", params = { file = 'FOLDER/near.sigmf-meta' } },
        ]
        edge = [{ from = "adc", to = "near" }]
        host = [{ name = "lab", restart = "always" }]
    "#;
    fs::write(at("lab.toml"), graph.replace("FOLDER", folder.path().to_str().unwrap())).unwrap();
    let pid = at("pid");
    let script = format!(
        "echo $$ > {0}.new && mv {0}.new {0}\nexec {1} \"$@\"",
        pid.display(),
        env!("CARGO_BIN_EXE_grebe")
    );
    let (ssh, file, there) = (sshd.ssh(), at("lab.toml"), sshd.script("there.sh", &script));
    let own = ["run", file.to_str().unwrap(), "--no-config", "--ssh", &ssh, "--remote-path", &there];
    let child = grebe(&own).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let length = || fs::metadata(at("near.sigmf-data")).map_or(0, |it| it.len());
    let id = || fs::read_to_string(&pid).unwrap_or_default().trim().parse::<u32>().unwrap_or(0);
    for kills in 0..3 {
        let before = length();
        wait_until("nothing came", || length() >= before + 50_000);
        let killed = id();
        if kills < 2 {
            signal("-KILL", killed);
        }
        wait_until("it is not started again", || kills >= 2 || id() != killed);
    }
    signal("-INT", child.id());
    let output = finish(child);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert_eq!(said.matches("lab is back after").count(), 2, "{said}");
}
