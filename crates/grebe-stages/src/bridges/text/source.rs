//! Lines of numbers as a stream.

mod frames;

use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, Stage, StageResult, UtcClock, monotonic_ns};
use grebe_frame::{BatchPool, Description, Header};
use grebe_process::stream::{CHUNK_BYTES, block_length};
use grebe_recording::table::{Steps, TimeUnit, Uneven};

use crate::bridges::text::columns::{Columns, Line};
use crate::bridges::text::datagrams::KernelDrops;
use crate::bridges::text::left_out::LeftOut;
use crate::bridges::text::pace::{Arrivals, Rate, grows_evenly};
use crate::bridges::text::rows::Rows;
use crate::bridges::text::uri::TextStream;
use crate::session::{Bounded, Limit, Shortfall, Silence};
use crate::transport::{Carrier, Link, ReadResult, Reconnect, Wait};

/// Reads lines of numbers: a line is a sample of each channel. A change of channels begins another frame. The stream
/// continues with the next sample, and a reader treats it as another stream.
///
/// Half lines and garbage are counted and left out. The first lines are kept until the rate is known, for some
/// seconds at most.
pub(crate) struct TextSource<R> {
    link: Link<R>,
    text: TextStream,
    columns: Columns,
    rows: Rows,
    bytes: Vec<u8>,
    begin: usize,
    end: usize,
    /// The line that is read is not whole.
    is_half: bool,
    /// The newest line is of other channels, and is the first of the next rows.
    is_changed: bool,
    /// Rows before the newest channel.
    channels_at: usize,
    is_over: bool,
    /// `None`: the rate is known, or never will be.
    arrivals: Option<Arrivals>,
    read_at: Instant,
    read_ns: u64,
    /// Steps between lines, from a time column.
    steps: Option<Steps>,
    /// Notices for the user.
    notes: Vec<String>,
    is_guessed: bool,
    left_out: LeftOut,
    next: Header,
    /// The stamp of the newest frame.
    stamp_ns: u64,
    block_samples: usize,
    description: Option<Arc<Description>>,
    clock: UtcClock,
    pool: Option<BatchPool>,
    limit: Limit,
    /// For live lines with a given rate.
    shortfall: Option<Shortfall>,
    /// For lines in datagrams.
    kernel_drops: Option<KernelDrops>,
    counters: Counted,
}

