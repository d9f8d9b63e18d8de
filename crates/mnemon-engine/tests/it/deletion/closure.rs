//! The closure of a deletion against its definition.

use std::collections::HashSet;

use mnemon_core::Id;
use mnemon_core::closure::{Bond, Derived, closure, quotes};
use proptest::prelude::*;

fn id(number: usize) -> Id {
    format!("n{number:02}").parse().unwrap()
}

const ROOTS: usize = 2;
const DERIVED: usize = 8;

/// 0 and 1 are roots, the next 8 are derived, 10 and 11 are outside.
fn world() -> impl Strategy<Value = Vec<(Vec<usize>, u8, u16)>> {
    let sources = proptest::collection::vec(0..12_usize, 0..4);
    proptest::collection::vec((sources, 0..8_u8, any::<u16>()), DERIVED)
}

fn derived(world: &[(Vec<usize>, u8, u16)]) -> Vec<Derived> {
    let members = world.iter().enumerate();
    let members = members.map(|(number, (sources, bond, bits))| {
        let own = number + ROOTS;
        let sources: Vec<Id> = sources
            .iter()
            .filter(|s| **s != own)
            .map(|s| id(*s))
            .collect();
        let quoted = sources.iter().enumerate();
        let quoted = quoted.filter(|(n, _)| is_quoted(*n, *bits));
        // And sometimes what a source was derived from.
        let further = is_quoted(4, *bits).then(|| id(usize::from(bits >> 12) % 12));
        let bond = match bond {
            0 => Bond::None,
            1 | 2 => Bond::EverySource,
            _ => Bond::AnySource {
                quoted: quoted.map(|(_, id)| id.clone()).chain(further).collect(),
            },
        };
        Derived {
            id: id(own),
            sources,
            bond,
        }
    });
    members.collect()
}

fn is_quoted(number: usize, bits: u16) -> bool {
    // Most sources are not quoted.
    (bits >> (2 * number)) & 3 == 3
}

/// The definition, word by word, repeated until nothing changes.
fn naive(roots: &HashSet<Id>, derived: &[Derived]) -> HashSet<Id> {
    let within: HashSet<Id> = derived.iter().map(|one| one.id.clone()).collect();
    let mut stays: HashSet<Id> = HashSet::new();
    loop {
        let before = stays.len();
        for one in derived {
            let is_there =
                |id: &Id| !roots.contains(id) && (!within.contains(id) || stays.contains(id));
            let any = one.sources.iter().any(is_there);
            let keeps = match &one.bond {
                Bond::None => true,
                Bond::AnySource { quoted } => any && quoted.iter().all(is_there),
                Bond::EverySource => any && one.sources.iter().all(is_there),
            };
            if keeps {
                stays.insert(one.id.clone());
            }
        }
        if stays.len() == before {
            return stays;
        }
    }
}

proptest! {
    #[test]
    fn the_closure_is_what_the_definition_says(world in world()) {
        let roots: HashSet<Id> = (0..ROOTS).map(id).collect();
        let derived = derived(&world);
        let stays = naive(&roots, &derived);
        let closure = closure(&roots, &derived);
        let goes: HashSet<Id> = closure.goes.iter().map(|n| derived[*n].id.clone()).collect();
        for one in &derived {
            prop_assert_eq!(goes.contains(&one.id), !stays.contains(&one.id));
        }
        let is_gone = |id: &Id| roots.contains(id) || goes.contains(id);
        for (number, one) in derived.iter().enumerate() {
            let left: Vec<Id> = one.sources.iter().filter(|id| !is_gone(id)).cloned().collect();
            let loses = closure.loses.iter().find(|(n, _)| *n == number);
            let expected = stays.contains(&one.id) && left != one.sources;
            prop_assert_eq!(loses.map(|(_, left)| left), expected.then_some(&left));
        }
    }
}

fn fact(number: usize, sources: &[usize]) -> Derived {
    Derived {
        id: id(number),
        sources: sources.iter().map(|source| id(*source)).collect(),
        bond: Bond::AnySource { quoted: Vec::new() },
    }
}

fn summary(number: usize, sources: &[usize]) -> Derived {
    Derived {
        bond: Bond::EverySource,
        ..fact(number, sources)
    }
}

#[test]
fn a_circle_that_nothing_holds_goes() {
    let roots = HashSet::from([id(0)]);
    let circle = [fact(2, &[0, 3]), fact(3, &[2])];
    assert_eq!(closure(&roots, &circle).goes, [0, 1]);
    let held = [fact(2, &[0, 3]), fact(3, &[2, 11])];
    let closure = closure(&roots, &held);
    assert!(closure.goes.is_empty());
    assert_eq!(closure.loses, [(0, vec![id(3)])]);
}

#[test]
fn a_summary_goes_with_any_source_and_a_fact_with_the_last() {
    let roots = HashSet::from([id(0)]);
    let made = [summary(2, &[0, 11]), fact(3, &[0, 11]), fact(4, &[2, 0])];
    let closure = closure(&roots, &made);
    assert_eq!(closure.goes, [0, 2]);
    assert_eq!(closure.loses, [(1, vec![id(11)])]);
}

#[test]
fn a_quotation_is_five_words_or_the_whole() {
    let source = "The password of the old server is: swordfish, and nobody may know it.";
    assert!(quotes("It was said: PASSWORD of the “old server”.", source));
    assert!(!quotes("There is an old server with a password", source));
    assert!(quotes("She said: needle!", "needle"));
    assert!(!quotes("needles", "needle"));
    assert!(quotes("他说喝绿茶很好", "绿茶"));
    assert!(!quotes("anything", " … "));
}
