//! `grebe view`: show a stream.

use std::time::Duration;

use anyhow::Result;
use grebe_flow::{Graph, QueueOptions, Stage};
use grebe_shm::Policy;
use grebe_stages::{DATAGRAM_BYTES_MAX, FileSource, FileSourceOptions, Uri};
use grebe_view::{PngOptions, ScopeStage, ThemeChoice};

use super::Ending;
use crate::cli::{self, View};
use crate::face::{self, Face, Show};
use crate::{command, stream};

pub fn run(options: &View) -> Result<Ending> {
    let is_file = matches!(options.uri, Uri::File(_));
    let (source, span_s) = source(options)?;
    let face = match &options.png {
        Some(path) => Face::Png(PngOptions {
            width: options.size.0,
            height: options.size.1,
            // A file is read up to there, and its end takes the picture.
            after: if is_file { WHOLE_FILE } else { options.after.unwrap_or(AFTER) },
            ..PngOptions::new(path)
        }),
        None if options.term => Face::Terminal,
        None => Face::Window,
    };
    // A live stream is never held up by its scope; a file can wait, and should be seen whole.
    let policy = if is_file { QueueOptions::block } else { QueueOptions::drop_oldest };
    let (scope, link) = ScopeStage::new(HISTORY_BYTES);
    let mut graph = Graph::new();
    let source = graph.add_boxed("source", source);
    let scope = graph.add("scope", scope);
    graph.connect(source, scope, policy(QUEUE_BATCHES));
    let show = Show {
        face,
        name: options.uri.to_string(),
        is_same_boot: !matches!(&options.uri, Uri::Udp(_)),
        span_s: options.span.map(|span| span.as_secs_f64()).or(span_s),
        theme: theme(options.theme),
    };
    face::show(graph.start()?, &link, show)
}

/// The source, and the span that suits it.
fn source(options: &View) -> Result<(Box<dyn Stage>, Option<f64>)> {
    Ok(match &options.uri {
        Uri::Udp(_) => (Box::new(stream::udp_source(&options.uri, &options.transport)?), None),
        Uri::Shm(shm) => (Box::new(stream::shm_source(shm, Policy::DropOldest, "view")?), None),
        Uri::Pipe => (stream::pipe_source()?, None),
        Uri::Synth => (Box::new(command::sg::default_source(&options.transport, DATAGRAM_BYTES_MAX)?), None),
        Uri::File(path) => {
            let mut source = FileSource::open(path)?;
            source.notes().iter().for_each(|note| eprintln!("grebe: {note}"));
            let samples = options.after.map(|after| (after.as_secs_f64() * source.sample_rate_hz()) as u64);
            let shown = samples.unwrap_or(u64::MAX).min(source.len_samples());
            let span_s = (options.png.is_some() && source.sample_rate_hz() > 0.0)
                .then(|| shown as f64 / source.sample_rate_hz());
            source.set(FileSourceOptions { samples, ..FileSourceOptions::default() });
            (Box::new(source), span_s)
        }
    })
}

pub fn theme(theme: cli::Theme) -> ThemeChoice {
    match theme {
        cli::Theme::Dark => ThemeChoice::Dark,
        cli::Theme::Light => ThemeChoice::Light,
    }
}

/// The history a scope keeps.
pub const HISTORY_BYTES: usize = 512 << 20;
/// 16 MiB of frames: what a scope may be late by before it loses any.
pub const QUEUE_BATCHES: usize = 256;
const AFTER: Duration = Duration::from_secs(2);
const WHOLE_FILE: Duration = Duration::from_secs(24 * 3600);
