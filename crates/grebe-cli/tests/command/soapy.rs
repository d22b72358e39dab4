//! Radios through SoapySDR: the built command, and a module that counts, loses and fails on request.
#![cfg(target_os = "linux")]

mod devices;
mod radio;
mod receiving;
mod remote;
mod sending;
mod tuning;
