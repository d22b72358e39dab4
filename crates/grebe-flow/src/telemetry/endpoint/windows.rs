//! Windows: TCP on loopback, and a file with the port and a token.
//!
//! Everybody on this machine can connect, but only this user can read the file. A caller has a moment for the token,
//! and takes no reader's place until then.
//!
//! The publisher holds its file open, so that the system deletes the file however the process ends. A file that
//! nobody holds is of a machine that lost power.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::windows::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use windows_sys::Win32::Foundation::{ERROR_ACCESS_DENIED, ERROR_SHARING_VIOLATION, GENERIC_WRITE};
use windows_sys::Win32::Storage::FileSystem::{DELETE, FILE_FLAG_DELETE_ON_CLOSE, FILE_SHARE_READ};

pub(crate) type Stream = TcpStream;

/// The end of a connection is an empty read.
pub(crate) const WHILE_IDLE: PollFlags = PollFlags::IN;

/// In the user's local application data, which other users cannot read. Not among the temporary files, which they
/// may.
pub(crate) fn folders() -> impl Iterator<Item = PathBuf> {
    let local = std::env::var_os("LOCALAPPDATA").map(PathBuf::from).filter(|path| path.is_absolute());
    let local = local.or_else(|| Some(std::env::home_dir()?.join("AppData").join("Local")));
    local.map(|local| local.join("grebe").join("top")).into_iter()
}

pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    check_folder(folder)
}

/// Others have no access to the folder above it.
pub(crate) fn check_folder(folder: &Path) -> io::Result<()> {
    if fs::symlink_metadata(folder)?.is_dir() { Ok(()) } else { Err(io::ErrorKind::NotADirectory.into()) }
}

/// Whether nobody holds this file.
pub(crate) fn is_leftover(path: &Path) -> bool {
    // A publisher shares its file for reading only.
    OpenOptions::new().access_mode(DELETE).open(path).is_ok()
}

/// Port with a token, and the callers whose token has not come yet.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: TcpListener,
    token: Token,
    callers: Vec<Caller>,
    path: PathBuf,
    #[expect(dead_code, reason = "the system deletes it when it is closed")]
    file: File,
}

impl Listener {
    /// Listens before the file tells the port.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] if the name is taken.
    pub(crate) fn bind(path: PathBuf) -> io::Result<Self> {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.set_nonblocking(true)?;
        let mut token = Token::default();
        getrandom::fill(&mut token).map_err(io::Error::other)?;
        let address = Address { port: socket.local_addr()?.port(), token };
        let mut file = take(&path)?;
        file.set_len(0)?;
        file.write_all(address.text().as_bytes())?;
        Ok(Self { socket, token, callers: Vec::new(), path, file })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn watch<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) {
        fds.push(PollFd::new(&self.socket, PollFlags::IN));
        fds.extend(self.callers.iter().map(|caller| PollFd::new(&caller.stream, PollFlags::IN)));
    }

    /// Next caller that sent the token. Disconnects those that sent another one, or none in time.
    pub(crate) fn accept(&mut self) -> io::Result<Stream> {
        let answered = self.answer();
        let mut at = 0;
        while at < self.callers.len() {
            match self.callers[at].listen(&self.token) {
                Heard::Token => return Ok(self.callers.remove(at).stream),
                Heard::Other => drop(self.callers.remove(at)),
                Heard::Part => at += 1,
            }
        }
        self.callers.retain(|caller| caller.came.elapsed() < TOKEN_TIMEOUT);
        answered.and(Err(io::ErrorKind::WouldBlock.into()))
    }

