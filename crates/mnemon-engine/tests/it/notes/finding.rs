//! Finding notes.

use std::collections::BTreeSet;

use mnemon_core::Namespace;
use mnemon_core::rank::Recipe;
use mnemon_engine::notes::NoteFilter;
use proptest::prelude::*;

use super::*;

fn by(recipe: Recipe, text: &str) -> NoteQuery {
    NoteQuery {
        recipe: Some(recipe),
        ..NoteQuery::new(text, mnemon_engine::notes::NoteFilter::all_of_tenant())
    }
}

#[test]
fn an_id_is_looked_up_whatever_else_is_asked() {
    let notes = notes();
    let id = add(&notes, "API response data").id;
    let query = NoteQuery {
        filter: NoteFilter {
            namespace: Some(Namespace::LongTerm),
            tags: vec!["other".into()],
            ..NoteFilter::all_of_tenant()
        },
        min_score: Some(1.0),
        ..NoteQuery::new(
            id.as_str(),
            mnemon_engine::notes::NoteFilter::all_of_tenant(),
        )
    };
    let found = wait(notes.search(&now(), &query)).unwrap();
    assert_eq!(found.total, Some(1));
    assert_eq!(
        (&found.results[0].id, &found.results[0].score),
        (&id, &None)
    );
}

#[test]
fn filters_and_limits_hold() {
    for recipe in [Recipe::Hybrid, Recipe::Formula] {
        let notes = notes();
        for n in 0..20 {
            add(&notes, &format!("config number {n}"));
        }
        add_at(&notes, &now(), tagged("config with a tag", &["Important"]));
        add_at(&notes, &now(), long_term("config for long"));
        let ask = |change: fn(&mut NoteQuery)| {
            let mut query = by(recipe, "config");
            change(&mut query);
            found(&notes, &query)
        };
        assert_eq!(ask(|_| {}).len(), 5, "as many as the document says");
        assert_eq!(ask(|q| q.limit = Some(3)).len(), 3);
        assert_eq!(ask(|q| q.limit = Some(0)).len(), 5, "0 is as good as unset");
        assert_eq!(ask(|q| q.limit = Some(1000)).len(), 22);
        let tagged = ask(|q| q.filter.tags = vec!["x".into(), "IMPORTANT".into()]);
        assert_eq!(tagged, ["config with a tag"]);
        let long = ask(|q| q.filter.namespace = Some(Namespace::LongTerm));
        assert_eq!(long, ["config for long"]);
        assert!(ask(|q| q.filter.tags = vec!["import".into()]).is_empty());
        assert!(ask(|q| q.min_score = Some(1.0)).len() < 22);
    }
    let many = notes_with(|config| config.top_k = 100);
    for n in 0..150 {
        add(&many, &format!("config {n}"));
    }
    let query = NoteQuery {
        limit: Some(5000),
        ..NoteQuery::new("config", mnemon_engine::notes::NoteFilter::all_of_tenant())
    };
    assert_eq!(found(&many, &query).len(), 100);
}

