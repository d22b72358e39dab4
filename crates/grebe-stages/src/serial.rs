//! Serial ports, `serial:///dev/ttyUSB0?baud=115200`: lines of numbers, or samples without headers, in both directions.

mod list;
mod name;
#[cfg(unix)]
mod port;
#[cfg(not(unix))]
#[path = "serial/port_absent.rs"]
mod port;

pub use list::{Device, serial_ports};
pub(crate) use name::SerialEnd;
pub(crate) use port::SerialPort;
