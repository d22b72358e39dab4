//! Receivers behind `rtl_tcp`, and the server of one.

use super::{Notice, OpenSource, SinkOptions, SourceOptions};
use crate::error::Error;
use crate::rtl_tcp::{RtlTcp, RtlTcpServer, receiver};
use crate::uri::Uri;

pub(super) fn source(
    uri: &Uri,
    rtl: &RtlTcp,
    options: &SourceOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<OpenSource, Error> {
    if rtl.listens {
        let reason = "has listen, which makes it a server, and a server is where a stream goes to".to_owned();
        return Err(Error::Name { name: uri.to_string(), reason });
    }
    let patience = options.patience(rtl.reconnects);
    let (source, tuner) =
        patience.open(notify, |_| receiver(rtl, options.tuner.as_ref(), &options.cancel))?;
    notify(Notice::UnseenLoss("rtl_tcp has no numbers: what its server drops"));
    let source = source.idle_timeout(options.idle_timeout).samples(options.samples);
    let rate_hz = Some(rtl.tuning.rate_hz);
    Ok(OpenSource { rate_hz, tuner: Some(tuner), ..OpenSource::of(source) })
}

pub(super) fn sink(
    rtl: &RtlTcp,
    options: &SinkOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<RtlTcpServer, Error> {
    let listening = |address| notify(Notice::WaitingForConnection { scheme: "rtl_tcp", address });
    RtlTcpServer::open(rtl, options.tuner.clone(), &options.cancel, listening)
}
