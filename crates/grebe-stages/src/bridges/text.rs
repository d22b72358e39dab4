//! Lines of numbers, as microcontrollers, loggers and other programs print them: `serial:///dev/ttyACM0`, `pipe:?format=text`.
//!
//! ```text
//!  bytes -> whole lines -> fields -> columns: which channels there are -> rows -> frames
//!           (source)       (fields)  (columns)                            (pace: how far apart they are)
//! ```

mod clean;
mod columns;
mod datagrams;
mod fields;
mod heading;
mod kind;
mod left_out;
mod pace;
mod rows;
mod sink;
mod source;
mod uri;

pub use uri::TextStream;
pub(crate) use {sink::TextSink, source::TextSource};

#[cfg(fuzzing)]
pub(crate) use source::fuzz;

use std::fmt;

use datagrams::Datagrams;
use grebe_flow::Kinds;
use grebe_process::query::Query;
use kind::{TextIn, TextOut};

use crate::error::Error;
use crate::open::{Notice, Notify, OpenSink, OpenSource, SinkOptions, SourceOptions};
use crate::scheme::{End, Scheme, Traits};
use crate::session::Bounded as _;
use crate::transport::{ByteStream, Carrier, is_text, listen};

impl Scheme for TextStream {
    const WRITTEN: &'static str = "serial:PORT";
    const OTHERWISE: &'static str =
        "is not a stream of lines: write serial:PORT, or ?format=text, as in pipe:?format=text";

    fn parse(name: &str) -> Option<Result<Self, String>> {
        let (name, query) = name.split_once('?').unwrap_or((name, ""));
        let carrier = Carrier::parse(name).filter(|_| is_text(name, query))?;
        Some(carrier.and_then(|mut carrier| {
            let mut query = Query::new(query)?;
            carrier.take(&mut query)?;
            Self::of_query(carrier, query)
        }))
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.carrier, self.carrier.write(self.pairs()))
    }

    fn traits(&self) -> Traits {
        self.carrier.traits()
    }

    fn check(&self, end: End) -> Result<(), String> {
        match (&self.carrier, end) {
            (Carrier::Udp(_), End::Sink) => {
                Err("has lines of numbers, which go out through pipe:, tcp:// and serial:".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn claim(&self, end: End) -> Option<String> {
        self.carrier.claim(end)
    }

    fn open_source(&self, options: SourceOptions, notify: Notify<'_>) -> Result<OpenSource, Error> {
        let source = match &self.carrier {
            Carrier::Udp(at) => {
                let (receiver, address) = listen(&self.uri(), at, &options.transport, notify)?;
                notify(Notice::UnseenLoss("lines have no sequence numbers: losses on the way"));
                let datagrams = Datagrams::new(receiver);
                let drops = datagrams.kernel_drops();
                let source = TextSource::new(datagrams, |_| Ok(true), self.clone()).loses_unseen();
                let source = source.kernel_drops(drops).bounded(&options);
                OpenSource { address: Some(address), ..OpenSource::of(source) }
            }
            carrier => {
                let patience = options.patience(carrier.reconnects());
                let (stream, again) = carrier.open(End::Source, &patience, notify)?;
                let source = TextSource::new(stream, ByteStream::readable, self.clone()).reconnects(again);
                OpenSource::of(source.bounded(&options))
            }
        };
        Ok(OpenSource { rate_hz: self.rate_hz(), ..source })
    }

    fn open_sink(&self, options: &SinkOptions, notify: Notify<'_>) -> Result<OpenSink, Error> {
        let (to, again) =
            self.carrier.open(End::Sink, &options.patience(self.carrier.reconnects()), notify)?;
        Ok(OpenSink::of(TextSink::new(to, self.clone()).reconnects(again)))
    }

    fn kinds(kinds: &mut Kinds) {
        kinds.add::<TextIn>().add::<TextOut>();
    }
}
