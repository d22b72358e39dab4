//! Radios behind SoapySDR: the built command, and a module of our own that counts, loses and fails as it is told.
#![cfg(target_os = "linux")]

mod devices;
mod radio;
mod receiving;
mod remote;
mod sending;
mod tuning;
