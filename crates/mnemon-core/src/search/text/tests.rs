//! A table per language: what a text must be found by, and what it must not be found by.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::*;

/// Sum of the weights with which `query` matches `page`, as a ranking without idf would.
fn score(page: &str, query: &str) -> f32 {
    let page: HashMap<String, f32> = index_terms(page)
        .into_iter()
        .map(|t| (t.text, t.tf))
        .collect();
    query_terms(query)
        .iter()
        .filter_map(|q| page.get(&q.text).map(|tf| q.weight * tf))
        .sum()
}

fn terms(text: &str) -> Vec<String> {
    analyse(text).terms().map(|t| t.text.to_owned()).collect()
}

/// Rows of a page, the queries that find it and those that do not: `page | query, query | query`.
fn table(rows: &[&str]) {
    for row in rows {
        let [page, found, not_found] = row.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("not a row: {row:?}");
        };
        for (queries, is_found) in [(found, true), (not_found, false)] {
            for query in queries.split(", ") {
                assert_eq!(
                    score(page, query) > 0.0,
                    is_found,
                    "{query:?} in {:?}",
                    terms(page)
                );
            }
        }
    }
}

/// The first page scores above the second for each query.
fn order(rows: &[(&str, &str, &str)]) {
    for (query, better, worse) in rows {
        let (b, w) = (score(better, query), score(worse, query));
        assert!(b > w, "{query:?}: {better:?} has {b}, {worse:?} has {w}");
    }
}

#[test]
fn english() {
    table(&[
        "She was running late. | run, runs, Running, RUNNING | rung, lateral",
        "Caroline's favourite groups | caroline, Caroline, group, favourites | carol",
        "I don't like it | don't, dont, don’t | doughnut",
        "They'll (perhaps) visit! | they, visiting, perhaps | ll",
        "the naïve café résumé | naive, cafe, resume, Café, CAFÉ | caf, na",
        "state-of-the-art e-mail | email, e-mail, state, art | stat",
        "ﬁnancial ＡＢＣ | financial, abc | nancial",
        "well…known—fact | well, known, fact | wellknown",
        "party 🎉 time | 🎉, parties | 😀",
        "O'Brien said | obrien, O’Brien, brien | bri",
        "Straße ΣΊΣΥΦΟΣ | strasse, σίσυφος, σισυφος | stra",
    ]);
    order(&[
        ("running", "a running man", "a man on the run"),
        ("cafe", "the cafe", "the café"),
        ("café", "the café", "the cafe"),
        ("the dog", "dog days", "the days of the the"),
    ]);
}

#[test]
fn a_query_of_stop_words_still_finds() {
    let q = query_terms("to be or not to be");
    assert!(q.iter().all(|t| !t.stop && t.weight == 1.0), "{q:?}");
    assert_eq!(q.len(), 4);
    assert!(
        score(
            "To be, or not to be: that is the question",
            "to be or not to be"
        ) > 3.0
    );
    let mixed = query_terms("what is the question");
    let stops: Vec<_> = mixed
        .iter()
        .filter(|t| t.stop)
        .map(|t| t.text.as_str())
        .collect();
    assert_eq!(stops, ["what", "is", "the"]);
    assert!(mixed.iter().filter(|t| t.stop).all(|t| t.weight < 0.2));
}

#[test]
fn vietnamese() {
    table(&[
        "Quyết định kiến trúc | quyết định, quyet dinh, QUYẾT ĐỊNH, kien truc, kiến | quy, nh, ki",
        "Đường đi Đà Nẵng | đường, duong, da nang, Đà Nẵng | uong",
        // Decomposed input, and the two ways to place a tone.
        "ho\u{302}\u{300}ng hòa | hồng, hong, hoà | ho",
        "họp ngày 7 tháng 5 năm 2023 | 2023-05-07, May 2023, tháng 5 | June",
    ]);
    order(&[
        ("quyết định", "quyết định cuối cùng", "quyet dinh cuoi cung"),
        ("quyet dinh", "quyet dinh cuoi cung", "quyết định cuối cùng"),
        ("má", "má tôi", "mà thôi"),
        ("của kiến trúc", "kiến trúc", "của của của"),
    ]);
}

