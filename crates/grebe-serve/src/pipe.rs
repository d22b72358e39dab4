//! The same messages over pipes, such as those of `ssh`: each with its length and its kind before it.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use grebe_flow::monotonic_ns;
use grebe_view::{FarMessage, FarOffer, FarScope, FarSession, Right, ScopeLink, SourceStatus, greeting};

use crate::client::{FarViewer, Welcomed};
use crate::error::Error;

/// Serves one viewer at the other end of two pipes, until it is gone. Whoever holds the pipes was let in by who opened them, and
/// runs programs there anyway: it may change what the source makes.
///
/// # Errors
/// [`Error::Pipe`]: the viewer says what cannot be, or takes nothing in.
pub fn serve_pipe(
    input: impl Read + Send + 'static,
    mut output: impl Write,
    link: &ScopeLink,
    offer: &FarOffer,
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
            Ok(Event::Came(FarMessage::Text(text))) => break text,
            Ok(Event::Woken) => {}
            Ok(Event::Came(FarMessage::Binary(_)) | Event::Gone(_)) | Err(_) => return Ok(()),
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
    // An exact analysis of a stream that is over holds up no answer to a ping.
    let _after_end = link.answer_after_end().map_err(Error::System)?;
    let link = link.another();
    link.on_picture(move || {
        // A full queue is looked at anyway.
        let _ = events.try_send(Event::Woken);
    });
    let mut session = FarSession::new(link, &greeting, offer, Right::Control, monotonic_ns());
    loop {
        while let Some(message) = session.next(monotonic_ns(), &status) {
            if write(&mut output, &message).is_err() {
                return Ok(());
            }
        }
        let now_ns = monotonic_ns();
        let wake = Duration::from_nanos(session.wake_ns(now_ns).saturating_sub(now_ns));
        let taken = match happened.recv_timeout(wake) {
            Ok(Event::Came(FarMessage::Text(text))) => session.take(&text, monotonic_ns()),
            Ok(Event::Came(FarMessage::Binary(_)) | Event::Gone(_)) => return Ok(()),
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

/// Looks at what is served at the other end of two pipes; returns when it has let this viewer in.
///
/// # Errors
/// [`Error::Pipe`] and [`Error::Refused`].
pub fn view_pipe(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    program: &str,
    name: &str,
    pictures_per_s: f64,
) -> Result<(ScopeLink, FarViewer), Error> {
    let (events, happened) = mpsc::sync_channel(EVENTS_MAX);
    let waking = events.clone();
    let (mut scope, link) = FarScope::new(program, name, move || {
        let _ = waking.try_send(Event::Woken);
    });
    read_in_thread(input, SERVER_MESSAGE_BYTES_MAX, events.clone())?;
    scope.connected("", 1, pictures_per_s);
    let status = Box::new(scope.status());
    let is_ended = Arc::new(AtomicBool::new(false));
    let (said, first) = mpsc::channel();
    let far = PipeScope {
        scope,
        output: Box::new(output),
        happened,
        is_ended: Arc::clone(&is_ended),
        first: Some(said),
        name: name.to_owned(),
    };
    let thread = std::thread::Builder::new()
        .name("grebe-far".into())
        .spawn(move || far.carry())
        .map_err(Error::System)?;
    let events = Mutex::new(events);
    let end = Box::new(move || {
        is_ended.store(true, Ordering::Release);
        let _ = events.lock().unwrap_or_else(PoisonError::into_inner).try_send(Event::Woken);
    });
    let mut viewer = FarViewer::new(status, end, thread);
    viewer.welcome(first.recv().map_err(|_| Error::Pipe("it ended".into()))??);
    Ok((link, viewer))
}

struct PipeScope {
    scope: FarScope,
    output: Box<dyn Write + Send>,
    happened: mpsc::Receiver<Event>,
    is_ended: Arc<AtomicBool>,
    first: Option<mpsc::Sender<Result<Welcomed, Error>>>,
    name: String,
}

impl PipeScope {
    fn carry(mut self) {
        let Err(error) = self.look() else { return };
        match self.first.take() {
            Some(first) => drop(first.send(Err(error))),
            None => self.scope.lost(&error.to_string()),
        }
    }

    fn look(&mut self) -> Result<(), Error> {
        loop {
            if self.is_ended.load(Ordering::Acquire) || self.scope.is_closed() {
                return Ok(());
            }
            while let Some(message) = self.scope.next(monotonic_ns()) {
                write(&mut self.output, &message).map_err(|error| Error::Pipe(error.to_string()))?;
            }
            let message = match self.happened.recv_timeout(LOOK_INTERVAL) {
                Ok(Event::Came(message)) => message,
                Ok(Event::Woken) | Err(RecvTimeoutError::Timeout) => continue,
                Ok(Event::Gone(why)) => return Err(Error::Pipe(why)),
                Err(RecvTimeoutError::Disconnected) => return Err(Error::Pipe("it ended".into())),
            };
            self.scope.take(&message, monotonic_ns()).map_err(|error| match error {
                grebe_view::FarError::Refused(why) => Error::Refused { to: self.name.clone(), why },
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
    Came(FarMessage),
    Gone(String),
    Woken,
}

/// Reads messages in a thread of its own, which ends with its pipe.
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

/// Writes a message: length, kind, bytes.
fn write(output: &mut impl Write, message: &FarMessage) -> io::Result<()> {
    let (kind, bytes) = match message {
        FarMessage::Text(text) => (TEXT, text.as_bytes()),
        FarMessage::Binary(bytes) => (BINARY, &bytes[..]),
    };
    let length = u32::try_from(bytes.len() + 1).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut all = Vec::with_capacity(bytes.len() + 5);
    all.extend_from_slice(&length.to_le_bytes());
    all.push(kind);
    all.extend_from_slice(bytes);
    output.write_all(&all)?;
    output.flush()
}

fn read(input: &mut impl Read, bytes_max: usize) -> io::Result<FarMessage> {
    let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
    let mut head = [0; 5];
    input.read_exact(&mut head)?;
    let [a, b, c, d, kind] = head;
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    if !(1..=bytes_max).contains(&length) {
        return Err(wrong("it says something else than a scope does"));
    }
    // Memory is taken as it comes, not as it is announced.
    let mut bytes = Vec::new();
    input.by_ref().take(length as u64 - 1).read_to_end(&mut bytes)?;
    if bytes.len() + 1 < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    match kind {
        TEXT => String::from_utf8(bytes).map(FarMessage::Text).map_err(|_| wrong("its text is none")),
        BINARY => Ok(FarMessage::Binary(bytes)),
        _ => Err(wrong("it says something else than a scope does")),
    }
}

const TEXT: u8 = 0;
const BINARY: u8 = 1;
const EVENTS_MAX: usize = 64;
const VIEWER_MESSAGE_BYTES_MAX: usize = 64 << 10;
const SERVER_MESSAGE_BYTES_MAX: usize = 64 << 20;
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written_and_nothing_else_is() {
        let mut bytes = Vec::new();
        let messages = [
            FarMessage::Text("{}".into()),
            FarMessage::Binary(vec![0, 255, 7]),
            FarMessage::Text(String::new()),
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
