//! Opens sockets: buffers, multicast, reuse. Also helpers for sockets of other crates.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::time::Duration;

use socket2::{Domain, InterfaceIndexOrAddress, Protocol, SockRef, Socket, Type};

use crate::error::{Error, Result};
use crate::options::{Granted, Interface, Options};
use crate::side::Side;
use crate::sys;

/// Unbound datagram socket with the options common to both sides.
pub(crate) fn open(like: SocketAddr, options: &Options) -> Result<Socket> {
    let open = || -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(like), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        if options.reuse_address || like.ip().is_multicast() {
            socket.set_reuse_address(true)?;
            #[cfg(unix)]
            socket.set_reuse_port(true)?;
        }
        Ok(socket)
    };
    open().map_err(|source| Error::Open { action: "open a UDP socket for", address: like, source })
}

/// Requests a buffer and reads back the granted size. A refusal is not an error but shows in the result.
pub(crate) fn ask_for_buffer(socket: &Socket, side: Side, asked_bytes: usize, force: bool) -> Granted {
    let granted = || {
        let reported = match side {
            Side::Receive => socket.recv_buffer_size(),
            Side::Send => socket.send_buffer_size(),
        };
        sys::usable_buffer_bytes(reported.unwrap_or(0))
    };
    // A refusal shows in the size read back.
    let _ = match side {
        Side::Receive => socket.set_recv_buffer_size(asked_bytes),
        Side::Send => socket.set_send_buffer_size(asked_bytes),
    };
    let mut forced = false;
    if granted() < asked_bytes && force {
        forced = sys::force_buffer(socket, side, asked_bytes).is_ok();
    }
    Granted { side, asked_bytes, granted_bytes: granted(), forced }
}

pub(crate) fn prepare_multicast_send(socket: &Socket, v4: bool, options: &Options) -> io::Result<()> {
    if v4 {
        match options.multicast_interface {
            Interface::Default => {}
            Interface::Address(address) => socket.set_multicast_if_v4(&address)?,
            Interface::Index(index) => sys::set_multicast_index_v4(socket, index)?,
        }
        socket.set_multicast_ttl_v4(options.multicast_ttl)?;
        socket.set_multicast_loop_v4(options.multicast_loopback)
    } else {
        if let Interface::Index(index) = options.multicast_interface {
            socket.set_multicast_if_v6(index)?;
        }
        socket.set_multicast_hops_v6(options.multicast_ttl)?;
        socket.set_multicast_loop_v6(options.multicast_loopback)
    }
}

pub(crate) fn set_unicast_hops(socket: &Socket, v4: bool, hops: u32) -> io::Result<()> {
    if v4 { socket.set_ttl_v4(hops) } else { socket.set_unicast_hops_v6(hops) }
}

/// Joins the group on the interface of the options.
pub(crate) fn join(socket: &Socket, group: IpAddr, interface: Interface) -> io::Result<()> {
    match (group, interface) {
        (IpAddr::V4(group), Interface::Address(address)) => socket.join_multicast_v4(&group, &address),
        (IpAddr::V4(group), Interface::Index(index)) => {
            socket.join_multicast_v4_n(&group, &InterfaceIndexOrAddress::Index(index))
        }
        (IpAddr::V4(group), Interface::Default) => socket.join_multicast_v4(&group, &Ipv4Addr::UNSPECIFIED),
        (IpAddr::V6(group), Interface::Index(index)) => socket.join_multicast_v6(&group, index),
        (IpAddr::V6(group), _) => socket.join_multicast_v6(&group, 0),
    }
}

/// Address to bind for `address`: Windows cannot bind to a group.
pub(crate) fn bind_address(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        ip if !(cfg!(windows) && ip.is_multicast()) => address,
        IpAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port())),
        IpAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, address.port())),
    }
}

