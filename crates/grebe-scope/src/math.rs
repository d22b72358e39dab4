//! Channels made of channels: sums, products, slopes, integrals and filters, as samples again.
//!
//! A math channel yields `i16` with a gain, so that it goes through the same pyramid, triggers and spectrum as
//! any other; what does not fit is clipped and counted.

mod fir;

use crate::ScopeError;
pub use fir::Fir;

/// What a math channel computes, in raw counts of its inputs.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// `a + b`; gain 1/2.
    Add,
    /// `a - b`; gain 1/2.
    Subtract,
    /// `a * b`; gain 1/32768.
    Multiply,
    /// `a[n] - a[n-1]`, counts a sample; gain 1/2. Times the rate it is counts a second.
    Derivative,
    /// Sum of `a - baseline` since the begin or the last gap, counts times samples; gain 1/1024.
    Integral {
        /// What is taken off each sample, so that an offset does not run away.
        baseline: i16,
    },
    /// `-a`; gain 1.
    Invert,
    /// `|a|`; gain 1.
    Absolute,
    /// A filter; gain 1. Its output is not late: it is given the index of the filter's middle.
    Filter(Fir),
}

impl Operation {
    /// Whether it takes a second channel.
    pub fn is_binary(&self) -> bool {
        matches!(self, Operation::Add | Operation::Subtract | Operation::Multiply)
    }

    fn gain(&self) -> f64 {
        match self {
            Operation::Add | Operation::Subtract | Operation::Derivative => 0.5,
            Operation::Multiply => 1.0 / 32768.0,
            Operation::Integral { .. } => 1.0 / 1024.0,
            Operation::Invert | Operation::Absolute | Operation::Filter(_) => 1.0,
        }
    }
}

/// Computes one math channel, block after block.
///
/// ```
/// use grebe_scope::{MathChannel, Operation};
/// let mut difference = MathChannel::new(Operation::Subtract);
/// let mut out = Vec::new();
/// let first = difference.process(7, &[100, 200], &[40, 260], &mut out)?;
/// assert_eq!((first, &out[..]), (7, &[30, -30][..])); // half of it: the gain is 1/2
/// assert_eq!(f64::from(out[0]) / difference.gain(), 60.0);
/// # Ok::<(), grebe_scope::ScopeError>(())
/// ```
#[derive(Debug, Clone)]
pub struct MathChannel {
    operation: Operation,
    gain: f64,
    next: Option<u64>,
    previous: i16,
    sum: i64,
    clipped: u64,
}

impl MathChannel {
    /// With the operation's own gain.
    pub fn new(operation: Operation) -> MathChannel {
        let gain = operation.gain();
        MathChannel { operation, gain, next: None, previous: 0, sum: 0, clipped: 0 }
    }

    /// With another gain: output counts a count (or a count squared, or a count times a sample) of the result.
    pub fn with_gain(operation: Operation, gain: f64) -> MathChannel {
        MathChannel { gain, ..MathChannel::new(operation) }
    }

    /// Output counts a unit of the result: divide by it to get the result back.
    pub fn gain(&self) -> f64 {
        self.gain
    }

    /// Samples that did not fit and were set to the nearest that does.
    pub fn clipped(&self) -> u64 {
        self.clipped
    }

    /// Computes the next block into `out`, whose content is replaced, and returns the index of its first sample.
    /// `b` is only read by operations of two channels. Begins anew at a gap: a derivative then has its first
    /// sample one later, a filter half its length later. `out` grows to the largest block and is then reused.
    ///
    /// # Errors
    /// [`ScopeError::UnequalChannels`] where an operation of two channels gets channels of different lengths.
    pub fn process(
        &mut self,
        first_sample_index: u64,
        a: &[i16],
        b: &[i16],
        out: &mut Vec<i16>,
    ) -> Result<u64, ScopeError> {
        if self.operation.is_binary() && a.len() != b.len() {
            return Err(ScopeError::UnequalChannels { channel: 1, expected: a.len(), got: b.len() });
        }
        let begins = self.next != Some(first_sample_index);
        if begins {
            self.sum = 0;
        }
        self.next = Some(first_sample_index + a.len() as u64);
        out.clear();
        let (gain, clipped) = (self.gain, &mut self.clipped);
        let pairs = a.iter().zip(b).map(|(&a, &b)| (i32::from(a), i32::from(b)));
        let single = a.iter().map(|&a| i32::from(a));
        match &mut self.operation {
            Operation::Add => fit(pairs.map(|(a, b)| f64::from(a + b)), gain, clipped, out),
            Operation::Subtract => fit(pairs.map(|(a, b)| f64::from(a - b)), gain, clipped, out),
            Operation::Multiply => fit(pairs.map(|(a, b)| f64::from(a * b)), gain, clipped, out),
            Operation::Invert => fit(single.map(|a| f64::from(-a)), gain, clipped, out),
            Operation::Absolute => fit(single.map(|a| f64::from(a.abs())), gain, clipped, out),
            Operation::Integral { baseline } => {
                let baseline = i64::from(*baseline);
                let sum = &mut self.sum;
                let sums = a.iter().map(|&a| {
                    *sum = sum.saturating_add(i64::from(a) - baseline);
                    *sum as f64
                });
                fit(sums, gain, clipped, out);
            }
            Operation::Derivative => {
                let Some((&head, &last)) = a.first().zip(a.last()) else { return Ok(first_sample_index) };
                let before = std::mem::replace(&mut self.previous, last);
                if !begins {
                    fit([f64::from(i32::from(head) - i32::from(before))].into_iter(), gain, clipped, out);
                }
                let slopes = a.windows(2).map(|pair| f64::from(i32::from(pair[1]) - i32::from(pair[0])));
                fit(slopes, gain, clipped, out);
                return Ok(first_sample_index + u64::from(begins));
            }
            Operation::Filter(fir) => {
                if begins {
                    fir.begin();
                }
                let newest =
                    fir.process(a, |values| fit(values.iter().map(|&v| f64::from(v)), gain, clipped, out));
                // The newest sample a result needs lies half a filter after its middle.
                return Ok((first_sample_index + newest).saturating_sub(fir.half() as u64));
            }
        }
        Ok(first_sample_index)
    }
}

fn fit(values: impl Iterator<Item = f64>, gain: f64, clipped: &mut u64, out: &mut Vec<i16>) {
    let (least, most) = (f64::from(i16::MIN), f64::from(i16::MAX));
    let mut beyond = 0;
    out.extend(values.map(|value| {
        let wanted = (value * gain).round_ties_even();
        beyond += u64::from(wanted < least || wanted > most);
        wanted.clamp(least, most) as i16
    }));
    *clipped += beyond;
}

#[cfg(test)]
mod tests;
