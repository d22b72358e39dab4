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

use grebe_ring::Cancel;

use crate::error::Error;
use crate::raw::Again;

impl SerialEnd {
    /// Opens the port, and what opens it again where that is wanted.
    pub(crate) fn open(&self) -> Result<(SerialPort, Option<Again<SerialPort>>), Error> {
        let port = SerialPort::open(self)?;
        let again = self.reconnects.then(|| {
            let end = self.clone();
            Again::new(format!("serial://{}", end.path.display()), move |_: &Cancel| SerialPort::open(&end))
        });
        Ok((port, again))
    }
}
