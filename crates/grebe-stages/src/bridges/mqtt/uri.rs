//! `mqtt://HOST:PORT/TOPIC?...`

use grebe_process::query::{Pairs, Query};

use crate::payload::Payload;
use crate::transport::{HostPort, TcpEnd};

/// A topic of an MQTT broker, as [`Uri::Mqtt`](crate::Uri::Mqtt) names it.
///
/// The query is that of a [`RawStream`](crate::RawStream) over TCP or of a [`TextStream`](crate::TextStream). In
/// addition, `qos=1` makes the broker confirm each payload, and `user=` logs in with the password in
/// `GREBE_MQTT_PASSWORD`.
#[derive(Debug, Clone, PartialEq)]
pub struct Mqtt {
    pub(super) end: TcpEnd,
    pub(super) topic: String,
    pub(super) payload: Payload,
    pub(super) is_confirmed: bool,
    pub(super) user: Option<String>,
}

impl Mqtt {
    /// Parses the part after `mqtt://`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (place, words) = text.split_once('?').unwrap_or((text, ""));
        let (at, topic) = place.split_once('/').unwrap_or((place, ""));
        let mut end = TcpEnd::new(HostPort::parse("mqtt", at)?);
        if !(1..=usize::from(u16::MAX)).contains(&topic.len()) || topic.contains(['+', '#', '\0']) {
            return Err("names no topic: write mqtt://HOST:PORT/TOPIC, without + and #".to_owned());
        }
        let mut query = Query::new(words)?;
        query.refuse(&["listen"], "tcp:// and zmq://: both ends connect to the broker")?;
        let is_confirmed = query.whole("qos", 0..=1)? == Some(1);
        let user = query.text("user", "a name")?;
        end.reconnects = query.flag("reconnect")?;
        let payload = Payload::of_query(&end, words, query)?;
        Ok(Self { end, topic: topic.to_owned(), payload, is_confirmed, user })
    }

    /// The name without its query.
    pub(super) fn place(&self) -> String {
        format!("mqtt://{}/{}", self.end.at, self.topic)
    }

    pub(super) fn pairs(&self) -> Pairs {
        let qos = self.is_confirmed.then_some(1);
        let pairs = self.payload.pairs().add("qos", qos).add("user", self.user.as_ref());
        pairs.flag("reconnect", self.end.reconnects)
    }
}

#[cfg(test)]
mod tests {
    use crate::Uri;

    #[test]
    fn a_name_is_written_as_it_is_read_or_refused_with_its_reason() {
        for text in [
            "mqtt://127.0.0.1:1883/lab/room 7/adc?format=i16be&rate=1000&channels=2&qos=1&reconnect",
            "mqtt://[::1]:1883/$SYS/load?format=text&rate=100&channels=a,b&user=me",
        ] {
            assert_eq!(text.parse::<Uri>().unwrap().to_string(), text);
        }
        for (text, reason) in [
            ("mqtt://host:1/a", "has no format: add"),
            ("mqtt://host:1?format=text", "names no topic"),
            ("mqtt://host:1/a/+/b?format=text", "without + and #"),
            ("mqtt://host:1/a?format=text&qos=2", "give 0 to 1"),
            ("mqtt://host:1/a?format=i16&listen", "listen, which is for tcp://"),
            ("mqtt://host:1/a?format=text&usr=me", "unknown 'usr' - did you mean 'user'?; known: qos, user"),
        ] {
            let error = text.parse::<Uri>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
