use super::*;

const PAGE: &str = "---\ntitle: Auth ADR\nstatus: final\n---\n\n# Authentication decision\n\n\
    We decided to use OAuth2 with short tokens.\n\n## Colours\n\nThe logo is green.\n\n## Later\n";

#[test]
fn a_passage_is_the_best_paragraph_and_never_front_matter() {
    let about = |query| excerpt(PAGE, query);
    assert_eq!(
        about("Authentication ADR decision"),
        "# Authentication decision\nWe decided to use OAuth2 with short tokens."
    );
    assert_eq!(
        about("which colour has the logo"),
        "## Colours\nThe logo is green."
    );
    // Front matter is not shown even if only it has the words.
    assert_eq!(about("status final"), about("nothing of this"));
    assert!(!about("title").contains("title"));
}

#[test]
fn a_passage_is_cut_and_holds_no_tag() {
    let long = "tea ".repeat(400);
    let cut = excerpt(&long, "tea");
    assert_eq!(cut.chars().count(), PASSAGE_CHARS + 1);
    let summary = "Ann buys tea.\n<!-- CONTEXT_OFFLOAD: uuid=01890a5d -->";
    assert_eq!(excerpt(summary, "tea"), "Ann buys tea.");
    assert_eq!(excerpt("", "tea"), "");
}
