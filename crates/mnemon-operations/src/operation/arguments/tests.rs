use serde_json::json;

use super::*;

fn fields() -> Vec<Field> {
    vec![
        Field::text("query", 10, "What to look for")
            .required()
            .or(&["q"]),
        Field::whole("max_results", 1, 100, "How many").or(&["limit"]),
        Field::number("score", 0.0, 1.0, "How near"),
        Field::flag("whole", "All of it"),
        Field::choice("namespace", &["short-term", "long-term"], "How long"),
        Field::texts("tags", 2, 5, "Words"),
        Field::parts(
            "inner",
            vec![Field::text("name", 5, "A name").required()],
            "A part",
        ),
        Field::list("rows", vec![Field::text("name", 5, "A name")], 2, "Rows"),
        Field::object("metadata", "Anything"),
    ]
}

fn check(sent: Value) -> Result<Value, String> {
    let sent = sent.as_object().unwrap().clone();
    let checked = Arguments::check(&fields(), sent);
    checked
        .map(|arguments| Value::Object(arguments.0))
        .map_err(|invalid| invalid.to_string())
}

#[test]
fn what_models_send_instead_is_understood() {
    let sent = json!({
        "Q": "tea", "maxResults": "5", "score": "0.5", "whole": "true",
        "namespace": "Long_Term", "tags": "a", "inner": "{\"name\": \"x\"}",
        "rows": {"name": "y"}, "metadata": null,
    });
    let meant = json!({
        "query": "tea", "max_results": 5, "score": 0.5, "whole": true,
        "namespace": "long-term", "tags": ["a"], "inner": {"name": "x"},
        "rows": [{"name": "y"}],
    });
    assert_eq!(check(sent), Ok(meant));
    assert_eq!(
        check(json!({"query": "tea", "limit": 5.0})),
        Ok(json!({"query": "tea", "max_results": 5}))
    );
    assert_eq!(
        check(json!({"query": "tea", "tags": "[\"a\",\"b\"]"})),
        Ok(json!({"query": "tea", "tags": ["a", "b"]}))
    );
}

#[test]
fn what_is_wrong_is_said() {
    refused(&[
        (json!({}), "query: is missing: What to look for"),
        (json!({"query": " "}), "query: is empty"),
        (json!({"query": 5}), "query: must be a text, not a number"),
        (
            json!({"query": "12345678901"}),
            "query: has 11 characters; at most 10",
        ),
        (json!({"query": "x", "q": "y"}), "query: is sent twice"),
        (
            json!({"query": "x", "quarry": 1}),
            "quarry: is not a known field; the fields are: query, ",
        ),
        (
            json!({"query": "x", "limit": 0}),
            "max_results: is 0; from 1 to 100",
        ),
        (
            json!({"query": "x", "limit": -1}),
            "max_results: must be a whole number from 1 to 100, not -1",
        ),
        (
            json!({"query": "x", "limit": 1.5}),
            "max_results: must be a whole number from 1 to 100, not 1.5",
        ),
        (
            json!({"query": "x", "score": 2}),
            "score: is 2; from 0 to 1",
        ),
        (
            json!({"query": "x", "score": "NaN"}),
            "score: `NaN` is not a number",
        ),
    ]);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    refused(&[
        (
            json!({"query": "x", "whole": 1}),
            "whole: must be true or false, not a number",
        ),
        (
            json!({"query": "x", "namespace": "forever"}),
            "must be one of: short-term, long-term",
        ),
        (
            json!({"query": "x", "namespace": []}),
            "namespace: must be one of",
        ),
        (
            json!({"query": "x", "tags": ["a", "b", "c"]}),
            "tags: has 3 entries; at most 2",
        ),
        (
            json!({"query": "x", "tags": ["a", 1]}),
            "tags[1]: must be a text, not a number",
        ),
        (
            json!({"query": "x", "tags": ["123456"]}),
            "tags[0]: has 6 characters",
        ),
        (json!({"query": "x", "inner": {}}), "inner.name: is missing"),
        (
            json!({"query": "x", "inner": "no"}),
            "inner: `no` is not an object",
        ),
        (
            json!({"query": "x", "rows": [{"nome": 1}]}),
            "rows[0].nome: is not a known field",
        ),
        (
            json!({"query": "x", "rows": [5]}),
            "rows[0]: must be an object, not a number",
        ),
        (
            json!({"query": "x", "metadata": [1]}),
            "metadata: must be an object, not a list",
        ),
    ]);
}

#[track_caller]
fn refused(cases: &[(Value, &str)]) {
    for (sent, expected) in cases {
        let said = check(sent.clone()).unwrap_err();
        assert!(said.contains(expected), "{sent}: {said}");
    }
}

#[test]
fn exactly_one_of_several_alternatives_is_given() {
    let fields = [
        Field::text("content", 10, "Text").or_else(&["message", "line"]),
        Field::json("message", "A message"),
        Field::json("line", "A line").only(Interface::CommandLine),
        Field::text("role", 10, "Who").excludes("message"),
    ];
    let check = |interface, sent: Value| {
        let Value::Object(sent) = sent else {
            panic!("{sent}")
        };
        let checked = Arguments::check_on(interface, &fields, sent);
        checked.map(|_| ()).map_err(|wrong| wrong.to_string())
    };
    let (terminal, mcp) = (Interface::CommandLine, Interface::Mcp);
    for (interface, sent, wrong) in [
        (mcp, json!({}), "content: is missing: Text; or give message"),
        (
            terminal,
            json!({}),
            "--content: is missing: Text; or give --message or --line",
        ),
        (
            terminal,
            json!({"message": [], "line": {}}),
            "--message: is given together with --line; use one of the two",
        ),
        (
            mcp,
            json!({"message": {}, "role": "a"}),
            "role: is given together with message; use one of the two",
        ),
        (
            mcp,
            json!({"message": 7}),
            "message: must be an object, not a number",
        ),
    ] {
        assert_eq!(check(interface, sent), Err(wrong.to_owned()));
    }
    assert_eq!(check(mcp, json!({"content": "a", "role": "b"})), Ok(()));
    assert_eq!(check(terminal, json!({"message": [1]})), Ok(()));
}

#[test]
fn nothing_can_be_sent_to_a_tool_without_fields() {
    let sent = json!({"x": 1}).as_object().unwrap().clone();
    let said = Arguments::check(&[], sent).unwrap_err().to_string();
    assert!(said.contains("this call has no fields"), "{said}");
}
