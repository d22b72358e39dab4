//! Metadata of the stream and its pictures: only changed keys, and most of them a few times a second.

use serde_json::{Map, Value};

use super::ViewerSession;
use crate::data::picture::Picture;
use crate::remote::ScopeMessage;
use crate::remote::replies::{Facts, Reply};

impl ViewerSession {
    /// The metadata to send before the picture that answers `viewport`.
    pub(super) fn told(&mut self, picture: &Picture, viewport: u64, now_ns: u64) -> Option<ScopeMessage> {
        if self.shown.is_some() {
            return None;
        }
        // A picture of a new viewport, or of the end, may stay for long: it comes with all metadata.
        let is_other = self.told_of != (viewport, picture.is_ended);
        self.told_of = (viewport, picture.is_ended);
        let is_due = is_other || now_ns >= self.told_due_ns(now_ns);
        self.encoded.take(Facts::of(picture));
        let is_other = |(key, value): &(&String, &Value)| self.facts.get(*key) != Some(*value);
        let others = self.encoded.keys.iter().filter(is_other);
        let mut keys: Map<_, _> = others.map(|(key, value)| (key.clone(), value.clone())).collect();
        let mut untold = Map::new();
        if !is_due {
            let needed = |key: &str, value: &Value| is_needed(key, value, self.facts.get(key));
            (keys, untold) = split(keys, needed);
        }
        self.untold = untold;
        self.tell(keys, now_ns)
    }

    /// The postponed metadata, when it is due.
    pub(super) fn tell_later(&mut self, now_ns: u64) -> Option<ScopeMessage> {
        if self.untold.is_empty() || now_ns < self.told_due_ns(now_ns) {
            return None;
        }
        let keys = std::mem::take(&mut self.untold);
        self.tell(keys, now_ns)
    }

    fn tell(&mut self, keys: Map<String, Value>, now_ns: u64) -> Option<ScopeMessage> {
        if keys.is_empty() {
            return None;
        }
        self.facts.extend(keys.iter().map(|(key, value)| (key.clone(), value.clone())));
        let message = Reply::Told(keys).message();
        (self.told_ns, self.told_bytes) = (now_ns, message.len());
        Some(message)
    }

    /// When the next metadata may be sent. On a slow path, it gets a fixed share.
    pub(crate) fn told_due_ns(&mut self, now_ns: u64) -> u64 {
        let rate = self.pace.rate_bytes_per_s(now_ns).unwrap_or(f64::INFINITY);
        let pause_ns = (self.told_bytes as f64 / rate * 4e9) as u64;
        self.told_ns + TOLD_INTERVAL_NS.max(pause_ns)
    }
}

/// Whether columns have another meaning without this key.
fn is_needed(key: &str, value: &Value, before: Option<&Value>) -> bool {
    match key {
        "streams" | "description" | "math" => true,
        // Its counters change with every block.
        "stream" => ["channels", "format", "rate_hz"]
            .iter()
            .any(|it| Some(&value[it]) != before.map(|before| &before[it])),
        "trigger" => {
            let is_counted = |key: &&String| !["found", "searched_samples", "rate"].contains(&key.as_str());
            let Value::Object(settings) = value else { return true };
            let keys = settings.keys().filter(is_counted);
            keys.into_iter().any(|key| Some(&value[key]) != before.map(|before| &before[key]))
        }
        _ => false,
    }
}

/// Splits the keys into needed ones and others.
fn split(
    keys: Map<String, Value>,
    is_it: impl Fn(&str, &Value) -> bool,
) -> (Map<String, Value>, Map<String, Value>) {
    let (mut are, mut others) = (Map::new(), Map::new());
    for (key, value) in keys {
        let to = if is_it(&key, &value) { &mut are } else { &mut others };
        to.insert(key, value);
    }
    (are, others)
}

const TOLD_INTERVAL_NS: u64 = 200_000_000;
