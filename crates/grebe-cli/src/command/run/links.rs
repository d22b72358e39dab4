//! Stages for the ends of links: edges that were cut between hosts.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use grebe_flow::{FileStage, Graph, GraphFile, Kinds, LINK_IN, LINK_OUT, Stage};
use grebe_link::edge::{
    Inbox, LinkIn, LinkInKind, LinkOut, LinkOutKind, LinkRoute, Route, Routes, add_kinds,
};
use grebe_ring::Cancel;
use serde::de::Deserialize;

/// All kinds in a part of a graph.
pub(super) fn kinds() -> Kinds {
    let mut kinds = grebe_stages::kinds();
    add_kinds(&mut kinds);
    kinds
}

/// Ends of the links of a part.
#[derive(Default)]
pub(super) struct Ends {
    outs: Vec<u16>,
    ins: HashMap<u16, Arc<Inbox>>,
    /// Last epoch of each link, in a restarted part.
    again: Option<HashMap<u16, u32>>,
}

impl Ends {
    pub(super) fn of(file: &GraphFile) -> Result<Self> {
        let of_kind = |kind: &'static str| file.stages().iter().filter(move |stage| stage.kind == kind);
        let outs = of_kind(LINK_OUT).map(|stage| Ok(params::<LinkOutKind>(stage)?.link));
        let ins = of_kind(LINK_IN).map(|stage| Ok((params::<LinkInKind>(stage)?.link, Arc::default())));
        Ok(Self { outs: outs.collect::<Result<_>>()?, ins: ins.collect::<Result<_>>()?, again: None })
    }

    /// For a restarted part.
    pub(super) fn restarted(self, epochs: Option<Vec<(u16, u32)>>) -> Self {
        Self { again: epochs.map(|epochs| epochs.into_iter().collect()), ..self }
    }

    /// All links that begin or end here.
    pub(super) fn links(&self) -> impl Iterator<Item = u16> {
        self.outs.iter().chain(self.ins.keys()).copied()
    }

    /// Whether this link begins here.
    pub(super) fn has_begin(&self, link: u16) -> bool {
        self.outs.contains(&link)
    }

    /// Destinations of data on a connection that carries some of the links.
    pub(super) fn routes(&self, has: impl Fn(u16) -> bool) -> Routes {
        let outs = self.outs.iter().map(|&link| (link, Route::Out));
        let ins = self.ins.iter().map(|(&link, inbox)| (link, Route::In(inbox.clone())));
        outs.chain(ins).filter(|&(link, _)| has(link)).collect()
    }

    /// Ends the stream of a link.
    pub(super) fn end(&self, link: u16) {
        if let Some(inbox) = self.ins.get(&link) {
            inbox.end();
        }
    }

    /// Ends all streams from other hosts.
    pub(super) fn end_all(&self) {
        self.ins.values().for_each(|inbox| inbox.end());
    }

    /// Opens the part; `lead` has the route of a link.
    pub(super) fn build(
        &self,
        file: &GraphFile,
        cancel: &Cancel,
        notify: &mut dyn FnMut(String),
        lead: impl Fn(u16) -> Option<Arc<LinkRoute>>,
    ) -> Result<Graph> {
        let mut made = |stage: &FileStage| self.stage(stage, &lead);
        Ok(file.build_with(&kinds(), cancel, notify, &mut made)?)
    }

    fn stage(
        &self,
        stage: &FileStage,
        lead: impl Fn(u16) -> Option<Arc<LinkRoute>>,
    ) -> Option<Box<dyn Stage>> {
        match stage.kind.as_str() {
            LINK_OUT => {
                let LinkOutKind { link, window } = params(stage).ok()?;
                Some(Box::new(LinkOut::new(lead(link)?, window, self.again.is_some())))
            }
            LINK_IN => {
                let LinkInKind { link } = params(stage).ok()?;
                let behind = self.again.as_ref().map(|epochs| epochs.get(&link).copied().unwrap_or(0));
                Some(Box::new(LinkIn::new(self.ins.get(&link)?.clone(), lead(link)?, behind)))
            }
            _ => None,
        }
    }
}

fn params<'de, T: Deserialize<'de>>(stage: &FileStage) -> Result<T> {
    T::deserialize(stage.params.clone()).with_context(|| format!("the stage '{}'", stage.id))
}
