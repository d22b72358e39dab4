//! Unbuffered standard input and output, with a wait for input.

use std::io;

#[cfg(unix)]
pub(crate) type Stdin = std::fs::File;
#[cfg(unix)]
pub(crate) type Stdout = std::fs::File;
#[cfg(not(unix))]
pub(crate) use std::io::{Stdin, Stdout};

/// Unbuffered standard input.
#[cfg(unix)]
pub(crate) fn stdin() -> io::Result<Stdin> {
    use std::os::fd::AsFd;
    Ok(std::fs::File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// Unbuffered standard output, with the largest pipe that the system allows.
#[cfg(unix)]
pub(crate) fn stdout() -> io::Result<Stdout> {
    use std::os::fd::AsFd;
    let file = std::fs::File::from(io::stdout().as_fd().try_clone_to_owned()?);
    #[cfg(target_os = "linux")]
    enlarge(&file);
    Ok(file)
}

/// Standard input.
#[cfg(not(unix))]
pub(crate) fn stdin() -> io::Result<Stdin> {
    Ok(io::stdin())
}

/// Standard output.
#[cfg(not(unix))]
pub(crate) fn stdout() -> io::Result<Stdout> {
    Ok(io::stdout())
}

/// Readiness is unknown before a read.
#[cfg(not(unix))]
pub(crate) fn readable<R>(_: &R) -> io::Result<bool> {
    Ok(true)
}

/// A pipe of 1 MiB instead of 64 KiB needs fewer wake-ups. A refusal changes nothing.
#[cfg(target_os = "linux")]
pub(crate) fn enlarge(pipe: &impl std::os::fd::AsFd) {
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_BYTES);
}

/// Waits for up to 100 ms until there is something to read. Returns whether there is.
#[cfg(unix)]
pub(crate) fn readable<R: std::os::fd::AsFd>(from: &R) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds = [PollFd::new(from, PollFlags::IN)];
    let timeout = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    match poll(&mut fds, Some(&timeout)) {
        Ok(count) => Ok(count > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(target_os = "linux")]
const PIPE_BYTES: usize = 1 << 20;
