//! The names that most programs need: `use grebe::prelude::*;`.
//!
//! ```
//! use grebe::prelude::*;
//!
//! let mut file = SampleFile::open("../../examples/data/ecg.sigmf-meta")?;
//! let mut numbers = Vec::new();
//! file.block(0, 360)?.numbers(0, &mut numbers)?;
//! assert_eq!((file.rate_hz(), numbers.len()), (Some(360.0), 360));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use grebe_flow::{
    Cancel, Context, Graph, GraphFile, Inputs, Kind, Outcome, Outputs, Ports, QueueOptions, Site, Stage,
    StageError, Workspace,
};
pub use grebe_frame::{Batch, Description, Frame, Header, SampleFormat};
pub use grebe_recording::{SampleFile, SigmfSettings, SigmfWriter};
pub use grebe_stages::{SinkOptions, SourceOptions, Uri, open_sink, open_source};
