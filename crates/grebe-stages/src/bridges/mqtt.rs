//! A topic of an MQTT broker, `mqtt://HOST:PORT/TOPIC?format=...`: payloads of samples, or of lines of numbers.

#[cfg(feature = "mqtt")]
mod session;
mod uri;

pub use uri::Mqtt;

use std::fmt;

use grebe_flow::Kinds;

use crate::kind::stream_kinds;
use crate::scheme::{Scheme, Traits};
#[cfg(feature = "mqtt")]
use {
    crate::error::Error,
    crate::open::{Notice, Notify, OpenSink, OpenSource, SinkOptions, SourceOptions},
    crate::scheme::End,
    session::Session,
};

impl Scheme for Mqtt {
    const WRITTEN: &'static str = "mqtt://HOST:PORT/TOPIC?format=...";
    const OTHERWISE: &'static str = "is not an MQTT topic: write mqtt://HOST:PORT/TOPIC?format=text";
    const ABSENT: Option<&'static str> = if cfg!(feature = "mqtt") { None } else { Some("mqtt") };

    fn parse(name: &str) -> Option<Result<Self, String>> {
        name.strip_prefix("mqtt://").map(Self::parse)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.place(), self.pairs())
    }

    fn traits(&self) -> Traits {
        Traits::LIVE
    }

    #[cfg(feature = "mqtt")]
    fn open_source(&self, options: SourceOptions, notify: Notify<'_>) -> Result<OpenSource, Error> {
        let (mqtt, patience) = (self.clone(), options.patience(self.end.reconnects));
        let open = move |cancel: &_| Session::open(&mqtt, End::Source, cancel);
        let source = self.payload.open_source(self.place(), &options, &patience, notify, open)?;
        notify(Notice::UnseenLoss(
            "payloads have no sequence numbers: drops of the broker for a slow reader",
        ));
        Ok(source)
    }

    #[cfg(feature = "mqtt")]
    fn open_sink(&self, options: &SinkOptions, notify: Notify<'_>) -> Result<OpenSink, Error> {
        let mqtt = self.clone();
        let open = move |cancel: &_| Session::open(&mqtt, End::Sink, cancel);
        self.payload.open_sink(self.place(), options, self.end.reconnects, notify, open)
    }

    fn kinds(kinds: &mut Kinds) {
        kinds.add::<MqttIn>().add::<MqttOut>();
    }
}

stream_kinds! {
    /// Subscribes to a topic of an MQTT broker.
    source MqttIn = "mqtt_in" of Mqtt {
        /// The broker, the topic and the format of payloads: mqtt://HOST:PORT/TOPIC?format=text, or samples:
        /// ?format=i16&rate=1k.
        uri,
        /// Ends after this many samples per channel.
        samples,
        /// Fails after this long without samples.
        idle_timeout,
    }

    /// Publishes a stream under a topic of an MQTT broker.
    sink MqttOut = "mqtt_out" of Mqtt {
        /// The broker, the topic and the format of payloads: mqtt://HOST:PORT/TOPIC?format=text. With &qos=1 the broker
        /// confirms each.
        uri,
    }
}
