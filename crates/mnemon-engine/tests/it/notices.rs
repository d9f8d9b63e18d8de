//! A call that had to do without an embedder, a model, a reranker or a part of the records says
//! so; a healthy one says nothing.

use std::sync::Arc;

use async_trait::async_trait;
use mnemon_core::embed::EmbedError;
use mnemon_core::ram::Ram;
use mnemon_core::rank::Recipe;
use mnemon_core::rerank::Reranker;
use mnemon_core::{Ids, Limits, Message, Namespace, Policy, Role, Scope};
use mnemon_engine::notes::{NewNote, NoteQuery};
use mnemon_engine::{Builder, ContextQuery, Draft, Memory, MemoryQuery, Query};
use mnemon_testkit::fakes::{BadEmbedder, HashEmbedder, Mischief, Scripted};
use serde_json::json;

use crate::{ctx, wait};

const WRITTEN: &str = "Records were written without a vector";
const SEARCHED: &str = "The search went without an embedder";

fn builder() -> Builder {
    Memory::builder(Arc::new(Ram::new()), Ids::new(7))
}

/// Whether the call added one notice that begins like this.
fn notes(memory: &Memory, begins: &str, call: impl FnOnce(&Memory, &mnemon_core::Ctx)) {
    let ctx = ctx();
    call(memory, &ctx);
    let notices = ctx.notices.take();
    match begins {
        "" => assert!(notices.is_empty(), "{notices:?}"),
        _ => assert!(
            notices.len() == 1 && notices[0].starts_with(begins),
            "{begins}: {notices:?}"
        ),
    }
}

/// Every write and search that may need an embedder.
fn write_and_search(memory: &Memory, written: &str, searched: &str) {
    notes(memory, written, |memory, ctx| {
        let drafts = vec![Draft::note("Ann drinks green tea"), Draft::note("Bob")];
        wait(memory.records().add(ctx, drafts, None)).unwrap();
    });
    notes(memory, written, |memory, ctx| {
        wait(memory.notes().add(ctx, NewNote::new("green tea"), None)).unwrap();
    });
    notes(memory, written, |memory, ctx| {
        let window = memory.window("ann", "s1").unwrap();
        wait(window.add_message(ctx, Message::text("", Role::User, "tea?"))).unwrap();
    });
    notes(memory, searched, |memory, ctx| {
        let hits = wait(memory.records().search(
            ctx,
            &Query::new("green tea", mnemon_core::Filter::all_of_tenant()),
        ))
        .unwrap();
        assert_eq!(hits[0].record.content, "green tea");
    });
    notes(memory, searched, |memory, ctx| {
        let found = wait(memory.notes().search(
            ctx,
            &NoteQuery::new(
                "green tea",
                mnemon_engine::notes::NoteFilter::all_of_tenant(),
            ),
        ))
        .unwrap();
        assert!(found.found);
    });
    let about = MemoryQuery {
        query: Some("green tea".to_owned()),
        ..MemoryQuery::new("ann", "s1", "planner", &[Scope::Semantic])
    };
    notes(memory, searched, |memory, ctx| {
        wait(memory.read(ctx, &about)).unwrap();
    });
    notes(memory, searched, |memory, ctx| {
        let query = ContextQuery::new(about.clone(), 1000);
        wait(memory.context(ctx, &query, &mnemon_core::budget::Bound)).unwrap();
    });
}

#[test]
fn a_failing_embedder_is_named_once_by_every_write_and_search() {
    for mischief in Mischief::ALL {
        let memory = builder()
            .embedder(Arc::new(BadEmbedder::new(mischief)))
            .build();
        match mischief {
            // A text without a direction means nothing to the model, which did answer.
            Mischief::Zeros => write_and_search(&memory, "", ""),
            _ => write_and_search(&memory, WRITTEN, SEARCHED),
        }
    }
}

#[test]
fn a_healthy_call_has_no_notice() {
    let healthy = builder().embedder(Arc::new(HashEmbedder::default()));
    write_and_search(&healthy.build(), "", "");
    write_and_search(&builder().build(), "", "");
}

type Scores = fn() -> Result<Vec<f32>, EmbedError>;

struct Broken(Scores);

#[async_trait]
impl Reranker for Broken {
    async fn scores(&self, _: &str, _: &[&str]) -> Result<Vec<f32>, EmbedError> {
        (self.0)()
    }
}

