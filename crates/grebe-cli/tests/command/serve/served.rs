//! A server, and a connection to it that speaks as viewers do, word by word.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
#[cfg(unix)]
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::support::{Killed, grebe, text};

/// A server, and its output.
pub(crate) struct Served {
    pub child: Killed,
    /// For `grebe view`.
    pub link: String,
    /// Host and port.
    pub address: String,
    pub token: String,
    /// The token of who may change the source.
    pub control: Option<String>,
    stderr: BufReader<ChildStderr>,
}

pub(crate) fn serve(arguments: &[&str]) -> Served {
    let arguments = [&["serve", "--json"], arguments].concat();
    let mut child = grebe(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let Ok(printed) = serde_json::from_str::<Value>(&line) else {
        let mut said = String::new();
        let _ = stderr.read_to_string(&mut said);
        panic!("{line:?} {said}");
    };
    let of = |key: &str| printed[key].as_str().unwrap().to_owned();
    let (link, address) = (of("link"), of("listen"));
    let token_of = |link: &str| link.split("token=").nth(1).unwrap().split('&').next().unwrap().to_owned();
    let token = token_of(&link);
    let control = printed["control_link"].as_str().map(token_of);
    assert!(of("page").ends_with(&format!("#token={token}")), "{printed}");
    Served { child: Killed(child), link, address, token, control, stderr }
}

impl Served {
    /// Waits until it has said so.
    pub(crate) fn says(&mut self, words: &str) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.stderr.read_line(&mut line).unwrap() > 0, "it ended before it said {words:?}");
            if line.contains(words) {
                return line;
            }
        }
    }

    /// Its memory use, if known.
    pub(crate) fn memory_bytes(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
        Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// The answer to a request.
    pub(crate) fn ask(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.replace('\n', "\r\n").as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        text(&answer)
    }

    /// A connection that speaks as viewers do, up to its first message.
    pub(crate) fn socket(&self) -> TcpStream {
        let mut stream = self.connect();
        let request = format!(
            "GET /scope HTTP/1.1\r\nHost: {}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            self.address
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        assert!(text(&head).contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{}", text(&head));
        stream
    }

    pub(crate) fn hello(&self) -> String {
        format!(r#"{{"hello":{{"protocol":1,"token":"{}"}}}}"#, self.token)
    }
}

/// A stand-in for `ssh`: a shell runs its last argument. Also the file that gets its process number.
#[cfg(unix)]
pub(crate) fn ssh_in(folder: &Path) -> (PathBuf, PathBuf) {
    let (ssh, started) = (folder.join("ssh"), folder.join("started"));
    let script = format!(
        "#!/bin/sh\nfor last; do :; done\necho $$ > {}\nexec sh -c \"exec $last\"\n",
        started.display()
    );
    fs::write(&ssh, script).unwrap();
    fs::set_permissions(&ssh, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    (ssh, started)
}

/// Sends a text as a viewer does: masked.
pub(crate) fn say(stream: &mut TcpStream, words: &str) -> std::io::Result<()> {
    let mut frame = vec![0x81];
    match words.len() {
        short @ 0..=125 => frame.push(0x80 | short as u8),
        long => {
            frame.push(0x80 | 126);
            frame.extend((long as u16).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(words.as_bytes());
    stream.write_all(&frame)
}

/// The next message of a server: its opcode and its bytes; `None` at the end.
pub(crate) fn hear(stream: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 2];
    stream.read_exact(&mut head).ok()?;
    let length = match head[1] {
        126 => {
            let mut more = [0; 2];
            stream.read_exact(&mut more).ok()?;
            u16::from_be_bytes(more).into()
        }
        127 => {
            let mut more = [0; 8];
            stream.read_exact(&mut more).ok()?;
            u64::from_be_bytes(more) as usize
        }
        short => usize::from(short),
    };
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).ok()?;
    Some((head[0] & 15, bytes))
}

/// Waits for a message of the server, and acknowledges pictures, because messages come with them.
pub(crate) fn until(stream: &mut TcpStream, words: &str) -> String {
    loop {
        let (kind, bytes) = hear(stream).unwrap_or_else(|| panic!("it ended before it said {words:?}"));
        if kind == 2 {
            let (number, length) =
                bytes[1..].iter().enumerate().fold((0, None), |(sum, end), (at, byte)| match end {
                    None => (sum | u64::from(byte & 127) << (7 * at), (byte & 128 == 0).then_some(at)),
                    end => (sum, end),
                });
            assert!(length.is_some());
            say(stream, &format!(r#"{{"ack":{number}}}"#)).unwrap();
        } else if text(&bytes).contains(words) {
            return text(&bytes);
        }
    }
}
