//! Files over any distance: sent, and received.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use grebe_stages::Cancel;
use grebe_transfer::{
    Error, LeftOut, Limit, Mode, Notice, Notify, Offered, Purpose, ReceiveListener, ReceiveOptions,
    ReceiveProgress, ReceiveReport, SendListener, SendOptions, SendProgress, SendReport, Source, Ticket,
    listen_anywhere, receive, send,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{Kind, words};
use crate::job::{Patience, Teller, watched};
use crate::opening::log;
use crate::stream::seconds;

/// What a transfer says before its end.
enum News {
    /// The word of the ticket that the other side needs.
    Ticket(String),
    Notice(Notice),
    /// Bytes that are there, and that there are to be; the rate in bits per second, the round trip in us, the lost part, and what keeps
    /// it from being faster.
    Progress(u64, u64, Option<f64>, Option<u64>, Option<f64>, Option<&'static str>),
}

/// Sends files; the report. With a ticket to whoever made it, else `on_ticket` is told one.
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
    let mut options = SendOptions {
        mode,
        limit_bits_per_s: limit,
        answer_within: seconds(answer_within)?,
        cancel: cancel.clone(),
        ..SendOptions::default()
    };
    if let Some(silence) = keep_trying {
        options.keep_trying = seconds(silence)?;
    }
    let work = move |teller: Teller<News>| {
        let source = Arc::new(Source::open(&paths)?);
        options.notify = notify(&teller);
        let total_bytes = source.file_bytes();
        let on_progress = {
            let teller = teller.clone();
            move |now: &SendProgress| {
                let rate = Some(now.rate_bits_per_s);
                let (rtt, loss, limit) = (Some(now.rtt_us), Some(now.loss), Some(limit_name(now.limit)));
                let there = now.confirmed_bytes.min(total_bytes);
                teller.tell_if_heard(News::Progress(there, total_bytes, rate, rtt, loss, limit));
            }
        };
        let sent = match &ticket {
            Some(ticket) => send(&source, ticket, &options, on_progress),
            None => {
                let listener = listening(listen, |at| SendListener::bind(at, expires))?;
                teller.tell(News::Ticket(listener.ticket.word().to_string()));
                listener.send(&source, &options, on_progress)
            }
        };
        sent.map(|report| (source, report))
    };
    let hear = |news| hear(py, news, on_ticket, progress);
    let (source, report) = watched(py, "grebe-send", &cancel, TO_THE_END, work, hear)?.map_err(error_of)?;
    sent(py, &source, &report)
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
    let asked = accept.map(Asked::new);
    let mut options = ReceiveOptions {
        overwrite,
        asks: asked.is_some(),
        answer_within: seconds(answer_within)?,
        cancel: cancel.clone(),
        ..ReceiveOptions::default()
    };
    if let Some(silence) = keep_trying {
        options.keep_trying = seconds(silence)?;
    }
    options.accept = asked.clone().map(|asked| {
        let accept: grebe_transfer::Accept = Arc::new(move |offered: &Offered| asked.ask(offered));
        accept
    });
    let work = move |teller: Teller<News>| {
        options.notify = notify(&teller);
        let on_progress = {
            let teller = teller.clone();
            move |now: &ReceiveProgress| {
                let news = News::Progress(now.received_bytes, now.total_bytes, None, now.rtt_us, None, None);
                teller.tell_if_heard(news);
            }
        };
        match &ticket {
            Some(ticket) => receive(ticket, &directory, &options, on_progress),
            None => {
                let listener = listening(listen, |at| ReceiveListener::bind(at, expires))?;
                teller.tell(News::Ticket(listener.ticket.word().to_string()));
                listener.receive(&directory, &options, on_progress)
            }
        }
    };
    let hear = |news| hear(py, news, on_ticket, progress);
    let received = watched(py, "grebe-receive", &cancel, TO_THE_END, work, hear)?;
    if let Some(error) = asked.and_then(|asked| asked.take_error()) {
        return Err(error);
    }
    report_of(py, &received.map_err(error_of)?)
}

/// A function of Python's that says whether an offer is taken, and what it raised.
#[derive(Clone)]
struct Asked(Arc<(Py<PyAny>, std::sync::Mutex<Option<PyErr>>)>);

impl Asked {
    fn new(accept: Py<PyAny>) -> Self {
        Self(Arc::new((accept, std::sync::Mutex::new(None))))
    }

    /// In the transfer's own thread.
    fn ask(&self, offered: &Offered) -> bool {
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

fn sent<'py>(py: Python<'py>, source: &Source, report: &SendReport) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let counters = &report.counters;
    dict.set_item("names", source.names())?;
    dict.set_item("files", source.files())?;
    dict.set_item("bytes", report.file_bytes)?;
    dict.set_item("resumed_bytes", report.resumed_bytes)?;
    dict.set_item("left_out", left_out(source.left_out().iter().chain(&report.left_out)))?;
    dict.set_item("whole", !report.is_partial && source.left_out().is_empty())?;
    dict.set_item("peer", report.peer.to_string())?;
    dict.set_item("seconds", report.took.as_secs_f64())?;
    dict.set_item("wire_bytes", counters.wire_bytes)?;
    dict.set_item("packets", counters.packets)?;
    dict.set_item("lost", counters.lost.saturating_sub(counters.late))?;
    Ok(dict)
}

fn report_of<'py>(py: Python<'py>, report: &ReceiveReport) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("paths", &report.paths)?;
    dict.set_item("bytes", report.content_bytes)?;
    dict.set_item("resumed_bytes", report.resumed_bytes)?;
    dict.set_item("left_out", left_out(report.left_out.iter()))?;
    let renamed: Vec<_> = report.renamed.iter().map(|it| (it.name.clone(), it.path.clone())).collect();
    dict.set_item("renamed", renamed)?;
    dict.set_item("peer", report.peer.to_string())?;
    dict.set_item("seconds", report.took.as_secs_f64())?;
    Ok(dict)
}

fn left_out<'a>(left_out: impl Iterator<Item = &'a LeftOut>) -> Vec<(PathBuf, String)> {
    left_out.map(|it| (it.path.clone(), it.why.to_string())).collect()
}

fn ticket_of(word: &str) -> PyResult<Ticket> {
    Ticket::from_word(word, Purpose::Transfer).map_err(|error| Kind::Usage.error(error.to_string()))
}

fn address_of(text: &str) -> PyResult<SocketAddr> {
    text.parse().map_err(|_| no_address(text))
}

/// Where that was said, else at every address of this host.
fn listening<T>(
    at: Option<SocketAddr>,
    bind: impl Fn(SocketAddr) -> Result<T, Error>,
) -> Result<T, Error> {
    at.map_or_else(|| listen_anywhere(0, &bind), &bind)
}

pub(crate) fn no_address(text: &str) -> PyErr {
    Kind::Usage.error(format!("listen={text:?}: give an address and a port, such as \"0.0.0.0:0\" or \"[::]:0\""))
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
    let kind = match &error {
        Error::NoAnswer { .. }
        | Error::Relay { .. }
        | Error::Silent { .. }
        | Error::Ended { .. }
        | Error::Expired => Kind::Gone,
        Error::Ticket { .. } => Kind::Usage,
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
