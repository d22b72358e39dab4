//! What the two ends of a graph tell each other: the first line in JSON through `ssh`, and then words between the samples.
//!
//! ```text
//!  this end                             the end that ssh started
//!    Hello       ==first line==>          its part of the graph, and which ways there are for the samples
//!                <=its first line= Ready  it is a graph there, too
//!    Build       ==>            Built     its stages are open
//!    Start       ==>            Counts    four times a second
//!    Stop, End   ==>            Ended     with the last counters
//! ```

use grebe_flow::Snapshot;
use grebe_transfer::Mode;
use serde::{Deserialize, Serialize};

use crate::cli::Via;
use crate::command::cp::lines::{Meet, mode_name, via_name};
use crate::command::cp::there::Call;

/// Changes with what these lines mean, and with what passes over a link.
pub(super) const PROTOCOL: u32 = 1;

pub(super) const JOINS: Call = Call { arguments: "run --serve", protocol: PROTOCOL, does: "joins graphs" };

/// The first line: what the other end is to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) protocol: u32,
    pub(super) version: String,
    /// What the graph is called, for those who look on there.
    pub(super) name: String,
    /// Its part of the graph, as a file.
    pub(super) part: String,
    pub(super) meet: Meet,
    #[serde(with = "via_name")]
    pub(super) via: Via,
    #[serde(with = "mode_name")]
    pub(super) mode: Mode,
    pub(super) limit_bits_per_s: Option<f64>,
}

/// What the end that was asked to run the graph says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ToThere {
    /// Open everything.
    Build,
    Start,
    /// End the sources, and go on with what is under way.
    Stop,
    /// End everything soon.
    End,
}

/// What the other end says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ToHere {
    /// What a person should know.
    Note(String),
    Built,
    Counts(Snapshot),
    Ended {
        counts: Snapshot,
        failed: Option<Failed>,
    },
}

/// Why it could not, and the exit status of that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Failed {
    pub(super) why: String,
    pub(super) status: u8,
}

/// As it passes between samples. Nothing in it can fail to be JSON.
pub(super) fn words(of: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(of).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use grebe_flow::StageSnapshot;

    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        for said in [ToThere::Build, ToThere::Start, ToThere::Stop, ToThere::End] {
            assert_eq!(serde_json::from_slice::<ToThere>(&words(&said)).unwrap(), said);
        }
        let stage = StageSnapshot {
            name: "adc".to_owned(),
            frames_out: 7,
            own: vec![("lost_frames".into(), 3), ("clients".into(), 2)],
            own_gauges: vec!["clients".into()],
            ..StageSnapshot::default()
        };
        let counts = Snapshot { at_ns: 5, stages: vec![stage], queues: Vec::new() };
        let failed = Some(Failed { why: "adc: the disk is full".to_owned(), status: 5 });
        let said = words(&ToHere::Ended { counts, failed });
        let Ok(ToHere::Ended { counts, failed: Some(failed) }) = serde_json::from_slice(&said) else {
            panic!("{}", String::from_utf8_lossy(&said))
        };
        assert_eq!((counts.stages[0].own("lost_frames"), failed.status), (Some(3), 5));
        assert_eq!(counts.stages[0].own_gauges, ["clients"]);
    }
}
