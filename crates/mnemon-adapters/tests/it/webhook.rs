//! A webhook reaches its receiver, signed, and nothing that only the server can reach.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mnemon_adapters::webhook::{HttpWebhooks, SIGNATURE, signature};
use mnemon_core::Time;
use mnemon_core::webhook::{Delivery, NotDelivered, WebhookSender};
use mnemon_testkit::fakes::{Endpoint, Move};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

const SECRET: &str = "a-secret-of-a-webhook";
const BODY: &[u8] = br#"{"changes":[]}"#;

/// Gives these answers to every name, one after the other, and the last one again and again.
#[derive(Default)]
struct Names {
    answers: Vec<Vec<IpAddr>>,
    asked: Mutex<Vec<String>>,
}

impl Names {
    fn new(answers: &[&[&str]]) -> Arc<Self> {
        let parse = |answer: &&[&str]| answer.iter().map(|it| it.parse().unwrap()).collect();
        Arc::new(Self {
            answers: answers.iter().map(parse).collect(),
            asked: Mutex::default(),
        })
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let mut asked = self.asked.lock().unwrap();
        let answer = self.answers[asked.len().min(self.answers.len() - 1)].clone();
        asked.push(name.as_str().to_owned());
        let answer = answer.into_iter().map(|ip| SocketAddr::new(ip, 0));
        Box::pin(async move { Ok(Box::new(answer) as Addrs) })
    }
}

fn sender(allowed: &[&str], names: &Arc<Names>) -> HttpWebhooks {
    let allowed = allowed.iter().map(|&host| host.to_owned()).collect();
    HttpWebhooks::with_resolver(allowed, names.clone(), Duration::from_millis(500)).unwrap()
}

async fn send(sender: &HttpWebhooks, url: &str) -> Result<(), NotDelivered> {
    let delivery = Delivery {
        url,
        secret: SECRET,
        id: "webhook-1-0-7",
        at: Time::from_millis(1_700_000_000_999).unwrap(),
        body: BODY,
    };
    sender.send(&delivery).await
}

