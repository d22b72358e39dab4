//! Bands and boxes that are cut out of a recording or a ring.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use anyhow::Result;
use grebe_recording::{BandCut, BoxCut, CutBox, SampleFile, ring_parts};

use super::save::{Origin, save, selected, with_progress};
use crate::cli::{Convert, TimeFrequencyBox};
use crate::ending::{Ending, Usage};
use crate::interrupt;
use crate::output::note;
use crate::units::{exact, grouped};

/// Cuts all boxes in one pass into the temporary folder, then saves each under its name.
pub(super) fn cut(options: &Convert, from: &Path, boxes: Vec<CutBox>, apart: &Path) -> Result<Ending> {
    let names = names(options)?;
    let files = if from.is_dir() { ring_parts(from)? } else { vec![SampleFile::open(from)?] };
    files.iter().flat_map(SampleFile::notes).for_each(|line| note!("grebe: {line}"));
    let files: Result<Vec<_>> = files.into_iter().map(|file| selected(file, options)).collect();
    let cut = BandCut::new(files?, boxes.clone())?;
    let what = if cut.is_on_air() { "on the air" } else { "in the signal" };
    for CutBox { centre_hz, bandwidth_hz, .. } in &boxes {
        let [low, high] = [-0.5, 0.5].map(|half| exact(centre_hz + half * bandwidth_hz, "Hz"));
        note!("grebe: cutting {low} to {high} {what}");
    }
    let apart: Vec<PathBuf> = (0..boxes.len()).map(|number| apart.join(format!("box{number}"))).collect();
    let done = AtomicU64::new(0);
    let samples = cut.samples_to_read();
    let cuts = with_progress(&done, samples, || cut.write(&apart, &done, &interrupt::cancel()))?;
    for (((to, made), cut), wanted) in names.iter().zip(&apart).zip(cuts).zip(&boxes) {
        report(&cut, to);
        if cut.samples > 0 {
            let origin =
                Origin { made_from: Some(options.from.clone()), made_as: Some(format!("{wanted:?}")) };
            save(SampleFile::open(made)?, options, to, origin)?;
        }
    }
    Ok(Ending::Good)
}

/// The name of each result: that of OUT, followed by the box if there are several.
fn names(options: &Convert) -> Result<Vec<PathBuf>> {
    let boxes = &options.cutting.boxes;
    if boxes.len() < 2 {
        return Ok(vec![options.to.clone()]);
    }
    let named = |it: &TimeFrequencyBox| {
        let words = it.file_words();
        let stem = options.to.file_stem().unwrap_or_default().to_string_lossy();
        match options.to.extension() {
            Some(ending) => options.to.with_file_name(format!("{stem}_{words}.{}", ending.to_string_lossy())),
            None => options.to.with_file_name(format!("{stem}_{words}")),
        }
    };
    let names: Vec<PathBuf> = boxes.iter().map(named).collect();
    let mut seen = HashSet::new();
    match names.iter().find(|name| !seen.insert(*name)) {
        Some(name) => Err(Usage(format!("--box: two boxes would be {}", name.display())).into()),
        None => Ok(names),
    }
}

/// Reports imperfections of a cut.
fn report(cut: &BoxCut, to: &Path) {
    let name = to.display();
    if cut.samples == 0 {
        note!("grebe: no sample of the recording lies in the box of {name}: it is not written");
    }
    if cut.outside_samples > 0 {
        let missing = grouped(cut.outside_samples);
        note!("grebe: {name}: the receiver was tuned elsewhere for {missing} samples, which are a gap");
    }
    if cut.invalid_samples > 0 {
        let invalid = grouped(cut.invalid_samples);
        let are = if cut.invalid_samples == 1 { "sample is" } else { "samples are" };
        note!("grebe: {name}: {invalid} {are} not finite, and count as zero");
    }
    let edges = match cut.edge_samples {
        _ if cut.samples == 0 => return,
        (0, 0) => return,
        (before, 0) => format!("first {before}"),
        (0, after) => format!("last {after}"),
        (before, after) => format!("first {before} and last {after}"),
    };
    note!("grebe: {name}: the {edges} samples are attenuated, because nothing was recorded beside them");
}
