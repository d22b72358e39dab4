//! A session with a broker, as a byte stream.

use std::io::{self, ErrorKind, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use grebe_ring::Cancel;
use rumqttc::{
    Client, ConnectReturnCode, Connection, ConnectionError, Event, MqttOptions, Outgoing, Packet, QoS,
    SubscribeReasonCode,
};

use super::uri::Mqtt;
use crate::error::Error;
use crate::payload::Messages;
use crate::scheme::End;

/// A session whose thread answers the broker between reads and writes.
pub(super) struct Session {
    client: Client,
    received: Receiver<Received>,
    topic: String,
    qos: QoS,
}

/// A payload. An empty one confirms the last request.
type Received = io::Result<Vec<u8>>;

impl Session {
    /// Connects, and subscribes as a source. Fails if the broker is unreachable, or refuses this user.
    pub(super) fn open(mqtt: &Mqtt, end: End, cancel: &Cancel) -> Result<Self, Error> {
        let address = mqtt.end.at.to_send()?;
        let host = if address.is_ipv6() { format!("[{}]", address.ip()) } else { address.ip().to_string() };
        // The broker chooses the client's name.
        let mut options = MqttOptions::new("", host, address.port());
        options.set_keep_alive(KEEP_ALIVE).set_max_packet_size(PACKET_BYTES_MAX, PACKET_BYTES_MAX);
        if let Some(user) = &mqtt.user {
            options.set_credentials(user, std::env::var("GREBE_MQTT_PASSWORD").unwrap_or_default());
        }
        // One request at a time, and the disconnect.
        let (client, connection) = Client::new(options, 2);
        let (tell, received) = sync_channel(PAYLOADS_MAX);
        let qos = if mqtt.is_confirmed { QoS::AtLeastOnce } else { QoS::AtMostOnce };
        std::thread::spawn(move || answer(connection, qos, &tell));
        let mut session = Self { client, received, topic: mqtt.topic.clone(), qos };
        session.wait(mqtt, cancel)?;
        if end == End::Source {
            // After a lost connection, the next read reports the error. The same holds below.
            let _ = session.client.subscribe(&session.topic, qos);
            session.wait(mqtt, cancel)?;
        }
        Ok(session)
    }

    /// Waits until the request to open is confirmed.
    fn wait(&mut self, mqtt: &Mqtt, cancel: &Cancel) -> Result<(), Error> {
        let uri = mqtt.place();
        loop {
            match self.receive() {
                _ if cancel.is_cancelled() => return Err(Error::Cancelled),
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                    let what = "refuses this user: add user=NAME, and its password as GREBE_MQTT_PASSWORD";
                    return Err(Error::Peer { uri, what });
                }
                Err(source) => return Err(Error::Tcp { action: "connect to", uri, source }),
            }
        }
    }
}

impl Messages for Session {
    fn receive(&mut self) -> Received {
        match self.received.recv_timeout(CHECK_EVERY) {
            Ok(received) => received,
            Err(RecvTimeoutError::Timeout) => Err(ErrorKind::WouldBlock.into()),
            Err(RecvTimeoutError::Disconnected) => Err(ErrorKind::ConnectionReset.into()),
        }
    }
}

/// Answers the broker until the connection ends or the reader has gone.
fn answer(mut connection: Connection, qos: QoS, tell: &SyncSender<Received>) {
    let mut sent = Ok(());
    while let (Ok(()), Ok(event)) = (&sent, connection.recv()) {
        sent = match event {
            Ok(Event::Incoming(Packet::Publish(publish))) => tell.send(Ok(publish.payload.into())),
            Ok(Event::Incoming(Packet::SubAck(ack)))
                if ack.return_codes.contains(&SubscribeReasonCode::Failure) =>
            {
                tell.send(Err(ErrorKind::PermissionDenied.into()))
            }
            Ok(Event::Incoming(Packet::ConnAck(_) | Packet::SubAck(_) | Packet::PubAck(_))) => {
                tell.send(Ok(Vec::new()))
            }
            Ok(Event::Outgoing(Outgoing::Publish(_))) if qos == QoS::AtMostOnce => tell.send(Ok(Vec::new())),
            Ok(_) => Ok(()),
            Err(error) => return drop(tell.send(Err(lost(error)))),
        };
    }
}

fn lost(error: ConnectionError) -> io::Error {
    use ConnectReturnCode::{BadUserNamePassword, NotAuthorized};
    match error {
        ConnectionError::ConnectionRefused(BadUserNamePassword | NotAuthorized) => {
            ErrorKind::PermissionDenied.into()
        }
        ConnectionError::Io(error) => io::Error::new(ErrorKind::ConnectionReset, error),
        error => io::Error::new(ErrorKind::ConnectionReset, error),
    }
}

impl Write for Session {
    /// Publishes one payload. Waits until it is sent, or until the broker confirms it.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.client.publish(&self.topic, self.qos, false, bytes);
        loop {
            match self.receive() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                received => return received.map(|_| bytes.len()),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Session {
    /// Disconnects. The broker closes the connection when it has everything.
    fn drop(&mut self) {
        let until = Instant::now() + FAREWELL;
        if self.client.try_disconnect().is_ok() {
            while self.received.recv_timeout(until.saturating_duration_since(Instant::now())).is_ok() {}
        }
    }
}

/// A broker that is silent for twice this time is considered gone.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
const CHECK_EVERY: Duration = Duration::from_millis(100);
const FAREWELL: Duration = Duration::from_secs(2);
const PACKET_BYTES_MAX: usize = 16 << 20;
/// Payloads that wait for the reader. More of them wait at the broker.
const PAYLOADS_MAX: usize = 64;
