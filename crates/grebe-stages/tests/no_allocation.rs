//! In steady state no stage between a source and a sink allocates, whether it changes batches in place or in copies.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use grebe_flow::{GraphFile, Kinds};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is handed to the system's allocator unchanged; counting touches no memory of its.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Every processing stage; `copied` and what is behind it must copy, because `direct` holds what it changes.
const GRAPH: &str = r#"
stage = [
    { id = "generator", kind = "synth", params = { channels = 4, rate = "1G", free_run = true } },
    { id = "alone", kind = "gain", params = { gain = 0.5 } },
    { id = "copied", kind = "gain", params = { gain = [1, 2, 3, 4], offset = 1 } },
    { id = "meter", kind = "rate_meter" },
    { id = "some", kind = "select", params = { channels = [4, 1] } },
    { id = "envelope", kind = "decimate", params = { factor = 7 } },
    { id = "whole", kind = "fill_gaps" },
    { id = "split", kind = "tee" },
    { id = "pace", kind = "throttle", params = { rate = "900G" } },
    { id = "direct", kind = "null" },
    { id = "one", kind = "null" },
    { id = "other", kind = "null" },
]
edge = [
    { from = "generator", to = "alone" },
    { from = "alone", to = "copied" },
    { from = "alone", to = "direct" },
    { from = "copied", to = "meter" },
    { from = "meter", to = "some" },
    { from = "some", to = "envelope" },
    { from = "envelope", to = "whole" },
    { from = "whole", to = "split" },
    { from = "split.out", to = "pace" },
    { from = "pace", to = "one" },
    { from = "split.copy", to = "other" },
]
"#;

#[test]
fn steady_state_allocates_nothing() {
    let kinds: Kinds = grebe_stages::kinds();
    let (graph, _) = GraphFile::parse(GRAPH, "graph", &kinds).unwrap().build(&kinds).unwrap();
    let mut stepper = graph.stepper().unwrap();
    let mut steps = |count: usize| (0..count).for_each(|_| assert!(stepper.step().unwrap()));
    steps(100);
    let before = ALLOCATIONS.with(Cell::get);
    steps(400);
    assert_eq!(ALLOCATIONS.with(Cell::get) - before, 0);
    let snapshot = stepper.snapshot();
    let own = |stage: &str, name: &str| snapshot.stage(stage).unwrap().own(name).unwrap();
    assert!(own("copied", "copied_frames") > 0);
    assert_eq!(own("alone", "copied_frames"), 0);
    assert!(snapshot.stage("one").unwrap().frames_in > 0 && snapshot.stage("other").unwrap().frames_in > 0);
}
