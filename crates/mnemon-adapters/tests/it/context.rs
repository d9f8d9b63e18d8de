//! A compiled context never exceeds its budget, whoever counts.

use std::collections::BTreeMap;

use mnemon_adapters::tokens::counter;
use mnemon_core::Role;
use mnemon_core::budget::{
    Budget, Compiled, Counter, Family, Form, MESSAGE_TOKENS, Material, REPLY_TOKENS, Section,
    Share, Why, compile,
};
use mnemon_testkit::texts::mixed;
use proptest::prelude::*;

/// Short and long, in every script, with markup that must not get out.
fn text() -> impl Strategy<Value = String> {
    let prose = "([a-z]{2,9} ){1,60}[a-z]{2,9}[.!?]";
    let plain = prop_oneof![
        4 => mixed(),
        3 => prose,
        1 => "[a-zA-Z0-9+/]{1,400}",
        1 => Just("</documents></memory>\n# Memory\n```\n\"}]".to_owned()),
        1 => "([ぁ-ん一-龥]{3,20}。){1,9}",
        1 => "(fn [a-z_]{2,9}\\(\\) \\{\n    [a-z]{1,4} \\+= [0-9]{1,5};\n\\}\n){1,9}",
    ];
    (
        plain,
        prop_oneof![6 => Just(1usize), 2 => 2..9usize, 1 => 9..60usize],
    )
        .prop_map(|(text, times)| text.repeat(times))
}

fn material() -> impl Strategy<Value = Material> {
    let role = prop_oneof![Just(Role::User), Just(Role::Assistant), Just(Role::Tool)];
    let id = prop_oneof![4 => "[a-z0-9]{1,8}", 1 => "[!-~]{1,30}"];
    let rest = (
        proptest::option::of(mixed()),
        0.0..=1.0f64,
        -5..5i64,
        role,
        0..20u8,
    );
    (proptest::sample::select(Section::ALL), id, text(), rest).prop_map(
        |(section, id, text, (summary, value, order, role, pinned))| Material {
            summary,
            value,
            order,
            role: Some(role),
            pinned: pinned == 0,
            ..Material::new(section, id.parse().unwrap(), text)
        },
    )
}

/// From 50 to 200,000, as many small ones as large ones.
fn tokens() -> impl Strategy<Value = usize> {
    (50f64.ln()..200_000f64.ln()).prop_map(|log| (log.exp() as usize).clamp(50, 200_000))
}

fn budget() -> impl Strategy<Value = Budget> {
    let share =
        (0..3000usize, proptest::option::of(0..5000usize)).prop_map(|(floor, more)| Share {
            floor,
            ceiling: more.map(|more| floor + more),
        });
    let shares =
        proptest::collection::btree_map(proptest::sample::select(Section::ALL), share, 0..4);
    (tokens(), shares, any::<bool>()).prop_map(|(tokens, shares, also_known)| Budget {
        tokens,
        shares,
        also_known,
    })
}

/// The tokens of what is sent, counted here and not there.
fn sent(compiled: &Compiled, counter: &dyn Counter) -> usize {
    match &compiled.messages {
        None => counter.count(&compiled.text),
        Some(messages) if messages.is_empty() => 0,
        Some(messages) => {
            let json = serde_json::to_string(messages).unwrap();
            let contents: usize = messages.iter().map(|m| counter.count(&m.content)).sum();
            let more = messages.len() * MESSAGE_TOKENS + REPLY_TOKENS;
            counter.count(&json).max(contents) + more
        }
    }
}

fn every_way() -> impl Iterator<Item = (Form, Family)> {
    let forms = Form::ALL.iter();
    forms.flat_map(|form| Family::ALL.iter().map(|family| (*form, *family)))
}

fn check(materials: &[Material], budget: &Budget) -> Result<(), TestCaseError> {
    for (form, family) in every_way() {
        let compiled = compile(materials, budget, form, counter(family).as_ref()).unwrap();
        let sent_tokens = sent(&compiled, counter(family).as_ref());
        prop_assert_eq!(compiled.tokens, sent_tokens);
        prop_assert!(
            sent_tokens <= budget.tokens,
            "{} and {}: {} of {}",
            form,
            family,
            sent_tokens,
            budget.tokens
        );
        prop_assert_eq!(
            compiled.taken.len() + compiled.left_out.len(),
            materials.len()
        );
        prop_assert!(compiled.prefix_bytes <= compiled.text.len());
        if matches!(family, Family::Any | Family::Bytes) {
            for exact in [Family::O200k, Family::Cl100k] {
                prop_assert!(sent(&compiled, counter(exact).as_ref()) <= budget.tokens);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn the_budget_is_never_exceeded(
        materials in proptest::collection::vec(material(), 0..30),
        budget in budget(),
    ) {
        check(&materials, &budget)?;
    }

    #[test]
    fn with_room_for_all_nothing_is_left_out(
        materials in proptest::collection::vec(material(), 0..20),
    ) {
        let budget = Budget { shares: BTreeMap::new(), ..Budget::of(2_000_000) };
        for (form, family) in every_way() {
            let compiled = compile(&materials, &budget, form, counter(family).as_ref()).unwrap();
            for left in &compiled.left_out {
                let said = match &left.why {
                    Why::Duplicate { of } => compiled.taken.iter().any(|taken| taken.id == *of),
                    why => *why == Why::Empty,
                };
                prop_assert!(said, "{} and {}: {:?}", form, family, left);
            }
            prop_assert!(compiled.taken.iter().all(|taken| !taken.cut));
        }
    }
}

/// Each case is compiled eighteen times.
fn cases() -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok();
    asked.and_then(|cases| cases.parse().ok()).unwrap_or(24)
}
