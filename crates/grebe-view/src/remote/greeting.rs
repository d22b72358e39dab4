//! The first message of a viewer: its greeting, or the refusal that answers it.

use super::replies::Reply;
use super::requests::{Hello, PageHello, Request};
use super::{PROTOCOL, ScopeMessage};

/// A viewer's greeting.
#[derive(Debug, Clone, PartialEq)]
pub struct Greeting {
    /// Its token.
    pub token: String,
    /// Its program and version.
    pub program: String,
    /// The requested source, counted from 1.
    pub source: usize,
    pub(super) pictures_per_s: f64,
    pub(crate) page: Option<PageHello>,
}

impl Greeting {
    /// Whether the viewer is a page, whose model the server keeps.
    pub fn is_page(&self) -> bool {
        self.page.is_some()
    }
}

/// Reason why the server rejects a viewer, in words for the person there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

impl Refusal {
    /// The message that carries the reason.
    pub fn message(&self) -> ScopeMessage {
        Reply::Refused(self.0.clone()).message()
    }
}

/// Reads the first message of a viewer.
///
/// # Errors
/// If the text is not a greeting, or of another protocol version.
pub fn greeting(text: &str) -> Result<Greeting, Refusal> {
    let asked = serde_json::from_str(text)
        .map_err(|error| Refusal(format!("no greeting was understood: {error}")))?;
    let Request::Hello(Hello { protocol, token, program, pictures_per_s, source, page }) = asked else {
        return Err(Refusal("the first message has to be a hello".into()));
    };
    if protocol != PROTOCOL {
        return Err(Refusal(format!(
            "this server speaks protocol {PROTOCOL} and the viewer {protocol}: use the same version of grebe at both ends"
        )));
    }
    Ok(Greeting { token, program, source, pictures_per_s, page })
}
