//! Pipe between a producer and a consumer.

use std::fs;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::path::Path;
use std::ptr::{null, null_mut, with_exposed_provenance_mut};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use windows_sys::Win32::Foundation::{
    ERROR_FILE_NOT_FOUND, ERROR_PIPE_BUSY, ERROR_SHARING_VIOLATION, GENERIC_READ, GENERIC_WRITE,
};
use windows_sys::Win32::Storage::FileSystem::{
    CreateFileW, FILE_FLAG_OVERLAPPED, OPEN_EXISTING, SECURITY_IDENTIFICATION, SECURITY_SQOS_PRESENT,
};
use windows_sys::Win32::System::Pipes::{
    GetNamedPipeClientProcessId, PIPE_READMODE_MESSAGE, SetNamedPipeHandleState,
};
use windows_sys::Win32::System::Threading::{OpenProcess, PROCESS_DUP_HANDLE};

use super::memory::{Memory, take_back};
use super::names;
use super::port::Port;
use super::transfer::{Outcome, Transfer, wait_for};
use super::{owned, succeeded, user};
use crate::error::Error;
use crate::message::{MEMORIES_MAX, MESSAGE_BYTES_MAX};
use crate::platform::Received;

/// One end of a pipe.
#[derive(Debug)]
pub(crate) struct Connection {
    reading: Mutex<Transfer>,
    /// Event of `reading`, shared to wait without its lock.
    arrived: OwnedHandle,
    writing: Mutex<Transfer>,
    side: Side,
}

#[derive(Debug)]
enum Side {
    /// Takes memory.
    Consumer,
    /// Gives memory to this process. Arrivals are reported under this number.
    Producer { peer: Peer, port: Arc<Port>, id: u64 },
}

/// Process at the other end of a connection. The pipe admits this user only.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    pub(crate) pid: u32,
}

impl Peer {
    pub(crate) fn refusal(&self, _: &[u32]) -> Option<String> {
        None
    }
}

