//! Operating system interface: `SendArrays`, `RecvArrays`, and a few socket queries.
//!
//! | | Linux | macOS | Windows | other Unix |
//! |---|---|---|---|---|
//! | send | `sendmmsg` of GSO messages | `sendmsg_x` | `WSASendMsg`, USO | `sendmsg` |
//! | receive | `recvmmsg` of GRO buffers | `recvmsg_x` | `WSARecvFrom` | `recvmsg` |
//! | drop counter | `SO_RXQ_OVFL`, `SO_MEMINFO` | - | - | - |

mod errors;
mod name;
mod portable;

#[cfg(any(target_os = "linux", target_os = "android", windows))]
mod cmsg;

#[cfg(unix)]
mod interface;
#[cfg(unix)]
pub(crate) use interface::interface_index;
#[cfg(unix)]
mod poll;
#[cfg(unix)]
pub(crate) use poll::{wait_readable, wait_writable};

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(any(target_os = "linux", target_os = "android"))]
use linux as native;

#[cfg(any(target_vendor = "apple", all(test, unix)))]
mod msgx;

#[cfg(target_vendor = "apple")]
mod apple;
#[cfg(target_vendor = "apple")]
use apple as native;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
use windows as native;
#[cfg(windows)]
pub(crate) use windows::{wait_readable, wait_writable};

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple", windows)))]
mod unix;
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple", windows)))]
use unix as native;

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod absent;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
use absent as extras;
#[cfg(not(unix))]
pub(crate) use extras::interface_index;
pub(crate) use extras::{
    drops_now, enable_drop_counter, enable_gro, enable_timestamps, force_buffer, route_mtu_bytes,
    set_multicast_index_v4, usable_buffer_bytes,
};
#[cfg(any(target_os = "linux", target_os = "android"))]
use linux as extras;

pub(crate) use errors::{is_absent, is_forbidden, is_out_of_buffers, may_be_gso, may_pass};
pub(crate) use native::{SendArrays, has_gso, set_dont_fragment};

use std::io;

use socket2::Socket;

use crate::received::Received;

/// Arrays of one receiving system call.
#[derive(Debug)]
pub(crate) enum RecvArrays {
    /// Several messages per call.
    Native(native::RecvArrays),
    /// One datagram per call.
    Portable,
}

impl RecvArrays {
    pub(crate) fn new(slots: usize, batch: bool) -> Self {
        if batch { Self::Native(native::RecvArrays::new(slots)) } else { Self::Portable }
    }

    /// Receives into the first slots without waiting, and appends the results.
    #[inline]
    pub(crate) fn receive<S: AsMut<[u8]>>(
        &mut self,
        socket: &Socket,
        slots: &mut [S],
        received: &mut Vec<Received>,
    ) -> io::Result<()> {
        match self {
            Self::Native(arrays) => arrays.receive(socket, slots, received),
            Self::Portable => portable::receive(socket, slots, received),
        }
    }

    /// Newest value of the kernel's drop counter among the received messages.
    pub(crate) fn last_drops(&self) -> Option<u32> {
        match self {
            Self::Native(arrays) => arrays.last_drops(),
            Self::Portable => None,
        }
    }

    /// Switches to one datagram per call; `false` if already switched.
    pub(crate) fn degrade(&mut self) -> bool {
        !matches!(std::mem::replace(self, Self::Portable), Self::Portable)
    }
}
