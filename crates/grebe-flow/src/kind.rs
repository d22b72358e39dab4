//! Kinds of stages for graph files, and the construction of a stage from its parameters.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::rc::Rc;

use grebe_frame::SampleFormat;
use grebe_ring::Cancel;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeOwned, IntoDeserializer};
use toml::Spanned;
use toml::de::DeTable;

use crate::stage::{Ports, Stage, StageError};

/// Kind of stage. The type holds the parameters from a graph file.
///
/// The doc comments of the type and its fields are the help that `grebe run --kinds` prints. A field with
/// `#[serde(default)]` is optional.
///
/// ```
/// use grebe_flow::{Context, Inputs, Kind, Kinds, Outcome, Outputs, Ports, Site, Stage, StageError, StageResult};
///
/// /// Turns every sample around.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// #[serde(deny_unknown_fields)]
/// struct Negate {
///     /// Leaves the signal as it is.
///     #[serde(default)]
///     off: bool,
/// }
///
/// impl Kind for Negate {
///     const NAME: &'static str = "negate";
///     const PORTS: Ports = Ports::STAGE;
///     fn build(self, _: &mut Site) -> Result<Box<dyn Stage>, StageError> {
///         Ok(Box::new(self))
///     }
/// }
///
/// impl Stage for Negate {
///     fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
///         let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
///         let mut batch = batch.try_unique().map_err(|_| "shared")?;
///         if !self.off {
///             batch.update::<i16>(|_, _, samples| samples.iter_mut().for_each(|sample| *sample = sample.saturating_neg()))?;
///         }
///         output.send(batch.freeze(), ctx);
///         Ok(Outcome::Produced)
///     }
/// }
///
/// let mut kinds = Kinds::new();
/// kinds.add::<Negate>();
/// assert_eq!(kinds.get("negate").unwrap().about(), "Turns every sample around.");
/// ```
pub trait Kind: DeserializeOwned + JsonSchema + 'static {
    /// Name in a graph file: lower case, words joined by `_`.
    const NAME: &'static str;

    /// Ports of the stage in a graph file. Each input takes one stream; without inputs it is a source. Takes
    /// precedence over [`Stage::ports`].
    const PORTS: Ports;

    /// Checks the parameters without opening anything, as `grebe run --check` does.
    ///
    /// # Errors
    /// The invalid parameter, and its valid values.
    fn check(&self) -> Result<(), Fault> {
        Ok(())
    }

    /// Number of output channels for `incoming` channels at the first input; `None` if unknown before the
    /// start. By default equal to `incoming`.
    ///
    /// # Errors
    /// The parameter that does not fit the incoming channels.
    fn channels(&self, incoming: Option<u32>) -> Result<Option<u32>, Fault> {
        Ok(incoming)
    }

    /// Output format for the format `incoming` at the first input; `None` if unknown before the start. By
    /// default equal to `incoming`.
    ///
    /// # Errors
    /// Unsupported format: the responsible parameter or [`Fault::of_kind`], and how to convert the samples.
    fn format(&self, incoming: Option<SampleFormat>) -> Result<Option<SampleFormat>, Fault> {
        Ok(incoming)
    }

    /// Samples per second and channel at the output, for `incoming` at the first input. `None` if unknown
    /// before the start, or if the consumer sets the pace. By default equal to `incoming`.
    fn rate_hz(&self, incoming: Option<f64>) -> Option<f64> {
        incoming
    }

    /// Like [`channels`](Self::channels), for a kind that examines all inputs.
    ///
    /// # Errors
    /// Those of `channels`.
    fn all_channels(&self, incoming: &[Option<u32>]) -> Result<Option<u32>, Fault> {
        self.channels(incoming.first().copied().flatten())
    }

    /// Like [`format`](Self::format), for a kind that examines all inputs.
    ///
    /// # Errors
    /// Those of `format`.
    fn all_formats(&self, incoming: &[Option<SampleFormat>]) -> Result<Option<SampleFormat>, Fault> {
        self.format(incoming.first().copied().flatten())
    }

    /// Exclusive resource of the stage in words, such as `standard output` or `the file x.wav`. A graph with
    /// two equal claims is refused.
    fn claims(&self) -> Option<String> {
        None
    }

    /// Another stage that a parameter names. The graph is refused if that stage is missing or of another
    /// kind.
    fn names(&self) -> Option<StageName<'_>> {
        None
    }

    /// Makes the stage and opens its resources. A kind that has to wait calls [`Site::note`], and polls
    /// [`Site::cancel`] meanwhile.
    ///
    /// # Errors
    /// The unavailable resource, or a cancelled wait.
    fn build(self, site: &mut Site) -> Result<Box<dyn Stage>, StageError>;
}

