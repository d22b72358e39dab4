//! How much of a shared path to take.

/// How much of a shared path to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// A share like that of the others.
    #[default]
    Fair,
    /// All that the path gives, whatever queue there is.
    Greedy,
    /// What others leave.
    Background,
}
