//! A serial port of Windows.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::windows::fs::OpenOptionsExt as _;
use std::os::windows::io::AsRawHandle as _;

use windows_sys::Win32::Devices::Communication::{
    COMMTIMEOUTS, ClearCommError, DCB, EVENPARITY, GetCommState, NOPARITY, ODDPARITY, ONESTOPBIT,
    SetCommState, SetCommTimeouts, SetupComm, TWOSTOPBITS,
};
use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_BAD_COMMAND, ERROR_DEVICE_NOT_CONNECTED, ERROR_DEVICE_REMOVED,
    ERROR_FILE_NOT_FOUND, ERROR_GEN_FAILURE, ERROR_INVALID_FUNCTION, ERROR_INVALID_HANDLE,
    ERROR_INVALID_PARAMETER, ERROR_IO_DEVICE, ERROR_NO_SUCH_DEVICE, ERROR_NOT_READY, ERROR_OPERATION_ABORTED,
    ERROR_PATH_NOT_FOUND, ERROR_SHARING_VIOLATION,
};

use crate::error::Error;
use crate::serial::name::{Flow, Parity};
use crate::serial::{IN_USE, MISSING, NOT_A_PORT, REFUSED, SerialEnd, check_rate, failed, unplugged};

/// An exclusive port, with the settings of its name.
#[derive(Debug)]
pub(crate) struct SerialPort(File);

impl SerialPort {
    /// # Errors
    /// [`Error::Device`]: the port is missing, in use, not a serial port, or refuses a setting.
    pub(crate) fn open(end: &SerialEnd) -> Result<Self, Error> {
        let failed = |action: &'static str| {
            move |error: io::Error| {
                let advice = advice(&error);
                failed(end, action, error, advice)
            }
        };
        let name = end.path.display().to_string();
        // COM10 and above are only found by their full name.
        let path = if name.contains(['/', '\\']) { name } else { format!(r"\\.\{name}") };
        let opened = OpenOptions::new().read(true).write(true).share_mode(0).open(path);
        let port = Self(opened.map_err(failed("open"))?);
        let mut settings = port.settings().map_err(failed("open"))?;
        set(&mut settings, end);
        // SAFETY: the handle is open, and the settings are a whole `DCB`.
        check(unsafe { SetCommState(port.handle(), &settings) }).map_err(failed("set"))?;
        check_rate(end, port.settings().map_err(failed("set"))?.BaudRate)?;
        // SAFETY: the handle is open.
        check(unsafe { SetCommTimeouts(port.handle(), &TIMEOUTS) }).map_err(failed("set"))?;
        // SAFETY: the handle is open. A driver may keep its own buffer.
        unsafe { SetupComm(port.handle(), QUEUE_BYTES, QUEUE_BYTES) };
        Ok(port)
    }

    fn handle(&self) -> *mut std::ffi::c_void {
        self.0.as_raw_handle()
    }

    fn settings(&self) -> io::Result<DCB> {
        let mut settings = DCB { DCBlength: size_of::<DCB>() as u32, ..DCB::default() };
        // SAFETY: the handle is open, and `settings` has room for them.
        check(unsafe { GetCommState(self.handle(), &mut settings) })?;
        Ok(settings)
    }

    /// Some drivers report nothing to read, without an error, for a port that is unplugged.
    fn is_alive(&self) -> bool {
        let mut errors = 0;
        // SAFETY: the handle is open; the status is not asked for.
        unsafe { ClearCommError(self.handle(), &mut errors, std::ptr::null_mut()) != 0 }
    }
}

