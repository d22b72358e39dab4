//! This process's session in a lab.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use zenoh::{Session, Wait};

use super::failure::why;
use super::{config, refusal};
use crate::error::Error;
use crate::name::StreamName;
use crate::options::SessionOptions;

/// This process's session in a lab. Clones share it, and so do the objects made from one. The last of them closes it.
#[derive(Debug, Clone)]
pub struct Lab(pub(super) Arc<Joined>);

#[derive(Debug)]
pub(super) struct Joined {
    pub(super) session: Session,
    pub(super) reach: String,
    pub(super) options: SessionOptions,
    /// Whether all messages pass a router, which may drop some.
    pub(super) has_router: bool,
    /// Streams that this process sends or reads by name, with their number of uses.
    uses: Mutex<BTreeMap<StreamName, usize>>,
}

/// Registers a stream that this process sends or reads, until it is dropped.
#[derive(Debug)]
pub struct Using {
    name: StreamName,
    lab: Lab,
}

impl Lab {
    /// Joins the lab. Takes until a router answers, or half a second to find other hosts.
    ///
    /// # Errors
    /// An invalid configuration, or a router that does not answer or refuses this process.
    pub fn open(options: &SessionOptions) -> Result<Self, Error> {
        let reach = options.reach();
        let config = config::of(options)?;
        let has_router = config.get_json("mode").is_ok_and(|mode| mode == "\"client\"");
        // A configuration file sets its own timeout.
        let tries_on = !options.routers.is_empty() && options.config.is_none();
        let until = Instant::now() + if tries_on { ROUTER_WITHIN } else { Duration::ZERO };
        loop {
            let (session, warnings) = refusal::warnings_of(|| zenoh::open(config.clone()).wait());
            let error = match session {
                Ok(session) => {
                    return Ok(Self(Arc::new(Joined {
                        session,
                        reach,
                        options: options.clone(),
                        has_router,
                        uses: Mutex::default(),
                    })));
                }
                Err(error) => error,
            };
            let reason = refusal::reason(&warnings);
            if Instant::now() >= until || reason.as_ref().is_some_and(|reason| reason.is_final) {
                let why = reason.map_or_else(|| why(error), |reason| reason.why);
                return Err(Error::Join { reach, why });
            }
            std::thread::sleep(RETRY_EVERY);
        }
    }

    /// The session that this process shares, opened with the options of [`configure`](crate::configure) if needed.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn shared() -> Result<Self, Error> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(joined) = shared.upgrade() {
            return Ok(Self(joined));
        }
        let lab = Self::open(&SessionOptions::of_this_process())?;
        *shared = Arc::downgrade(&lab.0);
        Ok(lab)
    }

    /// The [shared](Self::shared) session, if open.
    pub fn joined() -> Option<Self> {
        SHARED.lock().unwrap_or_else(PoisonError::into_inner).upgrade().map(Self)
    }

    /// Scope of a search, for messages.
    pub fn reach(&self) -> &str {
        &self.0.reach
    }

    /// Scope of a search without a result, for messages.
    pub fn looked_by(&self) -> String {
        let doubt =
            if self.0.has_router { ", whose access control may hide streams from this user" } else { "" };
        format!("{}{doubt}", self.0.reach)
    }

    /// This process's id in the lab, part of the keys of its announcements.
    pub fn id(&self) -> String {
        self.0.session.zid().to_string()
    }

    /// Key of the frames of a stream that this process announces.
    pub fn data_key(&self, name: &StreamName) -> String {
        data_key(&self.id(), name)
    }

    /// Whether this process takes part in datagrams on request
    /// ([`SessionOptions::no_udp_on_request`](crate::SessionOptions::no_udp_on_request)).
    pub fn has_udp_on_request(&self) -> bool {
        !self.0.options.no_udp_on_request
    }

    /// Registers a stream that this process sends or reads, by which viewers of its counts find it.
    pub fn using(&self, name: &StreamName) -> Using {
        *self.0.uses().entry(name.clone()).or_default() += 1;
        Using { name: name.clone(), lab: self.clone() }
    }

    /// Streams that this process sends or reads by name.
    pub fn uses(&self) -> Vec<StreamName> {
        self.0.uses().keys().cloned().collect()
    }
}

impl Joined {
    fn uses(&self) -> MutexGuard<'_, BTreeMap<StreamName, usize>> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Using {
    fn drop(&mut self) {
        let mut uses = self.lab.0.uses();
        if let Some(count) = uses.get_mut(&self.name) {
            *count -= 1;
        }
        uses.retain(|_, count| *count > 0);
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        // It is closed in any case.
        let _ = self.session.close().wait();
    }
}

static SHARED: Mutex<Weak<Joined>> = Mutex::new(Weak::new());

/// Timeout for an unreachable router.
const ROUTER_WITHIN: Duration = Duration::from_secs(5);
const RETRY_EVERY: Duration = Duration::from_millis(250);

/// Key of the frames of an announced stream.
pub(crate) fn data_key(session: &str, name: &StreamName) -> String {
    format!("grebe/data/{session}/{name}")
}
