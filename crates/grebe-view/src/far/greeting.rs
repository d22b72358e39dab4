//! How a viewer comes in: what it says first, or why it has to go.

use super::asked::{Asked, Hello, PageHello};
use super::told::Said;
use super::{FarMessage, PROTOCOL};

/// What a viewer said first.
#[derive(Debug, Clone, PartialEq)]
pub struct Greeting {
    /// What lets it in, as it says.
    pub token: String,
    /// The program and its version, as it says.
    pub program: String,
    /// Which of the server's sources it wants to see, from 1.
    pub source: usize,
    pub(super) pictures_per_s: f64,
    pub(crate) page: Option<PageHello>,
}

impl Greeting {
    /// Whether it is a page, whose model is kept here.
    pub fn is_page(&self) -> bool {
        self.page.is_some()
    }
}

/// Why a viewer is sent away, in words for the person there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

impl Refusal {
    /// The message that says so.
    pub fn message(&self) -> FarMessage {
        Said::Refused(self.0.clone()).message()
    }
}

/// Reads the first message of a viewer.
///
/// # Errors
/// It is none, or of another protocol.
pub fn greeting(text: &str) -> Result<Greeting, Refusal> {
    let asked = serde_json::from_str(text)
        .map_err(|error| Refusal(format!("no greeting was understood: {error}")))?;
    let Asked::Hello(Hello { protocol, token, program, pictures_per_s, source, page }) = asked else {
        return Err(Refusal("the first message has to be a hello".into()));
    };
    if protocol != PROTOCOL {
        return Err(Refusal(format!(
            "this server speaks protocol {PROTOCOL} and the viewer {protocol}: use the same version of grebe at both ends"
        )));
    }
    Ok(Greeting { token, program, source, pictures_per_s, page })
}
