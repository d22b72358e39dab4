//! Failures, and how a graph stops.

use super::*;

#[test]
fn a_failing_stage_ends_the_graph_and_is_named() {
    let mut graph = Graph::new();
    let source = graph.add("ramp", ramp(u64::MAX));
    let (good, _at_good) = probe(|_| Ok(()));
    let (bad, _at_bad) = probe(|sequence| if sequence == 100 { Err("disk full".into()) } else { Ok(()) });
    let (finished, was_finished) = mpsc::channel();
    let good = graph.add("good", Probe { finished: Some(finished), ..good });
    let bad = graph.add("recorder", bad);
    graph.connect(source, good, QueueOptions::block(4));
    graph.connect(source, bad, QueueOptions::block(4));
    let running = graph.start().unwrap();
    let observe = running.observer();
    let error = running.wait().unwrap_err();
    assert_eq!(error.to_string(), "recorder: disk full");
    let recorder = observe().stage("recorder").cloned().unwrap();
    assert_eq!((recorder.frames_in, recorder.samples_in), (100, 800), "not the one that it refused");
    assert_eq!(was_finished.recv(), Ok(u64::MAX), "the other sink was finished in order");
}

#[test]
fn a_panic_becomes_an_error_that_names_the_stage() {
    let mut graph = Graph::new();
    let source = graph.add("ramp", ramp(u64::MAX));
    let (bad, _rx) = probe(|sequence| if sequence == 3 { panic!("index 9 out of range") } else { Ok(()) });
    let bad = graph.add("mine", bad);
    graph.connect(source, bad, QueueOptions::block(4));
    let error = graph.start().unwrap().wait().unwrap_err();
    assert!(matches!(&error, Error::Panic { stage, .. } if stage == "mine"), "{error}");
    assert_eq!(error.to_string(), "mine panicked: index 9 out of range");
}

#[test]
fn stopping_drains_all_queues() {
    let mut graph = Graph::new();
    let source = graph.add("ramp", ramp(u64::MAX));
    let (sink, seen) = probe(|_| Ok(()));
    let sink = graph.add("sink", sink);
    graph.connect(source, sink, QueueOptions::block(8));
    let running = graph.start().unwrap();
    seen.recv().unwrap();
    let snapshot = running.stop().unwrap();
    let made = snapshot.stage("ramp").unwrap().frames_out;
    assert!(made > 0);
    assert_eq!(seen.into_iter().count() as u64 + 1, made);
}