/// Invalid value of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Empty for a fault of the kind.
    pub(crate) param: &'static str,
    pub(crate) message: String,
}

impl Fault {
    /// Names the parameter and the fault.
    pub fn new(param: &'static str, message: impl Into<String>) -> Self {
        Self { param, message: message.into() }
    }

    /// Fault of using this kind here, whatever its parameters.
    pub fn of_kind(message: impl Into<String>) -> Self {
        Self::new("", message)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let param = if self.param.is_empty() { "" } else { ": " };
        write!(f, "{}{param}{}", self.param, self.message)
    }
}

/// Stage named by a parameter of a [`Kind`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageName<'a> {
    /// Name of the parameter.
    pub param: &'static str,
    /// Id of the stage.
    pub id: &'a str,
    /// Names of the allowed kinds.
    pub kinds: &'static [&'static str],
}

/// Context in which a stage is made: its name in the graph, notices for the user, and cancellation.
pub struct Site<'a> {
    id: String,
    cancel: Cancel,
    notify: Option<&'a mut dyn FnMut(String)>,
    shared: Shared,
}

/// Handles shared between stages of a graph, by type and name.
pub(crate) type Shared = Rc<RefCell<HashMap<(TypeId, String), Box<dyn Any>>>>;

impl<'a> Site<'a> {
    /// Site with this name, for a kind made without a graph file. Discards notes and never cancels.
    pub fn new(id: &str) -> Self {
        Self { id: id.to_owned(), cancel: Cancel::default(), notify: None, shared: Shared::default() }
    }

    /// Site of a graph file: passes notes to `notify`, and `cancel` ends its waits.
    pub(crate) fn of_graph(
        id: &str,
        cancel: &Cancel,
        notify: &'a mut dyn FnMut(String),
        shared: &Shared,
    ) -> Self {
        Self { id: id.to_owned(), cancel: cancel.clone(), notify: Some(notify), shared: shared.clone() }
    }

    /// Name of the stage in the graph.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Cancellation flag. A kind that waits in [`Kind::build`] must poll it and then fail.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Handle shared between stages of this graph, such as the tuner of a receiver. Returns the one that
    /// exists under this name, or else makes it with `make`. A stage uses its [`id`](Self::id) for its own
    /// handle.
    pub fn shared<T: Clone + 'static>(&self, name: &str, make: impl FnOnce() -> T) -> T {
        let mut shared = self.shared.borrow_mut();
        let known = shared.entry((TypeId::of::<T>(), name.to_owned())).or_insert_with(|| Box::new(make()));
        // The key contains the type.
        known.downcast_ref::<T>().expect("what goes by a type is of it").clone()
    }

    /// Shows a non-fatal notice to the user at once.
    pub fn note(&mut self, note: impl Into<String>) {
        if let Some(notify) = &mut self.notify {
            notify(format!("{}: {}", self.id, note.into()));
        }
    }
}

impl fmt::Debug for Site<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site").field("id", &self.id).field("cancel", &self.cancel).finish_non_exhaustive()
    }
}

/// Kinds for graph files.
#[derive(Debug, Clone, Default)]
pub struct Kinds {
    by_name: BTreeMap<&'static str, KindInfo>,
}

impl Kinds {
    /// Makes an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a kind.
    ///
    /// # Panics
    /// If a kind with this name exists; use [`replace`](Self::replace) to override it.
    pub fn add<K: Kind>(&mut self) -> &mut Self {
        assert!(
            self.get(K::NAME).is_none(),
            "there is a kind '{}' already: replace it, or rename yours",
            K::NAME
        );
        self.replace::<K>()
    }

    /// Adds a kind, or replaces the one with the same name.
    pub fn replace<K: Kind>(&mut self) -> &mut Self {
        self.by_name.insert(K::NAME, KindInfo::of::<K>());
        self
    }

    /// Kind with this name.
    pub fn get(&self, name: &str) -> Option<&KindInfo> {
        self.by_name.get(name)
    }

