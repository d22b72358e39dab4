//! Counters of a relay, and their Prometheus format.

use grebe_metrics::Families;

/// Totals of a relay since its start, and its present state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    /// Sessions with at least one end.
    pub sessions: u64,
    /// Sessions with both ends.
    pub relaying: u64,
    /// Forwarded datagrams.
    pub relayed_datagrams: u64,
    /// Forwarded bytes, without UDP and lower headers.
    pub relayed_bytes: u64,
    /// Datagrams from unknown addresses.
    pub dropped_of_strangers: u64,
    /// Datagrams for an absent end.
    pub dropped_while_alone: u64,
    /// Datagrams beyond the rate of a session, or of the relay.
    pub dropped_over_rate: u64,
    /// Datagrams that the system failed to send.
    pub dropped_unsent: u64,
    /// Datagram buffers lost to a full receive buffer, as far as the system reports it.
    pub dropped_in_kernel: u64,
    /// Datagrams that an end's TCP connection was too slow to accept.
    pub dropped_of_slow: u64,
    /// Open TCP connections.
    pub connections: u64,
    /// Connections that the relay closed: for invalid data, without a ticket holder in time, without
    /// progress, or for lack of room.
    pub closed_connections: u64,
    /// Valid questions.
    pub questions: u64,
    /// Questions without proof of their address, which got a cookie.
    pub challenges: u64,
    /// Malformed messages.
    pub malformed: u64,
    /// Questions whose signature is not of the ticket.
    pub forged: u64,
    /// Replayed questions.
    pub replayed: u64,
    /// Questions beyond the rate of a host, or of the relay.
    pub over_question_rate: u64,
    /// Refused ends.
    pub refused: u64,
    /// Ends forgotten for their silence.
    pub idle_ends: u64,
}

impl Figures {
    /// Metric families, whose `Display` is the text format of Prometheus.
    ///
    /// ```
    /// let text = grebe_relay::Figures::default().families().to_string();
    /// assert!(text.contains("\ngrebe_relay_sessions 0\n"));
    /// ```
    pub fn families(&self) -> Families {
        let mut all = Families::default();
        all.gauge("grebe_relay_sessions", "Sessions with at least one end.", &[], self.sessions);
        all.gauge("grebe_relay_sessions_with_both_ends", "Sessions with both ends.", &[], self.relaying);
        let help = "TCP connections, of ends without UDP.";
        all.gauge("grebe_relay_connections", help, &[], self.connections);
        let mut count = |name: &str, help: &str, value: u64| {
            all.counter(&format!("grebe_relay_{name}_total"), help, &[], value);
        };
        count("relayed_datagrams", "Datagrams forwarded.", self.relayed_datagrams);
        count("relayed_bytes", "Bytes of payload forwarded.", self.relayed_bytes);
        count("questions", "Requests of ends.", self.questions);
        count("challenges", "Requests without a proof of their address.", self.challenges);
        count("refused", "Refused ends.", self.refused);
        let help = "Connections closed for an invalid message, for silence, or for reading too slowly.";
        count("closed_connections", help, self.closed_connections);
        count("idle_ends", "Ends forgotten because they were silent.", self.idle_ends);
        let dropped = [
            ("stranger", self.dropped_of_strangers),
            ("alone", self.dropped_while_alone),
            ("rate", self.dropped_over_rate),
            ("unsent", self.dropped_unsent),
            ("kernel", self.dropped_in_kernel),
            ("slow", self.dropped_of_slow),
        ];
        let help = "Datagrams not forwarded, by reason; the kernel's are buffers of one or several.";
        for (reason, value) in dropped {
            all.counter("grebe_relay_dropped_datagrams_total", help, &[("reason", reason)], value);
        }
        let ignored = [
            ("malformed", self.malformed),
            ("forged", self.forged),
            ("replayed", self.replayed),
            ("rate", self.over_question_rate),
        ];
        let help = "Requests dropped without an answer, by reason.";
        for (reason, value) in ignored {
            all.counter("grebe_relay_ignored_questions_total", help, &[("reason", reason)], value);
        }
        all
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
        let text = figures.families().to_string();
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
        assert_eq!(scrape.samples.len(), 20, "every figure stands there once");
        assert_eq!(scrape.docs.len(), 12, "and says what it is");
    }
}
