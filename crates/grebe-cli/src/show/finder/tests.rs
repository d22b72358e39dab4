use std::time::Duration;

use grebe_frame::{BatchPool, Header};
use grebe_recording::{SigmfSettings, SigmfWriter};
use grebe_view::{FindingNews, ScopeFeed};

use super::*;

/// A pulse of three samples every hundred.
fn value(index: u64) -> i16 {
    if index % 100 < 3 { 1000 } else { 0 }
}

fn found(held: Held, words: &str) -> (Vec<u64>, FindingNews) {
    let sought = Sought { words: words.into(), scales: vec![Scale { factor: 1e-3, offset: 0.0 }] };
    let (finding, mut indexes) = (held.finder().find(sought), Vec::new());
    loop {
        if let Some(news) = finding.take_news() {
            indexes.extend(news.events.iter().map(|event| event.index));
            if news.ended.is_some() {
                return (indexes, news);
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn write_part(folder: &Path, number: u32, samples: Range<u64>) {
    let settings = SigmfSettings { sample_rate_hz: 1e3, ..SigmfSettings::default() };
    let mut writer = SigmfWriter::create(&folder.join(format!("ring_{number:06}")), &settings).unwrap();
    writer.write(samples.start, &[&samples.map(value).collect::<Vec<i16>>()]).unwrap();
    writer.finish().unwrap();
}

/// A ring of three parts, of which the last begins after 148 missing samples; before them one of another stream.
fn ring() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (number, samples) in (1..).zip([150_000..150_500, 10_050..20_001, 20_001..30_002, 30_150..40_000]) {
        write_part(folder.path(), number, samples);
    }
    folder
}

fn edges(samples: Range<u64>) -> impl Iterator<Item = u64> {
    samples.step_by(100)
}

/// Scope after `blocks` blocks of 500 samples, with the newest in memory.
fn scope(first: u64, blocks: u64) -> ScopeLink {
    let (mut feed, link) = ScopeFeed::new(1 << 16);
    for block in 0..blocks {
        let first_sample_index = first + block * 500;
        let header = Header {
            sequence: block,
            channel_count: 1,
            block_length_samples: 500,
            sample_rate_hz: 1e3,
            first_sample_index,
            ..Header::default()
        };
        let mut batch = BatchPool::new(1, 4096).acquire().unwrap();
        batch
            .push::<i16>(&header, |_, out| {
                out.iter_mut().zip(first_sample_index..).for_each(|(it, n)| *it = value(n))
            })
            .unwrap();
        feed.ingest(&batch.freeze()).unwrap();
    }
    feed.finish();
    link
}

#[test]
fn events_older_than_the_memory_are_found_in_the_ring_and_at_the_boundary() {
    let folder = tempfile::tempdir().unwrap();
    let link = scope(10_000, 200);
    let held = link.reader().read(0..0, || true).unwrap().held;
    assert!(held.start > 20_000 && held.end == 110_000, "{held:?}: something went out of memory");
    let (found_here, news) = found(Held::Stream(link.clone(), None), "edge --level 0.5");
    assert!(found_here[0] >= held.start && *found_here.last().unwrap() == 109_900, "{news:?}");
    assert!(news.ended.as_ref().unwrap().contains("as extremes only"), "{news:?}");
    // The ring also has older samples; before it the folder has a ring of another stream.
    write_part(folder.path(), 1, 150_000..150_500);
    write_part(folder.path(), 2, 20_050..60_001);
    write_part(folder.path(), 3, 60_001..109_501);
    let keeper = RingSaver::of_stream(&"shm://adc".parse().unwrap(), Some(folder.path()), None).unwrap();
    let (indexes, news) = found(Held::Stream(link, Some(keeper)), "edge --level 0.5");
    let expected: Vec<u64> = (20_100..110_000).step_by(100).collect();
    assert_eq!(indexes, expected);
    assert!(news.ended.as_ref().unwrap().contains("in the ring"), "{news:?}");
    assert_eq!((news.searched_samples, news.all_samples), (89_950, 89_950));
}

#[test]
fn a_gap_of_a_stream_is_found_and_unsearched_samples_are_not_a_gap() {
    let (mut feed, link) = ScopeFeed::new(1 << 20);
    for (sequence, first_sample_index) in [(0, 0), (1, 500), (3, 1500), (4, 2000)] {
        let header = Header {
            sequence,
            channel_count: 2,
            block_length_samples: 500,
            sample_rate_hz: 1e3,
            first_sample_index,
            ..Header::default()
        };
        let mut batch = BatchPool::new(1, 4096).acquire().unwrap();
        batch.push::<i16>(&header, |_, out| out.fill(7)).unwrap();
        feed.ingest(&batch.freeze()).unwrap();
    }
    feed.finish();
    let (indexes, news) = found(Held::Stream(link.clone(), None), "gap");
    assert_eq!(indexes, [1500]);
    assert!(news.ended.unwrap().starts_with("searched everything"));
    // Only between the given times.
    let (indexes, news) = found(Held::Stream(link.clone(), None), "gap --from 1.6s");
    assert!(indexes.is_empty() && news.ended.unwrap().starts_with("searched the given times, 900 ms"));
    let (indexes, _) = found(Held::Stream(link.clone(), None), "level --level 0.005 --from 100ms --to 2s");
    assert_eq!(indexes, [100, 100, 1500, 1500]);
    let (_, news) = found(Held::Stream(link.clone(), None), "gap --from 2s --to 1s");
    assert!(news.ended.unwrap().contains("--to must be later"));
    // A lasting event ends before it, and another begins after it.
    let (indexes, _) = found(Held::Stream(link, None), "level --level 0.005 --channels 1");
    assert_eq!(indexes, [0, 1500]);
    let link = ScopeFeed::new(1 << 20).1;
    let (_, news) = found(Held::Stream(link, None), "gap");
    assert!(news.ended.unwrap().contains("no samples yet"));
}

#[test]
fn a_ring_is_searched_over_all_of_its_parts_in_order() {
    let folder = ring();
    let held = || Held::Ring(folder.path().to_owned());
    let (indexes, news) = found(held(), "edge --level 0.5");
    let all = edges(10_100..30_100).chain(edges(30_200..40_000));
    assert_eq!(indexes, all.collect::<Vec<u64>>());
    assert_eq!(news.ended.unwrap(), "searched everything, 29.8 s");
    assert_eq!((news.searched_samples, news.all_samples), (29_802, 29_802));
    // Lasts across the end of a part, and not across missing samples.
    let (indexes, _) = found(held(), "level --level 0.5 --longer 3ms --from 19.9s --to 30.2s");
    assert_eq!(indexes, edges(19_900..30_000).collect::<Vec<u64>>());
    assert_eq!(found(held(), "gap").0, [30_150]);
    let (indexes, news) = found(held(), "edge --level 0.5 --from 19950ms --to 25s");
    assert_eq!(indexes, edges(20_000..25_000).collect::<Vec<u64>>());
    assert_eq!(news.ended.unwrap(), "searched the given times, 5.05 s");
    let none = tempfile::tempdir().unwrap();
    let (_, news) = found(Held::Ring(none.path().to_owned()), "gap");
    assert!(news.ended.unwrap().contains("holds no sample of a ring yet"));
}

#[test]
fn parts_that_the_recorder_removes_are_searched_and_unreadable_ones_are_counted() {
    let folder = ring();
    let file = |number: u32, extension: &str| folder.path().join(format!("ring_{number:06}.{extension}"));
    let held = Held::Ring(folder.path().to_owned());
    let sought =
        Sought { words: "edge --level 0.5".into(), scales: vec![Scale { factor: 1e-3, offset: 0.0 }] };
    let (turn, (side, finding)) = (Mutex::new(()), Finding::begin());
    let words = std::thread::scope(|scope| {
        let waits = turn.lock().unwrap();
        let search = scope.spawn(|| {
            let (searched, all, events) = (0, 0, Vec::new());
            RunningSearch { side: &side, turn: &turn, searched, all, events }.run(&held, &sought).unwrap()
        });
        // It has opened the parts.
        while finding.take_news().is_none_or(|news| news.all_samples == 0) {
            std::thread::sleep(Duration::from_millis(1));
        }
        for extension in ["sigmf-meta", "sigmf-data"] {
            std::fs::remove_file(file(2, extension)).unwrap();
        }
        std::fs::File::create(file(3, "sigmf-data")).unwrap();
        drop(waits);
        search.join().unwrap()
    });
    let news = finding.take_news().unwrap();
    let indexes = news.events.iter().map(|event| event.index);
    let rest = edges(10_100..20_100).chain(edges(30_200..40_000));
    assert_eq!(indexes.collect::<Vec<u64>>(), rest.collect::<Vec<u64>>());
    assert!(words.starts_with("searched everything, 19.8 s; 10 s could not be read: "), "{words}");
    assert_eq!((news.searched_samples, news.all_samples), (19_801, 19_801));
}