pub(crate) fn local_addr(socket: &Socket) -> Result<SocketAddr> {
    let unspecified = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    socket
        .local_addr()
        .and_then(|address| address.as_socket().ok_or_else(|| io::Error::other("not an IP address")))
        .map_err(|source| Error::Open { action: "ask for the address of", address: unspecified, source })
}

/// Waits until `socket` is readable (a `&UdpSocket`, a `&TcpStream`, or a `&TcpListener` with a connection to
/// accept), at most `timeout`. `false` after the timeout, and also after a signal.
///
/// The timeout has the system's resolution: nanoseconds on Linux and FreeBSD, whole milliseconds (rounded up)
/// elsewhere.
///
/// ```
/// use std::time::Duration;
/// let socket = std::net::UdpSocket::bind("127.0.0.1:0")?;
/// assert!(!grebe_datagram::wait_readable(&socket, Duration::from_micros(200))?);
/// socket.send_to(b"hello", socket.local_addr()?)?;
/// assert!(grebe_datagram::wait_readable(&socket, Duration::from_secs(10))?);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// System error if it cannot wait.
pub fn wait_readable<'s>(socket: impl Into<SockRef<'s>>, timeout: Duration) -> io::Result<bool> {
    let socket: SockRef<'_> = socket.into();
    sys::wait_readable([&*socket], timeout)
}

/// Waits until either socket is readable, like [`wait_readable`] for one. For a thread that serves one
/// socket, and is woken by other threads through a local pair of sockets.
///
/// ```
/// use std::net::UdpSocket;
/// use std::time::Duration;
/// let (served, called) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
/// assert!(!grebe_datagram::wait_either_readable(&served, &called, Duration::from_micros(200))?);
/// served.send_to(b"now", called.local_addr()?)?;
/// assert!(grebe_datagram::wait_either_readable(&served, &called, Duration::from_secs(10))?);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// System error if it cannot wait.
pub fn wait_either_readable<'a, 'b>(
    one: impl Into<SockRef<'a>>,
    other: impl Into<SockRef<'b>>,
    timeout: Duration,
) -> io::Result<bool> {
    let (one, other): (SockRef<'_>, SockRef<'_>) = (one.into(), other.into());
    sys::wait_readable([&*one, &*other], timeout)
}

/// Listens for TCP like the standard library, except that the unspecified IPv6 address includes IPv4, which
/// Windows separates by default. For programs that serve UDP and TCP at the same address.
///
/// ```
/// let datagrams = std::net::UdpSocket::bind("127.0.0.1:0")?;
/// let listener = grebe_datagram::listen_tcp(datagrams.local_addr()?)?;
/// assert_eq!(listener.local_addr()?, datagrams.local_addr()?);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// System error if the address cannot be bound.
pub fn listen_tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() && address.ip().is_unspecified() {
        socket.set_only_v6(false)?;
    }
    // On Windows it would let other programs take the port too.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(CONNECTIONS_TO_ACCEPT_MAX)?;
    Ok(socket.into())
}

/// Backlog of the standard library.
const CONNECTIONS_TO_ACCEPT_MAX: i32 = 128;

/// Sets "don't fragment" on every datagram of a bound socket. One too long for a hop is lost there; one too
/// long for the interface is an error of the sending call. For Linux, macOS and Windows. For a
/// [`Sender`](crate::Sender) use [`Options::dont_fragment`](crate::Options::dont_fragment).
///
/// ```
/// let socket = std::net::UdpSocket::bind("127.0.0.1:0")?;
/// let is_set = grebe_datagram::set_dont_fragment(&socket).is_ok();
/// # assert_eq!(is_set, cfg!(any(target_os = "linux", target_os = "macos", windows)));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// System error; `Unsupported` on systems without such a setting.
pub fn set_dont_fragment<'s>(socket: impl Into<SockRef<'s>>) -> io::Result<()> {
    let socket = socket.into();
    let v4 = socket.local_addr()?.is_ipv4();
    sys::set_dont_fragment(&socket, v4)
}
