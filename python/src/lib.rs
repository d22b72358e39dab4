//! grebe for Python.
//!
//! ```text
//!  module   lib: the names that Python sees
//!  classes  stream, publisher, filling, recording, block, spectrum, scope
//!           sending (of publisher and filling); graph -> stage (a function of Python's), reader, feed, envelope
//!           pieces (of batches), sole
//!  functions  command, measure, trigger, transfer, probe
//!  below    opening, job, turns -> error, fork, memory, array, format
//! ```
//!
//! Samples of a block are a NumPy array over [`memory`]: the bytes of a lease. Receiving and sending have threads of
//! their own, each with a [`Graph`](grebe_flow::Graph). The thread with the interpreter releases it whenever it waits.

mod array;
mod block;
mod command;
mod envelope;
mod error;
mod exact;
mod feed;
mod filling;
mod fork;
mod format;
mod graph;
mod job;
mod measure;
mod memory;
mod opening;
mod pieces;
mod probe;
mod publisher;
mod reader;
mod recording;
mod scope;
mod sending;
mod sole;
mod spectrum;
mod stage;
mod stream;
mod transfer;
mod trigger;
mod turns;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _grebe {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::{
        block::{Block, Gap},
        command::run_command,
        filling::Filling,
        graph::{RunningGraph, check_graph, wait_for_graphs},
        measure::measure_rows,
        memory::Memory,
        probe::{probe_path, serve_probes},
        publisher::Publisher,
        recording::Recording,
        scope::{StreamScope, draw_png, plot_columns},
        spectrum::ChannelSpectrum,
        stream::Stream,
        transfer::{receive_files, send_files},
        trigger::{burst_row, trigger_row},
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::fork::register(module.py())
    }
}
