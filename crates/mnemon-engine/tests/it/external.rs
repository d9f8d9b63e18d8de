//! Knowledge bases that searches ask besides the store.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use mnemon_core::external::{ExternalHit, ExternalSource};
use mnemon_core::longterm::LongTermError;
use mnemon_core::ram::Ram;
use mnemon_core::{Ctx, Filter, Ids, Owner, Scope, Tenant, Viewer};
use mnemon_engine::{Draft, FoundSkill, Hit, Memory, Query, Sop, ToolSop};

use crate::{ctx, wait};

/// A source of the default tenant; without texts it is never there.
struct Wiki {
    scope: Scope,
    texts: Vec<&'static str>,
    asked: Mutex<Vec<String>>,
}

#[async_trait]
impl ExternalSource for Wiki {
    fn name(&self) -> &str {
        "wiki"
    }

    fn scope(&self) -> Scope {
        self.scope
    }

    fn serves(&self, ctx: &Ctx) -> bool {
        ctx.tenant == Tenant::default()
    }

    async fn find(
        &self,
        _: &Ctx,
        _: Option<&str>,
        query: &str,
        _: usize,
    ) -> Result<Vec<ExternalHit>, LongTermError> {
        self.asked.lock().unwrap().push(query.to_owned());
        if self.texts.is_empty() {
            return Err(LongTermError::Unavailable {
                service: "the wiki".to_owned(),
                what: "down".to_owned(),
                source: None,
            });
        }
        let hits = self.texts.iter().enumerate();
        let hits = hits.map(|(place, text)| ExternalHit {
            id: place.to_string(),
            text: (*text).to_owned(),
            title: Some("Page".to_owned()),
            source: Some("https://wiki.example/page".to_owned()),
            created: None,
        });
        Ok(hits.collect())
    }
}

