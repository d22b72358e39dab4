//! Named ports, and graphs that cannot be.

use super::*;

#[test]
fn wrong_graphs_are_refused_before_anything_runs() {
    let two = |same: bool| {
        let mut graph = Graph::new();
        let source = graph.add("a", ramp(1));
        let sink = graph.add(if same { "a" } else { "b" }, probe(|_| Ok(())).0);
        (graph, source, sink)
    };
    let (graph, ..) = two(true);
    assert_eq!(graph.start().unwrap_err().to_string(), "two stages are called 'a': give each its own name");
    let (graph, ..) = two(false);
    assert_eq!(graph.start().unwrap_err().to_string(), "stage 'a' is connected to nothing");
    let (mut graph, source, sink) = two(false);
    graph.connect(source, sink, QueueOptions::block(2));
    graph.connect(sink, source, QueueOptions::block(2));
    assert_eq!(
        graph.start().unwrap_err().to_string(),
        "stage 'a' is part of a cycle: a stream flows one way"
    );
}

/// Pairs the frames of two inputs, and splits them into even and odd.
struct Pair {
    left: Option<u64>,
}

impl Stage for Pair {
    fn ports(&self) -> Ports {
        Ports { inputs: &["left", "right"], outputs: &["even", "odd"] }
    }

    fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        if self.left.is_none() {
            let Some(batch) = input.pop(0) else { return Ok(Outcome::WantsInput) };
            self.left = batch.frames().next().map(|frame| frame.header().sequence);
        }
        let Some(right) = input.pop(1) else { return Ok(Outcome::WantsInput) };
        let sequence = right.frames().next().ok_or("empty")?.header().sequence;
        assert_eq!(self.left.take(), Some(sequence), "the two inputs are distinct");
        output.send_to((sequence % 2) as usize, right, ctx);
        Ok(Outcome::Produced)
    }
}

fn pairing() -> (Graph, Receiver<u64>, Receiver<u64>) {
    let mut graph = Graph::new();
    let (one, other) = (graph.add("one", ramp(1_000)), graph.add("other", ramp(1_000)));
    let pair = graph.add("pair", Pair { left: None });
    let ((even, at_even), (odd, at_odd)) = (probe(|_| Ok(())), probe(|_| Ok(())));
    let (even, odd) = (graph.add("even", even), graph.add("odd", odd));
    let queue = QueueOptions::block(4);
    // In another order than the names, which must not matter.
    graph.connect_ports((other, ""), (pair, "right"), queue).unwrap();
    graph.connect_ports((one, "out"), (pair, "left"), queue).unwrap();
    graph.connect_ports((pair, "odd"), (odd, ""), queue).unwrap();
    graph.connect_ports((pair, "even"), (even, ""), queue).unwrap();
    (graph, at_even, at_odd)
}

#[test]
fn named_inputs_and_outputs_lead_where_they_say() {
    let (graph, even, odd) = pairing();
    graph.start().unwrap().wait().unwrap();
    assert!(even.into_iter().eq((0..1_000).step_by(2)));
    assert!(odd.into_iter().eq((1..1_000).step_by(2)));
}

#[test]
fn the_stepper_runs_the_same_graph_without_a_thread() {
    let (graph, even, odd) = pairing();
    let mut stepper = graph.stepper().unwrap();
    assert!(stepper.step().unwrap());
    assert_eq!(even.try_iter().collect::<Vec<_>>(), [0], "a step is one call of each stage, upstream first");
    assert!(stepper.run().unwrap());
    assert_eq!(stepper.snapshot().stage("pair").unwrap().frames_in, 2_000);
    drop(stepper);
    assert!(even.into_iter().eq((2..1_000).step_by(2)));
    assert!(odd.into_iter().eq((1..1_000).step_by(2)));
}

#[test]
fn ports_that_do_not_fit_are_refused() {
    let queue = QueueOptions::block(2);
    let mut graph = Graph::new();
    let (one, pair) = (graph.add("one", ramp(1)), graph.add("pair", Pair { left: None }));
    let wrong = graph.connect_ports((one, ""), (pair, "middle"), queue).unwrap_err();
    assert_eq!(wrong.to_string(), "stage 'pair' has no port 'middle': it has left, right");
    graph.connect_ports((one, ""), (pair, "left"), queue).unwrap();
    assert_eq!(graph.check().unwrap_err().to_string(), "stage 'pair.right' is connected to nothing");
    graph.connect_ports((one, ""), (pair, "left"), queue).unwrap();
    assert_eq!(
        graph.check().unwrap_err().to_string(),
        "'pair.left' is connected twice: an input takes one queue"
    );
}

#[test]
fn a_node_of_another_graph_is_an_error_and_no_panic() {
    let (mut one, mut other) = (Graph::new(), Graph::new());
    let (here, there) = (one.add("here", ramp(1)), other.add("there", ramp(1)));
    let named = one.connect_ports((here, "out"), (there, ""), QueueOptions::block(2)).unwrap_err();
    assert!(matches!(named, Error::ForeignNode), "{named}");
    one.connect(here, there, QueueOptions::block(2));
    assert!(matches!(one.check(), Err(Error::ForeignNode)));
    other.open(there, 2);
    let running = other.start().unwrap();
    let attached = running.attach(here, "late", ramp(1), QueueOptions::drop_oldest(2));
    assert!(matches!(attached, Err(Error::ForeignNode)));
}
