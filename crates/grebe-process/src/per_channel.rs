//! Parameter with one value for all channels, or one per channel.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use grebe_flow::Fault;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, IntoDeserializer, SeqAccess, Visitor};
use serde::{Serialize, Serializer};

/// One value for all channels, or one per channel; `0.5` or `[0.5, 1.0]` in a graph file.
///
/// ```
/// use grebe_process::PerChannel;
///
/// let one = PerChannel::from(vec![0.5]);
/// assert_eq!((one.of(0), one.of(7)), (Some(&0.5), Some(&0.5)));
/// let two = PerChannel::from(vec![0.5, 1.0]);
/// assert_eq!((two.of(1), two.of(2)), (Some(&1.0), None));
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PerChannel<T>(Vec<T>);

impl<T> PerChannel<T> {
    /// Value for this channel, from 0.
    pub fn of(&self, channel: usize) -> Option<&T> {
        match self.0.as_slice() {
            [only] => Some(only),
            values => values.get(channel),
        }
    }

    /// Values as written.
    pub fn values(&self) -> &[T] {
        &self.0
    }

    /// Checks that the number of values suits this number of channels.
    pub(crate) fn check(&self, name: &'static str, channels: Option<u32>) -> Result<(), Fault> {
        match (self.0.len(), channels) {
            (0 | 1, _) | (_, None) => Ok(()),
            (values, Some(channels)) if values == channels as usize => Ok(()),
            (values, Some(channels)) => {
                let plural = if channels == 1 { "" } else { "s" };
                Err(Fault::new(
                    name,
                    format!("{values} values for {channels} channel{plural}: give one, or one per channel"),
                ))
            }
        }
    }
}

impl<T> From<Vec<T>> for PerChannel<T> {
    fn from(values: Vec<T>) -> Self {
        Self(values)
    }
}

impl<T: Serialize> Serialize for PerChannel<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [only] => only.serialize(serializer),
            values => values.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for PerChannel<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrMany(PhantomData))
    }
}

struct OneOrMany<T>(PhantomData<T>);

/// Single value of any type in the file, read as a `T`.
macro_rules! one {
    ($visit:ident, $type:ty) => {
        fn $visit<E: serde::de::Error>(self, value: $type) -> Result<PerChannel<T>, E> {
            Ok(PerChannel(vec![T::deserialize(value.into_deserializer())?]))
        }
    };
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrMany<T> {
    type Value = PerChannel<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one value, or a list of one per channel")
    }

    one!(visit_i64, i64);
    one!(visit_u64, u64);
    one!(visit_f64, f64);
    one!(visit_str, &str);

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<PerChannel<T>, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = sequence.next_element()? {
            values.push(value);
        }
        Ok(PerChannel(values))
    }
}

impl<T: JsonSchema> JsonSchema for PerChannel<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("PerChannel_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [one, { "type": "array", "items": one }] })
    }
}