#[test]
fn a_stage_that_exceeds_its_time_to_stop_is_named_and_abandoned() {
    let mut graph = Graph::new();
    let source = graph.add("ramp", ramp(u64::MAX));
    let (gate, closed) = mpsc::channel::<()>();
    let (sink, seen) = probe(move |sequence| {
        if sequence == 1 {
            let _ = closed.recv();
        }
        Ok(())
    });
    let sink = graph.add("stuck", sink);
    graph.connect(source, sink, QueueOptions::block(8));
    let running = graph.start().unwrap();
    seen.recv().unwrap();
    // The sink has its second frame, at which it hangs.
    while running.snapshot().stage("stuck").unwrap().frames_in < 2 {
        std::thread::yield_now();
    }
    let began = Instant::now();
    let error = running.stop().unwrap_err();
    assert!(matches!(&error, Error::Overstayed(stage, _) if stage == "stuck"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(10));
    drop(gate);
}

#[test]
fn a_source_ends_with_its_last_reader() {
    struct Once;
    impl Stage for Once {
        fn process(&mut self, input: &mut Inputs, _: &mut Outputs, _: &mut Context) -> StageResult {
            Ok(if input.next().is_some() { Outcome::End } else { Outcome::WantsInput })
        }
    }
    let mut graph = Graph::new();
    let source = graph.add("ramp", ramp(u64::MAX));
    let once = graph.add("once", Once);
    graph.connect(source, once, QueueOptions::block(2));
    graph.start().unwrap().wait().unwrap();

    // A secondary stage does not keep the graph running.
    let mut graph = Graph::new();
    let source = graph.add("ramp", ramp(u64::MAX));
    let (beside, _seen) = probe(|_| Ok(()));
    let (once, beside) = (graph.add("once", Once), graph.add("beside", beside));
    graph.connect(source, once, QueueOptions::block(2));
    graph.connect(source, beside, QueueOptions::drop_oldest(2));
    graph.end_with(once);
    graph.start().unwrap().wait().unwrap();
}

#[test]
fn a_failure_in_a_fused_chain_names_its_stage_and_finishes_the_others() {
    let mut graph = Graph::new();
    let source = graph.add("ramp", ramp(u64::MAX));
    let (bad, _seen) = probe(|sequence| if sequence == 50 { Err("no".into()) } else { Ok(()) });
    let (last, _at_last) = probe(|_| Ok(()));
    let (finished, was_finished) = mpsc::channel();
    let (bad, last) = (graph.add("bad", bad), graph.add("last", Probe { finished: Some(finished), ..last }));
    graph.fuse(source, bad);
    graph.fuse(bad, last);
    assert_eq!(graph.start().unwrap().wait().unwrap_err().to_string(), "bad: no");
    assert_eq!(was_finished.recv(), Ok(u64::MAX));
}

#[cfg(target_os = "linux")]
#[test]
fn a_thousand_starts_and_stops_leak_nothing() {
    let count = |what: &str| std::fs::read_dir(format!("/proc/self/{what}")).unwrap().count();
    let memory_kib = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let once = || {
        let mut graph = Graph::new();
        let source = graph.add("ramp", ramp(u64::MAX));
        let (sink, seen) = probe(|_| Ok(()));
        let sink = graph.add("sink", sink);
        graph.connect(source, sink, QueueOptions::block(4));
        let running = graph.start().unwrap();
        seen.recv().unwrap();
        running.stop().unwrap();
    };
    (0..50).for_each(|_| once());
    let (files, memory) = (count("fd"), memory_kib());
    (0..1_000).for_each(|_| once());
    // Other tests of this process run at the same time. They may add some threads and descriptors, but not a
    // thousand.
    assert!(count("task") < 200, "{} threads", count("task"));
    assert!(count("fd") < files + 50, "{} descriptors, {files} before", count("fd"));
    assert!(memory_kib() < memory + 64 * 1024, "{} KiB, {memory} before", memory_kib());
}

/// Takes longer to close than a stage may take to return.
struct Closing(bool);

impl Stage for Closing {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, _: &mut Context) -> StageResult {
        match input.next() {
            Some(_) if self.0 => Err("it cannot go on".into()),
            Some(_) => Ok(Outcome::Produced),
            None => Ok(Outcome::WantsInput),
        }
    }

    fn finish(&mut self, _: &mut Outputs, _: &mut Context) -> Result<(), StageError> {
        std::thread::sleep(Duration::from_millis(1_500));
        Ok(())
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        if self.0 {
            std::thread::sleep(Duration::from_millis(1_500));
        }
    }
}

#[test]
fn a_stage_that_closes_what_it_wrote_takes_the_time_that_it_needs() {
    for fails in [false, true] {
        let mut graph = Graph::new();
        let source = graph.add("source", ramp(u64::MAX));
        let sink = graph.add("sink", Closing(fails));
        graph.connect(source, sink, QueueOptions::block(4));
        let running = graph.start().unwrap();
        std::thread::sleep(Duration::from_millis(20));
        let stopped = running.stop().map(drop).map_err(|error| error.to_string());
        assert_eq!(stopped, if fails { Err("sink: it cannot go on".to_owned()) } else { Ok(()) });
    }
}

#[test]
fn a_stopped_graph_drains_its_queues_while_they_progress() {
    let mut graph = Graph::new();
    let source = graph.add("ramp", ramp(u64::MAX));
    // 32 frames at 50 ms each take more than twice the time allowed without progress.
    let (sink, seen) = probe(|_| {
        std::thread::sleep(Duration::from_millis(50));
        Ok(())
    });
    let sink = graph.add("slow", sink);
    graph.connect(source, sink, QueueOptions::block(32));
    let running = graph.start().unwrap();
    seen.recv().unwrap();
    let snapshot = running.stop().unwrap();
    let made = snapshot.stage("ramp").unwrap().frames_out;
    assert!(made > 30, "the queue was full");
    assert_eq!(seen.into_iter().count() as u64 + 1, made);
}
