//! The usual ranking finds what the formula finds, and what it cannot find.

use mnemon_core::rank::Recipe;

use super::*;

const NOTES: &[&str] = &[
    "Quyết định kiến trúc: dùng SQLite làm kho mặc định",
    "Cà phê sữa đá là đồ uống ưa thích của Lan",
    "認証トークンの設定は環境変数で行う",
    "会議は毎週火曜日の午後三時に始まる",
    "The deployment failed because the certificates had expired",
    "Ann bought a new automobile last spring",
    "The database migration was running for three hours",
    "Bob's physician told him to sleep more",
    "Lunch is served at noon in the small kitchen",
    "The printer on the second floor needs paper",
];

fn memory() -> Memory {
    let memory = open(&Config::for_store("ram:"));
    for note in NOTES {
        add(&memory, &now(), NewNote::new(*note));
    }
    memory
}

fn first(memory: &Memory, recipe: Recipe, query: &str) -> Option<String> {
    let query = NoteQuery {
        recipe: Some(recipe),
        ..NoteQuery::new(query, NoteFilter::all_of_tenant())
    };
    let found = wait(memory.notes().search(&now(), &query)).unwrap();
    found.results.into_iter().next().map(|note| note.summary)
}

#[track_caller]
fn finds(memory: &Memory, query: &str, number: usize) {
    let found = first(memory, Recipe::Hybrid, query);
    assert_eq!(found.as_deref(), Some(NOTES[number]), "{query}");
}

#[test]
fn vietnamese_with_and_without_its_marks() {
    let memory = memory();
    finds(&memory, "quyết định kiến trúc", 0);
    finds(&memory, "quyet dinh kien truc", 0);
    finds(&memory, "ca phe", 1);
    let formula = first(&memory, Recipe::Formula, "ca phe");
    assert_ne!(formula.as_deref(), Some(NOTES[1]));
}

#[test]
fn japanese_in_any_order() {
    let memory = memory();
    finds(&memory, "認証トークン", 2);
    finds(&memory, "トークンの認証設定", 2);
    finds(&memory, "火曜日の会議", 3);
    assert_eq!(first(&memory, Recipe::Formula, "火曜日の会議"), None);
}

#[test]
fn forms_of_words() {
    let memory = memory();
    finds(&memory, "certificate expires", 4);
    finds(&memory, "migrations run", 6);
    finds(&memory, "deploying fails", 4);
}

#[test]
fn words_that_mean_the_same() {
    let memory = memory();
    finds(&memory, "car", 5);
    finds(&memory, "doctor", 7);
    assert_eq!(first(&memory, Recipe::Formula, "doctor"), None);
}

#[test]
fn and_what_the_formula_finds() {
    let memory = memory();
    for (query, number) in [
        ("certif", 4),
        ("hysicia", 7),
        ("automobile", 5),
        ("SQLi", 0),
    ] {
        let formula = first(&memory, Recipe::Formula, query);
        assert_eq!(formula.as_deref(), Some(NOTES[number]), "{query}");
        finds(&memory, query, number);
    }
}
