//! Against a small HTTP server that misbehaves on demand.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mnemon_adapters::embed::{OpenAi, OpenAiConfig, Secret};
use mnemon_core::embed::{EmbedError, Embedder};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Bytes of one text that are sent.
const MAX_TEXT_BYTES: usize = 24_000;

/// What the server does with its nth request; the last step is repeated.
#[derive(Clone)]
enum Step {
    /// Vectors of this dimension that tell which text they are for, in reverse order.
    Good(usize),
    Status(u16, &'static str, &'static str),
    Raw(String),
    Hang,
    Close,
}

#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<(String, serde_json::Value)>>>);

impl Seen {
    fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

async fn server(steps: Vec<Step>) -> (String, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/", listener.local_addr().unwrap());
    let seen = Seen::default();
    let log = seen.clone();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (log, steps) = (log.clone(), steps.clone());
            tokio::spawn(async move { serve(stream, &steps, &log).await });
        }
    });
    (url, seen)
}

async fn serve(mut stream: TcpStream, steps: &[Step], log: &Seen) {
    let Some((head, body)) = request(&mut stream).await else {
        return;
    };
    let n = {
        let mut log = log.0.lock().unwrap();
        log.push((head, body.clone()));
        log.len() - 1
    };
    let answer = match &steps[n.min(steps.len() - 1)] {
        Step::Good(dimension) => response(200, "", &vectors(&body, *dimension)),
        Step::Status(status, headers, text) => response(*status, headers, text),
        Step::Raw(text) => response(200, "", text),
        Step::Hang => return tokio::time::sleep(Duration::from_secs(60)).await,
        Step::Close => return,
    };
    stream.write_all(answer.as_bytes()).await.unwrap();
}

async fn request(stream: &mut TcpStream) -> Option<(String, serde_json::Value)> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && let Ok(body) = serde_json::from_str(body)
        {
            return Some((head.to_owned(), body));
        }
        let mut buf = [0; 65536];
        match stream.read(&mut buf).await {
            Ok(0) | Err(_) => return None,
            Ok(n) => bytes.extend_from_slice(&buf[..n]),
        }
    }
}

