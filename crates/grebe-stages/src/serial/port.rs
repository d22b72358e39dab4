//! A serial port, through the system's terminals.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{FlockOperation, Mode, OFlags, fcntl_getfl, fcntl_setfl, flock, open};
use rustix::io::Errno;
use rustix::termios::{
    ControlModes, InputModes, OptionalActions, SpecialCodeIndex, Termios, ioctl_tiocexcl, isatty, tcgetattr,
    tcsetattr,
};

use crate::error::Error;
use crate::serial::SerialEnd;
use crate::serial::name::{Flow, Parity};

/// An exclusive port in raw mode, with the settings of its name.
#[derive(Debug)]
pub(crate) struct SerialPort(File);

impl SerialPort {
    /// # Errors
    /// [`Error::Device`]: the port is missing, in use, not a serial port, or refuses a setting.
    pub(crate) fn open(end: &SerialEnd) -> Result<Self, Error> {
        let failed = |action: &'static str| {
            let name = format!("serial://{}", end.path.display());
            move |errno: Errno| Error::Device { action, name, source: errno.into(), advice: advice(errno) }
        };
        // Does not wait for a modem.
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let port = File::from(open(&end.path, flags, Mode::empty()).map_err(failed("open"))?);
        if !isatty(&port) {
            return Err(failed("open")(Errno::NOTTY));
        }
        // Other programs use this lock too. The kernel's exclusive mode keeps out the rest.
        flock(&port, FlockOperation::NonBlockingLockExclusive).map_err(failed("open"))?;
        ioctl_tiocexcl(&port).map_err(failed("lock"))?;
        let mut settings = tcgetattr(&port).map_err(failed("set"))?;
        set(&mut settings, end).map_err(failed("set"))?;
        tcsetattr(&port, OptionalActions::Now, &settings).map_err(failed("set"))?;
        let granted = tcgetattr(&port).map_err(failed("set"))?.output_speed();
        if granted.abs_diff(end.baud) > end.baud / BAUD_ERROR_PARTS {
            let source = io::Error::other(format!("it supports {granted} baud instead of {}", end.baud));
            let name = format!("serial://{}", end.path.display());
            return Err(Error::Device { action: "set", name, source, advice: "" });
        }
        let flags = fcntl_getfl(&port).map_err(failed("set"))?;
        fcntl_setfl(&port, flags - OFlags::NONBLOCK).map_err(failed("set"))?;
        Ok(Self(port))
    }
}

fn set(settings: &mut Termios, end: &SerialEnd) -> rustix::io::Result<()> {
    settings.make_raw();
    let control = &mut settings.control_modes;
    control.remove(
        ControlModes::CSIZE
            | ControlModes::PARENB
            | ControlModes::PARODD
            | ControlModes::CSTOPB
            | ControlModes::CRTSCTS
            | ControlModes::HUPCL,
    );
    // Ignores the modem lines.
    control.insert(ControlModes::CLOCAL | ControlModes::CREAD);
    control.insert(match end.data_bits {
        5 => ControlModes::CS5,
        6 => ControlModes::CS6,
        7 => ControlModes::CS7,
        _ => ControlModes::CS8,
    });
    control.set(ControlModes::PARENB, end.parity != Parity::None);
    control.set(ControlModes::PARODD, end.parity == Parity::Odd);
    control.set(ControlModes::CSTOPB, end.stop_bits == 2);
    control.set(ControlModes::CRTSCTS, end.flow == Flow::Hardware);
    control.set(ControlModes::HUPCL, end.hangs_up);
    // Drops characters with a wrong parity.
    settings.input_modes.set(InputModes::INPCK | InputModes::IGNPAR, end.parity != Parity::None);
    settings.input_modes.set(InputModes::IXON | InputModes::IXOFF, end.flow == Flow::Software);
    // A read returns at least one byte.
    settings.special_codes[SpecialCodeIndex::VMIN] = 1;
    settings.special_codes[SpecialCodeIndex::VTIME] = 0;
    settings.set_speed(end.baud).map_err(|_| Errno::INVAL)
}

/// Advice for errors whose system message gives none.
fn advice(errno: Errno) -> &'static str {
    match errno {
        Errno::NOENT | Errno::NXIO | Errno::NODEV => "; is it plugged in? grebe devices lists the ports",
        Errno::ACCESS | Errno::PERM => {
            "; allow yourself serial ports (sudo usermod -aG dialout $USER) and log in again"
        }
        Errno::BUSY | Errno::WOULDBLOCK => "; another program has it open: end that one first",
        Errno::NOTTY => "; it is not a serial port",
        Errno::INVAL => "; the port does not know one of baud=, mode= and flow=",
        _ => "",
    }
}

impl Read for SerialPort {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self.0.read(bytes) {
            Ok(0) if !bytes.is_empty() => Err(unplugged()),
            Err(error) if is_unplugged(&error) => Err(unplugged()),
            read => read,
        }
    }
}

impl Write for SerialPort {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(|error| if is_unplugged(&error) { unplugged() } else { error })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl AsFd for SerialPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn is_unplugged(error: &io::Error) -> bool {
    let gone = [Errno::IO, Errno::NXIO, Errno::NODEV, Errno::BADF];
    gone.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

fn unplugged() -> io::Error {
    let what = "the serial port was unplugged (with reconnect in its name, grebe waits for it)";
    io::Error::new(io::ErrorKind::NotConnected, what)
}

/// A larger error of the rate than one part in this number garbles the data.
const BAUD_ERROR_PARTS: u32 = 40;
