//! The client of a server: connects, and connects again after a loss.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use grebe_flow::monotonic_ns;
use grebe_view::{
    ChannelMeaning, Finder, RemoteScope, RemoteScopeError, ScopeLink, ScopeMessage, SourceControls,
    SourceStatus,
};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Message, WebSocketConfig};

use crate::address::ServerAddress;
use crate::error::Error;
use crate::tls;

/// A scope on another host, until this is dropped.
pub struct RemoteViewer {
    status: Option<Box<dyn Fn() -> SourceStatus + Send>>,
    welcomed: Welcomed,
    end: Box<dyn Fn() + Send + Sync>,
    thread: Option<JoinHandle<()>>,
}

/// A server's answer to an accepted viewer.
#[derive(Default)]
pub(crate) struct Welcomed {
    channels: Vec<ChannelMeaning>,
    sources: Vec<String>,
    controls: SourceControls,
    finder: Option<Finder>,
}

impl Welcomed {
    pub(crate) fn by(scope: &RemoteScope) -> Welcomed {
        Welcomed {
            channels: scope.channels(),
            sources: scope.sources(),
            controls: scope.controls(),
            finder: Some(scope.finder()),
        }
    }
}

impl RemoteViewer {
    /// A viewer whose thread ends when `end` is called.
    pub(crate) fn new(
        status: Box<dyn Fn() -> SourceStatus + Send>,
        end: Box<dyn Fn() + Send + Sync>,
        thread: JoinHandle<()>,
    ) -> RemoteViewer {
        RemoteViewer { status: Some(status), welcomed: Welcomed::default(), end, thread: Some(thread) }
    }

    pub(crate) fn welcome(&mut self, welcomed: Welcomed) {
        self.welcomed = welcomed;
    }

    /// Controls of the source, on the first call.
    pub fn take_controls(&mut self) -> SourceControls {
        std::mem::take(&mut self.welcomed.controls)
    }

    /// A function that returns the source's state, on the first call. The front end calls it a few times a second.
    pub fn take_status(&mut self) -> Option<Box<dyn Fn() -> SourceStatus + Send>> {
        self.status.take()
    }

    /// Meaning of the channels' numbers, as far as the server knows it.
    pub fn channels(&self) -> &[ChannelMeaning] {
        &self.welcomed.channels
    }

    /// Searches the server's history, while connected.
    pub fn finder(&self) -> Option<&Finder> {
        self.welcomed.finder.as_ref()
    }

    /// Names of the server's sources, if it has several.
    pub fn sources(&self) -> &[String] {
        &self.welcomed.sources
    }
}

impl Drop for RemoteViewer {
    fn drop(&mut self) {
        (self.end)();
        if let Some(thread) = self.thread.take() {
            // A panic was already reported.
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for RemoteViewer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteViewer").finish_non_exhaustive()
    }
}

/// Connects to a server, and waits until it accepts this viewer. `program` is the name of this program.
/// `is_cancelled` is called while waiting.
///
/// # Errors
/// [`Error::Connect`], [`Error::Refused`] and [`Error::System`]. Later errors end nothing: the front end shows them,
/// and the client tries again.
pub fn connect(
    address: &ServerAddress,
    program: &str,
    pictures_per_s: f64,
    is_cancelled: impl Fn() -> bool,
) -> Result<(ScopeLink, RemoteViewer), Error> {
    let woken = Arc::new(Notify::new());
    let wake = {
        let woken = Arc::clone(&woken);
        move || woken.notify_one()
    };
    let (scope, link) = RemoteScope::new(program, &address.place(), wake);
    let status = Box::new(scope.status());
    let is_ended = Arc::new(AtomicBool::new(false));
    let (said, first) = mpsc::channel();
    let carrier = Carrier {
        address: address.clone(),
        pictures_per_s,
        scope,
        woken: Arc::clone(&woken),
        is_ended: Arc::clone(&is_ended),
        first: Some(said),
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::System)?;
    let run = move || runtime.block_on(carrier.carry());
    let thread = std::thread::Builder::new().name("grebe-far".into()).spawn(run).map_err(Error::System)?;
    let end = Box::new(move || {
        is_ended.store(true, Ordering::Release);
        woken.notify_one();
    });
    let mut viewer = RemoteViewer::new(status, end, thread);
    loop {
        match first.recv_timeout(Duration::from_millis(50)) {
            Ok(came) => {
                viewer.welcome(came?);
                return Ok((link, viewer));
            }
            Err(mpsc::RecvTimeoutError::Timeout) if !is_cancelled() => {}
            Err(_) => {
                let why = "it was given up".to_owned();
                return Err(Error::Connect { to: address.place(), why });
            }
        }
    }
}

struct Carrier {
    address: ServerAddress,
    pictures_per_s: f64,
    scope: RemoteScope,
    woken: Arc<Notify>,
    is_ended: Arc<AtomicBool>,
    /// Waits for the first connection.
    first: Option<mpsc::Sender<Result<Welcomed, Error>>>,
}

impl Carrier {
    async fn carry(mut self) {
        let mut pause = PAUSE_MIN;
        while !self.is_over() {
            let begun = Instant::now();
            let ended = self.connection().await;
            let Err(error) = ended else { return };
            if let Some(first) = self.first.take() {
                let _ = first.send(Err(error));
                return;
            }
            self.scope.lost(&format!("{error}; trying again"));
            // A connection that held for a while proves that the address was right.
            pause = if begun.elapsed() > PAUSE_MAX { PAUSE_MIN } else { (pause * 2).min(PAUSE_MAX) };
            let until = Instant::now() + pause;
            while Instant::now() < until && !self.is_over() {
                let _ = timeout(until - Instant::now(), self.woken.notified()).await;
            }
        }
    }

