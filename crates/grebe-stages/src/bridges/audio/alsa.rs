//! Devices of ALSA, whose library is loaded at first use.

use std::ffi::{CStr, CString, c_char, c_int, c_long, c_uint, c_ulong, c_void};
use std::io;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;

use grebe_recording::Encoding;
use libloading::Library;
use rustix::io::Errno;

use crate::Device;
use crate::bridges::audio::AudioStream;
use crate::bridges::audio::error::SoundError;
use crate::bridges::audio::settings::{Direction, NO_DEVICE, Settings};
use crate::error::Error;

/// The functions that grebe calls, without their prefix `snd_`.
struct Alsa {
    pcm_open: unsafe extern "C" fn(*mut *mut Pcm, *const c_char, c_int, c_int) -> c_int,
    pcm_close: unsafe extern "C" fn(*mut Pcm) -> c_int,
    pcm_set_params: unsafe extern "C" fn(*mut Pcm, c_int, c_int, c_uint, c_uint, c_int, c_uint) -> c_int,
    pcm_get_params: unsafe extern "C" fn(*mut Pcm, *mut c_ulong, *mut c_ulong) -> c_int,
    pcm_nonblock: unsafe extern "C" fn(*mut Pcm, c_int) -> c_int,
    pcm_start: unsafe extern "C" fn(*mut Pcm) -> c_int,
    pcm_drain: unsafe extern "C" fn(*mut Pcm) -> c_int,
    pcm_recover: unsafe extern "C" fn(*mut Pcm, c_int, c_int) -> c_int,
    pcm_wait: unsafe extern "C" fn(*mut Pcm, c_int) -> c_int,
    pcm_avail_update: unsafe extern "C" fn(*mut Pcm) -> c_long,
    pcm_readi: unsafe extern "C" fn(*mut Pcm, *mut c_void, c_ulong) -> c_long,
    pcm_writei: unsafe extern "C" fn(*mut Pcm, *const c_void, c_ulong) -> c_long,
    device_name_hint: unsafe extern "C" fn(c_int, *const c_char, *mut *mut *mut c_void) -> c_int,
    device_name_get_hint: unsafe extern "C" fn(*const c_void, *const c_char) -> *mut c_char,
    device_name_free_hint: unsafe extern "C" fn(*mut *mut c_void) -> c_int,
    asoundlib_version: unsafe extern "C" fn() -> *const c_char,
    /// Never unloaded, because the functions above point into it.
    _library: Library,
}

/// `snd_pcm_t`, opaque.
#[repr(C)]
struct Pcm {
    _private: [u8; 0],
}

/// A device that was opened and set.
#[derive(Debug)]
pub(crate) struct SoundDevice {
    pcm: NonNull<Pcm>,
    alsa: &'static Alsa,
    frame_bytes: usize,
    /// Buffer of the device. Some plug-ins refuse larger reads.
    buffer_frames: usize,
}

// SAFETY: any thread may use a handle, one at a time, and the owner is one. Shared references only wait.
unsafe impl Send for SoundDevice {}

impl SoundDevice {
    /// The rate and the channels to capture, if the name gives none.
    pub(super) fn usual(_: &AudioStream) -> (u32, usize) {
        (48_000, 2)
    }