impl Connection {
    /// Connects to the producer of this name and file.
    pub(crate) fn connect(name: &str, path: &Path, timeout: Duration) -> Result<Self, Error> {
        let absent = || Error::NoStream { name: name.to_owned(), path: path.to_owned() };
        let until = Instant::now() + timeout;
        loop {
            // An empty file is of a producer that is about to start.
            let Some(pipe) = fs::read_to_string(path).ok().as_deref().and_then(names::pipe_path) else {
                return Err(absent());
            };
            match open(&pipe) {
                Ok(pipe) if user::is_own(&pipe).map_err(Error::tried("look at the producer's pipe"))? => {
                    return Self::new(pipe, Side::Consumer).map_err(Error::tried("connect to the producer"));
                }
                Ok(_) => {
                    let reason =
                        "it belongs to another user, whose streams are not read on Windows".to_owned();
                    return Err(Error::Refused { name: name.to_owned(), reason });
                }
                Err(error) => match error.raw_os_error().map(|code| code as u32) {
                    Some(ERROR_FILE_NOT_FOUND) => return Err(absent()),
                    // Others connect too.
                    Some(ERROR_PIPE_BUSY | ERROR_SHARING_VIOLATION) if Instant::now() < until => {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    Some(ERROR_PIPE_BUSY) => return Err(Error::Silent { name: name.to_owned(), timeout }),
                    _ => return Err(Error::tried("connect to the producer")(error)),
                },
            }
        }
    }

    /// Producer's end of a pipe that has a client.
    pub(super) fn accepted(pipe: OwnedHandle, port: Arc<Port>, id: u64) -> io::Result<Self> {
        let mut pid = 0;
        // SAFETY: the pipe is open.
        succeeded(unsafe { GetNamedPipeClientProcessId(pipe.as_raw_handle(), &mut pid) })?;
        Self::new(pipe, Side::Producer { peer: Peer { pid }, port, id })
    }

    fn new(pipe: OwnedHandle, side: Side) -> io::Result<Self> {
        let pipe = Arc::new(pipe);
        let reading = Transfer::new(pipe.clone(), true)?;
        let arrived = reading.event().try_clone()?;
        let writing = Mutex::new(Transfer::new(pipe, false)?);
        let this = Self { reading: Mutex::new(reading), arrived, writing, side };
        this.read_on(&mut lock(&this.reading));
        Ok(this)
    }

    pub(super) fn peer(&self) -> Peer {
        match &self.side {
            Side::Producer { peer, .. } => *peer,
            Side::Consumer => Peer { pid: std::process::id() },
        }
    }

    /// Begins the next read.
    fn read_on(&self, reading: &mut Transfer) {
        if !reading.read()
            && let Side::Producer { port, id, .. } = &self.side
        {
            // The system does not report a read that could not begin.
            port.post(*id);
        }
    }

    /// Sends a packet. A receiver that does not read is gone, or has enough pending packets.
    pub(crate) fn send(&self, bytes: &[u8], memory: &[&Memory]) -> io::Result<()> {
        let mut writing = lock(&self.writing);
        match writing.outcome() {
            Outcome::Pending => return Err(io::ErrorKind::WouldBlock.into()),
            Outcome::Done(_) | Outcome::TooLong | Outcome::Failed => {}
        }
        let handles = self.hand_over(memory)?;
        let sent = writing.write(|packet| {
            packet[0] = handles.numbers().len() as u8;
            let mut at = 1;
            for number in handles.numbers() {
                packet[at..at + 8].copy_from_slice(&number.to_le_bytes());
                at += 8;
            }
            packet[at..at + bytes.len()].copy_from_slice(bytes);
            at + bytes.len()
        });
        if sent.is_ok() {
            handles.keep();
        }
        sent
    }

    fn hand_over(&self, memory: &[&Memory]) -> io::Result<HandedOver> {
        let Side::Producer { peer, .. } = &self.side else { return Ok(HandedOver::default()) };
        if memory.is_empty() {
            return Ok(HandedOver::default());
        }
        // SAFETY: plain values.
        let process = owned(unsafe { OpenProcess(PROCESS_DUP_HANDLE, 0, peer.pid) })?;
        let mut handed = HandedOver { process: Some(process), numbers: [0; MEMORIES_MAX], count: 0 };
        for memory in memory.iter().take(MEMORIES_MAX) {
            if let Some(process) = &handed.process {
                handed.numbers[handed.count] = memory.duplicate_into(process)?;
                handed.count += 1;
            }
        }
        Ok(handed)
    }

    /// Receives the next packet.
    pub(crate) fn receive(&self, bytes: &mut [u8; MESSAGE_BYTES_MAX]) -> Received {
        let mut reading = lock(&self.reading);
        let received = match reading.outcome() {
            Outcome::Pending => return Received::Nothing,
            Outcome::Failed => return Received::HungUp,
            Outcome::TooLong => Received::TooLong,
            Outcome::Done(len) => {
                let packet = &reading.bytes()[..len];
                if packet == [FAREWELL] {
                    reading.end();
                    return Received::HungUp;
                }
                self.unpack(packet, bytes)
            }
        };
        self.read_on(&mut reading);
        received
    }

    fn unpack(&self, packet: &[u8], bytes: &mut [u8; MESSAGE_BYTES_MAX]) -> Received {
        let Some((&count, rest)) = packet.split_first() else { return Received::TooLong };
        // A producer takes no memory.
        let handles_max = if matches!(self.side, Side::Consumer) { MEMORIES_MAX } else { 0 };
        if usize::from(count) > handles_max || rest.len() < usize::from(count) * 8 {
            return Received::TooLong;
        }
        let (handles, message) = rest.split_at(usize::from(count) * 8);
        if message.len() > MESSAGE_BYTES_MAX {
            return Received::TooLong;
        }
        bytes[..message.len()].copy_from_slice(message);
        let memory = handles.chunks_exact(8).map(|number| {
            let number = number.iter().rev().fold(0, |number, &byte| number << 8 | usize::from(byte));
            // SAFETY: the producer, a process of this user, has made this handle for this process. It tells each
            // number once.
            Memory::from(unsafe { OwnedHandle::from_raw_handle(with_exposed_provenance_mut(number)) })
        });
        Received::Packet(message.len(), memory.collect())
    }

    /// Waits until a packet or a hang-up can be received. Returns whether one can.
    pub(crate) fn wait(&self, timeout: Duration) -> io::Result<bool> {
        Ok(wait_for(&self.arrived, Some(timeout)))
    }

    /// Sends nothing more, and says so. Still receives until the other side hangs up.
    pub(crate) fn hang_up(&self) {
        let mut writing = lock(&self.writing);
        if writing.outcome() != Outcome::Pending {
            let _ = writing.write(|packet| {
                packet[0] = FAREWELL;
                1
            });
        }
    }

    /// A consumer connects to producers of its own user only.
    pub(crate) fn is_from_own_user(&self, _: &Memory) -> bool {
        true
    }
}

/// Handles made in another process. Dropping them closes them there, unless that process knows their numbers.
#[derive(Default)]
struct HandedOver {
    process: Option<OwnedHandle>,
    numbers: [u64; MEMORIES_MAX],
    count: usize,
}

impl HandedOver {
    fn numbers(&self) -> &[u64] {
        &self.numbers[..self.count]
    }

    fn keep(mut self) {
        self.count = 0;
    }
}

impl Drop for HandedOver {
    fn drop(&mut self) {
        if let Some(process) = &self.process {
            self.numbers().iter().for_each(|&number| take_back(process, number));
        }
    }
}

fn lock(transfer: &Mutex<Transfer>) -> MutexGuard<'_, Transfer> {
    // Each step leaves the transfer valid.
    transfer.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Opens the client's end of a pipe. The producer may learn this user, but not act as it.
fn open(path: &[u16]) -> io::Result<OwnedHandle> {
    let flags = FILE_FLAG_OVERLAPPED | SECURITY_SQOS_PRESENT | SECURITY_IDENTIFICATION;
    // SAFETY: `path` ends with a zero.
    let pipe = owned(unsafe {
        CreateFileW(path.as_ptr(), GENERIC_READ | GENERIC_WRITE, 0, null(), OPEN_EXISTING, flags, null_mut())
    })?;
    // SAFETY: the pipe is open.
    succeeded(unsafe {
        SetNamedPipeHandleState(pipe.as_raw_handle(), &PIPE_READMODE_MESSAGE, null(), null())
    })?;
    Ok(pipe)
}

/// Packet that says the end. As a number of handles it is invalid.
const FAREWELL: u8 = 0xFF;
