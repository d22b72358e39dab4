//! Metrics over HTTP, as last updated by the relay's thread.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use grebe_metrics::{Listener, Page};

use crate::error::{Error, Result};
use crate::proto::relay::Figures;

/// Metrics page, served until it is dropped.
pub(crate) struct Metrics {
    pub(crate) address: SocketAddr,
    figures: Arc<Mutex<Figures>>,
    _page: Page,
}

impl Metrics {
    /// # Errors
    /// [`Error::Metrics`] if it cannot listen at the address.
    pub(crate) fn listen(address: SocketAddr, name: Option<String>) -> Result<Self> {
        let failed = |source| Error::Metrics { address, source };
        let figures = Arc::new(Mutex::new(Figures::default()));
        let told = Arc::clone(&figures);
        let figures_now = move || told.lock().unwrap_or_else(PoisonError::into_inner).families();
        let page =
            Listener::bind(address).and_then(|it| it.named(name).serve(figures_now)).map_err(failed)?;
        Ok(Self { address: page.address(), figures, _page: page })
    }

    /// Updates the page.
    pub(crate) fn tell(&self, figures: Figures) {
        *self.figures.lock().unwrap_or_else(PoisonError::into_inner) = figures;
    }
}
