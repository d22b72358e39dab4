//! Messages of the receiver, and their effect on the listed files.

use std::io::Write;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crossbeam_channel::RecvTimeoutError;
use grebe_packet::Cancel;

use super::{LEFT_BYTES_MAX, LEFT_MAX, Sending};
use crate::blocks::{BlockMap, Blocks, comes_in_blocks};
use crate::delta::EarlyBytes;
use crate::error::{Error, Result};
use crate::progress::add;
use crate::report::Report;
use crate::send::comparing::Next;
use crate::send::job::{Ended, How, Outcome, Wanted};
use crate::wire::{Answer, Answers, DataWriter, Frame, Hello, Kind, Left, Role, Summary, Taken, Want};

impl<W: Write> Sending<'_, W> {
    pub(super) fn frame(&mut self, frame: &Frame) -> Result<()> {
        match frame.kind {
            Kind::Hello if self.greeting == Some(Kind::Hello) => {
                let theirs = Hello::decode(&frame.body)?;
                Hello::agree(Some(self.options), &theirs, Role::Sender)?;
                self.greeted(theirs.is_fresh)
            }
            Kind::Taken if self.greeting == Some(Kind::Taken) => {
                self.greeted(Taken::decode(&frame.body)?.is_fresh)
            }
            Kind::Answers if self.is_fresh == Some(false) => self.answers(&frame.body),
            Kind::Signature => {
                let next = self.comparing.signature(&frame.body)?;
                self.compared(next)
            }
            Kind::Made => {
                if let Some((file, how)) = self.comparing.made(&frame.body)? {
                    self.want(file, how);
                }
                Ok(())
            }
            Kind::Left if self.options.progressive => {
                let left = Left::decode(&frame.body)?;
                self.left_bytes += left.bits.len();
                if self.left.len() >= LEFT_MAX || self.left_bytes > LEFT_BYTES_MAX {
                    return Err(Error::Malformed { what: "more parts than it answers for" });
                }
                if let Some(before) = self.left.insert(left.id, left) {
                    self.left_bytes -= before.bits.len();
                }
                Ok(())
            }
            Kind::Want if self.options.progressive => {
                self.blocks.want(Want::decode(&frame.body)?);
                Ok(())
            }
            _ => Err(Error::Malformed { what: "a message at the wrong time" }),
        }
    }

    pub(super) fn greeted(&mut self, is_fresh: bool) -> Result<()> {
        self.greeting = None;
        let is_fresh = is_fresh && self.options.also_look_in.is_empty();
        if self.is_fresh.replace(is_fresh) == Some(true) && !is_fresh {
            return Err(Error::Malformed { what: "an existing entry where it reported none before" });
        }
        if is_fresh {
            let unanswered = std::mem::take(&mut self.unanswered);
            unanswered.into_iter().for_each(|file| self.want_whole(file));
        }
        Ok(())
    }

    fn answers(&mut self, body: &[u8]) -> Result<()> {
        let mut answers = Answers::new(body);
        while let Some((answer, count)) = answers.next()? {
            if count > self.unanswered.len() as u64 {
                return Err(Error::Malformed { what: "answers for files that were not listed" });
            }
            for _ in 0..count {
                let Some(file) = self.unanswered.pop_front() else { break };
                match answer {
                    Answer::Whole => self.want_whole(file),
                    Answer::From(offset) if offset <= file.bytes => self.want(file, How::From(offset)),
                    Answer::From(_) => {
                        return Err(Error::Malformed { what: "a part that is longer than the file" });
                    }
                    Answer::Unless(hash) => self.want(file, How::Unless(hash)),
                    Answer::Changed(_) if self.options.dry_run => self.want(file, How::Whole),
                    Answer::Changed(sizes) => self.comparing.begin(file, sizes),
                    Answer::Have => self.ended(&Ended { file, outcome: Outcome::Same }),
                    // The receiver reports the reason.
                    Answer::Refused => self.forget_attributes(&file),
                }
            }
        }
        Ok(())
    }

    pub(super) fn compared(&mut self, next: Option<Next>) -> Result<()> {
        match next {
            Some(Next::Send(file, how)) => self.want(file, how),
            Some(Next::Say(kind, body)) => self.write(kind, &body)?,
            Some(Next::Early(id, EarlyBytes { from, content })) => {
                let mut writer = DataWriter::new(content.len());
                writer.early(id, from, &content);
                self.write(Kind::Data, &writer.finish())?;
                add(&self.progress.data_bytes, content.len() as u64);
                self.comparing.unsent.fetch_sub(content.len(), Ordering::Relaxed);
            }
            None => {}
        }
        Ok(())
    }

    pub(super) fn want(&mut self, file: Wanted, how: How) {
        if self.options.dry_run && !matches!(how, How::Unless(_)) {
            return self.ended(&Ended { file, outcome: Outcome::Sent });
        }
        self.ready.push(file, how, self.directories);
    }

    /// Sends a whole file, except for the blocks that the receiver reported.
    pub(super) fn want_whole(&mut self, file: Wanted) {
        let left = self.left.remove(&file.id);
        self.left_bytes -= left.as_ref().map_or(0, |left| left.bits.len());
        if !self.sends_blocks || !comes_in_blocks(&file.name, file.bytes) {
            return self.want(file, How::Whole);
        }
        let blocks = Blocks::of(file.bytes);
        let left = left.and_then(|left| BlockMap::from_bits(blocks, &left.bits));
        self.blocks.send(file, left.unwrap_or_else(|| BlockMap::none(blocks)));
    }

    /// Waits until the receiver has done everything. `None`: something must be sent again first.
    pub(super) fn receivers_end(&mut self, cancel: &Cancel) -> Result<Option<Report>> {
        let frames = self.frames.frames.clone();
        loop {
            match frames.recv_timeout(Duration::from_millis(100)) {
                Ok(frame) => {
                    let frame = frame?;
                    match frame.kind {
                        // A short copy ends before the receiver's first message arrives.
                        Kind::Hello | Kind::Taken if self.greeting.is_some() => self.frame(&frame)?,
                        Kind::Made => {
                            self.frame(&frame)?;
                            if !self.is_all_sent() {
                                return Ok(None);
                            }
                        }
                        Kind::End if self.greeting.is_none() => {
                            return Ok(Some(Summary::decode(&frame.body)?.0));
                        }
                        _ => return Err(Error::Malformed { what: "a message after the end" }),
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Err(Error::Closed),
                Err(RecvTimeoutError::Timeout) if cancel.is_cancelled() => return Err(Error::Cancelled),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}
