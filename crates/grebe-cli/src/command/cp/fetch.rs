//! Fetches a recording from another machine for a viewer: viewed ranges come into a folder that exists as long as the
//! viewer.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use grebe_connection::Cancel;
use grebe_remote::{Config, Hello, HostOptions, Remote};
use grebe_tree::{Arriving, Progress};
use serde_json::Value;

use super::lines::{COPIES, CopyOptions, CopyTask, KNOWS_ORDER, ReportLevel, Task};
use super::path_text::PathText;
use super::reporter::Reporter;
use super::tree;
use crate::cli::{Reporting, SshHost, printable};
use crate::command::remote::{self, dialer};
use crate::ending::Usage;
use crate::interrupt;
use crate::show::Failure;

/// Recording that is fetched as it is viewed.
pub(crate) struct Fetch {
    folder: Folder,
    name: PathBuf,
    /// Reason for the end of the transfer, once it has ended early.
    pub(crate) failure: Failure,
    cancel: Cancel,
    copying: Option<JoinHandle<Result<()>>>,
    there: Option<Remote>,
}

impl Fetch {
    /// Logs in, and waits until the recording can be opened.
    pub(crate) fn start(host: &SshHost, path: &[u8], how: &HostOptions) -> Result<Self> {
        interrupt::catch();
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
        let name = str::from_utf8(name)
            .map_err(|_| Usage("invalid UTF-8 in the name of the recording".to_owned()))?;
        let folder = Folder::make()?;
        let cancel = interrupt::cancel();
        let settings = remote::settings(&Config::of_user()?, host, how)?;
        let task = Task::Send { sources: vec![PathText::of(path)], recordings: true, is_fresh: false };
        let task = CopyTask { task, what: None, tells: ReportLevel::Failures };
        let hello = Hello::new(&COPIES, settings.meet(), settings.terms(), task);
        let mut there = Remote::start(&settings, &COPIES, &hello, &interrupt::is_pending)?;
        if !there.ready().has(KNOWS_ORDER) {
            bail!(
                "{host} has grebe {}, which sends files only as a whole: copy it (grebe cp '{host}:{}*' .), or have this grebe {} there",
                there.version(),
                printable(path.strip_suffix(b"sigmf-meta").unwrap_or(path)),
                env!("CARGO_PKG_VERSION")
            );
        }
        let reporter = Reporter::new(&Reporting { quiet: true, ..Reporting::default() }, false)?;
        let channel = match there.channel(&settings, &dialer(&settings, &cancel, &reporter.notify())) {
            Ok(channel) => channel,
            Err(error) => return Err(reporter.explain(there, error.into())),
        };
        let copy_options = CopyOptions { progressive: true, only_wanted: true, ..CopyOptions::default() };
        let receive = Task::Receive { destination: PathText::of_path(&folder.inside), name: None };
        let failure = Failure::default();
        let (own, said) = (cancel.clone(), failure.clone());
        let copying = thread::Builder::new().name("fetch".to_owned()).spawn(move || {
            let progress = Arc::new(Progress::default());
            let copied = tree::run(&receive, Some(&copy_options), false, channel, &progress, &own);
            match copied {
                Ok(outcome) => outcome.first_left_out().map_or(Ok(()), |why| Err(anyhow!(why))),
                Err(error) => {
                    said.set(format!("the transfer stopped: {error:#}"));
                    Err(error)
                }
            }
        })?;
        let fetch = Self {
            name: folder.inside.join(name),
            folder,
            failure,
            cancel,
            copying: Some(copying),
            there: Some(there),
        };
        fetch.wait(&reporter)
    }

    /// The file that a scope opens.
    pub(crate) fn path(&self) -> &Path {
        &self.name
    }

