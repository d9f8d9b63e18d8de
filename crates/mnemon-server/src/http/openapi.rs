//! The contract of the server as OpenAPI 3.1, made from the table of routes, the fields of the
//! operations, and the shapes of their answers.

use serde_json::{Map, Value, json};

use super::problem::MEDIA_TYPE;
use super::{events, export, import, words};
use mnemon_operations::operation::routes::{Endpoint, Method, endpoints, is_in_path};
use mnemon_operations::operation::{Field, Shape};
use mnemon_operations::schema;

/// Statuses of errors, and when they come. Every route may answer with each.
const ERRORS: &[(&str, &str)] = &[
    (
        "400",
        "The request is wrong; `field` names the part that is",
    ),
    (
        "401",
        "A key is needed, or the one that was shown is not valid",
    ),
    (
        "403",
        "The key does not allow it, or the host is not served",
    ),
    ("404", "It does not exist, or the key may not see it"),
    ("405", "The route has another method"),
    ("408", "The request took too long to arrive"),
    (
        "409",
        "It was changed meanwhile or exists already, or the idempotency key belongs to another request",
    ),
    ("412", "The version in If-Match is not the current one"),
    ("413", "The request is too large"),
    ("415", "The body is not JSON"),
    ("431", "The path and the headers are too long"),
    (
        "429",
        "Too often, or over a quota; Retry-After says when to come again",
    ),
    ("500", "The store is damaged, or the server has a bug"),
    ("501", "The store of this server cannot do it"),
    ("503", "The server is busy or stopping; try again"),
    ("507", "The disk of the server is full"),
];

/// The whole document. The help of the commands describes the routes.
pub fn document(commands: &clap::Command) -> Value {
    let shapes = schema::document();
    let mut paths: Map<String, Value> = Map::new();
    for endpoint in endpoints() {
        let item = paths.entry(endpoint.route.path).or_insert(json!({}));
        let method = endpoint.route.method.as_str().to_lowercase();
        if let Some(item) = item.as_object_mut() {
            item.insert(method, operation(&endpoint, shapes, commands));
        }
    }
    paths.insert("/v1/changes".to_owned(), json!({"get": changes()}));
    paths.insert(export::ROUTE.path.to_owned(), json!({"get": exported()}));
    paths.insert(import::ROUTE.path.to_owned(), json!({"post": imported()}));
    for (path, about) in [
        ("/healthz", "Whether the process runs"),
        ("/readyz", "Whether the store can be used"),
    ] {
        paths.insert(path.to_owned(), json!({"get": health(path, about)}));
    }
    paths.insert("/metrics".to_owned(), json!({"get": metrics()}));
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Mnemon",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Memory for AI agents. Every operation of the command line that makes sense \
                remotely has one route. docs/server.md describes keys, limits and errors.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas(shapes),
            "responses": {"problem": {
                "description": "Error",
                "headers": {"X-Request-Id": request_id()},
                "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/problem"}}},
            }},
        },
    });
    in_words_of_api(&mut document);
    document
}

/// Descriptions are written for the command line.
fn in_words_of_api(part: &mut Value) {
    match part {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if name == "description" || name == "summary" => {
                        *text = words::of_api(text);
                    }
                    value => in_words_of_api(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(in_words_of_api),
        _ => {}
    }
}

fn request_id() -> Value {
    json!({"description": "The id of the request, for the logs", "schema": {"type": "string"}})
}

fn health(path: &str, about: &str) -> Value {
    let id = path.trim_start_matches('/');
    json!({
        "operationId": id, "summary": about, "tags": ["server"], "security": [],
        "responses": {
            "200": {"description": "Yes", "content": {"application/json": {"schema": {
                "type": "object", "properties": {"status": {"type": "string"}}, "required": ["status"],
            }}}},
            "400": {"$ref": "#/components/responses/problem"},
            "403": {"$ref": "#/components/responses/problem"},
            "503": {"$ref": "#/components/responses/problem"},
        },
    })
}

fn metrics() -> Value {
    let mut responses = Map::new();
    responses.insert(
        "200".to_owned(),
        json!({
            "description": "Metrics in the format of Prometheus (OpenMetrics 1.0)",
            "content": {"application/openmetrics-text": {"schema": {"type": "string"}}},
        }),
    );
    errors(&mut responses);
    json!({
        "operationId": "metrics", "summary": "Show the metrics of the server", "tags": ["server"],
        "responses": responses, "x-right": "admin",
    })
}

/// The change feed, which is a stream.
fn changes() -> Value {
    let mut parameters = in_query(super::changes::fields());
    parameters.push(
        json!({"name": "Last-Event-ID", "in": "header", "description": "The same as `after`",
        "schema": {"type": "string", "pattern": "^[0-9]{1,15}$"}}),
    );
    let mut responses = Map::new();
    responses.insert("200".to_owned(), json!({
        "description": "Changes as server-sent events; the id of an event is the number of the change",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }));
    errors(&mut responses);
    json!({
        "operationId": "changes", "summary": "Listen to changes", "tags": ["changes"],
        "parameters": parameters, "responses": responses, "x-right": "read",
    })
}

/// Parameters of a route that is not an operation.
fn in_query(fields: Vec<Field>) -> Vec<Value> {
    let parameters = fields.into_iter().map(|field| {
        let mut schema = field.schema();
        bound(&field.shape, &mut schema);
        json!({"name": field.name, "in": "query", "required": false, "schema": schema})
    });
    parameters.collect()
}

/// The export, which is a stream.
fn exported() -> Value {
    let mut responses = Map::new();
    responses.insert(
        "200".to_owned(),
        json!({
            "description": "A record on each line",
            "content": {export::MEDIA_TYPE: {"schema": {"type": "string"}}},
        }),
    );
    errors(&mut responses);
    json!({
        "operationId": "export", "summary": "Export records as JSON lines", "tags": ["export"],
        "parameters": in_query(export::fields()), "responses": responses,
        "x-right": export::ROUTE.right.as_str(),
    })
}

/// The import, whose body is a stream.
fn imported() -> Value {
    let body = json!({"schema": {"type": "string", "description": "A record on each line"}});
    let bodies = import::MEDIA_TYPES.map(|kind| (kind.to_owned(), body.clone()));
    let bodies = Map::from_iter(bodies);
    let mut responses = Map::new();
    responses.insert(
        "200".to_owned(),
        json!({
            "description": "All lines were imported",
            "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/imported"}},
                events::MEDIA_TYPE: {"schema": events()},
            },
        }),
    );
    errors(&mut responses);
    json!({
        "operationId": "import", "summary": "Import records that an export wrote",
        "tags": ["import"], "parameters": in_query(import::fields()),
        "requestBody": {"required": true, "content": bodies},
        "responses": responses, "x-right": import::ROUTE.right.as_str(),
    })
}

