//! Commands to a running generator, over its standard input.

use grebe_flow::RateHz;

use super::settings::{Synth, WaveName};
use super::source::{SynthControl, SynthSource};
use crate::error::Error;

/// Command of a viewer to its generator: 16 bytes, little-endian.
///
/// | bytes | field |
/// |---|---|
/// | 0..4 | `GIC2` (0x32434947) |
/// | 4..8 | 1 rate, 2 pause or go on, 3 end, 4 waveform |
/// | 8..16 | `f64`: samples per second and channel; 0 sine, 1 square, 2 triangle, 3 saw, 4 chirp, 5 noise, 6 gaussian, 7 two_tone, 8 qpsk |
///
/// Other generators of these frames also know 1 to 3.
///
/// ```
/// use grebe_process::synth::GeneratorCommand;
///
/// let bytes = GeneratorCommand::Rate(25e6).to_bytes();
/// assert_eq!(&bytes[..4], b"GIC2");
/// assert_eq!(GeneratorCommand::from_bytes(&bytes)?, GeneratorCommand::Rate(25e6));
/// # Ok::<(), grebe_process::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GeneratorCommand {
    /// Samples per second and channel.
    Rate(f64),
    /// Pauses, or continues at the same sample.
    TogglePause,
    /// Ends the stream.
    End,
    /// Waveform of all channels.
    Wave(WaveName),
}

impl GeneratorCommand {
    /// Length of a command.
    pub const BYTES: usize = 16;

    /// Encodes the command.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let (kind, value) = match self {
            GeneratorCommand::Rate(rate_hz) => (RATE, rate_hz),
            GeneratorCommand::TogglePause => (TOGGLE_PAUSE, 0.0),
            GeneratorCommand::End => (END, 0.0),
            GeneratorCommand::Wave(wave) => {
                (WAVE, WaveName::ALL.iter().position(|&it| it == wave).unwrap_or(0) as f64)
            }
        };
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[4..8].copy_from_slice(&kind.to_le_bytes());
        bytes[8..].copy_from_slice(&value.to_le_bytes());
        bytes
    }

    /// Decodes a command.
    ///
    /// # Errors
    /// [`Error::Setting`] for invalid bytes.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Result<Self, Error> {
        let [a, b, c, d, e, f, g, h, value @ ..] = *bytes;
        let (magic, kind) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
        let value = f64::from_le_bytes(value);
        let refused = |got: String, must| Err(Error::Setting { what: "generator command", got, must });
        match kind {
            _ if magic != MAGIC => refused(format!("{magic:#010x}"), "commands begin with GIC2 (0x32434947)"),
            RATE => Ok(GeneratorCommand::Rate(value)),
            TOGGLE_PAUSE => Ok(GeneratorCommand::TogglePause),
            END => Ok(GeneratorCommand::End),
            WAVE => match WaveName::ALL.iter().enumerate().find(|&(number, _)| number as f64 == value) {
                Some((_, &wave)) => Ok(GeneratorCommand::Wave(wave)),
                None => refused(format!("waveform {value}"), "waveforms are 0 to 8"),
            },
            _ => refused(kind.to_string(), "commands are 1 to 4"),
        }
    }
}

/// Applies commands to a running generator.
///
/// ```
/// use grebe_process::synth::{GeneratorCommand, Synth, SynthRemote};
///
/// let (stage, mut remote) = SynthRemote::new(Synth::default())?;
/// // The stage goes into a graph; meanwhile:
/// remote.obey(GeneratorCommand::Rate(48e3))?;
/// assert!(remote.obey(GeneratorCommand::Rate(0.0)).is_err());
/// # drop(stage);
/// # Ok::<(), grebe_process::Error>(())
/// ```
#[derive(Debug)]
pub struct SynthRemote {
    synth: Synth,
    control: SynthControl,
}

impl SynthRemote {
    /// Makes a generator with its remote.
    ///
    /// # Errors
    /// [`Error::Setting`] for conflicting settings.
    pub fn new(synth: Synth) -> Result<(SynthSource, SynthRemote), Error> {
        let source = SynthSource::new(synth.options())?.centre_frequency_hz(synth.centre_hz());
        let control = source.control();
        Ok((source, SynthRemote { synth, control }))
    }

    /// Applies a command. An explicit frequency stays; a default one follows the rate.
    ///
    /// # Errors
    /// Settings that the generator cannot make; it continues unchanged.
    pub fn obey(&mut self, command: GeneratorCommand) -> Result<(), Error> {
        let synth = match command {
            GeneratorCommand::TogglePause => {
                self.control.change(|wanted| wanted.is_paused = !wanted.is_paused);
                return Ok(());
            }
            GeneratorCommand::End => {
                self.control.change(|wanted| wanted.is_ended = true);
                return Ok(());
            }
            GeneratorCommand::Rate(rate_hz) => Synth { rate: RateHz(rate_hz), ..self.synth.clone() },
            GeneratorCommand::Wave(wave) => Synth { wave: vec![wave].into(), ..self.synth.clone() },
        };
        let options = synth.options();
        let generators = options.generators()?;
        self.control.change(|wanted| wanted.remade = Some((options, generators)));
        self.synth = synth;
        Ok(())
    }
}

const MAGIC: u32 = 0x3243_4947;
const RATE: u32 = 1;
const TOGGLE_PAUSE: u32 = 2;
const END: u32 = 3;
const WAVE: u32 = 4;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::format::FrequencyHz;

    #[test]
    fn commands_come_back_as_they_were_sent() {
        let waves = WaveName::ALL.map(GeneratorCommand::Wave);
        let others = [GeneratorCommand::Rate(1e9), GeneratorCommand::TogglePause, GeneratorCommand::End];
        for command in waves.into_iter().chain(others) {
            assert_eq!(GeneratorCommand::from_bytes(&command.to_bytes()).unwrap(), command);
        }
        // Format of other viewers.
        let pause = *b"GIC2\x02\0\0\0\0\0\0\0\0\0\0\0";
        assert_eq!(GeneratorCommand::from_bytes(&pause).unwrap(), GeneratorCommand::TogglePause);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_command_or_refused(bytes: [u8; 16], kind in 0u8..6) {
            let _ = GeneratorCommand::from_bytes(&bytes);
            let mut near = bytes;
            near[..8].copy_from_slice(&[b'G', b'I', b'C', b'2', kind, 0, 0, 0]);
            let read = GeneratorCommand::from_bytes(&near);
            prop_assert_eq!(read.is_ok(), (1..=3).contains(&kind) || (kind == 4 && (0..9).any(|n| {
                f64::from(n) == f64::from_le_bytes(near[8..].try_into().unwrap())
            })));
        }
    }

    #[test]
    fn an_impossible_signal_changes_nothing() {
        let synth = Synth { frequency: Some(vec![FrequencyHz(1_000.0)].into()), ..Synth::default() };
        let (_source, mut remote) = SynthRemote::new(synth).unwrap();
        for rate_hz in [0.0, -1.0, f64::NAN, f64::INFINITY, 1_500.0] {
            assert!(remote.obey(GeneratorCommand::Rate(rate_hz)).is_err(), "{rate_hz}");
        }
        assert_eq!(remote.synth.rate.0, 1e6);
        remote.obey(GeneratorCommand::Rate(4_000.0)).unwrap();
    }
}
