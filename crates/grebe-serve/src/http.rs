//! HTTP requests for the page and for the WebSocket: heads, and answers from memory.

use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use crate::gate::Gate;
use crate::page;

/// The needed parts of a request.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Head {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) host: Option<String>,
    pub(crate) origin: Option<String>,
    known: Option<String>,
    /// Key of a WebSocket request.
    pub(crate) key: Option<String>,
    pub(crate) keeps_open: bool,
}

/// Reads a head, and leaves the following bytes in `buffer`. `None`: the other side closed.
pub(crate) async fn read_head<S: AsyncRead + Unpin>(
    stream: &mut S,
    buffer: &mut Vec<u8>,
) -> io::Result<Option<Head>> {
    let read = async {
        loop {
            if let Some((head, length)) = parse(buffer)? {
                buffer.drain(..length);
                return Ok(Some(head));
            }
            if buffer.len() >= HEAD_BYTES_MAX {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "its head is too long"));
            }
            let mut more = [0; 2048];
            let count = stream.read(&mut more).await?;
            if count == 0 {
                return Ok(None);
            }
            buffer.extend_from_slice(&more[..count]);
        }
    };
    timeout(HEAD_TIME, read).await.map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "no request head"))?
}

/// Parses a head, and returns its length; `None`: it is incomplete.
pub(crate) fn parse(bytes: &[u8]) -> io::Result<Option<(Head, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let length = match request.parse(bytes).map_err(|error| wrong(error.to_string()))? {
        httparse::Status::Complete(length) => length,
        httparse::Status::Partial => return Ok(None),
    };
    let mut head = Head {
        method: request.method.unwrap_or_default().to_owned(),
        path: request.path.unwrap_or_default().split(['?', '#']).next().unwrap_or_default().to_owned(),
        keeps_open: request.version == Some(1),
        ..Head::default()
    };
    let (mut is_upgrade, mut is_version_13, mut key) = (false, false, None);
    for header in request.headers.iter() {
        let Ok(value) = std::str::from_utf8(header.value) else { continue };
        let has = |word: &str| value.split(',').any(|part| part.trim().eq_ignore_ascii_case(word));
        match header.name.to_ascii_lowercase().as_str() {
            // With two hosts, a proxy could choose the other one.
            "host" if head.host.is_some() => return Err(wrong("it has two hosts".into())),
            "host" => head.host = Some(value.to_owned()),
            "origin" => head.origin = Some(value.to_owned()),
            "if-none-match" => head.known = Some(value.to_owned()),
            "connection" if has("close") => head.keeps_open = false,
            "upgrade" => is_upgrade = has("websocket"),
            "sec-websocket-version" => is_version_13 = value.trim() == "13",
            "sec-websocket-key" => key = Some(value.trim().to_owned()),
            "content-length" if value.trim() != "0" => return Err(wrong("it has a body".into())),
            "transfer-encoding" => return Err(wrong("it has a body".into())),
            _ => {}
        }
    }
    head.key = key.filter(|_| is_upgrade && is_version_13 && head.method == "GET");
    Ok(Some((head, length)))
}

/// Answers a request for a file of the page.
pub(crate) async fn answer<S: AsyncWrite + Unpin>(
    stream: &mut S,
    head: &Head,
    gate: &Gate,
) -> io::Result<()> {
    if !matches!(head.method.as_str(), "GET" | "HEAD") {
        return refuse(stream, "405 Method Not Allowed", "only GET and HEAD are answered").await;
    }
    let Some((kind, body)) = page::file(&head.path) else {
        return refuse(stream, "404 Not Found", "page not found").await;
    };
    let tag = format!("\"{}-{:x}\"", env!("CARGO_PKG_VERSION"), checksum(body));
    let is_known = head.known.as_deref().is_some_and(|known| known.split(',').any(|it| it.trim() == tag));
    let status = if is_known { "304 Not Modified" } else { "200 OK" };
    let mut text =
        format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nETag: {tag}\r\nCache-Control: no-cache\r\n");
    let frames = if gate.origins.is_empty() { "'none'".to_owned() } else { gate.origins.join(" ") };
    // Writing to a string cannot fail.
    let _ = write!(text, "Content-Security-Policy: {POLICY}; frame-ancestors {frames}\r\n");
    text.push_str("X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n");
    if let Some(origin) = head.origin.as_deref().filter(|origin| gate.is_named(origin)) {
        let _ = write!(text, "Access-Control-Allow-Origin: {origin}\r\nVary: Origin\r\n");
    }
    let body = if is_known { &[] } else { body };
    let _ = write!(text, "Content-Length: {}\r\n", body.len());
    text.push_str(if head.keeps_open { "\r\n" } else { "Connection: close\r\n\r\n" });
    let mut bytes = text.into_bytes();
    if head.method == "GET" {
        bytes.extend_from_slice(body);
    }
    send(stream, &bytes).await
}

/// Answers with an error and its reason.
pub(crate) async fn refuse<S: AsyncWrite + Unpin>(stream: &mut S, status: &str, why: &str) -> io::Result<()> {
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{why}\n",
        why.len() + 1
    );
    send(stream, text.as_bytes()).await?;
    Err(io::Error::other(why.to_owned()))
}

pub(crate) async fn send<S: AsyncWrite + Unpin>(stream: &mut S, bytes: &[u8]) -> io::Result<()> {
    let sent = async {
        stream.write_all(bytes).await?;
        stream.flush().await
    };
    timeout(SEND_TIME, sent).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

/// FNV-1a: distinguishes versions of a file, without security.
fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'";
const HEAD_BYTES_MAX: usize = 8 << 10;
const HEADERS_MAX: usize = 64;
const HEAD_TIME: Duration = Duration::from_secs(5);
const SEND_TIME: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_says_what_is_wanted() {
        let text = b"GET /scope?x=1 HTTP/1.1\r\nHost: a:1\r\nOrigin: http://a:1\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n\
                     Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: abc\r\n\r\nrest";
        let (head, length) = parse(text).unwrap().unwrap();
        assert_eq!((head.path.as_str(), head.key.as_deref(), head.keeps_open), ("/scope", Some("abc"), true));
        assert_eq!((head.host.as_deref(), &text[length..]), (Some("a:1"), &b"rest"[..]));
        let plain = parse(b"GET / HTTP/1.0\r\n\r\n").unwrap().unwrap().0;
        assert_eq!((plain.key, plain.keeps_open, plain.host), (None, false, None));
        assert_eq!(parse(b"GET / HTTP/1.1\r\nHost: a").unwrap(), None);
        for wrong in [
            &b"\x16\x03\x01\x02\x00\x01\x00"[..],
            b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n",
        ] {
            assert!(parse(wrong).is_err(), "{}", String::from_utf8_lossy(wrong));
        }
    }
}
