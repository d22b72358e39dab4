//! A stream that is announced under a name, as a sink.

use std::sync::Arc;

use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, Stage, StageResult};
use grebe_frame::{Batch, Description, Header};
use grebe_zenoh::{Announcement, Lab, StreamName, What};

use crate::error::Error;
use crate::zenoh::sink::Sending;
use crate::zenoh::ways::own_way;

/// Announces a stream as long as it flows, and sends its frames over Zenoh to readers that have no other way.
#[derive(Debug)]
pub(crate) struct AnnouncedSink {
    to: Sending,
    announcement: Announcement,
    /// What is said of the stream.
    said: Option<(Header, Option<Arc<Description>>)>,
    counters: Counters,
}

impl AnnouncedSink {
    /// `command` sends the stream, `ways` are the URIs by which it can be read elsewhere.
    ///
    /// # Errors
    /// The lab cannot be joined, or the name is taken.
    pub(crate) fn open(lab: &Lab, name: &StreamName, command: &str, ways: &[String]) -> Result<Self, Error> {
        let to = Sending::new(lab.sender(&lab.data_key(name), false)?);
        let ways = ways.iter().cloned().chain([own_way(lab, name)]).collect();
        let announcement = lab.announce(name, What { ways, ..What::of_this_process(command) })?;
        Ok(Self { to, announcement, said: None, counters: Counters::new(Sending::COUNTERS) })
    }

    /// Says what the stream is, where that is news.
    fn say(&mut self, batch: &Batch) {
        let Some(header) = batch.frames().last().map(|frame| frame.header()) else { return };
        let description = batch.description();
        let is_said = self.said.as_ref().is_some_and(|(said, described)| {
            let of = |it: &Header| (it.format, it.channel_count, it.sample_rate_hz);
            of(said) == of(&header)
                && match (described, description) {
                    (Some(described), Some(description)) => Arc::ptr_eq(described, description),
                    (described, description) => described.is_none() && description.is_none(),
                }
        });
        if is_said {
            return;
        }
        self.said = Some((header, description.cloned()));
        self.announcement.say(|what| {
            what.format = header.format.to_string();
            what.channels = header.channel_count;
            what.sample_rate_hz = header.sample_rate_hz;
            // A window of annotations is of the moment.
            let lasting =
                |it: &Arc<Description>| Box::new(Description { annotations: Vec::new(), ..(**it).clone() });
            what.description = description.map(lasting);
        });
    }
}

impl Stage for AnnouncedSink {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, _: &mut Context) -> StageResult {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        self.say(&batch);
        self.to.send(&batch)?;
        self.announcement.count(self.to.messages());
        self.to.publish(&self.counters);
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        self.to.end(ctx)?;
        self.to.publish(&self.counters);
        Ok(())
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.clone())
    }
}
