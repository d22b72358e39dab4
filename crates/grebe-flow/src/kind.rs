//! Kinds of stages that a graph file can name, and how one is made of its parameters.

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

/// A kind of stage: the type holds the parameters that a graph file gives it.
///
/// The type's doc comment is what `grebe run --kinds` says of the kind, the fields' comments what it says of the parameters; a
/// field with `#[serde(default)]` need not be given.
///
/// ```
/// use grebe_flow::{Context, Inputs, Kind, Kinds, Outcome, Outputs, Ports, Site, Stage, StageError};
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
///     fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> Result<Outcome, StageError> {
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
    /// What a graph file calls it: lower case, words joined by `_`.
    const NAME: &'static str;

    /// What can be connected to the stage in a graph file: each input takes one stream, no input makes it a source. It holds
    /// whatever [`Stage::ports`] of the stage says.
    const PORTS: Ports;

    /// Whether the parameters make sense, without opening anything: `grebe run --check` asks no more than this.
    ///
    /// # Errors
    /// The parameter that does not, and what it must be.
    fn check(&self) -> Result<(), Fault> {
        Ok(())
    }

    /// How many channels come out where `incoming` come in at the first input; `None` is not known before it runs. As many as
    /// come in, where a kind does not say.
    ///
    /// # Errors
    /// The parameter that does not fit the channels that come in.
    fn channels(&self, incoming: Option<u32>) -> Result<Option<u32>, Fault> {
        Ok(incoming)
    }

    /// What the samples are that come out, where those at the first input are `incoming`; `None` is not known before it runs. What
    /// comes in, where a kind does not say.
    ///
    /// # Errors
    /// It takes no such samples: the parameter because of which, or [`Fault::of_kind`], and how to convert them.
    fn format(&self, incoming: Option<SampleFormat>) -> Result<Option<SampleFormat>, Fault> {
        Ok(incoming)
    }

    /// Samples a second and channel that come out, where `incoming` come in at the first input; `None` is not known before it runs, or as many
    /// as are taken. As many as come in, where a kind does not say.
    fn rate_hz(&self, incoming: Option<f64>) -> Option<f64> {
        incoming
    }

    /// As [`channels`](Self::channels), of a kind that looks at more than its first input: what comes in at each.
    ///
    /// # Errors
    /// As there.
    fn all_channels(&self, incoming: &[Option<u32>]) -> Result<Option<u32>, Fault> {
        self.channels(incoming.first().copied().flatten())
    }

    /// As [`format`](Self::format), of a kind that looks at more than its first input: what comes in at each.
    ///
    /// # Errors
    /// As there.
    fn all_formats(&self, incoming: &[Option<SampleFormat>]) -> Result<Option<SampleFormat>, Fault> {
        self.format(incoming.first().copied().flatten())
    }

    /// What the stage must have for itself, in words such as `standard output` or `the file x.wav`: two stages of a graph that
    /// say the same are refused.
    fn claims(&self) -> Option<String> {
        None
    }

    /// Another stage of the graph that a parameter names: a graph in which it is not, or is of another kind, is refused.
    fn names(&self) -> Option<StageName<'_>> {
        None
    }

    /// Makes the stage; opens what it needs. One that waits for something says so by [`Site::note`], and looks at
    /// [`Site::cancel`] meanwhile.
    ///
    /// # Errors
    /// What cannot be had; that the wait was cancelled.
    fn build(self, site: &mut Site) -> Result<Box<dyn Stage>, StageError>;
}

/// A parameter whose value makes no sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Empty: it is about the kind.
    pub(crate) param: &'static str,
    pub(crate) message: String,
}

impl Fault {
    /// The parameter of this name, and what is wrong with it.
    pub fn new(param: &'static str, message: impl Into<String>) -> Self {
        Self { param, message: message.into() }
    }

    /// What is wrong with having a stage of this kind here, whatever its parameters.
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

/// The stage that a parameter of a [`Kind`] names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageName<'a> {
    /// The parameter.
    pub param: &'static str,
    /// The id of the stage.
    pub id: &'a str,
    /// What it may be: names of kinds.
    pub kinds: &'static [&'static str],
}

/// Where a stage is made: its name in the graph, who is told what a person should know, and who may end a wait.
pub struct Site<'a> {
    id: String,
    cancel: Cancel,
    notify: Option<&'a mut dyn FnMut(String)>,
    shared: Shared,
}

/// What stages of a graph share, by its type and the name that they know it by.
pub(crate) type Shared = Rc<RefCell<HashMap<(TypeId, String), Box<dyn Any>>>>;

