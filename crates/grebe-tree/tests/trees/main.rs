//! Trees that a seed makes, copied by every way and compared to the last bit; copies that are cut off anywhere, and what is then begun
//! again; what cannot be copied, and that nothing else suffers from it.

mod ends;
mod generate;
mod offers;
mod semantics;
mod stories;
#[cfg(unix)]
mod unix;
