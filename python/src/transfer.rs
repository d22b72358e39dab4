//! Files over any distance: sent, and received.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use grebe_connection::{
    Connection, ConnectionListener, ConnectionOptions, Error as ConnectionError, Limit, Mode, Notice, Notify,
    Purpose, Ticket, connect, listen_anywhere,
};
use grebe_remote::{
    Accept, Error, LeftOut, Offer, Offering, Reception, TransferProgress, TransferReport, receive, send,
};
use grebe_stages::Cancel;
use grebe_tree::Error as TreeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{Kind, words};
use crate::job::{Patience, Teller, watched};
use crate::opening::log;
use crate::stream::seconds;

/// Progress of a transfer.
enum News {
    /// The word of the ticket that the other side needs.
    Ticket(String),
    Notice(Notice),
    /// Bytes done and bytes in total; the rate in bits per second, the round trip in us, the loss, and the cause that
    /// limits the rate.
    Progress(u64, u64, Option<f64>, Option<u64>, Option<f64>, Option<&'static str>),
}

/// Sends files. Returns the report. `ticket` is the receiver's; without one, `on_ticket` receives a new one.
#[pyfunction]
#[pyo3(signature = (paths, ticket, *, listen, expires, mode, limit, answer_within, keep_trying, on_ticket, progress))]
#[allow(clippy::too_many_arguments, reason = "keywords of Python")]
pub(crate) fn send_files<'py>(
    py: Python<'py>,
    paths: Vec<PathBuf>,
    ticket: Option<&str>,
    listen: Option<&str>,
    expires: f64,
    mode: &str,
    limit: Option<f64>,
    answer_within: f64,
    keep_trying: Option<f64>,
    on_ticket: Option<&Bound<'py, PyAny>>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let ticket = ticket.map(ticket_of).transpose()?;
    let listen = listen.map(address_of).transpose()?;
    let (expires, mode) = (seconds(expires)?, mode_of(mode)?);
    if limit.is_some_and(|limit| !(limit > 0.0 && limit.is_finite())) {
        return Err(Kind::Usage.error("limit: give bits per second, more than 0"));
    }
    let cancel = Cancel::default();
    let mut options = ConnectionOptions {
        mode,
        limit_bits_per_s: limit,
        answer_within: seconds(answer_within)?,
        cancel: cancel.clone(),
        ..ConnectionOptions::default()
    };
    if let Some(silence) = keep_trying {
        options.keep_trying = seconds(silence)?;
    }
    let work = {
        let cancel = cancel.clone();
        move |teller: Teller<News>| -> Result<TransferReport, Error> {
            let offering = Offering::look(&paths, &[], &cancel).map_err(Error::Tree)?;
            options.notify = notify(&teller);
            let connection = met(ticket, listen, expires, &options, &teller)?;
            send(connection, &offering, &cancel, |now: &TransferProgress| {
                let way = &now.connection;
                let rate = Some(way.rate_bits_per_s);
                let (rtt, loss, limit) = (Some(way.rtt_us), Some(way.loss), Some(limit_name(way.limit)));
                teller.tell_if_heard(News::Progress(now.bytes, now.total_bytes, rate, rtt, loss, limit));
            })
        }
    };
    let hear = |news| hear(py, news, on_ticket, progress);
    sent(py, &watched(py, "grebe-send", &cancel, TO_THE_END, work, hear)?.map_err(error_of)?)
}