/// A listener on this machine, and how many connections it has seen.
fn inner_service() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let visits = Arc::new(AtomicUsize::new(0));
    let counted = visits.clone();
    std::thread::spawn(move || {
        for _ in listener.incoming() {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    (port, visits)
}

fn port_of(endpoint: &Endpoint) -> String {
    endpoint.url().rsplit(':').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_delivery_arrives_signed_at_the_address_that_was_checked() {
    let endpoint = Endpoint::start(vec![Move::status(204, "")]);
    // If the name were resolved again for the connection, it would lead elsewhere.
    let names = Names::new(&[&["127.0.0.1"], &["192.0.2.1"]]);
    let sender = sender(&["hook.test"], &names);
    let url = format!("http://Hook.Test:{}/in?key=1", port_of(&endpoint));
    sender.check(&url).unwrap();
    send(&sender, &url).await.unwrap();
    assert_eq!(names.asked(), 1);
    let seen = endpoint.seen();
    let head = &seen[0].head;
    assert!(head.starts_with("POST /in?key=1 HTTP/1.1"), "{head}");
    let head = head.to_lowercase();
    let expected = format!(
        "{SIGNATURE}: {}",
        signature(SECRET.as_bytes(), 1_700_000_000, BODY)
    );
    assert!(head.contains(&expected.to_lowercase()), "{head}");
    assert!(head.contains("mnemon-delivery: webhook-1-0-7"), "{head}");
    assert!(head.contains("content-type: application/json"), "{head}");
    assert!(!head.contains(SECRET), "{head}");
    assert_eq!(seen[0].body, serde_json::json!({"changes": []}));
}

#[tokio::test]
async fn a_name_of_an_inner_address_is_not_connected_to() {
    let (port, visits) = inner_service();
    let answers: [&[&str]; 7] = [
        &["127.0.0.1"],
        &["8.8.8.8", "127.0.0.1"],
        &["::1"],
        &["::ffff:127.0.0.1"],
        &["64:ff9b::7f00:1"],
        &["169.254.169.254"],
        &["0.0.0.0"],
    ];
    for answer in answers {
        let names = Names::new(&[answer]);
        let sender = sender(&["other.test"], &names);
        let url = format!("http://hook.test:{port}/token-in-the-path");
        let error = send(&sender, &url).await.unwrap_err().to_string();
        assert!(error.contains("not on the public internet"), "{error}");
        assert!(!error.contains("token-in-the-path"), "{error}");
        assert_eq!(names.asked(), 1);
    }
    // A name that was fine when the webhook was made, and then changed its address.
    let names = Names::new(&[&["127.0.0.1"]]);
    let sender = sender(&[], &names);
    let url = format!("http://hook.test:{port}/");
    sender.check(&url).unwrap();
    send(&sender, &url).await.unwrap_err();
    assert_eq!(visits.load(Ordering::SeqCst), 0);
}

/// Does not know any name: at once, or never in time.
struct Unknown {
    is_slow: bool,
}

impl Resolve for Unknown {
    fn resolve(&self, _: Name) -> Resolving {
        let is_slow = self.is_slow;
        Box::pin(async move {
            if is_slow {
                std::future::pending::<()>().await;
            }
            Err("failed to look up: Name or service not known".into())
        })
    }
}

#[tokio::test]
async fn a_name_of_an_inner_address_and_an_unknown_name_cause_the_same_error() {
    let names: [Arc<dyn Resolve>; 4] = [
        Names::new(&[&["10.0.0.1"]]),
        Names::new(&[&[]]),
        Arc::new(Unknown { is_slow: false }),
        Arc::new(Unknown { is_slow: true }),
    ];
    for names in names {
        let patience = Duration::from_millis(500);
        let sender = HttpWebhooks::with_resolver(Vec::new(), names, patience).unwrap();
        let error = send(&sender, "http://hook.test/").await.unwrap_err();
        let expected = "the request failed: `hook.test` is unknown or not on the public internet; \
                        an administrator can add it to server.webhook_hosts";
        assert_eq!(error.to_string(), expected);
    }
}

#[tokio::test]
async fn an_inner_address_in_the_url_is_refused() {
    let (port, visits) = inner_service();
    let names = Names::new(&[&["8.8.8.8"]]);
    let guarded = sender(&[], &names);
    let hosts = [
        "127.0.0.1",
        "127.1",
        "0x7f000001",
        "2130706433",
        "017700000001",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "[::]",
    ];
    for host in hosts {
        let url = format!("http://{host}:{port}/");
        let error = guarded.check(&url).unwrap_err().to_string();
        assert!(error.contains("public internet"), "{host}: {error}");
        send(&guarded, &url).await.unwrap_err();
    }
    let urls = [
        ("ftp://example.com/", "must begin with"),
        ("file:///etc/passwd", "must begin with"),
        ("http://ann:pass@example.com/", "user or a password"),
        ("not a url", "is not a URL"),
    ];
    for (url, expected) in urls {
        let error = guarded.check(url).unwrap_err().to_string();
        assert!(error.contains(expected), "{url}: {error}");
    }
    assert_eq!((visits.load(Ordering::SeqCst), names.asked()), (0, 0));
    // Unless the configuration names it.
    let endpoint = Endpoint::start(vec![Move::status(200, "{}")]);
    let allowing = sender(&["127.0.0.1"], &names);
    let url = format!("http://127.0.0.1:{}/", port_of(&endpoint));
    send(&allowing, &url).await.unwrap();
}

#[tokio::test]
async fn redirects_errors_and_silence_are_failures() {
    let (port, visits) = inner_service();
    let header = format!("Location: http://127.0.0.1:{port}/\r\n");
    let cases = [
        (Move::Status(307, header, String::new()), "307"),
        (Move::status(500, SECRET), "500"),
        (Move::Hang, "did not answer in time"),
        (Move::Reset, "the request failed"),
    ];
    for (answer, expected) in cases {
        let endpoint = Endpoint::start(vec![answer]);
        let names = Names::new(&[&["127.0.0.1"]]);
        let sender = sender(&["hook.test"], &names);
        let url = format!("http://hook.test:{}/", port_of(&endpoint));
        let error = send(&sender, &url).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains(SECRET), "{error}");
    }
    assert_eq!(visits.load(Ordering::SeqCst), 0);
}
