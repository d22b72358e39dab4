//! The C interface of SoapySDR 0.8. The library is loaded when it is first used: nothing of it is needed to build, or to start.

mod device;
mod library;
mod stream;

pub(super) use device::{Device, Direction};
pub(super) use library::{Version, enumerate, version};
pub(super) use stream::{Read, RxStream, Trouble, TxStream};
