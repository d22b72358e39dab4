//! The figures over HTTP: one page, for Prometheus. A request is bounded in bytes and time, and so is how many are answered at once.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::proto::relay::Figures;

/// The page, which a thread serves as long as the process lives.
pub(crate) struct Metrics {
    pub(crate) address: SocketAddr,
    figures: Arc<Mutex<Figures>>,
}

impl Metrics {
    /// # Errors
    /// [`Error::Metrics`] where the address cannot be listened at.
    pub(crate) fn listen(address: SocketAddr) -> Result<Self> {
        let failed = |source| Error::Metrics { address, source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let figures = Arc::new(Mutex::new(Figures::default()));
        let served = Arc::clone(&figures);
        let thread = std::thread::Builder::new().name("metrics".into());
        thread.spawn(move || serve(&listener, &served)).map_err(failed)?;
        Ok(Self { address, figures })
    }

    /// What the page says from now on.
    pub(crate) fn tell(&self, figures: Figures) {
        *self.figures.lock().unwrap_or_else(PoisonError::into_inner) = figures;
    }
}

fn serve(listener: &TcpListener, figures: &Arc<Mutex<Figures>>) {
    let busy = Arc::new(AtomicUsize::new(0));
    loop {
        let Ok((stream, _)) = listener.accept() else {
            // No more descriptors, most likely.
            std::thread::sleep(Duration::from_millis(100));
            continue;
        };
        if busy.fetch_add(1, Ordering::Relaxed) >= ANSWERED_AT_ONCE {
            busy.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (done, figures) = (Arc::clone(&busy), Arc::clone(figures));
        let started = std::thread::Builder::new().name("metrics-answer".into()).spawn(move || {
            let figures = *figures.lock().unwrap_or_else(PoisonError::into_inner);
            // Whoever asked and went does not hear the answer.
            let _ = answer(stream, &figures);
            done.fetch_sub(1, Ordering::Relaxed);
        });
        if started.is_err() {
            busy.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn answer(mut stream: TcpStream, figures: &Figures) -> std::io::Result<()> {
    let until = Instant::now() + REQUEST_MAX;
    stream.set_write_timeout(Some(REQUEST_MAX))?;
    let request = read_head(&mut stream, until)?;
    let page = figures.prometheus();
    let (status, kind, body) = match request.split(' ').take(2).collect::<Vec<_>>()[..] {
        ["GET" | "HEAD", path] if path == PATH || path.starts_with("/metrics?") => {
            ("200 OK", "text/plain; version=0.0.4; charset=utf-8", page.as_str())
        }
        ["GET" | "HEAD", _] => {
            ("404 Not Found", "text/plain; charset=utf-8", "the figures are at /metrics\n")
        }
        _ => ("405 Method Not Allowed", "text/plain; charset=utf-8", "only GET\n"),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    if !request.starts_with("HEAD ") {
        stream.write_all(body.as_bytes())?;
    }
    Ok(())
}

/// The first line of a request, once all of its head is there.
fn read_head(stream: &mut TcpStream, until: Instant) -> std::io::Result<String> {
    let mut head = [0; HEAD_BYTES_MAX];
    let mut filled = 0;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let read = stream.read(&mut head[filled..])?;
        if read == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        filled += read;
        if head[..filled].windows(4).any(|end| end == b"\r\n\r\n") {
            let line = head[..filled].split(|byte| *byte == b'\r').next().unwrap_or_default();
            return Ok(String::from_utf8_lossy(line).into_owned());
        }
    }
}

const PATH: &str = "/metrics";
const HEAD_BYTES_MAX: usize = 8_192;
const REQUEST_MAX: Duration = Duration::from_secs(5);
const ANSWERED_AT_ONCE: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request).unwrap();
        let mut answer = String::new();
        // One that is refused is cut off, which may be an error.
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    #[test]
    fn the_page_has_the_figures_and_nothing_else_is_there() {
        let metrics = Metrics::listen("127.0.0.1:0".parse().unwrap()).unwrap();
        metrics.tell(Figures { relayed_bytes: 4_242, ..Figures::default() });
        let page = ask(metrics.address, b"GET /metrics HTTP/1.1\r\nHost: relay\r\n\r\n");
        let (head, body) = page.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("version=0.0.4"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
        assert!(body.contains("\ngrebe_relay_relayed_bytes_total 4242\n"), "{body}");
        let head = ask(metrics.address, b"HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
        for (request, status) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], "404"),
            (b"GET /metrics2 HTTP/1.1\r\n\r\n", "404"),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
            (b"\xff\xfe\r\n\r\n", "405"),
        ] {
            let answer = ask(metrics.address, request);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        }
        assert_eq!(ask(metrics.address, &[b'x'; HEAD_BYTES_MAX + 1]), "", "a head without an end is cut off");
    }

    #[test]
    fn those_who_say_nothing_keep_nobody_waiting() {
        let metrics = Metrics::listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let silent: Vec<_> =
            (0..ANSWERED_AT_ONCE - 1).map(|_| TcpStream::connect(metrics.address).unwrap()).collect();
        let page = ask(metrics.address, b"GET /metrics HTTP/1.1\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200"), "{page}");
        drop(silent);
    }
}
