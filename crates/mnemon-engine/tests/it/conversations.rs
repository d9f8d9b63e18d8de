//! The list of conversations, and passages from them and from all knowledge.

use mnemon_core::{Filter, Kind, Message, Owner, Role, Scan, Viewer};
use mnemon_engine::{Draft, Memory, PassageQuery};

use crate::{ctx, memory, wait};

fn said(memory: &Memory, user: &str, session: &str, text: &str) {
    let window = memory.window(user, session).unwrap();
    let message = Message::text("", Role::User, text);
    wait(window.add_message(&ctx(), message)).unwrap();
}

#[test]
fn conversations_are_listed_by_user() {
    let memory = memory();
    said(&memory, "ann", "s1", "one");
    said(&memory, "ann", "s1", "two");
    said(&memory, "bob", "s1", "mine");
    let listed = |user: Option<&str>| {
        let listed = wait(memory.conversations(&ctx(), user)).unwrap();
        let row = |one: mnemon_engine::Conversation| (one.user, one.session, one.messages);
        listed.into_iter().map(row).collect::<Vec<_>>()
    };
    let row = |user: &str, count| (user.to_owned(), "s1".to_owned(), count);
    assert_eq!(listed(Some("ann")), [row("ann", 2)]);
    assert_eq!(listed(None), [row("ann", 2), row("bob", 1)]);
    assert!(listed(Some("eve")).is_empty());
}

#[test]
fn passages_come_from_everything_that_the_viewer_sees() {
    let memory = memory();
    for _ in 0..3 {
        said(&memory, "ann", "s1", "The roses come from Dalat");
    }
    said(&memory, "bob", "s1", "The roses are poisoned");
    let add = |user: Option<&str>, content: &str| {
        let owner = Owner {
            user: user.map(str::to_owned),
            ..Owner::default()
        };
        let draft = Draft {
            owner,
            kind: Some(Kind::Fact),
            ..Draft::note(content)
        };
        wait(memory.records().add(&ctx(), vec![draft], None)).unwrap();
    };
    add(Some("ann"), "Ann prefers white roses");
    add(None, "Roses are sold by the dozen");
    add(Some("bob"), "Bob hates roses");
    let pages = crate::memory();
    let page = "---\ntitle: Roses\n---\n\nRoses on this page are from a file.";
    wait(pages.records().add(&ctx(), vec![Draft::note(page)], None)).unwrap();
    let before = crate::all(&memory);
    let viewer = Viewer::of_caller(Some("ann".to_owned()), None);
    let found = |viewer: &Viewer, limit| {
        let query = PassageQuery {
            viewer,
            text: "roses",
            limit,
            pages: Some(&pages),
            project: None,
        };
        let found = wait(memory.passages(&ctx(), &query)).unwrap();
        let row = |one: mnemon_engine::Passage| format!("{}: {}", one.source, one.text);
        found.into_iter().map(row).collect::<Vec<_>>()
    };
    let mut texts = found(&viewer, 10).join("\n");
    for text in [
        "conversation s1: The roses come from Dalat",
        "Ann prefers white roses",
        "Roses are sold by the dozen",
        ": Roses on this page are from a file.",
    ] {
        assert!(texts.contains(text), "{text}: {texts}");
    }
    assert!(
        !texts.contains("poisoned") && !texts.contains("Bob"),
        "{texts}"
    );
    assert_eq!(texts.matches("Dalat").count(), 1, "said thrice, shown once");
    assert_eq!(found(&viewer, 2).len(), 2);
    texts = found(&Viewer::Tenant, 10).join("\n");
    assert!(
        texts.contains("poisoned") && texts.contains("Bob hates"),
        "{texts}"
    );
    assert_eq!(crate::all(&memory), before, "a query writes nothing");
    let scan = Scan::new(Filter::all_of_tenant(), 10);
    assert_eq!(
        wait(memory.records().list(&ctx(), &scan))
            .unwrap()
            .records
            .len(),
        7
    );
}