    fn is_over(&self) -> bool {
        self.is_ended.load(Ordering::Acquire) || self.scope.is_closed()
    }

    async fn over(&self) {
        while !self.is_over() {
            let _ = timeout(LOOK_INTERVAL, self.woken.notified()).await;
        }
    }

    /// Runs one connection until it ends; `Ok`: the front end is gone.
    async fn connection(&mut self) -> Result<(), Error> {
        let wrong = |why: String| Error::Connect { to: self.address.place(), why };
        let opened = async {
            let stream =
                TcpStream::connect(self.address.host_and_port()).await.map_err(|error| error.to_string())?;
            let _ = stream.set_nodelay(true);
            let place = self.address.place();
            match self.address.certificate {
                None => Ok(Opened::Plain(Box::new(upgrade(stream, &format!("ws://{place}/scope")).await?))),
                Some(certificate) => {
                    let (host, _) = self.address.host_and_port();
                    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
                    let stream = tls::connector(certificate)?.connect(name, stream).await;
                    let stream = stream.map_err(|error| format!("TLS failed: {error}"))?;
                    Ok(Opened::Tls(Box::new(upgrade(stream, &format!("wss://{place}/scope")).await?)))
                }
            }
        };
        let opened: Result<Result<Opened, String>, _> = tokio::select! {
            opened = timeout(CONNECT_TIME, opened) => opened,
            () = self.over() => return Ok(()),
        };
        let opened = opened.map_err(|_| wrong("no answer within 10 s".into()))?;
        match opened.map_err(wrong)? {
            Opened::Plain(socket) => self.look(*socket).await,
            Opened::Tls(socket) => self.look(*socket).await,
        }
    }

    async fn look<S>(&mut self, mut socket: WebSocketStream<S>) -> Result<(), Error>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let place = self.address.place();
        let wrong = |why: String| Error::Connect { to: place.clone(), why };
        self.scope.connected(&self.address.token, self.address.source, self.pictures_per_s);
        let mut heard = Instant::now();
        loop {
            if self.is_over() {
                let _ = timeout(FAREWELL_TIME, socket.close(None)).await;
                return Ok(());
            }
            // Requests of the front end do not extend this timeout.
            if heard.elapsed() > SILENCE_MAX {
                return Err(wrong("it fell silent".into()));
            }
            while let Some(message) = self.scope.next(monotonic_ns()) {
                let message = match message {
                    ScopeMessage::Text(text) => Message::text(text),
                    ScopeMessage::Binary(bytes) => Message::binary(bytes),
                };
                let sent = tokio::select! {
                    sent = timeout(SILENCE_MAX, socket.send(message)) => sent,
                    () = self.over() => return Ok(()),
                };
                sent.map_err(|_| wrong("it takes nothing in".into()))?
                    .map_err(|error| wrong(error.to_string()))?;
            }
            let message = tokio::select! {
                message = socket.next() => match message {
                    Some(Ok(Message::Text(text))) => ScopeMessage::Text(text.as_str().to_owned()),
                    Some(Ok(Message::Binary(bytes))) => ScopeMessage::Binary(bytes.into()),
                    Some(Ok(Message::Close(_))) | None => return Err(wrong("it was closed".into())),
                    Some(Ok(_)) => continue,
                    Some(Err(error)) => return Err(wrong(error.to_string())),
                },
                () = self.woken.notified() => continue,
                () = sleep(LOOK_INTERVAL) => continue,
            };
            heard = Instant::now();
            self.scope.take(&message, monotonic_ns()).map_err(|error| match error {
                RemoteScopeError::Refused(why) => Error::Refused { to: place.clone(), why },
                error => wrong(error.to_string()),
            })?;
            if self.scope.is_welcome()
                && let Some(first) = self.first.take()
            {
                let _ = first.send(Ok(Welcomed::by(&self.scope)));
            }
        }
    }
}

enum Opened {
    Plain(Box<WebSocketStream<TcpStream>>),
    Tls(Box<WebSocketStream<tokio_rustls::client::TlsStream<TcpStream>>>),
}

async fn upgrade<S>(stream: S, url: &str) -> Result<WebSocketStream<S>, String>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let config = WebSocketConfig::default()
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX))
        .write_buffer_size(0);
    let upgraded = tokio_tungstenite::client_async_with_config(url, stream, Some(config)).await;
    let (socket, _) = upgraded.map_err(|error| match error {
        tokio_tungstenite::tungstenite::Error::Http(answer) => {
            let body = answer.body().as_deref().map(String::from_utf8_lossy).unwrap_or_default();
            let said = body.chars().filter(|it| !it.is_control()).take(200).collect::<String>();
            format!("it answers {} {said}", answer.status())
        }
        error => error.to_string(),
    })?;
    Ok(socket)
}

const CONNECT_TIME: Duration = Duration::from_secs(10);
/// The server answers one ping per second.
const SILENCE_MAX: Duration = Duration::from_secs(10);
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
const FAREWELL_TIME: Duration = Duration::from_millis(300);
const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Above the size of a picture of all lanes.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