impl<R: Read + Send + 'static> TextSource<R> {
    /// Lines from `from`; `wait` waits until there is something to read, for 100 ms at most, and says whether there is.
    pub(crate) fn new(from: R, wait: Wait<R>, text: TextStream) -> Self {
        let rate_hz = if let Rate::Given(rate_hz) = text.rate { rate_hz } else { 0.0 };
        Self {
            link: Link::new(from, wait),
            columns: Columns::new(text.format, text.fixed.clone(), text.time.clone()),
            rows: Rows::default(),
            bytes: vec![0; BUFFER_BYTES],
            begin: 0,
            end: 0,
            is_half: begins_within(&text.carrier),
            is_changed: false,
            channels_at: 0,
            is_over: false,
            arrivals: Some(Arrivals::default()),
            read_at: Instant::now(),
            read_ns: monotonic_ns(),
            steps: None,
            notes: Vec::new(),
            is_guessed: false,
            left_out: LeftOut::default(),
            next: Header { format: text.format, sample_rate_hz: rate_hz, ..Header::default() },
            stamp_ns: 0,
            block_samples: 1,
            description: None,
            clock: UtcClock::default(),
            pool: None,
            limit: Limit::default(),
            shortfall: (rate_hz > 0.0 && text.carrier.keeps_time()).then(Shortfall::default),
            kernel_drops: None,
            counters: Counted::default(),
            text,
        }
    }

    /// Losses may be invisible.
    pub(crate) fn loses_unseen(self) -> Self {
        self.counters.unseen_loss.set(1);
        self
    }

    /// Sets the counter of datagrams that the kernel drops.
    pub(crate) fn kernel_drops(mut self, drops: KernelDrops) -> Self {
        self.kernel_drops = Some(drops);
        self
    }

    /// Reopens a lost connection, and continues.
    pub(crate) fn reconnects(mut self, again: Option<Reconnect<R>>) -> Self {
        self.link = self.link.reconnects(again);
        self
    }

    /// Takes the whole lines that were read, as far as there is room for them and they are of the same channels;
    /// whether there were any.
    fn parse(&mut self) -> bool {
        let begun = self.begin;
        if self.next.channel_count == 0 && self.end > self.begin {
            self.left_out.since.get_or_insert_with(Instant::now);
        }
        while !self.is_changed && !self.rows.is_full() {
            let rest = &self.bytes[self.begin..self.end];
            let Some(length) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else { break };
            self.begin += length + 1;
            let line = &rest[..length];
            if std::mem::take(&mut self.is_half) {
                self.counters.half_lines.add(u64::from(!line.is_empty()));
                continue;
            }
            match self.columns.take(line) {
                Line::Row => self.rows.push(self.columns.values(), self.columns.time_s()),
                Line::Changed => self.change(),
                Line::Added => self.add(),
                Line::Nothing => {}
                Line::Words => {
                    self.counters.word_lines.add(1);
                    self.left_out.words.keep(line);
                }
                Line::Bad => {
                    self.counters.bad_lines.add(1);
                    self.left_out.bad.keep(line);
                }
            }
        }
        let (held, unknown) = self.columns.drain_counts();
        self.counters.held_values.add(held);
        self.counters.unknown_names.add(unknown);
        self.begin > begun
    }

    /// The newest line has other channels: the pending rows go first. The very first lines are discarded,
    /// because the device had not begun.
    fn change(&mut self) {
        self.is_changed = true;
        if self.columns.take_headed() {
            self.left_out.words.forget_one();
        }
        if let Some(arrivals) = &mut self.arrivals {
            self.counters.bad_lines.add(self.rows.rest().len() as u64);
            self.rows.clear();
            *arrivals = Arrivals::default();
        }
    }

    /// The newest line has more channels. The first lines of all get them as well.
    fn add(&mut self) {
        if self.arrivals.is_none() || self.knows_channels() {
            self.arrivals = None;
            self.is_changed = true;
            return;
        }
        self.rows.widen(self.columns.channels().len(), self.columns.missing());
        self.begin_channels();
    }

    /// Whether enough lines of one value each came since the newest channel did.
    fn knows_channels(&self) -> bool {
        let is_asked = self.text.rate != Rate::Measured && self.columns.time_s().is_none();
        is_asked && self.rows.len() >= self.channels_at + LINES_OF_ONE
    }

    /// Begins the frames of other channels with the newest line.
    fn begin_channels(&mut self) {
        let channels = self.columns.channels();
        if self.is_changed {
            self.rows.begin(channels.len());
        }
        self.is_changed = false;
        // Where each line has one name, those of the other channels are yet to come.
        let is_whole = !self.columns.is_named_singly();
        if self.text.rate != Rate::Measured && self.columns.time_s().is_none() && is_whole {
            self.arrivals = None;
        }
        self.next.channel_count = channels.len() as u32;
        self.channels_at = self.rows.len();
        self.left_out.since = None;
        self.rows.push(self.columns.values(), self.columns.time_s());
        let is_said = channels.iter().any(|channel| !channel.name.is_empty() || !channel.unit.is_empty());
        let said = if is_said { channels.to_vec() } else { Vec::new() };
        self.describe(|description| description.channels = said);
        self.set_block();
    }

    fn describe(&mut self, change: impl FnOnce(&mut Description)) {
        let mut description = self.description.as_deref().cloned().unwrap_or_default();
        change(&mut description);
        description.first_sample_index = self.next.first_sample_index;
        description.recorded_at = self.made_at(self.next.first_sample_index).or(description.recorded_at);
        self.description = Some(Arc::new(description));
    }

    /// When a sample was made, where the times say so.
    fn made_at(&self, sample_index: u64) -> Option<SystemTime> {
        let rate_hz = self.next.sample_rate_hz;
        let since = Duration::try_from_secs_f64(sample_index as f64 / rate_hz).ok();
        self.columns.began().filter(|_| self.steps.is_some())?.checked_add(since?)
    }

    fn set_block(&mut self) {
        let Header { channel_count, format, sample_rate_hz, .. } = self.next;
        self.block_samples =
            block_length(CHUNK_BYTES, channel_count as usize, format, sample_rate_hz) as usize;
    }

    /// Determines the rate from the first lines. `is_over`: no more lines will arrive that could help.
    fn settle(&mut self, is_over: bool) {
        let Some(arrivals) = &mut self.arrivals else { return };
        arrivals.note(self.read_at, self.rows.len());
        if self.rows.len() == 0 {
            return;
        }
        let is_over = is_over || self.rows.is_full();
        let has_waited = arrivals.are_enough(self.rows.len());
        if !self.rows.times_s().is_empty() {
            if !arrivals.are_enough(self.rows.times_s().len() - 1) && !is_over {
                return;
            }
            self.arrivals = None;
            self.settle_by_times();
        } else if self.text.rate == Rate::Measured {
            let Some(rate_hz) = arrivals.rate_hz(is_over) else { return };
            self.arrivals = None;
            self.next.sample_rate_hz = rate_hz;
            if rate_hz > 0.0 {
                let notes = format!("rate measured by when the first lines arrived: {rate_hz} lines/s");
                self.describe(|description| description.notes = Some(notes));
            }
        } else if is_over || has_waited || self.knows_channels() {
            self.arrivals = None;
        }
        self.set_block();
    }

    /// Notes the assumptions about the first lines.
    fn guess(&mut self) {
        if self.is_guessed || self.arrivals.is_some() || self.rows.len() == 0 {
            return;
        }
        self.is_guessed = true;
        self.offer_time();
        if self.next.sample_rate_hz == 0.0 && self.text.carrier == Carrier::Pipe {
            self.notes.push("the sample rate is unknown: add rate=100, or rate=measure".to_owned());
        }
        self.notes.extend(self.columns.guesses());
    }

    /// Takes the rate from a column of times, and how lines follow each other.
    fn settle_by_times(&mut self) {
        let spacing = self.columns.spacing(self.rows.times_s());
        match (spacing, self.text.rate) {
            (Ok(spacing), Rate::Given(rate_hz)) => {
                let is_like = (rate_hz / spacing.rate_hz - 1.0).abs() <= 2.0 * spacing.error + 1e-4;
                if is_like {
                    self.steps = Some(Steps::new(spacing.with_rate(rate_hz)));
                } else {
                    let said = format!("the times say {} lines/s", spacing.rate_hz);
                    self.notes.push(format!("{said}; {rate_hz} is taken, as asked for, and no gaps"));
                }
            }
            (Ok(spacing), _) => {
                self.next.sample_rate_hz = spacing.rate_hz;
                self.steps = Some(Steps::new(spacing));
            }
            (Err(why), rate) => {
                let why = match why {
                    Uneven::Standing => "repeat, or step back",
                    Uneven::Irregular => "have no even spacing",
                };
                let instead = if matches!(rate, Rate::Given(_)) { "" } else { ": give rate=, or time=none" };
                self.notes.push(format!("the times {why}, and say neither rate nor gaps{instead}"));
            }
        }
        self.describe(|_| {});
    }

    /// Says how a first column is named as the time that looks like one.
    fn offer_time(&mut self) {
        let is_plain = self.text.time.is_none() && self.text.fixed.is_none();
        if !is_plain || !self.rows.times_s().is_empty() || self.columns.channels().len() < 2 {
            return;
        }
        if grows_evenly(self.rows.first_channel()) {
            let named = self.columns.channels()[0].name.clone();
            let named = if named.is_empty() { "1".to_owned() } else { named };
            let unit = TimeUnit::named(&named.to_lowercase()).unwrap_or(TimeUnit::S);
            self.notes.push(format!(
                "the first channel grows by even steps; if it is the time: time={named}:{unit} (s, ms, us, ns)"
            ));
        }
    }

    /// Reports the notices.
    fn tell(&mut self, ctx: &Context) {
        self.notes.drain(..).for_each(|note| ctx.note(note));
        if self.next.channel_count == 0
            && !self.left_out.is_told
            && self.left_out.since.is_some_and(|since| since.elapsed() >= TELL_AFTER)
        {
            self.left_out.is_told = true;
            self.left_out
                .words()
                .into_iter()
                .for_each(|words| ctx.note(format!("no line has numbers so far: {words}")));
        }
    }

    /// Counts samples missing by the clock, if lines have no times.
    fn look_at_the_clock(&mut self) {
        let Some(shortfall) = self.shortfall.as_mut().filter(|_| self.steps.is_none()) else { return };
        let samples = self.next.first_sample_index + self.rows.rest().len() as u64;
        let missing = shortfall.after_read(self.read_ns, samples, &self.next, &mut self.description);
        self.counters.clock_missing_samples.set(missing);
    }

    /// Takes the result of a read.
    fn take(&mut self, heard: ReadResult) {
        match heard {
            ReadResult::Bytes(read) => {
                self.end += read;
                (self.read_at, self.read_ns) = (Instant::now(), monotonic_ns());
            }
            ReadResult::Nothing => {}
            ReadResult::Lost => {
                self.counters.half_lines.add(u64::from(self.end > 0));
                self.end = 0;
                self.settle(true);
            }
            ReadResult::Reconnected(away) => {
                // The length of the absence by this machine's clock, and at least one sample.
                self.leave_out(((away.as_secs_f64() * self.next.sample_rate_hz) as u64).max(1));
                self.counters.reconnects.add(1);
                self.is_half = begins_within(&self.text.carrier);
                if let Some(steps) = &mut self.steps {
                    steps.restart();
                }
            }
            ReadResult::End => {
                self.is_over = true;
                // A file may end without the end of its last line.
                if self.end > 0 && self.end < self.bytes.len() {
                    self.bytes[self.end] = b'\n';
                    self.end += 1;
                }
            }
        }
    }
}

