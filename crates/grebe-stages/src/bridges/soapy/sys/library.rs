//! The library: found, loaded once, and never unloaded.

use std::error::Error as _;
use std::ffi::{CStr, CString, c_char, c_double, c_int, c_long, c_longlong, c_void};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use libloading::Library;

use crate::error::Error;

/// `SoapySDRKwargs`: keys and values.
#[repr(C)]
#[allow(dead_code, reason = "only the library looks into it")]
pub(super) struct Kwargs {
    length: usize,
    keys: *mut *mut c_char,
    values: *mut *mut c_char,
}

/// `SoapySDRRange`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Range {
    pub(super) minimum: c_double,
    pub(super) maximum: c_double,
    _step: c_double,
}

/// `SoapySDRLogHandler`.
type LogHandler = extern "C" fn(c_int, *const c_char);
/// `SoapySDRDevice *`.
pub(super) type RawDevice = *mut c_void;
/// `SoapySDRStream *`.
pub(super) type RawStream = *mut c_void;

macro_rules! functions {
    ($($name:ident = $symbol:literal: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions that grebe calls.
        pub(super) struct Functions {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            fn of(library: &Library) -> Result<Self, libloading::Error> {
                Ok(Self {
                    // SAFETY: each type is that of the function of this name in the headers of SoapySDR 0.8.
                    $($name: *unsafe {
                        library.get::<unsafe extern "C" fn($($argument),*) $(-> $result)?>($symbol.to_bytes_with_nul())
                    }?,)*
                })
            }
        }
    };
}

functions! {
    lib_version = c"SoapySDR_getLibVersion": fn() -> *const c_char;
    list_modules = c"SoapySDR_listModules": fn(*mut usize) -> *mut *mut c_char;
    register_log_handler = c"SoapySDR_registerLogHandler": fn(LogHandler);
    error_text = c"SoapySDR_errToStr": fn(c_int) -> *const c_char;
    free = c"SoapySDR_free": fn(*mut c_void);
    clear_strings = c"SoapySDRStrings_clear": fn(*mut *mut *mut c_char, usize);
    kwargs_from_string = c"SoapySDRKwargs_fromString": fn(*const c_char) -> Kwargs;
    kwargs_to_string = c"SoapySDRKwargs_toString": fn(*const Kwargs) -> *mut c_char;
    clear_kwargs = c"SoapySDRKwargs_clear": fn(*mut Kwargs);
    clear_kwargs_list = c"SoapySDRKwargsList_clear": fn(*mut Kwargs, usize);
    last_status = c"SoapySDRDevice_lastStatus": fn() -> c_int;
    last_error = c"SoapySDRDevice_lastError": fn() -> *const c_char;
    enumerate = c"SoapySDRDevice_enumerateStrArgs": fn(*const c_char, *mut usize) -> *mut Kwargs;
    make = c"SoapySDRDevice_makeStrArgs": fn(*const c_char) -> RawDevice;
    unmake = c"SoapySDRDevice_unmake": fn(RawDevice) -> c_int;
    driver_key = c"SoapySDRDevice_getDriverKey": fn(RawDevice) -> *mut c_char;
    hardware_key = c"SoapySDRDevice_getHardwareKey": fn(RawDevice) -> *mut c_char;
    channels = c"SoapySDRDevice_getNumChannels": fn(RawDevice, c_int) -> usize;
    stream_formats = c"SoapySDRDevice_getStreamFormats":
        fn(RawDevice, c_int, usize, *mut usize) -> *mut *mut c_char;
    native_format = c"SoapySDRDevice_getNativeStreamFormat":
        fn(RawDevice, c_int, usize, *mut c_double) -> *mut c_char;
    antennas = c"SoapySDRDevice_listAntennas": fn(RawDevice, c_int, usize, *mut usize) -> *mut *mut c_char;
    set_antenna = c"SoapySDRDevice_setAntenna": fn(RawDevice, c_int, usize, *const c_char) -> c_int;
    gains = c"SoapySDRDevice_listGains": fn(RawDevice, c_int, usize, *mut usize) -> *mut *mut c_char;
    has_gain_mode = c"SoapySDRDevice_hasGainMode": fn(RawDevice, c_int, usize) -> bool;
    set_gain_mode = c"SoapySDRDevice_setGainMode": fn(RawDevice, c_int, usize, bool) -> c_int;
    gain_mode = c"SoapySDRDevice_getGainMode": fn(RawDevice, c_int, usize) -> bool;
    set_gain = c"SoapySDRDevice_setGain": fn(RawDevice, c_int, usize, c_double) -> c_int;
    set_gain_element = c"SoapySDRDevice_setGainElement":
        fn(RawDevice, c_int, usize, *const c_char, c_double) -> c_int;
    gain = c"SoapySDRDevice_getGain": fn(RawDevice, c_int, usize) -> c_double;
    gain_range = c"SoapySDRDevice_getGainRange": fn(RawDevice, c_int, usize) -> Range;
    frequencies = c"SoapySDRDevice_listFrequencies":
        fn(RawDevice, c_int, usize, *mut usize) -> *mut *mut c_char;
    set_frequency = c"SoapySDRDevice_setFrequency":
        fn(RawDevice, c_int, usize, c_double, *const Kwargs) -> c_int;
    frequency = c"SoapySDRDevice_getFrequency": fn(RawDevice, c_int, usize) -> c_double;
    frequency_ranges = c"SoapySDRDevice_getFrequencyRange":
        fn(RawDevice, c_int, usize, *mut usize) -> *mut Range;
    set_correction = c"SoapySDRDevice_setFrequencyCorrection": fn(RawDevice, c_int, usize, c_double) -> c_int;
    set_rate = c"SoapySDRDevice_setSampleRate": fn(RawDevice, c_int, usize, c_double) -> c_int;
    rate = c"SoapySDRDevice_getSampleRate": fn(RawDevice, c_int, usize) -> c_double;
    rate_ranges = c"SoapySDRDevice_getSampleRateRange":
        fn(RawDevice, c_int, usize, *mut usize) -> *mut Range;
    set_bandwidth = c"SoapySDRDevice_setBandwidth": fn(RawDevice, c_int, usize, c_double) -> c_int;
    bandwidth = c"SoapySDRDevice_getBandwidth": fn(RawDevice, c_int, usize) -> c_double;
    set_clock_source = c"SoapySDRDevice_setClockSource": fn(RawDevice, *const c_char) -> c_int;
    set_time_source = c"SoapySDRDevice_setTimeSource": fn(RawDevice, *const c_char) -> c_int;
    has_hardware_time = c"SoapySDRDevice_hasHardwareTime": fn(RawDevice, *const c_char) -> bool;
    hardware_time = c"SoapySDRDevice_getHardwareTime": fn(RawDevice, *const c_char) -> c_longlong;
    write_setting = c"SoapySDRDevice_writeSetting": fn(RawDevice, *const c_char, *const c_char) -> c_int;
    setup_stream = c"SoapySDRDevice_setupStream":
        fn(RawDevice, c_int, *const c_char, *const usize, usize, *const Kwargs) -> RawStream;
    close_stream = c"SoapySDRDevice_closeStream": fn(RawDevice, RawStream) -> c_int;
    activate_stream = c"SoapySDRDevice_activateStream":
        fn(RawDevice, RawStream, c_int, c_longlong, usize) -> c_int;
    deactivate_stream = c"SoapySDRDevice_deactivateStream": fn(RawDevice, RawStream, c_int, c_longlong) -> c_int;
    read_stream = c"SoapySDRDevice_readStream":
        fn(RawDevice, RawStream, *const *mut c_void, usize, *mut c_int, *mut c_longlong, c_long) -> c_int;
    write_stream = c"SoapySDRDevice_writeStream":
        fn(RawDevice, RawStream, *const *const c_void, usize, *mut c_int, c_longlong, c_long) -> c_int;
    read_stream_status = c"SoapySDRDevice_readStreamStatus":
        fn(RawDevice, RawStream, *mut usize, *mut c_int, *mut c_longlong, c_long) -> c_int;
}

/// The loaded library.
pub(super) struct Loaded {
    pub(super) functions: Functions,
    /// Keeps the functions loaded.
    _library: Library,
}

/// Version of the library, and its modules.
pub(crate) struct Version {
    pub(crate) library: String,
    /// Their files.
    pub(crate) modules: Vec<String>,
}

/// The library, loaded at the first call.
///
/// # Errors
/// The library is missing, or has another interface.
pub(super) fn library() -> Result<&'static Loaded, Error> {
    if let Some(loaded) = LIBRARY.get() {
        return Ok(loaded);
    }
    let missing = |error: libloading::Error| Error::Library {
        what: "soapy:",
        library: FILE,
        // The crate's message hides the system's.
        why: error.source().map_or_else(|| error.to_string(), ToString::to_string),
        install: INSTALL,
    };
    // SAFETY: the library's initialisers only set up tables of its own; it is trusted as the linker would trust it.
    let library = unsafe { Library::new(FILE) }.map_err(missing)?;
    let functions = Functions::of(&library).map_err(missing)?;
    let loaded = LIBRARY.get_or_init(|| Loaded { functions, _library: library });
    // SAFETY: the handler is a function of this program, which stays.
    unsafe { (loaded.functions.register_log_handler)(hear) };
    Ok(loaded)
}

