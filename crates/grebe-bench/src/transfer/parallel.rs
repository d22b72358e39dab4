//! Simulations on all cores: their time is virtual, so that they may run beside each other.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use grebe_transfer::Cancel;

use crate::error::{Error, Result};

/// Does `work` for each of `jobs`, and calls `done` with what came out, in their order.
///
/// # Errors
/// [`Error::Cancelled`], at once: what is under way is left behind. [`Error::Wrong`] where one panics.
pub(super) fn for_each<J, T>(
    jobs: Vec<J>,
    work: fn(&J) -> T,
    cancel: &Cancel,
    mut done: impl FnMut(T) -> Result<()>,
) -> Result<()>
where
    J: Send + Sync + 'static,
    T: Send + 'static,
{
    let count = jobs.len();
    let (jobs, next, stop) = (Arc::new(jobs), Arc::new(AtomicUsize::new(0)), Stop::default());
    let (sender, results) = mpsc::channel();
    for _ in 0..thread::available_parallelism().map_or(1, usize::from).min(count) {
        let (jobs, next, stop, sender) = (jobs.clone(), next.clone(), stop.0.clone(), sender.clone());
        thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(job) = jobs.get(index) else { return };
                if sender.send((index, work(job))).is_err() {
                    return;
                }
            }
        });
    }
    drop(sender);
    let (mut early, mut told) = (BTreeMap::new(), 0);
    while told < count {
        if cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        match results.recv_timeout(Duration::from_millis(20)) {
            Ok((index, result)) => _ = early.insert(index, result),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(Error::Wrong { bench: "transfer", what: "a simulation panicked".to_owned() });
            }
        }
        while let Some(result) = early.remove(&told) {
            told += 1;
            done(result)?;
        }
    }
    Ok(())
}

/// The threads begin nothing new once this is dropped.
#[derive(Default)]
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slow_if_even(number: &u64) -> u64 {
        if number.is_multiple_of(2) {
            thread::sleep(Duration::from_millis(5));
        }
        number * 10
    }

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        let mut seen = Vec::new();
        for_each((0..9).collect(), slow_if_even, &Cancel::default(), |result| {
            seen.push(result);
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, (0..9).map(|number| number * 10).collect::<Vec<_>>());
    }

    #[test]
    fn who_ends_it_or_panics_is_told() {
        let cancel = Cancel::default();
        cancel.cancel();
        let ended = for_each(vec![1_u64], slow_if_even, &cancel, |_| Ok(()));
        assert!(matches!(ended, Err(Error::Cancelled)));
        let panics = |_: &u64| -> u64 { panic!("on purpose") };
        let ended = for_each(vec![1_u64], panics, &Cancel::default(), |_| Ok(()));
        assert!(matches!(ended, Err(Error::Wrong { .. })));
    }
}
