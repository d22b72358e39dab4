//! `grebe view`: show a stream, or several.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ChildStdout;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Result, anyhow};
use grebe_flow::QueueOptions;
use grebe_recording::{SampleFile, newest_recording};
use grebe_shm::Policy;
use grebe_stages::{Notice, OpenSource, PipeSource, SourceOptions, Uri, open_source};
use grebe_view::{
    ChannelSetup, Drawn, Finder, LaneMask, Part, PngOptions, StreamInfo, TriggerMode, TriggerOptions,
};
use serde_json::Value;

use crate::cli::{self, Location, SshHost, View, location};
use crate::command::cp::Fetch;
use crate::ending::{Ending, Usage};
use crate::generator::{self, Generator, Recipe};
use crate::graph::{listen_for_metrics, tell};
use crate::interrupt;
use crate::output::{self, note};
use crate::receiver;
use crate::show::{
    self, Failure, Held, Incoming, Keeper, OnDisk, Opener, Scope, Show, Shown, Stoppable, Surface,
};

mod far;
mod measured;

use self::measured::measurements;

pub(crate) fn run(options: &View) -> Result<Ending> {
    options.lab.configure();
    let (mut uris, elsewhere) = places(&options.uris);
    uris.iter_mut().for_each(newest_of_folder);
    if !elsewhere.is_empty() {
        return far::run(options, &uris, &elsewhere);
    }
    let recipe = match &options.spawn {
        Some(_) if uris.len() > 1 => {
            return Err(
                Usage("--spawn starts the generator of one stream: give one URI, or none".into()).into()
            );
        }
        Some(text) => Some(Recipe::parse(text, uris.first())?),
        None => None,
    };
    let uris = match &recipe {
        Some(recipe) => vec![recipe.uri.clone()],
        None => uris,
    };
    if options.ring.is_some() && uris.len() > 1 {
        return Err(Usage("--ring is of one stream: give one URI".into()).into());
    }
    if options.json && options.png.as_deref().is_some_and(output::is_stdout) {
        return Err(Usage("--png - and --json would both write to standard output".into()).into());
    }
    // Nobody waits for a picture only to hear this.
    if let Some(path) = &options.png
        && let Some(folder) =
            path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir())
    {
        return Err(anyhow!("cannot write {}: there is no folder {}", path.display(), folder.display()));
    }
    let metrics = listen_for_metrics(options.metrics.clone())?;
    if let Some(duration) = options.bench {
        return bench(open(&uris, 0, options, &mut Spawn::None)?, options.size, duration);
    }
    let mut spawn = recipe.map_or(Spawn::None, |recipe| Spawn::Recipe(Box::new(recipe)));
    let shown: Vec<Shown> =
        (0..uris.len()).map(|place| open(&uris, place, options, &mut spawn)).collect::<Result<_>>()?;
    let is_incoming = shown.iter().any(|shown| shown.show.is_incoming);
    let progress = shown.first().map(|shown| shown.show.progress.clone());
    let is_read = !is_incoming && uris.iter().all(is_file);
    let ended = show::run(&surface(options, is_read), shown, metrics);
    // What the generator says explains a stream that failed, or never came.
    if let Spawn::Running(generator) = &mut spawn {
        if ended.is_err() { generator.check_at_end() } else { generator.check() }?;
    }
    let ended = ended?;
    if let Some(words) = progress.filter(|_| is_incoming && !ended.1.is_empty()).and_then(|it| it.get()) {
        note!("grebe: {words}");
    }
    print(options, ended)
}

/// What was asked for of channels that no stream has.
fn absent(options: &View, streams: impl Iterator<Item = StreamInfo>) -> Vec<String> {
    let Some(most) = streams.map(|stream| stream.channels).max() else { return Vec::new() };
    let has = match most {
        1 => "there is 1 channel".to_owned(),
        most => format!("there are {most} channels"),
    };
    let shown = &options.channels.shown;
    let last = shown.iter().map(|range| usize::from(*range.end())).max().filter(|&last| last > most);
    let shown = last.map(|last| format!("--show {last}: {has}"));
    let lane = options.trigger.lane.filter(|lane| lane.part != Part::Math && lane.channel >= most);
    let trigger = lane.map(|lane| format!("--trigger-channel {lane}: {has}, and the last of them triggers"));
    shown.into_iter().chain(trigger).collect()
}

