//! Sources of a server.

use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result};
use grebe_shm::Policy;
use grebe_stages::{Notice, SourceOptions, Uri, open_source};
use grebe_view::{ChannelMeaning, FarOffer, SharedControls, SourceControls};

use crate::cli::Serve;
use crate::command::view::settings::{advice, queue_for, setups};
use crate::generator;
use crate::graph::print_notice;
use crate::interrupt;
use crate::receiver;
use crate::show::{Held, OnDisk, RingSaver, Scope, Show, Shown, Stoppable};

/// Opens a source with its scope.
pub(super) fn open(uri: &Uri, options: &Serve) -> Result<Shown> {
    let keeper = RingSaver::of_stream(uri, options.ring.as_deref(), options.last).map(RingSaver::for_others);
    let show = Show { command: "serve", name: uri.to_string(), keeper, ..Show::default() };
    if let Uri::File(path) = uri
        && let Some(recording) = OnDisk::open(path)?
    {
        recording.file().notes().iter().for_each(|note| print_notice(Notice::Recording(note.clone())));
        let show = Show {
            is_same_boot: true,
            file_samples: Some(recording.file().len_samples()),
            progress: recording.progress(),
            finder: Some(Held::File(path.clone()).finder()),
            ..show
        };
        let scope = Scope::of_recording(recording)?;
        return Ok(Shown { running: Stoppable::new(scope.graph.start()?), link: scope.link, show });
    }
    let from = SourceOptions {
        transport: options.transport.options(),
        reader: "serve".to_owned(),
        policy: Policy::DropOldest,
        waits: true,
        listens_on: true,
        ends_with_writer: true,
        cancel: interrupt::cancel(),
        ..SourceOptions::default()
    };
    let source = open_source(uri, from, &mut print_notice)?;
    let scope = Scope::with_history(source.stage, queue_for(uri), options.history / options.uris.len());
    let show = Show {
        is_same_boot: uri.traits().is_local,
        file_samples: source.samples,
        finder: Some(Held::of(uri, &scope.link, show.keeper.as_ref()).finder()),
        failure: scope.failure,
        second_sender: source.second_sender,
        advice: advice(uri, source.address),
        generator: Mutex::new(source.remote.map(generator::remote_of)),
        receiver: Mutex::new(source.tuner.map(receiver::remote_of)),
        ..show
    };
    Ok(Shown { running: Stoppable::new(scope.graph.start()?), link: scope.link, show })
}

/// Offer of a source to viewers.
pub(super) fn offer(shown: &Shown, options: &Serve) -> Result<FarOffer> {
    let channels = setups(&options.labels)?.into_iter();
    Ok(FarOffer {
        name: shown.show.name.clone(),
        program: concat!("grebe ", env!("CARGO_PKG_VERSION")).to_owned(),
        channels: channels
            .map(|it| ChannelMeaning { name: it.name, unit: it.unit, scale: it.scale, offset: it.offset })
            .collect(),
        controls: controls(shown),
        finder: shown.show.finder.clone(),
        ..FarOffer::default()
    })
}

/// Controls for viewers with the right to control.
fn controls(shown: &Shown) -> SharedControls {
    let Show { generator, receiver, keeper, .. } = &shown.show;
    SharedControls::new(SourceControls {
        generator: generator.lock().unwrap_or_else(PoisonError::into_inner).take(),
        receiver: receiver.lock().unwrap_or_else(PoisonError::into_inner).take(),
        keeper: keeper.as_ref().map(RingSaver::for_scope),
    })
}

pub(super) fn stop(shown: Vec<Shown>) -> Result<()> {
    for shown in shown {
        // The stream's own error explains an empty scope.
        shown.running.stop().with_context(|| format!("the stream {} failed", shown.show.name))?;
    }
    Ok(())
}
