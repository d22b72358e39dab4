//! Reason for a router's refusal, which Zenoh only logs.

use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};

use super::failure::without_places;

/// Runs a function, and returns Zenoh's warnings on this thread.
pub(super) fn warnings_of<T>(action: impl FnOnce() -> T) -> (T, Vec<String>) {
    let warnings = Warnings::default();
    let done = tracing::subscriber::with_default(warnings.clone(), action);
    let warnings = std::mem::take(&mut *warnings.lock());
    (done, warnings)
}

/// Reason why no router accepted this process. `None`: the warnings do not tell.
pub(super) fn reason(warnings: &[String]) -> Option<Reason> {
    let mut reasons = warnings.iter().rev().filter_map(|warning| {
        let (_, refused) = warning.strip_prefix("Unable to connect to ")?.split_once("! ")?;
        let refused = without_places(refused);
        (!refused.is_empty()).then_some(refused)
    });
    let refused = reasons.next()?;
    let said = |words: &str| refused.contains(words);
    let (why, is_final) = if said("Received a close message") && said("OpenSyn") {
        (
            "it does not know this user and password (transport/auth/usrpwd of both configurations)"
                .to_owned(),
            true,
        )
    } else if said("Received a close message") && said("InitSyn") {
        ("it requires a user and a password (transport/auth/usrpwd: name a configuration with them by --zenoh FILE)".to_owned(), true)
    } else if let Some((_, wrong)) = refused.split_once("invalid peer certificate: ") {
        (
            format!(
                "its certificate is not accepted: {wrong} (transport/link/tls/root_ca_certificate sets the trusted authority)"
            ),
            true,
        )
    } else {
        let is_final = said("root_ca_certificate_file=");
        (refused, is_final)
    };
    Some(Reason { why, is_final })
}

/// See [`reason`].
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reason {
    pub(super) why: String,
    /// Whether a retry would fail the same way.
    pub(super) is_final: bool,
}

/// Zenoh's warnings.
#[derive(Debug, Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN && metadata.target().starts_with("zenoh")
    }

    fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
        Some(tracing::level_filters::LevelFilter::WARN)
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        let mut warnings = self.lock();
        if warnings.len() < WARNINGS_MAX {
            warnings.push(text.0);
        }
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// Message of an event.
#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

const WARNINGS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_login_says_what_is_wrong() {
        for (warning, why, is_final) in [
            (
                "Received a close message (reason GENERIC) in response to an OpenSyn on: X at /x/open.rs:526.",
                "does not know this user",
                true,
            ),
            (
                "Received a close message (reason 0) in response to an InitSyn on: a => b at /x/open.rs:256.",
                "requires a user and a password",
                true,
            ),
            (
                "Can not create a new TLS link bound to DnsName(\"lab\"): invalid peer certificate: UnknownIssuer at /x/unicast.rs:378.",
                "UnknownIssuer",
                true,
            ),
            (
                "Can not create a new TCP link: [127.0.0.1:1: Connection refused (os error 111) at /x/tcp.rs:105.] at /x/tcp.rs:133.",
                "Connection refused",
                false,
            ),
        ] {
            let warnings = [
                format!("Unable to connect to tls/lab:7447! {warning}"),
                "Unable to connect to any of [x]!  at /x.rs:1.".to_owned(),
            ];
            let reason = reason(&warnings).unwrap();
            assert!(reason.why.contains(why) && !reason.why.contains(".rs"), "{reason:?}");
            assert_eq!(reason.is_final, is_final, "{reason:?}");
        }
        assert_eq!(reason(&[]), None);
    }

    #[test]
    fn warnings_of_zenohs_are_heard_and_nothing_else() {
        let (done, warnings) = warnings_of(|| {
            tracing::warn!(target: "zenoh::net", "no {}", "way");
            tracing::info!(target: "zenoh::net", "hm");
            tracing::warn!(target: "other", "no");
            7
        });
        assert_eq!((done, warnings), (7, vec!["no way".to_owned()]));
    }
}