/// What is shown of this machine, and what of others.
fn places(uris: &[cli::Shown]) -> (Vec<Uri>, Vec<cli::Shown>) {
    let (here, elsewhere): (Vec<_>, Vec<_>) =
        uris.iter().cloned().partition(|it| matches!(it, cli::Shown::Here(_)));
    let here = here.into_iter().filter_map(|it| match it {
        cli::Shown::Here(uri) => Some(uri),
        _ => None,
    });
    (here.collect(), elsewhere)
}

/// Of a folder, the recording in it that was changed last.
fn newest_of_folder(uri: &mut Uri) {
    if let Uri::File(path) = uri
        && path.is_dir()
        && let Some(newest) = newest_recording(path)
    {
        note!("grebe: {} is the newest recording there", newest.display());
        *path = newest;
    }
}

/// Says whether a picture is not what it will be, and prints what was measured of it, if that was asked for: of several
/// streams a list.
fn print(options: &View, (ending, drawn): (Ending, Vec<Drawn>)) -> Result<Ending> {
    if drawn.iter().any(|(picture, _)| picture.is_ended && picture.is_estimated) {
        note!(
            "grebe: the picture is not exact: what it shows had not come; --after says how long to wait for it"
        );
    }
    let absent = absent(options, drawn.iter().filter_map(|(picture, _)| picture.stream));
    if options.json {
        let mut measured: Vec<Value> =
            drawn.iter().map(|(picture, setups)| measurements(picture, setups)).collect();
        let measured = match measured.len() {
            0 => return Ok(ending),
            1 => measured.swap_remove(0),
            _ => Value::Array(measured),
        };
        output::json(&serde_json::to_string_pretty(&measured)?)?;
    }
    match absent.join("; ") {
        words if words.is_empty() => Ok(ending),
        // A script is to notice; whoever watched has seen what there is.
        words if options.png.is_some() => Err(Usage(words).into()),
        words => {
            note!("grebe: {words}");
            Ok(ending)
        }
    }
}

/// Where it is shown. `is_read`: files are read up to where they are looked at, and their end takes the picture.
fn surface(options: &View, is_read: bool) -> Surface {
    let wait = |usual| if is_read { WHOLE_FILE } else { options.after.unwrap_or(usual) };
    match &options.png {
        Some(path) => Surface::Png(PngOptions {
            width: options.size.0,
            height: options.size.1,
            after: wait(AFTER),
            settle: wait(INCOMING),
            measure: options.json,
            ..PngOptions::new(path)
        }),
        None if options.term => Surface::Terminal,
        None => Surface::Window,
    }
}

#[cfg(feature = "window")]
fn bench(shown: Shown, (width, height): (u32, u32), duration: Duration) -> Result<Ending> {
    let size = [width as f32, height as f32];
    let result = grebe_view::bench_window(shown.link.clone(), shown.options(), size, duration)?;
    shown.running.stop()?;
    output::json(&serde_json::to_string(&result)?)?;
    Ok(Ending::Good)
}

#[cfg(not(feature = "window"))]
fn bench(_: Shown, _: (u32, u32), _: Duration) -> Result<Ending> {
    Err(Usage("this grebe was built without its window".into()).into())
}

/// The generator of the stream, if it is ours.
enum Spawn {
    None,
    Recipe(Box<Recipe>),
    Running(Generator),
}

impl Spawn {
    /// Starts it; what it writes, where that is its stream.
    fn start(&mut self) -> Result<Option<ChildStdout>> {
        match std::mem::replace(self, Spawn::None) {
            Spawn::Recipe(recipe) => {
                let (generator, stdout) = Generator::start(*recipe)?;
                *self = Spawn::Running(generator);
                Ok(stdout)
            }
            other => {
                *self = other;
                Ok(None)
            }
        }
    }
}

