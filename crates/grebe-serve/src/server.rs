//! A server: one thread that accepts connections and carries all of them.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use grebe_view::{AfterEnd, FarOffer, Right, ScopeLink, SourceStatus};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::address::FarAddress;
use crate::error::Error;
use crate::gate::{Gate, Token};
use crate::shared::{ServeEvent, Shared, Source};
use crate::tls;
use crate::viewer::connection;

/// How a server is set up.
pub struct ServeOptions {
    /// Where it listens; port 0: any that is free.
    pub listen: SocketAddr,
    /// Names that this machine has, beside its addresses: requests for others are refused.
    pub hosts: Vec<String>,
    /// Pages of others that may show this scope, as `https://HOST`.
    pub frame_origins: Vec<String>,
    /// Viewers at once at most.
    pub viewers_max: usize,
    /// Certificate and key, in PEM form; `None`: without TLS.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Whether there is a second token, whose holders may change what the source makes.
    pub gives_control: bool,
    /// Told who comes and goes.
    pub tell: Box<dyn Fn(ServeEvent) + Send + Sync>,
}

/// A source that viewers can look at.
pub struct Served {
    /// Its scope.
    pub link: ScopeLink,
    /// What each of its viewers is told of it.
    pub offer: FarOffer,
    /// Asked a few times a second what is known of it.
    pub status: Box<dyn Fn() -> SourceStatus + Send>,
}

/// A server that runs until it is stopped or dropped.
pub struct Server {
    address: SocketAddr,
    digest: Option<[u8; 32]>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// What takes long to compute of a stream that is over holds up no connection.
    _after_end: Vec<AfterEnd>,
}

impl Server {
    /// Serves these sources: viewers say which of them they want to see. Each is analysed where its samples are, so that none waits for
    /// another.
    ///
    /// # Errors
    /// [`Error::Listen`], [`Error::Certificate`] and [`Error::System`].
    pub fn start(options: ServeOptions, served: Vec<Served>) -> Result<Server, Error> {
        let tls =
            options.tls.as_ref().map(|(certificate, key)| tls::acceptor(certificate, key)).transpose()?;
        let (tls, digest) = tls.map_or((None, None), |(acceptor, digest)| (Some(acceptor), Some(digest)));
        let refused = |source| Error::Listen { address: options.listen, source };
        let listener = std::net::TcpListener::bind(options.listen).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let after_end = served.iter().map(|it| it.link.answer_after_end()).collect::<Result<_, _>>();
        let after_end = after_end.map_err(Error::System)?;
        let names: Vec<String> = served.iter().map(|it| it.offer.name.clone()).collect();
        let source = |Served { link, offer, status }| {
            let offer = FarOffer { sources: names.clone(), ..offer };
            Source { link, offer, status: Mutex::new(status) }
        };
        let sources = served.into_iter().map(source).collect();
        let shared = Arc::new(Shared {
            sources,
            gate: Gate { hosts: options.hosts, origins: options.frame_origins },
            token: Token::new().map_err(Error::System)?,
            control: options.gives_control.then(Token::new).transpose().map_err(Error::System)?,
            ends: watch::Sender::new(false),
            viewers: Arc::default(),
            viewers_max: options.viewers_max,
            tell: options.tell,
            strangers: Mutex::default(),
        });
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::System)?;
        let run = {
            let shared = Arc::clone(&shared);
            move || {
                runtime.block_on(serve(&shared, listener, tls));
                // Connections that do not take a farewell in are dropped with it.
                runtime.shutdown_timeout(FAREWELL_TIME);
            }
        };
        let thread =
            std::thread::Builder::new().name("grebe-serve".into()).spawn(run).map_err(Error::System)?;
        Ok(Server { address, digest, shared, thread: Some(thread), _after_end: after_end })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The link to the first source, by the name or the address that viewers reach this machine by; `None`: nobody has that right.
    pub fn link_for(&self, host: &str, right: Right) -> Option<FarAddress> {
        let token = self.shared.token_for(right)?;
        Some(FarAddress::new(host, self.address.port(), token.word(), self.digest))
    }

    /// Viewers that look now.
    pub fn viewers(&self) -> usize {
        self.shared.viewers()
    }

    /// Says farewell to all viewers, and ends.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.shared.ends.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

async fn serve(shared: &Arc<Shared>, listener: std::net::TcpListener, tls: Option<TlsAcceptor>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let mut ends = shared.ends.subscribe();
    let mut connections = tokio::task::JoinSet::new();
    let mut number = 0;
    loop {
        let (stream, from) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                // Out of descriptors, or the connection is gone again.
                Err(_) => {
                    sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
            Some(_) = connections.join_next() => continue,
            _ = ends.changed() => break,
        };
        number += 1;
        let task = stranger(Arc::clone(shared), stream, from, tls.clone(), number);
        let handle = connections.spawn(task);
        let mut strangers = shared.strangers();
        strangers.push_back((number, handle));
        if strangers.len() > STRANGERS_MAX
            && let Some((_, oldest)) = strangers.pop_front()
        {
            oldest.abort();
        }
    }
    let all = async { while connections.join_next().await.is_some() {} };
    // Who does not take the farewell in is dropped.
    let _ = timeout(FAREWELL_TIME, all).await;
}

/// A connection of which nothing is known yet.
async fn stranger(
    shared: Arc<Shared>,
    stream: TcpStream,
    from: SocketAddr,
    tls: Option<TlsAcceptor>,
    number: u64,
) {
    // A picture is one message, sent when it is made.
    let _ = stream.set_nodelay(true);
    let is_known = || shared.is_no_stranger(number);
    match tls {
        None => {
            let _ = connection(&shared, stream, from, is_known).await;
        }
        Some(tls) => {
            if let Ok(Ok(stream)) = timeout(HANDSHAKE_TIME, tls.accept(stream)).await {
                let _ = connection(&shared, stream, from, is_known).await;
            }
        }
    }
    shared.is_no_stranger(number);
}

impl fmt::Debug for ServeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServeOptions").field("listen", &self.listen).finish_non_exhaustive()
    }
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Served").field("offer", &self.offer.name).finish_non_exhaustive()
    }
}

/// Connections that nobody let in yet: with more, the one that is there for longest is closed.
const STRANGERS_MAX: usize = 64;
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
const HANDSHAKE_TIME: Duration = Duration::from_secs(5);
const FAREWELL_TIME: Duration = Duration::from_millis(1500);
