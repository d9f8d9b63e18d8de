//! The fields of a request: where they are sent, and how they become the arguments of an operation.

use axum::body::Bytes;
use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use mnemon_core::Invalid;
use mnemon_engine::access::Rights;
use serde_json::{Map, Value, json};

use super::api::Refused;
use super::gate::is_json;
use super::problem::Problem;
use mnemon_operations::Error;
use mnemon_operations::operation::routes::{Endpoint, Method};
use mnemon_operations::operation::{Arguments, Field, Interface, Shape};

/// A longer body is parsed on another thread, so that other requests go on: 64 KiB take 0.3 ms.
const INLINE_BYTES: usize = 64 * 1024;

/// The fields of a request: those of the path, of the body or the query, and of headers.
pub(super) async fn arguments(
    endpoint: &Endpoint,
    head: &mut Parts,
    body: &Bytes,
) -> Result<Arguments, Refused> {
    let query = head.uri.query().unwrap_or_default().to_owned();
    let mut sent = match endpoint.route.method.has_body() {
        true => {
            if !query.is_empty() {
                let what = "is not used by this route: send the fields as a JSON body";
                return Err(Invalid::new("query", what).into());
            }
            object(&head.headers, body).await?
        }
        false => {
            if !body.is_empty() {
                let what = "is not used by this route: send the fields in the query";
                return Err(Invalid::new("body", what).into());
            }
            from_query(&endpoint.fields, &query)?
        }
    };
    for (part, value) in path_fields(head).await? {
        let field = endpoint.in_path(&part);
        let name = field.map_or(part, |field| field.name.to_owned());
        if sent.contains_key(&name) {
            let what = "is in the path, and cannot be sent again";
            return Err(Invalid::new(name, what).into());
        }
        let value = match field.map(|field| &field.shape) {
            Some(Shape::Texts { .. }) => value.split(',').collect(),
            _ => Value::String(value),
        };
        sent.insert(name, value);
    }
    for (header, field) in [(&KEY_HEADER, "key"), (&header::IF_MATCH, "if_version")] {
        from_header(endpoint, &head.headers, header, field, &mut sent)?;
    }
    let is_read = endpoint.route.method == Method::Get;
    if !is_read && head.headers.contains_key(header::IF_NONE_MATCH) {
        let what =
            "is not used by this route: it would not keep the request from changing something";
        return Err(Invalid::new(header::IF_NONE_MATCH.as_str(), what).into());
    }
    Ok(Arguments::check_on(
        Interface::Http,
        &endpoint.fields,
        sent,
    )?)
}

/// The tag without the mark that a proxy adds when it compresses the answer. A version says the same
/// in every encoding.
pub(super) fn strong(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

pub(super) const KEY_HEADER: HeaderName = HeaderName::from_static("idempotency-key");

/// A field that may be sent as a header.
fn from_header(
    endpoint: &Endpoint,
    headers: &HeaderMap,
    header: &HeaderName,
    field: &str,
    sent: &mut Map<String, Value>,
) -> Result<(), Invalid> {
    let mut values = headers.get_all(header).iter();
    let Some(value) = values.next() else {
        return Ok(());
    };
    let wrong = |what: &str| Err(Invalid::new(header.as_str(), what));
    let Ok(value) = value.to_str() else {
        return wrong("has characters that are not printable ASCII");
    };
    if values.next().is_some() {
        return wrong("is sent twice");
    }
    let has_field = endpoint.fields.iter().any(|known| known.name == field);
    match (has_field, field) {
        // Repeating these changes nothing anyway.
        (false, "key") if endpoint.route.right == Rights::Read => return Ok(()),
        (false, "key") => return wrong("is not used by this route; it cannot be repeated safely"),
        (false, _) => return wrong("is not used by this route"),
        (true, _) if sent.contains_key(field) => {
            return wrong(&format!(
                "is sent together with `{field}`; use one of the two"
            ));
        }
        (true, "key") => sent.insert(field.to_owned(), Value::String(value.to_owned())),
        // Any version will do: the route finds out whether there is one.
        (true, _) if value.trim() == "*" => return Ok(()),
        (true, _) => {
            let version = strong(value.trim()).trim_matches('"').parse::<u64>();
            let Ok(version) = version else {
                return wrong("must be one version in quotes, as an ETag had it");
            };
            sent.insert(field.to_owned(), version.into())
        }
    };
    Ok(())
}

/// The fields that stand in the path.
pub(super) async fn path_fields(head: &mut Parts) -> Result<Vec<(String, String)>, Invalid> {
    let params = RawPathParams::from_request_parts(head, &()).await;
    let params = params.map_err(|error| Invalid::new("path", error.body_text()))?;
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    Ok(params.iter().map(owned).collect())
}

/// A JSON body; an empty one has no fields.
async fn object(headers: &HeaderMap, body: &Bytes) -> Result<Map<String, Value>, Refused> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    if !is_json(headers) {
        let what = "send the fields as Content-Type: application/json";
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(Refused::Problem(Box::new(Problem::new(
            status,
            "unsupported-media-type",
            what,
        ))));
    }
    let parsed = match body.len() > INLINE_BYTES {
        true => {
            let body = body.clone();
            let parsing = tokio::task::spawn_blocking(move || serde_json::from_slice(&body));
            parsing
                .await
                .map_err(|error| Error::Internal(error.to_string()))?
        }
        false => serde_json::from_slice(body),
    };
    match parsed {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(Invalid::new("body", "is not a JSON object").into()),
        Err(error) => Err(Invalid::new("body", format!("is not JSON: {error}")).into()),
    }
}

/// The fields of a query, with the types that they have in JSON. A name may be repeated for a list.
pub(super) fn from_query(fields: &[Field], query: &str) -> Result<Map<String, Value>, Invalid> {
    let mut sent: Map<String, Value> = Map::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (decoded(name)?, decoded(value)?);
        let field = fields.iter().find(|field| field.name == name);
        let shape = field.map(|field| &field.shape);
        let is_list = matches!(
            shape,
            Some(Shape::Choices(_) | Shape::Texts { .. } | Shape::Words { .. })
        );
        match (sent.get_mut(&name), is_list) {
            (Some(Value::Array(items)), true) => items.push(value.into()),
            (Some(_), _) => return Err(Invalid::new(name, "is sent twice")),
            (None, true) => drop(sent.insert(name, json!([value]))),
            (None, false) => drop(sent.insert(name, typed(shape, value))),
        }
    }
    Ok(sent)
}

/// The value that a text of a query stands for; the check of the arguments refuses what is none.
fn typed(shape: Option<&Shape>, text: String) -> Value {
    let is_text = matches!(shape, None | Some(Shape::Text { .. } | Shape::Choice(_)));
    match is_text {
        true => Value::String(text),
        false => serde_json::from_str(&text).unwrap_or(Value::String(text)),
    }
}

fn decoded(text: &str) -> Result<String, Invalid> {
    let text = text.replace('+', " ");
    let decoded = percent_encoding::percent_decode_str(&text).decode_utf8();
    let decoded = decoded.map_err(|_| Invalid::new("query", "is not UTF-8"))?;
    Ok(decoded.into_owned())
}