/// A source with its scope, running.
fn open(uris: &[Uri], place: usize, options: &View, spawn: &mut Spawn) -> Result<Shown> {
    let uri = &uris[place];
    if let Some((host, path)) = elsewhere(uri) {
        let fetch = Fetch::start(&host, &path, &options.far.host_options())?;
        let fetched = fetch.path().to_path_buf();
        // What is short is there by now, and shown as any other.
        let recording = Incoming::open(&fetched)?;
        let shown = match recording {
            Some(recording) => look_at_incoming(recording, Some(fetch), uris, place, options)?,
            None => look_at_fetched(&fetched, fetch, uris, place, options)?,
        };
        return Ok(shown);
    }
    if let Uri::File(path) = uri
        && let Some(recording) = Incoming::open(path)?
    {
        return look_at_incoming(recording, None, uris, place, options);
    }
    if let Uri::File(path) = uri
        && let Some(recording) = OnDisk::open(path)?
    {
        return look_at(up_to(recording, options.after)?, uris, place, options);
    }
    let source = source(uri, options, spawn)?;
    let (generator, said) = match spawn {
        Spawn::Running(generator) => (generator.remote(), generator.said()),
        _ => (source.remote.map(generator::remote_of), Failure::default()),
    };
    let whole_s = options.png.as_ref().and(source.rate_hz).zip(source.span_samples);
    let whole_s = whole_s.map(|(rate_hz, samples)| samples as f64 / rate_hz);
    let scope = match options.history {
        Some(bytes) => Scope::with_history(source.stage, queue_for(uri), bytes / uris.len()),
        None => Scope::new(source.stage, queue_for(uri), uris.len()),
    };
    let asked = show_of(uris, place, options, whole_s)?;
    let show = Show {
        name: options.spawn.clone().unwrap_or_else(|| uri.to_string()),
        is_same_boot: options.spawn.is_some() || uri.traits().is_local,
        file_samples: source.samples,
        failure: scope.failure,
        second_sender: source.second_sender,
        advice: advice(uri, source.address),
        generator_said: said,
        generator: Mutex::new(generator),
        receiver: Mutex::new(source.tuner.map(receiver::remote_of)),
        finder: Some(Held::of(uri, &scope.link, asked.keeper.as_ref()).finder()),
        ..asked
    };
    show.check()?;
    Ok(Shown { running: Stoppable::new(scope.graph.start()?), link: scope.link, show })
}

/// Where a recording is that lies on another machine, if nothing here has its name.
fn elsewhere(uri: &Uri) -> Option<(SshHost, Vec<u8>)> {
    let Uri::File(path) = uri else { return None };
    if path.exists() || SampleFile::format_name(path) != Some("SigMF") {
        return None;
    }
    match location(path.clone().into_os_string()) {
        Ok(Location::There { host, path }) => Some((host, path)),
        _ => None,
    }
}

/// As a person calls it.
fn name_of(uri: &Uri, is_elsewhere: bool) -> String {
    let name = uri.to_string();
    let plain = name.strip_prefix("file:").filter(|_| is_elsewhere);
    plain.map_or_else(|| name.clone(), str::to_owned)
}

/// A recording that is still being copied.
fn look_at_incoming(
    recording: Incoming,
    fetch: Option<Fetch>,
    uris: &[Uri],
    place: usize,
    options: &View,
) -> Result<Shown> {
    let rate_hz = recording.rate_hz();
    let whole_s = Some(recording.span_samples() as f64 / if rate_hz > 0.0 { rate_hz } else { 1.0 });
    let show = Show {
        is_same_boot: true,
        is_incoming: true,
        file_samples: Some(recording.len_samples()),
        progress: recording.progress(),
        failure: fetch.as_ref().map(|fetch| fetch.failure.clone()).unwrap_or_default(),
        name: name_of(&uris[place], fetch.is_some()),
        fetch,
        ..show_of(uris, place, options, whole_s)?
    };
    show.check()?;
    let scope = Scope::of_recording(recording)?;
    Ok(Shown { running: Stoppable::new(scope.graph.start()?), link: scope.link, show })
}

/// A recording from another machine that is all here, under the name that it has there.
fn look_at_fetched(path: &Path, fetch: Fetch, uris: &[Uri], place: usize, options: &View) -> Result<Shown> {
    let mut here = uris.to_vec();
    here[place] = Uri::File(path.to_path_buf());
    let mut shown = open(&here, place, options, &mut Spawn::None)?;
    shown.show.name = name_of(&uris[place], true);
    shown.show.session = session_file(&uris[place], uris, options);
    shown.show.fetch = Some(fetch);
    Ok(shown)
}

/// As much of a recording as has come after so long.
fn up_to(recording: OnDisk, after: Option<Duration>) -> Result<OnDisk> {
    let Some(after) = after else { return Ok(recording) };
    match (after.as_secs_f64() * recording.file().sample_rate_hz()) as u64 {
        0 => Err(Usage("--after is too short, or the rate of the recording is unknown".into()).into()),
        samples => Ok(recording.up_to(samples)),
    }
}

