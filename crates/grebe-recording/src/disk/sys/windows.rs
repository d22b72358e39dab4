//! Windows: FILE_FLAG_NO_BUFFERING, which belongs to a handle and not to the file. So the file has a second one.
//!
//! NTFS lets one write at a time extend the valid data of a file, so it costs nothing that a handle does one write
//! after the other.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::size_of;
use std::os::windows::fs::{FileExt, OpenOptionsExt};
use std::os::windows::io::{AsRawHandle, FromRawHandle};
use std::path::Path;

use windows_sys::Wdk::Storage::FileSystem::{
    FS_INFORMATION_CLASS, FileFsDeviceInformation, FileFsFullSizeInformation, NtQueryVolumeInformationFile,
};
use windows_sys::Wdk::System::SystemServices::{
    FILE_FS_DEVICE_INFORMATION, FILE_FS_FULL_SIZE_INFORMATION, FILE_REMOTE_DEVICE,
};
use windows_sys::Win32::Foundation::{GENERIC_WRITE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_ALLOCATION_INFO, FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_NO_BUFFERING, FILE_READ_ATTRIBUTES,
    FILE_SHARE_DELETE, FILE_SHARE_READ, FILE_SHARE_WRITE, FileAllocationInfo, ReOpenFile,
    SetFileInformationByHandle,
};
use windows_sys::Win32::System::IO::IO_STATUS_BLOCK;

use super::ALIGNMENT;

/// The second handle.
#[derive(Debug)]
pub(in crate::disk) struct Direct(File);

/// Opens a way past the page cache; `None` if the file is on another machine, or on a volume of other sectors.
pub(in crate::disk) fn go_direct(file: &File) -> Option<Direct> {
    let device = volume::<FILE_FS_DEVICE_INFORMATION>(file)?;
    if device.Characteristics & FILE_REMOTE_DEVICE != 0 {
        return None;
    }
    let sector_bytes = volume::<FILE_FS_FULL_SIZE_INFORMATION>(file)?.BytesPerSector as usize;
    if sector_bytes == 0 || !ALIGNMENT.is_multiple_of(sector_bytes) {
        return None;
    }
    let share = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
    // SAFETY: the handle is open.
    let handle = unsafe { ReOpenFile(file.as_raw_handle(), GENERIC_WRITE, share, FILE_FLAG_NO_BUFFERING) };
    if handle.is_null() || handle == INVALID_HANDLE_VALUE {
        return None;
    }
    // SAFETY: an open handle, just made for the caller.
    Some(Direct(unsafe { File::from_raw_handle(handle) }))
}

/// The first handle is as it was.
pub(in crate::disk) fn go_buffered(_: &File) {}

/// Takes room on the disk for the first `end` bytes of a file, without making it longer.
pub(in crate::disk) fn reserve(file: &File, _: u64, end: u64) -> io::Result<()> {
    // A smaller size would truncate it.
    if end <= file.metadata()?.len() {
        return Ok(());
    }
    let info = FILE_ALLOCATION_INFO { AllocationSize: end as i64 };
    let (info, bytes) = (&raw const info, size_of::<FILE_ALLOCATION_INFO>() as u32);
    // SAFETY: the handle is open, and `info` is of the class and the length given.
    let result =
        unsafe { SetFileInformationByHandle(file.as_raw_handle(), FileAllocationInfo, info.cast(), bytes) };
    if result == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Bytes that this user may still write to the volume of a file or folder.
pub(in crate::disk) fn free_bytes(file: &File) -> Option<u64> {
    let size = volume::<FILE_FS_FULL_SIZE_INFORMATION>(file)?;
    let unit_bytes = u64::from(size.SectorsPerAllocationUnit) * u64::from(size.BytesPerSector);
    u64::try_from(size.CallerAvailableAllocationUnits).ok()?.checked_mul(unit_bytes)
}

/// Opens a folder to ask for free bytes.
pub(in crate::disk) fn open_folder(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.access_mode(FILE_READ_ATTRIBUTES).custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(folder)
}

/// One write; how much of it was taken.
pub(in crate::disk) fn write_at(
    file: &File,
    direct: Option<&Direct>,
    bytes: &[u8],
    offset: u64,
) -> io::Result<usize> {
    direct.map_or(file, |direct| &direct.0).seek_write(bytes, offset)
}

/// Whether several writes to a file are under way at a time.
pub(in crate::disk) const WRITES_IN_PARALLEL: bool = false;

/// Information about the volume of a file.
fn volume<I: VolumeInformation>(file: &File) -> Option<I> {
    let mut status = IO_STATUS_BLOCK::default();
    let mut information = I::default();
    let (place, bytes) = (&raw mut information, size_of::<I>() as u32);
    // SAFETY: the handle is open for synchronous calls; the place has the length given, and the type of the class.
    let result = unsafe {
        NtQueryVolumeInformationFile(file.as_raw_handle(), &mut status, place.cast(), bytes, I::CLASS)
    };
    (result >= 0).then_some(information)
}

/// Type of a class of information, of plain numbers.
trait VolumeInformation: Default {
    const CLASS: FS_INFORMATION_CLASS;
}

impl VolumeInformation for FILE_FS_DEVICE_INFORMATION {
    const CLASS: FS_INFORMATION_CLASS = FileFsDeviceInformation;
}

impl VolumeInformation for FILE_FS_FULL_SIZE_INFORMATION {
    const CLASS: FS_INFORMATION_CLASS = FileFsFullSizeInformation;
}
