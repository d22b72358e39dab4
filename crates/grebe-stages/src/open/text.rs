//! Lines of numbers, through a pipe or a serial port, over TCP or UDP.

use std::io::Read;

use grebe_flow::Stage;

use super::raw::connection;
use super::{Notice, OpenSource, SinkOptions, SourceOptions, udp};
use crate::error::Error;
use crate::io::pipe;
use crate::raw::Carrier;
use crate::text::{Datagrams, TextSink, TextSource, TextStream};
use crate::uri::Uri;

pub(super) fn source(
    uri: &Uri,
    text: &TextStream,
    options: &SourceOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<OpenSource, Error> {
    let source = match &text.carrier {
        Carrier::Pipe => {
            let stdin = pipe::stdin().map_err(|source| Error::Closed { what: "standard input", source })?;
            of(TextSource::new(stdin, pipe::readable, text.clone()), options)
        }
        Carrier::Tcp(end) => {
            let (stream, again) = connection(end, &options.patience(end.reconnects), notify)?;
            of(TextSource::new(stream, pipe::readable, text.clone()).again(again), options)
        }
        Carrier::Serial(end) => {
            let (port, again) = options.patience(end.reconnects).open(notify, |_| end.open())?;
            of(TextSource::new(port, pipe::readable, text.clone()).again(again), options)
        }
        Carrier::Udp(at) => {
            let socket_options = options.transport.socket_options(at)?;
            let (receiver, address) = udp::listen(uri, at, &socket_options, notify)?;
            notify(Notice::UnseenLoss("lines have no numbers: what is lost on the way"));
            let datagrams = Datagrams::new(receiver);
            let drops = datagrams.kernel_drops();
            let source = TextSource::new(datagrams, |_| Ok(true), text.clone()).kernel_drops(drops);
            OpenSource { address: Some(address), ..of(source, options) }
        }
    };
    Ok(OpenSource { rate_hz: text.rate_hz(), ..source })
}

fn of<R: Read + Send + 'static>(source: TextSource<R>, options: &SourceOptions) -> OpenSource {
    OpenSource::of(source.idle_timeout(options.idle_timeout).samples(options.samples))
}

pub(super) fn sink(
    uri: &Uri,
    text: &TextStream,
    options: &SinkOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<Box<dyn Stage>, Error> {
    Ok(match &text.carrier {
        Carrier::Pipe => {
            let stdout =
                pipe::stdout().map_err(|source| Error::Closed { what: "standard output", source })?;
            Box::new(TextSink::new(stdout, text.clone()))
        }
        Carrier::Tcp(end) => {
            let (stream, again) = connection(end, &options.patience(end.reconnects), notify)?;
            Box::new(TextSink::new(stream, text.clone()).again(again))
        }
        Carrier::Serial(end) => {
            let (port, again) = options.patience(end.reconnects).open(notify, |_| end.open())?;
            Box::new(TextSink::new(port, text.clone()).again(again))
        }
        Carrier::Udp(_) => {
            let reason = "has lines of numbers, which go out through pipe:, tcp:// and serial:".to_owned();
            return Err(Error::Name { name: uri.to_string(), reason });
        }
    })
}
