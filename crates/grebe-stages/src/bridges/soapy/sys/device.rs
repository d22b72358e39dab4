//! A device: its capabilities and settings.

use std::ffi::{c_char, c_int};
use std::ptr;

use super::library::{Functions, Loaded, Range, RawDevice, c_text, library, take_logged};
use crate::error::Error;

/// Direction of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Tx = 0,
    Rx = 1,
}

/// An open device, closed on drop.
pub(crate) struct Device {
    pub(super) library: &'static Loaded,
    pub(super) raw: RawDevice,
}

// SAFETY: SoapySDR binds no device to a thread. Only one uses it at a time, because it is not shared.
unsafe impl Send for Device {}

/// Lists ranges, and how many there are.
type RangesOf = unsafe extern "C" fn(RawDevice, c_int, usize, *mut usize) -> *mut Range;

/// Result of a call. The error is the driver's message.
type Answer<T> = Result<T, String>;

impl Device {
    /// Opens the first device that matches `args`.
    ///
    /// # Errors
    /// The library is missing. The inner error is the driver's message.
    pub(crate) fn open(args: &str) -> Result<Answer<Self>, Error> {
        let library = library()?;
        take_logged();
        let args = c_text(args);
        // SAFETY: the text lasts as long as the call.
        let raw = unsafe { (library.functions.make)(args.as_ptr()) };
        if !raw.is_null() {
            return Ok(Ok(Self { library, raw }));
        }
        let why = library.last_error().unwrap_or_default();
        // A driver's log says more than its exception.
        let more = take_logged().filter(|said| !why.contains(said.as_str()));
        Ok(Err([Some(why), more]
            .into_iter()
            .flatten()
            .filter(|it| !it.is_empty())
            .collect::<Vec<_>>()
            .join(": ")))
    }

    /// Name of the driver.
    pub(crate) fn driver(&self) -> String {
        self.text(|functions, raw| {
            // SAFETY: the device is open.
            unsafe { (functions.driver_key)(raw) }
        })
    }

    /// Name of the hardware.
    pub(crate) fn hardware(&self) -> String {
        self.text(|functions, raw| {
            // SAFETY: the device is open.
            unsafe { (functions.hardware_key)(raw) }
        })
    }

    /// Number of channels.
    pub(crate) fn channels(&self, direction: Direction) -> usize {
        // SAFETY: the device is open.
        unsafe { (self.library.functions.channels)(self.raw, direction as c_int) }
    }

    /// Formats of a stream, by SoapySDR's names.
    pub(crate) fn formats(&self, direction: Direction, channel: usize) -> Vec<String> {
        self.strings(|functions, length| {
            // SAFETY: the device is open; the length is written to a place that is ours.
            unsafe { (functions.stream_formats)(self.raw, direction as c_int, channel, length) }
        })
    }

    /// The device's native format.
    pub(crate) fn native_format(&self, direction: Direction, channel: usize) -> String {
        let mut full_scale = 0.0;
        self.text(|functions, raw| {
            // SAFETY: the device is open; the scale goes to a variable of ours.
            unsafe { (functions.native_format)(raw, direction as c_int, channel, &mut full_scale) }
        })
    }

    pub(crate) fn antennas(&self, direction: Direction, channel: usize) -> Vec<String> {
        self.strings(|functions, length| {
            // SAFETY: as above.
            unsafe { (functions.antennas)(self.raw, direction as c_int, channel, length) }
        })
    }

    /// Names of its amplifiers.
    pub(crate) fn gains(&self, direction: Direction, channel: usize) -> Vec<String> {
        self.strings(|functions, length| {
            // SAFETY: as above.
            unsafe { (functions.gains)(self.raw, direction as c_int, channel, length) }
        })
    }

    /// Whether it can be tuned.
    pub(crate) fn is_tunable(&self, direction: Direction, channel: usize) -> bool {
        let parts = self.strings(|functions, length| {
            // SAFETY: as above.
            unsafe { (functions.frequencies)(self.raw, direction as c_int, channel, length) }
        });
        !parts.is_empty()
    }

    pub(crate) fn set_antenna(&self, direction: Direction, channel: usize, antenna: &str) -> Answer<()> {
        let antenna = c_text(antenna);
        // SAFETY: the device is open, and the text lasts as long as the call.
        let code = unsafe {
            (self.library.functions.set_antenna)(self.raw, direction as c_int, channel, antenna.as_ptr())
        };
        self.done(code)
    }

    pub(crate) fn rates_hz(&self, direction: Direction, channel: usize) -> Vec<(f64, f64)> {
        self.ranges(self.library.functions.rate_ranges, direction, channel)
    }

    pub(crate) fn frequencies_hz(&self, direction: Direction, channel: usize) -> Vec<(f64, f64)> {
        self.ranges(self.library.functions.frequency_ranges, direction, channel)
    }

    fn ranges(&self, function: RangesOf, direction: Direction, channel: usize) -> Vec<(f64, f64)> {
        let mut length = 0;
        // SAFETY: the device is open; the list is as long as the library says.
        unsafe {
            let list = function(self.raw, direction as c_int, channel, &mut length);
            self.library.take_ranges(list, length)
        }
    }

    pub(crate) fn set_frequency(&self, direction: Direction, channel: usize, hz: f64) -> Answer<()> {
        let code = self.library.with_kwargs(&[], |none| {
            // SAFETY: the device is open, and the arguments last as long as the call.
            unsafe { (self.library.functions.set_frequency)(self.raw, direction as c_int, channel, hz, none) }
        });
        self.done(code)
    }

