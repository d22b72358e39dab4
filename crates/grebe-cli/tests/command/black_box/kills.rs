//! Recorders and saves that are killed at any moment.

use super::*;
use crate::support::Good;
use crate::support::kills::kills;

/// Checks all recordings of a folder, also by SigMF's validator if `GREBE_VALIDATE` has its path. Returns how many
/// there are.
fn check_all(folder: &Path, made: &[Vec<i16>; 2]) -> usize {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let all: Vec<PathBuf> = names.collect();
    let with = |extension: &'static str| {
        all.iter().filter(move |path| path.extension().is_some_and(|it| it == extension))
    };
    let known = parts(folder);
    for data in with("sigmf-data").filter(|data| !data.with_extension("sigmf-meta").exists()) {
        // A part that was being removed or renamed: it does not count as a recording, and the next recorder removes it.
        let is_ring = data.file_name().unwrap().to_str().unwrap().starts_with("ring_");
        let is_at_an_end =
            |it: Option<&PathBuf>| it.is_some_and(|part| number(data).abs_diff(number(part)) == 1);
        assert!(is_ring && (is_at_an_end(known.first()) || is_at_an_end(known.last())), "{data:?}: {all:?}");
    }
    let collections = collections(folder);
    assert!(with("sigmf-collection").all(|path| collections.contains(path)), "{all:?}");
    for collection in &collections {
        let mut file = SampleFile::open(collection).unwrap_or_else(|error| panic!("{error}: {all:?}"));
        check(&mut file, made);
    }
    let metas: Vec<&PathBuf> = with("sigmf-meta").collect();
    if let Ok(validator) = std::env::var("GREBE_VALIDATE")
        && !metas.is_empty()
    {
        std::process::Command::new(validator).args(metas).output().unwrap().good();
    }
    collections.len()
}

#[test]
fn kills_leave_only_valid_recordings() {
    let made = made();
    let mut worst = Duration::ZERO;
    for number in 0..kills() {
        let folder = folder();
        // Four parts a second, so that each third kill or so is within a rotation.
        let mut recorder = Recorder::start(SAWS, folder.path(), &["--ring", "16M"]);
        let lived = Duration::from_millis(50 + u64::from(number) * 617 % 2_900);
        let began = Instant::now();
        let mut saves = Vec::new();
        while began.elapsed() < lived {
            if number % 3 > 0 && saves.len() < 5 && !parts(folder.path()).is_empty() {
                let arguments = ["save", folder.path().to_str().unwrap(), "--last", "500ms"];
                let mut save = grebe(&arguments);
                saves.push(save.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
            }
            std::thread::sleep(Duration::from_millis(30));
        }
        let killed = SystemTime::now();
        recorder.kill();
        for (at, mut save) in saves.into_iter().enumerate() {
            // Some see the recorder go; some are killed as well.
            if at % 2 == 0 {
                let _ = save.kill();
            }
            save.wait().unwrap();
        }
        let count = check_all(folder.path(), &made);
        let Some(last) = parts(folder.path()).pop() else {
            println!("nothing yet after {lived:?}");
            continue;
        };
        let file = SampleFile::open(&last).unwrap();
        let missing = killed.duration_since(file.time_at(file.len_samples()).unwrap()).unwrap_or_default();
        worst = worst.max(missing);
        let (status, saved, said) = save(folder.path(), &["--last", "1h"]);
        assert_eq!(status, Some(4), "{said}");
        check(&mut file_of(&saved), &made);
        println!("{number}: {count} recordings after {lived:?}; the last {missing:?} were missing");
    }
    println!("{} kills: at most the last {worst:?} were missing", kills());
}