/// A recording that is read where a picture needs it.
fn look_at(recording: OnDisk, uris: &[Uri], place: usize, options: &View) -> Result<Shown> {
    recording.file().notes().iter().for_each(|note| tell(Notice::Recording(note.clone())));
    let rate_hz = recording.file().sample_rate_hz();
    // In samples, where the rate is unknown.
    let whole_s = Some(recording.span_samples() as f64 / if rate_hz > 0.0 { rate_hz } else { 1.0 });
    let progress = recording.progress();
    let span_s = options.span.map(|span| span.as_secs_f64()).or(whole_s);
    let is_wide = span_s.is_some_and(|span_s| span_s * rate_hz.max(1.0) > READ_AT_ONCE);
    if options.png.is_some() && is_wide && progress.get().is_some() {
        note!("grebe: an exact picture takes until the file is read up to there; Ctrl-C takes it as it is");
    }
    let show = Show {
        is_same_boot: true,
        file_samples: Some(recording.len_samples()),
        progress,
        finder: file_finder(&uris[place]),
        ..show_of(uris, place, options, whole_s)?
    };
    show.check()?;
    let scope = Scope::of_recording(recording)?;
    Ok(Shown { running: Stoppable::new(scope.graph.start()?), link: scope.link, show })
}

/// What searches a recording that is looked at where it lies.
fn file_finder(uri: &Uri) -> Option<Finder> {
    let Uri::File(path) = uri else { return None };
    Some(Held::File(path.clone()).finder())
}

/// What the options say of what is shown; `whole_s` is how long it is, where all of it is to be seen.
fn show_of(uris: &[Uri], place: usize, options: &View, whole_s: Option<f64>) -> Result<Show> {
    let uri = &uris[place];
    let mut trigger = options.trigger.options();
    if options.span.is_none() && whole_s.is_some() && trigger == TriggerOptions::default() {
        // A picture of a whole file shows the whole: one that stands at a trigger would reach beyond an end.
        trigger.mode = Some(TriggerMode::Roll);
    }
    Ok(Show {
        command: "view",
        name: uri.to_string(),
        span_s: options.span.map(|span| span.as_secs_f64()).or(whole_s),
        theme: options.theme,
        spectrum: options.spectrum || options.band.is_some(),
        waterfall: options.waterfall,
        xy: options.xy || options.symbol_rate.is_some(),
        symbol_rate_hz: options.symbol_rate,
        band_hz: options.band,
        channels: setups(&options.channels.meanings)?,
        lanes: lanes(&options.channels)?,
        trigger,
        session: session_file(uri, uris, options),
        is_session_required: options.session.as_ref().is_some_and(|path| path.exists()),
        keeper: Keeper::of_stream(uri, options.ring.as_deref(), options.last),
        opener: options.png.is_none().then(opener),
        ..Show::default()
    })
}

/// Opens files in place of what a scope shows, each with the settings that were kept for it.
pub(super) fn opener() -> Arc<Opener> {
    Opener::new(|path| {
        let uri = Uri::File(path.to_owned());
        if let Some(recording) = Incoming::open(path)? {
            let name = uri.to_string();
            let show = Show {
                command: "view",
                is_same_boot: true,
                is_incoming: true,
                session: show::session_of_source(&name),
                name,
                file_samples: Some(recording.len_samples()),
                progress: recording.progress(),
                ..Show::default()
            };
            let scope = Scope::of_recording(recording)?;
            return Ok(Shown { running: Stoppable::new(scope.graph.start()?), link: scope.link, show });
        }
        if let Some(recording) = OnDisk::open(path)? {
            let name = uri.to_string();
            let show = Show {
                command: "view",
                is_same_boot: true,
                session: show::session_of_source(&name),
                name,
                file_samples: Some(recording.file().len_samples()),
                progress: recording.progress(),
                finder: file_finder(&uri),
                ..Show::default()
            };
            let scope = Scope::of_recording(recording)?;
            return Ok(Shown { running: Stoppable::new(scope.graph.start()?), link: scope.link, show });
        }
        let options = SourceOptions { cancel: interrupt::cancel(), ..SourceOptions::default() };
        let source = open_source(&uri, options, &mut |_| {})?;
        let scope = Scope::new(source.stage, QueueOptions::block, 1);
        let name = uri.to_string();
        let show = Show {
            command: "view",
            is_same_boot: true,
            session: show::session_of_source(&name),
            name,
            file_samples: source.samples,
            finder: Some(Held::of(&uri, &scope.link, None).finder()),
            failure: scope.failure,
            ..Show::default()
        };
        Ok(Shown { running: Stoppable::new(scope.graph.start()?), link: scope.link, show })
    })
}

/// How to send something to where a scope waits.
pub(super) fn advice(uri: &Uri, address: Option<SocketAddr>) -> Option<String> {
    let to = uri.way_to_send(address)?;
    let elsewhere = match address {
        Some(at) if at.ip().is_unspecified() => ", and from another machine with this one's name",
        _ => "",
    };
    Some(format!("grebe sg --to {to}  sends something here{elsewhere}"))
}

