//! What a relay counts, and how Prometheus reads it.

use std::fmt::Write;

/// What a relay has done since it began, and does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    /// Sessions that somebody is there for.
    pub sessions: u64,
    /// Those with both ends.
    pub relaying: u64,
    /// Datagrams that were passed on.
    pub relayed_datagrams: u64,
    /// Their bytes, without headers of UDP and below.
    pub relayed_bytes: u64,
    /// Datagrams from an address that is in no session.
    pub dropped_of_strangers: u64,
    /// Datagrams for an end that is not there.
    pub dropped_while_alone: u64,
    /// Datagrams beyond the rate of a session, or of all.
    pub dropped_over_rate: u64,
    /// Datagrams that the system did not send.
    pub dropped_unsent: u64,
    /// Buffers of datagrams that came while the receive buffer was full, as far as the system says.
    pub dropped_in_kernel: u64,
    /// Questions that could be read.
    pub questions: u64,
    /// Those that had no proof of their address, and got the means to prove it.
    pub challenges: u64,
    /// Messages that could not be read.
    pub malformed: u64,
    /// Questions with a signature that is not of the ticket.
    pub forged: u64,
    /// Questions that had come before.
    pub replayed: u64,
    /// Questions beyond what a host, or all, may ask.
    pub over_question_rate: u64,
    /// Ends that were refused.
    pub refused: u64,
    /// Ends that were forgotten because they were silent.
    pub idle_ends: u64,
}

impl Figures {
    /// In the text format of Prometheus, version 0.0.4.
    ///
    /// ```
    /// let text = grebe_relay::Figures::default().prometheus();
    /// assert!(text.contains("\ngrebe_relay_sessions 0\n"));
    /// ```
    pub fn prometheus(&self) -> String {
        let mut text = String::new();
        let mut family = |name: &str, kind: &str, help: &str, values: &[(&str, u64)]| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "# HELP grebe_relay_{name} {help}\n# TYPE grebe_relay_{name} {kind}");
            for (labels, value) in values {
                let _ = writeln!(text, "grebe_relay_{name}{labels} {value}");
            }
        };
        family("sessions", "gauge", "Sessions that somebody is there for.", &[("", self.sessions)]);
        family("sessions_with_both_ends", "gauge", "Sessions with both ends.", &[("", self.relaying)]);
        family("relayed_datagrams_total", "counter", "Datagrams passed on.", &[("", self.relayed_datagrams)]);
        family("relayed_bytes_total", "counter", "Bytes of payload passed on.", &[("", self.relayed_bytes)]);
        family(
            "dropped_datagrams_total",
            "counter",
            "Datagrams not passed on, by reason; those in the kernel are buffers of one or several.",
            &[
                ("{reason=\"stranger\"}", self.dropped_of_strangers),
                ("{reason=\"alone\"}", self.dropped_while_alone),
                ("{reason=\"rate\"}", self.dropped_over_rate),
                ("{reason=\"unsent\"}", self.dropped_unsent),
                ("{reason=\"kernel\"}", self.dropped_in_kernel),
            ],
        );
        family("questions_total", "counter", "Questions of ends.", &[("", self.questions)]);
        family(
            "challenges_total",
            "counter",
            "Questions without a proof of their address.",
            &[("", self.challenges)],
        );
        family(
            "ignored_questions_total",
            "counter",
            "Questions that changed nothing and got no answer, by reason.",
            &[
                ("{reason=\"malformed\"}", self.malformed),
                ("{reason=\"forged\"}", self.forged),
                ("{reason=\"replayed\"}", self.replayed),
                ("{reason=\"rate\"}", self.over_question_rate),
            ],
        );
        family("refused_total", "counter", "Ends that were refused.", &[("", self.refused)]);
        family(
            "idle_ends_total",
            "counter",
            "Ends forgotten because they were silent.",
            &[("", self.idle_ends)],
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use prometheus_parse::{Scrape, Value};

    use super::*;

    #[test]
    fn a_parser_reads_what_was_counted() {
        let figures =
            Figures { sessions: 3, relayed_bytes: 1 << 60, dropped_over_rate: 7, ..Figures::default() };
        let text = figures.prometheus();
        let lines = text.lines().map(|line| Ok(line.to_owned()));
        let scrape = Scrape::parse(lines).unwrap();
        let value = |name: &str, reason: Option<&str>| {
            let found = scrape
                .samples
                .iter()
                .find(|sample| sample.metric == name && sample.labels.get("reason") == reason)
                .unwrap_or_else(|| panic!("no {name} in {text}"));
            match found.value {
                Value::Counter(value) | Value::Gauge(value) => value,
                ref other => panic!("{name}: {other:?}"),
            }
        };
        assert_eq!(value("grebe_relay_sessions", None), 3.0);
        assert_eq!(value("grebe_relay_relayed_bytes_total", None), (1_u64 << 60) as f64);
        assert_eq!(value("grebe_relay_dropped_datagrams_total", Some("rate")), 7.0);
        assert_eq!(value("grebe_relay_ignored_questions_total", Some("forged")), 0.0);
        assert_eq!(scrape.samples.len(), 17, "every figure stands there once");
        assert_eq!(scrape.docs.len(), 10, "and says what it is");
    }
}