/// Version and modules of the library. Does not search for devices.
///
/// # Errors
/// As [`library`].
pub(crate) fn version() -> Result<Version, Error> {
    let loaded = library()?;
    let functions = &loaded.functions;
    // SAFETY: the text is the library's own and stays; the list is as long as it says, and is handed back.
    let (library, modules) = unsafe {
        let mut length = 0;
        let list = (functions.list_modules)(&mut length);
        (lent_text((functions.lib_version)()), loaded.take_strings(list, length))
    };
    Ok(Version { library, modules })
}

/// The arguments of each device that matches `args`, in the library's notation.
///
/// # Errors
/// As [`library`], or a driver's message.
pub(crate) fn enumerate(args: &str) -> Result<Vec<String>, Error> {
    let loaded = library()?;
    let functions = &loaded.functions;
    let args = c_text(args);
    let mut length = 0;
    // SAFETY: the list is as long as the library says, each text is its own copy, and all of it is handed back.
    unsafe {
        let list = (functions.enumerate)(args.as_ptr(), &mut length);
        if list.is_null() {
            return Ok(Vec::new());
        }
        let found =
            (0..length).map(|at| loaded.take_text((functions.kwargs_to_string)(list.add(at)))).collect();
        (functions.clear_kwargs_list)(list, length);
        Ok(found)
    }
}

