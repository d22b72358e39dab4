//! A server for every program with an `rtl_tcp` client.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, Stage, StageResult};
use grebe_frame::Batch;
use grebe_ring::Cancel;

use crate::bridges::rtl_tcp::uri::{CLIENTS_MAX, RtlTcp};
use crate::bridges::rtl_tcp::wire::{Command, Hello, R820T_GAINS};
use crate::error::Error;
use crate::open::Notify;
use crate::scheme::Scheme as _;
use crate::session::Gaps;
use crate::transport::{Connector, Outlet, drain};
use crate::tuner::Tuner;

/// Sends a stream of cu8 to every client that connects. A slow client loses samples, which are counted, and holds up no
/// other.
///
/// Commands of clients go to a [`Tuner`], if there is one. The protocol has no gaps: the server skips those of the
/// stream.
#[derive(Debug)]
pub(crate) struct RtlTcpServer {
    rtl: RtlTcp,
    listener: TcpListener,
    clients: Vec<Client>,
    tuner: Option<Tuner>,
    /// The samples of a batch, concatenated.
    bytes: Vec<u8>,
    served: Option<Instant>,
    gaps: Gaps,
    counters: Counted,
}

#[derive(Debug)]
struct Client {
    out: Outlet,
    command: [u8; Command::BYTES],
    filled: usize,
}

impl RtlTcpServer {
    /// Listens, reports the address, and waits for the number of clients that the name requires.
    ///
    /// # Errors
    /// The address cannot be listened on; [`Error::Cancelled`].
    pub(crate) fn open(
        rtl: &RtlTcp,
        tuner: Option<Tuner>,
        cancel: &Cancel,
        notify: Notify<'_>,
    ) -> Result<Self, Error> {
        let mut server = Self {
            rtl: rtl.clone(),
            listener: Connector::bind("rtl_tcp", rtl.at.clone(), notify)?,
            clients: Vec::new(),
            tuner,
            bytes: Vec::new(),
            served: None,
            gaps: Gaps::default(),
            counters: Counted::default(),
        };
        loop {
            server.admit();
            if server.clients.len() >= rtl.wait_clients {
                return Ok(server);
            }
            if cancel.is_cancelled() {
                return Err(Error::Cancelled);
            }
            std::thread::sleep(CHECK_EVERY);
        }
    }

    /// Accepts waiting clients and reads commands, at intervals.
    fn serve_clients(&mut self) {
        let now = Instant::now();
        if self.served.is_some_and(|served| now - served < CHECK_EVERY) {
            return;
        }
        self.served = Some(now);
        self.admit();
        for client in &mut self.clients {
            // Limits the commands per client, so that none can hold up the stream.
            for command in (0..COMMANDS_MAX).map_while(|_| client.hear()) {
                self.counters.commands.add(1);
                if let (Some(tuner), Command::Switch(switch, value)) = (&self.tuner, command) {
                    tuner.set(switch, value);
                } else if let Some(tuner) = &self.tuner {
                    let mut wanted = tuner.tuning();
                    if command.apply(&mut wanted) {
                        tuner.change(|tuning| *tuning = wanted);
                    }
                }
            }
        }
        self.clients.retain(|client| !client.out.is_gone());
    }

    fn admit(&mut self) {
        // On an error the client has gone, or the system accepts it later.
        while let Ok((stream, _)) = self.listener.accept() {
            if self.clients.len() >= CLIENTS_MAX {
                self.counters.refused_clients.add(1);
            } else if let Ok(client) = Client::welcome(stream) {
                self.counters.clients.add(1);
                self.clients.push(client);
            }
        }
    }

    fn gather(&mut self, batch: &Batch) -> Result<(), Error> {
        self.bytes.clear();
        for frame in batch.frames() {
            let header = frame.header();
            let taken = self.rtl.takes(Some(header.format), Some(header.channel_count));
            taken.map_err(|what| grebe_process::Error::Takes { what })?;
            self.counters.unmarked_gap_samples.add(self.gaps.before(&header));
            self.bytes.extend_from_slice(frame.channel_bytes(0).unwrap_or_default());
        }
        Ok(())
    }
}

impl Client {
    fn welcome(stream: TcpStream) -> io::Result<Self> {
        let mut out = Outlet::new(stream)?;
        out.send(&Hello { tuner: R820T, gains: R820T_GAINS.len() as u32 }.to_bytes(), BACKLOG_BYTES);
        Ok(Self { out, command: [0; Command::BYTES], filled: 0 })
    }

    /// The next whole command.
    fn hear(&mut self) -> Option<Command> {
        while self.filled < Command::BYTES {
            self.filled += self.out.read(&mut self.command[self.filled..])?;
        }
        self.filled = 0;
        Some(Command::parse(self.command))
    }
}

impl Stage for RtlTcpServer {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, _: &mut Context) -> StageResult {
        self.serve_clients();
        let Some(batch) = input.next() else {
            self.clients.iter_mut().for_each(|client| client.out.flush());
            return Ok(Outcome::WantsInput);
        };
        self.gather(&batch)?;
        for client in &mut self.clients {
            if !client.out.send(&self.bytes, BACKLOG_BYTES) {
                self.counters.client_dropped_samples.add(batch.samples());
            }
        }
        self.clients.retain(|client| !client.out.is_gone());
        Ok(Outcome::Produced)
    }

    /// Gives clients the remaining samples, for as long as they read.
    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        let mut outlets: Vec<_> = self.clients.iter_mut().map(|client| &mut client.out).collect();
        let left = ctx.waiting(|| drain(&mut outlets, || ctx.is_stopping()));
        self.counters.client_dropped_samples.add((left / 2) as u64);
        Ok(())
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.all())
    }
}

grebe_flow::counters! {
    struct Counted { unmarked_gap_samples, gauge clients, refused_clients, client_dropped_samples, commands }
}
/// Interval of accepting clients and reading their commands.
const CHECK_EVERY: Duration = Duration::from_millis(20);
/// Per client and interval.
const COMMANDS_MAX: usize = 64;
/// Per slow client: about a second of a dongle's samples.
const BACKLOG_BYTES: usize = 4 << 20;
/// The tuner of nearly every dongle. Clients choose their list of gains by it.
const R820T: u32 = 5;
