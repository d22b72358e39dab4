//! Streams of VITA-49 packets.

use super::{Notice, OpenSource, SinkOptions, SourceOptions};
use crate::error::Error;
use crate::uri::Uri;
use crate::vita49::{Vita49Sink, Vita49Source, Vita49Stream};

pub(super) fn source(
    uri: &Uri,
    stream: &Vita49Stream,
    options: &SourceOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<OpenSource, Error> {
    let failed = |source| Error::Udp { action: "listen on", uri: uri.to_string(), source };
    let socket_options = options.transport.socket_options(&stream.at)?;
    let (address, otherwise) = stream.at.to_listen()?;
    let bind = |address| Vita49Source::bind(address, &socket_options, stream.clone());
    let source = bind(address).or_else(|_| bind(otherwise)).map_err(failed)?;
    if source.granted().is_clamped() {
        notify(Notice::SmallBuffer(source.granted()));
    }
    let address = Some(source.local_addr().map_err(failed)?);
    let second_sender = Some(source.second_sender());
    let rate_hz = Some(stream.rate_hz).filter(|&rate_hz| rate_hz > 0.0);
    let source = source.idle_timeout(options.idle_timeout).samples(options.samples);
    Ok(OpenSource { address, second_sender, rate_hz, ..OpenSource::of(source) })
}

pub(super) fn sink(
    uri: &Uri,
    stream: &Vita49Stream,
    datagram_bytes: usize,
    options: &SinkOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<Vita49Sink, Error> {
    let failed = |source| Error::Udp { action: "send to", uri: uri.to_string(), source };
    let sink = Vita49Sink::connect(
        stream.at.to_send()?,
        &options.transport.socket_options(&stream.at)?,
        stream.clone(),
        options.transport.datagram_bytes,
        datagram_bytes,
    );
    let sink = sink.map_err(failed)?;
    if sink.granted().is_clamped() {
        notify(Notice::SmallBuffer(sink.granted()));
    }
    Ok(sink)
}
