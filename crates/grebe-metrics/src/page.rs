//! Metrics page over HTTP. Requests are bounded in bytes and time, answers in time, and both in number.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::families::Families;
use crate::host::is_for_here;

/// Listening address without a server yet, so that it can be bound before there is anything to count.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
    name: Option<String>,
}

/// Page, served until it is dropped.
#[derive(Debug)]
pub struct Page {
    address: SocketAddr,
    stops: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Listens at `address`; port 0: any free port. Refuses requests whose host name is not an address,
    /// `localhost` or this machine's own name (Linux).
    ///
    /// # Errors
    /// System error if it cannot listen.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        Ok(Self { address: listener.local_addr()?, listener, name: None })
    }

    /// Also accepts requests with this host name.
    #[must_use]
    pub fn named(self, name: Option<String>) -> Self {
        Self { name, ..self }
    }

    /// The address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves the result of `figures` at `/metrics`. Calls it from other threads, at most five times per
    /// second.
    ///
    /// # Errors
    /// System error if no thread can start.
    pub fn serve(self, figures: impl Fn() -> Families + Send + Sync + 'static) -> io::Result<Page> {
        let stops = Arc::new(AtomicBool::new(false));
        let served = Arc::new(Served { figures: Box::new(figures), name: self.name, text: Mutex::default() });
        let (listener, stopped) = (self.listener, Arc::clone(&stops));
        let thread = thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(move || accept(&listener, &served, &stopped))?;
        Ok(Page { address: self.address, stops, thread: Some(thread) })
    }
}

impl Page {
    /// Address of the page.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::Release);
        // The thread sleeps until a connection arrives.
        let ip = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        let woken = TcpStream::connect_timeout(&(ip, self.address.port()).into(), WAKE_MAX);
        if let (Ok(_), Some(thread)) = (woken, self.thread.take()) {
            // It cannot panic; if it did, it would be gone as well.
            let _ = thread.join();
        }
    }
}

struct Served {
    figures: Box<dyn Fn() -> Families + Send + Sync>,
    /// Further allowed host name.
    name: Option<String>,
    /// Last text, with its time.
    text: Mutex<Option<(Instant, Arc<str>)>>,
}

impl Served {
    fn text(&self) -> Arc<str> {
        let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        match &*text {
            Some((at, known)) if at.elapsed() < NEW_EVERY => Arc::clone(known),
            _ => {
                let new: Arc<str> = (self.figures)().to_string().into();
                *text = Some((Instant::now(), Arc::clone(&new)));
                new
            }
        }
    }
}

