//! `grebe view`: shows streams and recordings.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ChildStdout;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use grebe_connection::shown as shown_path;
use grebe_recording::SampleFile;
use grebe_shm::Policy;
use grebe_stages::{OpenSource, PipeSource, SourceOptions, Uri, open_source};
use grebe_view::{PngOptions, TriggerMode, TriggerOptions};

use crate::cli::{Location, SshHost, TimeFrequencyBox, View, ViewTarget, location};
use crate::command::cp::Fetch;
use crate::ending::{Ending, Usage};
use crate::generator::{Generator, Recipe};
use crate::graph::{listen_for_metrics, print_notice};
use crate::interrupt;
use crate::output::{self, note};
use crate::search::Signal;
use crate::show::{self, Failure, HISTORY_BYTES, Incoming, Opener, RingSaver, Show, Shown, Stored};

mod measured;
mod outcome;
mod remote;
pub(in crate::command) mod settings;

use self::outcome::print;
use self::settings::{initial, surface};

pub(crate) fn run(options: &View) -> Result<Ending> {
    options.lab.configure();
    let (mut uris, elsewhere) = places(&options.uris);
    uris.iter_mut().for_each(show::newest_of_folder);
    if !elsewhere.is_empty() {
        return remote::run(options, &uris, &elsewhere);
    }
    let recipe = match &options.spawn {
        Some(_) if uris.len() > 1 => {
            return Err(Usage("--spawn needs a single stream: give one URI, or none".into()).into());
        }
        Some(text) => Some(Recipe::parse(text, uris.first())?),
        None => None,
    };
    let uris = match &recipe {
        Some(recipe) => vec![recipe.uri.clone()],
        None => uris,
    };
    if options.ring.is_some() && uris.len() > 1 {
        return Err(Usage("--ring needs a single stream: give one URI".into()).into());
    }
    if options.json && options.png.as_deref().is_some_and(output::is_stdout) {
        return Err(Usage("--png - and --json would both write to standard output".into()).into());
    }
    // Checked first, because the picture may take long.
    if let Some(path) = &options.png
        && let Some(folder) =
            path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir())
    {
        return Err(anyhow!("cannot write {}: no such folder: {}", path.display(), folder.display()));
    }
    let metrics = listen_for_metrics(options.metrics.clone())?;
    if let Some(duration) = options.bench {
        return bench(open(&uris, 0, options, &mut Spawn::None)?, options.size, duration);
    }
    let mut spawn = recipe.map_or(Spawn::None, |recipe| Spawn::Recipe(Box::new(recipe)));
    let mut shown: Vec<Shown> =
        (0..uris.len()).map(|place| open(&uris, place, options, &mut spawn)).collect::<Result<_>>()?;
    let is_incoming = shown.iter().any(|shown| shown.show.is_incoming);
    let progress = shown.first().map(|shown| shown.show.progress.clone());
    let is_read = !is_incoming && uris.iter().all(is_file);
    if options.png.is_some() && !is_incoming {
        // The picture says itself whether it is an estimate.
        shown.iter_mut().for_each(|it| it.show.progress = it.show.progress.clone().without_line());
    }
    let ended = show::run(&surface(options, is_read), shown, metrics);
    // A failure of the generator explains a stream that failed or never came.
    if let Spawn::Running(generator) = &mut spawn {
        if ended.is_err() { generator.check_at_end() } else { generator.check() }?;
    }
    let ended = ended?;
    if let Some(words) = progress.filter(|_| is_incoming && !ended.1.is_empty()).and_then(|it| it.get()) {
        note!("grebe: {words}");
    }
    print(options, ended)
}

/// Splits local and remote targets.
fn places(uris: &[ViewTarget]) -> (Vec<Uri>, Vec<ViewTarget>) {
    let (here, elsewhere): (Vec<_>, Vec<_>) =
        uris.iter().cloned().partition(|it| matches!(it, ViewTarget::Local(_)));
    let here = here.into_iter().filter_map(|it| match it {
        ViewTarget::Local(uri) => Some(uri),
        _ => None,
    });
    (here.collect(), elsewhere)
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
    Err(Usage("this grebe was built without the window".into()).into())
}

/// Generator that this command starts.
enum Spawn {
    None,
    Recipe(Box<Recipe>),
    Running(Generator),
}

