//! Expected days are written out by hand.

use super::*;

/// Wednesday, 17 May 2023.
fn today() -> Time {
    at("2023-05-17")
}

fn at(day: &str) -> Time {
    format!("{day}T12:00:00Z").parse().unwrap()
}

fn show(days: Days) -> String {
    let day = |day: i32| {
        let (year, month, day) = calendar::civil(day);
        format!("{year}-{month:02}-{day:02}")
    };
    match days.from == days.to {
        true => day(days.from),
        false => format!("{}..{}", day(days.from), day(days.to)),
    }
}

fn told_by(text: &str) -> String {
    let told = told(text, today()).into_iter().map(|told| show(told.days));
    told.collect::<Vec<String>>().join(" ")
}

fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(told_by(text), *expected, "{text}");
    }
}

#[test]
fn english_records() {
    check(&[
        ("I went there yesterday.", "2023-05-16"),
        ("The day before yesterday it rained", "2023-05-15"),
        ("Last night we danced", "2023-05-16"),
        ("See you tomorrow!", "2023-05-18"),
        ("3 days ago", "2023-05-14"),
        ("a week ago", "2023-05-07..2023-05-13"),
        ("two months ago", "2023-03-02..2023-04-01"),
        ("three years ago", "2020-01-01..2020-12-31"),
        ("Last week was hard", "2023-05-08..2023-05-14"),
        ("Last weekend", "2023-05-13..2023-05-14"),
        ("this month", "2023-05-01..2023-05-31"),
        ("next month", "2023-06-01..2023-06-30"),
        ("last year", "2022-01-01..2022-12-31"),
        ("last Friday", "2023-05-12"),
        ("next Monday", "2023-05-22"),
        ("on Sunday", "2023-05-14"),
        ("last summer", "2022-06-01..2022-08-31"),
        ("last December", "2022-12-01..2022-12-31"),
        ("in March", "2023-03-01..2023-03-31"),
        ("on 7 May 2023 and on June 2nd", "2023-05-07 2023-06-02"),
        ("the 3rd of October, 2022", "2022-10-03"),
        ("on the 12th", "2023-05-12"),
        ("August 2022", "2022-08-01..2022-08-31"),
        ("early June", "2023-06-01..2023-06-10"),
        ("at the end of last month", "2023-04-21..2023-04-30"),
        ("2023-01-31", "2023-01-31"),
        ("Q3 2022", "2022-07-01..2022-09-30"),
        ("in the winter of 2021", "2020-12-01..2021-02-28"),
        ("in 2019", "2019-01-01..2019-12-31"),
        ("the week before 3 May 2023", "2023-04-26..2023-05-02"),
        ("the weekend before 3 May 2023", "2023-04-29..2023-04-30"),
    ]);
}

#[test]
fn texts_without_a_date_tell_of_none() {
    let texts = [
        "She may march on, a second time",
        "version 1.2.3 of chapter 12",
        "at the end I fell in love",
        "a few good men and two dogs",
        "summer vibes",
        "a number like 2020 is a number",
        "",
        "？。",
        "2023-99-99",
        "the 2023-24 season, 1990-1995",
        "The plan covers 2023-2147483647 items",
        "tháng 2147483647/2023",
        "一十十十十十十十十十十十",
    ];
    for text in texts {
        assert_eq!(told_by(text), "", "{text}");
    }
}

#[test]
fn vietnamese_records() {
    check(&[
        ("Hôm qua tôi đi bơi", "2023-05-16"),
        ("hôm kia", "2023-05-15"),
        ("ba ngày trước", "2023-05-14"),
        ("cách đây 2 tuần", "2023-04-30..2023-05-06"),
        ("tuần trước", "2023-05-08..2023-05-14"),
        ("Cuối tuần trước", "2023-05-13..2023-05-14"),
        ("thứ sáu tuần trước", "2023-05-12"),
        ("chủ nhật tuần này", "2023-05-21"),
        ("tháng sau", "2023-06-01..2023-06-30"),
        ("năm ngoái", "2022-01-01..2022-12-31"),
        ("ngày 3 tháng 10 năm 2022", "2022-10-03"),
        ("ngày 3/10/2022", "2022-10-03"),
        ("ngày 2/5", "2023-05-02"),
        ("đầu tháng 6", "2023-06-01..2023-06-10"),
        ("mùa hè năm ngoái", "2022-06-01..2022-08-31"),
        ("tháng 8/2022", "2022-08-01..2022-08-31"),
    ]);
}

#[test]
fn japanese_records() {
    check(&[
        ("昨日は泳ぎました", "2023-05-16"),
        ("一昨日", "2023-05-15"),
        ("３日前に買った", "2023-05-14"),
        ("二週間前", "2023-04-30..2023-05-06"),
        ("先週の金曜日に会った", "2023-05-12"),
        ("先週末", "2023-05-13..2023-05-14"),
        ("来月", "2023-06-01..2023-06-30"),
        ("去年の夏", "2022-06-01..2022-08-31"),
        ("2022年10月3日", "2022-10-03"),
        ("十月三日に", "2022-10-03"),
        ("6月上旬", "2023-06-01..2023-06-10"),
        ("昨年12月", "2022-12-01..2022-12-31"),
        ("月曜日", "2023-05-15"),
    ]);
}

