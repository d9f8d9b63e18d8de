use mnemon_core::window::extract;
use mnemon_testkit::meetings::{HELD_OUT, Phrases, Score, TUNED, meeting, score};
use mnemon_testkit::talks::seeds;

/// The extract of whole talks with room for two fifths of them.
fn extracts(phrases: &Phrases) -> Score {
    let mut all = Score::default();
    for seed in seeds(20, 200) {
        let meeting = meeting(seed, 30, phrases);
        let said = meeting.messages.iter();
        let chars: usize = said.map(|m| m.text_content().chars().count()).sum();
        let made = extract(&meeting.messages, chars * 3 / 5);
        if seed == 7 && std::env::var_os("SHOW").is_some() {
            for message in &meeting.messages {
                println!("{:?} {}", message.role, message.text_content());
            }
            println!("{made}");
        }
        if std::env::var_os("MISSES").is_some() {
            for d in &meeting.decisions {
                let one = mnemon_testkit::meetings::Meeting {
                    decisions: vec![d.clone()],
                    ..Default::default()
                };
                let s = score(&one, &[], &[made.clone()]);
                if s.kept == 0 || s.stale > 0 {
                    println!("{seed} {d:?} {s:?}");
                    for m in &meeting.messages {
                        let t = m.text_content();
                        if t.to_lowercase()
                            .contains(&format!("{} of the {}", d.subject[0], d.subject[1]))
                        {
                            println!("   {t}");
                        }
                    }
                    for l in made.lines() {
                        if l.to_lowercase()
                            .contains(&format!("{} of the {}", d.subject[0], d.subject[1]))
                        {
                            println!("   => {l}");
                        }
                    }
                }
            }
            for q in meeting.questions.iter().filter(|q| !q.answers.is_empty()) {
                for l in made.lines() {
                    if l.contains(&q.text)
                        && !q
                            .answers
                            .iter()
                            .any(|a| l.to_lowercase().contains(&a.to_lowercase()))
                    {
                        println!("   ?? {l} {:?}", q.answers);
                    }
                }
            }
        }
        all += score(&meeting, &[], &[made]);
    }
    println!("{all}");
    all
}

#[test]
fn extracts_keep_decisions_with_their_owners() {
    let tuned = extracts(&TUNED);
    assert!(tuned.kept * 100 >= tuned.decisions * 90, "{tuned}");
    assert!(tuned.stale * 100 <= tuned.replaced * 5, "{tuned}");
    assert_eq!((tuned.shown_open, tuned.small_talk), (0, 0), "{tuned}");
    extracts(&HELD_OUT);
}