/// Receives files into a directory, which is made; the report.
#[pyfunction]
#[pyo3(signature = (directory, ticket, *, listen, expires, overwrite, answer_within, keep_trying, accept, on_ticket, progress))]
#[allow(clippy::too_many_arguments, reason = "keywords of Python")]
pub(crate) fn receive_files<'py>(
    py: Python<'py>,
    directory: PathBuf,
    ticket: Option<&str>,
    listen: Option<&str>,
    expires: f64,
    overwrite: bool,
    answer_within: f64,
    keep_trying: Option<f64>,
    accept: Option<Py<PyAny>>,
    on_ticket: Option<&Bound<'py, PyAny>>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let ticket = ticket.map(ticket_of).transpose()?;
    let listen = listen.map(address_of).transpose()?;
    let expires = seconds(expires)?;
    std::fs::create_dir_all(&directory)
        .map_err(|source| Kind::General.error(format!("cannot create {}: {source}", directory.display())))?;
    let cancel = Cancel::default();
    let asked = accept.map(OfferFilter::new);
    let mut options = ConnectionOptions {
        answer_within: seconds(answer_within)?,
        cancel: cancel.clone(),
        ..ConnectionOptions::default()
    };
    if let Some(silence) = keep_trying {
        options.keep_trying = seconds(silence)?;
    }
    let accept = asked.clone().map(|asked| {
        let accept: Arc<Accept> = Arc::new(move |offer: &Offer| asked.ask(offer));
        accept
    });
    let reception = Reception { directory, overwrite, sender_waits: accept.is_some(), accept };
    let work = {
        let cancel = cancel.clone();
        move |teller: Teller<News>| -> Result<TransferReport, Error> {
            options.notify = notify(&teller);
            let connection = met(ticket, listen, expires, &options, &teller)?;
            receive(connection, &reception, &cancel, |now: &TransferProgress| {
                let rtt_us = Some(now.connection.rtt_us).filter(|us| *us > 0);
                teller.tell_if_heard(News::Progress(now.bytes, now.total_bytes, None, rtt_us, None, None));
            })
        }
    };
    let hear = |news| hear(py, news, on_ticket, progress);
    let received = watched(py, "grebe-receive", &cancel, TO_THE_END, work, hear)?;
    if let Some(error) = asked.and_then(|asked| asked.take_error()) {
        return Err(error);
    }
    self::received(py, &received.map_err(error_of)?)
}

/// A Python function that accepts or rejects an offer, and its exception.
#[derive(Clone)]
struct OfferFilter(Arc<(Py<PyAny>, std::sync::Mutex<Option<PyErr>>)>);

impl OfferFilter {
    fn new(accept: Py<PyAny>) -> Self {
        Self(Arc::new((accept, std::sync::Mutex::new(None))))
    }

    /// In the transfer's own thread.
    fn ask(&self, offered: &Offer) -> bool {
        let answer = Python::attach(|py| {
            let offer = (offered.names.clone(), offered.files, offered.bytes);
            self.0.0.bind(py).call1(offer)?.is_truthy()
        });
        answer.unwrap_or_else(|error| {
            *self.0.1.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(error);
            false
        })
    }

    fn take_error(&self) -> Option<PyErr> {
        self.0.1.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take()
    }
}

fn notify(teller: &Teller<News>) -> Notify {
    let teller = std::sync::Mutex::new(teller.clone());
    Arc::new(move |notice| {
        teller.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).tell_if_heard(News::Notice(notice));
    })
}

fn hear(
    py: Python<'_>,
    news: News,
    on_ticket: Option<&Bound<'_, PyAny>>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    match (news, on_ticket, progress) {
        (News::Ticket(word), Some(tell), _) => tell.call1((word,)).map(drop),
        (News::Notice(notice), ..) => {
            let is_slower = matches!(notice, Notice::OverTcp | Notice::Relayed { .. });
            log(py, if is_slower { "warning" } else { "info" }, &notice.to_string())
        }
        (News::Progress(bytes, total, rate, rtt_us, loss, limit), _, Some(tell)) => {
            let rtt = rtt_us.map(|us| us as f64 / 1e6);
            tell.call1((bytes, total, rate, rtt, loss, limit)).map(drop)
        }
        _ => Ok(()),
    }
}

