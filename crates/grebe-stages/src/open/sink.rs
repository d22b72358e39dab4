//! Opening a sink.

use std::time::Duration;

use grebe_flow::Stage;
use grebe_frame::BatchPool;

use super::options::{Notice, SinkOptions};
use crate::error::Error;
use crate::file::{RecordOptions, SigmfSink};
use crate::io::pipe::{self, PipeSink};
use crate::io::shm::ShmSink;
use crate::io::udp::UdpSink;
use crate::uri::{HostPort, ShmName, Uri};

/// A sink that was opened.
pub struct OpenSink {
    /// For [`Graph::add_boxed`](grebe_flow::Graph::add_boxed).
    pub stage: Box<dyn Stage>,
    /// Bytes of the datagrams that the frames should fit into.
    pub datagram_bytes: usize,
    /// The memory for the source to write into, where it was asked for and the sink has some.
    pub pool: Option<BatchPool>,
}

/// Opens the sink that `uri` names. What a person may want to know meanwhile goes to `notify`.
///
/// # Errors
/// An [`Error`] that names the address, the stream or the file; `synth:` cannot be sent to; [`Error::Cancelled`] where the wait
/// for readers was cancelled.
pub fn open_sink(
    uri: &Uri,
    options: &SinkOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<OpenSink, Error> {
    let datagram_bytes = options.transport.datagram_bytes_to(uri)?;
    let mut pool = None;
    let stage: Box<dyn Stage> = match uri {
        Uri::Udp(to) => Box::new(udp(uri, to, options, notify)?),
        Uri::Shm(shm) => {
            let mut sink = shared_memory(shm, options, notify)?;
            pool = options.lends_pool.then(|| sink.lend_pool()).flatten();
            Box::new(sink)
        }
        Uri::Pipe => {
            let stdout =
                pipe::stdout().map_err(|source| Error::Closed { what: "standard output", source })?;
            Box::new(PipeSink::new(stdout))
        }
        Uri::File(path) => {
            let record = RecordOptions { duration: options.duration, overwrite: options.overwrite };
            Box::new(SigmfSink::create(path, record)?)
        }
        Uri::Synth => {
            let reason = "cannot be sent to: it is a generator".to_owned();
            return Err(Error::Uri { uri: uri.to_string(), reason });
        }
    };
    Ok(OpenSink { stage, datagram_bytes, pool })
}

fn udp(
    uri: &Uri,
    to: &HostPort,
    options: &SinkOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<UdpSink, Error> {
    let failed = |source| Error::Send { uri: uri.to_string(), source };
    let sink = UdpSink::connect(to.to_send()?, &options.transport.socket_options()).map_err(failed)?;
    if sink.granted().is_clamped() {
        notify(Notice::SmallBuffer(sink.granted()));
    }
    Ok(sink)
}

fn shared_memory(
    shm: &ShmName,
    options: &SinkOptions,
    notify: &mut dyn FnMut(Notice),
) -> Result<ShmSink, Error> {
    let sink = ShmSink::create(&shm.name, shm.publisher_options())?;
    notify(Notice::Lending { name: shm.name.clone(), footprint: sink.footprint() });
    let readers = usize::from(shm.wait_consumers);
    if readers > 0 {
        notify(Notice::WaitingForReaders { count: readers });
    }
    while !sink.wait_for_consumers(readers, LOOK_EVERY) {
        if options.cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
    }
    Ok(sink)
}

/// How often is looked whether the wait was cancelled.
const LOOK_EVERY: Duration = Duration::from_millis(100);
