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
        all += score(&meeting, &[], &[made]);
    }
    all
}

#[test]
fn extracts_keep_decisions_with_their_owners() {
    let tuned = extracts(&TUNED);
    println!("{tuned}");
    assert!(tuned.kept * 100 >= tuned.decisions * 90, "{tuned}");
    assert!(tuned.stale * 100 <= tuned.replaced * 5, "{tuned}");
    assert_eq!((tuned.shown_open, tuned.small_talk), (0, 0), "{tuned}");
    let held_out = extracts(&HELD_OUT);
    println!("{held_out}");
    assert!(held_out.kept * 100 >= held_out.decisions * 80, "{held_out}");
    assert_eq!(held_out.shown_open, 0, "{held_out}");
}
