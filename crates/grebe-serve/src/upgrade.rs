//! Opening handshake of a WebSocket (RFC 6455, section 4), at both ends.

use std::io;

use data_encoding::BASE64;
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::http;

/// A server's answer to a request with this key.
pub(crate) fn answer(key: &str) -> String {
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {}\r\n\r\n",
        proof(key)
    )
}

/// Asks a server, and returns the bytes that already follow its answer.
pub(crate) async fn ask<S>(stream: &mut S, place: &str, path: &str) -> io::Result<Vec<u8>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut key = [0; 16];
    getrandom::fill(&mut key).map_err(|error| io::Error::other(error.to_string()))?;
    let key = BASE64.encode(&key);
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {place}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n"
    );
    http::send(stream, request.as_bytes()).await?;
    let mut buffer = Vec::new();
    match http::read_parsed(stream, &mut buffer, |bytes| check(bytes, &key)).await? {
        Some(()) => Ok(buffer),
        None => Err(io::Error::other("it closed the connection without an answer")),
    }
}

/// Length of an answer that accepts the key; `None`: it is incomplete.
fn check(bytes: &[u8], key: &str) -> io::Result<Option<((), usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; http::HEADERS_MAX];
    let mut answer = httparse::Response::new(&mut headers);
    let length = match answer.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(io::Error::other(format!("its answer is not HTTP: {error}"))),
    };
    let (code, reason) = (answer.code.unwrap_or_default(), answer.reason.unwrap_or_default());
    if code != 101 {
        let body = String::from_utf8_lossy(&bytes[length..]);
        let said: String = body.chars().filter(|it| !it.is_control()).take(200).collect();
        return Err(io::Error::other(format!("it answers {code} {reason} {said}")));
    }
    let proof = proof(key);
    let is_proof = |header: &httparse::Header<'_>| {
        header.name.eq_ignore_ascii_case("sec-websocket-accept") && header.value == proof.as_bytes()
    };
    match answer.headers.iter().any(is_proof) {
        true => Ok(Some(((), length))),
        false => Err(io::Error::other("its answer is not that of a WebSocket server")),
    }
}

/// Proves that a server read the key.
fn proof(key: &str) -> String {
    let mut sum = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    sum.update(key.as_bytes());
    sum.update(b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    BASE64.encode(sum.finish().as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 6455, section 1.3.
    const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

    #[test]
    fn an_answer_proves_that_the_key_was_read() {
        let whole = answer(KEY);
        assert!(whole.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), "{whole}");
        let with_more = [whole.as_bytes(), b"frame"].concat();
        assert_eq!(check(&with_more, KEY).unwrap(), Some(((), whole.len())));
        assert_eq!(check(&whole.as_bytes()[..whole.len() - 1], KEY).unwrap(), None);
        for (other, words) in [
            (answer("another key"), "not that of a WebSocket server"),
            (
                "HTTP/1.1 403 Forbidden\r\n\r\nno \x1b[2Jpages\n".to_owned(),
                "it answers 403 Forbidden no [2Jpages",
            ),
            ("SSH-2.0-OpenSSH_9.2\r\n".to_owned(), "not HTTP"),
        ] {
            let error = check(other.as_bytes(), KEY).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
