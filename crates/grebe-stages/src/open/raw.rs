//! Samples without headers, through a pipe or a serial port, over TCP or UDP.

use std::net::TcpStream;

use grebe_flow::Stage;

use super::there::Patience;
use super::{Notice, OpenSource, SinkOptions, SourceOptions, udp};
use crate::error::Error;
use crate::io::pipe;
use crate::raw::{Again, Carrier, RawSink, RawSource, RawStream, RawUdpSink, RawUdpSource, TcpEnd};
use crate::uri::Uri;

pub(super) fn source(
    uri: &Uri,
    raw: &RawStream,
    options: &SourceOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<OpenSource, Error> {
    let rate_hz = Some(raw.rate_hz).filter(|&rate_hz| rate_hz > 0.0);
    let source = match &raw.carrier {
        Carrier::Pipe => {
            let stdin = pipe::stdin().map_err(|source| Error::Closed { what: "standard input", source })?;
            let source = RawSource::new(stdin, pipe::readable, raw.clone());
            OpenSource::of(source.idle_timeout(options.idle_timeout).samples(options.samples))
        }
        Carrier::Tcp(end) => {
            let (stream, again) = connection(end, &options.patience(end.reconnects), notify)?;
            let source = RawSource::new(stream, pipe::readable, raw.clone()).again(again);
            OpenSource::of(source.idle_timeout(options.idle_timeout).samples(options.samples))
        }
        Carrier::Serial(end) => {
            let (port, again) = options.patience(end.reconnects).open(notify, |_| end.open())?;
            let source = RawSource::new(port, pipe::readable, raw.clone()).again(again);
            OpenSource::of(source.idle_timeout(options.idle_timeout).samples(options.samples))
        }
        Carrier::Udp(at) => {
            let socket_options = options.transport.socket_options(at)?;
            let (receiver, address) = udp::listen(uri, at, &socket_options, notify)?;
            match raw.number {
                None => notify(Notice::UnseenLoss("the datagrams have no numbers: what is lost on the way")),
                Some(number) if number.bytes == 1 => notify(Notice::UnseenLoss(
                    "the datagrams are numbered in one byte: a loss of more than 127 in a row",
                )),
                Some(_) => {}
            }
            let source = RawUdpSource::new(receiver, raw.clone());
            let second_sender = Some(source.second_sender());
            let source = source.idle_timeout(options.idle_timeout).samples(options.samples);
            OpenSource { address: Some(address), second_sender, ..OpenSource::of(source) }
        }
    };
    Ok(OpenSource { rate_hz, ..source })
}

pub(super) fn sink(
    uri: &Uri,
    raw: &RawStream,
    datagram_bytes: usize,
    options: &SinkOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<Box<dyn Stage>, Error> {
    Ok(match &raw.carrier {
        Carrier::Pipe => {
            let stdout =
                pipe::stdout().map_err(|source| Error::Closed { what: "standard output", source })?;
            Box::new(RawSink::new(stdout, raw.clone()))
        }
        Carrier::Tcp(end) => {
            let (stream, again) = connection(end, &options.patience(end.reconnects), notify)?;
            Box::new(RawSink::new(stream, raw.clone()).again(again))
        }
        Carrier::Serial(end) => {
            let (port, again) = options.patience(end.reconnects).open(notify, |_| end.open())?;
            Box::new(RawSink::new(port, raw.clone()).again(again))
        }
        Carrier::Udp(to) => {
            let sender = udp::send_to(uri, to, &options.transport.socket_options(to)?, notify)?;
            Box::new(RawUdpSink::new(sender, raw.clone(), options.transport.datagram_bytes, datagram_bytes))
        }
    })
}

/// A connection, and what opens it again where that is wanted.
pub(super) fn connection(
    end: &TcpEnd,
    patience: &Patience<'_>,
    notify: &mut dyn FnMut(Notice),
) -> Result<(TcpStream, Option<Again<TcpStream>>), Error> {
    let listening = |address| notify(Notice::WaitingForConnection { scheme: "tcp", address });
    let connector = end.connector("tcp", listening)?;
    let stream = patience.open(notify, |_| connector.open(patience.cancel))?;
    let again = end.reconnects.then(|| Again::new(connector.uri(), move |cancel| connector.open(cancel)));
    Ok((stream, again))
}