fn set(settings: &mut DCB, end: &SerialEnd) {
    settings.BaudRate = end.baud;
    settings.ByteSize = end.data_bits;
    settings.Parity = match end.parity {
        Parity::None => NOPARITY,
        Parity::Even => EVENPARITY,
        Parity::Odd => ODDPARITY,
    };
    settings.StopBits = if end.stop_bits == 2 { TWOSTOPBITS } else { ONESTOPBIT };
    settings._bitfield = BINARY;
    if end.parity != Parity::None {
        settings._bitfield |= CHECKS_PARITY;
    }
    // Windows always drops DTR when a port is closed. A board that must not notice never sees it raised; nor RTS,
    // because the two together reset some boards.
    if end.hangs_up {
        settings._bitfield |= DTR_ON | RTS_ON;
    }
    match end.flow {
        Flow::None => {}
        Flow::Hardware => {
            settings._bitfield &= !RTS_ON;
            settings._bitfield |= CTS_HOLDS_OUTPUT | RTS_BY_QUEUE;
        }
        Flow::Software => {
            settings._bitfield |= XON_XOFF_OUT | XON_XOFF_IN | SENDS_AFTER_XOFF;
            (settings.XonChar, settings.XoffChar) = (0x11, 0x13);
            (settings.XonLim, settings.XoffLim) = (512, 512);
        }
    }
}

/// Advice for errors whose system message gives none.
fn advice(error: &io::Error) -> &'static str {
    match error.raw_os_error().unwrap_or(0) as u32 {
        ERROR_FILE_NOT_FOUND | ERROR_PATH_NOT_FOUND | ERROR_NO_SUCH_DEVICE => MISSING,
        // Ports have no permissions of their own.
        ERROR_ACCESS_DENIED | ERROR_SHARING_VIOLATION => IN_USE,
        ERROR_INVALID_FUNCTION | ERROR_INVALID_HANDLE => NOT_A_PORT,
        ERROR_INVALID_PARAMETER => REFUSED,
        _ => "",
    }
}

impl Read for SerialPort {
    /// Waits for up to 100 ms for the first byte.
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self.0.read(bytes) {
            Ok(0) if !self.is_alive() => Err(unplugged()),
            Ok(0) if !bytes.is_empty() => Err(io::ErrorKind::WouldBlock.into()),
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
        Ok(())
    }
}

/// Drivers differ in their error for a port that is gone.
fn is_unplugged(error: &io::Error) -> bool {
    const GONE: [u32; 10] = [
        ERROR_ACCESS_DENIED,
        ERROR_BAD_COMMAND,
        ERROR_DEVICE_NOT_CONNECTED,
        ERROR_DEVICE_REMOVED,
        ERROR_FILE_NOT_FOUND,
        ERROR_GEN_FAILURE,
        ERROR_IO_DEVICE,
        ERROR_NO_SUCH_DEVICE,
        ERROR_NOT_READY,
        ERROR_OPERATION_ABORTED,
    ];
    error.raw_os_error().is_some_and(|code| GONE.contains(&(code as u32)))
}