    pub(crate) fn set_gain_of(
        &self,
        direction: Direction,
        channel: usize,
        name: &str,
        db: f64,
    ) -> Answer<()> {
        let name = c_text(name);
        // SAFETY: the device is open, and the text lasts as long as the call.
        let code = unsafe {
            (self.library.functions.set_gain_element)(
                self.raw,
                direction as c_int,
                channel,
                name.as_ptr(),
                db,
            )
        };
        self.done(code)
    }

    pub(crate) fn gain_range_db(&self, direction: Direction, channel: usize) -> (f64, f64) {
        // SAFETY: the device is open.
        let range = unsafe { (self.library.functions.gain_range)(self.raw, direction as c_int, channel) };
        (range.minimum, range.maximum)
    }

    pub(crate) fn set_clock_source(&self, source: &str) -> Answer<()> {
        let source = c_text(source);
        // SAFETY: the device is open, and the text lasts as long as the call.
        self.done(unsafe { (self.library.functions.set_clock_source)(self.raw, source.as_ptr()) })
    }

    pub(crate) fn set_time_source(&self, source: &str) -> Answer<()> {
        let source = c_text(source);
        // SAFETY: the device is open, and the text lasts as long as the call.
        self.done(unsafe { (self.library.functions.set_time_source)(self.raw, source.as_ptr()) })
    }

    /// Time of the device's clock, if it has one.
    pub(crate) fn time_ns(&self) -> Option<i64> {
        let what = c"";
        // SAFETY: the device is open, and the text lasts for ever.
        let has = unsafe { (self.library.functions.has_hardware_time)(self.raw, what.as_ptr()) };
        if !self.answer_or_default(has) {
            return None;
        }
        // SAFETY: as above.
        self.answer(unsafe { (self.library.functions.hardware_time)(self.raw, what.as_ptr()) }).ok()
    }

    /// A setting of this driver.
    pub(crate) fn write_setting(&self, key: &str, value: &str) -> Answer<()> {
        let (key, value) = (c_text(key), c_text(value));
        // SAFETY: the device is open, and the texts last as long as the call.
        self.done(unsafe { (self.library.functions.write_setting)(self.raw, key.as_ptr(), value.as_ptr()) })
    }

    fn text(&self, call: impl FnOnce(&Functions, RawDevice) -> *mut c_char) -> String {
        let text = call(&self.library.functions, self.raw);
        // SAFETY: all functions of this type hand over what they allocated.
        unsafe { self.library.take_text(text) }
    }

    fn strings(&self, call: impl FnOnce(&Functions, *mut usize) -> *mut *mut c_char) -> Vec<String> {
        let mut length = 0;
        let list = call(&self.library.functions, &mut length);
        // SAFETY: all functions of this type hand over a list that is as long as they say.
        unsafe { self.library.take_strings(list, length) }
    }

    /// `value`, or the error of the last call.
    fn answer<T>(&self, value: T) -> Answer<T> {
        self.library.last_error().map_or(Ok(value), Err)
    }

    fn answer_or_default<T: Default>(&self, value: T) -> T {
        self.answer(value).unwrap_or_default()
    }

    /// Result of the last call, which returned `code`.
    fn done(&self, code: c_int) -> Answer<()> {
        match self.answer(()) {
            Ok(()) if code != 0 => Err(self.words(code)),
            answer => answer,
        }
    }

    /// Text of an error code.
    pub(super) fn words(&self, code: c_int) -> String {
        // SAFETY: the text is the library's own and stays.
        unsafe { super::library::lent_text((self.library.functions.error_text)(code)) }
    }
}

/// Calls that need a device that is open, and numbers alone.
macro_rules! calls {
    ($($(#[$doc:meta])* fn $name:ident($($value:ident: $kind:ty)?) -> $out:ty = $function:ident.$then:ident;)*) => {
        impl Device {$(
            $(#[$doc])*
            pub(crate) fn $name(&self, direction: Direction, channel: usize $(, $value: $kind)?) -> $out {
                let function = self.library.functions.$function;
                // SAFETY: the device is open.
                self.$then(unsafe { function(self.raw, direction as c_int, channel $(, $value)?) })
            }
        )*}
    };
}

calls! {
    fn set_rate(rate_hz: f64) -> Answer<()> = set_rate.done;
    fn rate_hz() -> Answer<f64> = rate.answer;
    fn set_bandwidth(hz: f64) -> Answer<()> = set_bandwidth.done;
    fn bandwidth_hz() -> Answer<f64> = bandwidth.answer;
    fn frequency_hz() -> Answer<f64> = frequency.answer;
    fn set_correction_ppm(ppm: f64) -> Answer<()> = set_correction.done;
    /// Whether it has automatic gain.
    fn has_gain_mode() -> bool = has_gain_mode.answer_or_default;
    fn set_automatic_gain(is_on: bool) -> Answer<()> = set_gain_mode.done;
    /// Whether automatic gain is on.
    fn is_gain_automatic() -> bool = gain_mode.answer_or_default;
    fn set_gain(db: f64) -> Answer<()> = set_gain.done;
    fn gain_db() -> Answer<f64> = gain.answer;
}

impl Drop for Device {
    fn drop(&mut self) {
        let raw = std::mem::replace(&mut self.raw, ptr::null_mut());
        // SAFETY: the device is open, and nobody has it any more.
        unsafe { (self.library.functions.unmake)(raw) };
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device").finish_non_exhaustive()
    }
}