#[test]
fn the_formula_is_exact_to_the_digit_shown() {
    let notes = notes();
    let score = |ctx: &Ctx, text: &str| {
        let found = wait(notes.search(ctx, &by(Recipe::Formula, text))).unwrap();
        let first = found.results.into_iter().next();
        first.and_then(|note| note.score)
    };
    let new = NewNote {
        importance: Some(0.5),
        ..tagged("API response for authentication", &["backend"])
    };
    add_at(&notes, &now(), new);
    // Summary and content match both words: 0.4 + 0.25 + 0.1 + 0.025.
    assert_eq!(score(&now(), "API response").as_deref(), Some("77.5%"));
    // One of two in each, and the tag for the other: 0.2 + 0.125 + 0.1 + 0.125.
    assert_eq!(score(&now(), "auth backend").as_deref(), Some("55.0%"));
    // 40 hours take 0.04 of the newness; 100 take all, and no more.
    assert_eq!(
        score(&after_hours(40), "API response").as_deref(),
        Some("73.5%")
    );
    assert_eq!(
        score(&after_hours(100), "API response").as_deref(),
        Some("67.5%")
    );
    assert_eq!(
        score(&after_hours(300), "API response").as_deref(),
        Some("67.5%")
    );
    // A third: 0.21667 + 0.1 + 0.025.
    assert_eq!(score(&now(), "API x1 x2").as_deref(), Some("34.2%"));
    // Only newness: below the least score.
    assert_eq!(score(&now(), "nothing fits"), None);
    // Single letters are no words; without words there is no score at all.
    assert_eq!(score(&now(), "a b c"), None);
    // Everything at once stays at 1.
    let all = NewNote {
        importance: Some(1.0),
        ..tagged("deploy", &["deploy"])
    };
    add_at(&notes, &now(), all);
    assert_eq!(score(&now(), "deploy").as_deref(), Some("100.0%"));
}

#[test]
fn the_formula_sees_the_summary_that_its_program_would_make() {
    let notes = notes();
    let late = format!("{} needle", "word ".repeat(400));
    add(&notes, &late);
    let found = wait(notes.search(&now(), &by(Recipe::Formula, "needle"))).unwrap();
    // In the content, but behind the end of the summary: 0.25 + 0.1.
    assert_eq!(found.results[0].score.as_deref(), Some("35.0%"));
}

#[test]
fn equals_come_in_the_order_they_were_written() {
    let notes = notes();
    for n in ["one", "two", "three", "four"] {
        add(&notes, &format!("same {n}"));
    }
    let found = found(&notes, &by(Recipe::Formula, "same"));
    assert_eq!(found, ["same one", "same two", "same three", "same four"]);
}

#[test]
fn importance_alone_can_reach_the_least_score() {
    let notes = notes();
    let weighty = NewNote {
        importance: Some(1.0),
        ..NewNote::new("never forget")
    };
    add_at(&notes, &now(), weighty);
    let fresh = found(&notes, &by(Recipe::Formula, "unrelated"));
    assert_eq!(fresh, ["never forget"], "0.1 + 0.05 is 0.15");
}

#[test]
fn the_content_comes_when_it_is_asked_for() {
    for by_default in [false, true] {
        let notes = notes_with(|config| {
            config.preview_chars = 8;
            config.include_content = by_default;
        });
        add(&notes, "tea in the afternoon");
        let preview = |include_content| {
            let query = NoteQuery {
                include_content,
                ..NoteQuery::new("tea", mnemon_engine::notes::NoteFilter::all_of_tenant())
            };
            let found = wait(notes.search(&now(), &query)).unwrap();
            found.results[0].content_preview.clone()
        };
        let shown = Some("tea in t...".to_owned());
        assert_eq!(preview(Some(true)), shown);
        assert_eq!(preview(Some(false)), None);
        assert_eq!(preview(None), shown.filter(|_| by_default));
        let page = wait(notes.list(&now(), &NoteFilter::all_of_tenant(), None, 1)).unwrap();
        assert_eq!(page.notes[0].content_preview.is_some(), by_default);
    }
}

#[test]
fn pieces_of_words_are_found() {
    let notes = notes();
    add(&notes, "The authentication flow uses refresh tokens");
    add(&notes, "認証トークンの設定を変更した");
    for piece in ["auth", "fresh", "トークンの設"] {
        assert_eq!(
            found(
                &notes,
                &NoteQuery::new(piece, mnemon_engine::notes::NoteFilter::all_of_tenant())
            )
            .len(),
            1,
            "{piece}"
        );
    }
}