fn response(status: u16, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// The vector of text `tN` points N steps along its first axis and one along its second.
fn vectors(request: &serde_json::Value, dimension: usize) -> String {
    let number = |t: &str| {
        t.trim_start_matches('t')
            .split(' ')
            .next()
            .unwrap_or_default()
            .parse::<f32>()
            .unwrap_or(0.0)
    };
    let items: Vec<_> = request["input"]
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
        .rev()
        .map(|(index, text)| {
            let mut embedding = vec![0.0; dimension];
            (embedding[0], embedding[1]) = (number(text.as_str().unwrap()), 1.0);
            serde_json::json!({ "index": index, "embedding": embedding })
        })
        .collect();
    serde_json::json!({ "data": items, "model": "m" }).to_string()
}

fn config(url: &str) -> OpenAiConfig {
    OpenAiConfig {
        backoff_ms: 1,
        attempts: 3,
        // Only ends a hang.
        timeout_ms: 300_000,
        ..OpenAiConfig::new(url, "m")
    }
}

async fn embedder(steps: Vec<Step>, dimension: usize) -> (OpenAi, Seen) {
    let (url, seen) = server(steps).await;
    (
        OpenAi::connect(OpenAiConfig {
            dimension: Some(dimension),
            ..config(&url)
        })
        .await
        .unwrap(),
        seen,
    )
}

#[tokio::test]
async fn learns_the_dimension_and_keeps_the_order() {
    let (url, seen) = server(vec![Step::Good(3)]).await;
    let e = OpenAi::connect(config(&url)).await.unwrap();
    assert_eq!(
        (
            e.model().dimension,
            e.model().name.starts_with("openai:m@http://")
        ),
        (3, true)
    );
    let texts: Vec<String> = (0..300).map(|i| format!("t{i}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let got = e.embed(&texts).await.unwrap();
    assert_eq!(seen.count(), 1 + 3, "a probe, then 128 + 128 + 44");
    for (i, vector) in got.iter().enumerate() {
        let v = vector.as_ref().unwrap();
        assert!((v[0] / v[1] - i as f32).abs() < 0.01, "text {i} has {v:?}");
        assert!((v.iter().map(|x| x * x).sum::<f32>() - 1.0).abs() < 1e-5);
    }
}

#[tokio::test]
async fn empty_texts_are_not_sent() {
    let (e, seen) = embedder(vec![Step::Good(2)], 2).await;
    let got = e.embed(&["", "t5", "  \n"]).await.unwrap();
    assert_eq!(
        (got[0].is_none(), got[1].is_some(), got[2].is_none()),
        (true, true, true)
    );
    assert_eq!(
        seen.0.lock().unwrap()[0].1["input"],
        serde_json::json!(["t5"])
    );
    assert!(e.embed(&[""]).await.unwrap()[0].is_none());
    assert_eq!(seen.count(), 1);
}

#[tokio::test]
async fn long_texts_are_cut_and_spread_over_requests() {
    let (e, seen) = embedder(vec![Step::Good(2)], 2).await;
    let long = "é".repeat(MAX_TEXT_BYTES);
    e.embed(&[long.as_str(); 9]).await.unwrap();
    let log = seen.0.lock().unwrap();
    assert_eq!(log.len(), 3, "four of 24,000 fit into 100,000");
    assert!(
        log.iter()
            .all(|(_, body)| body["input"][0].as_str().unwrap().len() <= MAX_TEXT_BYTES)
    );
}

#[tokio::test]
async fn tries_again_when_that_can_help() {
    for bad in [
        Step::Status(429, "retry-after: 0\r\n", "slow down"),
        Step::Status(503, "", "busy"),
        Step::Status(
            500,
            "date: Wed, 21 Oct 2026 07:28:01 GMT\r\nretry-after: Wed, 21 Oct 2026 07:28:00 GMT\r\n",
            "",
        ),
        Step::Close,
    ] {
        let (e, seen) = embedder(vec![bad.clone(), bad, Step::Good(2)], 2).await;
        assert!(e.embed(&["t1"]).await.unwrap()[0].is_some());
        assert_eq!(seen.count(), 3);
    }
}

#[tokio::test]
async fn waits_as_long_as_it_is_told() {
    let (e, _) = embedder(
        vec![Step::Status(429, "retry-after: 0.3\r\n", ""), Step::Good(2)],
        2,
    )
    .await;
    let start = std::time::Instant::now();
    e.embed(&["t1"]).await.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(300));
}

#[tokio::test]
async fn gives_up_after_the_last_attempt() {
    let (e, seen) = embedder(vec![Step::Status(503, "", "busy")], 2).await;
    let error = e.embed(&["t1"]).await.unwrap_err();
    assert!(
        matches!(error, EmbedError::Refused { status: 503, .. }),
        "{error:?}"
    );
    assert_eq!(seen.count(), 3);
    let (url, _) = server(vec![Step::Hang]).await;
    let hasty = OpenAiConfig {
        dimension: Some(2),
        timeout_ms: 100,
        attempts: 2,
        ..config(&url)
    };
    let error = OpenAi::connect(hasty)
        .await
        .unwrap()
        .embed(&["t1"])
        .await
        .unwrap_err();
    assert!(
        matches!(&error, EmbedError::Unavailable { what, source: Some(_) } if what.contains("timed out")),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_refusal_is_final_and_hides_the_key() {
    let refusal = Step::Status(401, "", r#"{"error":{"message":"bad key sk-123"}}"#);
    let (url, seen) = server(vec![refusal]).await;
    let config = OpenAiConfig {
        key: Some(Secret::new("sk-123")),
        dimension: Some(2),
        ..config(&url)
    };
    let e = OpenAi::connect(config).await.unwrap();
    let error = e.embed(&["t1"]).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the embedder refused the request (401): bad key ***"
    );
    assert!(!format!("{e:?} {error:?}").contains("sk-123"));
    assert_eq!(seen.count(), 1);
    assert!(
        seen.0.lock().unwrap()[0]
            .0
            .to_lowercase()
            .contains("authorization: bearer sk-123")
    );
}

#[tokio::test]
async fn another_dimension_is_an_error() {
    let (url, _) = server(vec![Step::Good(3), Step::Good(3), Step::Good(4)]).await;
    let e = OpenAi::connect(config(&url)).await.unwrap();
    e.embed(&["t1"]).await.unwrap();
    let error = e.embed(&["t1"]).await.unwrap_err();
    assert!(
        matches!(
            error,
            EmbedError::WrongDimension {
                expected: 3,
                got: 4
            }
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn nonsense_is_an_error_and_not_asked_for_again() {
    let item = |index: usize, v: &str| format!(r#"{{"index":{index},"embedding":[{v}]}}"#);
    let data = |items: &[String]| format!(r#"{{"data":[{}]}}"#, items.join(","));
    for (raw, expected) in [
        ("<html>".to_owned(), "not a list"),
        (data(&[]), "0 vectors for 2"),
        (data(&[item(0, "1,2"), item(0, "1,2")]), "two vectors"),
        (data(&[item(0, "1,2"), item(2, "1,2")]), "for text 2 of 2"),
        (data(&[item(0, "1,2"), item(1, "null,2")]), "not a list"),
        // JSON has no infinity, but a number can be too large for f32.
        (
            data(&[item(0, "1,2"), item(1, "1e39,2")]),
            "not finite for text 1",
        ),
        (
            data(&[item(0, "1,2"), item(1, "1")]),
            "1 dimensions where 2",
        ),
    ] {
        let (e, seen) = embedder(vec![Step::Raw(raw.clone())], 2).await;
        let error = e.embed(&["t1", "t2"]).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{raw} gave {error}");
        assert_eq!(seen.count(), 1);
    }
    let (e, _) = embedder(vec![Step::Raw(data(&[item(0, "0,0")]))], 2).await;
    assert_eq!(
        e.embed(&["t1"]).await.unwrap(),
        [None],
        "no direction, no meaning"
    );
}

#[tokio::test]
async fn nobody_there() {
    // A port that was free a moment ago may be another test's by now.
    let error = OpenAi::connect(config("http://127.0.0.1:1"))
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            EmbedError::Unavailable {
                source: Some(_),
                ..
            }
        ),
        "{error:?}"
    );
}
