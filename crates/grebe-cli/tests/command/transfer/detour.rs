//! A way to a side that waits: UDP as far as a rule lets it through, and TCP at the same port.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread;

use grebe_connection::{Purpose, Ticket};

/// A datagram on its way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Datagram {
    /// Of all datagrams of both directions, from 0 on.
    pub number: u64,
    /// It goes to the side that made the ticket.
    pub is_to_waiting: bool,
    /// Bytes of UDP payload.
    pub bytes: usize,
}

/// The same ticket, by a way on which UDP passes as `passes` says.
pub(crate) fn detour(ticket: &str, passes: impl FnMut(Datagram) -> bool + Send + 'static) -> String {
    let mut ticket = Ticket::from_word(ticket, Purpose::Transfer).unwrap();
    let to = ticket.addresses[0].to_socket_addrs().unwrap().next().unwrap();
    let (near, listener) = loop {
        let near = UdpSocket::bind("127.0.0.1:0").unwrap();
        // The port may be free for UDP only.
        if let Ok(listener) = TcpListener::bind(near.local_addr().unwrap()) {
            break (near, listener);
        }
    };
    ticket.addresses = vec![near.local_addr().unwrap().into()];
    pass_tcp_on(listener, to);
    pass_udp_on(near, to, passes);
    ticket.word().to_string()
}

fn pass_tcp_on(listener: TcpListener, to: SocketAddr) {
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (near, far) = (stream.unwrap(), TcpStream::connect(to).unwrap());
            for (mut from, mut into) in [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)] {
                thread::spawn(move || {
                    let _ = io::copy(&mut from, &mut into);
                    let _ = into.shutdown(std::net::Shutdown::Both);
                });
            }
        }
    });
}

fn pass_udp_on(near: UdpSocket, to: SocketAddr, passes: impl FnMut(Datagram) -> bool + Send + 'static) {
    let far = UdpSocket::bind("127.0.0.1:0").unwrap();
    far.connect(to).unwrap();
    let asking = Arc::new(Mutex::new(None));
    let rule = Arc::new(Mutex::new((0, passes)));
    for is_to_waiting in [true, false] {
        let (near, far) = (near.try_clone().unwrap(), far.try_clone().unwrap());
        let (asking, rule) = (asking.clone(), rule.clone());
        thread::spawn(move || {
            let mut datagram = vec![0; 65_536];
            loop {
                let bytes = if is_to_waiting {
                    let Ok((bytes, from)) = near.recv_from(&mut datagram) else { continue };
                    *asking.lock().unwrap() = Some(from);
                    bytes
                } else {
                    let Ok(bytes) = far.recv(&mut datagram) else { continue };
                    bytes
                };
                let (number, passes) = &mut *rule.lock().unwrap();
                *number += 1;
                if !passes(Datagram { number: *number - 1, is_to_waiting, bytes }) {
                    continue;
                }
                let asking = *asking.lock().unwrap();
                let _ = match asking.filter(|_| !is_to_waiting) {
                    Some(asking) => near.send_to(&datagram[..bytes], asking),
                    None => far.send(&datagram[..bytes]),
                };
            }
        });
    }
}
