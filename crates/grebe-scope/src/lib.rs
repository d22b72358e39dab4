//! Signal to picture numbers.
