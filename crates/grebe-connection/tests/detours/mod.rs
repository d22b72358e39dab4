//! Indirect paths between two ends on this host.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use grebe_connection::Ticket;

pub(crate) fn address_of(ticket: &Ticket) -> SocketAddr {
    ticket.addresses[0].to_socket_addrs().unwrap().next().unwrap()
}

/// A TCP-only port that forwards connections.
pub(crate) fn pass_tcp_on(to: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (near, far) = (stream.unwrap(), TcpStream::connect(to).unwrap());
            let (mut near_too, mut far_too) = (near.try_clone().unwrap(), far.try_clone().unwrap());
            let (mut near, mut far) = (near, far);
            std::thread::spawn(move || io::copy(&mut near, &mut far));
            std::thread::spawn(move || io::copy(&mut far_too, &mut near_too));
        }
    });
    address
}

/// A path on this host that can be cut. It forwards datagrams between the first sender and `to`, in both
/// directions.
pub(crate) fn pass_udp_on(to: SocketAddr, is_cut: Arc<AtomicBool>) -> SocketAddr {
    pass_udp_on_where(to, move |_, _| !is_cut.load(Ordering::Relaxed))
}

/// The same for selected datagrams. The filter gets the direction and the bytes.
pub(crate) fn pass_udp_on_where(
    to: SocketAddr,
    passes: impl Fn(bool, usize) -> bool + Clone + Send + 'static,
) -> SocketAddr {
    let near = UdpSocket::bind("127.0.0.1:0").unwrap();
    let far = UdpSocket::bind("127.0.0.1:0").unwrap();
    far.connect(to).unwrap();
    let address = near.local_addr().unwrap();
    let asking = Arc::new(Mutex::new(None));
    let (near_too, far_too, asking_too, passes_too) =
        (near.try_clone().unwrap(), far.try_clone().unwrap(), asking.clone(), passes.clone());
    std::thread::spawn(move || {
        let mut bytes = vec![0; 65_536];
        while let Ok((length, from)) = near.recv_from(&mut bytes) {
            *asking.lock().unwrap() = Some(from);
            if passes(true, length) {
                let _ = far.send(&bytes[..length]);
            }
        }
    });
    std::thread::spawn(move || {
        let mut bytes = vec![0; 65_536];
        loop {
            let Ok(length) = far_too.recv(&mut bytes) else { continue };
            let to = *asking_too.lock().unwrap();
            if let (Some(to), false) = (to, !passes_too(false, length)) {
                let _ = near_too.send_to(&bytes[..length], to);
            }
        }
    });
    address
}
