use super::*;
use crate::model::Role;

fn talk<S: AsRef<str>>(said: &[S]) -> Vec<Message> {
    let said = said.iter().enumerate();
    let roles = [Role::User, Role::Assistant];
    said.map(|(at, text)| Message::text(format!("m{at}"), roles[at % 2], text.as_ref()))
        .collect()
}

/// Which of these sentences the summary holds, with room for all of them.
fn kept<S: AsRef<str>>(said: &[S]) -> Vec<usize> {
    let made = extract(&talk(said), 100_000);
    let kept = (0..said.len()).filter(|at| made.contains(said[*at].as_ref()));
    kept.collect()
}

fn list(form: &str, count: usize) -> Vec<String> {
    let entry = |n: usize| {
        let day = format!("2026-03-{n:02}");
        form.replace("{n}", &n.to_string()).replace("{day}", &day)
    };
    (1..=count).map(entry).collect()
}

#[test]
fn decisions_of_the_same_form_on_different_things_are_all_kept() {
    for form in [
        "We decided that invoice 47{n} is paid by Acme on {day}.",
        "We decided that module {n} uses port 80{n} and that Marcus owns it, see src/mod{n}.rs",
        "We decided that customer Site{n} is moved by Acme for the rollout.",
        "We decided to pay invoice 47{n} by Acme for project Apollo.",
        "We decided to pay invoice {n} for Acme. Name{n} takes it.",
        "Invoice 47{n} is approved for Acme, due on {day}.",
        "src/part_{n}.rs will be Marcus's, agreed on {day} for the parser team.",
        "Agreed: ticket #{n} goes to Lena for the release on {day}.",
    ] {
        let said = list(form, 25);
        assert_eq!(kept(&said), (0..25).collect::<Vec<_>>(), "{form}");
        assert_eq!(kept(&said[..4]), [0, 1, 2, 3], "{form}");
        // Later entries of the list take back nothing that is folded.
        let talk = talk(&said);
        let made = Extract::of(&talk[..12], &talk[12..]).text(100_000);
        assert_eq!(made.lines().count(), 12, "{form}: {made}");
    }
}

#[test]
fn a_new_value_takes_the_place_of_the_old_one() {
    for said in [
        [
            "We decided that the queue is RabbitMQ.",
            "We decided that the queue is Kafka.",
        ],
        [
            "We decided that the port is 8001.",
            "We decided that the port is 8002.",
        ],
        [
            "We go with port 8001 for the gateway.",
            "We go with port 8002 for the gateway.",
        ],
        [
            "We decided that module 3 uses port 8003.",
            "We decided that module 3 uses port 9003.",
        ],
        [
            "Invoice 4701 will be paid on 2026-03-01.",
            "Invoice 4701 will be paid on 2026-04-01.",
        ],
        [
            "So PostgreSQL 16 it is for the shop.",
            "So MariaDB it is for the shop.",
        ],
        [
            "We decided that version 3 is used for the client.",
            "We decided that version 4 is used for the client.",
        ],
    ] {
        assert_eq!(kept(&said), [1], "{said:?}");
    }
    let ports = list("We decided that the port of the gateway is 80{n}.", 12);
    assert_eq!(kept(&ports), [11], "only the newest of a chain");
}

#[test]
fn a_correction_within_a_list_takes_back_one_entry() {
    let mut said = list(
        "We decided to pay invoice 47{n} by Acme for project Apollo.",
        8,
    );
    said.push("Correction: not invoice 473 but invoice 499 for project Apollo.".to_owned());
    said.push("We use Kafka for project Apollo.".to_owned());
    assert_eq!(kept(&said), [0, 1, 3, 4, 5, 6, 7, 8, 9]);
    let mut said = list("We decided that module {n} uses port 80{n}.", 8);
    said.push("Actually, the port is 9000 instead of 805.".to_owned());
    assert_eq!(kept(&said), [0, 1, 2, 3, 5, 6, 7, 8]);
}

#[test]
fn some_text_is_always_shown() {
    let nothing = "(no text)";
    let changed = talk(&[
        "We decided that the queue is RabbitMQ.",
        "We decided that the queue is Kafka.",
    ]);
    let made = Extract::of(&changed[..1], &changed[1..]).text(1000);
    assert!(made.contains("RabbitMQ"), "{made}");
    // An answered question still holds; a decision that was changed does not.
    let said = talk(&[
        "Which port does the shop use?",
        "We decided that the queue is RabbitMQ.",
        "The shop uses port 80.",
        "We decided that the queue is Kafka.",
    ]);
    let made = Extract::of(&said[..2], &said[2..]).text(1000);
    assert!(
        made.contains("Which port") && !made.contains("RabbitMQ"),
        "{made}"
    );
    for text in [
        "{\"a\": 1}",
        "```\nlet x = 1;\n```",
        "thanks!",
        "...",
        "hm",
        "}",
    ] {
        let made = extract(&talk(&[text]), 1000);
        assert!(!made.contains(nothing), "{text}: {made}");
    }
    let made = extract(
        &talk(&["the blue door", "a Garden gate", "Ask Ann about the fence"]),
        1000,
    );
    assert_eq!(made.lines().count(), 2, "{made}");
    assert!(extract(&talk(&[""]), 1000).contains(nothing));
}

#[test]
fn a_failure_that_was_fixed_is_dropped_or_shown_as_fixed() {
    let failure = "The reset test fails because the clock is mocked in UTC+2.";
    let open = extract(&talk(&[failure, "I will look."]), 1000);
    assert!(open.contains(failure), "{open}");
    for fix in [
        "fixed the clock in the reset test; 14 passed",
        "I fixed the mock; 14 passed.",
        "Fixed it: the mock runs in UTC now; 14 passed",
        "fixed; 14 passed",
        "Resolved, we use UTC now.",
    ] {
        let said = talk(&[
            "Please run the tests.",
            failure,
            "Let me see.",
            "Thanks!",
            fix,
        ]);
        for made in [
            extract(&said, 1000),
            Extract::of(&said[..3], &said[3..]).text(1000),
        ] {
            let shown = made.lines().find(|line| line.contains(failure));
            assert!(shown.is_none_or(|line| line.contains(fix)), "{made}");
        }
    }
}