    /// Checks that the device exists and that no other program uses it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(super) fn check(stream: &AudioStream, direction: Direction) -> Result<(), Error> {
        Self::unset(stream, direction).map(drop)
    }

    /// # Errors
    /// [`Error::Device`]: the library or the device is missing, another program uses the device, or it refuses a
    /// setting.
    pub(super) fn open(
        stream: &AudioStream,
        direction: Direction,
        settings: Settings,
    ) -> Result<Self, Error> {
        let mut device = Self::unset(stream, direction)?;
        device.frame_bytes = settings.frame_bytes();
        device.set(settings).map_err(|(source, advice)| failed(stream, "set", source, advice))?;
        device.buffer_frames = device.granted_frames();
        if direction == Direction::Capture {
            device.start().map_err(|error| failed(stream, "start", error, ""))?;
        }
        Ok(device)
    }

    /// Opens the device with its current settings.
    fn unset(stream: &AudioStream, direction: Direction) -> Result<Self, Error> {
        let failed = |source, advice| failed(stream, "open", source, advice);
        let alsa = alsa().map_err(|error| failed(error, NO_LIBRARY))?;
        let name = CString::new(stream.device.as_str())
            .map_err(|_| failed(io::ErrorKind::InvalidInput.into(), ""))?;
        let mut pcm = ptr::null_mut();
        // SAFETY: `name` ends with a zero, and `pcm` is a place for a handle.
        let opened = unsafe { (alsa.pcm_open)(&mut pcm, name.as_ptr(), direction as c_int, NONBLOCK) };
        check(opened.into()).map_err(|error| {
            let advice = advice(&error);
            failed(error, advice)
        })?;
        let pcm = NonNull::new(pcm).ok_or_else(|| failed(io::ErrorKind::NotFound.into(), ""))?;
        Ok(Self { pcm, alsa, frame_bytes: 1, buffer_frames: 1 })
    }

    fn set(&self, settings: Settings) -> Result<(), (io::Error, &'static str)> {
        let Settings { encoding, rate_hz, .. } = settings;
        let channels = (settings.channels * encoding.format.components()) as c_uint;
        // SAFETY: the handle is open.
        let set = unsafe {
            (self.alsa.pcm_set_params)(
                self.pcm.as_ptr(),
                format_number(encoding),
                INTERLEAVED,
                channels,
                rate_hz,
                RESAMPLES,
                LATENCY_US,
            )
        };
        check(set.into()).map(drop).map_err(|error| {
            let what =
                format!("it does not support {encoding} in {channels} channels at {rate_hz} S/s ({error})");
            (io::Error::other(what), "; choose others, or plughw: instead of hw:, which converts")
        })
    }

    /// Frames of the buffer, as ALSA granted them.
    fn granted_frames(&self) -> usize {
        let (mut buffer, mut period): (c_ulong, c_ulong) = (0, 0);
        // SAFETY: the handle is open, and both are places for a number.
        unsafe { (self.alsa.pcm_get_params)(self.pcm.as_ptr(), &mut buffer, &mut period) };
        usize::try_from(buffer).unwrap_or(0).max(1)
    }

    fn start(&self) -> io::Result<()> {
        // SAFETY: the handle is open.
        check(unsafe { (self.alsa.pcm_start)(self.pcm.as_ptr()) }.into()).map(drop)
    }

    /// Waits for up to 100 ms until the device can read or write. Returns whether it can.
    pub(super) fn wait(&self) -> io::Result<bool> {
        // SAFETY: the handle is open.
        Ok(check(unsafe { (self.alsa.pcm_wait)(self.pcm.as_ptr(), WAIT_MS) }.into())? > 0)
    }

    /// Reads whole frames. Returns the number of bytes.
    pub(super) fn read(&mut self, bytes: &mut [u8]) -> Result<usize, SoundError> {
        let frames = (bytes.len() / self.frame_bytes).min(self.buffer_frames) as c_ulong;
        // SAFETY: `bytes` has room for as many frames, and the handle is open.
        let read = unsafe { (self.alsa.pcm_readi)(self.pcm.as_ptr(), bytes.as_mut_ptr().cast(), frames) };
        Ok(check(read).map_err(in_use)? as usize * self.frame_bytes)
    }

    /// Writes whole frames. Returns the number of bytes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<usize, SoundError> {
        let frames = (bytes.len() / self.frame_bytes) as c_ulong;
        // SAFETY: `bytes` has as many frames, and the handle is open.
        let written = unsafe { (self.alsa.pcm_writei)(self.pcm.as_ptr(), bytes.as_ptr().cast(), frames) };
        match check(written).map_err(in_use)? as usize {
            0 if frames > 0 => Err(SoundError::would_block()),
            written => Ok(written * self.frame_bytes),
        }
    }

    /// Waits for up to 100 ms until there is room to write. Starts a full device that does not play yet.
    pub(super) fn wait_for_room(&self) {
        // SAFETY: the handle is open. A device that plays already refuses, and the next write finds any other error.
        unsafe {
            (self.alsa.pcm_start)(self.pcm.as_ptr());
            (self.alsa.pcm_wait)(self.pcm.as_ptr(), WAIT_MS);
        }
    }

    /// Frames that wait to be read.
    pub(super) fn waiting_frames(&mut self) -> u64 {
        // SAFETY: the handle is open.
        let frames = unsafe { (self.alsa.pcm_avail_update)(self.pcm.as_ptr()) };
        u64::try_from(frames).unwrap_or(0)
    }

    /// Restarts the device after an overrun, an underrun, or a suspend of the machine.
    pub(super) fn recover(&mut self, error: &io::Error, direction: Direction) -> io::Result<()> {
        let code = error.raw_os_error().unwrap_or(0);
        // SAFETY: the handle is open.
        check(unsafe { (self.alsa.pcm_recover)(self.pcm.as_ptr(), -code, 1) }.into())?;
        if direction == Direction::Capture { self.start() } else { Ok(()) }
    }

    /// Waits until the device has played all frames.
    pub(super) fn drain(&mut self) -> io::Result<()> {
        // SAFETY: the handle is open.
        unsafe {
            check((self.alsa.pcm_nonblock)(self.pcm.as_ptr(), 0).into())?;
            check((self.alsa.pcm_drain)(self.pcm.as_ptr()).into()).map(drop)
        }
    }
}

