//! Standard input and output as byte streams.

use std::io;

/// Standard input without a buffer in between.
#[cfg(unix)]
pub(crate) fn stdin() -> io::Result<std::fs::File> {
    use std::os::fd::AsFd;
    Ok(std::fs::File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// Standard output without a buffer in between; as large a pipe as the system allows.
#[cfg(unix)]
pub(crate) fn stdout() -> io::Result<std::fs::File> {
    use std::os::fd::AsFd;
    let file = std::fs::File::from(io::stdout().as_fd().try_clone_to_owned()?);
    #[cfg(target_os = "linux")]
    enlarge(&file);
    Ok(file)
}

/// Standard input.
#[cfg(not(unix))]
pub(crate) fn stdin() -> io::Result<io::Stdin> {
    Ok(io::stdin())
}

/// Standard output.
#[cfg(not(unix))]
pub(crate) fn stdout() -> io::Result<io::Stdout> {
    Ok(io::stdout())
}

/// A pipe of 1 MiB instead of 64 KiB: fewer wake-ups. What the system refuses stays as it is.
#[cfg(target_os = "linux")]
pub(super) fn enlarge(pipe: &impl std::os::fd::AsFd) {
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_BYTES);
}

#[cfg(target_os = "linux")]
const PIPE_BYTES: usize = 1 << 20;