impl<R: Read + Send + 'static> Bounded for TextSource<R> {
    fn limit(&mut self) -> &mut Limit {
        &mut self.limit
    }

    fn silence(&mut self) -> &mut Silence {
        self.link.silence()
    }
}

impl<R: Read + Send + 'static> Stage for TextSource<R> {
    fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        if self.arrivals.is_none() && !self.rows.rest().is_empty() {
            return self.hand_on(output, ctx);
        }
        if self.is_changed && self.rows.rest().is_empty() {
            self.begin_channels();
        }
        let has_lines = self.parse();
        if has_lines {
            self.look_at_the_clock();
        }
        self.settle(self.is_over && !has_lines);
        self.guess();
        self.tell(ctx);
        if has_lines || (self.arrivals.is_none() && !self.rows.rest().is_empty()) {
            return Ok(Outcome::Produced);
        }
        if self.is_over {
            return Ok(Outcome::End);
        }
        self.bytes.copy_within(self.begin..self.end, 0);
        (self.begin, self.end) = (0, self.end - self.begin);
        if self.end == self.bytes.len() {
            // No line is that long.
            self.counters.bad_lines.add(1);
            (self.end, self.is_half) = (0, true);
        }
        let heard = self.link.read(&mut self.bytes[self.end..], ctx)?;
        if let Some(drops) = self.kernel_drops.as_ref().and_then(KernelDrops::total) {
            self.counters.kernel_drops.set(drops);
            self.counters.kernel_drops_known.set(1);
        }
        self.take(heard);
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        self.tell(ctx);
        self.left_out.words().into_iter().for_each(|words| ctx.note(words));
        if let Some(shortfall) = &mut self.shortfall {
            self.counters.clock_missing_samples.set(shortfall.end());
        }
        if self.next.channel_count == 0 {
            // Words above no numbers were none of names.
            self.counters.bad_lines.add(self.counters.word_lines.get());
        }
        if self.next.channel_count > 0 {
            ctx.set_end_of_stream(Header { block_length_samples: 0, ..self.next });
        }
        Ok(())
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.all())
    }
}

