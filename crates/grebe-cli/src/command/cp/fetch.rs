//! A recording on another machine, to look at: what a scope shows of it comes here, into a folder that goes with the scope.

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

use super::lines::{COPIES, CopyTask, KNOWS_ORDER, Task, Tells, Wishes};
use super::path_text::PathText;
use super::teller::Teller;
use super::tree;
use crate::cli::{SshHost, Tell, printable};
use crate::command::remote::{self, dialer};
use crate::ending::Usage;
use crate::interrupt;
use crate::show::Failure;

/// A recording that comes as it is looked at.
pub(crate) struct Fetch {
    folder: Folder,
    name: PathBuf,
    /// Why no more of it comes, once none does.
    pub(crate) failure: Failure,
    cancel: Cancel,
    copying: Option<JoinHandle<Result<()>>>,
    there: Option<Remote>,
}

impl Fetch {
    /// Logs in, and waits until there is something to look at.
    pub(crate) fn start(host: &SshHost, path: &[u8], how: &HostOptions) -> Result<Self> {
        interrupt::catch();
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
        let name =
            str::from_utf8(name).map_err(|_| Usage("the name of the recording is no text".to_owned()))?;
        let folder = Folder::make()?;
        let cancel = interrupt::cancel();
        let settings = remote::settings(&Config::of_user()?, host, how)?;
        let task = Task::Send { sources: vec![PathText::of(path)], recordings: true, is_fresh: false };
        let task = CopyTask { task, what: None, tells: Tells::Failures };
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
        let teller = Teller::new(&Tell { quiet: true, ..Tell::default() }, false)?;
        let channel = match there.channel(&settings, &dialer(&settings, &cancel, &teller.notify())) {
            Ok(channel) => channel,
            Err(error) => return Err(teller.explain(there, error.into())),
        };
        let wishes = Wishes { progressive: true, only_wanted: true, ..Wishes::default() };
        let receive = Task::Receive { destination: PathText::of_path(&folder.inside) };
        let failure = Failure::default();
        let (own, said) = (cancel.clone(), failure.clone());
        let copying = thread::Builder::new().name("fetch".to_owned()).spawn(move || {
            let progress = Arc::new(Progress::default());
            let copied = tree::run(&receive, Some(&wishes), false, channel, &progress, &own);
            match copied {
                Ok(outcome) => outcome.first_left_out().map_or(Ok(()), |why| Err(anyhow!(why))),
                Err(error) => {
                    said.set(format!("no more of it comes: {error:#}"));
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
        fetch.wait(&teller)
    }

    /// What a scope opens.
    pub(crate) fn path(&self) -> &Path {
        &self.name
    }

    /// Until the metadata are there, and either a part of the data or all of it.
    fn wait(mut self, teller: &Teller) -> Result<Self> {
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
                    Some(there) => Err(teller.explain(there, error)),
                    None => Err(error),
                };
            }
            if interrupt::is_pending() {
                return Err(grebe_tree::Error::Cancelled.into());
            }
            if began.elapsed() > BEGINS_WITHIN {
                let missing = missing.strip_prefix(&self.folder.inside).unwrap_or(&missing).display();
                bail!("{missing} did not begin to come within {} s: is it there?", BEGINS_WITHIN.as_secs());
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// What a scope cannot do without and has not begun to come.
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
            // It ends soon; nobody needs what it says.
            let _ = copying.join();
        }
    }
}

/// The metadata that a collection names. Small files get their names in any order, so that any of these may still be missing.
fn metas_of(collection: &[u8], folder: &Path) -> Vec<PathBuf> {
    let collection: Value = serde_json::from_slice(collection).unwrap_or_default();
    let streams = collection.pointer("/collection/core:streams").and_then(Value::as_array);
    let names = streams.into_iter().flatten().filter_map(|stream| {
        // Older files have a pair in the place of an object.
        stream.get("name").or(stream.get(0))?.as_str()
    });
    // What else it may say is refused by whoever opens it.
    names.map(|name| folder.join(format!("{name}.sigmf-meta"))).collect()
}

/// A folder of this process in the user's cache: what was looked at may be more than fits into memory. One that a killed process left is
/// removed by the next.
struct Folder {
    /// What comes lies there.
    inside: PathBuf,
    /// Held as long as the folder is used.
    _lock: File,
    _folder: tempfile::TempDir,
}

impl Folder {
    fn make() -> Result<Self> {
        let all = cache().context("there is no folder for what is looked at: set XDG_CACHE_HOME")?;
        fs::create_dir_all(&all).with_context(|| format!("cannot make {}", all.display()))?;
        for entry in fs::read_dir(&all).into_iter().flatten().flatten() {
            let lock = File::open(entry.path().join(LOCK));
            if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let folder = tempfile::Builder::new().prefix("look-").tempdir_in(&all);
        let folder = folder.with_context(|| format!("cannot make a folder in {}", all.display()))?;
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
/// Summaries that are missing are made there first.
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
