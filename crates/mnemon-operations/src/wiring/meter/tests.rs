use mnemon_core::llm::Account;
use mnemon_core::ram::Ram;
use prometheus_client::encoding::text::encode;

use super::*;

struct Answering;

#[async_trait]
impl Llm for Answering {
    fn model(&self) -> &str {
        "m"
    }

    async fn complete(&self, prompt: &Prompt) -> Result<Completion, LlmError> {
        match prompt.max_tokens {
            0 => Err(LlmError::Budget {
                what: "today".to_owned(),
            }),
            _ => Ok(Completion {
                text: "yes".to_owned(),
                input_tokens: 7,
                output_tokens: 2,
                took_ms: 1,
            }),
        }
    }
}

struct Broken(ModelId);

#[async_trait]
impl Embedder for Broken {
    fn model(&self) -> &ModelId {
        &self.0
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        match texts.len() {
            1 => Ok(vec![None]),
            _ => Err(EmbedError::NotFinite { index: 0 }),
        }
    }
}

fn text(meter: &Meter) -> String {
    let mut registry = Registry::default();
    meter.register(&mut registry);
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    text
}

#[tokio::test]
async fn calls_tokens_texts_and_failures_are_counted() {
    let meter = Arc::new(Meter::default());
    let llm = meter.llm(Arc::new(Answering));
    let mut prompt = Prompt {
        account: Account {
            task: "window".to_owned(),
            ..Account::default()
        },
        system: None,
        messages: Vec::new(),
        max_tokens: 10,
        schema: None,
    };
    for _ in 0..2 {
        llm.complete(&prompt).await.unwrap();
    }
    prompt.max_tokens = 0;
    assert!(llm.complete(&prompt).await.is_err());
    let model = ModelId {
        name: "e".to_owned(),
        dimension: 2,
    };
    let embedder = meter.embedder(Arc::new(Broken(model)));
    embedder.embed(&["a"]).await.unwrap();
    assert!(embedder.embed(&["a", "b"]).await.is_err());
    let text = text(&meter);
    for line in [
        "llm_seconds_count{model=\"m\",task=\"window\"} 3",
        "llm_tokens_total{model=\"m\",task=\"window\",direction=\"input\"} 14",
        "llm_tokens_total{model=\"m\",task=\"window\",direction=\"output\"} 4",
        "llm_failures_total{model=\"m\",task=\"window\",kind=\"too-often\"} 1",
        "embedder_seconds_count{model=\"e\"} 2",
        "embedder_texts_total{model=\"e\"} 1",
        "embedder_failures_total{model=\"e\",kind=\"unavailable\"} 1",
    ] {
        assert!(text.lines().any(|known| known == line), "{line}: {text}");
    }
}

/// A store that the meter wraps answers as the store itself does.
#[tokio::test]
async fn the_store_stays_what_it_was() {
    let meter = Arc::new(Meter::default());
    let plain = Backend::from(Arc::new(Ram::new()));
    let metered = meter.backend(plain.clone());
    assert_eq!(metered.store.capabilities(), plain.store.capabilities());
    assert_eq!(metered.index.capabilities(), plain.index.capabilities());
    let policy = mnemon_core::Policy::default();
    let ctx = mnemon_core::Ctx::new(
        mnemon_core::Tenant::default(),
        "test".to_owned(),
        mnemon_core::Time::EPOCH,
    );
    let grant = policy.check(&ctx, mnemon_core::Right::Write).unwrap();
    let missing = mnemon_core::Op::delete("none".parse().unwrap());
    metered
        .store
        .apply(&grant, Batch::of(missing))
        .await
        .unwrap();
    let wrong = mnemon_core::Op::Delete {
        id: "none".parse().unwrap(),
        expect: mnemon_core::Expect::Version(3),
    };
    let wrong = metered.store.apply(&grant, Batch::of(wrong)).await;
    assert!(matches!(wrong, Err(StoreError::Conflict { .. })));
    let text = text(&meter);
    assert!(text.contains("store_seconds_count{operation=\"commit\"} 2"));
    let failed = "store_failures_total{operation=\"commit\",kind=\"conflict\"} 1";
    assert!(text.contains(failed), "{text}");
}
