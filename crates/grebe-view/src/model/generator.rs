//! The generator of the stream, if it can be controlled.

use grebe_scope::{step_125_down, step_125_up};

use super::action::Step;

/// Controls the generator of a stream.
pub struct GeneratorRemote {
    /// Names of the waveforms that it can make.
    pub waves: Vec<String>,
    /// Passes a request on without waiting; an error is one line for a person.
    pub tell: Box<dyn Fn(GeneratorWish) -> Result<(), String> + Send>,
}

/// A request to a generator.
#[derive(Debug, Clone, PartialEq)]
pub enum GeneratorWish {
    /// Samples per second and channel.
    Rate(f64),
    /// Pauses, or resumes.
    TogglePause,
    /// The waveform of all channels: one of [`GeneratorRemote::waves`].
    Wave(String),
}

/// The generator and its last requests.
#[derive(Default)]
pub(crate) struct Generator {
    remote: Option<GeneratorRemote>,
    pub(crate) is_paused: bool,
    pub(crate) wave: Option<String>,
    /// The last requested rate: the stream follows a little later.
    rate_hz: Option<f64>,
}

impl Generator {
    pub(crate) fn new(remote: Option<GeneratorRemote>) -> Generator {
        Generator { remote, ..Generator::default() }
    }

    /// Whether it can be controlled.
    pub(crate) fn is_there(&self) -> bool {
        self.remote.is_some()
    }

    pub(crate) fn waves(&self) -> &[String] {
        self.remote.as_ref().map_or(&[], |remote| &remote.waves)
    }

    /// # Errors
    /// One line for a person.
    pub(crate) fn tell(&mut self, wish: GeneratorWish) -> Result<(), String> {
        let Some(remote) = &self.remote else {
            return Err("this stream's generator takes no orders: start it with --spawn".into());
        };
        (remote.tell)(wish.clone())?;
        match wish {
            GeneratorWish::Rate(rate_hz) => self.rate_hz = Some(rate_hz),
            GeneratorWish::TogglePause => self.is_paused = !self.is_paused,
            GeneratorWish::Wave(wave) => self.wave = Some(wave),
        }
        Ok(())
    }

    /// The next of the 1-2-5 steps after the stream's rate `rate_hz`.
    ///
    /// # Errors
    /// One line for a person.
    pub(crate) fn step_rate(&mut self, step: Step, rate_hz: f64) -> Result<(), String> {
        let rate_hz = self.rate_hz.unwrap_or(rate_hz);
        let next = match step {
            Step::Down => step_125_down(rate_hz * 0.99),
            Step::Up => step_125_up(rate_hz * 1.01),
        };
        self.tell(GeneratorWish::Rate(next.clamp(1.0, RATE_HZ_MAX)))
    }

    /// # Errors
    /// One line for a person.
    pub(crate) fn next_wave(&mut self) -> Result<(), String> {
        let waves = self.waves();
        let at = waves.iter().position(|wave| Some(wave) == self.wave.as_ref());
        let next = waves.get(at.map_or(0, |at| at + 1)).or(waves.first()).cloned();
        self.tell(GeneratorWish::Wave(next.unwrap_or_else(|| "sine".into())))
    }
}

/// Above the capability of any machine: the generator counts samples that it cannot make as dropped.
const RATE_HZ_MAX: f64 = 10e9;