/// A result of the system's functions, where zero is an error.
fn check(done: i32) -> io::Result<()> {
    if done == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A read returns the bytes that are there, or waits for up to 100 ms for the first. A write waits as long as it must.
const TIMEOUTS: COMMTIMEOUTS = COMMTIMEOUTS {
    ReadIntervalTimeout: u32::MAX,
    ReadTotalTimeoutMultiplier: u32::MAX,
    ReadTotalTimeoutConstant: 100,
    WriteTotalTimeoutMultiplier: 0,
    WriteTotalTimeoutConstant: 0,
};
/// The system's default, 4 KiB, is 40 ms of a fast USB port.
const QUEUE_BYTES: u32 = 1 << 16;

// Bits of `DCB`, as winbase.h has them.
const BINARY: u32 = 1;
const CHECKS_PARITY: u32 = 1 << 1;
const CTS_HOLDS_OUTPUT: u32 = 1 << 2;
const DTR_ON: u32 = 1 << 4;
const SENDS_AFTER_XOFF: u32 = 1 << 7;
const XON_XOFF_OUT: u32 = 1 << 8;
const XON_XOFF_IN: u32 = 1 << 9;
const RTS_ON: u32 = 1 << 12;
const RTS_BY_QUEUE: u32 = 2 << 12;

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn end(name: &str) -> SerialEnd {
        SerialEnd::parse(name).unwrap()
    }

    #[test]
    fn a_missing_port_is_an_error_with_a_remedy() {
        let error = SerialPort::open(&end("COM250")).unwrap_err();
        assert!(crate::transport::is_absent(&error), "{error}");
        let error = error.to_string();
        assert!(error.starts_with("cannot open serial://COM250: "), "{error}");
        assert!(error.contains("is it plugged in?"), "{error}");
    }

    #[test]
    fn a_file_is_not_a_serial_port() {
        let file = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let error = SerialPort::open(&end(file.to_str().unwrap())).unwrap_err().to_string();
        assert!(error.contains("it is not a serial port"), "{error}");
    }

    // The driver of Windows opens a port only once; wine opens it again.
    #[test]
    fn errors_of_the_system_have_a_remedy() {
        let advice = |code: u32| advice(&io::Error::from_raw_os_error(code as i32));
        assert_eq!(advice(5), IN_USE);
        assert_eq!(advice(87), REFUSED);
        let is_unplugged = |code: u32| is_unplugged(&io::Error::from_raw_os_error(code as i32));
        assert!(is_unplugged(22) && is_unplugged(995) && is_unplugged(1167) && !is_unplugged(87));
    }

    #[test]
    fn settings_are_the_bits_of_the_system() {
        let set = |change: fn(&mut SerialEnd)| {
            let (mut end, mut settings) = (end("COM3"), DCB::default());
            change(&mut end);
            set(&mut settings, &end);
            (settings.ByteSize, settings.Parity, settings.StopBits, settings._bitfield)
        };
        assert_eq!(set(|_| {}), (8, 0, 0, 0x1011));
        assert_eq!(set(|end| end.hangs_up = false), (8, 0, 0, 1));
        assert_eq!(set(|end| end.flow = Flow::Hardware), (8, 0, 0, 0x2015));
        assert_eq!(set(|end| end.flow = Flow::Software), (8, 0, 0, 0x1391));
        let odd = |end: &mut SerialEnd| (end.data_bits, end.parity, end.stop_bits) = (7, Parity::Odd, 2);
        assert_eq!(set(odd), (7, 1, 2, 0x1013));
    }

    /// Two ports that are connected: under wine two pseudo-terminals, on Windows a null modem.
    fn null_modem() -> Option<(SerialEnd, SerialEnd)> {
        let Ok(names) = std::env::var("GREBE_NULL_MODEM") else {
            println!("skipped: GREBE_NULL_MODEM names no pair of connected ports, as in COM3,COM4");
            return None;
        };
        let (one, other) = names.split_once(',').unwrap();
        Some((end(one), end(other)))
    }

    #[test]
    fn bytes_pass_between_two_ports_and_silence_does_not_delay_a_stop() {
        let Some((one, other)) = null_modem() else { return };
        let (mut from, mut to) = (SerialPort::open(&one).unwrap(), SerialPort::open(&other).unwrap());
        let begin = Instant::now();
        let silence = from.read(&mut [0; 100]).unwrap_err();
        assert_eq!(silence.kind(), io::ErrorKind::WouldBlock);
        assert!(begin.elapsed() >= Duration::from_millis(50), "it waits instead of spinning");
        let sent: Vec<u8> = (0..=255).cycle().take(3_000).collect();
        to.write_all(&sent).unwrap();
        let (mut got, mut bytes) = (Vec::<u8>::new(), [0; 1_000]);
        while got.len() < sent.len() {
            match from.read(&mut bytes) {
                Ok(read) => got.extend(&bytes[..read]),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}"),
            }
        }
        assert!(got == sent);
    }

    #[test]
    fn an_unplugged_port_is_reported() {
        let Ok(name) = std::env::var("GREBE_UNPLUG") else {
            println!("skipped: GREBE_UNPLUG names no port that somebody unplugs within 20 s, as in COM3");
            return;
        };
        let mut port = SerialPort::open(&end(&name)).unwrap();
        println!("unplug {name} now");
        let begin = Instant::now();
        let error = loop {
            match port.read(&mut [0; 100]) {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => break error,
                _ => assert!(begin.elapsed() < Duration::from_secs(20), "it is still there"),
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::NotConnected, "{error}");
    }
}
