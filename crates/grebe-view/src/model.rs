//! What a person sees and does, without a screen: settings, actions, words and tables. Every front end shows one
//! [`ViewModel`](view_model::ViewModel).

mod act;
pub(crate) mod action;
mod autoset;
pub(crate) mod channel;
pub(crate) mod choices;
pub(crate) mod common_time;
pub(crate) mod controls;
pub(crate) mod fields;
mod first_use;
pub(crate) mod found;
mod framing;
pub(crate) mod generator;
pub(crate) mod harmonics;
pub(crate) mod hud;
pub(crate) mod keep;
pub(crate) mod keys;
mod label_room;
pub(crate) mod lane_ticks;
mod open_file;
pub(crate) mod options;
pub(crate) mod prompt;
pub(crate) mod quantities;
pub(crate) mod readout;
pub(crate) mod receiver;
mod save;
pub(crate) mod segments;
pub(crate) mod session;
pub(crate) mod signals;
pub(crate) mod sources;
pub(crate) mod spectra;
pub(crate) mod told;
mod trigger_time;
mod update;
pub(crate) mod vertical;
pub(crate) mod view_model;
pub(crate) mod xy;
