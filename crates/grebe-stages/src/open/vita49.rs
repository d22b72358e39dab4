//! Streams of VITA-49 packets.

use super::{Notice, OpenSource, SinkOptions, SourceOptions, udp};
use crate::error::Error;
use crate::uri::Uri;
use crate::vita49::{Vita49Sink, Vita49Source, Vita49Stream};

pub(super) fn source(
    uri: &Uri,
    stream: &Vita49Stream,
    options: &SourceOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<OpenSource, Error> {
    let socket_options = options.transport.socket_options(&stream.at)?;
    let (receiver, address) = udp::listen(uri, &stream.at, &socket_options, notify)?;
    let source = Vita49Source::new(receiver, stream.clone());
    let second_sender = Some(source.second_sender());
    let rate_hz = Some(stream.rate_hz).filter(|&rate_hz| rate_hz > 0.0);
    let source = source.idle_timeout(options.idle_timeout).samples(options.samples);
    Ok(OpenSource { address: Some(address), second_sender, rate_hz, ..OpenSource::of(source) })
}

pub(super) fn sink(
    uri: &Uri,
    stream: &Vita49Stream,
    datagram_bytes: usize,
    options: &SinkOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<Vita49Sink, Error> {
    let socket_options = options.transport.socket_options(&stream.at)?;
    let sender = udp::send_to(uri, &stream.at, &socket_options, notify)?;
    Ok(Vita49Sink::new(sender, stream.clone(), options.transport.datagram_bytes, datagram_bytes))
}