fn events() -> Value {
    json!({"type": "string", "description": "Events `progress`, and at last `result` or `error`"})
}

/// The shapes, with references that fit into this document.
fn schemas(shapes: &Value) -> Value {
    let mut schemas = shapes.get("$defs").cloned().unwrap_or(json!({}));
    refer(&mut schemas);
    if let Some(schemas) = schemas.as_object_mut() {
        schemas.insert("problem".to_owned(), problem());
    }
    schemas
}

fn problem() -> Value {
    let text = json!({"type": "string"});
    json!({
        "type": "object",
        "description": "An error, as RFC 9457 has it",
        "required": ["title", "status", "code", "detail"],
        "properties": {
            "title": text, "status": {"type": "integer"}, "detail": text, "hint": text,
            "code": {"type": "string", "description": "A word that stays the same: decide by it"},
            "causes": {"type": "array", "items": text},
            "field": {"type": "string", "description": "The field that is wrong"},
            "request_id": text,
        },
    })
}

fn refer(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(place)) = fields.get_mut("$ref") {
                *place = place.replace("#/$defs/", "#/components/schemas/");
            }
            fields.values_mut().for_each(refer);
        }
        Value::Array(items) => items.iter_mut().for_each(refer),
        _ => {}
    }
}

fn operation(endpoint: &Endpoint, shapes: &Value, commands: &clap::Command) -> Value {
    let route = endpoint.route;
    let parts = || route.path.split(['{', '}']).skip(1).step_by(2);
    let in_path = |name: &str| parts().find(|part| is_in_path(part, name));
    let mut parameters = Vec::new();
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for field in &endpoint.fields {
        let mut schema = field.schema();
        bound(&field.shape, &mut schema);
        let has_other = |other: &&str| endpoint.fields.iter().any(|field| field.name == *other);
        let is_alone = !field.alternatives.is_empty() && !field.alternatives.iter().any(has_other);
        let is_required =
            field.is_required_on(mnemon_operations::operation::Interface::Http) || is_alone;
        if let Some(part) = in_path(field.name) {
            if let Shape::Texts { max, .. } = field.shape {
                schema = json!({"type": "string", "minLength": 1, "maxLength": max, "description": field.about});
            }
            parameters.push(json!({"name": part, "in": "path", "required": true, "schema": schema, "style": "simple"}));
        } else if !route.method.has_body() {
            parameters.push(json!({"name": field.name, "in": "query", "required": is_required, "schema": schema}));
        } else {
            if is_required {
                required.push(field.name);
            }
            properties.insert(field.name.to_owned(), schema);
        }
    }
    for (field, header, about) in HEADERS {
        if endpoint.fields.iter().any(|known| known.name == *field) {
            parameters.push(json!({"name": header, "in": "header", "description": about,
                "schema": {"type": "string", "maxLength": 200, "pattern": "^[!-~]+$"}}));
        }
    }
    let mut operation = json!({
        "operationId": operation_id(endpoint),
        "summary": summary(endpoint, commands),
        "tags": [tag(route.path)],
        "parameters": parameters,
        "responses": responses(endpoint, shapes),
        "x-right": route.right.as_str(),
    });
    if let (true, Some(object)) = (route.method.has_body(), operation.as_object_mut()) {
        let is_required = !required.is_empty();
        let mut schema =
            json!({"type": "object", "properties": properties, "additionalProperties": false});
        if let (true, Some(schema)) = (is_required, schema.as_object_mut()) {
            schema.insert("required".to_owned(), json!(required));
        }
        let body =
            json!({"required": is_required, "content": {"application/json": {"schema": schema}}});
        object.insert("requestBody".to_owned(), body);
    }
    operation
}