    /// Waits for the metadata, and a part of the data or all of it.
    fn wait(mut self, reporter: &Reporter) -> Result<Self> {
        let began = Instant::now();
        loop {
            let is_over = self.copying.as_ref().is_none_or(JoinHandle::is_finished);
            let Some(missing) = self.missing() else { return Ok(self) };
            if is_over {
                let ended = self.copying.take().and_then(|copying| copying.join().ok());
                let error = match ended {
                    Some(Err(error)) => error,
                    _ => anyhow!("it has no samples"),
                };
                return match self.there.take() {
                    Some(there) => Err(reporter.explain(there, error)),
                    None => Err(error),
                };
            }
            if interrupt::is_pending() {
                return Err(grebe_tree::Error::Cancelled.into());
            }
            if began.elapsed() > BEGINS_WITHIN {
                let missing = missing.strip_prefix(&self.folder.inside).unwrap_or(&missing).display();
                bail!("{missing} did not arrive within {} s: check that it exists", BEGINS_WITHIN.as_secs());
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// The first file that a scope needs and that has not begun to arrive.
    fn missing(&self) -> Option<PathBuf> {
        let has_data = |name: &Path| {
            let is_data = |path: &Path| path.extension().is_some_and(|extension| extension == "sigmf-data");
            is_data(name) && name.is_file() || Arriving::find(name).is_ok_and(|found| found.is_some())
        };
        let base = self.name.with_extension("").into_os_string();
        let with = |end: &str| {
            let mut name = base.clone();
            name.push(end);
            PathBuf::from(name)
        };
        let metas = match fs::read(with(".sigmf-collection")) {
            Ok(collection) => metas_of(&collection, &self.folder.inside),
            Err(_) => vec![with(".sigmf-meta")],
        };
        let mut missing = metas.iter().flat_map(|meta| {
            let data = meta.with_extension("sigmf-data");
            [(!meta.is_file()).then(|| meta.clone()), (!has_data(&data)).then_some(data)]
        });
        missing.find_map(|file| file)
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        self.cancel.cancel();
        if let Some(there) = self.there.take() {
            there.let_go();
        }
        if let Some(copying) = self.copying.take() {
            // It ends soon; its last words are not needed.
            let _ = copying.join();
        }
    }
}

/// The metadata files that a collection names. Files get their names in any order, so some may be missing.
fn metas_of(collection: &[u8], folder: &Path) -> Vec<PathBuf> {
    let collection: Value = serde_json::from_slice(collection).unwrap_or_default();
    let streams = collection.pointer("/collection/core:streams").and_then(Value::as_array);
    let names = streams.into_iter().flatten().filter_map(|stream| {
        // Older files have a pair instead of an object.
        stream.get("name").or(stream.get(0))?.as_str()
    });
    // An opener of the recording refuses other entries.
    names.map(|name| folder.join(format!("{name}.sigmf-meta"))).collect()
}

/// Folder of this process in the user's cache, because a viewed recording may exceed memory. The next process removes
/// the folder of one that was killed.
struct Folder {
    /// Folder of the fetched files.
    inside: PathBuf,
    /// Held while the folder is in use.
    _lock: File,
    _folder: tempfile::TempDir,
}

impl Folder {
    fn make() -> Result<Self> {
        let all = cache().context("no cache folder: set XDG_CACHE_HOME")?;
        fs::create_dir_all(&all).with_context(|| format!("cannot create {}", all.display()))?;
        for entry in fs::read_dir(&all).into_iter().flatten().flatten() {
            let lock = File::open(entry.path().join(LOCK));
            if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let folder = tempfile::Builder::new().prefix("look-").tempdir_in(&all);
        let folder = folder.with_context(|| format!("cannot create a folder in {}", all.display()))?;
        let lock = File::create(folder.path().join(LOCK))?;
        lock.try_lock().map_err(|error| anyhow!("cannot lock {}: {error}", folder.path().display()))?;
        let inside = folder.path().join("files");
        fs::create_dir(&inside)?;
        Ok(Self { inside, _lock: lock, _folder: folder })
    }
}

fn cache() -> Option<PathBuf> {
    let home = |variable: &str| std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
    let cache = home("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    let cache = cache.or_else(|| home("LOCALAPPDATA")).or_else(|| Some(home("HOME")?.join(".cache")))?;
    Some(cache.join("grebe").join("looks"))
}

const LOCK: &str = "lock";
/// The sender makes missing summaries first.
const BEGINS_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collection_waits_for_all_that_it_names() {
        let of = |collection: &[u8]| metas_of(collection, Path::new("files"));
        let two =
            br#"{"collection": {"core:streams": [{"name": "two_ch1"}, {"hash": "x"}, ["two_ch2", "x"]]}}"#;
        assert_eq!(of(two), [Path::new("files/two_ch1.sigmf-meta"), Path::new("files/two_ch2.sigmf-meta")]);
        assert!(of(b"no collection").is_empty());
    }
}
