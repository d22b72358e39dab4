//! Sections of the paging file.

use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::ptr::{NonNull, null, null_mut};

use windows_sys::Win32::Foundation::{
    CloseHandle, DUPLICATE_CLOSE_SOURCE, DuplicateHandle, HANDLE, INVALID_HANDLE_VALUE,
};
use windows_sys::Win32::System::Memory::{
    CreateFileMappingW, FILE_MAP_READ, FILE_MAP_WRITE, MEM_COMMIT, MEM_MAPPED, MEMORY_BASIC_INFORMATION,
    MEMORY_MAPPED_VIEW_ADDRESS, MapViewOfFile, PAGE_READWRITE, UnmapViewOfFile, VirtualQuery,
};
use windows_sys::Win32::System::Threading::GetCurrentProcess;

use super::user::Access;
use super::{owned, succeeded};

/// Memory without a name. It is gone with its last handle and mapping. Its length is fixed by the system.
#[derive(Debug)]
pub(crate) struct Memory {
    handle: OwnedHandle,
    is_read_only: bool,
}

impl Memory {
    /// Makes zeroed memory of this length.
    pub(crate) fn make(_: &str, bytes: usize) -> io::Result<Self> {
        // Nobody may open it anew, so that a duplicate cannot regain the right to write.
        let access = Access::nobody()?;
        let (high, low) = ((bytes as u64 >> 32) as u32, bytes as u32);
        // SAFETY: plain values; `access` outlives the call.
        let handle = unsafe {
            CreateFileMappingW(INVALID_HANDLE_VALUE, &access.attributes(), PAGE_READWRITE, high, low, null())
        };
        Ok(owned(handle)?.into())
    }

    /// With `read_only`, other processes get it without the right to write.
    pub(crate) fn seal(&mut self, read_only: bool) -> io::Result<()> {
        self.is_read_only = read_only;
        Ok(())
    }

    /// Whether the memory has this size, and all of it exists.
    pub(crate) fn is_fixed_at(&self, bytes: usize) -> io::Result<bool> {
        let base = self.view(0, false)?;
        let mut found = MEMORY_BASIC_INFORMATION::default();
        // SAFETY: queries the view just made; `found` has the length given.
        let length =
            unsafe { VirtualQuery(base.as_ptr().cast(), &mut found, size_of::<MEMORY_BASIC_INFORMATION>()) };
        // SAFETY: the view just made.
        unsafe { Self::unmap(base, 0) };
        Ok(length > 0
            && found.RegionSize == bytes.next_multiple_of(PAGE)
            && (found.State, found.Type) == (MEM_COMMIT, MEM_MAPPED))
    }

    /// Maps the first `len` bytes.
    pub(crate) fn map(&self, len: usize, writable: bool) -> io::Result<NonNull<u8>> {
        self.view(len, writable)
    }

    /// Maps `len` bytes; 0: all.
    fn view(&self, len: usize, writable: bool) -> io::Result<NonNull<u8>> {
        let access = FILE_MAP_READ | if writable { FILE_MAP_WRITE } else { 0 };
        // SAFETY: a new view, at an address of the system's choice.
        let view = unsafe { MapViewOfFile(self.handle.as_raw_handle(), access, 0, 0, len) };
        NonNull::new(view.Value.cast()).ok_or_else(io::Error::last_os_error)
    }

    /// # Safety
    /// `base` is of [`map`](Self::map), and nothing points into the mapping any more.
    pub(crate) unsafe fn unmap(base: NonNull<u8>, _: usize) {
        // SAFETY: as the caller promises.
        unsafe { UnmapViewOfFile(MEMORY_MAPPED_VIEW_ADDRESS { Value: base.as_ptr().cast() }) };
    }

    /// Makes a handle in another process, and returns its number there.
    pub(super) fn duplicate_into(&self, process: &OwnedHandle) -> io::Result<u64> {
        let access = FILE_MAP_READ | if self.is_read_only { 0 } else { FILE_MAP_WRITE };
        let mut duplicate: HANDLE = null_mut();
        // SAFETY: both processes and the handle are open; `duplicate` is valid.
        succeeded(unsafe {
            DuplicateHandle(
                GetCurrentProcess(),
                self.handle.as_raw_handle(),
                process.as_raw_handle(),
                &mut duplicate,
                access,
                0,
                0,
            )
        })?;
        Ok(duplicate.addr() as u64)
    }
}

impl From<OwnedHandle> for Memory {
    fn from(handle: OwnedHandle) -> Self {
        Self { handle, is_read_only: false }
    }
}

/// Closes a handle that was made in another process, because it was not told its number.
pub(super) fn take_back(process: &OwnedHandle, number: u64) {
    let mut here: HANDLE = null_mut();
    // SAFETY: the number is of `Memory::duplicate_into` for this process, which was not told of it.
    unsafe {
        let source = std::ptr::with_exposed_provenance_mut(number as usize);
        let options = DUPLICATE_CLOSE_SOURCE;
        if DuplicateHandle(process.as_raw_handle(), source, GetCurrentProcess(), &mut here, 0, 0, options)
            != 0
        {
            CloseHandle(here);
        }
    }
}

const PAGE: usize = 4096;
