//! JSON Merge Patch (RFC 7396).

use serde_json::{Map, Value};

/// Changes the document as the patch says: an object changes the members that it names, `null`
/// takes a member away, anything else takes the place of what was there.
pub fn merge(document: &mut Value, patch: Value) {
    let Value::Object(changes) = patch else {
        *document = patch;
        return;
    };
    if !document.is_object() {
        *document = Value::Object(Map::new());
    }
    let Some(members) = document.as_object_mut() else {
        return;
    };
    for (name, change) in changes {
        if change.is_null() {
            members.remove(&name);
        } else {
            merge(members.entry(name).or_insert(Value::Null), change);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn merged(mut document: Value, patch: Value) -> Value {
        merge(&mut document, patch);
        document
    }

    /// The table of RFC 7396, appendix A.
    #[test]
    fn the_examples_of_the_standard_hold() {
        let cases = [
            r#"{"a":"b"} + {"a":"c"} = {"a":"c"}"#,
            r#"{"a":"b"} + {"b":"c"} = {"a":"b","b":"c"}"#,
            r#"{"a":"b"} + {"a":null} = {}"#,
            r#"{"a":"b","b":"c"} + {"a":null} = {"b":"c"}"#,
            r#"{"a":["b"]} + {"a":"c"} = {"a":"c"}"#,
            r#"{"a":"c"} + {"a":["b"]} = {"a":["b"]}"#,
            r#"{"a":{"b":"c"}} + {"a":{"b":"d","c":null}} = {"a":{"b":"d"}}"#,
            r#"{"a":[{"b":"c"}]} + {"a":[1]} = {"a":[1]}"#,
            r#"["a", "b"] + ["c", "d"] = ["c", "d"]"#,
            r#"{"a":"b"} + ["c"] = ["c"]"#,
            r#"{"a":"foo"} + null = null"#,
            r#"{"a":"foo"} + "bar" = "bar""#,
            r#"{"e":null} + {"a":1} = {"e":null,"a":1}"#,
            r#"[1, 2] + {"a":"b","c":null} = {"a":"b"}"#,
            r#"{} + {"a":{"bb":{"ccc":null}}} = {"a":{"bb":{}}}"#,
        ];
        for case in cases {
            let (terms, sum) = case.split_once(" = ").unwrap();
            let (document, patch) = terms.split_once(" + ").unwrap();
            let [document, patch, sum] =
                [document, patch, sum].map(|text| serde_json::from_str(text).unwrap());
            assert_eq!(merged(document, patch), sum, "{case}");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-c]{0,2}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                proptest::collection::btree_map("[a-c]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_same_patch_again_changes_nothing(document in any_json(), patch in any_json()) {
            let once = merged(document, patch.clone());
            prop_assert_eq!(merged(once.clone(), patch), once);
        }

        #[test]
        fn an_empty_patch_changes_no_object(document in any_json()) {
            if document.is_object() {
                prop_assert_eq!(merged(document.clone(), json!({})), document);
            }
        }
    }
}
