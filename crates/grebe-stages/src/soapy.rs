//! Radios behind SoapySDR, whose library is loaded when one is opened: `soapy:driver=rtlsdr?frequency=100M&rate=2.4M`.
//!
//! ```text
//!  source, sink      what is read becomes frames, frames are written
//!    |      \-> device_time    what is missing, and when a sample was made, by the device's clock
//!    v
//!  radio             a name's settings, brought to a device     list    what there is
//!    |                                                           |
//!    v                                                           v
//!  sys               the C interface: library -> device -> streams
//! ```

mod device_time;
mod list;
mod name;
mod radio;
mod sink;
mod source;
#[allow(unsafe_code, reason = "calls of a C library that is loaded when it is used, nothing else")]
mod sys;

#[cfg(fuzzing)]
pub(crate) use device_time::fuzz;
pub use list::{SoapyDevice, SoapyLibrary, soapy_devices, soapy_library};
pub use name::Soapy;
pub(crate) use sink::SoapySink;
pub(crate) use source::SoapySource;
