//! The generator of the stream, where it can be told what to make.

use grebe_scope::{step_125_down, step_125_up};

use crate::face::Face;
use crate::keys::Step;

/// Tells the generator of a stream what to make.
pub struct GeneratorRemote {
    /// Names of the waveforms that it can make.
    pub waves: Vec<&'static str>,
    /// Passes a wish on without waiting; an error is one line for a person.
    pub tell: TellGenerator,
}

/// Passes a wish to a generator.
pub type TellGenerator = Box<dyn Fn(GeneratorWish) -> Result<(), String> + Send>;

/// What a person wants of a generator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GeneratorWish {
    /// Samples a second and channel.
    Rate(f64),
    /// Make nothing, or go on.
    TogglePause,
    /// The waveform of all channels: one of [`GeneratorRemote::waves`].
    Wave(&'static str),
}

/// What a face knows of its generator: what it told.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct GeneratorState {
    pub(crate) is_paused: bool,
    pub(crate) wave: Option<&'static str>,
    /// The rate that was asked for last: the stream's own comes a little later.
    rate_hz: Option<f64>,
}

impl Face {
    pub(crate) fn has_generator(&self) -> bool {
        self.options.generator.is_some()
    }

    pub(crate) fn tell_generator(&mut self, wish: GeneratorWish) {
        let Some(remote) = &self.options.generator else {
            self.say("this stream's generator takes no orders: start it with --spawn".into());
            return;
        };
        if let Err(error) = (remote.tell)(wish) {
            self.say(error);
            return;
        }
        match wish {
            GeneratorWish::Rate(rate_hz) => self.generator.rate_hz = Some(rate_hz),
            GeneratorWish::TogglePause => self.generator.is_paused = !self.generator.is_paused,
            GeneratorWish::Wave(wave) => self.generator.wave = Some(wave),
        }
    }

    /// The next rate of the 1-2-5 steps.
    pub(crate) fn step_rate(&mut self, step: Step) {
        let Some(stream) = self.picture.stream.filter(|stream| stream.rate_hz > 0.0) else { return };
        let rate_hz = self.generator.rate_hz.unwrap_or(stream.rate_hz);
        let next = match step {
            Step::Down => step_125_down(rate_hz * 0.99),
            Step::Up => step_125_up(rate_hz * 1.01),
        };
        self.tell_generator(GeneratorWish::Rate(next.clamp(1.0, RATE_HZ_MAX)));
    }

    pub(crate) fn next_wave(&mut self) {
        let waves = self.options.generator.as_ref().map_or(&[][..], |remote| &remote.waves);
        let at = waves.iter().position(|&wave| Some(wave) == self.generator.wave);
        let next = waves.get(at.map_or(0, |at| at + 1)).or(waves.first()).copied();
        self.tell_generator(GeneratorWish::Wave(next.unwrap_or("sine")));
    }
}

/// More than any machine makes: what it cannot, the generator counts as dropped.
const RATE_HZ_MAX: f64 = 10e9;
