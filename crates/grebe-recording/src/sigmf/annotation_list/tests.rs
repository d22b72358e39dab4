//! Edits leave every other byte of the metadata alone.

use proptest::prelude::*;

use super::*;

fn annotation(position: u64, length_samples: u64, label: &str) -> Annotation {
    let fields = Map::from_iter([("core:label".to_owned(), Value::from(label))]);
    Annotation { position, length_samples, fields }
}

fn list(text: &str) -> AnnotationList {
    AnnotationList::parse(Path::new("x.sigmf-meta"), text.to_owned()).unwrap()
}

#[test]
fn every_other_byte_stays() {
    // Numbers that floats round, a repeated key, an escape, odd spaces, and a mark of the order of bytes.
    let before = "\u{feff}{ \"global\":{\"core:offset\": 100, \"x:a\":0.1000000000000000055511151231257827,\"b\":\"]}\\\"\\u00e9\"},\n\
        \"annotations\" : [ {\"core:sample_start\": 105,\"core:label\":\"a\" , \"x:n\": 1e400000} , null ],\"captures\":[{\"core:sample_start\":0}] }\n";
    let before = before.replace("1e400000", "1E+2");
    let mut edited = list(&before);
    assert!(edited.apply(&AnnotationEdit::Add(annotation(20, 3, "late")), &|| Some(20)).unwrap());
    assert!(edited.apply(&AnnotationEdit::Add(annotation(20, 3, "late")), &|| Some(20)).unwrap());
    let text = edited.into_text();
    let added = r#",{"core:label":"late","core:sample_count":3,"core:sample_start":120}"#;
    let first = "null,{\"core:sample_start\": 105,\"core:label\":\"a\" , \"x:n\": 1E+2}";
    let old = "[ {\"core:sample_start\": 105,\"core:label\":\"a\" , \"x:n\": 1E+2} , null ]";
    assert_eq!(text, before.replace(old, &format!("[{first}{added}]")));
    let mut again = list(&text);
    assert!(again.apply(&AnnotationEdit::Remove(annotation(20, 3, "late")), &|| Some(20)).unwrap());
    assert!(!again.apply(&AnnotationEdit::Remove(annotation(20, 3, "late")), &|| Some(20)).unwrap());
    assert_eq!(again.into_text(), before.replace(old, &format!("[{first}]")));
    // Without a change, the text stays the same.
    assert_eq!(list(&before).into_text(), before);
}

#[test]
fn fields_of_an_extension_declare_it_once() {
    let fields = Map::from_iter([("presentation:color".to_owned(), Value::from("#ff0000"))]);
    let red = AnnotationEdit::Add(Annotation { position: 0, length_samples: 1, fields });
    for (global, declared) in [
        ("{}", 1),
        (r#"{"core:extensions":[]}"#, 1),
        (r#"{"core:extensions":[{"name":"x","version":"2","optional":false}]}"#, 2),
        (r#"{"core:extensions":[{"name":"presentation","version":"2.0.0","optional":true}]}"#, 1),
    ] {
        let mut edited = list(&format!(r#"{{"global":{global}}}"#));
        edited.apply(&red, &|| Some(20)).unwrap();
        let text = edited.into_text();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["global"]["core:extensions"].as_array().unwrap().len(), declared, "{text}");
        assert_eq!(value["annotations"][0]["presentation:color"], "#ff0000");
    }
}

#[test]
fn an_annotation_that_a_reader_cuts_is_found_and_keeps_its_end() {
    let text = r#"{"annotations":[{"core:sample_start":5,"core:label":"a"},{"core:sample_start":7,"core:sample_count":90,"core:label":"b"}]}"#;
    let mut edited = list(text);
    for (position, label) in [(5, "a"), (7, "b")] {
        let before = annotation(position, 20 - position, label);
        let after = annotation(position, 20 - position, "renamed");
        assert!(edited.apply(&AnnotationEdit::Replace { before, after }, &|| Some(20)).unwrap());
    }
    let value: Value = serde_json::from_str(&edited.into_text()).unwrap();
    assert_eq!(value["annotations"][0], json!({"core:sample_start": 5, "core:label": "renamed"}));
    assert_eq!(
        value["annotations"][1],
        json!({"core:sample_start": 7, "core:sample_count": 90, "core:label": "renamed"})
    );
}

/// Any JSON, a few levels deep.
fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z\"\\\\{}\\[\\],: \n\u{e9}]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-z:\"\\\\{}\\[\\],]{0,6}", inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn edits() -> impl Strategy<Value = Vec<(u8, u64, u64, String)>> {
    prop::collection::vec((0..3u8, 0..6u64, 0..3u64, "[ab]{0,1}"), 0..24)
}

proptest! {
    #[test]
    fn any_edits_in_any_order_keep_everything_else(
        others in prop::collection::vec(("[a-z:\"\\\\]{1,6}", json_value()), 0..5),
        global in prop::collection::vec(("[a-z:\"\\\\]{1,6}", json_value()), 0..5),
        edits in edits(),
        is_pretty in any::<bool>(),
        has_list in any::<bool>(),
    ) {
        let mut meta: Map<String, Value> = others.into_iter().collect();
        meta.insert("global".into(), Value::Object(global.into_iter().collect()));
        meta.remove("annotations");
        if has_list {
            meta.insert("annotations".into(), json!([{"core:sample_start": 2, "core:label": "a", "z": [1, {}]}]));
        }
        let meta = Value::Object(meta);
        let mut text = if is_pretty { format!("{meta:#}\n") } else { meta.to_string() };
        let mut there = if has_list { vec![(2, None, "a".to_owned(), true)] } else { Vec::new() };
        for (what, position, length, label) in edits {
            let mut list = list(&text);
            let it = annotation(position, length, &label);
            let key = (position, Some(length), label.clone(), false);
            let at = there.iter().position(|other| *other == key);
            let is_found = match what {
                0 => {
                    if at.is_none() { there.push(key) }
                    list.apply(&AnnotationEdit::Add(it), &|| Some(20)).unwrap()
                }
                1 => {
                    at.map(|at| there.remove(at));
                    prop_assert_eq!(list.apply(&AnnotationEdit::Remove(it), &|| Some(20)).unwrap(), at.is_some());
                    true
                }
                _ => {
                    let after = annotation(position + 1, length, &label);
                    if let Some(at) = at {
                        there.remove(at);
                        there.push((position + 1, Some(length), label.clone(), false));
                    }
                    let edit = AnnotationEdit::Replace { before: it, after };
                    prop_assert_eq!(list.apply(&edit, &|| Some(20)).unwrap(), at.is_some());
                    true
                }
            };
            prop_assert!(is_found);
            text = list.into_text();
        }
        let mut value: Value = serde_json::from_str(&text).unwrap();
        let mut meta = meta;
        let list = value.as_object_mut().unwrap().remove("annotations").unwrap_or_else(|| json!([]));
        meta.as_object_mut().unwrap().remove("annotations");
        prop_assert_eq!(value, meta);
        let said = |it: &Value| {
            let label = it["core:label"].as_str().unwrap().to_owned();
            (it["core:sample_start"].as_u64().unwrap(), it["core:sample_count"].as_u64(), label, it.get("z").is_some())
        };
        let mut said: Vec<_> = list.as_array().unwrap().iter().map(said).collect();
        prop_assert!(said.is_sorted_by_key(|it| it.0));
        said.sort();
        there.sort();
        prop_assert_eq!(said, there);
    }
}
