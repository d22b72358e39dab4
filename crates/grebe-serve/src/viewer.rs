//! One connection: requests for the page, or a viewer from its first message to its last.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use grebe_flow::monotonic_ns;
use grebe_view::{Greeting, Refusal, Right, ScopeMessage, greeting};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Message, Role, WebSocketConfig};

use crate::http;
use crate::session::Session;
use crate::shared::{ServeEvent, Shared};

/// Answers requests until one of them is a viewer's, then serves that viewer. Calls `is_known` once the viewer was
/// accepted.
pub(crate) async fn connection<S>(
    shared: &Arc<Shared>,
    mut stream: S,
    from: SocketAddr,
    is_known: impl FnOnce(),
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut buffer = Vec::new();
    for _ in 0..REQUESTS_MAX {
        let Some(head) = http::read_head(&mut stream, &mut buffer).await? else { return Ok(()) };
        if !shared.gate.lets_host(head.host.as_deref()) {
            return http::refuse(
                &mut stream,
                "421 Misdirected Request",
                "this server does not know that name as its own: say grebe serve --host NAME, or use its address",
            )
            .await;
        }
        if head.path != WAY_IN {
            http::answer(&mut stream, &head, &shared.gate).await?;
            if !head.keeps_open {
                return Ok(());
            }
            continue;
        }
        if !shared.gate.lets_origin(head.origin.as_deref(), head.host.as_deref()) {
            return http::refuse(
                &mut stream,
                "403 Forbidden",
                "pages of others need grebe serve --frame-origin",
            )
            .await;
        }
        let Some(key) = head.key else {
            return http::refuse(&mut stream, "426 Upgrade Required", "viewers speak WebSocket here").await;
        };
        let answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {}\r\n\r\n",
            derive_accept_key(key.as_bytes())
        );
        http::send(&mut stream, answer.as_bytes()).await?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(MESSAGE_BYTES_MAX))
            .max_frame_size(Some(MESSAGE_BYTES_MAX))
            .read_buffer_size(READ_BUFFER_BYTES)
            .write_buffer_size(0);
        let socket = WebSocketStream::from_partially_read(stream, buffer, Role::Server, Some(config)).await;
        return viewer(shared, socket, from, is_known).await;
    }
    Ok(())
}

async fn viewer<S>(
    shared: &Arc<Shared>,
    mut socket: WebSocketStream<S>,
    from: SocketAddr,
    is_known: impl FnOnce(),
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let ended = match greet(shared, &mut socket).await {
        Ok((greeting, right)) => match shared.seat() {
            Ok(seat) => {
                is_known();
                shared.tell(ServeEvent::Came { from, source: greeting.source, viewers: shared.viewers() });
                let ended = look(shared, &mut socket, &greeting, (from, right)).await;
                drop(seat);
                let why = ended.as_ref().err().map(ToString::to_string);
                shared.tell(ServeEvent::Left { from, viewers: shared.viewers(), why });
                ended
            }
            Err(refusal) => Err(refusal),
        },
        Err(refusal) => {
            shared.tell(ServeEvent::Refused { from, why: refusal.to_string() });
            Err(refusal)
        }
    };
    if let Err(refusal) = ended {
        // A closed viewer need not read the reason.
        let _ = timeout(FAREWELL_TIME, send(&mut socket, refusal.message())).await;
    }
    let _ = timeout(FAREWELL_TIME, socket.close(None)).await;
    Ok(())
}

/// The greeting of an accepted viewer, and its right.
async fn greet<S>(shared: &Shared, socket: &mut WebSocketStream<S>) -> Result<(Greeting, Right), Refusal>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let first = timeout(GREETING_TIME, next_text(socket)).await;
    let first = first.map_err(|_| Refusal("no hello within 5 s".into()))??;
    let greeting = greeting(&first.ok_or_else(|| Refusal("it ended before a hello".into()))?)?;
    let right = shared.right_of(&greeting.token);
    let right = right.ok_or_else(|| {
        Refusal("the token is not the one that grebe serve printed when it was started".into())
    })?;
    shared.source(greeting.source)?;
    Ok((greeting, right))
}

/// Serves a viewer until it ends or must be closed.
async fn look<S>(
    shared: &Shared,
    socket: &mut WebSocketStream<S>,
    greeting: &Greeting,
    (from, right): (SocketAddr, Right),
) -> Result<(), Refusal>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let source = shared.source(greeting.source)?;
    let link = source.link.another();
    let woken = Arc::new(Notify::new());
    link.on_picture({
        let woken = Arc::clone(&woken);
        move || woken.notify_one()
    });
    let mut session = Session::new(link, greeting, &source.offer, right);
    let mut ends = shared.ends.subscribe();
    loop {
        while let Some(message) = session.next(monotonic_ns(), || source.status()) {
            let sent = timeout(SEND_TIME, send(socket, message)).await;
            match sent {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Ok(()),
                Err(_) => return Err(Refusal("the viewer took nothing in for 20 s".into())),
            }
        }
        let now_ns = monotonic_ns();
        session.check(now_ns)?;
        let wake = Duration::from_nanos(session.wake_ns(now_ns).saturating_sub(now_ns));
        tokio::select! {
            text = next_text(socket) => match text? {
                Some(text) => {
                    session.take(&text, monotonic_ns())?;
                    if let Some(what) = session.take_changed() {
                        shared.tell(ServeEvent::Changed { from, source: greeting.source, what });
                    }
                }
                None => return Ok(()),
            },
            () = woken.notified() => {}
            () = sleep_until(Instant::now() + wake) => {}
            _ = ends.changed() => return Err(Refusal("the server ended".into())),
        }
    }
}

/// The next text of a viewer; `None`: it is gone. Cancel-safe.
async fn next_text<S>(socket: &mut WebSocketStream<S>) -> Result<Option<String>, Refusal>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        match socket.next().await {
            Some(Ok(Message::Text(text))) => return Ok(Some(text.as_str().to_owned())),
            Some(Ok(Message::Binary(_))) => return Err(Refusal("viewers send text alone".into())),
            Some(Ok(Message::Close(_))) | None => return Ok(None),
            Some(Ok(_)) => {}
            Some(Err(error)) if is_gone(&error) => return Ok(None),
            Some(Err(error)) => return Err(Refusal(format!("a message could not be read: {error}"))),
        }
    }
}

fn is_gone(error: &tokio_tungstenite::tungstenite::Error) -> bool {
    use tokio_tungstenite::tungstenite::Error;
    use tokio_tungstenite::tungstenite::error::ProtocolError;
    matches!(
        error,
        Error::ConnectionClosed
            | Error::AlreadyClosed
            | Error::Io(_)
            | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)
    )
}

async fn send<S>(
    socket: &mut WebSocketStream<S>,
    message: ScopeMessage,
) -> Result<(), tokio_tungstenite::tungstenite::Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    socket
        .send(match message {
            ScopeMessage::Text(text) => Message::text(text),
            ScopeMessage::Binary(bytes) => Message::binary(bytes),
        })
        .await
}

/// Path of the WebSocket.
const WAY_IN: &str = "/scope";
/// Maximum requests of a connection before a viewer's.
const REQUESTS_MAX: usize = 200;
/// Maximum size of a viewer's message.
const MESSAGE_BYTES_MAX: usize = 64 << 10;
const READ_BUFFER_BYTES: usize = 8 << 10;
const GREETING_TIME: Duration = Duration::from_secs(5);
const SEND_TIME: Duration = Duration::from_secs(20);
const FAREWELL_TIME: Duration = Duration::from_secs(1);