fn sent<'py>(py: Python<'py>, report: &TransferReport) -> PyResult<Bound<'py, PyDict>> {
    let dict = report_of(py, report)?;
    let counters = &report.connection.counters;
    dict.set_item("names", &report.offer.names)?;
    dict.set_item("whole", report.left_out_count == 0)?;
    dict.set_item("wire_bytes", counters.wire_bytes)?;
    dict.set_item("packets", counters.packets)?;
    dict.set_item("lost", counters.lost.saturating_sub(counters.late))?;
    Ok(dict)
}

fn received<'py>(py: Python<'py>, report: &TransferReport) -> PyResult<Bound<'py, PyDict>> {
    let dict = report_of(py, report)?;
    dict.set_item("paths", &report.paths)?;
    Ok(dict)
}

/// The part of the report common to both ends.
fn report_of<'py>(py: Python<'py>, report: &TransferReport) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("files", report.files)?;
    dict.set_item("bytes", report.file_bytes)?;
    dict.set_item("resumed_bytes", report.resumed_bytes)?;
    dict.set_item("left_out", left_out(&report.left_out))?;
    dict.set_item("peer", report.peer.to_string())?;
    dict.set_item("seconds", report.took.as_secs_f64())?;
    Ok(dict)
}

fn left_out(left_out: &[LeftOut]) -> Vec<(PathBuf, &str)> {
    left_out.iter().map(|it| (PathBuf::from(&*String::from_utf8_lossy(&it.name)), &it.why[..])).collect()
}

/// Connects to the maker of the ticket, or reports a new ticket and waits for its holder.
fn met(
    ticket: Option<Ticket>,
    listen: Option<SocketAddr>,
    expires: Duration,
    options: &ConnectionOptions,
    teller: &Teller<News>,
) -> Result<Connection, ConnectionError> {
    if let Some(ticket) = ticket {
        return connect(&ticket, options);
    }
    let bind = |at| ConnectionListener::bind(at, Purpose::Transfer, expires);
    let listener = listen.map_or_else(|| listen_anywhere(0, bind), bind)?;
    teller.tell(News::Ticket(listener.ticket.word().to_string()));
    listener.accept(options)
}

fn ticket_of(word: &str) -> PyResult<Ticket> {
    Ticket::from_word(word, Purpose::Transfer).map_err(|error| Kind::Usage.error(error.to_string()))
}

pub(crate) fn address_of(text: &str) -> PyResult<SocketAddr> {
    text.parse().map_err(|_| no_address(text))
}

fn no_address(text: &str) -> PyErr {
    Kind::Usage
        .error(format!("listen={text:?}: give an address and a port, such as \"0.0.0.0:0\" or \"[::]:0\""))
}

fn mode_of(name: &str) -> PyResult<Mode> {
    match name {
        "fair" => Ok(Mode::Fair),
        "greedy" => Ok(Mode::Greedy),
        "background" => Ok(Mode::Background),
        _ => {
            Err(Kind::Usage
                .error(format!("mode={name:?}: there are \"fair\", \"greedy\" and \"background\"")))
        }
    }
}

#[cold]
fn error_of(error: Error) -> PyErr {
    use ConnectionError::{Ended, Expired, NoAnswer, Relay, Silent, Ticket};
    let kind = match &error {
        Error::Connection(NoAnswer { .. } | Relay { .. } | Silent { .. } | Ended { .. } | Expired)
        | Error::Tree(TreeError::Peer { .. } | TreeError::Closed | TreeError::Stream(_)) => Kind::Gone,
        Error::Connection(Ticket { .. }) | Error::Tree(TreeError::Roles { .. }) => Kind::Usage,
        _ => Kind::General,
    };
    kind.error(words(&error))
}

fn limit_name(limit: Limit) -> &'static str {
    match limit {
        Limit::Start => "start",
        Limit::Path => "path",
        Limit::Queue => "queue",
        Limit::InFlight => "round_trip",
        Limit::Receiver => "receiver",
        Limit::Source => "source",
        Limit::Bandwidth => "limit",
    }
}

/// A transfer that was cancelled tells its peer, and leaves its journal whole.
const TO_THE_END: Patience = Patience { timeout: None, after_cancel: Duration::from_secs(5) };
