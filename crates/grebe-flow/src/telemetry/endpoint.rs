//! Connections between a publisher and its readers: the parts that differ between systems.
//!
//! | part | Unix | Windows |
//! |---|---|---|
//! | `PID.NAME.top` | socket, mode 0600 | file with a port and a token, held open |
//! | its folder | mode 0700 | inherits the access list of the user's local application data |
//! | connection | Unix socket | TCP on loopback; the reader sends the token first |
//! | a killed process | leaves its socket, which refuses connections | leaves nothing: the system deletes the file |
//!
//! Each system has the same functions and types:
//!
//! - `folders`: possible folders, best first. `make_folder` creates one, `check_folder` refuses one that others control.
//! - `Listener`: `bind` (takes a free name until it is dropped), `path`, `watch` (adds what it waits for), `accept`.
//! - `Stream`: a connection that never waits. `connect` opens the reader's end, `pair` both.
//! - `WHILE_IDLE`: events that can show the end of a connection, and `is_gone`, which looks.
//! - `is_leftover`: whether a dead process left this file.

#[cfg(unix)]
mod unix;
#[cfg(unix)]
use unix as system;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
use windows as system;

pub(super) use system::{
    Listener, Stream, WHILE_IDLE, check_folder, connect, folders, is_gone, is_leftover, make_folder, pair,
};
