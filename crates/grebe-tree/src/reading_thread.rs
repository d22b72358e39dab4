//! A thread that only reads a stream.

use std::thread::JoinHandle;
use std::time::Duration;

/// Dropping it waits for the thread, unless the stream blocks it: nobody can wake a thread from a read. Drop
/// the receiver of its data first, so that it ends after its next read.
pub(crate) struct ReadingThread(Option<JoinHandle<()>>);

const STEP: Duration = Duration::from_millis(2);
const STEPS: u32 = 50;

impl ReadingThread {
    pub(crate) fn spawn(read: impl FnOnce() + Send + 'static) -> Self {
        Self(Some(std::thread::spawn(read)))
    }
}

impl Drop for ReadingThread {
    fn drop(&mut self) {
        let Some(thread) = self.0.take() else { return };
        for _ in 0..STEPS {
            if thread.is_finished() {
                // The thread has already reported its panic.
                let _ = thread.join();
                return;
            }
            std::thread::sleep(STEP);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_reading_thread_that_ends_is_joined_and_a_hanging_one_is_not() {
        let (said, heard) = channel();
        drop(ReadingThread::spawn(move || said.send(()).unwrap()));
        assert_eq!(heard.try_recv(), Ok(()));
        let (keep, kept) = channel::<()>();
        drop(ReadingThread::spawn(move || {
            let _ = kept.recv();
        }));
        drop(keep);
    }
}
