//! Opens the scope of a source, the same way for every command. The command gives the settings, the source its properties.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Mutex;

use anyhow::Result;
use grebe_flow::{Graph, QueueOptions, Stage};
use grebe_stages::{OpenSource, Uri};
use grebe_view::{RecordingScope, ScopeLink, ScopeStage};

use super::{Failure, Held, Show, Shown, Stoppable, Stored, files};
use crate::command::cp::Fetch;
use crate::generator;
use crate::receiver;

impl Show {
    /// Shows a live source, or a file that is read into the scope, with this much memory for history.
    pub(crate) fn source(self, uri: &Uri, source: OpenSource, history_bytes: usize) -> Result<Shown> {
        let scope = Scope::of_source(source.stage, queue_for(uri), history_bytes);
        let held = Held::of(uri, &scope.link, self.keeper.as_ref());
        let show = Show {
            is_same_boot: self.is_same_boot || uri.traits().is_local,
            file_samples: source.samples,
            finder: Some(held.clone().finder()),
            listener: Some(held.listener()),
            recording: recording_of(uri),
            failure: scope.failure.clone(),
            second_sender: source.second_sender,
            advice: advice(uri, source.address),
            generator: Mutex::new(source.remote.map(generator::remote_of)),
            receiver: Mutex::new(source.tuner.map(receiver::remote_of)),
            ..self
        };
        show.of(scope)
    }

    /// Shows a recording that is read on demand; `fetch` brings it from another host.
    pub(crate) fn stored(self, uri: &Uri, stored: Stored, fetch: Option<Fetch>) -> Result<Shown> {
        let is_incoming = matches!(stored, Stored::Incoming(_));
        let path = recording_of(uri).filter(|_| !is_incoming);
        let held = if matches!(stored, Stored::Ring(_)) { Held::Ring } else { Held::File };
        let show = Show {
            is_same_boot: true,
            is_incoming,
            file_samples: Some(stored.len_samples()),
            progress: stored.progress(),
            failure: fetch.as_ref().map(|fetch| fetch.failure.clone()).unwrap_or_default(),
            finder: path.clone().map(|path| held(path).finder()),
            listener: path.clone().map(|path| held(path).listener()),
            recording: path,
            fetch,
            ..self
        };
        show.of(Scope::of_recording(stored)?)
    }

    /// Shows a remote scope.
    pub(crate) fn link(self, link: ScopeLink) -> Result<Shown> {
        self.check()?;
        Ok(Shown { running: Stoppable::nothing(), link, show: self })
    }

    fn of(self, scope: Scope) -> Result<Shown> {
        self.check()?;
        Ok(Shown { running: Stoppable::new(scope.graph.start()?), link: scope.link, show: self })
    }

    /// Reads a required settings file, so that its errors come before anything runs.
    fn check(&self) -> Result<()> {
        match &self.session {
            Some(path) if self.is_session_required => files::read_session(path).map(drop),
            _ => Ok(()),
        }
    }
}

fn recording_of(uri: &Uri) -> Option<PathBuf> {
    let Uri::File(path) = uri else { return None };
    Some(path.clone())
}

/// Queue of a scope, by its length in batches.
fn queue_for(uri: &Uri) -> fn(usize) -> QueueOptions {
    match uri {
        // A scope must not delay a live stream. A file can wait, and should be shown completely.
        Uri::File(_) => QueueOptions::block,
        // Batches in this queue use memory of the stream, which bounds it (`?memory`). At 1 GS/s this is 130 ms;
        // later frames are dropped.
        _ if uri.traits().is_lent => |batches| QueueOptions::drop_oldest(4 * batches),
        _ => QueueOptions::drop_oldest,
    }
}

/// How to send a stream to the source that the scope waits for.
fn advice(uri: &Uri, address: Option<SocketAddr>) -> Option<String> {
    let to = uri.uri_for_senders(address)?;
    let elsewhere = match address {
        Some(at) if at.ip().is_unspecified() => ", and from another machine with this one's name",
        _ => "",
    };
    Some(format!("grebe sg --to {to}  sends a stream{elsewhere}"))
}

/// Source that feeds a scope.
struct Scope {
    graph: Graph,
    link: ScopeLink,
    failure: Failure,
}

impl Scope {
    /// With this much memory for history. `queue` determines what happens if the scope is too slow.
    fn of_source(source: Box<dyn Stage>, queue: fn(usize) -> QueueOptions, history_bytes: usize) -> Self {
        let failure = Failure::default();
        let (scope, link) = ScopeStage::new(history_bytes);
        let mut graph = Graph::new();
        let source = graph.add("source", failure.watch(source));
        let scope = graph.add("scope", scope);
        graph.connect(source, scope, queue(QUEUE_BATCHES));
        Self { graph, link, failure }
    }

    /// Scope of a recording, which is read on demand.
    fn of_recording(stored: Stored) -> Result<Self> {
        let (scope, link) = RecordingScope::new(stored.into_recording())?;
        let mut graph = Graph::new();
        graph.add("scope", scope);
        Ok(Self { graph, link, failure: Failure::default() })
    }
}

/// 16 MiB of frames: the lag of a scope before it drops any.
const QUEUE_BATCHES: usize = 256;
