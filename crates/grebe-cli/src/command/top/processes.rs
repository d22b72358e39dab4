//! Which processes are shown.

use anyhow::Result;
use grebe_flow::telemetry::{Watch, Watched};

/// The processes that publish and that were asked for.
pub(super) struct Processes {
    watch: Watch,
    /// A name or a process id; nothing: all.
    of: Option<String>,
}

impl Processes {
    pub(super) fn new(of: Option<String>) -> Result<Self> {
        Ok(Self { watch: Watch::new()?, of })
    }

    pub(super) fn look(&mut self) -> Vec<Watched> {
        let mut all = self.watch.look();
        if let Some(of) = &self.of {
            all.retain(|one| is_asked_for(of, one.pid, &one.name));
        }
        all
    }

    pub(super) fn nobody(&self) -> String {
        let who = self.of.as_ref().map_or("grebe".to_owned(), |of| format!("grebe called '{of}'"));
        format!("no {who} is running under this user; start one, for example: grebe sg --rate 1M")
    }
}

/// `sg` asks for `sg`, and for the second graph of a process, `sg-2`.
fn is_asked_for(of: &str, pid: u32, name: &str) -> bool {
    let number = name.strip_prefix(of).and_then(|rest| rest.strip_prefix('-'));
    of == pid.to_string() || of == name || number.is_some_and(|number| number.parse::<u32>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_asked_for_by_id_or_name() {
        assert!(
            is_asked_for("42", 42, "sg") && is_asked_for("sg", 42, "sg") && is_asked_for("sg", 42, "sg-2")
        );
        assert!(
            !is_asked_for("4", 42, "sg") && !is_asked_for("sg", 42, "sgx") && !is_asked_for("s", 42, "sg")
        );
    }
}
