//! One family of exceptions, with the command's words.

use std::error::Error as StdError;

use grebe_flow::Error as GraphError;
use grebe_process::Error as ProcessError;
use grebe_recording::Error as RecordingError;
use grebe_stages::Error as StreamError;
use pyo3::prelude::*;

/// The exception class of `grebe`, by the same distinctions as the command's exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `grebe.Error`.
    General,
    /// `grebe.UsageError`: a name or a value that cannot be.
    Usage,
    /// `grebe.GoneError`: the other side fell silent, or is gone.
    Gone,
    /// `grebe.Timeout`.
    Timeout,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::General => "Error",
            Kind::Usage => "UsageError",
            Kind::Gone => "GoneError",
            Kind::Timeout => "Timeout",
        }
    }

    /// The exception, with this message.
    #[cold]
    pub(crate) fn error(self, message: impl Into<String>) -> PyErr {
        raise(self.name(), message.into())
    }
}

/// An exception of `grebe._errors` by its name.
#[cold]
pub(crate) fn raise(name: &str, arguments: impl for<'py> IntoPyObject<'py>) -> PyErr {
    Python::attach(|py| {
        let made = py.import("grebe._errors").and_then(|errors| errors.getattr(name)?.call1((arguments,)));
        made.map_or_else(|error| error, PyErr::from_value)
    })
}

/// Why a stream or a recording cannot be had.
#[cold]
pub(crate) fn of_stream(error: impl Into<StreamError>) -> PyErr {
    let error = error.into();
    kind(&error).error(error.to_string())
}

/// The error of a graph. Its stages have no names from the caller, so only their message is included.
#[cold]
pub(crate) fn of_graph(error: GraphError) -> PyErr {
    match error {
        GraphError::Stage { source, .. } => kind(&*source).error(words(&*source)),
        error => Kind::General.error(words(&error)),
    }
}

pub(crate) fn kind(error: &(dyn StdError + 'static)) -> Kind {
    if let Some(error) = error.downcast_ref::<grebe_shm::Error>() {
        return kind_of_shared_memory(error);
    }
    match error.downcast_ref::<StreamError>() {
        Some(StreamError::Idle { .. } | StreamError::Gone) => return Kind::Gone,
        Some(StreamError::Name { .. }) => return Kind::Usage,
        Some(StreamError::Shm(error)) => return kind_of_shared_memory(error),
        Some(StreamError::Recording(inner)) => return kind(inner),
        Some(StreamError::Process(inner)) => return kind(inner),
        _ => {}
    }
    if let Some(RecordingError::Process(inner)) = error.downcast_ref() {
        return kind(inner);
    }
    match error.downcast_ref() {
        Some(ProcessError::Name { .. } | ProcessError::Setting { .. }) => Kind::Usage,
        _ => Kind::General,
    }
}

fn kind_of_shared_memory(error: &grebe_shm::Error) -> Kind {
    match error {
        grebe_shm::Error::ProducerGone { .. } => Kind::Gone,
        grebe_shm::Error::Name { .. } | grebe_shm::Error::Setting { .. } => Kind::Usage,
        _ => Kind::General,
    }
}

/// An error and its causes, without causes that repeat the text before them.
pub(crate) fn words(error: &dyn StdError) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !line.contains(&text) {
            line = format!("{line}: {text}");
        }
        cause = error.source();
    }
    line
}