#[test]
fn small_words_are_no_pieces() {
    let notes = notes();
    let login = "The login endpoint throws a timeout error under heavy load";
    let others = [
        "This list is finished",
        "Mai plays the violin",
        "The kitchen is painted blue",
        "Paris in spring",
        "Also bring some soap",
    ];
    add(&notes, login);
    others.iter().for_each(|other| drop(add(&notes, other)));
    for query in ["login is slow in so many ways", "why is the login in error"] {
        let all = NoteQuery {
            min_score: Some(0.0),
            ..by(Recipe::Hybrid, query)
        };
        assert_eq!(found(&notes, &all), [login], "{query}");
    }
    assert!(found(&notes, &by(Recipe::Hybrid, "is")).is_empty());
}

#[test]
fn an_id_that_has_gone_finds_nothing_else() {
    let notes = notes();
    let id = add(&notes, "API response data").id;
    add(&notes, "something else");
    wait(notes.delete(&now(), &mnemon_core::Viewer::Tenant, &id)).unwrap();
    assert!(
        found(
            &notes,
            &NoteQuery::new(
                id.as_str(),
                mnemon_engine::notes::NoteFilter::all_of_tenant()
            )
        )
        .is_empty()
    );
    let hash = "9f86d081884c7d65";
    add(&notes, &format!("the fix is in {hash}"));
    assert_eq!(
        found(
            &notes,
            &NoteQuery::new(hash, mnemon_engine::notes::NoteFilter::all_of_tenant())
        )
        .len(),
        1
    );
}

#[test]
fn a_list_is_paged_newest_first() {
    let notes = notes();
    for n in 0..7 {
        add_at(&notes, &after_hours(n), NewNote::new(format!("note {n}")));
    }
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page =
            wait(notes.list(&after_hours(9), &NoteFilter::all_of_tenant(), after, 3)).unwrap();
        seen.extend(page.notes.into_iter().map(|note| note.summary));
        match page.next {
            Some(next) => after = Some(next.parse().unwrap()),
            None => break,
        }
    }
    let expected: Vec<String> = (0..7).rev().map(|n| format!("note {n}")).collect();
    assert_eq!(seen, expected);
}

/// Words that share pieces with each other.
fn word() -> impl Strategy<Value = String> {
    let words = [
        "auth",
        "authentication",
        "token",
        "tokens",
        "refresh",
        "fresh",
        "config",
        "reconfigure",
        "設定",
        "認証トークン",
        "quyết",
        "định",
        "deploy",
        "redeployed",
        "the",
        "x9",
        "café",
    ];
    proptest::sample::select(words.to_vec()).prop_map(str::to_owned)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn hybrid_finds_every_note_that_has_a_word_of_the_query(
        texts in proptest::collection::vec(proptest::collection::vec(word(), 1..6), 1..12),
        tags in proptest::collection::vec("[a-z]{4}", 0..3),
        query in proptest::collection::vec(word(), 1..4),
    ) {
        let notes = notes();
        for (n, words) in texts.iter().enumerate() {
            let tag = tags.get(n).cloned();
            let new = NewNote { tags: tag.into_iter().collect(), ..NewNote::new(words.join(" ")) };
            add_at(&notes, &now(), new);
        }
        let has = |note: &[String]| note.iter().any(|word| word != "the" && query.contains(word));
        let having = texts.iter().filter(|text| has(text)).map(|text| text.join(" "));
        let having: BTreeSet<String> = having.collect();
        let ask = NoteQuery {
            limit: Some(100),
            min_score: Some(0.0),
            ..by(Recipe::Hybrid, &query.join(" "))
        };
        let hybrid = wait(notes.search(&now(), &ask)).unwrap();
        let scores: Vec<f64> = hybrid.results.iter().filter_map(|note| note.exact_score).collect();
        prop_assert!(scores.windows(2).all(|pair| pair[0] >= pair[1]), "{scores:?}");
        prop_assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)), "{scores:?}");
        let hybrid: BTreeSet<String> = hybrid.results.into_iter().map(|note| note.summary).collect();
        prop_assert!(having.is_subset(&hybrid), "{query:?}: {having:?} {hybrid:?}");
    }
}
