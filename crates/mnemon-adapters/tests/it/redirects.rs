//! A key is for the host it was configured with: no redirect takes it, or the text, to another.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mnemon_adapters::embed::{OpenAi, OpenAiConfig, Secret};
use mnemon_adapters::llm::{Budgets, Ledger, Model, ModelConfig, Prices, Provider};
use mnemon_core::llm::{Account, Llm, Prompt};
use mnemon_core::{Message, Role};
use mnemon_testkit::fakes::{Endpoint, Move};

const KEY: &str = "sk-very-secret-key";

/// The address of another server, and how many connections it has seen.
fn other_host() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let visits = Arc::new(AtomicUsize::new(0));
    let counted = visits.clone();
    std::thread::spawn(move || {
        for _ in listener.incoming() {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    (url, visits)
}

#[tokio::test]
async fn no_redirect_is_followed() {
    for status in [301, 302, 303, 307, 308] {
        let (elsewhere, visits) = other_host();
        let header = format!("Location: {elsewhere}/embeddings\r\n");
        let moves = vec![Move::Status(status, header, "{}".to_owned())];
        let endpoint = Endpoint::start(moves.clone());
        let embedder = OpenAi::connect(OpenAiConfig {
            key: Some(Secret::new(KEY)),
            attempts: 2,
            backoff_ms: 1,
            ..OpenAiConfig::new(format!("{}/v1", endpoint.url()), "m")
        });
        let refused = embedder.await.map(|_| ()).unwrap_err();
        assert!(!format!("{refused:?}").contains(KEY), "{refused:?}");
        assert!(endpoint.seen()[0].head.contains(KEY));

        let endpoint = Endpoint::start(moves);
        let ledger = Ledger::in_memory(Budgets::default(), Prices::default());
        let config = ModelConfig {
            key: Some(Secret::new(KEY)),
            attempts: 2,
            backoff_ms: 1,
            ..ModelConfig::new(Provider::OpenAi, format!("{}/v1", endpoint.url()), "m")
        };
        let prompt = Prompt {
            account: Account::default(),
            system: None,
            messages: vec![Message::text("m1", Role::User, "tea?")],
            max_tokens: 100,
            schema: None,
        };
        let model = Model::new(config, Arc::new(ledger));
        let refused = model.complete(&prompt).await.map(|_| ()).unwrap_err();
        assert!(!format!("{refused:?}").contains(KEY), "{refused:?}");
        assert_eq!(visits.load(Ordering::SeqCst), 0, "{status}");
    }
}
