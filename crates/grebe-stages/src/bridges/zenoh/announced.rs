//! A sink that announces a stream under a name.

use std::sync::Arc;

use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, Stage, StageResult};
use grebe_frame::{Batch, Description, Header};
use grebe_process::stream::is_same;
use grebe_zenoh::{Announcement, Lab, StreamName, What};

use crate::bridges::zenoh::on_request::OnRequest;
use crate::bridges::zenoh::routes::own_route;
use crate::bridges::zenoh::sink::Sending;
use crate::error::Error;
use crate::open::Transport;

/// Announces a stream while it flows. Sends its frames by UDP to readers that request it, and over Zenoh to readers
/// without another route.
#[derive(Debug)]
pub(crate) struct AnnouncedSink {
    to: Sending,
    /// `None`: this process sends no datagrams on request.
    on_request: Option<OnRequest>,
    announcement: Announcement,
    /// The announced description.
    said: Option<(Header, Option<Arc<Description>>)>,
    counters: Counted,
}

impl AnnouncedSink {
    /// `command` is the process that sends the stream, `routes` are URIs by which other hosts can read it.
    ///
    /// # Errors
    /// The lab cannot be joined, or the name is taken.
    pub(crate) fn open(
        lab: &Lab,
        name: &StreamName,
        command: &str,
        routes: &[String],
        transport: &Transport,
    ) -> Result<Self, Error> {
        let to = Sending::new(lab.sender(&lab.data_key(name), false)?);
        let routes = routes.iter().cloned().chain([own_route(lab, name)]).collect();
        let udp_on_request = lab.has_udp_on_request();
        // Every reader that finds the name may request datagrams.
        let on_request = udp_on_request.then(|| OnRequest::open(lab, name, transport)).transpose()?;
        let what = What { routes, udp_on_request, ..What::of_this_process(command) };
        let announcement = lab.announce(name, what)?;
        Ok(Self { to, on_request, announcement, said: None, counters: Counted::default() })
    }

    fn publish(&self) {
        self.counters.messages.set(self.to.messages());
        self.counters.has_reader.set(u64::from(self.to.has_reader()));
        let readers = self.on_request.as_ref().map_or(0, OnRequest::readers);
        self.counters.udp_readers.set(readers as u64);
    }

    /// Announces the description after a change.
    fn say(&mut self, batch: &Batch) {
        let Some(header) = batch.frames().next_back().map(|frame| frame.header()) else { return };
        let description = batch.description();
        let is_said = self.said.as_ref().is_some_and(|(said, described)| {
            let of = |it: &Header| (it.format, it.channel_count, it.sample_rate_hz);
            of(said) == of(&header) && is_same(described.as_ref(), description)
        });
        if is_said {
            return;
        }
        self.said = Some((header, description.cloned()));
        self.announcement.say(|what| {
            what.format = header.format.to_string();
            what.channels = header.channel_count;
            what.sample_rate_hz = header.sample_rate_hz;
            // Annotations describe the moment, so they are not announced.
            let lasting =
                |it: &Arc<Description>| Box::new(Description { annotations: Vec::new(), ..(**it).clone() });
            what.description = description.map(lasting);
        });
    }
}

impl Stage for AnnouncedSink {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, ctx: &mut Context) -> StageResult {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        self.say(&batch);
        if let Some(on_request) = &mut self.on_request {
            on_request.send(&batch, ctx.batches_in_flight());
        }
        self.to.send(&batch)?;
        self.to.take_note().into_iter().for_each(|note| ctx.note(note));
        self.announcement.count(self.to.messages());
        self.publish();
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        if let Some(on_request) = &mut self.on_request {
            on_request.end(self.to.end_of_stream(ctx));
        }
        self.to.end(ctx)?;
        if let Some(on_request) = &self.on_request {
            on_request.wait_for_ends();
        }
        self.publish();
        Ok(())
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.all())
    }
}

grebe_flow::counters! {
    struct Counted { messages, has_reader, gauge udp_readers }
}
