//! `grebe send`: files to whoever holds the other end of a ticket.

use std::cell::RefCell;
use std::sync::Arc;

use anyhow::Result;
use grebe_scope::Engineering;
use grebe_transfer::{Error, Limit, SendListener, SendOptions, SendProgress, SendReport, Source, send};
use serde_json::json;

use crate::cli::Send;
use crate::ending::Ending;
use crate::interrupt;
use crate::output::{self, note};
use crate::transfer::{self, Display};

pub(crate) fn run(options: &Send) -> Result<Ending> {
    let ticket = transfer::given_ticket(options.to.as_deref())?;
    let source = Arc::new(Source::open(&options.files)?);
    transfer::tell_left_out(source.left_out());
    let way = transfer::Way::default();
    let sends = SendOptions {
        mode: options.mode,
        limit_bits_per_s: options.bwlimit,
        via: options.meeting.via,
        answer_within: options.meeting.wait,
        keep_trying: options.meeting.keep_trying,
        cancel: interrupt::cancel(),
        notify: way.notify(),
    };
    let display = RefCell::new(Display::new(options.json));
    let total_bytes = source.file_bytes();
    let on_progress = |progress: &SendProgress| show(&mut display.borrow_mut(), progress, total_bytes);
    let sent = match ticket {
        Some(ticket) => send(&source, &ticket, &sends, on_progress),
        None => {
            let mut listener = transfer::listen(&options.meeting, SendListener::bind)?;
            transfer::advertise(&mut listener.ticket, &options.meeting)?;
            transfer::announce(&listener.ticket, &options.meeting, "grebe recv --from", options.json)?;
            listener.send(&source, &sends, on_progress)
        }
    };
    display.borrow().clear();
    match sent {
        Ok(report) => {
            transfer::tell_left_out(&report.left_out);
            if report.is_partial && report.left_out.is_empty() {
                note!("the receiver could not have all of it; its own message says what");
            }
            tell(&report, &source, &way, options.json)?;
            let is_whole = !report.is_partial && source.left_out().is_empty();
            Ok(if is_whole { Ending::Good } else { Ending::Partial })
        }
        Err(error @ Error::Cancelled) => {
            note!("{error}");
            Ok(Ending::Interrupted)
        }
        Err(error) => Err(error.into()),
    }
}

fn show(display: &mut Display, progress: &SendProgress, total_bytes: u64) {
    let rate = progress.rate_bits_per_s;
    let bytes = progress.confirmed_bytes.min(total_bytes);
    let limit = limit_name(progress.limit);
    display.show(
        bytes,
        total_bytes,
        || {
            format!(
                "{}  RTT {}  loss {:.1} %  {}  limit: {limit}",
                Engineering::new(rate, "bit/s"),
                Engineering::new(progress.rtt_us as f64 / 1e6, "s"),
                progress.loss * 100.0,
                transfer::time_left(total_bytes - bytes, rate / 8.0),
            )
        },
        || {
            json!({
                "progress": {
                    "bytes": bytes,
                    "total_bytes": total_bytes,
                    "rate_bits_per_s": rate,
                    "rtt_us": progress.rtt_us,
                    "queue_us": progress.queue_us,
                    "loss": progress.loss,
                    "limit": limit,
                }
            })
        },
    );
}

fn tell(report: &SendReport, source: &Source, way: &transfer::Way, json: bool) -> Result<()> {
    let seconds = report.took.as_secs_f64();
    let rate = report.file_bytes as f64 * 8.0 / seconds;
    if json {
        let result = json!({
            "result": {
                "names": source.names(),
                "files": source.files(),
                "left_out": transfer::left_out_json(source.left_out().iter().chain(&report.left_out)),
                "complete": !report.is_partial && source.left_out().is_empty(),
                "bytes": report.file_bytes,
                "resumed_bytes": report.resumed_bytes,
                "peer": report.peer.to_string(),
                "way": way.name(),
                "seconds": seconds,
                "handshake_seconds": report.handshake.as_secs_f64(),
                "wire_bytes": report.counters.wire_bytes,
                "packets": report.counters.packets,
                "lost": report.counters.lost.saturating_sub(report.counters.late),
                "repeats": report.counters.repeats,
                "datagram_bytes": report.datagram_bytes,
                "rtt_us": report.progress.rtt_us,
                "phases": phases(report),
            }
        });
        return output::json(&result);
    }
    let resumed = match report.resumed_bytes {
        0 => String::new(),
        bytes => format!(", {} of it were there", transfer::size(bytes)),
    };
    let files = match source.files() {
        1 => "1 file".to_owned(),
        count => format!("{count} files"),
    };
    note!(
        "sent {} in {files}{resumed} in {seconds:.1} s, {}, verified by {}",
        transfer::size(report.file_bytes),
        Engineering::new(rate, "bit/s"),
        report.peer,
    );
    Ok(())
}

fn phases(report: &SendReport) -> serde_json::Value {
    let names = ["train", "ramp", "cruise", "up", "down"];
    let costs = names.iter().zip(&report.phases);
    costs
        .map(|(name, cost)| {
            let cost = json!({ "entries": cost.entries, "round_trips": cost.rounds, "us": cost.time_us });
            ((*name).to_owned(), cost)
        })
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn limit_name(limit: Limit) -> &'static str {
    match limit {
        Limit::Start => "starting",
        Limit::Path => "path",
        Limit::Queue => "queue on the path",
        Limit::InFlight => "round trip",
        Limit::Receiver => "receiver's disk",
        Limit::Source => "reading here",
        Limit::Bandwidth => "--bwlimit",
    }
}
