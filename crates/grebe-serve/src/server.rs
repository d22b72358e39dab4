//! A server: one thread that accepts connections and carries all of them.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use grebe_view::{AfterEnd, Right, ScopeLink, ScopeOffer, SourceStatus};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::address::ServerAddress;
use crate::error::Error;
use crate::gate::{Gate, Token};
use crate::shared::{ServeEvent, Shared, Source};
use crate::tls;
use crate::viewer::connection;

/// Options of a server.
pub struct ServeOptions {
    /// Address to listen on; port 0: any free port.
    pub listen: SocketAddr,
    /// Names of this machine, beside its addresses: requests for others are refused.
    pub hosts: Vec<String>,
    /// Other pages that may show this scope, as `https://HOST`.
    pub frame_origins: Vec<String>,
    /// Maximum simultaneous viewers.
    pub viewers_max: usize,
    /// Certificate and key, in PEM form; `None`: without TLS.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Whether there is a second token, whose holders may control the source.
    pub gives_control: bool,
    /// Receives events about viewers.
    pub tell: Box<dyn Fn(ServeEvent) + Send + Sync>,
}

/// A source for viewers.
pub struct Served {
    /// Its scope.
    pub link: ScopeLink,
    /// Its offer to each viewer.
    pub offer: ScopeOffer,
    /// Returns its state, a few times a second.
    pub status: Box<dyn Fn() -> SourceStatus + Send>,
}

/// A server that runs until it is stopped or dropped.
pub struct Server {
    address: SocketAddr,
    digest: Option<[u8; 32]>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// Long computations on ended streams run here, so that they delay no connection.
    _after_end: Vec<AfterEnd>,
}

impl Server {
    /// Serves these sources; each viewer selects one. Each source is analysed in its own graph, so none waits for
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
            let offer = ScopeOffer { sources: names.clone(), ..offer };
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
                // Connections that do not take the farewell are dropped with it.
                runtime.shutdown_timeout(FAREWELL_TIME);
            }
        };
        let thread =
            std::thread::Builder::new().name("grebe-serve".into()).spawn(run).map_err(Error::System)?;
        Ok(Server { address, digest, shared, thread: Some(thread), _after_end: after_end })
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The link to the first source, for the name or address by which viewers reach this machine; `None`: the right
    /// is not offered.
    pub fn link_for(&self, host: &str, right: Right) -> Option<ServerAddress> {
        let token = self.shared.token_for(right)?;
        Some(ServerAddress::new(host, self.address.port(), token.word(), self.digest))
    }

    /// Number of present viewers.
    pub fn viewers(&self) -> usize {
        self.shared.viewers()
    }

    /// Says farewell to all viewers, and stops.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.shared.ends.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A panic was already reported.
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
                // Out of descriptors, or the connection is already gone.
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
    // Viewers that do not take the farewell are dropped.
    let _ = timeout(FAREWELL_TIME, all).await;
}

/// A new connection, before its first message.
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

/// Maximum connections without access; one more closes the oldest.
const STRANGERS_MAX: usize = 64;
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
const HANDSHAKE_TIME: Duration = Duration::from_secs(5);
const FAREWELL_TIME: Duration = Duration::from_millis(1500);
