//! The radio of the tests: a SoapySDR module, compiled from `module.cpp` if this machine has the tools.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

use grebe::frame::Complex;
use grebe::recording::SampleFile;
use serde_json::Value;

use crate::support::{Good, finish, grebe, text};

/// The folder of the module, made once; `None`, with a message, if this machine cannot compile it.
pub(crate) fn module() -> Option<&'static Path> {
    static MODULE: OnceLock<Result<PathBuf, &'static str>> = OnceLock::new();
    let made = MODULE.get_or_init(|| {
        let preprocessed = Command::new("g++")
            .args(["-x", "c++", "-E", "-include", "SoapySDR/Device.hpp", "/dev/null"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        match preprocessed {
            Err(_) => return Err("no g++ to make a SoapySDR module with"),
            Ok(status) if !status.success() => {
                return Err("no libsoapysdr-dev to make a SoapySDR module with");
            }
            Ok(_) => {}
        }
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command/soapy/module.cpp");
        let mut hasher = DefaultHasher::new();
        fs::read(&source).unwrap().hash(&mut hasher);
        let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let folder = tmp.join(format!("soapy-{:016x}", hasher.finish()));
        let module = folder.join("libgrebe_testSupport.so");
        if module.exists() {
            return Ok(folder);
        }
        // Other processes may compile it too, so it is renamed when complete.
        let part = tmp.join(format!("soapy-{}.part", std::process::id()));
        Command::new("g++")
            .args(["-std=c++17", "-O1", "-Wall", "-Wextra", "-shared", "-fPIC"])
            .arg(source)
            .arg("-o")
            .arg(&part)
            .arg("-lSoapySDR")
            .output()
            .unwrap()
            .good();
        fs::create_dir_all(&folder).unwrap();
        fs::rename(part, module).unwrap();
        Ok(folder)
    });
    match made {
        Ok(folder) => Some(folder),
        Err(why) => {
            println!("skipped: {why}");
            None
        }
    }
}

/// The command, which finds the module.
pub(crate) fn with_radio(arguments: &[&str]) -> Command {
    let mut command = grebe(arguments);
    command.env("SOAPY_SDR_PLUGIN_PATH", module().expect("asked for before")).stdout(Stdio::piped());
    command.stderr(Stdio::piped());
    command
}

/// Runs it to its end.
pub(crate) fn run(arguments: &[&str]) -> Output {
    finish(with_radio(arguments).spawn().unwrap())
}

/// Starts `grebe record URI FILE --samples N --json`.
pub(crate) fn start_recording(uri: &str, file: &Path, samples: &str) -> Child {
    with_radio(&["record", uri, file.to_str().unwrap(), "--samples", samples, "--json"]).spawn().unwrap()
}

/// Records to the end, which must succeed: its report and its messages.
pub(crate) fn record(uri: &str, file: &Path, samples: &str) -> (Value, String) {
    let output = finish(start_recording(uri, file, samples));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{uri}: {said}");
    (serde_json::from_slice(&output.stdout).unwrap(), said)
}

/// The numbers of the samples of one channel, and which channel it is, of samples of 16 bits.
pub(crate) fn counted(file: &mut SampleFile, channel: usize) -> Vec<(u64, i16)> {
    let length = file.len_samples() as usize;
    let block = file.block(0, length).unwrap();
    let samples = block.channel::<Complex<i16>>(channel).unwrap();
    let number = |it: &Complex<i16>| ((it.re as u64) | ((it.im & 0x1ff) as u64) << 15, it.im >> 9);
    samples.iter().map(number).collect()
}

/// Settings that the module recorded, in order.
pub(crate) fn calls(file: &Path) -> Vec<String> {
    fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect()
}
