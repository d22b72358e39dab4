//! What tells a generator what to make: from the scope's controls to `GIC2` commands, and back.

use std::io::Read as _;
use std::sync::{Mutex, PoisonError};

use grebe_stages::{Error, GeneratorCommand, SynthRemote, WaveName};
use grebe_view::{GeneratorRemote, GeneratorWish};

use crate::interrupt;
use crate::output::note;

/// A generator in this process.
pub(crate) fn remote_of(synth: SynthRemote) -> GeneratorRemote {
    let synth = Mutex::new(synth);
    remote(move |command| {
        let mut synth = synth.lock().unwrap_or_else(PoisonError::into_inner);
        synth.obey(command).map_err(|error| error.to_string())
    })
}

/// What the scope's controls call; `obey` passes a command on.
pub(super) fn remote(
    obey: impl Fn(GeneratorCommand) -> Result<(), String> + Send + 'static,
) -> GeneratorRemote {
    let tell = move |wish| {
        obey(match wish {
            GeneratorWish::Rate(rate_hz) => GeneratorCommand::Rate(rate_hz),
            GeneratorWish::TogglePause => GeneratorCommand::TogglePause,
            GeneratorWish::Wave(name) => {
                GeneratorCommand::Wave(name.parse().map_err(|error: Error| error.to_string())?)
            }
        })
    };
    GeneratorRemote { waves: WaveName::ALL.iter().map(|wave| wave.name()).collect(), tell: Box::new(tell) }
}

/// Obeys the commands on standard input, and ends this command when it is closed: its owner is gone.
pub(crate) fn obey_stdin(mut remote: SynthRemote) {
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut bytes = [0; GeneratorCommand::BYTES];
        while stdin.read_exact(&mut bytes).is_ok() {
            let obeyed = GeneratorCommand::from_bytes(&bytes).and_then(|command| remote.obey(command));
            if let Err(error) = obeyed {
                note!("grebe: {error}");
            }
        }
        interrupt::raise();
    });
}
