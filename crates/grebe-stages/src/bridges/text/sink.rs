//! A stream as lines of numbers.

use std::io::Write;
use std::sync::Arc;

use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, Stage, StageResult};
use grebe_frame::{Description, Header};
use grebe_process::stream::is_same;
use grebe_recording::{Block, CsvWriter};

use crate::bridges::text::uri::TextStream;
use crate::session::Gaps;
use crate::transport::{Outgoing, Reconnect, Written};

/// Writes a line per sample, after a line of channel names. When its reader disappears, it ends without an
/// error, or counts samples until a reader returns.
///
/// Times show gaps. Without times, the lines omit missing samples, and a counter counts them.
pub(crate) struct TextSink<W> {
    to: Outgoing<W>,
    text: TextStream,
    writer: Option<CsvWriter>,
    stream: Header,
    description: Option<Arc<Description>>,
    lines: Vec<u8>,
    gaps: Gaps,
    counters: Counted,
}

impl<W: Write + Send + 'static> TextSink<W> {
    pub(crate) fn new(to: W, text: TextStream) -> Self {
        Self {
            to: Outgoing::new(to),
            text,
            writer: None,
            stream: Header::default(),
            description: None,
            lines: Vec::new(),
            gaps: Gaps::default(),
            counters: Counted::default(),
        }
    }

    /// Reopens a lost connection, and continues.
    pub(crate) fn reconnects(mut self, again: Option<Reconnect<W>>) -> Self {
        self.to = self.to.reconnects(again);
        self
    }

    /// Starts with a line of names when the stream or its reader changes.
    fn begin(&mut self, header: &Header, description: Option<&Arc<Description>>) {
        let of = |header: &Header| (header.format, header.channel_count, header.sample_rate_hz);
        let channels = |description: Option<&Arc<Description>>| description.map(|it| it.channels.clone());
        let before = self.description.as_ref();
        let is_named_alike = is_same(before, description) || channels(before) == channels(description);
        self.description = description.cloned();
        if self.writer.is_some() && is_named_alike && of(header) == of(&self.stream) {
            return;
        }
        self.stream = *header;
        let rate_hz = Some(header.sample_rate_hz).filter(|&hz| self.text.writes_time && hz > 0.0);
        let writer = CsvWriter::new(header.format, header.channel_count as usize, rate_hz);
        self.lines.extend(writer.header(description.map(Arc::as_ref)));
        self.writer = Some(writer);
    }
}

impl<W: Write + Send + 'static> Stage for TextSink<W> {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, ctx: &mut Context) -> StageResult {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        if self.to.comes_back(ctx)? {
            self.counters.reconnects.add(1);
            self.writer = None;
        }
        self.lines.clear();
        for frame in batch.frames() {
            let header = frame.header();
            self.begin(&header, batch.description());
            let gap = self.gaps.before(&header);
            if !self.text.writes_time {
                self.counters.unmarked_gap_samples.add(gap);
            }
            if let Some(writer) = &mut self.writer {
                let lines = &mut self.lines;
                let keep = |text: &[u8]| {
                    lines.extend_from_slice(text);
                    Ok(())
                };
                writer.rows(&Block::of_frame(&frame), header.first_sample_index, keep)?;
            }
        }
        match self.to.write(&self.lines, ctx)? {
            Written::Whole => {}
            Written::Absent => self.counters.absent_samples.add(batch.samples()),
            Written::Gone => return Ok(Outcome::End),
        }
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, _: &mut Context) -> StageResult<()> {
        Ok(self.to.flush()?)
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.all())
    }
}

impl<W> std::fmt::Debug for TextSink<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextSink").field("text", &self.text).finish_non_exhaustive()
    }
}

grebe_flow::counters! {
    struct Counted { unmarked_gap_samples, absent_samples, reconnects }
}
