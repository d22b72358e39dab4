//! Dispatches received messages of a connection.

use std::collections::HashMap;
use std::io::{ErrorKind, Read};
use std::sync::Arc;

use grebe_frame::{HEADER_BYTES, Header};

use super::buffer::{Buffer, Spares};
use super::inbox::Inbox;
use super::message::{BadLink, Begin, Head, Kind, Taken};
use super::outbox::{Line, Outbox};

/// Destination of a link's messages.
#[derive(Debug, Clone)]
pub enum Route {
    /// A stage of this process receives the stream.
    In(Arc<Inbox>),
    /// A stage of this process sends the stream over the same connection; messages are acknowledgements.
    Out,
    /// The other end of the link is at another connection.
    Relay(Arc<Outbox>),
}

/// Links of a connection.
pub type Routes = HashMap<u16, Route>;

/// Reads to the end of the connection, or until `answers`, which writes to it, has another one. Passes text
/// of the other process to `hear`.
///
/// # Errors
/// A connection error, or an invalid message, after which nothing can be trusted.
pub fn read_messages(
    mut from: impl Read,
    routes: &Routes,
    answers: &Outbox,
    line: Line,
    mut hear: impl FnMut(&[u8]),
) -> Result<(), BadLink> {
    let spares = Arc::new(Spares::default());
    while let Some(head) = next_head(&mut from)? {
        let mut message = Buffer::of(&spares);
        let length = head.length as usize;
        // Reads only what arrives: a length alone reserves nothing.
        from.by_ref().take(length as u64).read_to_end(&mut message.bytes)?;
        if message.bytes.len() < length {
            return Err(BadLink::Cut);
        }
        if !answers.has(line) {
            return Ok(());
        }
        if head.kind == Kind::Control {
            hear(&message.bytes);
            continue;
        }
        let route = routes.get(&head.link).ok_or(BadLink::Link(head.link))?;
        deliver(head, message, route, answers)?;
    }
    Ok(())
}

fn deliver(head: Head, message: Buffer, route: &Route, answers: &Outbox) -> Result<(), BadLink> {
    let Head { kind, link, .. } = head;
    match (kind, route) {
        (Kind::Frames, Route::In(inbox)) => inbox.push(link, message)?,
        (Kind::End, Route::In(inbox)) => {
            // An unreadable frame says nothing about the end.
            inbox.end_with(message.bytes.first_chunk::<HEADER_BYTES>().and_then(|it| Header::parse(it).ok()));
        }
        (Kind::Begin, Route::In(inbox)) => {
            let begin = Begin::parse(&message.bytes).ok_or(BadLink::Length(head.length))?;
            if !inbox.begin(begin) {
                answers.close_link(link);
            }
        }
        (Kind::Taken, Route::Out) => {
            answers.was_taken(link, Taken::parse(&message.bytes).unwrap_or_default());
        }
        (Kind::Closed, Route::Out) => answers.was_closed(link),
        (Kind::Away, Route::Out) => answers.was_left(link),
        (Kind::Join, Route::Out) => {
            let epoch = message.bytes.first_chunk().ok_or(BadLink::Length(head.length))?;
            answers.join(link, u32::from_le_bytes(*epoch));
        }
        (Kind::Taken, Route::Relay(to)) => {
            to.tell_taken(link, Taken::parse(&message.bytes).unwrap_or_default());
        }
        (Kind::Frames | Kind::Begin | Kind::End | Kind::Closed, Route::Relay(to)) => {
            to.relay(link, kind, message)?;
        }
        _ => return Err(BadLink::Link(link)),
    }
    Ok(())
}

fn next_head(from: &mut impl Read) -> Result<Option<Head>, BadLink> {
    let mut head = [0; Head::BYTES];
    let mut at = 0;
    while at < head.len() {
        match from.read(&mut head[at..]) {
            Ok(0) if at == 0 => return Ok(None),
            Ok(0) => return Err(BadLink::Cut),
            Ok(read) => at += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Head::parse(head).map(Some)
}

/// Feeds arbitrary bytes to a connection with a link of each kind. Stages examine messages for this process.
#[cfg(fuzzing)]
pub fn fuzz(bytes: &[u8]) {
    use grebe_flow::StageBench;

    use super::{LinkIn, LinkRoute};

    let (inbox, answers, other) = (Arc::new(Inbox::default()), Arc::new(Outbox::default()), Arc::default());
    let routes =
        Routes::from([(0, Route::In(inbox.clone())), (1, Route::Out), (2, Route::Relay(Arc::clone(&other)))]);
    let _ = read_messages(bytes, &routes, &answers, answers.connect(), |_| {});
    inbox.end();
    if let Ok(mut bench) =
        StageBench::new(LinkIn::new(inbox, Arc::new(LinkRoute::new(0, answers.clone())), None))
    {
        let _ = bench.end();
    }
    for outbox in [answers, other] {
        outbox.finish();
        let mut written = Vec::new();
        outbox.write_to(outbox.connect(), &mut written).expect("memory takes everything");
        // The next host reads forwarded data.
        let all: Routes = (0..3).flat_map(|link| [(link, Route::Relay(Arc::default()))]).collect();
        let answers = Outbox::default();
        read_messages(&written[..], &all, &answers, answers.connect(), |_| {})
            .expect("what is written is read");
    }
}
