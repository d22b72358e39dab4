//! The serial ports that Windows has, from its registry.

use std::ptr;

use windows_sys::Win32::Foundation::ERROR_SUCCESS;
use windows_sys::Win32::System::Registry::{
    HKEY, HKEY_LOCAL_MACHINE, KEY_READ, RegCloseKey, RegEnumValueW, RegOpenKeyExW,
};
use windows_sys::core::w;

/// The ports, `COM3`, each with its name in the system: `\Device\USBSER000`. Drivers enter a port while it is plugged in.
pub(super) fn serial_ports() -> Vec<(String, String)> {
    let mut key: HKEY = ptr::null_mut();
    let path = w!(r"HARDWARE\DEVICEMAP\SERIALCOMM");
    // SAFETY: the path ends with a zero, and `key` is a place for a key. A machine without ports has no such key.
    if unsafe { RegOpenKeyExW(HKEY_LOCAL_MACHINE, path, 0, KEY_READ, &mut key) } != ERROR_SUCCESS {
        return Vec::new();
    }
    let ports = (0..PORTS_MAX).map_while(|index| value(key, index)).collect();
    // SAFETY: the key is open, and not used any more.
    unsafe { RegCloseKey(key) };
    ports
}

/// A value: its name is that of the device, its text that of the port.
fn value(key: HKEY, index: u32) -> Option<(String, String)> {
    let (mut device, mut port) = ([0_u16; 512], [0_u16; 64]);
    let mut device_len = device.len() as u32;
    let mut port_bytes = size_of_val(&port) as u32;
    // SAFETY: the key is open. Each buffer comes with its size, which the call replaces by the length used.
    let found = unsafe {
        RegEnumValueW(
            key,
            index,
            device.as_mut_ptr(),
            &mut device_len,
            ptr::null(),
            ptr::null_mut(),
            port.as_mut_ptr().cast(),
            &mut port_bytes,
        )
    };
    if found != ERROR_SUCCESS {
        return None;
    }
    let port = String::from_utf16_lossy(&port[..port_bytes as usize / 2]);
    let device = String::from_utf16_lossy(&device[..device_len as usize]);
    Some((port.trim_end_matches('\0').to_owned(), device))
}

/// Windows has names up to COM256.
const PORTS_MAX: u32 = 256;
