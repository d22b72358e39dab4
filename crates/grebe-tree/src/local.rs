//! Both ends in one process: messages pass through memory, and the system copies the content.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use grebe_packet::Cancel;

use crate::error::{Error, Result};
use crate::exclude::Exclude;
use crate::handover::Handover;
use crate::name::bytes_of;
use crate::pipe::pipe;
use crate::progress::Progress;
use crate::receive::{self, How, ReceiveTree};
use crate::report::Report;
use crate::scan::means_contents;
use crate::send::{self, SendTree, What};

/// Copies trees within this host, like [`send`](crate::send) and [`receive`](crate::receive). File systems
/// that can share content share it; otherwise the system copies it.
///
/// # Errors
/// As those of [`send`](crate::send) and [`receive`](crate::receive); `tree` has the options.
pub fn copy(
    tree: &SendTree,
    destination: &Path,
    progress: &Arc<Progress>,
    cancel: &Cancel,
) -> Result<Report> {
    check_not_inside(tree, destination)?;
    let handover = Handover::default();
    let (sent_read, sent_write) = pipe();
    let (answers_read, answers_write) = pipe();
    // The receiver's counters are shown, because it knows what is complete.
    let unseen = Arc::new(Progress::default());
    std::thread::scope(|scope| {
        let sending = {
            let handover = &handover;
            let unseen = &unseen;
            scope.spawn(move || {
                send::run(answers_read, sent_write, &What::Tree(tree, Some(handover)), unseen, cancel)
            })
        };
        let receiving =
            ReceiveTree { destination: destination.to_path_buf(), options: None, is_fresh: false };
        let received = receive::run(
            sent_read,
            answers_write,
            &How::Tree(&receiving, Some(handover.clone())),
            progress,
            cancel,
        );
        let sent = sending.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        match (sent, received) {
            (Ok(sent), Ok(received)) => {
                Ok(Report { sender: sent.sender, read_bytes: 0, written_bytes: 0, ..received })
            }
            // If each end stopped the other, the one with a reason of its own is reported.
            (Err(sent), Err(Error::Closed | Error::Peer { .. })) => Err(sent),
            (_, Err(received)) => Err(received),
            (Err(sent), Ok(_)) => Err(sent),
        }
    })
}

/// Refuses to copy a tree into itself, because it would grow during the walk.
fn check_not_inside(tree: &SendTree, destination: &Path) -> Result<()> {
    let Some(options) = tree.options.as_ref().filter(|options| options.recursive) else { return Ok(()) };
    let exclude = Exclude::new(&options.exclude)?;
    let gets_name = !receive::nests(destination) && tree.sources.len() == 1;
    for source in &tree.sources {
        let is_contents = means_contents(source);
        let is_link_itself = options.modes && !is_contents && source.is_symlink();
        let (Ok(at), Some(mut into)) = (source.canonicalize(), resolved(destination)) else { continue };
        let name = (!is_contents).then(|| source.file_name()).flatten();
        if let (Some(name), false) = (name, gets_name) {
            into.push(name);
        }
        let inside = into.strip_prefix(&at).unwrap_or(Path::new(""));
        if is_link_itself || inside.as_os_str().is_empty() {
            continue;
        }
        // Path as the walk names it, from the top of the copy.
        let from_top = name.map_or_else(|| inside.to_path_buf(), |name| Path::new(name).join(inside));
        let is_excluded = from_top.ancestors().any(|path| exclude.matches(&bytes_of(path.as_os_str()), true));
        if !is_excluded {
            let why = "it lies within a source, so the copy would never end; name another destination, or exclude it (--exclude)";
            return Err(Error::Destination { path: destination.to_path_buf(), why });
        }
    }
    Ok(())
}

/// Path with links resolved. The last component need not exist.
fn resolved(path: &Path) -> Option<PathBuf> {
    if let Ok(resolved) = path.canonicalize() {
        return Some(resolved);
    }
    let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(above.canonicalize().ok()?.join(path.file_name()?))
}
