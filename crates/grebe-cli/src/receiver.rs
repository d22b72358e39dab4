//! Remote control of receivers.

use grebe_stages::{Tuner, Tuning};
use grebe_view::{ReceiverRemote, Tuned};

/// Controls for the scope.
pub(crate) fn remote_of(tuner: Tuner) -> ReceiverRemote {
    let wanted = tuner.clone();
    let tuned = move || {
        let Tuning { frequency_hz, rate_hz, gain_db } = wanted.tuning();
        Tuned { frequency_hz, rate_hz, gain_db }
    };
    let tune = move |Tuned { frequency_hz, rate_hz, gain_db }| {
        tuner.change(|tuning| *tuning = Tuning { frequency_hz, rate_hz, gain_db });
        Ok(())
    };
    ReceiverRemote { tuned: Box::new(tuned), tune: Box::new(tune) }
}