impl<'a> Site<'a> {
    /// A stage of this name, for a kind that is made without a graph file. Nobody hears its notes, and nobody ends its waits.
    pub fn new(id: &str) -> Self {
        Self { id: id.to_owned(), cancel: Cancel::default(), notify: None, shared: Shared::default() }
    }

    /// Of a graph file: its notes go to `notify`, and `cancel` ends its waits.
    pub(crate) fn of_graph(
        id: &str,
        cancel: &Cancel,
        notify: &'a mut dyn FnMut(String),
        shared: &Shared,
    ) -> Self {
        Self { id: id.to_owned(), cancel: cancel.clone(), notify: Some(notify), shared: shared.clone() }
    }

    /// The stage's name in the graph.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// A flag that is set when the user wants to end: a kind that waits in [`Kind::build`] looks at it, and fails then.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// A handle that stages of this graph share, such as the tuner of a receiver: the one that another stage asked for under this name,
    /// or else what `make` makes, which others get then. A stage's own goes by its [`id`](Self::id).
    pub fn shared<T: Clone + 'static>(&self, name: &str, make: impl FnOnce() -> T) -> T {
        let mut shared = self.shared.borrow_mut();
        let known = shared.entry((TypeId::of::<T>(), name.to_owned())).or_insert_with(|| Box::new(make()));
        // It is of the type that it goes by.
        known.downcast_ref::<T>().expect("what goes by a type is of it").clone()
    }

    /// Something that is no error, and that a person should know; they are told at once.
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

/// The kinds that a graph file can name.
#[derive(Debug, Clone, Default)]
pub struct Kinds {
    by_name: BTreeMap<&'static str, KindInfo>,
}

impl Kinds {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a kind.
    ///
    /// # Panics
    /// Where there is one of this name: a program that means to have its own instead says so by [`replace`](Self::replace).
    pub fn add<K: Kind>(&mut self) -> &mut Self {
        assert!(
            self.get(K::NAME).is_none(),
            "there is a kind '{}' already: replace it, or rename yours",
            K::NAME
        );
        self.replace::<K>()
    }

    /// Adds a kind in place of one of the same name, if there is one.
    pub fn replace<K: Kind>(&mut self) -> &mut Self {
        self.by_name.insert(K::NAME, KindInfo::of::<K>());
        self
    }

    /// The kind of this name.
    pub fn get(&self, name: &str) -> Option<&KindInfo> {
        self.by_name.get(name)
    }

    /// All kinds, by name.
    pub fn iter(&self) -> impl Iterator<Item = &KindInfo> {
        self.by_name.values()
    }
}

/// What is known of a kind.
#[derive(Debug, Clone)]
pub struct KindInfo {
    name: &'static str,
    ports: Ports,
    schema: Schema,
    /// Reads parameters whose places in the file are known.
    pub(crate) from_file: for<'a> fn(Spanned<DeTable<'a>>) -> Read,
    pub(crate) from_table: fn(toml::Table) -> Read,
}

/// A parameter of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindParam<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it is.
    pub about: &'a str,
    /// Whether it must be given.
    pub is_required: bool,
    /// What it is where it is not given, as a graph file would say it; `None`: nothing.
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

    /// What a graph file calls it.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What it does, in a line.
    pub fn about(&self) -> &str {
        first_paragraph(self.schema.get("description"))
    }

    /// What can be connected to it.
    pub fn ports(&self) -> Ports {
        self.ports
    }

    /// The JSON schema of its parameters.
    pub fn schema(&self) -> &serde_json::Value {
        self.schema.as_value()
    }

    /// Whether its parameters are not a struct with named fields.
    pub(crate) fn takes_any_param(&self) -> bool {
        let is_object = self.schema.get("type").is_some_and(|kind| kind == "object");
        let more = self.schema.get("additionalProperties");
        !is_object || more.is_some_and(|more| *more != serde_json::Value::Bool(false))
    }

    /// Its parameters, by name.
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

type Read = Result<Box<dyn Ready>, toml::de::Error>;

pub(crate) trait Ready {
    fn check(&self) -> Result<(), Fault>;
    fn channels(&self, incoming: &[Option<u32>]) -> Result<Option<u32>, Fault>;
    fn format(&self, incoming: &[Option<SampleFormat>]) -> Result<Option<SampleFormat>, Fault>;
    fn rate_hz(&self, incoming: &[Option<f64>]) -> Option<f64>;
    fn claims(&self) -> Option<String>;
    fn names(&self) -> Option<StageName<'_>>;
    fn build(self: Box<Self>, site: &mut Site) -> Result<Box<dyn Stage>, StageError>;
}

impl<K: Kind> Ready for K {
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
