use std::sync::mpsc::channel;
use std::time::Duration;

use grebe_frame::Batch;
use grebe_testing::stream::{batches_of, sample_at};

use super::*;
use crate::SampleFile;

/// Folders for two disks.
fn two() -> (tempfile::TempDir, [PathBuf; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let metas = ["one", "two"].map(|disk| {
        fs::create_dir(folder.path().join(disk)).unwrap();
        folder.path().join(disk).join("x.sigmf-meta")
    });
    (folder, metas)
}

/// A recording on them in stripes of 1 MiB.
fn begin(metas: &[PathBuf; 2], channels: usize, news: Option<Sender<LeftOut>>) -> Stripes {
    let named = |meta: &PathBuf| {
        let base = Base::to_record(meta).unwrap();
        (base.clone(), base.lock().unwrap())
    };
    let settings =
        SigmfSettings { channels, sample_rate_hz: 1e6, buffer_bytes: 4 << 20, ..SigmfSettings::default() };
    Stripes::create(metas.iter().map(named).collect(), &settings, news).unwrap()
}

fn write(stripes: &mut Stripes, batches: &[Batch]) {
    for frame in batches.iter().flat_map(|batch| batch.frames()) {
        stripes.write_part(&frame, 0..frame.header().block_length_samples as usize).unwrap();
    }
}

/// Frames of 16,000 samples from this one on.
fn frames(first: u64, count: u64) -> Vec<(u64, u32)> {
    (0..count).map(|number| (first + number * 16_000, 16_000)).collect()
}

fn check(file: &mut SampleFile) {
    for segment in file.segments().to_vec() {
        for channel in 0..file.channels() {
            let block = file.block(segment.position, segment.length_samples as usize).unwrap();
            let is = block.channel::<i16>(channel).unwrap();
            let indexes = segment.first_sample_index..;
            assert!(
                is.iter().zip(indexes).all(|(&is, index)| is == sample_at(channel, index)),
                "{segment:?}"
            );
        }
    }
}

fn stretches(file: &SampleFile) -> Vec<(u64, u64)> {
    file.segments().iter().map(|it| (it.first_sample_index, it.length_samples)).collect()
}

#[test]
fn whichever_disk_is_opened_the_recording_is_whole() {
    // With nine channels, frames are a fifth as long.
    for (channels, parts) in [(1, 1), (2, 1), (9, 5)] {
        let (_folder, metas) = two();
        let mut stripes = begin(&metas, channels, None);
        // A gap, and a stream that begins again.
        let frames = [frames(1_000, 90), frames(2_000_000, 40), frames(500, 60)].concat();
        let length = 16_000 / parts;
        let part =
            |&(first, _): &(u64, u32)| (0..parts).map(move |at| (first + u64::from(at * length), length));
        let frames: Vec<_> = frames.iter().flat_map(part).collect();
        write(&mut stripes, &batches_of(channels as u32, &frames, 1));
        stripes.finish().unwrap();
        for (_, state, samples, _) in stripes.disks() {
            assert_eq!(state, DiskState::Good);
            assert!(samples > 500_000 / channels as u64, "{samples}");
        }
        for meta in &metas {
            let mut file = SampleFile::open(meta).unwrap();
            assert!(file.notes().is_empty() && file.is_whole(), "{:?}", file.notes());
            assert_eq!(stretches(&file), [(1_000, 1_440_000), (2_000_000, 640_000), (500, 960_000)]);
            assert_eq!(file.channels(), channels);
            check(&mut file);
        }
    }
}

#[test]
fn a_short_recording_is_on_one_disk_and_knows_of_no_other() {
    let (_folder, metas) = two();
    let mut stripes = begin(&metas, 1, None);
    write(&mut stripes, &batches_of(1, &frames(0, 3), 1));
    stripes.finish().unwrap();
    let there: Vec<bool> = metas.iter().map(|meta| meta.exists()).collect();
    assert_eq!(there.iter().filter(|&&there| there).count(), 1);
    let meta = &metas[there.iter().position(|&there| there).unwrap()];
    assert!(!fs::read_to_string(meta).unwrap().contains("stripe"));
    check(&mut SampleFile::open(meta).unwrap());
}

#[test]
fn an_annotation_spans_stripes_and_gaps_and_descriptions_apply_to_all() {
    let (_folder, metas) = two();
    let mut stripes = begin(&metas, 1, None);
    stripes
        .describe(Some(&Arc::new(Description { centre_frequency_hz: Some(1e6), ..Description::default() })));
    write(&mut stripes, &batches_of(1, &frames(0, 20), 1));
    // From the first stripe past the gap; and a late one within it.
    stripes.annotate(100_000, 1_900_000, "long").unwrap();
    write(&mut stripes, &batches_of(1, &frames(320_000, 80), 1));
    stripes.annotate(200_000, 10, "late").unwrap();
    stripes
        .describe(Some(&Arc::new(Description { centre_frequency_hz: Some(2e6), ..Description::default() })));
    write(&mut stripes, &batches_of(1, &frames(1_700_000, 80), 1));
    stripes.finish().unwrap();
    for meta in &metas {
        let file = SampleFile::open(meta).unwrap();
        assert_eq!(stretches(&file), [(0, 1_600_000), (1_700_000, 1_280_000)]);
        let labels = file.annotations().iter();
        let labels: Vec<_> = labels
            .map(|it| (it.position, it.length_samples, it.fields["core:label"].as_str().unwrap()))
            .collect();
        // 100,000 of its samples lie in the gap.
        assert_eq!(labels, [(100_000, 1_800_000, "long"), (200_000, 10, "late")]);
        assert!(file.annotations().iter().all(|it| it.fields.len() == 1));
        let frequency = |at| file.description(at).and_then(|it| it.centre_frequency_hz);
        assert_eq!(
            [0, 1_599_999, 1_600_000, 2_879_999].map(frequency),
            [Some(1e6), Some(1e6), Some(2e6), Some(2e6)]
        );
        assert_eq!(file.description_count(), 2);
    }
}

#[test]
fn a_disk_that_fails_is_left_out_and_what_waited_for_it_is_a_gap() {
    let (_folder, metas) = two();
    let (news, told) = channel();
    let mut stripes = begin(&metas, 1, Some(news));
    stripes.lanes[1].writer.limit(0, 1_500_000);
    let batches = batches_of(1, &frames(0, 400), 1);
    let (before, behind) = batches.split_at(300);
    write(&mut stripes, before);
    // The next write there notices it, or a check within a quarter of a second.
    let began = std::time::Instant::now();
    while stripes.lanes.len() > 1 {
        assert!(began.elapsed() < Duration::from_secs(60));
        thread::sleep(Duration::from_millis(20));
        stripes.pause_others().unwrap();
    }
    write(&mut stripes, behind);
    stripes.finish().unwrap();
    let lost = stripes.lost_samples();
    assert!(lost > 0 && lost < 2 << 20, "{lost}");
    let LeftOut { path, why } = told.recv().unwrap();
    assert!(
        path.ends_with("two/x.sigmf-meta") && why.contains("the data waiting for it is lost"),
        "{path:?}: {why}"
    );
    let states: Vec<_> = stripes.disks().map(|(number, state, ..)| (number, state)).collect();
    assert!(states.contains(&(0, DiskState::Good)) && states.contains(&(1, DiskState::Full)), "{states:?}");
    for meta in &metas {
        let mut file = SampleFile::open(meta).unwrap();
        assert_eq!(file.len_samples() + lost, 6_400_000);
        assert_eq!(file.gaps().map(|gap| gap.length_samples).sum::<u64>(), lost);
        check(&mut file);
    }
}

#[test]
fn samples_of_a_missing_disk_are_a_reported_gap() {
    let (folder, metas) = two();
    let mut stripes = begin(&metas, 1, None);
    write(&mut stripes, &batches_of(1, &frames(0, 200), 1));
    stripes.finish().unwrap();
    let of_one = SampleFile::open(&metas[0]).unwrap().len_samples();
    assert_eq!(of_one, 3_200_000);

    // Both went elsewhere, together.
    let moved = folder.path().join("elsewhere");
    fs::create_dir(&moved).unwrap();
    for disk in ["one", "two"] {
        fs::rename(folder.path().join(disk), moved.join(disk)).unwrap();
    }
    let here = moved.join("two/x.sigmf-meta");
    assert!(SampleFile::open(&here).unwrap().is_whole());

    // Another recording of that name is not a stripe of it, and neither is a missing one.
    let other = SigmfSettings { sample_rate_hz: 1e6, overwrite: true, ..SigmfSettings::default() };
    let mut writer = SigmfWriter::create(&moved.join("one/x.sigmf-meta"), &other).unwrap();
    writer.write(0, &[&[1i16, 2, 3]]).unwrap();
    writer.finish().unwrap();
    for said in ["is another recording", "(os error 2)"] {
        let mut file = SampleFile::open(&here).unwrap();
        assert!(!file.is_whole());
        let [note] = file.notes() else { panic!("{:?}", file.notes()) };
        assert!(note.contains(said) && note.ends_with("its samples are missing"), "{note}");
        assert!(file.len_samples() < of_one && file.gaps().count() > 1);
        check(&mut file);
        let _ = fs::remove_file(moved.join("one/x.sigmf-meta"));
    }
}