    /// All kinds, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &KindInfo> {
        self.by_name.values()
    }
}

/// Description of a kind.
#[derive(Debug, Clone)]
pub struct KindInfo {
    name: &'static str,
    ports: Ports,
    schema: Schema,
    /// Reads parameters with known positions in the file.
    pub(crate) from_file: for<'a> fn(Spanned<DeTable<'a>>) -> Read,
    pub(crate) from_table: fn(toml::Table) -> Read,
}

/// Parameter of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindParam<'a> {
    /// Name.
    pub name: &'a str,
    /// Description.
    pub about: &'a str,
    /// Whether it is required.
    pub is_required: bool,
    /// Default value in the syntax of a graph file; `None`: no default.
    pub default: Option<String>,
}

impl KindInfo {
    fn of<K: Kind>() -> Self {
        Self {
            name: K::NAME,
            ports: K::PORTS,
            schema: SchemaGenerator::default().into_root_schema_for::<K>(),
            from_file: |params| Ok(Box::new(K::deserialize(params.into_deserializer())?)),
            from_table: |params| Ok(Box::new(K::deserialize(params)?)),
        }
    }

    /// Name in a graph file.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Description in one line.
    pub fn about(&self) -> &str {
        first_paragraph(self.schema.get("description"))
    }

    /// Ports.
    pub fn ports(&self) -> Ports {
        self.ports
    }

    /// JSON schema of its parameters.
    pub fn schema(&self) -> &serde_json::Value {
        self.schema.as_value()
    }

    /// Whether its parameters are not a struct with named fields.
    pub(crate) fn takes_any_param(&self) -> bool {
        let is_object = self.schema.get("type").is_some_and(|kind| kind == "object");
        let more = self.schema.get("additionalProperties");
        !is_object || more.is_some_and(|more| *more != serde_json::Value::Bool(false))
    }

    /// Parameters, sorted by name.
    pub fn params(&self) -> Vec<KindParam<'_>> {
        let required: Vec<&str> = self
            .schema
            .get("required")
            .and_then(serde_json::Value::as_array)
            .map(|names| names.iter().filter_map(serde_json::Value::as_str).collect())
            .unwrap_or_default();
        let properties = self.schema.get("properties").and_then(serde_json::Value::as_object);
        let mut params = Vec::new();
        for (name, schema) in properties.into_iter().flatten() {
            params.push(KindParam {
                name,
                about: first_paragraph(schema.get("description")),
                is_required: required.contains(&name.as_str()),
                default: schema.get("default").filter(|default| !default.is_null()).map(ToString::to_string),
            });
        }
        params
    }
}

fn first_paragraph(description: Option<&serde_json::Value>) -> &str {
    let text = description.and_then(serde_json::Value::as_str).unwrap_or_default();
    text.split("\n\n").next().unwrap_or_default()
}

type Read = Result<Box<dyn ReadKind>, toml::de::Error>;

pub(crate) trait ReadKind {
    fn check(&self) -> Result<(), Fault>;
    fn channels(&self, incoming: &[Option<u32>]) -> Result<Option<u32>, Fault>;
    fn format(&self, incoming: &[Option<SampleFormat>]) -> Result<Option<SampleFormat>, Fault>;
    fn rate_hz(&self, incoming: &[Option<f64>]) -> Option<f64>;
    fn claims(&self) -> Option<String>;
    fn names(&self) -> Option<StageName<'_>>;
    fn build(self: Box<Self>, site: &mut Site) -> Result<Box<dyn Stage>, StageError>;
}

impl<K: Kind> ReadKind for K {
    fn check(&self) -> Result<(), Fault> {
        Kind::check(self)
    }

    fn channels(&self, incoming: &[Option<u32>]) -> Result<Option<u32>, Fault> {
        Kind::all_channels(self, incoming)
    }

    fn format(&self, incoming: &[Option<SampleFormat>]) -> Result<Option<SampleFormat>, Fault> {
        Kind::all_formats(self, incoming)
    }

    fn rate_hz(&self, incoming: &[Option<f64>]) -> Option<f64> {
        Kind::rate_hz(self, incoming.first().copied().flatten())
    }

    fn claims(&self) -> Option<String> {
        Kind::claims(self)
    }

    fn names(&self) -> Option<StageName<'_>> {
        Kind::names(self)
    }

    fn build(self: Box<Self>, site: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        Kind::build(*self, site)
    }
}
