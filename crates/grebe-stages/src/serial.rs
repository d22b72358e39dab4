//! Serial ports, as `serial:///dev/ttyUSB0?baud=115200` names them: lines of numbers, or samples without headers, both ways.

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