#[test]
fn a_failing_reranker_is_named() {
    let failures: [Scores; 3] = [
        || {
            Err(EmbedError::Unavailable {
                what: "gone".to_owned(),
                source: None,
            })
        },
        || Ok(vec![f32::NAN]),
        || Ok(vec![]),
    ];
    for failure in failures {
        let memory = builder().reranker(Arc::new(Broken(failure))).build();
        let drafts = vec![Draft::note("green tea")];
        wait(memory.records().add(&ctx(), drafts, None)).unwrap();
        notes(&memory, "The reranker failed", |memory, ctx| {
            let found = wait(memory.records().search(
                ctx,
                &Query::new("green tea", mnemon_core::Filter::all_of_tenant()),
            ));
            assert_eq!(found.unwrap().len(), 1);
        });
    }
}

#[test]
fn a_search_that_does_not_read_everything_says_so() {
    let policy = Policy {
        limits: &Limits::TINY,
        ..Policy::default()
    };
    let memory = builder().policy(policy).build();
    let formula = Query {
        recipe: Recipe::Formula,
        limit: 2,
        ..Query::new("tea", mnemon_core::Filter::all_of_tenant())
    };
    for (n, cut) in [(6, false), (1, true)] {
        for _ in 0..n {
            wait(memory.records().add(&ctx(), vec![Draft::note("tea")], None)).unwrap();
        }
        let begins = if cut {
            "The recipe `formula` compared the first 6 records"
        } else {
            ""
        };
        notes(&memory, begins, |memory, ctx| {
            wait(memory.records().search(ctx, &formula)).unwrap();
        });
        let begins = if cut {
            "Parts of words were searched in the newest 6"
        } else {
            ""
        };
        notes(&memory, begins, |memory, ctx| {
            let query = NoteQuery {
                limit: Some(2),
                ..NoteQuery::new("eapot", mnemon_engine::notes::NoteFilter::all_of_tenant())
            };
            wait(memory.notes().search(ctx, &query)).unwrap();
        });
    }
}

#[test]
fn a_summary_that_no_model_wrote_says_so() {
    let settings = mnemon_core::window::Settings {
        max_token: 400,
        ..Default::default()
    };
    let extracted = "The summary was extracted from the text";
    for (answer, begins) in [(None, extracted), (Some("Tea."), "")] {
        let memory = builder().build();
        let llm = Arc::new(Scripted::default());
        let window = memory.window("ann", "s1").unwrap().llm(llm.clone());
        let window = window.settings(settings).unwrap();
        for n in 0..20 {
            let text = format!("We decided number {n} of the long list. Then there was tea.");
            let said = mnemon_core::Message::text("", mnemon_core::Role::User, text);
            wait(window.add_message(&ctx(), said)).unwrap();
        }
        assert!(!wait(window.compress(&ctx())).unwrap().is_empty());
        if let Some(answer) = answer {
            (0..100).for_each(|_| llm.then(Ok(String::from(answer))));
        }
        notes(&memory, begins, |_, ctx| {
            wait(window.refine_pending(ctx)).unwrap();
        });
    }
}

#[test]
fn an_importance_on_another_scale_is_read_with_a_notice_or_refused() {
    let memory = builder().build();
    let add = |ctx: &mnemon_core::Ctx, importance: f64| {
        let note = NewNote {
            importance: Some(importance),
            namespace: Some(Namespace::LongTerm),
            ..NewNote::new(format!("worth {importance}"))
        };
        let added = wait(memory.notes().add(ctx, note, None))?;
        let view = wait(
            memory
                .notes()
                .get(ctx, &mnemon_core::Viewer::Tenant, &added.id, None),
        )?;
        Ok::<_, mnemon_engine::Error>(json!(view.unwrap().importance))
    };
    for (given, kept, begins) in [
        (0.5, 0.5, ""),
        (1.0, 1.0, ""),
        (2.0, 0.2, "The importance 2 was read as 0.2"),
        (10.0, 1.0, "The importance 10 was read as 1"),
    ] {
        notes(&memory, begins, |_, ctx| {
            assert_eq!(add(ctx, given).unwrap(), json!(kept));
        });
    }
    for given in [1.1, 1.9, 10.1] {
        let error = add(&ctx(), given).unwrap_err().to_string();
        assert!(error.contains("between 0 and 1"), "{error}");
    }
}
