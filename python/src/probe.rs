//! Measurement of a path: client and server.

use std::time::Duration;

use grebe_probe::{
    Bounds, DATAGRAM_BYTES, Error, ProbeEvent, ProbeOptions, Purpose, ServeEvent, ServeOptions, Server,
    Ticket, probe,
};
use grebe_stages::Cancel;
use pyo3::prelude::*;
use serde_json::json;

use crate::error::{Kind, words};
use crate::job::{Patience, Teller, watched};
use crate::stream::seconds;
use crate::transfer::address_of;

/// Probes a path. Returns the report as JSON. `progress` receives events as JSON.
#[pyfunction]
#[pyo3(signature = (ticket, *, max_rate, max_bytes, duration, allow_fast_public, size, interval, tcp_writes, amounts, progress))]
#[allow(clippy::too_many_arguments, reason = "keywords of Python")]
pub(crate) fn probe_path(
    py: Python<'_>,
    ticket: &str,
    max_rate: Option<f64>,
    max_bytes: Option<u64>,
    duration: Option<f64>,
    allow_fast_public: bool,
    size: Option<u16>,
    interval: Option<f64>,
    tcp_writes: Vec<u32>,
    amounts: Vec<u64>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let ticket =
        Ticket::from_word(ticket, Purpose::Probe).map_err(|error| Kind::Usage.error(error.to_string()))?;
    if let Some(bytes) = size.filter(|bytes| !DATAGRAM_BYTES.contains(bytes)) {
        let (least, most) = (DATAGRAM_BYTES.start(), DATAGRAM_BYTES.end());
        let message = format!("size={bytes}: a datagram of a probe has {least} to {most} bytes");
        return Err(Kind::Usage.error(message));
    }
    let cancel = Cancel::default();
    let duration_max = duration.map(seconds).transpose()?;
    let options = ProbeOptions {
        bounds: Bounds { rate_max_bps: max_rate, bytes_max: max_bytes, duration_max, allow_fast_public },
        datagram_bytes: size,
        interval: interval.map(seconds).transpose()?,
        tcp_writes: tcp_writes
            .into_iter()
            .filter(|&bytes| bytes > 0)
            .map(|bytes| bytes.min(16 << 20))
            .collect(),
        moves: amounts,
        cancel: cancel.clone(),
    };
    // A probe that waited for Python would measure Python.
    let work = move |teller: Teller<String>| {
        probe(&ticket, &options, |event| teller.tell_if_heard(event_json(&event)))
    };
    let hear = |event: String| progress.map_or(Ok(()), |tell| tell.call1((event,)).map(drop));
    let report = watched(py, "grebe-probe", &cancel, SOON, work, hear)?.map_err(error_of)?;
    serde_json::to_string(&report).map_err(|error| Kind::General.error(error.to_string()))
}

/// Serves probes. Returns their number. `on_ticket` receives the ticket's word first, `progress` the clients.
#[pyfunction]
#[pyo3(signature = (on_ticket, *, listen, clients, idle_timeout, max_rate, max_bytes, duration, progress))]
#[allow(clippy::too_many_arguments, reason = "keywords of Python")]
pub(crate) fn serve_probes(
    py: Python<'_>,
    on_ticket: &Bound<'_, PyAny>,
    listen: Option<&str>,
    clients: u32,
    idle_timeout: f64,
    max_rate: Option<f64>,
    max_bytes: Option<u64>,
    duration: f64,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<u32> {
    let cancel = Cancel::default();
    let duration_max = Some(seconds(duration)?);
    let server = Server::bind(&ServeOptions {
        bind: listen.map(address_of).transpose()?,
        bounds: Bounds { rate_max_bps: max_rate, bytes_max: max_bytes, duration_max, ..Bounds::default() },
        clients,
        idle_max: seconds(idle_timeout)?,
        cancel: cancel.clone(),
    })
    .map_err(error_of)?;
    on_ticket.call1((&**server.ticket().word(),))?;
    let work = move |teller: Teller<String>| {
        server.run(|event| match event {
            ServeEvent::Began(client) => {
                teller.tell_if_heard(json!({ "event": "began", "client": client.to_string() }).to_string())
            }
            _ => teller.tell_if_heard(json!({ "event": "ended" }).to_string()),
        })
    };
    let hear = |event: String| progress.map_or(Ok(()), |tell| tell.call1((event,)).map(drop));
    watched(py, "grebe-probe", &cancel, SOON, work, hear)?.map_err(error_of)
}

fn event_json(event: &ProbeEvent) -> String {
    let direction = |is_down: bool| if is_down { "down" } else { "up" };
    let value = match event {
        ProbeEvent::Waiting { ahead } => json!({ "event": "waiting", "ahead": ahead }),
        ProbeEvent::Part { name, is_down } => {
            json!({ "event": "part", "name": name, "direction": is_down.map(direction) })
        }
        ProbeEvent::RoundTrip(ms) => json!({ "event": "round_trip", "ms": ms }),
        ProbeEvent::Train { is_down, result } => {
            json!({ "event": "train", "direction": direction(*is_down), "result": result })
        }
        _ => json!({ "event": "other" }),
    };
    value.to_string()
}

#[cold]
fn error_of(error: Error) -> PyErr {
    let kind = match &error {
        Error::Silent { .. } | Error::Ended { .. } | Error::Expired => Kind::Gone,
        Error::Ticket(_) | Error::Limit { .. } => Kind::Usage,
        _ => Kind::General,
    };
    kind.error(words(&error))
}

const SOON: Patience = Patience { timeout: None, after_cancel: Duration::from_secs(2) };
