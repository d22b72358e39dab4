//! The table of bridges: every test here runs for each row.

use std::process::{Command, Stdio};

/// A bridge of which both ends are the command's.
pub(crate) struct Bridge {
    /// How its names begin.
    pub(crate) scheme: &'static str,
    /// Both ends, with `@` where the other end is found.
    pub(crate) source: &'static str,
    pub(crate) sink: &'static str,
    pub(crate) listens: Listens,
    pub(crate) index: Index,
    /// How samples are made for it.
    pub(crate) format: &'static str,
    /// Metadata that it carries.
    pub(crate) describes: Describes,
    /// A reader hears that its stream has ended.
    pub(crate) ends: bool,
    /// Its names take `reconnect`.
    pub(crate) reconnects: bool,
}

/// Knowledge of missing samples.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Index {
    Nothing,
    /// Number of missing samples before a frame. Samples after the last frame are unknown.
    OfFrames,
    /// How many are missing anywhere.
    ToTheEnd,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listens {
    /// The source, for datagrams of anybody.
    Datagrams,
    /// The source, for one connection.
    Source,
    /// The sink, for connections.
    Sink,
    /// A broker between them.
    #[cfg_attr(not(feature = "mqtt"), allow(dead_code, reason = "MQTT is a feature"))]
    Broker,
    /// Neither: they meet by a name.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "shared memory is there on Linux only"))]
    Name,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Describes {
    Nothing,
    /// The centre frequency.
    Frequency,
    Everything,
}

const PLAIN: Bridge = Bridge {
    scheme: "tcp:",
    source: "",
    sink: "",
    listens: Listens::Source,
    index: Index::Nothing,
    format: "i16",
    describes: Describes::Nothing,
    ends: true,
    reconnects: true,
};

pub(crate) const BRIDGES: &[Bridge] = &[
    Bridge {
        scheme: "udp:",
        source: "udp://@",
        sink: "udp://@",
        listens: Listens::Datagrams,
        index: Index::ToTheEnd,
        describes: Describes::Everything,
        reconnects: false,
        ..PLAIN
    },
    Bridge {
        scheme: "udp:",
        source: "udp://@?format=i16be&rate=100k&seq=2:u32be&skip=8",
        sink: "udp://@?format=i16be&seq=2:u32be&skip=8",
        listens: Listens::Datagrams,
        reconnects: false,
        ..PLAIN
    },
    Bridge {
        scheme: "vrt:",
        source: "vrt://@",
        sink: "vrt://@",
        listens: Listens::Datagrams,
        index: Index::OfFrames,
        describes: Describes::Frequency,
        reconnects: false,
        ..PLAIN
    },
    Bridge { source: "tcp://@?format=i16&rate=100k&listen", sink: "tcp://@?format=i16", ..PLAIN },
    Bridge { source: "tcp://@?format=text&rate=100k&listen", sink: "tcp://@?format=text", ..PLAIN },
    Bridge {
        source: "tcp://@?format=i16&rate=100k",
        sink: "tcp://@?format=i16&listen",
        listens: Listens::Sink,
        ..PLAIN
    },
    Bridge {
        scheme: "zmq:",
        source: "zmq://@?format=f32&rate=100k&listen",
        sink: "zmq://@?format=f32",
        format: "f32",
        ..PLAIN
    },
    Bridge {
        scheme: "zmq:",
        source: "zmq://@?format=f32&rate=100k",
        sink: "zmq://@?format=f32&listen",
        listens: Listens::Sink,
        format: "f32",
        ..PLAIN
    },
    Bridge {
        scheme: "rtl_tcp:",
        source: "rtl_tcp://@?rate=100k",
        sink: "rtl_tcp://@",
        listens: Listens::Sink,
        format: "cu8",
        ..PLAIN
    },
    #[cfg(feature = "mqtt")]
    Bridge {
        scheme: "mqtt:",
        source: "mqtt://@/lab/x?format=i16&rate=100k&qos=1",
        sink: "mqtt://@/lab/x?format=i16&qos=1",
        listens: Listens::Broker,
        ends: false,
        ..PLAIN
    },
    #[cfg(feature = "mqtt")]
    Bridge {
        scheme: "mqtt:",
        source: "mqtt://@/x?format=text&rate=100k",
        sink: "mqtt://@/x?format=text",
        listens: Listens::Broker,
        ends: false,
        ..PLAIN
    },
    #[cfg(target_os = "linux")]
    Bridge {
        scheme: "shm:",
        source: "shm://x",
        sink: "shm://x?wait=1",
        listens: Listens::Name,
        index: Index::ToTheEnd,
        describes: Describes::Everything,
        reconnects: false,
        ..PLAIN
    },
];

/// Schemes without a command at one end, and their other tests.
pub(crate) const ELSEWHERE: &[(&str, &str)] = &[
    ("pipe:", "descriptions.rs, faults.rs, raw.rs, lines.rs"),
    ("serial:", "serial.rs"),
    ("audio:", "sound.rs"),
    ("soapy:", "soapy"),
    ("zenoh:", "lab.rs"),
    ("synth:", "no other end"),
    ("file:", "recording.rs"),
    #[cfg(not(target_os = "linux"))]
    ("shm:", "Linux alone has it"),
    #[cfg(not(feature = "mqtt"))]
    ("mqtt:", "a feature"),
];

impl Bridge {
    pub(crate) fn is_datagram(&self) -> bool {
        self.listens == Listens::Datagrams
    }
}

/// Those that can be tried here.
pub(crate) fn bridges() -> Vec<&'static Bridge> {
    let mosquitto = Command::new("mosquitto").arg("-h").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if mosquitto.is_err() {
        println!("skipped: there is no mosquitto for mqtt:// (Debian: apt-get install mosquitto)");
    }
    BRIDGES.iter().filter(|bridge| bridge.listens != Listens::Broker || mosquitto.is_ok()).collect()
}

/// Tries it with several bridges at a time: mostly they wait.
pub(crate) fn for_each(test: impl Fn(&Bridge) + Sync) {
    for bridges in bridges().chunks(6) {
        std::thread::scope(|scope| {
            for bridge in bridges {
                scope.spawn(|| {
                    eprintln!("{} -> {}", bridge.sink, bridge.source);
                    test(bridge);
                });
            }
        });
    }
}
