//! The part of a recording that a command reads, in time or in samples.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use grebe_recording::SampleFile;

use crate::ending::Usage;
use crate::units;

#[derive(Debug, Clone, Copy, Default, Args)]
#[command(next_help_heading = "Range")]
pub(crate) struct Range {
    /// Start position: 90s, 1h; or a sample, as grebe find prints it: 312300Sa.
    #[arg(long, value_name = "TIME|SAMPLE", default_value = "0", value_parser = extent)]
    pub(crate) start: Extent,
    /// Length of signal, gaps included: 2s, 4096Sa [default: to the end].
    #[arg(short = 'd', long, value_name = "TIME|SAMPLES", value_parser = length)]
    pub(crate) duration: Option<Extent>,
}

/// A time, or a number of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Time(Duration),
    Samples(u64),
}

impl Default for Extent {
    fn default() -> Self {
        Self::Time(Duration::ZERO)
    }
}

impl Range {
    /// Start and length as times; `open` opens the recording, if it is given in samples.
    ///
    /// # Errors
    /// [`Usage`] if the rate is unknown, or the recording begins later.
    pub(crate) fn times(
        &self,
        open: impl FnOnce() -> Result<SampleFile>,
    ) -> Result<(Duration, Option<Duration>)> {
        let (start, duration) = match (self.start, self.duration) {
            (Extent::Time(start), None) => return Ok((start, None)),
            (Extent::Time(start), Some(Extent::Time(duration))) => return Ok((start, Some(duration))),
            of_samples => of_samples,
        };
        let file = open()?;
        let Some(rate_hz) = file.rate_hz() else {
            let what = "unknown sample rate: give it, as in 'x.cu8?rate=2.4M'";
            return Err(Usage(what.to_owned()).into());
        };
        let first_index = file.segments()[0].first_sample_index;
        let time = |extent, from: u64| match extent {
            Extent::Time(time) => Ok(time),
            Extent::Samples(samples) => {
                let samples = samples.checked_sub(from).ok_or_else(|| {
                    let first = units::grouped(from);
                    Usage(format!("--start {samples}Sa: the recording begins at sample {first}"))
                })?;
                Ok::<_, Usage>(Duration::from_secs_f64(samples as f64 / rate_hz))
            }
        };
        let duration = duration.map(|duration| time(duration, 0)).transpose()?;
        Ok((time(start, first_index)?, duration))
    }
}

fn extent(text: &str) -> Result<Extent, String> {
    let wrong = || "give a time, for example 500us, 2s or 5m, or samples: 4096Sa".to_owned();
    match text.strip_suffix("Sa").or_else(|| text.strip_suffix("sa")) {
        Some(samples) => units::count(samples).map(Extent::Samples).map_err(|_| wrong()),
        None => units::duration(text).map(Extent::Time).map_err(|_| wrong()),
    }
}

fn length(text: &str) -> Result<Extent, String> {
    match extent(text)? {
        Extent::Time(Duration::ZERO) | Extent::Samples(0) => {
            Err("give a time above 0, for example 500us, 2s or 5m, or samples: 4096Sa".to_owned())
        }
        extent => Ok(extent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sample_counts_are_distinguished() {
        assert_eq!(extent("312300Sa"), Ok(Extent::Samples(312_300)));
        assert_eq!(extent("10ksa"), Ok(Extent::Samples(10_000)));
        assert_eq!(extent("90s"), Ok(Extent::Time(Duration::from_secs(90))));
        assert!(["", "Sa", "-1Sa", "x"].iter().all(|text| extent(text).is_err()));
        assert!(["0", "0Sa"].iter().all(|text| length(text).is_err()) && length("1Sa").is_ok());
    }
}