#[test]
fn japanese() {
    table(&[
        "認証トークンの設定 | 認証, トークン, 設定, 認証トークン, ﾄｰｸﾝ | 会議, 猫",
        "私は東京に住んでいます | 東京, 住む, 住んだ, 私 | 大阪",
        "黒猫が好きです | 猫, 黒猫, 好き | 犬",
        "設定ファイルを変更した | ファイル, 変更, 設定ファイル | 削除",
        "計算する | 計算 | 予定表",
        "会議は2023年5月7日です | 2023-05-07, May 2023, 2023年5月, 5月7日 | June",
        "Ｒｕｓｔで書く | Rust, rust | ruby",
    ]);
    order(&[
        ("東京都", "東京都の人口", "京都の人口"),
        ("認証の設定", "認証を設定する", "のののの画面"),
    ]);
}

#[test]
fn chinese() {
    table(&[
        "我们优化了搜索索引 | 优化, 搜索, 索引, 搜索索引 | 咖啡",
        "北京的咖啡很好喝 | 北京, 咖啡, 北京咖啡, 喝 | 上海",
        "数据库连接失败 | 数据库, 连接, 失败, 数据 | 成功",
    ]);
    order(&[
        ("数据库", "数据库连接", "数学和仓库"),
        ("我的咖啡", "咖啡", "我的我的"),
    ]);
}

#[test]
fn korean_thai_russian() {
    table(&[
        "서울에서 만나요 | 서울, 서울에서 | 부산",
        "ฉันชอบดื่มกาแฟ | กาแฟ, ดื่ม | ชาเขียว",
        "เขาทำงานที่บ้าน | ทำงาน | กาแฟ",
        "Новые книги | книга, новый, книг | стол",
        "ещё мёд | еще, мед | мода",
        "हिन्दी भाषा | हिन्दी | मराठी",
    ]);
}

#[test]
fn code() {
    table(&[
        "call parseJSON() | parseJSON, parse, json, parse_json, parse-json, PARSEJSON | son",
        "let snake_case_name = 1; | snake_case_name, snake, name, snakeCaseName | nake",
        "edit src/main.rs, then | src/main.rs, main.rs, main, rs | rust man",
        "std::collections::HashMap | HashMap, hash map, collections, hash_map | tree",
        "HTTPServer and IDs | http server, HTTPServer, id | tps",
        "upgrade to v1.2.3 | v1.2.3, 1.2.3, v1.2 | 1.3, v2.3",
        "mail foo.bar@example.com now | foo.bar@example.com, example.com, foo | exam",
        "see https://docs.rs/tokio/latest?x=1 | docs.rs, tokio, https://docs.rs/tokio | oki",
        "C++ and C# and F#. | c++, C#, f# | c, cp",
        "UTF-8 utf8 base64 | utf8, UTF-8, base | ascii",
        "--dry-run AT&T R&D | dry-run, dry run, AT&T | dryness",
    ]);
    order(&[
        ("parseJSON", "fn parseJSON", "parse the json"),
        ("src/main.rs", "open src/main.rs", "main src of rs"),
    ]);
}

#[test]
fn numbers_and_dates() {
    table(&[
        "on 2023-05-07 we met | 2023-05-07, May 2023, May 7, 7 May 2023, 2023/5/7, 2023 | June, 2022",
        "8 May, 2023 | 2023-05-08, 2023-05, may | June, 2022",
        "May 8th, 2023 | 2023-05-08, 8 May | 2022",
        "Jan 5 | January, january 5 | June",
        "at 2025-12-31T10:30:00Z | December 2025, 10:30, 2025-12-31 | November",
        "costs 1,234,567.89 dollars | 1234567.89, 1,234,567.89 | 234567",
        "pi is 3.14159 of 15min | 3.14159, 15 min, 15min | 14",
        "items 1,2,3 | 1, 2, 3 | 123",
        "room 101 | 101, room 101 | 10",
        "range 2023-24 | 2023-24, 2023 | December",
    ]);
    order(&[
        ("2023-05-07", "2023-05-07", "2023-05-09"),
        ("7 May 2023", "2023-05-07", "2023-05-01"),
    ]);
}

