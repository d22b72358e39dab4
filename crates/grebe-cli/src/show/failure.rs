//! Failure of a stage, for other threads.

use std::sync::{Arc, Mutex, PoisonError};

use grebe_flow::{Context, Counters, Inputs, Outputs, Ports, Stage, StageResult};

/// Last error of a stage or a generator, if any. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Failure(Arc<Mutex<Option<String>>>);

impl Failure {
    pub(crate) fn set(&self, message: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(message);
    }

    pub(crate) fn get(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Wraps a stage to keep its error.
    pub(super) fn watch(&self, stage: Box<dyn Stage>) -> impl Stage + 'static {
        Watched { stage, failure: self.clone() }
    }
}

struct Watched {
    stage: Box<dyn Stage>,
    failure: Failure,
}

impl Stage for Watched {
    fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let outcome = self.stage.process(input, output, ctx);
        if let Err(error) = &outcome {
            self.failure.set(error.to_string());
        }
        outcome
    }

    fn finish(&mut self, output: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        self.stage.finish(output, ctx)
    }

    fn counters(&self) -> Option<Counters> {
        self.stage.counters()
    }

    fn ports(&self) -> Ports {
        self.stage.ports()
    }
}