fn source(uri: &Uri, options: &View, spawn: &mut Spawn) -> Result<OpenSource> {
    let from = SourceOptions {
        transport: options.transport.options(),
        reader: "view".to_owned(),
        policy: Policy::DropOldest,
        waits: true,
        listens_on: options.png.is_none(),
        ends_with_writer: true,
        // A picture is made by a script, which nobody interrupts.
        open_timeout: options.png.as_ref().map(|_| PngOptions::new("").wait),
        duration: options.after,
        cancel: interrupt::cancel(),
        ..SourceOptions::default()
    };
    if uri.traits().is_datagram {
        let source = open_source(uri, from, &mut tell)?;
        // Nothing it sends is lost: the port is bound.
        spawn.start()?;
        return Ok(source);
    }
    match spawn.start()? {
        Some(stdout) => Ok(OpenSource::of(PipeSource::new(stdout).ends_with_writer(true))),
        None => Ok(open_source(uri, from, &mut tell)?),
    }
}

/// Where the settings are kept: as told, or in a place of this source's own. A picture for a script has none unless told.
fn session_file(uri: &Uri, uris: &[Uri], options: &View) -> Option<PathBuf> {
    match &options.session {
        _ if options.no_session => None,
        Some(path) if uris.len() > 1 => {
            let place = uris.iter().position(|other| other == uri).unwrap_or(0);
            Some(path.with_extension(format!("{}.toml", place + 1)))
        }
        Some(path) => Some(path.clone()),
        None if options.png.is_some() => None,
        None => show::session_of_source(options.spawn.as_deref().unwrap_or(&uri.to_string())),
    }
}

/// The channels as the options describe them.
pub(super) fn setups(meanings: &cli::Meanings) -> Result<Vec<ChannelSetup>> {
    let cli::Meanings { names, units, scale, offset } = meanings;
    let count = names.len().max(units.len()).max(scale.len()).max(offset.len());
    if count > 255 {
        return Err(Usage(format!("{count} channels are described: there are at most 255")).into());
    }
    if scale.contains(&0.0) {
        return Err(Usage("--scale 0 would show nothing: give the units of one count".into()).into());
    }
    let text = |list: &[String], channel: usize| list.get(channel).cloned().unwrap_or_default();
    let setup = |channel| ChannelSetup {
        name: text(names, channel),
        unit: text(units, channel),
        scale: scale.get(channel).copied().unwrap_or(1.0),
        offset: offset.get(channel).copied().unwrap_or(0.0),
        ..ChannelSetup::default()
    };
    Ok((0..count).map(setup).collect())
}

/// The channels and parts that are shown, where any are named.
fn lanes(channels: &cli::Channels) -> Result<Option<LaneMask>> {
    let cli::Channels { shown, parts, .. } = channels;
    if shown.is_empty() && parts.is_empty() {
        return Ok(None);
    }
    let mut mask = LaneMask::ALL;
    if !shown.is_empty() {
        mask = mask.only(shown.iter().flat_map(|range| range.clone()).map(|number| usize::from(number) - 1));
    }
    if !parts.is_empty() {
        let is_other = |part: &Part| parts.contains(part) != mask.has_part(*part);
        mask = Part::COMPLEX.into_iter().filter(is_other).fold(mask, LaneMask::part_toggled);
    }
    Ok(Some(mask))
}

/// What becomes of samples where the scope is late, of a queue of so many batches.
pub(super) fn queue_for(uri: &Uri) -> fn(usize) -> QueueOptions {
    match uri {
        // A live stream is never held up by its scope; a file can wait, and should be seen whole.
        Uri::File(_) => QueueOptions::block,
        // What waits is memory of the stream's, which bounds it (`?memory`). At 1 GS/s it is 130 ms: late by more, the scope leaves out.
        _ if uri.traits().is_lent => |batches| QueueOptions::drop_oldest(4 * batches),
        _ => QueueOptions::drop_oldest,
    }
}

fn is_file(uri: &Uri) -> bool {
    matches!(uri, Uri::File(_))
}

/// Samples of a picture that are read for it, whatever is known of the recording.
const READ_AT_ONCE: f64 = 4e6;
const AFTER: Duration = Duration::from_secs(2);
/// How long a picture waits for what it shows of a recording that is still being copied, or comes from another host.
const INCOMING: Duration = Duration::from_secs(60);
const WHOLE_FILE: Duration = Duration::from_secs(24 * 3600);