#[test]
fn positions_let_a_phrase_cross_a_hyphen() {
    let a = analyse("a long-term plan");
    let at = |text: &str| a.terms().find(|t| t.text == text).map(|t| t.position);
    assert_eq!(
        (at("long"), at("term"), at("plan")),
        (Some(1), Some(2), Some(3))
    );
    assert_eq!(a.words(), 4);
}

#[test]
fn terms_hold_no_ascii_punctuation() {
    for term in terms("a.b c-d e_f g/h i@j.k 1.2.3 1,000 x:y don't C++ 2020-01-02T03:04:05Z") {
        assert!(term.chars().all(char::is_alphanumeric), "{term:?}");
    }
}

#[test]
fn long_input_is_cut_at_a_word() {
    let text = "word ".repeat(MAX_TEXT_BYTES / 4);
    let a = analyse(&text);
    assert!(a.terms().all(|t| t.text == "word"));
    assert_eq!(a.words() as usize, MAX_TEXT_BYTES / 5);
    assert!(query_terms(&text).len() == 1);
    let many: String = (0..5000).map(|i| format!("w{i}x ")).collect();
    assert_eq!(query_terms(&many).len(), MAX_QUERY_TERMS);
    let blob = "aB1".repeat(MAX_TEXT_BYTES / 2);
    assert!(
        analyse(&blob)
            .terms()
            .all(|t| t.text.len() <= MAX_TERM_BYTES)
    );
}

#[test]
fn nothing_in_nothing_out() {
    for text in ["", "   ", "...", "\0\u{7}", "—", "\u{200b}"] {
        assert!(analyse(text).is_empty(), "{text:?} gave {:?}", terms(text));
    }
}

/// Words, joints, scripts and marks in odd orders: more trouble than uniformly random text.
fn odd_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "\\PC{0,12}",
        "[a-zA-Z0-9_./:@'&,#+ -]{0,24}",
        "[àáảãạăằđêôơưỳ\u{300}-\u{309} a-zĐÀ]{0,12}",
        "[ぁ-んァ-ヶ一-龥々ー]{0,12}",
        "[가-힣ก-๛ក-៿က-႟ ]{0,10}",
        "[а-яёйА-Я]{0,12}",
        "[0-9]{1,4}[-/.年][0-9]{1,2}[-/.月][0-9]{1,2}[T日]?[0-9]{0,2}",
        any::<String>(),
    ];
    proptest::collection::vec(piece, 0..8).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn any_text_gives_the_same_bounded_terms_twice(text in odd_text()) {
        let (a, b) = (analyse(&text), analyse(&text));
        prop_assert!(a.terms().eq(b.terms()));
        for term in a.terms() {
            prop_assert!(!term.text.is_empty() && term.text.len() <= MAX_TERM_BYTES);
            prop_assert!(term.weight > 0.0 && term.weight <= 1.0);
            prop_assert!(term.position <= a.words());
        }
        prop_assert!(a.terms().count() <= 8 * text.len() + 8);
    }

    #[test]
    fn a_text_is_found_by_itself(text in odd_text()) {
        let index: HashSet<String> = index_terms(&text).into_iter().map(|t| t.text).collect();
        for term in query_terms(&text) {
            prop_assert!(index.contains(&term.text), "{:?} of {:?}", term, text);
        }
    }

    #[test]
    fn only_inflected_endings_are_stemmed(word in "[a-z]{0,9}(l|r|d|g|t|n|m|c|a|b|f|h|j|k|o|p|q|u|v|w|x|z)") {
        let english = rust_stemmers::Stemmer::create(rust_stemmers::Algorithm::English);
        if !super::stem::may_be_inflected(&word) {
            prop_assert_eq!(english.stem(&word), word.as_str());
        }
    }

    #[test]
    fn case_never_matters_to_words(words in proptest::collection::vec("[a-z]{2,12}", 1..6)) {
        let text = words.join(" ");
        prop_assert_eq!(terms(&text), terms(&text.to_uppercase()));
    }

    #[test]
    fn the_loose_term_is_at_least_as_frequent(text in odd_text()) {
        let tight = analyse(&text).terms().filter(|t| t.kind == Kind::Surface).count();
        let loose = analyse(&text).terms().filter(|t| t.kind == Kind::Stem).count();
        prop_assert_eq!(tight, loose);
    }
}
