//! Writes frames to a byte stream.

use std::io::{self, Write};

use grebe_flow::{Context, Inputs, Outcome, Outputs, Stage, StageError, monotonic_ns};
use grebe_frame::{Batch, HEADER_BYTES, Header};

/// Writes frames to a byte stream: standard output, or a child's standard input.
///
/// Ends, without an error, when the reader has gone.
#[derive(Debug)]
pub struct PipeSink<W> {
    to: W,
    last: Option<Header>,
    reader_gone: bool,
}

impl<W: Write + Send> PipeSink<W> {
    /// Frames to `to`, which should not buffer.
    pub fn new(to: W) -> Self {
        Self { to, last: None, reader_gone: false }
    }

    fn write(&mut self, batch: &Batch) -> io::Result<()> {
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
    fn process(
        &mut self,
        input: &mut Inputs,
        _: &mut Outputs,
        _: &mut Context,
    ) -> Result<Outcome, StageError> {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        self.last = batch.frames().last().map(|frame| frame.header()).or(self.last);
        match self.write(&batch) {
            Ok(()) => Ok(Outcome::Produced),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.reader_gone = true;
                Ok(Outcome::End)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn finish(&mut self, _: &mut Outputs, _: &mut Context) -> Result<(), StageError> {
        let Some(last) = self.last.filter(|_| !self.reader_gone) else { return Ok(()) };
        let mut end = [0; HEADER_BYTES];
        last.end_of_stream(monotonic_ns()).write(&mut end);
        match self.to.write_all(&end).and_then(|()| self.to.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(()),
        }
    }
}