impl Loaded {
    /// Error of the last call in this thread.
    pub(super) fn last_error(&self) -> Option<String> {
        // SAFETY: the text is the library's own, of this thread, and is copied before the next call.
        let logged = unsafe {
            if (self.functions.last_status)() == 0 {
                return None;
            }
            lent_text((self.functions.last_error)())
        };
        Some(logged)
    }

    /// Takes over a text from the library.
    ///
    /// # Safety
    /// `text` is null, or a text that the library allocated.
    pub(super) unsafe fn take_text(&self, text: *mut c_char) -> String {
        // SAFETY: guaranteed by the caller. The text is not used after it was freed.
        unsafe {
            let copy = lent_text(text);
            if !text.is_null() {
                (self.functions.free)(text.cast());
            }
            copy
        }
    }

    /// Takes over a list of texts from the library.
    ///
    /// # Safety
    /// `list` is null, or a list of `length` texts that the library allocated.
    pub(super) unsafe fn take_strings(&self, mut list: *mut *mut c_char, length: usize) -> Vec<String> {
        if list.is_null() {
            return Vec::new();
        }
        // SAFETY: as the caller promises.
        unsafe {
            let texts = (0..length).map(|at| lent_text(*list.add(at))).collect();
            (self.functions.clear_strings)(&mut list, length);
            texts
        }
    }

    /// Takes over a list of ranges from the library.
    ///
    /// # Safety
    /// `list` is null, or a list of `length` ranges that the library allocated.
    pub(super) unsafe fn take_ranges(&self, list: *mut Range, length: usize) -> Vec<(f64, f64)> {
        if list.is_null() {
            return Vec::new();
        }
        // SAFETY: as the caller promises.
        unsafe {
            let ranges = (0..length).map(|at| &*list.add(at)).map(|range| (range.minimum, range.maximum));
            let ranges = ranges.collect();
            (self.functions.free)(list.cast());
            ranges
        }
    }

    /// Calls with `pairs` in the library's type.
    pub(super) fn with_kwargs<T>(
        &self,
        pairs: &[(String, String)],
        call: impl FnOnce(*const Kwargs) -> T,
    ) -> T {
        let markup: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let markup = c_text(&markup.join(","));
        // SAFETY: the text lasts as long as the call, and the arguments are freed after it.
        let mut kwargs = unsafe { (self.functions.kwargs_from_string)(markup.as_ptr()) };
        let result = call(&kwargs);
        // SAFETY: see above.
        unsafe { (self.functions.clear_kwargs)(&mut kwargs) };
        result
    }
}

/// Copies a text that the library keeps.
///
/// # Safety
/// `text` is null, or ends with a zero.
pub(super) unsafe fn lent_text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// A text for the library, cut at the first zero.
pub(super) fn c_text(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or_default()).unwrap_or_default()
}

/// The drivers' last logged error, which it clears.
pub(super) fn take_logged() -> Option<String> {
    logged().take()
}

/// Replaces the library's printing to the terminal. Only errors are kept.
extern "C" fn hear(level: c_int, message: *const c_char) {
    if level <= LOG_ERROR && !message.is_null() {
        // SAFETY: the library hands a text that lasts as long as the call.
        let text = unsafe { lent_text(message) };
        *logged() = Some(text.trim().to_owned());
    }
}

fn logged() -> MutexGuard<'static, Option<String>> {
    SAID.lock().unwrap_or_else(PoisonError::into_inner)
}

static LIBRARY: OnceLock<Loaded> = OnceLock::new();
static SAID: Mutex<Option<String>> = Mutex::new(None);
/// `SOAPY_SDR_ERROR`. More severe levels are smaller.
const LOG_ERROR: c_int = 3;

/// Binary interface 0.8. Others have different functions.
const FILE: &str = if cfg!(target_os = "macos") {
    "libSoapySDR.0.8.dylib"
} else if cfg!(windows) {
    "SoapySDR.dll"
} else {
    "libSoapySDR.so.0.8"
};
const INSTALL: &str = if cfg!(target_os = "macos") {
    "install SoapySDR 0.8 and the module of your device, for example: brew install soapysdr"
} else if cfg!(windows) {
    "install SoapySDR 0.8 and the module of your device, for example with PothosSDR"
} else if crate::IS_STATIC {
    "a static build loads no libraries: use the grebe for Linux that is not static"
} else {
    "install SoapySDR 0.8 and the module of your device, for example: apt-get install libsoapysdr0.8 soapysdr0.8-module-all"
};