    /// Takes waiting connections. The newest replaces the oldest, so that silent callers keep nobody out.
    fn answer(&mut self) -> io::Result<()> {
        for _ in 0..CALLERS_MAX {
            match self.socket.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(true)?;
                    if self.callers.len() == CALLERS_MAX {
                        self.callers.remove(0);
                    }
                    self.callers.push(Caller {
                        stream,
                        came: Instant::now(),
                        bytes: Token::default(),
                        count: 0,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // It has hung up already.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Connection whose token is incomplete.
#[derive(Debug)]
struct Caller {
    stream: Stream,
    came: Instant,
    bytes: Token,
    count: usize,
}

enum Heard {
    Token,
    Part,
    /// Another token, or a hang-up.
    Other,
}

impl Caller {
    fn listen(&mut self, token: &Token) -> Heard {
        while self.count < TOKEN_BYTES {
            match self.stream.read(&mut self.bytes[self.count..]) {
                Ok(0) => return Heard::Other,
                Ok(count) => self.count += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Heard::Part,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Heard::Other,
            }
        }
        // The time tells nothing about the place of a difference.
        let difference = self.bytes.iter().zip(token).fold(0, |all, (one, other)| all | (one ^ other));
        if difference == 0 { Heard::Token } else { Heard::Other }
    }
}

/// Content of a file.
#[derive(Debug, PartialEq, Eq)]
struct Address {
    port: u16,
    token: Token,
}

impl Address {
    fn text(&self) -> String {
        let token: String = self.token.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{} {token}\n", self.port)
    }

    /// `None` while the file is written.
    fn parse(text: &str) -> Option<Self> {
        let (port, hex) = text.strip_suffix('\n')?.split_once(' ')?;
        if hex.len() != 2 * TOKEN_BYTES {
            return None;
        }
        let mut token = Token::default();
        for (at, byte) in token.iter_mut().enumerate() {
            *byte = u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        Some(Self { port: port.parse().ok()?, token })
    }
}

/// Takes a name, as long as the file is open.
fn take(path: &Path) -> io::Result<File> {
    let opened = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .access_mode(GENERIC_WRITE | DELETE)
        .share_mode(FILE_SHARE_READ)
        .custom_flags(FILE_FLAG_DELETE_ON_CLOSE)
        .open(path);
    opened.map_err(|error| match error.raw_os_error().map(|code| code as u32) {
        // Held, or deleted while a reader has it open.
        Some(ERROR_SHARING_VIOLATION | ERROR_ACCESS_DENIED) => io::ErrorKind::AddrInUse.into(),
        _ => error,
    })
}

/// Connects with the token. A publisher that just ended does not answer.
pub(crate) fn connect(path: &Path) -> Option<Stream> {
    let Address { port, token } = Address::parse(&fs::read_to_string(path).ok()?)?;
    let mut stream = TcpStream::connect_timeout(&loopback(port), CONNECT_TIMEOUT).ok()?;
    stream.write_all(&token).ok()?;
    stream.set_nonblocking(true).ok()?;
    Some(stream)
}

pub(crate) fn pair() -> io::Result<(Stream, Stream)> {
    let listener = TcpListener::bind(loopback(0))?;
    let one = TcpStream::connect(listener.local_addr()?)?;
    // Others can connect as well.
    let other = loop {
        let (other, from) = listener.accept()?;
        if from == one.local_addr()? {
            break other;
        }
    };
    one.set_nonblocking(true)?;
    other.set_nonblocking(true)?;
    Ok((one, other))
}

pub(crate) fn is_gone(mut stream: &Stream) -> bool {
    match stream.read(&mut [0; 64]) {
        Ok(count) => count == 0,
        Err(error) => !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
    }
}

fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

type Token = [u8; TOKEN_BYTES];
const TOKEN_BYTES: usize = 16;
/// A reader sends the token at once.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(1);
const CALLERS_MAX: usize = 16;
/// Windows repeats a refused connection for two seconds.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_written() {
        let address = Address { port: 49_152, token: std::array::from_fn(|at| at as u8 * 17) };
        let text = address.text();
        assert_eq!(text, "49152 00112233445566778899aabbccddeeff\n");
        assert_eq!(Address::parse(&text), Some(address));
        for bad in ["", "\n", "49152\n", "49152 00\n", &text[..text.len() - 1], &text.replace("ff", "é")] {
            assert_eq!(Address::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_name_is_taken_as_long_as_it_is_held() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.sg.top");
        let held = Listener::bind(path.clone()).unwrap();
        assert!(!is_leftover(&path));
        assert_eq!(Listener::bind(path.clone()).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(held);
        assert!(!path.exists());
        // A leftover of a power cut.
        fs::write(&path, "1").unwrap();
        assert!(is_leftover(&path));
        drop(Listener::bind(path.clone()).unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn tokens_differ() {
        let folder = tempfile::tempdir().unwrap();
        let token = |name: &str| Listener::bind(folder.path().join(name)).unwrap().token;
        assert!(token("1") != token("2"));
    }

    /// Waits until the listener has accepted, or disconnected everybody.
    fn accepted(listener: &mut Listener) -> Option<Stream> {
        loop {
            match listener.accept() {
                Ok(stream) => return Some(stream),
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => panic!("{error}"),
                Err(_) if listener.callers.is_empty() => return None,
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    #[test]
    fn a_caller_is_admitted_with_the_whole_token_only() {
        let folder = tempfile::tempdir().unwrap();
        let mut listener = Listener::bind(folder.path().join("1.sg.top")).unwrap();
        let address = loopback(listener.socket.local_addr().unwrap().port());
        let mut wrong = listener.token;
        wrong[15] ^= 1;
        let token = listener.token;
        let sends: [&[u8]; 4] = [&[], &token[..15], &wrong, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"];
        for bytes in sends {
            let mut caller = TcpStream::connect(address).unwrap();
            caller.write_all(bytes).unwrap();
            while listener.callers.is_empty() {
                listener.answer().unwrap();
            }
            assert!(accepted(&mut listener).is_none(), "{bytes:?}");
            // An end or a reset, and no byte.
            assert!(matches!(caller.read(&mut [0]), Ok(0) | Err(_)));
        }
        let mut caller = TcpStream::connect(address).unwrap();
        for part in token.chunks(5) {
            caller.write_all(part).unwrap();
        }
        while listener.callers.is_empty() {
            listener.answer().unwrap();
        }
        let mut admitted = accepted(&mut listener).unwrap();
        admitted.write_all(b"x").unwrap();
        caller.read_exact(&mut [0]).unwrap();
    }
}
