//! Sockets of ZeroMQ.

use std::sync::Arc;

use super::{Notice, OpenSource, SinkOptions, SourceOptions};
use crate::error::Error;
use crate::uri::Uri;
use crate::zmq::{self, Socket, Zmq, ZmqSink};

pub(super) fn source(
    uri: &Uri,
    zmq: &Zmq,
    options: &SourceOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<OpenSource, Error> {
    let socket = zmq.socket.unwrap_or(Socket::Sub);
    if !socket.reads() {
        let reason =
            format!("sends: what reads is type={}", if socket == Socket::Pub { "sub" } else { "pull" });
        return Err(Error::Name { name: uri.to_string(), reason });
    }
    let listening = |address| notify(Notice::WaitingForConnection { scheme: "zmq", address });
    let meeting = Arc::new(zmq.meeting(socket, listening)?);
    let patience = options.patience(zmq.end.reconnects);
    let peer = patience.open(notify, |_| meeting.open(&options.cancel))?;
    let source = zmq::source(zmq, meeting, peer);
    if zmq.loses_unseen(socket) {
        notify(Notice::UnseenLoss("there are no tags: what a PUB drops for a slow reader"));
    }
    let rate_hz = Some(zmq.raw.rate_hz).filter(|&rate_hz| rate_hz > 0.0);
    let source = source.idle_timeout(options.idle_timeout).samples(options.samples);
    Ok(OpenSource { rate_hz, ..OpenSource::of(source) })
}

pub(super) fn sink(
    uri: &Uri,
    zmq: &Zmq,
    options: &SinkOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<ZmqSink, Error> {
    let socket = zmq.socket.unwrap_or(Socket::Pub);
    if socket.reads() {
        let reason =
            format!("reads: what sends is type={}", if socket == Socket::Sub { "pub" } else { "push" });
        return Err(Error::Name { name: uri.to_string(), reason });
    }
    options.patience(zmq.end.reconnects).open(notify, |notify| {
        let listening = |address| notify(Notice::WaitingForConnection { scheme: "zmq", address });
        ZmqSink::open(zmq, socket, &options.cancel, listening)
    })
}