fn wiki(texts: &[&'static str]) -> Arc<Wiki> {
    source_in(Scope::Semantic, texts)
}

fn source_in(scope: Scope, texts: &[&'static str]) -> Arc<Wiki> {
    Arc::new(Wiki {
        scope,
        texts: texts.to_vec(),
        asked: Mutex::default(),
    })
}

fn memory(source: &Arc<Wiki>) -> Memory {
    let builder = Memory::builder(Arc::new(Ram::new()), Ids::new(7));
    let memory = builder.external(source.clone()).build();
    let own = vec![Draft::note("The harbour opens at nine.")];
    wait(memory.records().add(&ctx(), own, None)).unwrap();
    memory
}

fn search(memory: &Memory, ctx: &Ctx, filter: Filter) -> Vec<Hit> {
    wait(memory.search(ctx, &Query::new("harbour opens", filter))).unwrap()
}

#[test]
fn texts_of_an_external_source_are_ranked_with_records_and_marked() {
    let source = wiki(&["The harbour opens late on Sundays.", "Cats purr."]);
    let memory = memory(&source);
    let hits = search(&memory, &ctx(), Filter::all_of_tenant());
    let mut sources: Vec<Option<&str>> = hits.iter().map(|hit| hit.external.as_deref()).collect();
    sources.sort();
    assert_eq!(
        sources,
        [None, Some("wiki")],
        "texts about cats do not match"
    );
    let external = hits.iter().find(|hit| hit.external.is_some()).unwrap();
    assert_eq!(external.record.metadata["external_id"], "0");
    assert_eq!(external.record.metadata["title"], "Page");
    let source = external.record.source.as_deref();
    assert_eq!(source, Some("https://wiki.example/page"));
    let (semantic, asker) = (memory.semantic(), ctx());
    let found = semantic.search(&asker, "harbour", Filter::all_of_tenant(), 5);
    let found = wait(found).unwrap();
    assert!(found.iter().any(|hit| hit.external.is_some()));
    let kept = wait(memory.records().find(&asker, &external.record.id)).unwrap();
    assert_eq!(kept, None, "nothing is written to the store");
}

#[test]
fn an_external_source_that_fails_is_left_out_with_a_notice() {
    let memory = memory(&wiki(&[]));
    let ctx = ctx();
    let hits = search(&memory, &ctx, Filter::all_of_tenant());
    assert_eq!(hits.len(), 1);
    let notices = ctx.notices.take().concat();
    assert!(notices.contains("`wiki` was not searched"), "{notices}");
}

#[test]
fn an_external_source_is_asked_only_for_its_tenants_and_without_filters_of_records() {
    let source = wiki(&["The harbour opens late on Sundays."]);
    let memory = memory(&source);
    let other = Ctx::new("acme".parse().unwrap(), "test", ctx().now);
    assert_eq!(search(&memory, &other, Filter::all_of_tenant()).len(), 0);
    let tagged = Filter {
        tags: vec!["port".to_owned()],
        ..Filter::all_of_tenant()
    };
    assert_eq!(search(&memory, &ctx(), tagged).len(), 0);
    assert_eq!(*source.asked.lock().unwrap(), Vec::<String>::new());
    assert_eq!(search(&memory, &ctx(), Filter::all_of_tenant()).len(), 2);
    assert_eq!(*source.asked.lock().unwrap(), ["harbour opens"]);
}

fn skills(memory: &Memory, ctx: &Ctx, task_type: Option<&str>) -> Vec<FoundSkill> {
    let query = "open the harbour gate";
    let found = memory.procedural();
    let found = found.search_skills(ctx, &Viewer::Tenant, task_type, query, 3);
    wait(found).unwrap()
}

/// A memory with a skill for the task `port_work`, and a source.
fn skilled(source: &Arc<Wiki>) -> Memory {
    let memory = memory(source);
    let sop = Sop {
        use_when: "The harbour gate is closed".to_owned(),
        tool_sops: vec![ToolSop {
            tool: "phone".to_owned(),
            action: "call the master".to_owned(),
        }],
        preferences: String::new(),
        task_type: Some("port_work".to_owned()),
        derived_from: Vec::new(),
        shared: true,
    };
    let (ctx, owner) = (ctx(), Owner::default());
    let added = memory.procedural();
    wait(added.add_skill(&ctx, &owner, sop, None)).unwrap();
    memory
}

#[test]
fn skills_of_an_external_source_are_fused_with_our_own_and_marked() {
    let text = "Open the harbour gate\n1. Turn the key.\n2. Push.";
    let source = source_in(Scope::Procedural, &[text, "Feed a cat"]);
    let memory = skilled(&source);
    let found = skills(&memory, &ctx(), None);
    let marks: Vec<Option<&str>> = found.iter().map(|one| one.external.as_deref()).collect();
    assert_eq!(marks, [Some("wiki"), None], "the better one first");
    assert_eq!(found[0].sop.use_when, "Open the harbour gate");
    let instructions = found[0].instructions.as_deref();
    assert_eq!(instructions, Some("1. Turn the key.\n2. Push."));
    assert_eq!(found[1].instructions, None);
    let typed = skills(&memory, &ctx(), Some("port_work"));
    let marks: Vec<Option<&str>> = typed.iter().map(|one| one.external.as_deref()).collect();
    assert_eq!(marks, [None, Some("wiki")], "own skills of the type first");
    // A search of everything shows it, too; one for documents does not ask.
    let all = search(&memory, &ctx(), Filter::all_of_tenant());
    assert!(all.iter().any(|hit| hit.external.is_some()));
    source.asked.lock().unwrap().clear();
    let semantic = Filter {
        scopes: vec![Scope::Semantic],
        ..Filter::all_of_tenant()
    };
    assert_eq!(search(&memory, &ctx(), semantic).len(), 1);
    assert_eq!(*source.asked.lock().unwrap(), Vec::<String>::new());
}

#[test]
fn skills_are_found_while_their_external_source_fails() {
    let memory = skilled(&source_in(Scope::Procedural, &[]));
    let ctx = ctx();
    assert_eq!(skills(&memory, &ctx, None).len(), 1);
    let notices = ctx.notices.take().concat();
    assert!(notices.contains("`wiki` was not searched"), "{notices}");
}
