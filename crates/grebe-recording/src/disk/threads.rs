//! Writes by threads, each of which waits for one at a time.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use grebe_ring::Lease;

use super::backend::{Backend, DEPTH, WriteMethod};
use super::file::{DiskFile, Piece};
use super::mailbox::Message;
use super::sys::{self, Bell};

pub(super) struct Threads {
    method: WriteMethod,
    /// Closing it ends the threads; nothing waits for them.
    jobs: Sender<Job>,
}

struct Job {
    slot: usize,
    file: Arc<DiskFile>,
    lease: Lease<()>,
    from: usize,
    end: usize,
    offset: u64,
}

impl Threads {
    /// As many as there may be writes under way; as many as the system gives.
    pub(super) fn start(method: WriteMethod, messages: Sender<Message>) -> Self {
        let (jobs, queue) = mpsc::channel();
        let queue = Arc::new(Mutex::new(queue));
        // A page cache takes one write after the other into a file.
        let is_parallel = sys::WRITES_IN_PARALLEL && method != WriteMethod::PageCache;
        let count = if is_parallel { DEPTH } else { 2 };
        for _ in 0..count {
            let (queue, messages) = (queue.clone(), messages.clone());
            let _ = thread::Builder::new().name("disk-write".into()).spawn(move || work(&queue, &messages));
        }
        Self { method, jobs }
    }
}

impl Backend for Threads {
    fn method(&self) -> WriteMethod {
        self.method
    }

    fn bell(&self) -> Option<Arc<Bell>> {
        None
    }

    fn begin(&mut self, slot: usize, piece: &Piece, from: usize) -> io::Result<()> {
        let (file, lease) = (piece.file.clone(), piece.lease.clone());
        let job = Job { slot, file, lease, from, end: piece.range.end, offset: piece.offset };
        self.jobs.send(job).map_err(|_| io::Error::other("the system gives no threads to write with"))
    }

    fn wait(&mut self, inbox: &Receiver<Message>, messages: &mut Vec<Message>) {
        messages.extend(inbox.recv());
    }
}

fn work(queue: &Mutex<Receiver<Job>>, messages: &Sender<Message>) {
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { slot, file, lease, from, end, offset }) = job else { return };
        let result = file.write_at(&lease.bytes()[from..end], offset + from as u64);
        // Frees the memory before the waiting thread looks for it.
        drop((lease, file));
        if messages.send(Message::Written { slot, result }).is_err() {
            return;
        }
    }
}
