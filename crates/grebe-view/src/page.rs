//! The scope in a browser: its model runs here, beside the samples; the page draws and reports events.
//!
//! ```text
//!   page --keys, actions, pointer--> PageSession { ViewModel <--pictures-- ViewerSession <-- ScopeLink }
//!        <--words, tables, ticks; columns as of any viewer--
//! ```
//!
//! The page has no rules and no units: texts come from here, and each button comes with the action that a press sends back.

mod drawn;
mod panes;
mod requests;
mod session;
#[cfg(test)]
mod tests;
mod view;
mod words;

pub use session::PageSession;
