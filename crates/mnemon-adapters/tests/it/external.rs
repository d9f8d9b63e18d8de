//! Knowledge bases of others, against an endpoint that answers as they do.

use std::time::Duration;

use mnemon_adapters::llm::Secret;
use mnemon_adapters::remote::{FieldMapping, Source, SourceConfig};
use mnemon_core::external::ExternalSource;
use mnemon_core::{Ctx, ErrorKind, Scope, Tenant, Time};
use mnemon_testkit::fakes::{DOUBLE_KEY, Endpoint, MemoryDouble, MemoryService, Move, Treatment};
use serde_json::{Value, json};

/// Not like a password, so that no scanner takes this file for a leak.
const KEY: &str = "ann:pw-7";

fn ctx(tenant: &str) -> Ctx {
    let tenant: Tenant = tenant.parse().unwrap();
    Ctx::new(tenant, "test", Time::EPOCH)
}

fn config(url: String) -> SourceConfig {
    SourceConfig {
        name: "wiki".to_owned(),
        url,
        key: Some(Secret::new(KEY)),
        // Long enough for a loaded machine.
        timeout: Duration::from_secs(300),
        limit: 2,
        scope: Scope::Semantic,
        fields: FieldMapping {
            text: "body.text".to_owned(),
            title: Some("title".to_owned()),
            source: Some("url".to_owned()),
            time: Some("at".to_owned()),
            tenant: Some("owner".to_owned()),
        },
        tenants: Some(vec![Tenant::default()]),
    }
}

fn answering(body: &Value) -> Endpoint {
    Endpoint::start(vec![Move::status(200, &body.to_string())])
}

fn has_line(head: &str, name: &str, value: &str) -> bool {
    let line = format!("{name}: {value}");
    head.lines().any(|known| known.eq_ignore_ascii_case(&line))
}

fn page(text: &str) -> Value {
    json!({"body": {"text": text}, "title": "T", "url": "https://wiki.example/1",
        "at": "1970-01-01T00:00:01Z"})
}

#[tokio::test]
async fn an_external_knowledge_base_is_asked_by_the_http_contract() {
    let mut entry = page("one");
    entry["id"] = json!(7);
    let more = json!({"id": "b", "body": {"text": "two"}});
    let without_text = json!({"id": "c"});
    let over = json!({"id": "d", "body": {"text": "three"}});
    let endpoint = answering(&json!({"results": [entry, without_text, more, over]}));
    let url = format!("kb+{}/find", endpoint.url());
    let source = Source::open(config(url)).unwrap();
    assert!(source.serves(&ctx("default")));
    assert!(!source.serves(&ctx("acme")));
    let found = source.find(&ctx("default"), None, "tea", 9).await.unwrap();
    let texts: Vec<(&str, &str)> = found
        .iter()
        .map(|hit| (hit.id.as_str(), hit.text.as_str()))
        .collect();
    assert_eq!(texts, [("7", "one"), ("b", "two")], "at most the limit");
    assert_eq!(found[0].title.as_deref(), Some("T"));
    assert_eq!(found[0].source.as_deref(), Some("https://wiki.example/1"));
    assert_eq!(found[0].created, Time::from_millis(1000).ok());
    let seen = endpoint.seen().remove(0);
    assert!(seen.head.starts_with("POST /find "), "{}", seen.head);
    assert!(has_line(
        &seen.head,
        "authorization",
        &format!("Bearer {KEY}")
    ));
    let expected = json!({"query": "tea", "limit": 2, "tenant": "default"});
    assert_eq!(seen.body, expected);
}

#[tokio::test]
async fn an_external_opensearch_index_is_asked_for_the_tenant_by_words() {
    let endpoint = answering(&json!({"hits": {"hits": [
        {"_id": "a", "_score": 2.0, "_source": page("one")},
    ]}}));
    let url = format!("opensearch+{}/wiki", endpoint.url());
    let source = Source::open(config(url)).unwrap();
    let found = source.find(&ctx("default"), None, "tea", 9).await.unwrap();
    assert_eq!((found[0].id.as_str(), found[0].text.as_str()), ("a", "one"));
    let seen = endpoint.seen().remove(0);
    assert!(
        seen.head.starts_with("POST /wiki/_search "),
        "{}",
        seen.head
    );
    // The key in base64.
    let sent = format!("Basic {}", "YW5uOnB3LTc=");
    assert!(has_line(&seen.head, "authorization", &sent));
    let expected = json!({
        "size": 2,
        "_source": ["body.text", "title", "url", "at"],
        "query": {"bool": {
            "must": [{"multi_match": {"query": "tea", "fields": ["body.text", "title"]}}],
            "filter": [{"term": {"owner": "default"}}],
        }},
    });
    assert_eq!(seen.body, expected);
}

#[tokio::test]
async fn each_failure_of_an_external_source_has_its_kind_and_shows_no_key() {
    let body = json!({"error": format!("{KEY} is not allowed")}).to_string();
    for (step, kind) in [
        (Move::status(403, &body), ErrorKind::Denied),
        (Move::status(503, &body), ErrorKind::Unavailable),
        (Move::status(200, "{}"), ErrorKind::Foreign),
        (Move::status(200, r#"{"results": [7]}"#), ErrorKind::Foreign),
    ] {
        let endpoint = Endpoint::start(vec![step]);
        let source = Source::open(config(format!("kb+{}", endpoint.url()))).unwrap();
        let error = source.find(&ctx("default"), None, "tea", 9).await;
        let error = error.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(!format!("{error} {error:?}").contains("pw-7"), "{error}");
    }
}

#[test]
fn addresses_of_external_sources_are_checked() {
    for (url, expected) in [
        ("opensearch+https://h", "the name of one index"),
        ("opensearch+https://h/a,b", "the name of one index"),
        ("opensearch+https://h/_all", "the name of one index"),
        ("kb+https://h/x?y=1", "must not contain a `?`"),
        ("kb+http://wiki.lan/x", "unencrypted; use https"),
        ("wiki+https://h", "does not name a memory service"),
    ] {
        let error = Source::open(config(url.to_owned())).err().unwrap();
        assert!(error.to_string().contains(expected), "{url}: {error}");
    }
}

#[tokio::test]
async fn a_source_that_takes_several_requests_has_one_time_limit() {
    let double = MemoryDouble::start(MemoryService::Acontext);
    let space = double.add_space("brew-tea", "Make tea", "1. Boil water.");
    let url = format!("{}?space={space}", double.url());
    let skills = SourceConfig {
        key: Some(Secret::new(DOUBLE_KEY)),
        timeout: Duration::from_millis(300),
        scope: Scope::Procedural,
        ..config(url)
    };
    // The list is answered; the instructions are not.
    double.misbehave(&[Treatment::Good, Treatment::Hang]);
    let source = Source::open(skills.clone()).unwrap();
    assert_eq!(source.scope(), Scope::Procedural);
    let error = source
        .find(&ctx("default"), None, "tea", 9)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("within 0.3 s"), "{error}");
    let scope = Scope::Dialog;
    let error = Source::open(SourceConfig { scope, ..skills })
        .err()
        .unwrap();
    assert!(error.to_string().contains("semantic"), "{error}");
}
