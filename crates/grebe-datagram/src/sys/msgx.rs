//! Batches of macOS: `sendmsg_x` and `recvmsg_x`, over any implementation of these calls.
//!
//! They resemble `sendmmsg` and `recvmmsg`, with three important differences. Lengths come back in
//! `msg_datalen`. There is no reliable control length per message (`recvmsg_x` leaves `msg_controllen`
//! unchanged). They are private, so they may be missing. The calls are a trait, so that any Unix can test
//! this logic.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::RawFd;
use std::ptr;

use libc::{c_int, c_void, iovec};
use socket2::{SockAddr, SockAddrStorage};

use super::name;
use crate::burst::Burst;
use crate::received::Received;

/// `struct msghdr_x` of XNU's `socket_private.h`.
#[repr(C)]
#[allow(non_camel_case_types)]
pub(crate) struct msghdr_x {
    pub(crate) msg_name: *mut c_void,
    pub(crate) msg_namelen: u32,
    pub(crate) msg_iov: *mut iovec,
    pub(crate) msg_iovlen: c_int,
    pub(crate) msg_control: *mut c_void,
    pub(crate) msg_controllen: u32,
    pub(crate) msg_flags: c_int,
    pub(crate) msg_datalen: usize,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<msghdr_x>() == 56);

/// The two calls.
pub(crate) trait Calls {
    /// Sends the first messages and returns their number.
    ///
    /// # Safety
    /// The headers describe memory that may be read until the call returns.
    unsafe fn sendmsg_x(&mut self, fd: RawFd, headers: &[msghdr_x]) -> io::Result<usize>;

    /// Fills the first messages and returns their number.
    ///
    /// # Safety
    /// The headers describe memory that may be written until the call returns.
    unsafe fn recvmsg_x(&mut self, fd: RawFd, headers: &mut [msghdr_x]) -> io::Result<usize>;
}

pub(crate) struct SendBatches {
    headers: Vec<msghdr_x>,
    names: Vec<SockAddr>,
    copied: Vec<iovec>,
}

// SAFETY: the pointers in the arrays are written anew before each system call and not read after it.
unsafe impl Send for SendBatches {}

impl SendBatches {
    pub(crate) fn new(messages: usize) -> Self {
        Self {
            headers: blank(messages),
            names: vec![name::NOWHERE.into(); messages],
            copied: (0..messages).map(|_| iovec { iov_base: ptr::null_mut(), iov_len: 0 }).collect(),
        }
    }

    /// Sends messages of the burst from index `from` on. Each is one datagram, because there is no GSO.
    pub(crate) fn send(
        &mut self,
        calls: &mut impl Calls,
        fd: RawFd,
        burst: &Burst<'_>,
        from: usize,
    ) -> io::Result<usize> {
        let messages = &burst.messages()[from..];
        let count = messages.len().min(self.headers.len());
        let entries = self.headers.iter_mut().zip(&mut self.names).zip(&mut self.copied);
        for (message, ((header, to), copied)) in messages[..count].iter().zip(entries) {
            let (first, pieces) = name::pieces(burst, message, copied);
            (header.msg_iov, header.msg_iovlen) = (first, pieces as _);
            (header.msg_name, header.msg_namelen) = name::destination(message.to, to);
            header.msg_flags = 0;
            header.msg_datalen = message.bytes;
        }
        // SAFETY: the first `count` headers point at slices that `burst` borrows and at entries of our own arrays, all alive
        // until the call returns; sending only reads through them.
        unsafe { calls.sendmsg_x(fd, &self.headers[..count]) }
    }
}

pub(crate) struct RecvBatches {
    headers: Vec<msghdr_x>,
    names: Vec<SockAddrStorage>,
    buffers: Vec<iovec>,
}

// SAFETY: as for `SendBatches`.
unsafe impl Send for RecvBatches {}

impl RecvBatches {
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            headers: blank(slots),
            names: (0..slots).map(|_| SockAddrStorage::zeroed()).collect(),
            buffers: (0..slots).map(|_| iovec { iov_base: ptr::null_mut(), iov_len: 0 }).collect(),
        }
    }

    pub(crate) fn receive<S: AsMut<[u8]>>(
        &mut self,
        calls: &mut impl Calls,
        fd: RawFd,
        slots: &mut [S],
        received: &mut Vec<Received>,
    ) -> io::Result<()> {
        let count = slots.len().min(self.headers.len());
        for (index, slot) in slots[..count].iter_mut().enumerate() {
            let slot = slot.as_mut();
            self.buffers[index] = iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() };
            self.headers[index] = msghdr_x {
                msg_name: (&raw mut self.names[index]).cast(),
                msg_namelen: size_of::<SockAddrStorage>() as u32,
                msg_iov: &mut self.buffers[index],
                msg_iovlen: 1,
                // Not requested, because the returned length would be unreliable.
                msg_control: ptr::null_mut(),
                msg_controllen: 0,
                msg_flags: 0,
                msg_datalen: slot.len(),
            };
        }
        // SAFETY: the first `count` headers point at the slots, borrowed mutably until the end of this function, and at
        // entries of our own arrays, each with its true length.
        let got = unsafe { calls.recvmsg_x(fd, &mut self.headers[..count]) }?;
        for index in 0..got.min(count) {
            let header = &self.headers[index];
            let len = header.msg_datalen.min(self.buffers[index].iov_len);
            received.push(Received {
                len,
                segment_bytes: len,
                from: name::address(&self.names[index], header.msg_namelen as usize),
                truncated: header.msg_flags & libc::MSG_TRUNC != 0,
                timestamp: None,
            });
        }
        Ok(())
    }
}

