//! Frames to a byte stream.

use std::io::{self, Write};

use grebe_flow::{Context, Inputs, Outcome, Outputs, Stage, StageResult};
use grebe_frame::{Batch, HEADER_BYTES, Header};
use grebe_link::announce::Announcer;
use grebe_link::wire::Wire;

use crate::bridges::pipe::source::FRAME_BYTES_MAX;

/// Writes frames to a byte stream: standard output, or a child's standard input.
///
/// Ends, without an error, when the reader has gone.
#[derive(Debug)]
pub struct PipeSink<W> {
    to: W,
    last: Option<Header>,
    announcer: Announcer,
    reader_gone: bool,
}

impl<W: Write + Send> PipeSink<W> {
    /// Ends after this many samples per channel, or with the stream.
    pub fn new(to: W) -> Self {
        Self { to, last: None, announcer: Announcer::once(), reader_gone: false }
    }

    /// Writes only frames that receivers of this wire version know.
    pub fn wire(mut self, wire: Wire) -> Self {
        self.announcer.set_wire(wire);
        self
    }

    fn write(&mut self, batch: &Batch) -> io::Result<()> {
        let description = self.announcer.before(batch, FRAME_BYTES_MAX).map_err(io::Error::other)?;
        for frame in &description {
            self.to.write_all(frame)?;
        }
        if let Some((bytes, _)) = batch.contiguous() {
            return self.to.write_all(bytes);
        }
        for frame in batch.frames() {
            self.to.write_all(frame.header_bytes())?;
            self.to.write_all(frame.payload())?;
        }
        Ok(())
    }
}

impl<W: Write + Send> Stage for PipeSink<W> {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, ctx: &mut Context) -> StageResult {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        self.last = batch.frames().next_back().map(|frame| frame.header()).or(self.last);
        let written = self.write(&batch);
        self.announcer.take_note().into_iter().for_each(|note| ctx.note(note));
        match written {
            Ok(()) => Ok(Outcome::Produced),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.reader_gone = true;
                Ok(Outcome::End)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        let Some(header) = ctx.end_of_stream(self.last).filter(|_| !self.reader_gone) else { return Ok(()) };
        let mut end = [0; HEADER_BYTES];
        header.write(&mut end);
        match self.to.write_all(&end).and_then(|()| self.to.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(()),
        }
    }
}
