//! Reading a piece of a file: around the page cache on Linux, as the system does it elsewhere.

#[cfg(target_os = "linux")]
mod imp {
    use std::fs::File;
    use std::io::{self, ErrorKind, IoSliceMut};
    use std::num::NonZeroU64;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{FileExt, OpenOptionsExt};

    use rustix::fs::{Advice, OFlags, fadvise};
    use rustix::io::{ReadWriteFlags, preadv2};

    /// A file, and the same file without the page cache, where the file system can.
    #[derive(Debug)]
    pub(in super::super) struct Source {
        file: File,
        direct: Option<File>,
    }

    impl Source {
        pub(in super::super) fn of(file: &File) -> io::Result<Self> {
            let flags = OFlags::DIRECT.bits() as i32;
            // The same file, even if its name is now another's; with flags of its own.
            let same = format!("/proc/self/fd/{}", file.as_raw_fd());
            let direct = File::options().read(true).custom_flags(flags).open(same).ok();
            Ok(Self { file: file.try_clone()?, direct })
        }

        /// Reads at least `wanted` bytes from `offset` on where the file has them; how many. All is aligned but `wanted`.
        pub(in super::super) fn read(
            &mut self,
            offset: u64,
            out: &mut [u8],
            wanted: usize,
        ) -> io::Result<usize> {
            // Data wholly in the page cache cause no disk read: they may not be on the disk yet.
            let looked = super::ALIGN.min(out.len());
            let is_cached = self.read_cached(offset, &mut out[..looked]) > 0;
            if is_cached {
                let count = self.read_cached(offset, out);
                if count >= wanted {
                    return Ok(count);
                }
            }
            if let Some(direct) = &self.direct {
                let read = fill(direct, offset, out, wanted);
                if !is_cached {
                    // Removes the probed page, so that the next probe does not mistake it for cached data.
                    let _ = fadvise(&self.file, offset, NonZeroU64::new(looked as u64), Advice::DontNeed);
                }
                match read {
                    // This file system wants other boundaries.
                    Err(error) if error.kind() == ErrorKind::InvalidInput => self.direct = None,
                    read => return read,
                }
            }
            fill(&self.file, offset, out, wanted)
        }

        /// Copies bytes from the page cache; returns their count. The kernel starts to read missing pages all
        /// the same (filemap_get_pages in mm/filemap.c), and a direct read then reads them again. So one page
        /// is probed first.
        fn read_cached(&self, offset: u64, out: &mut [u8]) -> usize {
            preadv2(&self.file, &mut [IoSliceMut::new(out)], offset, ReadWriteFlags::NOWAIT).unwrap_or(0)
        }
    }

    fn fill(file: &File, offset: u64, out: &mut [u8], wanted: usize) -> io::Result<usize> {
        let mut done = 0;
        while done < wanted {
            match file.read_at(&mut out[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if done < wanted && !done.is_multiple_of(super::ALIGN) {
                // The end of the file: what follows it would not be aligned.
                break;
            }
        }
        Ok(done)
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use std::fs::File;
    use std::io::{self, ErrorKind};

    /// A file: these systems read ahead by themselves, and threads keep them busy.
    #[derive(Debug)]
    pub(in super::super) struct Source {
        file: File,
    }

    impl Source {
        pub(in super::super) fn of(file: &File) -> io::Result<Self> {
            Ok(Self { file: file.try_clone()? })
        }

        /// Reads at least `wanted` bytes from `offset` on where the file has them; how many.
        pub(in super::super) fn read(
            &mut self,
            offset: u64,
            out: &mut [u8],
            wanted: usize,
        ) -> io::Result<usize> {
            let mut done = 0;
            while done < wanted {
                match read_at(&self.file, &mut out[done..], offset + done as u64) {
                    Ok(0) => break,
                    Ok(count) => done += count,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(done)
        }
    }

    #[cfg(unix)]
    fn read_at(file: &File, out: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(file, out, offset)
    }

    #[cfg(windows)]
    fn read_at(file: &File, out: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(file, out, offset)
    }
}

pub(super) use imp::Source;

/// Offsets, lengths and addresses of direct reads are multiples of it: a page, a multiple of every disk's
/// block.
pub(super) const ALIGN: usize = 4096;