#[test]
fn queries_ask_for_days_and_keep_the_rest() {
    let cases = [
        (
            "What happened on 3 October 2022?",
            "2022-10-03",
            "What happened on ?",
        ),
        ("between 3 and 10 May 2022", "2022-05-03..2022-05-10", ""),
        ("3-10 May 2022", "2022-05-03..2022-05-10", ""),
        ("May 3–10, 2022", "2022-05-03..2022-05-10", ""),
        ("since 1 May 2023", "2023-05-01..2023-05-17", "since "),
        ("after 10 May 2023", "2023-05-11..2023-05-17", "after "),
        ("before 5 May 2023", "2022-05-05..2023-05-04", "before "),
        ("from May to July 2022", "2022-05-01..2022-07-31", ""),
        (
            "the first weekend of October 2022",
            "2022-10-01..2022-10-02",
            "the ",
        ),
        ("the last Tuesday in May 2022", "2022-05-31", "the "),
        (
            "the second week of June 2022",
            "2022-06-08..2022-06-14",
            "the ",
        ),
        (
            "at the end of summer 2022",
            "2022-08-02..2022-08-31",
            "at the ",
        ),
        (
            "What is the score as of March 15, 2024?",
            "",
            "What is the score as of March 15, 2024?",
        ),
        ("2022年10月3日に何を", "2022-10-03", "に何を"),
    ];
    for (query, expected, rest) in cases {
        let (asked, left, _) = asked(query, today());
        let days: Vec<String> = asked.iter().map(|asked| show(asked.days)).collect();
        assert_eq!(
            (days.join(" ").as_str(), left.as_str()),
            (expected, rest),
            "{query}"
        );
    }
}

#[test]
fn days_without_a_year_are_of_every_year() {
    let (asked, ..) = asked("What did we do on 3 January?", today());
    let asked = asked[0];
    for year in [2019, 2023, 2031] {
        let nearest = if year == 2023 { 1.0 } else { OTHER_YEAR };
        assert_eq!(asked.fits(at(&format!("{year}-01-03"))), nearest, "{year}");
    }
    // The turn of the year does not part what is near.
    assert_eq!(asked.fits(at("2022-12-30")), 0.6);
    assert_eq!(asked.fits(at("2023-07-01")), 0.0);
    let years = asked.in_years(18_000, 19_000);
    assert!(years.len() >= 4 && years.iter().all(|asked| !asked.any_year));
}

/// Read digit by digit from every digit on, they would take minutes.
#[test]
fn long_runs_of_digits_are_read_once() {
    assert_eq!(told_by(&"一".repeat(300_000)), "");
    assert_eq!(told_by(&("0".repeat(1_000_000) + "月")), "");
    let (asked, ..) = asked(&"5月3日".repeat(100_000), today());
    assert_eq!(asked.len(), MOST);
}

#[test]
fn the_day_itself_fits_best() {
    let (asked, ..) = asked("on 7 May 2023", today());
    let fits =
        ["2023-05-07", "2023-05-10", "2023-05-20", "2022-05-07"].map(|day| asked[0].fits(at(day)));
    assert_eq!(fits, [1.0, 0.6, 0.4, 0.0]);
    let told = |text: &str| told(text, at("2023-05-08"))[0].fits(&asked[0]);
    assert!(told("yesterday") > told("last weekend"));
    assert!(told("last weekend") > told("this month"));
    assert_eq!(told("tomorrow"), 0.0);
}

/// Any text is read without a panic, and every date lies within the text.
#[test]
fn any_text_can_be_read() {
    let pieces = [
        "between",
        "and",
        "May",
        "31",
        "2023",
        "the",
        "last",
        "week",
        "of",
        "weekend",
        "before",
        "a",
        "few",
        "days",
        "ago",
        "9999-12-31",
        "0000-00-00",
        "月",
        "日",
        "年",
        "99",
        "先週",
        "の",
        "cuối",
        "tháng",
        "năm",
        "2",
        "/",
        "-",
        "Q4",
        "１２",
        "thứ",
        "early",
        "in",
        "400",
        "years",
        "é",
    ];
    let mut state = 5_u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % below
    };
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..random(9) {
            text.push_str(pieces[random(pieces.len())]);
            text.push_str(["", " ", ", "][random(3)]);
        }
        let (asked, rest, words) = asked(&text, today());
        assert!(
            rest.len() + words.len() <= text.len() + asked.len(),
            "{text}: {rest}, {words}"
        );
        assert!(told(&text, today()).len() <= MOST);
    }
}
