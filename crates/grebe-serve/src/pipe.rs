//! The same messages over pipes, such as those of `ssh`: each with its length and its type before it.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use grebe_flow::monotonic_ns;
use grebe_view::{
    RemoteScope, Right, ScopeLink, ScopeMessage, ScopeOffer, SourceStatus, ViewerSession, greeting,
};

use crate::client::{RemoteViewer, Welcomed};
use crate::error::Error;

/// Serves one viewer at the other end of two pipes, until it is gone. The viewer may control the source, because
/// anyone with these pipes can run programs on this host anyway.
///
/// # Errors
/// [`Error::Pipe`] if the viewer sends invalid data, or stops reading.
pub fn serve_pipe(
    input: impl Read + Send + 'static,
    mut output: impl Write,
    link: &ScopeLink,
    offer: &ScopeOffer,
    status: impl Fn() -> SourceStatus,
) -> Result<(), Error> {
    let (events, happened) = mpsc::sync_channel(EVENTS_MAX);
    read_in_thread(input, VIEWER_MESSAGE_BYTES_MAX, events.clone())?;
    let mut refuse = |refusal: grebe_view::Refusal| {
        let _ = write(&mut output, &refusal.message());
        Err(Error::Pipe(refusal.to_string()))
    };
    let first = loop {
        match happened.recv() {
            Ok(Event::Came(ScopeMessage::Text(text))) => break text,
            Ok(Event::Woken) => {}
            Ok(Event::Came(ScopeMessage::Binary(_)) | Event::Gone(_)) | Err(_) => return Ok(()),
        }
    };
    let greeting = match greeting(&first) {
        Ok(greeting) => greeting,
        Err(refusal) => return refuse(refusal),
    };
    if greeting.source != 1 {
        return refuse(grebe_view::Refusal(format!(
            "there is one source here, and no source {}",
            greeting.source
        )));
    }
    // An exact analysis of an ended stream must not delay the answer to a ping.
    let _after_end = link.answer_after_end().map_err(Error::System)?;
    let link = link.another();
    link.on_picture(move || {
        // A full queue wakes the reader anyway.
        let _ = events.try_send(Event::Woken);
    });
    let mut session = ViewerSession::new(link, &greeting, offer, Right::Control, monotonic_ns());
    loop {
        while let Some(message) = session.next(monotonic_ns(), &status) {
            if write(&mut output, &message).is_err() {
                return Ok(());
            }
        }
        let now_ns = monotonic_ns();
        let wake = Duration::from_nanos(session.wake_ns(now_ns).saturating_sub(now_ns));
        let taken = match happened.recv_timeout(wake) {
            Ok(Event::Came(ScopeMessage::Text(text))) => session.take(&text, monotonic_ns()),
            Ok(Event::Came(ScopeMessage::Binary(_)) | Event::Gone(_)) => return Ok(()),
            Ok(Event::Woken) | Err(RecvTimeoutError::Timeout) => session.check(now_ns),
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        if let Err(refusal) = taken {
            let mut output = &mut output;
            let _ = write(&mut output, &refusal.message());
            return Err(Error::Pipe(refusal.to_string()));
        }
    }
}

/// Two pipes to a server, such as those of an `ssh` process.
pub struct ServerPipes {
    /// Messages of the server.
    pub input: Box<dyn Read + Send>,
    /// Messages to the server.
    pub output: Box<dyn Write + Send>,
    /// Called once nothing more goes through them, with whether the viewer has ended. Stops the process at the other
    /// end, and returns its last message.
    pub end: Box<dyn FnOnce(bool) -> Option<String> + Send>,
}

impl std::fmt::Debug for ServerPipes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerPipes").finish_non_exhaustive()
    }
}

/// Reason why lost pipes are not replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoPipes {
    /// A retry may work.
    Now(String),
    /// A person must act first.
    Ever(String),
}

/// Shows a server at the other end of two pipes; returns once it has accepted this viewer. After a loss, `again`
/// opens other pipes, each time. It gets a function that returns true once they are unwanted, and should then return
/// soon.
///
/// # Errors
/// [`Error::Pipe`] and [`Error::Refused`].
pub fn view_pipe(
    pipes: ServerPipes,
    again: impl FnMut(&dyn Fn() -> bool) -> Result<ServerPipes, NoPipes> + Send + 'static,
    program: &str,
    name: &str,
    pictures_per_s: f64,
) -> Result<(ScopeLink, RemoteViewer), Error> {
    let wake = Wake::default();
    let (scope, link) = RemoteScope::new(program, name, {
        let wake = wake.clone();
        move || wake.wake()
    });
    let status = Box::new(scope.status());
    let is_ended = Arc::new(AtomicBool::new(false));
    let (said, first) = mpsc::channel();
    let far = PipeScope {
        scope,
        wake: wake.clone(),
        is_ended: Arc::clone(&is_ended),
        first: Some(said),
        name: name.to_owned(),
        pictures_per_s,
    };
    let thread = std::thread::Builder::new()
        .name("grebe-far".into())
        .spawn(move || far.carry(pipes, again))
        .map_err(Error::System)?;
    let end = Box::new(move || {
        is_ended.store(true, Ordering::Release);
        wake.wake();
    });
    let mut viewer = RemoteViewer::new(status, end, thread);
    viewer.welcome(first.recv().map_err(|_| Error::Pipe("it ended".into()))??);
    Ok((link, viewer))
}

