//! The `grebe` command.
fn main() {}
