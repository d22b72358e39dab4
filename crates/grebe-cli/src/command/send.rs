//! `grebe send`: sends files to the peer of a ticket.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use anyhow::Result;
use grebe_connection::{ConnectionOptions, Limit, Phase};
use grebe_remote::{Offering, TransferProgress, TransferReport, send};
use grebe_scope::Engineering;
use serde_json::json;

use crate::cli::Send;
use crate::ending::{Ending, Usage};
use crate::interrupt;
use crate::output::{self, note};
use crate::transfer::{self, Display, Side};
use crate::units::counted;

pub(crate) fn run(options: &Send) -> Result<Ending> {
    if options.files.iter().filter_map(|file| file.to_str()).any(transfer::is_like_a_ticket) {
        // A ticket is a secret, so the message does not repeat it.
        return Err(Usage("one of the files is a ticket: put --to before it".to_owned()).into());
    }
    let ticket = transfer::given_ticket(options.to.as_deref())?;
    let cancel = interrupt::cancel();
    let offering = Offering::look(&options.files, &options.exclude, &cancel)?;
    let display = Display::new(options.json);
    let way = display.route();
    let connects = ConnectionOptions {
        mode: options.mode,
        limit_bits_per_s: options.bwlimit,
        measures: true,
        ..transfer::options(&options.rendezvous, &way, &cancel)
    };
    let side = Side { rendezvous: &options.rendezvous, there: "grebe recv --from", json: options.json };
    let (began, asks) = (Instant::now(), ticket.is_some());
    let connection = side.meet(ticket, &connects)?;
    // Waiting for the other side is not part of the handshake.
    let handshake = if asks { began.elapsed() } else { Duration::ZERO };
    let display = RefCell::new(display);
    let sent = send(connection, &offering, &cancel, |now| show(&mut display.borrow_mut(), now));
    display.borrow().clear();
    let report = sent?;
    transfer::report_skipped(&report.left_out, report.left_out_count);
    print_report(&report, handshake, &way, options.json)?;
    Ok(transfer::ending(&report))
}

fn show(display: &mut Display, now: &TransferProgress) {
    let limit = limit_name(now.connection.limit);
    display.show(
        now,
        || {
            format!(
                "RTT {}  loss {:.1} %  limit: {limit}",
                Engineering::new(now.connection.rtt_us as f64 / 1e6, "s"),
                now.connection.loss * 100.0,
            )
        },
        || {
            json!({
                "path_rate_bits_per_s": now.connection.rate_bits_per_s,
                "rtt_us": now.connection.rtt_us,
                "queue_us": now.connection.queue_us,
                "loss": now.connection.loss,
                "limit": limit,
            })
        },
    );
}

fn print_report(
    report: &TransferReport,
    handshake: Duration,
    way: &transfer::TransferRoute,
    json: bool,
) -> Result<()> {
    let seconds = report.took.as_secs_f64();
    if json {
        let counters = &report.connection.counters;
        let result = json!({
            "result": {
                "names": report.offer.names,
                "files": report.files,
                "left_out": transfer::left_out_json(&report.left_out),
                "complete": report.left_out_count == 0,
                "bytes": report.file_bytes,
                "resumed_bytes": report.resumed_bytes,
                "hole_bytes": report.hole_bytes,
                "peer": report.peer.to_string(),
                "route": way.name(),
                "seconds": seconds,
                "handshake_seconds": handshake.as_secs_f64(),
                "wire_bytes": counters.wire_bytes,
                "packets": counters.packets,
                "lost": counters.lost.saturating_sub(counters.late),
                "repeats": counters.repeats,
                "datagram_bytes": report.connection.datagram_bytes,
                "rtt_us": report.connection.rtt_us,
                "phases": phases(report),
            }
        });
        return output::json(&result);
    }
    if report.files == 0 {
        note!("nothing sent to {}", report.peer);
        return Ok(());
    }
    note!(
        "sent {} in {} in {seconds:.1} s, {}{}, verified by {}",
        transfer::size(report.file_bytes),
        counted(report.files, "file"),
        Engineering::new((report.file_bytes - report.resumed_bytes) as f64 * 8.0 / seconds, "bit/s"),
        transfer::there_before(report),
        report.peer,
    );
    Ok(())
}

fn phases(report: &TransferReport) -> serde_json::Value {
    let costs = Phase::NAMES.iter().zip(&report.connection.phases);
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