/// Wakes a viewer's thread through its present pipes.
#[derive(Clone, Default)]
struct Wake(Arc<Mutex<Option<SyncSender<Event>>>>);

impl Wake {
    fn wake(&self) {
        if let Some(events) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = events.try_send(Event::Woken);
        }
    }

    fn by(&self, events: SyncSender<Event>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(events);
    }
}

/// Opens other pipes. Its argument returns true once they are unwanted.
trait Reopen: FnMut(&dyn Fn() -> bool) -> Result<ServerPipes, NoPipes> {}

impl<F: FnMut(&dyn Fn() -> bool) -> Result<ServerPipes, NoPipes>> Reopen for F {}

struct PipeScope {
    scope: RemoteScope,
    wake: Wake,
    is_ended: Arc<AtomicBool>,
    first: Option<mpsc::Sender<Result<Welcomed, Error>>>,
    name: String,
    pictures_per_s: f64,
}

impl PipeScope {
    fn carry(mut self, mut pipes: ServerPipes, mut again: impl Reopen) {
        let mut pause = PAUSE_MIN;
        loop {
            let began = Instant::now();
            let Err(error) = self.connection(pipes) else { return };
            if let Some(first) = self.first.take() {
                let _ = first.send(Err(error));
                return;
            }
            if began.elapsed() > PAUSE_MAX {
                pause = PAUSE_MIN;
            }
            let mut why = error.to_string();
            pipes = loop {
                self.scope.lost(&format!("{why}; trying again"));
                let until = Instant::now() + pause;
                while Instant::now() < until && !self.is_over() {
                    std::thread::sleep(LOOK_INTERVAL.min(pause));
                }
                pause = (pause * 2).min(PAUSE_MAX);
                if self.is_over() {
                    return;
                }
                match again(&|| self.is_over()) {
                    Ok(pipes) => break pipes,
                    Err(NoPipes::Now(other)) => why = other,
                    Err(NoPipes::Ever(why)) => return self.scope.lost(&why),
                }
            };
        }
    }

    fn is_over(&self) -> bool {
        self.is_ended.load(Ordering::Acquire) || self.scope.is_closed()
    }

    /// Runs one pair of pipes; `Ok`: the front end is gone.
    fn connection(&mut self, pipes: ServerPipes) -> Result<(), Error> {
        let (events, happened) = mpsc::sync_channel(EVENTS_MAX);
        self.wake.by(events.clone());
        let ended = read_in_thread(pipes.input, SERVER_MESSAGE_BYTES_MAX, events)
            .and_then(|()| write_in_thread(pipes.output))
            .and_then(|writes| self.look(&happened, &writes));
        let last = (pipes.end)(ended.is_ok());
        match (ended, last) {
            (Err(Error::Pipe(why)), Some(last)) => Err(Error::Pipe(format!("{why}: {last}"))),
            (ended, _) => ended,
        }
    }

    fn look(
        &mut self,
        happened: &mpsc::Receiver<Event>,
        writes: &SyncSender<ScopeMessage>,
    ) -> Result<(), Error> {
        self.scope.connected("", 1, self.pictures_per_s);
        let (mut heard, mut held) = (Instant::now(), None);
        loop {
            if self.is_over() {
                return Ok(());
            }
            if heard.elapsed() > SILENCE_MAX {
                return Err(Error::Pipe(format!("nothing came from it for {} s", SILENCE_MAX.as_secs())));
            }
            self.scope.look(monotonic_ns());
            while let Some(message) = held.take().or_else(|| self.scope.next(monotonic_ns())) {
                match writes.try_send(message) {
                    Ok(()) => {}
                    Err(TrySendError::Full(message)) => {
                        held = Some(message);
                        break;
                    }
                    // The reader reports the reason.
                    Err(TrySendError::Disconnected(_)) => break,
                }
            }
            let message = match happened.recv_timeout(LOOK_INTERVAL) {
                Ok(Event::Came(message)) => message,
                Ok(Event::Woken) | Err(RecvTimeoutError::Timeout) => continue,
                Ok(Event::Gone(why)) => return Err(Error::Pipe(why)),
                Err(RecvTimeoutError::Disconnected) => return Err(Error::Pipe("it ended".into())),
            };
            heard = Instant::now();
            self.scope.take(&message, monotonic_ns()).map_err(|error| match error {
                grebe_view::RemoteScopeError::Refused(why) => Error::Refused { to: self.name.clone(), why },
                error => Error::Pipe(error.to_string()),
            })?;
            if self.scope.is_welcome()
                && let Some(first) = self.first.take()
            {
                let _ = first.send(Ok(Welcomed::by(&self.scope)));
            }
        }
    }
}