impl Spawn {
    /// Starts it; returns its output if that is the stream.
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

/// Opens a source with its scope.
fn open(uris: &[Uri], place: usize, options: &View, spawn: &mut Spawn) -> Result<Shown> {
    let uri = &uris[place];
    if let Some((host, path)) = elsewhere(uri) {
        let fetch = Fetch::start(&host, &path, &options.remote.host_options())?;
        let fetched = fetch.path().to_path_buf();
        return match Incoming::open(&fetched)? {
            Some(incoming) => open_stored(Stored::Incoming(incoming), Some(fetch), uris, place, options),
            // A short recording is complete by now.
            None => open_fetched(&fetched, fetch, uris, place, options),
        };
    }
    if let (Uri::File(path), Some(wanted)) = (uri, &options.time_frequency_box) {
        check_box(wanted, path)?;
    }
    let history_bytes = options.history.unwrap_or(HISTORY_BYTES) / uris.len();
    if let Uri::File(path) = uri
        && let Some(stored) =
            Stored::open(path, history_bytes).or_else(|error| check_exists(path).and(Err(error.into())))?
    {
        return open_stored(stored, None, uris, place, options);
    }
    let source = source(uri, options, spawn)?;
    let (generator, said) = match spawn {
        Spawn::Running(generator) => (generator.remote(), generator.last_error()),
        _ => (None, Failure::default()),
    };
    let whole_s = options.png.as_ref().and(source.rate_hz).zip(source.span_samples);
    let whole_s = whole_s.map(|(rate_hz, samples)| samples as f64 / rate_hz);
    let show = Show {
        name: options.spawn.clone().unwrap_or_else(|| uri.to_string()),
        is_same_boot: options.spawn.is_some(),
        generator_said: said,
        ..show_of(uris, place, options, whole_s)?
    };
    let mut shown = show.source(uri, source, history_bytes)?;
    if let Some(generator) = generator {
        shown.show.generator = Mutex::new(Some(generator));
    }
    Ok(shown)
}

/// A missing file is reported as such, before its extension matters.
fn check_exists(path: &Path) -> Result<()> {
    let name = path.to_string_lossy();
    let without_query = name.split_once('?').map_or(&*name, |(name, _)| name);
    match std::fs::metadata(without_query) {
        Err(error) if error.kind() == ErrorKind::NotFound && SampleFile::named(path).is_none() => {
            Err(error).with_context(|| format!("cannot open {}", shown_path(path)))
        }
        _ => Ok(()),
    }
}

/// Location of a recording on another machine, if no local file has its name.
fn elsewhere(uri: &Uri) -> Option<(SshHost, Vec<u8>)> {
    let Uri::File(path) = uri else { return None };
    if path.exists() || SampleFile::format_name(path) != Some("SigMF") {
        return None;
    }
    match location(path.clone().into_os_string()) {
        Ok(Location::Remote { host, path }) => Some((host, path)),
        _ => None,
    }
}

/// Name as the user gave it.
fn name_of(uri: &Uri, is_elsewhere: bool) -> String {
    let name = uri.to_string();
    let plain = name.strip_prefix("file:").filter(|_| is_elsewhere);
    plain.map_or_else(|| name.clone(), str::to_owned)
}

/// Opens a recording that was fetched completely, under its remote name.
fn open_fetched(path: &Path, fetch: Fetch, uris: &[Uri], place: usize, options: &View) -> Result<Shown> {
    let mut here = uris.to_vec();
    here[place] = Uri::File(path.to_path_buf());
    let mut shown = open(&here, place, options, &mut Spawn::None)?;
    shown.show.name = name_of(&uris[place], true);
    shown.show.session = session_file(&uris[place], uris, options);
    shown.show.fetch = Some(fetch);
    Ok(shown)
}

/// Opens a recording that is read on demand; `fetch` brings it from another host.
fn open_stored(
    stored: Stored,
    fetch: Option<Fetch>,
    uris: &[Uri],
    place: usize,
    options: &View,
) -> Result<Shown> {
    stored.print_notes();
    let stored = match options.after {
        Some(after) => stored.up_to(after)?,
        None => stored,
    };
    // A picture of a recording that grows would never be exact.
    let stored = if options.png.is_some() { stored.cut_off_now() } else { stored };
    // In samples if the rate is unknown.
    let rate_hz = stored.rate_hz().unwrap_or(1.0);
    let whole_s = stored.span_samples() as f64 / rate_hz;
    let is_wide = options.span.map_or(whole_s, |span| span.as_secs_f64()) * rate_hz > READ_AT_ONCE;
    let is_incoming = matches!(stored, Stored::Incoming(_));
    if options.png.is_some() && is_wide && !is_incoming && stored.progress().get().is_some() {
        note!("grebe: an exact picture needs the file up to that position; Ctrl-C draws an estimate now");
    }
    let name = name_of(&uris[place], fetch.is_some());
    Show { name, ..show_of(uris, place, options, Some(whole_s))? }.stored(&uris[place], stored, fetch)
}

/// Checks that a recording has samples and frequencies of the box. One that cannot be opened is reported later.
fn check_box(wanted: &TimeFrequencyBox, path: &Path) -> Result<()> {
    let Ok(file) = SampleFile::open(path) else { return Ok(()) };
    if file.rate_hz().is_some() {
        Signal::check_band_of(&file, "--box", Some((wanted.low_hz, wanted.high_hz)))?;
        file.stretch(wanted.start, None).map_err(|error| Usage(format!("--box: {error}")))?;
    }
    Ok(())
}

/// Settings of the scope; `whole_s` is the duration if all of it is to be shown.
fn show_of(uris: &[Uri], place: usize, options: &View, whole_s: Option<f64>) -> Result<Show> {
    let uri = &uris[place];
    let mut initial = initial(options)?;
    let is_placed = options.span.is_none() || (options.png.is_some() && options.after.is_some());
    if is_placed && whole_s.is_some() && initial.trigger == TriggerOptions::default() {
        // A trigger would move the picture of a whole file beyond an end, or away from the given position.
        initial.trigger.mode = Some(TriggerMode::Roll);
    }
    initial.span = initial.span.or(whole_s);
    Ok(Show {
        command: "view",
        name: uri.to_string(),
        initial,
        session: session_file(uri, uris, options),
        is_session_required: options.session.as_ref().is_some_and(|path| path.exists()),
        keeper: RingSaver::of_stream(uri, options.ring.as_deref(), options.last),
        opener: options.png.is_none().then(opener),
        ..Show::default()
    })
}

/// Opens files in place of the current source, with their own settings.
pub(super) fn opener() -> Arc<Opener> {
    Opener::new(|path| {
        let uri = Uri::File(path.to_owned());
        let name = uri.to_string();
        let show = Show { command: "view", session: show::session_of_source(&name), name, ..Show::default() };
        if let Some(stored) = Stored::open(path, HISTORY_BYTES)? {
            return show.stored(&uri, stored, None);
        }
        let options = SourceOptions { cancel: interrupt::cancel(), ..SourceOptions::default() };
        Show { is_same_boot: true, ..show }.source(
            &uri,
            open_source(&uri, options, &mut |_| {})?,
            HISTORY_BYTES,
        )
    })
}

fn source(uri: &Uri, options: &View, spawn: &mut Spawn) -> Result<OpenSource> {
    let from = SourceOptions {
        transport: options.transport.options(),
        reader: "view".to_owned(),
        policy: Policy::DropOldest,
        waits: true,
        listens_on: options.png.is_none(),
        ends_with_writer: true,
        // Pictures are made by scripts, which need a timeout.
        open_timeout: options.png.as_ref().map(|_| PngOptions::new("").wait),
        duration: options.after,
        cancel: interrupt::cancel(),
        ..SourceOptions::default()
    };
    if uri.traits().is_datagram {
        let source = open_source(uri, from, &mut print_notice)?;
        // No frame is lost, because the port is bound.
        spawn.start()?;
        return Ok(source);
    }
    match spawn.start()? {
        Some(stdout) => Ok(OpenSource::of(PipeSource::new(stdout).ends_with_writer(true))),
        None => Ok(open_source(uri, from, &mut print_notice)?),
    }
}

/// Path of the settings file: as given, or one per source. Pictures have none by default.
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

fn is_file(uri: &Uri) -> bool {
    matches!(uri, Uri::File(_))
}

/// Samples that are read for a picture in any case.
const READ_AT_ONCE: f64 = 4e6;
