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
use crate::serial::name::{Flow, Parity};
use crate::serial::{IN_USE, MISSING, NOT_A_PORT, REFUSED, SerialEnd, check_rate, failed, unplugged};

/// An exclusive port in raw mode, with the settings of its name.
#[derive(Debug)]
pub(crate) struct SerialPort(File);

impl SerialPort {
    /// # Errors
    /// [`Error::Device`]: the port is missing, in use, not a serial port, or refuses a setting.
    pub(crate) fn open(end: &SerialEnd) -> Result<Self, Error> {
        let failed =
            |action: &'static str| move |errno: Errno| failed(end, action, errno.into(), advice(errno));
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
        check_rate(end, tcgetattr(&port).map_err(failed("set"))?.output_speed())?;
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
        Errno::NOENT | Errno::NXIO | Errno::NODEV => MISSING,
        Errno::ACCESS | Errno::PERM => {
            "; allow yourself serial ports (sudo usermod -aG dialout $USER) and log in again"
        }
        Errno::BUSY | Errno::WOULDBLOCK => IN_USE,
        Errno::NOTTY => NOT_A_PORT,
        Errno::INVAL => REFUSED,
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