/// Whether the carrier may begin within a line: a device does not wait for a listener.
fn begins_within(carrier: &Carrier) -> bool {
    matches!(carrier, Carrier::Serial(_))
}

/// Any bytes are lines or are skipped; each accepted line has a value for each channel.
#[cfg(fuzzing)]
pub(crate) fn fuzz(name: &str, bytes: &[u8]) {
    let Ok(crate::Uri::Text(text)) = format!("pipe:?format=text&{name}").parse() else { return };
    let mut columns = Columns::new(text.format, text.fixed.clone(), text.time.clone());
    let mut rows = Rows::default();
    for line in bytes.split(|byte| *byte == b'\n') {
        let channels = columns.channels().len();
        let taken = columns.take(line);
        match taken {
            Line::Changed => rows.begin(columns.channels().len()),
            Line::Added => rows.widen(columns.channels().len(), columns.missing()),
            _ => assert_eq!(columns.channels().len(), channels),
        }
        if matches!(taken, Line::Row | Line::Changed | Line::Added) {
            rows.push(columns.values(), columns.time_s());
        }
        assert!(columns.channels().len() <= 255 && columns.values().len() == columns.channels().len());
    }
    let mut out = vec![0; rows.len() * text.format.bytes()];
    (0..rows.channels()).for_each(|channel| rows.put(0..rows.len(), channel, text.format, &mut out));
    let _ = columns.spacing(rows.times_s());
}

impl<R> std::fmt::Debug for TextSource<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextSource")
            .field("text", &self.text)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

const BUFFER_BYTES: usize = 256 << 10;
/// After as many lines of one value each no channel is new.
const LINES_OF_ONE: usize = 8;
/// Time before the first notice about lines without numbers.
const TELL_AFTER: Duration = Duration::from_secs(3);
grebe_flow::counters! {
    struct Counted { bad_lines, half_lines, word_lines, held_values, unknown_names, time_resets, doubled_lines, lost_frames, lost_samples, reconnects, kernel_drops, gauge kernel_drops_known, gauge unseen_loss, gauge clock_missing_samples }
}

#[cfg(test)]
mod tests;
