//! Overflow policy of a queue.

use std::fmt;
use std::str::FromStr;

/// Reaction of a full queue to the next value.
///
/// In options, graph files and reports the names are `block`, `drop_oldest` and `drop_latest`.
///
/// ```
/// use grebe_ring::Policy;
///
/// assert_eq!("drop_oldest".parse(), Ok(Policy::DropOldest));
/// assert_eq!(Policy::Block.to_string(), "block");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Policy {
    /// The producer waits. Nothing is lost; a slow consumer slows its producer.
    Block,
    /// The oldest queued value is evicted: the consumer sees the newest.
    DropOldest,
    /// The new value is dropped: the consumer sees the oldest.
    DropLatest,
}

impl Policy {
    /// All policies.
    pub const ALL: [Policy; 3] = [Policy::Block, Policy::DropOldest, Policy::DropLatest];

    /// Name in options, graph files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Block => "block",
            Policy::DropOldest => "drop_oldest",
            Policy::DropLatest => "drop_latest",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        let found = Policy::ALL.into_iter().find(|policy| policy.name() == text);
        found.ok_or_else(|| UnknownPolicy(text.to_owned()))
    }
}

/// Unknown policy name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownPolicy(String);

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown queue policy '{}': use block, drop_oldest or drop_latest", self.0)
    }
}

impl std::error::Error for UnknownPolicy {}
