//! Both ends, over pipes that can be cut.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;

use grebe_tree::{Cancel, Options, Progress, ReceiveTree, Report, Result, SendTree, receive, send};

pub(crate) fn progress() -> Arc<Progress> {
    Arc::new(Progress::default())
}

/// A sender with the options, and its receiver.
pub(crate) fn over_pipes(
    sources: &[PathBuf],
    destination: &Path,
    options: &Options,
) -> (Result<Report>, Result<Report>) {
    run(sources, destination, options, true, None)
}

/// Both ends must succeed.
pub(crate) fn copied(sources: &[PathBuf], destination: &Path, options: &Options) -> Report {
    let (sent, received) = over_pipes(sources, destination, options);
    let (sent, received) = (sent.unwrap(), received.unwrap());
    assert_eq!(sent.written_bytes, received.read_bytes);
    assert_eq!(sent.read_bytes, received.written_bytes);
    assert_eq!(sorted(&sent), sorted(&received));
    let mut other = sent;
    other.left_out.clone_from(&received.left_out);
    (other.written_bytes, other.read_bytes) = (received.written_bytes, received.read_bytes);
    assert_eq!(other, received);
    received
}

pub(crate) fn sorted(report: &Report) -> Vec<(String, String)> {
    let mut left_out: Vec<_> =
        report.left_out.iter().map(|left| (left.shown_name(), left.why.clone())).collect();
    left_out.sort();
    left_out
}

/// `cut`: both streams end after this many bytes in total.
pub(crate) fn run(
    sources: &[PathBuf],
    destination: &Path,
    options: &Options,
    sender_knows: bool,
    cut: Option<i64>,
) -> (Result<Report>, Result<Report>) {
    let known = |here: bool| here.then(|| options.clone());
    let sending = SendTree { sources: sources.to_vec(), options: known(sender_knows), is_fresh: false };
    let receiving = ReceiveTree {
        destination: destination.to_path_buf(),
        options: known(!sender_knows),
        is_fresh: false,
    };
    over_cut_pipes(
        cut,
        move |answers, writer| send(answers, writer, &sending, &progress(), &Cancel::default()),
        |reader, answers| receive(reader, answers, &receiving, &progress(), &Cancel::default()),
    )
}

/// Runs each end on a thread, over pipes that end after a total number of bytes.
pub(crate) fn over_cut_pipes(
    cut: Option<i64>,
    send: impl FnOnce(CutReader, CutWriter) -> Result<Report> + Send + 'static,
    receive: impl FnOnce(CutReader, CutWriter) -> Result<Report>,
) -> (Result<Report>, Result<Report>) {
    let (sent_out, sent_in) = io::pipe().unwrap();
    let (said_out, said_in) = io::pipe().unwrap();
    let left = Arc::new(AtomicI64::new(cut.unwrap_or(i64::MAX)));
    let writer = CutWriter { to: Some(sent_in), left: left.clone() };
    let answers = CutReader { from: said_out, left: left.clone() };
    let sender = thread::spawn(move || send(answers, writer));
    let reader = CutReader { from: sent_out, left: left.clone() };
    let received = receive(reader, CutWriter { to: Some(said_in), left });
    (sender.join().unwrap(), received)
}

/// Passes bytes on up to a limit, then closes the pipe.
pub(crate) struct CutWriter {
    to: Option<PipeWriter>,
    left: Arc<AtomicI64>,
}

impl Write for CutWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let before = self.left.fetch_sub(bytes.len() as i64, Ordering::SeqCst);
        let Some(to) = &mut self.to else { return Err(io::ErrorKind::BrokenPipe.into()) };
        if before < bytes.len() as i64 {
            let _ = to.write_all(&bytes[..before.max(0) as usize]);
            self.to = None;
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        to.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Ends together with the other one.
pub(crate) struct CutReader {
    from: PipeReader,
    left: Arc<AtomicI64>,
}

impl Read for CutReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer)?;
        if self.left.load(Ordering::SeqCst) <= 0 { Ok(0) } else { Ok(read) }
    }
}
