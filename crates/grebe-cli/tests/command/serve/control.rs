//! Rights of the second link, which `--control` prints.

use super::served::{say, serve, until};

#[test]
fn only_the_control_link_permits_to_change_the_source() {
    let mut served = serve(&["synth:sine?rate=1M&frequency=1k", "--control"]);
    let control = served.control.clone().unwrap();
    assert_ne!(control, served.token);
    let mut looks = served.socket();
    say(&mut looks, &served.hello()).unwrap();
    let welcome = until(&mut looks, "welcome");
    assert!(welcome.contains(r#""may_control":false"#) && welcome.contains("square"), "{welcome}");
    say(&mut looks, r#"{"viewport":{"number":1,"columns":100,"span":0.01}}"#).unwrap();
    say(&mut looks, r#"{"control":{"rate":500000}}"#).unwrap();
    let refused = until(&mut looks, "said");
    assert!(refused.contains("--control"), "{refused}");
    say(&mut looks, r#"{"control":{"keep":{"number":7}}}"#).unwrap();
    let refused = until(&mut looks, "kept");
    assert!(refused.contains("not done") && refused.contains("--control"), "{refused}");

    let mut controls = served.socket();
    say(&mut controls, &served.hello().replace(&served.token, &control)).unwrap();
    assert!(until(&mut controls, "welcome").contains(r#""may_control":true"#));
    say(&mut controls, r#"{"control":{"rate":2000000}}"#).unwrap();
    served.says("requests the generator at 2000000 samples a second");
    until(&mut looks, r#""rate_hz":2000000.0"#);
    say(&mut controls, r#"{"control":{"wave":"cube"}}"#).unwrap();
    assert!(until(&mut controls, "said").contains("cube"));
    say(&mut controls, r#"{"control":{"keep":{"number":8}}}"#).unwrap();
    assert!(until(&mut controls, "kept").contains("--ring DIR"));
    // An invalid request closes only its sender.
    say(&mut controls, r#"{"control":{"format":"the disk"}}"#).unwrap();
    until(&mut controls, "refused");
    say(&mut looks, r#"{"control":"pause"}"#).unwrap();
    until(&mut looks, "said");
}

#[test]
#[cfg(target_os = "linux")]
fn the_control_link_permits_saves_of_the_ring() {
    use std::fs;
    use std::process::Stdio;
    use std::time::{Duration, Instant};

    use crate::support::{Killed, grebe};

    let start = |arguments: &[&str]| {
        Killed(grebe(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let ring = folder.path().to_str().unwrap();
    let stream = format!("shm://held-{}", std::process::id());
    let _generator = start(&["sg", "--to", &stream, "--rate", "1M"]);
    let served = serve(&[&stream, "--control", "--last", "300ms"]);
    let mut controls = served.socket();
    say(&mut controls, &served.hello().replace(&served.token, served.control.as_ref().unwrap())).unwrap();
    assert!(until(&mut controls, "welcome").contains("the last 300 ms"));
    say(&mut controls, r#"{"viewport":{"number":1,"columns":100,"span":0.01}}"#).unwrap();
    say(&mut controls, r#"{"control":{"keep":{"number":1}}}"#).unwrap();
    let said = until(&mut controls, "kept");
    assert!(said.contains(&format!("no process there records a ring of {stream}")), "{said}");
    let _recorder = start(&["record", &stream, ring, "--ring", "16M"]);
    let names =
        || fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
    while !names().any(|name| name.ends_with(".sigmf-meta") && !name.starts_with('.')) {
        std::thread::sleep(Duration::from_millis(20));
    }
    // The recorder reports when it has time.
    let began = Instant::now();
    let said = loop {
        say(&mut controls, r#"{"control":{"keep":{"number":2}}}"#).unwrap();
        let said = until(&mut controls, "kept");
        if !said.contains("no process there records") || began.elapsed() > Duration::from_secs(50) {
            break said;
        }
    };
    assert!(said.contains(ring), "{said}");
    assert!(names().any(|name| name.starts_with("save_") && name.ends_with(".sigmf-meta")), "{said}");
}