/// Fields that may be sent as headers.
const HEADERS: &[(&str, &str, &str)] = &[
    (
        "key",
        "Idempotency-Key",
        "The same as `key`: a repeated request is carried out once",
    ),
    (
        "if_version",
        "If-Match",
        "The same as `if_version`: the ETag of an earlier answer",
    ),
];

/// Texts of fields are not blank.
fn bound(shape: &Shape, schema: &mut Value) {
    let Some(schema) = schema.as_object_mut() else {
        return;
    };
    match shape {
        Shape::Text { min: 1.., .. } => {
            schema.insert("minLength".to_owned(), json!(1));
        }
        Shape::Json => {
            schema.insert("type".to_owned(), json!(["object", "array"]));
        }
        _ => {}
    }
}

fn operation_id(endpoint: &Endpoint) -> String {
    let route = &endpoint.route;
    let path = route.path.trim_start_matches("/v1/");
    let words = match (endpoint.command, path.rsplit_once("/{")) {
        ("", Some((path, _))) if route.method == Method::Delete => format!("{path}/delete"),
        ("", _) => path.to_owned(),
        (command, _) => command.to_owned(),
    };
    let words = words.replace(['{', '}'], "");
    words.replace([' ', '/', '-'], "_")
}

/// The first sentence of the command's help.
fn summary(endpoint: &Endpoint, commands: &clap::Command) -> String {
    let mut command = commands;
    for word in endpoint.command.split_whitespace() {
        match command.find_subcommand(word) {
            Some(inner) => command = inner,
            None => return operation_id(endpoint),
        }
    }
    let own = WITHOUT_COMMAND
        .iter()
        .find(|row| row.0 == endpoint.route.path);
    match (endpoint.command, own) {
        ("", Some((_, about, _))) => (*about).to_owned(),
        _ => command
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default(),
    }
}

/// Routes whose operation has no command of its own: their path, what they do, and the shape of the
/// answer.
const WITHOUT_COMMAND: &[(&str, &str, &str)] = &[
    ("/v1/records/{id}", "Forget a record", "forgotten"),
    ("/v1/documents", "Add documents, whose text is sent", ""),
    (
        "/v1/documents/known",
        "Show which documents are there, and from which files",
        "",
    ),
    (
        "/v1/long-term/record",
        "Record facts to long-term memory",
        "",
    ),
    (
        "/v1/long-term/retrieve",
        "Retrieve what long-term memory knows",
        "",
    ),
    (
        "/v1/forget/preview",
        "Show which records would be forgotten",
        "would_forget",
    ),
    (
        "/v1/conversations/{session}/window",
        "Show the window of a conversation",
        "window",
    ),
    (
        "/v1/conversations/{session}/compressions/preview",
        "Show what a compression would do",
        "would_compress",
    ),
    (
        "/v1/conversations/{session}/snapshots/{label}",
        "Delete a snapshot of a conversation",
        "session_deleted",
    ),
];

fn tag(path: &str) -> &str {
    let rest = path.trim_start_matches("/v1/");
    rest.split('/').next().unwrap_or(rest)
}

fn responses(endpoint: &Endpoint, shapes: &Value) -> Value {
    let own = WITHOUT_COMMAND
        .iter()
        .find(|row| row.0 == endpoint.route.path);
    let shape = match (endpoint.command, own) {
        // The command writes files.
        ("skill export", _) | ("", None | Some((_, _, ""))) => None,
        ("", Some((_, _, shape))) => Some(json!({"$ref": format!("#/$defs/{shape}")})),
        (command, _) => shapes.pointer(&format!("/properties/{command}")).cloned(),
    };
    let mut shape = shape.unwrap_or(json!({"type": "object"}));
    refer(&mut shape);
    let mut responses = Map::new();
    let headers = json!({
        "X-Request-Id": request_id(),
        "ETag": {"description": "The version of the record, where the answer shows one", "schema": {"type": "string"}},
    });
    let mut content = json!({"application/json": {"schema": shape}});
    if let (true, Some(content)) = (endpoint.route.is_long, content.as_object_mut()) {
        content.insert(events::MEDIA_TYPE.to_owned(), json!({"schema": events()}));
    }
    responses.insert(
        "200".to_owned(),
        json!({"description": "Done", "headers": headers, "content": content}),
    );
    if endpoint.route.method == Method::Get {
        responses.insert(
            "304".to_owned(),
            json!({"description": "The version in If-None-Match is the current one"}),
        );
    }
    errors(&mut responses);
    Value::Object(responses)
}

fn errors(responses: &mut Map<String, Value>) {
    for (status, about) in ERRORS {
        let reference = json!({"$ref": "#/components/responses/problem", "description": about});
        responses.insert((*status).to_owned(), reference);
    }
}
