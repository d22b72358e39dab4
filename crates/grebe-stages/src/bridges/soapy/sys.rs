//! The C interface of SoapySDR 0.8. The library is loaded at first use, so neither the build nor the start needs it.

mod device;
mod library;
mod stream;

pub(super) use device::{Device, Direction};
pub(super) use library::{Version, enumerate, version};
pub(super) use stream::{Read, RxStream, StreamError, TxStream};