enum Event {
    Came(ScopeMessage),
    Gone(String),
    Woken,
}

/// Reads messages in its own thread, which ends with its pipe.
fn read_in_thread(
    mut input: impl Read + Send + 'static,
    bytes_max: usize,
    events: SyncSender<Event>,
) -> Result<(), Error> {
    let run = move || {
        loop {
            let event = match read(&mut input, bytes_max) {
                Ok(message) => Event::Came(message),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Event::Gone("it ended".into()),
                Err(error) => Event::Gone(error.to_string()),
            };
            let is_gone = matches!(event, Event::Gone(_));
            if events.send(event).is_err() || is_gone {
                return;
            }
        }
    };
    std::thread::Builder::new().name("grebe-far-in".into()).spawn(run).map(drop).map_err(Error::System)
}

/// Writes messages in its own thread, because a pipe into a dead link blocks for long. The thread ends with its sender.
fn write_in_thread(mut output: impl Write + Send + 'static) -> Result<SyncSender<ScopeMessage>, Error> {
    let (writes, written) = mpsc::sync_channel::<ScopeMessage>(WRITES_MAX);
    let run = move || while written.recv().is_ok_and(|message| write(&mut output, &message).is_ok()) {};
    std::thread::Builder::new().name("grebe-far-out".into()).spawn(run).map_err(Error::System)?;
    Ok(writes)
}

/// Writes a message: length, type, bytes.
fn write(output: &mut impl Write, message: &ScopeMessage) -> io::Result<()> {
    let (kind, bytes) = match message {
        ScopeMessage::Text(text) => (TEXT, text.as_bytes()),
        ScopeMessage::Binary(bytes) => (BINARY, &bytes[..]),
    };
    let length = u32::try_from(bytes.len() + 1).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut all = Vec::with_capacity(bytes.len() + 5);
    all.extend_from_slice(&length.to_le_bytes());
    all.push(kind);
    all.extend_from_slice(bytes);
    output.write_all(&all)?;
    output.flush()
}

fn read(input: &mut impl Read, bytes_max: usize) -> io::Result<ScopeMessage> {
    let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
    let mut head = [0; 5];
    input.read_exact(&mut head)?;
    let [a, b, c, d, kind] = head;
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    if !(1..=bytes_max).contains(&length) {
        return Err(wrong("unexpected message from peer"));
    }
    // Memory grows with the received bytes, not with the announced length.
    let mut bytes = Vec::new();
    input.by_ref().take(length as u64 - 1).read_to_end(&mut bytes)?;
    if bytes.len() + 1 < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    match kind {
        TEXT => String::from_utf8(bytes).map(ScopeMessage::Text).map_err(|_| wrong("invalid UTF-8")),
        BINARY => Ok(ScopeMessage::Binary(bytes)),
        _ => Err(wrong("unexpected message from peer")),
    }
}

const TEXT: u8 = 0;
const BINARY: u8 = 1;
const EVENTS_MAX: usize = 64;
const VIEWER_MESSAGE_BYTES_MAX: usize = 64 << 10;
const SERVER_MESSAGE_BYTES_MAX: usize = 64 << 20;
const WRITES_MAX: usize = 4;
/// The server answers one ping per second.
const SILENCE_MAX: Duration = Duration::from_secs(10);
const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(5);
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written_and_nothing_else_is() {
        let mut bytes = Vec::new();
        let messages = [
            ScopeMessage::Text("{}".into()),
            ScopeMessage::Binary(vec![0, 255, 7]),
            ScopeMessage::Text(String::new()),
        ];
        for message in &messages {
            write(&mut bytes, message).unwrap();
        }
        let mut input = &bytes[..];
        for message in messages {
            assert_eq!(read(&mut input, 100).unwrap(), message);
        }
        assert_eq!(read(&mut input, 100).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        for wrong in [&b"SSH-2.0-banner"[..], &[0, 0, 0, 0, 0], &[2, 0, 0, 0, 9, 1], &[2, 0, 0, 0, 0, 0xff]] {
            assert_eq!(
                read(&mut &wrong[..], 100).unwrap_err().kind(),
                io::ErrorKind::InvalidData,
                "{wrong:?}"
            );
        }
        assert_eq!(
            read(&mut &[9u8, 0, 0, 0, 0, 1][..], 100).unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
    }
}