/// Whether `recvmsg_x` is safe to use. Before macOS 15.6 (Darwin 24.6), a socket shared by two processes
/// stops receiving until the next boot.
pub(crate) fn may_receive_batches(darwin_release: &str) -> bool {
    let mut numbers = darwin_release.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let release = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    release >= (24, 6)
}

fn blank(count: usize) -> Vec<msghdr_x> {
    // SAFETY: null pointers and zero lengths are valid for this plain C struct.
    (0..count).map(|_| unsafe { zeroed() }).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::net::SocketAddr;

    use super::*;
    use crate::burst::Coalesce;

    /// XNU's semantics over a queue in memory.
    #[derive(Default)]
    struct Fake {
        queue: VecDeque<(SocketAddr, Vec<u8>)>,
        /// Messages per call.
        room: usize,
    }

    impl Calls for Fake {
        unsafe fn sendmsg_x(&mut self, _: RawFd, headers: &[msghdr_x]) -> io::Result<usize> {
            if self.room == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let taken = headers.len().min(self.room);
            for header in &headers[..taken] {
                assert_eq!((header.msg_flags, header.msg_controllen), (0, 0), "XNU refuses anything else");
                // SAFETY: the caller's promise.
                let (bytes, to) = unsafe {
                    let iov = std::slice::from_raw_parts(header.msg_iov, header.msg_iovlen as usize);
                    let bytes: Vec<u8> = iov
                        .iter()
                        .flat_map(|part| std::slice::from_raw_parts(part.iov_base.cast::<u8>(), part.iov_len))
                        .copied()
                        .collect();
                    let to = if header.msg_name.is_null() {
                        name::NOWHERE
                    } else {
                        name::address(&*header.msg_name.cast(), header.msg_namelen as usize)
                    };
                    (bytes, to)
                };
                assert_eq!(header.msg_datalen, bytes.len());
                self.queue.push_back((to, bytes));
            }
            Ok(taken)
        }

        unsafe fn recvmsg_x(&mut self, _: RawFd, headers: &mut [msghdr_x]) -> io::Result<usize> {
            let mut got = 0;
            for header in headers {
                let Some((from, bytes)) = self.queue.pop_front() else { break };
                assert_eq!(header.msg_controllen, 0, "it would come back as it was, and be believed");
                let name = SockAddr::from(from);
                // SAFETY: the caller's promise.
                unsafe {
                    let iov = &*header.msg_iov;
                    let len = bytes.len().min(iov.iov_len);
                    ptr::copy_nonoverlapping(bytes.as_ptr(), iov.iov_base.cast(), len);
                    let size = name.len() as usize;
                    ptr::copy_nonoverlapping(name.as_ptr().cast::<u8>(), header.msg_name.cast(), size);
                    header.msg_datalen = len;
                    header.msg_namelen = size as u32;
                    header.msg_flags = if bytes.len() > len { libc::MSG_TRUNC } else { 0 };
                }
                got += 1;
            }
            if got == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(got) }
        }
    }

    const RULE: Coalesce = Coalesce { max_segments: 1, max_segment_bytes: 65_507 };

    #[test]
    fn a_batch_crosses_with_contents_order_and_addresses() {
        let data: Vec<u8> = (0..200).collect();
        let to: Vec<SocketAddr> = (0..9).map(|port| ([10, 0, 0, 1], port).into()).collect();
        let mut burst = Burst::new();
        for (index, to) in to.iter().enumerate() {
            match index % 2 {
                0 => burst.push(Some(*to), &data[..index], &data[index..50], RULE).unwrap(),
                _ => burst.push_copied(Some(*to), &data[..index], &data[index..60], RULE).unwrap(),
            }
        }
        // The kernel takes four messages per call, so the rest follows in the next.
        let mut fake = Fake { room: 4, ..Fake::default() };
        let mut sending = SendBatches::new(16);
        let mut sent = 0;
        while sent < 9 {
            sent += sending.send(&mut fake, 0, &burst, sent).unwrap();
        }
        let mut receiving = RecvBatches::new(6);
        let mut slots = vec![[0_u8; 55]; 6];
        let mut got = Vec::new();
        for _ in 0..2 {
            let mut received = Vec::new();
            receiving.receive(&mut fake, 0, &mut slots, &mut received).unwrap();
            got.extend(received.into_iter().zip(slots.clone()));
        }
        assert_eq!(got.len(), 9);
        for (index, (received, slot)) in got.iter().enumerate() {
            let whole = if index % 2 == 0 { 50 } else { 60 };
            assert_eq!(received.from, to[index]);
            assert_eq!(received.len, whole.min(55));
            assert_eq!(received.truncated, whole > 55);
            assert_eq!(slot[..received.len], data[..received.len]);
        }
        let mut received = Vec::new();
        let empty = receiving.receive(&mut fake, 0, &mut slots, &mut received);
        assert_eq!(empty.unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn batches_are_received_from_macos_15_6_on() {
        for (release, allowed) in
            [("24.6.0", true), ("25.0.0", true), ("24.5.0", false), ("23.6.0", false), ("", false)]
        {
            assert_eq!(may_receive_batches(release), allowed, "{release}");
        }
    }
}
