//! Graph files that are saved and read again, and any text.

use std::sync::Mutex;

use proptest::prelude::*;

use super::*;

/// Kinds with arbitrary parameters, for random files.
#[derive(JsonSchema)]
#[schemars(transparent)]
struct Any(#[allow(dead_code)] serde_json::Value);

impl<'de> Deserialize<'de> for Any {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self(serde_json::Value::Null))
    }
}

impl Kind for Any {
    const NAME: &'static str = "any";
    const PORTS: Ports = Ports { inputs: &[], outputs: &["out"] };

    fn build(self, _: &mut Site) -> Result<Box<dyn Stage>, StageError> {
        Ok(Box::new(Anything))
    }
}

fn value() -> impl Strategy<Value = toml::Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(toml::Value::Boolean),
        any::<i64>().prop_map(toml::Value::Integer),
        any::<f64>().prop_filter("nan is not equal to itself", |n| !n.is_nan()).prop_map(toml::Value::Float),
        ".*".prop_map(toml::Value::String),
        Just(toml::Value::Datetime("1979-05-27T07:32:00Z".parse().unwrap())),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(toml::Value::Array),
            prop::collection::hash_map(".{0,8}", inner, 0..4)
                .prop_map(|fields| toml::Value::Table(fields.into_iter().collect())),
        ]
    })
}

fn queue() -> impl Strategy<Value = Option<QueueOptions>> {
    let policy = prop::sample::select(Policy::ALL.to_vec());
    prop::option::of((1usize..65_536, prop::option::of(1usize..1 << 40), policy).prop_map(
        |(capacity_batches, capacity_bytes, policy)| QueueOptions {
            capacity_batches,
            capacity_bytes,
            policy,
        },
    ))
}

static KINDS: Mutex<Option<Kinds>> = Mutex::new(None);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Any parameters, ids and queues: a saved file parses to the same graph, and saves as the same text.
    #[test]
    fn a_saved_graph_file_reads_the_same(
        sources in prop::collection::vec(
            (prop::collection::hash_map(".{0,8}", value(), 0..4), queue(), prop::option::of(0usize..1)), 1..5),
        names in prop::collection::hash_set("[a-zA-Z0-9_äß-]{1,12}", 10),
        hosts in prop::collection::vec(prop::option::of(prop::bool::ANY), 5),
    ) {
        let mut names = names.into_iter();
        let mut file = GraphFile::default();
        for (at, (params, queue, cpu)) in sources.into_iter().enumerate() {
            let (Some(from), Some(to)) = (names.next(), names.next()) else { break };
            let params = params.into_iter().collect();
            let host = hosts[at].map(|_| format!("lab{at}"));
            if let (Some(name), Some(restarts)) = (host.clone(), hosts[at]) {
                let restart = if restarts { Restart::Always } else { Restart::No };
                file.hosts.push(FileHost { name, restart });
            }
            file.stages.push(FileStage { id: from.clone(), kind: "any".into(), params, cpu, host: host.clone() });
            file.stages.push(FileStage { id: to.clone(), kind: "sink".into(), params: toml::Table::new(), cpu: None, host });
            file.edges.push(FileEdge { from: (from, "out".into()), to: (to, "in".into()), queue });
        }
        let mut kinds_once = KINDS.lock().unwrap();
        let kinds = kinds_once.get_or_insert_with(|| {
            let mut kinds = kinds();
            kinds.add::<Any>();
            kinds
        });
        let text = file.to_toml();
        let again = GraphFile::parse(&text, Path::new("saved.toml"), kinds);
        prop_assert!(again.is_ok(), "{}\n{text}", again.unwrap_err());
        let again = again.unwrap();
        prop_assert_eq!(&again, &file);
        prop_assert_eq!(again.to_toml(), text);
    }

    #[test]
    fn no_text_panics(text in "(\\[\\[stage\\]\\]|\\[\\[edge\\]\\]|\\[\\[host\\]\\]|host|restart|id|kind|from|to|params|cpu| = |\"a\"|\"source\"|1|\n|.){0,60}") {
        if let Err(mistakes) = GraphFile::parse(&text, Path::new("any.toml"), &kinds()) {
            prop_assert!(!mistakes.to_string().is_empty());
        }
    }
}
