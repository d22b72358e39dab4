//! Hostile program on a pipe.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::path::Path;
use std::ptr::null;
use std::time::{Duration, Instant};

use windows_sys::Win32::Foundation::ERROR_PIPE_BUSY;
use windows_sys::Win32::System::Memory::{FILE_MAP_WRITE, MapViewOfFile, UnmapViewOfFile};
use windows_sys::Win32::System::Pipes::{PIPE_READMODE_MESSAGE, SetNamedPipeHandleState};

/// Hostile program that speaks the protocol.
pub(crate) struct Stranger {
    pipe: File,
    /// Payload and lane.
    pub(crate) memory: Vec<OwnedHandle>,
}

impl Stranger {
    pub(crate) fn connect(folder: &Path) -> Self {
        let name = std::fs::read_to_string(folder.join("x.shm")).unwrap();
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            match OpenOptions::new().read(true).write(true).open(format!(r"\\.\pipe\{name}")) {
                Ok(pipe) => {
                    // SAFETY: the pipe is open. Else one read would take several packets.
                    let mode = unsafe {
                        let pipe = pipe.as_raw_handle();
                        SetNamedPipeHandleState(pipe, &PIPE_READMODE_MESSAGE, null(), null())
                    };
                    assert!(mode != 0);
                    return Self { pipe, memory: Vec::new() };
                }
                Err(error)
                    if error.raw_os_error() == Some(ERROR_PIPE_BUSY as i32) && Instant::now() < until =>
                {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    pub(crate) fn say(&mut self, bytes: &[u8]) {
        let _ = self.pipe.write(&[&[0], bytes].concat());
    }

    /// Next packet; empty once the producer has hung up. Keeps its memory.
    pub(crate) fn hear(&mut self) -> Vec<u8> {
        let mut bytes = [0; 512];
        let len = self.pipe.read(&mut bytes).unwrap_or(0);
        if len == 0 || bytes[..len] == [0xFF] {
            return Vec::new();
        }
        let handles = usize::from(bytes[0]);
        for number in bytes[1..1 + 8 * handles].chunks_exact(8) {
            let number = usize::from_le_bytes(number.try_into().unwrap());
            // SAFETY: the producer made the handle for this process.
            self.memory.push(unsafe { OwnedHandle::from_raw_handle(number as *mut _) });
        }
        bytes[1 + 8 * handles..len].to_vec()
    }

    /// Joins as a reader that drops the oldest.
    pub(crate) fn join(folder: &Path) -> Self {
        let mut stranger = Self::connect(folder);
        let mut hello = vec![0; 60];
        hello[..8].copy_from_slice(b"GSHM\x03\0\x01\0");
        (hello[8], hello[12], hello[16]) = (1, 4, 8);
        stranger.say(&hello);
        stranger.hear();
        assert_eq!(stranger.memory.len(), 2, "payload and lane");
        stranger
    }

    /// Writes garbage all over its own lane.
    pub(crate) fn write_over_its_lane(&self) {
        assert!(write_over(&self.memory[1], 640));
    }
}

/// Writes garbage into a section. Returns whether it may.
pub(crate) fn write_over(memory: &OwnedHandle, bytes: usize) -> bool {
    // SAFETY: the view is as long as the section; other processes see garbage, as the test wants.
    unsafe {
        let view = MapViewOfFile(memory.as_raw_handle(), FILE_MAP_WRITE, 0, 0, 0);
        if view.Value.is_null() {
            return false;
        }
        view.Value.cast::<u8>().write_bytes(0xA5, bytes);
        UnmapViewOfFile(view);
    }
    true
}
