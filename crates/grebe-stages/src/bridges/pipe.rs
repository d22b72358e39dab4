//! `pipe:`: frames back to back on standard input and output, or on a pipe to another program.

mod kind;
mod sink;
mod source;
mod uri;

pub use {sink::PipeSink, source::PipeSource, uri::PipeStream};

use std::fmt;

use grebe_flow::Kinds;

use crate::bridges::raw::RawStream;
use crate::error::Error;
use crate::open::{Notify, OpenSink, OpenSource, SinkOptions, SourceOptions};
use crate::scheme::{End, Scheme, Traits};
use crate::session::Bounded as _;
use crate::transport::standard::{stdin, stdout};
use kind::{PipeIn, PipeOut};

impl Scheme for PipeStream {
    const WRITTEN: &'static str = "pipe:";
    const OTHERWISE: &'static str = "is not a pipe: write pipe:";

    fn parse(name: &str) -> Option<Result<Self, String>> {
        Self::parse(name)
    }

    fn mistake(name: &str) -> Option<String> {
        name.strip_prefix("pipe:")?;
        RawStream::parse(name)?.err()
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pipe:{}", self.pairs())
    }

    fn traits(&self) -> Traits {
        Traits::PIPE
    }

    fn claim(&self, end: End) -> Option<String> {
        let of = if end == End::Source { "input" } else { "output" };
        Some(format!("standard {of}"))
    }

    fn open_source(&self, options: SourceOptions, _: Notify<'_>) -> Result<OpenSource, Error> {
        let stdin = stdin().map_err(|source| Error::Closed { what: "standard input", source })?;
        let source = PipeSource::new(stdin).ends_with_writer(options.ends_with_writer);
        Ok(OpenSource::of(source.bounded(&options)))
    }

    fn open_sink(&self, _: &SinkOptions, _: Notify<'_>) -> Result<OpenSink, Error> {
        let stdout = stdout().map_err(|source| Error::Closed { what: "standard output", source })?;
        Ok(OpenSink::of(PipeSink::new(stdout).wire(self.wire)))
    }

    fn kinds(kinds: &mut Kinds) {
        kinds.add::<PipeIn>().add::<PipeOut>();
    }
}