impl Drop for SoundDevice {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and nobody uses it any more.
        unsafe { (self.alsa.pcm_close)(self.pcm.as_ptr()) };
    }
}

/// The devices that ALSA lists, for capture and playback. Empty without its library.
pub fn sound_devices() -> Vec<Device> {
    let Ok(alsa) = alsa() else { return Vec::new() };
    let mut hints: *mut *mut c_void = ptr::null_mut();
    // SAFETY: a list is put into `hints`, which ends with a null and is freed below.
    if unsafe { (alsa.device_name_hint)(-1, c"pcm".as_ptr(), &mut hints) } < 0 || hints.is_null() {
        return Vec::new();
    }
    let mut devices = Vec::new();
    // SAFETY: the list ends with a null; each text of a hint is ours.
    unsafe {
        let mut at = hints;
        while !(*at).is_null() {
            let said = |id: &CStr| owned((alsa.device_name_get_hint)(*at, id.as_ptr()));
            let name = said(c"NAME").unwrap_or_default();
            let is_usable =
                ["default", "pulse", "pipewire", "hw:", "plughw:"].iter().any(|it| name.starts_with(it));
            if is_usable {
                let only = match said(c"IOID").as_deref() {
                    Some("Input") => " (listening)",
                    Some("Output") => " (playing)",
                    _ => "",
                };
                let what = said(c"DESC").unwrap_or_default().replace('\n', ", ") + only;
                let name = if name == "default" { "" } else { name.as_str() };
                devices.push(Device { uri: format!("audio:{name}"), what });
            }
            at = at.add(1);
        }
        (alsa.device_name_free_hint)(hints);
    }
    devices
}

/// The version of ALSA's library.
///
/// # Errors
/// The library is missing or broken.
pub fn sound_library() -> io::Result<String> {
    // SAFETY: a constant text.
    let version = unsafe { CStr::from_ptr((alsa()?.asoundlib_version)()) };
    Ok(version.to_string_lossy().into_owned())
}

/// Takes over a text that the library allocated.
///
/// # Safety
/// `text` is null, or a text from `malloc` without another owner.
unsafe fn owned(text: *mut c_char) -> Option<String> {
    unsafe extern "C" {
        fn free(pointer: *mut c_void);
    }
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller guarantees a zero at the end and that we own it.
    unsafe {
        let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
        free(text.cast());
        Some(copy)
    }
}

/// The library, loaded at the first call.
fn alsa() -> io::Result<&'static Alsa> {
    static ALSA: OnceLock<Result<Alsa, String>> = OnceLock::new();
    let loaded = ALSA.get_or_init(|| load().map_err(|error| error.to_string()));
    loaded.as_ref().map_err(|why| io::Error::new(io::ErrorKind::NotFound, why.clone()))
}

