//! Tests generated trees: copies in every way, compared bit by bit; copies cut at any point and resumed;
//! names that cannot be copied and must not affect others.

mod ends;
mod generate;
mod offers;
mod semantics;
mod stories;
#[cfg(unix)]
mod unix;
