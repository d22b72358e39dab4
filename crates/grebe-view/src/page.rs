//! The scope in a browser: its model is here, beside the samples; the page draws and listens.
//!
//! ```text
//!   page --keys, actions, pointer--> PageSession { ViewModel <--pictures-- FarSession <-- ScopeLink }
//!        <--words, tables, ticks; columns as of any viewer--
//! ```
//!
//! The page knows no unit and no rule: what it shows is said here, and what can be pressed comes with the action that it sends back.

mod asked;
mod drawn;
mod panes;
mod session;
#[cfg(test)]
mod tests;
mod view;
mod words;

pub use session::PageSession;