fn load() -> Result<Alsa, libloading::Error> {
    // SAFETY: loading ALSA runs nothing but the dynamic linker; the types of the functions are those of alsa/asoundlib.h.
    unsafe {
        let library = Library::new("libasound.so.2")?;
        macro_rules! symbol {
            ($name:literal) => {
                *library.get(concat!("snd_", $name, "\0").as_bytes())?
            };
        }
        // Silences the library, which would print each error that it also returns.
        let set_handler: unsafe extern "C" fn(unsafe extern "C" fn()) -> c_int =
            symbol!("lib_error_set_handler");
        set_handler(say_nothing);
        Ok(Alsa {
            pcm_open: symbol!("pcm_open"),
            pcm_close: symbol!("pcm_close"),
            pcm_set_params: symbol!("pcm_set_params"),
            pcm_get_params: symbol!("pcm_get_params"),
            pcm_nonblock: symbol!("pcm_nonblock"),
            pcm_start: symbol!("pcm_start"),
            pcm_drain: symbol!("pcm_drain"),
            pcm_recover: symbol!("pcm_recover"),
            pcm_wait: symbol!("pcm_wait"),
            pcm_avail_update: symbol!("pcm_avail_update"),
            pcm_readi: symbol!("pcm_readi"),
            pcm_writei: symbol!("pcm_writei"),
            device_name_hint: symbol!("device_name_hint"),
            device_name_get_hint: symbol!("device_name_get_hint"),
            device_name_free_hint: symbol!("device_name_free_hint"),
            asoundlib_version: symbol!("asoundlib_version"),
            _library: library,
        })
    }
}

/// An error handler without arguments. The caller cleans up the stack in every calling convention of Linux.
unsafe extern "C" fn say_nothing() {}

/// A count, or the system's error.
fn check(code: c_long) -> io::Result<c_long> {
    if code < 0 {
        Err(io::Error::from_raw_os_error(i32::try_from(-code).unwrap_or(i32::MAX)))
    } else {
        Ok(code)
    }
}

/// An error of an open device.
fn in_use(source: io::Error) -> SoundError {
    match source.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::PIPE | Errno::STRPIPE) => SoundError::Xrun { missed_samples: None, source },
        Some(Errno::IO | Errno::NODEV | Errno::BADFD) => SoundError::Unplugged,
        _ => SoundError::Other(source),
    }
}

fn failed(stream: &AudioStream, action: &'static str, source: io::Error, advice: &'static str) -> Error {
    Error::Device { action, name: format!("audio:{}", stream.device), source, advice }
}

/// Advice for errors whose system message gives none.
fn advice(error: &io::Error) -> &'static str {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT | Errno::NODEV | Errno::NXIO) => NO_DEVICE,
        Some(Errno::BUSY) => {
            "; another program has it: end that one, or use the default device, which is shared"
        }
        Some(Errno::ACCESS | Errno::PERM) => {
            "; allow yourself sound (sudo usermod -aG audio $USER) and log in again"
        }
        Some(Errno::CONNREFUSED) => "; the sound server does not run",
        _ => "",
    }
}

/// `snd_pcm_format_t` of the samples of one of the device's channels.
fn format_number(encoding: Encoding) -> c_int {
    use grebe_frame::Component::{F32, F64, I8, I16, I32, U8};
    if encoding == Encoding::I24 {
        return S24_3LE;
    }
    match encoding.format.component() {
        I8 => 0,
        U8 => 1,
        I16 => 2,
        I32 => 10,
        F32 => 14,
        F64 => 16,
    }
}

impl std::fmt::Debug for Alsa {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Alsa")
    }
}

const NO_LIBRARY: &str = if crate::IS_STATIC {
    "; a static build loads no libraries: use the grebe for Linux that is not static"
} else {
    "; install ALSA's library (sudo apt-get install libasound2)"
};
/// `SND_PCM_NONBLOCK`.
const NONBLOCK: c_int = 1;
/// `SND_PCM_ACCESS_RW_INTERLEAVED`.
const INTERLEAVED: c_int = 3;
const S24_3LE: c_int = 32;
/// Devices that convert may do so; `hw:` does not.
const RESAMPLES: c_int = 1;
/// Buffer of the device, for a program that reads or writes late.
const LATENCY_US: c_uint = 200_000;
const WAIT_MS: c_int = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_library_have_their_meaning() {
        let error = |code| in_use(check(code).unwrap_err());
        for code in [-32, -86] {
            assert!(matches!(error(code), SoundError::Xrun { missed_samples: None, .. }), "{code}");
        }
        for code in [-5, -19, -77] {
            assert!(matches!(error(code), SoundError::Unplugged), "{code}");
        }
        assert!(matches!(error(-11), SoundError::Other(error) if error.kind() == io::ErrorKind::WouldBlock));
    }
}