fn accept(listener: &TcpListener, served: &Arc<Served>, stops: &AtomicBool) {
    let busy = Arc::new(AtomicUsize::new(0));
    loop {
        let accepted = listener.accept();
        if stops.load(Ordering::Acquire) {
            return;
        }
        let Ok((stream, _)) = accepted else {
            // Probably out of descriptors.
            thread::sleep(LATER);
            continue;
        };
        if busy.fetch_add(1, Ordering::Relaxed) >= ANSWERED_AT_ONCE {
            busy.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (done, served) = (Arc::clone(&busy), Arc::clone(served));
        let started = thread::Builder::new().name("metrics-answer".to_owned()).spawn(move || {
            // The client may be gone.
            let _ = answer(stream, &served);
            done.fetch_sub(1, Ordering::Relaxed);
        });
        if started.is_err() {
            busy.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn answer(mut stream: TcpStream, served: &Served) -> io::Result<()> {
    let until = Instant::now() + REQUEST_MAX;
    let request = read_head(&mut stream, until)?;
    let text;
    let plain = "text/plain; charset=utf-8";
    let line = request.lines().next().unwrap_or_default();
    let (status, kind, body) = match line.split(' ').take(2).collect::<Vec<_>>()[..] {
        _ if !is_for_here(&request, served.name.as_deref()) => ("421 Misdirected Request", plain, FOREIGN),
        ["GET" | "HEAD", path] if path == PATH || path.starts_with("/metrics?") => {
            text = served.text();
            ("200 OK", "text/plain; version=0.0.4; charset=utf-8", &*text)
        }
        ["GET" | "HEAD", _] => ("404 Not Found", plain, "the figures are at /metrics\n"),
        _ => ("405 Method Not Allowed", plain, "only GET\n"),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    write_all(&mut stream, head.as_bytes(), until)?;
    if !request.starts_with("HEAD ") {
        write_all(&mut stream, body.as_bytes(), until)?;
    }
    Ok(())
}

/// Reads the complete head of a request.
fn read_head(stream: &mut TcpStream, until: Instant) -> io::Result<String> {
    let mut head = [0; HEAD_BYTES_MAX];
    let mut filled = 0;
    loop {
        stream.set_read_timeout(Some(left(until)?))?;
        let read = stream.read(&mut head[filled..])?;
        if read == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        filled += read;
        if head[..filled].windows(4).any(|end| end == b"\r\n\r\n") {
            return Ok(String::from_utf8_lossy(&head[..filled]).into_owned());
        }
    }
}

/// Writes everything in time, however little is accepted at once.
fn write_all(stream: &mut TcpStream, mut bytes: &[u8], until: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(until)?))?;
        match stream.write(bytes)? {
            0 => return Err(ErrorKind::WriteZero.into()),
            written => bytes = &bytes[written..],
        }
    }
    Ok(())
}

fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

const PATH: &str = "/metrics";
const FOREIGN: &str = "this page is not known by that name: ask by an address of this machine, or give the name: --metrics NAME:PORT\n";
const HEAD_BYTES_MAX: usize = 8_192;
const REQUEST_MAX: Duration = Duration::from_secs(5);
const ANSWERED_AT_ONCE: usize = 16;
const NEW_EVERY: Duration = Duration::from_millis(200);
const LATER: Duration = Duration::from_millis(100);
const WAKE_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Page {
        let asked = AtomicUsize::new(0);
        let figures = move || {
            let mut families = Families::default();
            families.counter("asked_total", "Times.", &[], asked.fetch_add(1, Ordering::Relaxed) + 1);
            families
        };
        Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap().serve(figures).unwrap()
    }

    fn ask(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        let mut answer = String::new();
        // A refused request is cut off, which may be an error.
        let _ = stream.write_all(request);
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    #[test]
    fn the_metrics_page_is_the_only_page() {
        let page = page();
        let answer = ask(page.address(), b"GET /metrics HTTP/1.1\r\nHost: 10.0.0.7\r\n\r\n");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("version=0.0.4"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
        assert!(body.ends_with("\nasked_total 1\n"), "{body}");
        let head = ask(page.address(), b"HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
        for (request, status) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], "404"),
            (b"GET /metrics2 HTTP/1.1\r\n\r\n", "404"),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
            (b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", "421"),
            (b"\xff\xfe\r\n\r\n", "405"),
        ] {
            let answer = ask(page.address(), request);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        }
        assert_eq!(ask(page.address(), &[b'x'; HEAD_BYTES_MAX + 1]), "", "a head without an end is cut off");
    }

    #[test]
    fn silent_clients_delay_no_other_client() {
        let page = page();
        let silent: Vec<_> =
            (0..ANSWERED_AT_ONCE - 1).map(|_| TcpStream::connect(page.address()).unwrap()).collect();
        let answer = ask(page.address(), b"GET /metrics HTTP/1.1\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        drop(silent);
    }

    #[test]
    fn dropping_the_page_frees_its_address() {
        let page = page();
        let address = page.address();
        assert!(Listener::bind(address).is_err());
        drop(page);
        Listener::bind(address).unwrap();
    }

    #[test]
    fn any_number_of_readers_causes_at_most_five_snapshots_per_second() {
        let page = page();
        let began = Instant::now();
        let mut last = String::new();
        for _ in 0..50 {
            last = ask(page.address(), b"GET /metrics HTTP/1.0\r\n\r\n");
        }
        let asked: u128 = last.rsplit(' ').next().unwrap().trim().parse().unwrap();
        assert!(asked <= 1 + began.elapsed().as_millis() / NEW_EVERY.as_millis(), "{asked} times");
    }
}
