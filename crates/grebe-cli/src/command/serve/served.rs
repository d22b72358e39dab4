//! Sources of a server.

use std::sync::PoisonError;

use anyhow::{Context as _, Result};
use grebe_shm::Policy;
use grebe_stages::{SourceOptions, Uri, open_source};
use grebe_view::{ChannelMeaning, ScopeOffer, SharedControls, SourceControls};

use crate::cli::Serve;
use crate::command::view::settings::setups;
use crate::graph::print_notice;
use crate::interrupt;
use crate::show::{RingSaver, Show, Shown, Stored, newest_of_folder};

/// Opens a source with its scope.
pub(super) fn open(uri: &Uri, options: &Serve) -> Result<Shown> {
    let mut uri = uri.clone();
    newest_of_folder(&mut uri);
    let uri = &uri;
    let keeper = RingSaver::of_stream(uri, options.ring.as_deref(), options.last).map(RingSaver::for_others);
    let show = Show { command: "serve", name: uri.to_string(), keeper, ..Show::default() };
    let _insisting = interrupt::insist();
    let history_bytes = options.history / options.uris.len();
    if let Uri::File(path) = uri
        && let Some(stored) = Stored::open(path, history_bytes)?
    {
        stored.print_notes();
        return show.stored(uri, stored, None);
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
    show.source(uri, source, history_bytes)
}

/// Offer of a source to viewers.
pub(super) fn offer(shown: &Shown, options: &Serve) -> Result<ScopeOffer> {
    let channels = setups(&options.labels)?.into_iter();
    Ok(ScopeOffer {
        name: shown.show.name.clone(),
        program: concat!("grebe ", env!("CARGO_PKG_VERSION")).to_owned(),
        channels: channels
            .map(|it| ChannelMeaning { name: it.name, unit: it.unit, scale: it.scale, offset: it.offset })
            .collect(),
        controls: controls(shown),
        finder: shown.show.finder.clone(),
        listener: shown.show.listener.clone(),
        ..ScopeOffer::default()
    })
}

/// Controls for viewers with the right to control.
fn controls(shown: &Shown) -> SharedControls {
    let Show { generator, receiver, keeper, .. } = &shown.show;
    SharedControls::new(SourceControls {
        generator: generator.lock().unwrap_or_else(PoisonError::into_inner).take(),
        receiver: receiver.lock().unwrap_or_else(PoisonError::into_inner).take(),
        keeper: keeper.as_ref().map(RingSaver::for_scope),
        annotator: Some(shown.annotator()),
    })
}

pub(super) fn stop(shown: Vec<Shown>) -> Result<()> {
    for shown in shown {
        // The stream's own error explains an empty scope.
        shown.running.stop().with_context(|| format!("the stream {} failed", shown.show.name))?;
    }
    Ok(())
}
