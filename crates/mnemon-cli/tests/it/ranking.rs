//! Questions for days and in the first person, over chats that are made here. The phrases are made
//! from days by arithmetic of this file, not by the reader of dates that is under test.

use jiff::civil::{Date, Weekday, date};
use jiff::{Span, ToSpan};
use mnemon_core::rank::{Recipe, Steps};
use mnemon_core::{Ctx, Filter, Kind, Owner, Tenant, Time, Viewer};
use mnemon_engine::{Draft, Memory, Query};
use mnemon_operations::config::Config;
use mnemon_operations::wiring;

struct Random(u64);

impl Random {
    fn below(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % below
    }

    fn of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

fn time(day: Date, hour: i64) -> Time {
    let days = (day - date(1970, 1, 1)).get_days();
    Time::EPOCH
        .plus_days(i64::from(days))
        .plus_millis(hour * 3_600_000)
}

fn ctx(now: Date) -> Ctx {
    Ctx::new(Tenant::default(), "test", time(now, 12))
}

fn filter() -> Filter {
    Filter::seen_by(Viewer::of_caller(Some("ann".to_owned()), None))
}

/// A message of a chat, and the question that only it answers.
struct Asked {
    id: String,
    question: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Language {
    English,
    Vietnamese,
    Japanese,
}

const ENGLISH: [&str; 16] = [
    "repaired the old bicycle",
    "baked a lemon cake",
    "visited the science museum",
    "painted the garden fence",
    "met a former colleague",
    "bought a second-hand guitar",
    "swam in the lake",
    "cleaned out the attic",
    "watched a puppet show",
    "planted tomatoes",
    "lost my umbrella",
    "tried a new noodle place",
    "ran a half marathon",
    "fixed the leaking tap",
    "sold the piano",
    "learned to juggle",
];
const VIETNAMESE: [&str; 10] = [
    "sửa chiếc xe đạp cũ",
    "nướng bánh chanh",
    "thăm bảo tàng khoa học",
    "sơn hàng rào",
    "gặp một đồng nghiệp cũ",
    "mua một cây đàn",
    "bơi ở hồ",
    "dọn gác mái",
    "trồng cà chua",
    "chạy bán marathon",
];
const JAPANESE: [&str; 10] = [
    "古い自転車を修理しました",
    "レモンケーキを焼きました",
    "科学博物館へ行きました",
    "庭の柵を塗りました",
    "元同僚に会いました",
    "中古のギターを買いました",
    "湖で泳ぎました",
    "屋根裏を片付けました",
    "トマトを植えました",
    "蛇口を直しました",
];
const WEEKDAYS: [(Weekday, &str, &str, &str); 7] = [
    (Weekday::Monday, "Monday", "hai", "月"),
    (Weekday::Tuesday, "Tuesday", "ba", "火"),
    (Weekday::Wednesday, "Wednesday", "tư", "水"),
    (Weekday::Thursday, "Thursday", "năm", "木"),
    (Weekday::Friday, "Friday", "sáu", "金"),
    (Weekday::Saturday, "Saturday", "bảy", "土"),
    (Weekday::Sunday, "Sunday", "", "日"),
];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

fn back(from: Date, days: i64) -> Date {
    from - Span::new().days(days)
}

/// The last day before this one that is such a weekday.
fn last(from: Date, weekday: Weekday) -> Date {
    let mut day = back(from, 1);
    while day.weekday() != weekday {
        day = back(day, 1);
    }
    day
}

/// Monday of the week before the one of this day.
fn monday_before(from: Date) -> Date {
    let this = match from.weekday() {
        Weekday::Monday => from,
        _ => last(from, Weekday::Monday),
    };
    back(this, 7)
}

/// How a message of a day tells of another, and the first and last day that it tells of.
fn phrase(random: &mut Random, language: Language, said: Date) -> (String, Date, Date) {
    let (weekday, english, vietnamese, japanese) = *random.of(&WEEKDAYS);
    let n = 3 + random.below(4) as i64;
    let one = |text: String, day: Date| (text, day, day);
    let explicit = back(said, 10 + random.below(40) as i64);
    let month = MONTHS[explicit.month() as usize - 1];
    let (m, d) = (explicit.month(), explicit.day());
    let sunday = last(said, Weekday::Sunday);
    let in_last_week =
        monday_before(said) + Span::new().days(i64::from(weekday.to_monday_zero_offset()));
    match (language, random.below(8)) {
        (Language::English, 0) => one("Yesterday".to_owned(), back(said, 1)),
        (Language::English, 1) => one("The day before yesterday".to_owned(), back(said, 2)),
        (Language::English, 2) => one(format!("{n} days ago"), back(said, n)),
        (Language::English, 3) => one(format!("Last {english}"), last(said, weekday)),
        (Language::English, 4) => ("Last weekend".to_owned(), back(sunday, 1), sunday),
        (Language::English, 5) => one(format!("On {month} {d}"), explicit),
        (Language::English, 6) => one("Last night".to_owned(), back(said, 1)),
        (Language::English, _) => one(format!("On the {d}th of {month}"), explicit),
        (Language::Vietnamese, 0 | 1) => one("Hôm qua".to_owned(), back(said, 1)),
        (Language::Vietnamese, 2) => one("Hôm kia".to_owned(), back(said, 2)),
        (Language::Vietnamese, 3) => one(format!("{n} ngày trước"), back(said, n)),
        (Language::Vietnamese, 4) if vietnamese.is_empty() => {
            one("Chủ nhật tuần trước".to_owned(), in_last_week)
        }
        (Language::Vietnamese, 4) => one(format!("Thứ {vietnamese} tuần trước"), in_last_week),
        (Language::Vietnamese, 5) => ("Cuối tuần trước".to_owned(), back(sunday, 1), sunday),
        (Language::Vietnamese, _) => one(format!("Ngày {d} tháng {m}"), explicit),
        (Language::Japanese, 0 | 1) => one("昨日、".to_owned(), back(said, 1)),
        (Language::Japanese, 2) => one("一昨日、".to_owned(), back(said, 2)),
        (Language::Japanese, 3) => one(format!("{n}日前に"), back(said, n)),
        (Language::Japanese, 4) => one(format!("先週の{japanese}曜日に"), in_last_week),
        (Language::Japanese, 5) => ("先週末に".to_owned(), back(sunday, 1), sunday),
        (Language::Japanese, _) => one(format!("{m}月{d}日に"), explicit),
    }
}

fn sentence(random: &mut Random, language: Language, phrase: &str) -> String {
    match language {
        Language::English => format!("{phrase} I {}.", random.of(&ENGLISH)),
        Language::Vietnamese => format!("{phrase} tôi {}.", random.of(&VIETNAMESE)),
        Language::Japanese => format!("{phrase}{}。", random.of(&JAPANESE)),
    }
}

fn question(random: &mut Random, language: Language, from: Date, to: Date) -> String {
    let (y, m, d) = (from.year(), from.month(), from.day());
    let month = MONTHS[m as usize - 1];
    let end = to.day();
    let two = from != to && from.month() == to.month();
    match (language, random.below(4)) {
        (Language::English, _) if two => {
            format!("What did I do between {d} and {end} {month} {y}?")
        }
        (Language::English, 0) => format!("What did I do on {d} {month} {y}?"),
        (Language::English, 1) => format!("What happened on {month} {d}, {y}?"),
        (Language::English, 2) => format!("Where was I on {d} {month}?"),
        (Language::English, _) => format!("What was I doing on {y}-{m:02}-{d:02}?"),
        (Language::Vietnamese, 0 | 1) => format!("Ngày {d} tháng {m} năm {y} tôi đã làm gì?"),
        (Language::Vietnamese, _) => format!("Tôi đã làm gì vào ngày {d}/{m}/{y}?"),
        (Language::Japanese, 0 | 1) => format!("{y}年{m}月{d}日に何をしましたか?"),
        (Language::Japanese, _) => format!("{m}月{d}日は何をした?"),
    }
}

/// A year of chat, three messages a day; some tell of a day that no other one tells of.
fn diary(random: &mut Random, language: Language, questions: usize) -> (Vec<Draft>, Vec<Asked>) {
    let (mut drafts, mut asked) = (Vec::new(), Vec::new());
    let mut taken: Vec<Date> = Vec::new();
    let mut day = date(2023, 2, 1);
    while day < date(2023, 12, 20) {
        for n in 0..3_u8 {
            let id = format!("{day}-{n}");
            let (phrase, from, to) = phrase(random, language, day);
            let free = taken
                .iter()
                .all(|other| (*other - from).get_days().abs() > 1);
            let content = match free && random.below(2) == 0 && asked.len() < questions {
                true => {
                    taken.extend([from, to]);
                    let question = question(random, language, from, to);
                    asked.push(Asked {
                        id: id.clone(),
                        question,
                    });
                    sentence(random, language, &phrase)
                }
                false => sentence(random, language, ""),
            };
            drafts.push(Draft {
                id: Some(id.parse().unwrap()),
                kind: Some(Kind::Message),
                owner: Owner::of(Some("ann"), Some(&day.to_string())),
                created: Some(time(day, 8 + i64::from(n))),
                ..Draft::note(content.trim().to_owned())
            });
        }
        day += 1.day();
    }
    (drafts, asked)
}

async fn memory_of(drafts: Vec<Draft>, now: Date) -> Memory {
    let memory = wiring::open(&Config::for_store("ram:")).unwrap().memory;
    let records = memory.records();
    records.add(&ctx(now), drafts, None).await.unwrap();
    memory
}

/// The questions whose message is not among the first so many.
async fn missed(
    memory: &Memory,
    asked: &[Asked],
    now: Date,
    steps: Steps,
    first: usize,
) -> Vec<String> {
    let mut missed = Vec::new();
    for Asked { id, question } in asked {
        let query = Query {
            steps,
            ..Query::new(question.as_str(), filter())
        };
        let hits = memory.search(&ctx(now), &query).await.unwrap();
        if !hits
            .iter()
            .take(first)
            .any(|hit| hit.record.id.as_str() == id)
        {
            missed.push(format!("{id}: {question}"));
        }
    }
    missed
}

#[tokio::test]
async fn days_are_found_by_what_tells_of_them() {
    let now = date(2024, 1, 5);
    let languages = [
        (Language::English, 90),
        (Language::Vietnamese, 45),
        (Language::Japanese, 45),
    ];
    for (language, count) in languages {
        let (drafts, asked) = diary(&mut Random(7), language, count);
        assert!(
            asked.len() >= count * 9 / 10,
            "{language:?}: {}",
            asked.len()
        );
        let memory = memory_of(drafts, now).await;
        let missing = missed(&memory, &asked, now, Steps::ALL, 10).await;
        let found = asked.len() - missing.len();
        println!("{language:?}: {found} of {}", asked.len());
        assert!(
            found * 10 >= asked.len() * 9,
            "{language:?}: {found} of {}\n{}",
            asked.len(),
            missing.join("\n")
        );
        let without = Steps {
            dates: false,
            ..Steps::ALL
        };
        let missing = missed(&memory, &asked, now, without, 10).await;
        assert!(
            missing.len() * 2 > asked.len(),
            "{language:?}: {}",
            missing.len()
        );
    }
}

/// What a user says of themselves in a chat; the assistant talks about the same at length.
const TOPICS: [(&str, &str); 8] = [
    (
        "budget for the trip",
        "A budget for a trip has a line for flights, for hotels and for food",
    ),
    (
        "favourite programming language",
        "A programming language is a matter of taste and of tools",
    ),
    (
        "running schedule",
        "A running schedule has easy days, one long run and a day of rest",
    ),
    (
        "database migration",
        "A database migration is planned, tried on a copy and then carried out",
    ),
    (
        "garden",
        "A garden wants sun, compost and a plan for each of its beds",
    ),
    (
        "job interview",
        "A job interview is prepared by questions, examples and a good sleep",
    ),
    (
        "sister's wedding",
        "A wedding of a sister wants a gift, a speech and a place to stay",
    ),
    (
        "savings account",
        "A savings account has a rate, a term and a fee that few people read",
    ),
];
const VALUES: [&str; 8] = [
    "about 1200 euros",
    "mostly Kotlin",
    "three evenings a week",
    "moved to Thursday",
    "full of beans and kale",
    "with a small bakery",
    "in the old town hall",
    "at two percent",
];

fn said(role: &str, n: usize, content: String) -> Draft {
    let mut draft = Draft {
        id: Some(format!("m{n}").parse().unwrap()),
        kind: Some(Kind::Message),
        owner: Owner::of(Some("ann"), Some(&format!("chat-{}", n / 40))),
        created: Some(time(date(2023, 5, 1), n as i64)),
        ..Draft::note(content)
    };
    draft.metadata.insert("role".to_owned(), role.into());
    draft
}

/// A chat in which each topic is the user's once, and the assistant's many times.
fn chat(random: &mut Random) -> (Vec<Draft>, Vec<Asked>) {
    let (mut drafts, mut asked) = (Vec::new(), Vec::new());
    for round in 0..8 {
        for (topic, advice) in TOPICS {
            let place = [
                "Berlin", "Oslo", "Lima", "Hanoi", "Kyoto", "Quito", "Perth", "Cork",
            ][round];
            let about = format!("{topic} in {place}");
            let own = random.below(6);
            for n in 0..6 {
                let number = drafts.len();
                let content = match n == own {
                    true => {
                        let question = match random.below(3) {
                            0 => format!("What did I say about my {about}?"),
                            1 => format!("What is my {about} like?"),
                            _ => format!("Can you remind me of my {about}?"),
                        };
                        asked.push(Asked {
                            id: format!("m{number}"),
                            question,
                        });
                        format!("My {about} is {} now.", random.of(&VALUES))
                    }
                    false => format!("And the {} one?", random.of(&["first", "next", "other"])),
                };
                drafts.push(said("user", number, content));
                let reply = format!(
                    "For the {about}: {advice}. The {topic} in {place} is worth a plan, and a {topic} \
                     in {place} that you like is better than any other {topic}."
                );
                drafts.push(said("assistant", number + 1, reply));
            }
        }
    }
    (drafts, asked)
}

#[tokio::test]
async fn the_first_person_is_the_user() {
    let now = date(2024, 1, 5);
    let (drafts, asked) = chat(&mut Random(11));
    assert_eq!(asked.len(), 64);
    let memory = memory_of(drafts, now).await;
    let missing = missed(&memory, &asked, now, Steps::ALL, 10).await;
    assert!(missing.len() * 10 <= asked.len(), "{}", missing.join("\n"));
    let with = missed(&memory, &asked, now, Steps::ALL, 1).await.len();
    let without = Steps {
        first_person: false,
        ..Steps::ALL
    };
    let without = missed(&memory, &asked, now, without, 1).await.len();
    println!("not first: {with}, without the step {without}");
    assert!(
        with * 10 <= asked.len() && without > 2 * with,
        "{with} {without}"
    );
}

#[tokio::test]
async fn days_without_other_words_find_what_was_written_on_them() {
    let now = date(2024, 1, 5);
    let note = |id: &str, day: Date, content: &str| Draft {
        id: Some(id.parse().unwrap()),
        owner: Owner::of(Some("ann"), None),
        created: Some(time(day, 9)),
        ..Draft::note(content)
    };
    let mut drafts: Vec<Draft> = (1..=28)
        .map(|day| {
            note(
                &format!("sink-{day}"),
                date(2023, 3, day),
                "I fixed the sink.",
            )
        })
        .collect();
    drafts.push(note(
        "april",
        date(2023, 9, 9),
        "April is our new accountant.",
    ));
    let memory = memory_of(drafts, now).await;
    let first = async |question: &str| {
        let query = Query::new(question, filter());
        let hits = memory.search(&ctx(now), &query).await.unwrap();
        hits.first().map(|hit| hit.record.id.to_string())
    };
    for (question, expected) in [
        ("What did I do on 2 March?", "sink-2"),
        ("what happened on 2023-03-17", "sink-17"),
        ("What happened between 28 and 30 March 2023?", "sink-28"),
        ("Who is April?", "april"),
    ] {
        assert_eq!(
            first(question).await.as_deref(),
            Some(expected),
            "{question}"
        );
    }
    assert_eq!(first("What did I do on 2 May 2021?").await, None);
}

/// The ids of the hits for the query, and the words by which the first one was found.
async fn found(memory: &Memory, question: &str, steps: Steps) -> (Vec<String>, Vec<String>) {
    let query = Query {
        recipe: Recipe::Words,
        min_score: Some(0.0),
        explain: true,
        steps,
        ..Query::new(question, filter())
    };
    let now = date(2024, 1, 5);
    let hits = memory.search(&ctx(now), &query).await.unwrap();
    let ids = hits.iter().map(|hit| hit.record.id.to_string()).collect();
    let matched = hits.first().map(|hit| hit.matched.clone());
    (ids, matched.unwrap_or_default())
}

async fn notes(contents: &[(&str, &str)]) -> Memory {
    let drafts = contents.iter().map(|(id, content)| Draft {
        id: Some(id.parse().unwrap()),
        owner: Owner::of(Some("ann"), None),
        ..Draft::note(*content)
    });
    memory_of(drafts.collect(), date(2024, 1, 5)).await
}

#[tokio::test]
async fn words_of_similar_meaning_count_in_part() {
    let memory = notes(&[
        ("puppy", "Our puppy chewed the sofa."),
        ("printer", "The printer is out of toner."),
        ("car", "The automobile is in the garage."),
    ])
    .await;
    let (ids, matched) = found(&memory, "dog", Steps::ALL).await;
    assert_eq!(ids, ["puppy"]);
    assert_eq!(matched, ["puppi (for dog)"]);
    let without = Steps {
        similar_words: false,
        ..Steps::ALL
    };
    assert_eq!(found(&memory, "dog", without).await.0, [] as [&str; 0]);
    // The word itself counts more than one of similar meaning.
    let memory = notes(&[
        ("car", "The car is in the garage."),
        ("automobile", "The automobile is in the garage."),
    ])
    .await;
    for (question, first) in [("car", "car"), ("automobile", "automobile")] {
        let (ids, _) = found(&memory, question, Steps::ALL).await;
        assert_eq!((ids[0].as_str(), ids.len()), (first, 2), "{question}");
    }
}

#[tokio::test]
async fn copies_come_last_unless_the_step_is_left_out() {
    let memory = notes(&[
        ("one", "The blue boat needs a coat of varnish in spring."),
        ("two", "The blue boat needs a coat of varnish in spring!"),
        ("other", "We painted the garden fence and the boat blue."),
    ])
    .await;
    let (ids, _) = found(&memory, "blue boat varnish", Steps::ALL).await;
    assert_eq!(ids[1], "other", "{ids:?}");
    let without = Steps {
        copies: false,
        ..Steps::ALL
    };
    let (ids, _) = found(&memory, "blue boat varnish", without).await;
    assert_eq!(ids[2], "other", "{ids:?}");
}
