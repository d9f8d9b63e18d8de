//! Dates in Japanese, which has no spaces: every place in the text may begin one.

use super::calendar::{self, Part};
use super::{Days, Found, Reader};

const DIGITS: &str = "一二三四五六七八九";
const WEEKDAYS: &str = "月火水木金土日";
const SEASONS: &str = "春夏秋冬";

/// Characters that a number of a date has at most.
const LONGEST: usize = 6;

/// The place of a character in a list.
fn place(list: &str, c: char) -> Option<i32> {
    let at = list.chars().position(|known| known == c)?;
    i32::try_from(at).ok()
}

/// The number at the start of the text, and how many bytes it has: `12`, `１２`, `十二`.
fn number(text: &str) -> Option<(i32, usize)> {
    let (mut value, mut bytes, mut tens) = (0_i32, 0, false);
    for (read, c) in text.chars().enumerate() {
        let wide = u32::from(c)
            .checked_sub(u32::from('０'))
            .filter(|n| *n < 10);
        let digit = c.to_digit(10).or(wide);
        if let Some(digit) = digit.and_then(|digit| i32::try_from(digit).ok()) {
            value = value.checked_mul(10)?.checked_add(digit)?;
        } else if c == '十' {
            value = value.max(1).checked_mul(10)?;
            tens = true;
        } else if let Some(digit) = place(DIGITS, c) {
            value = if tens {
                value.checked_add(digit + 1)?
            } else {
                digit + 1
            };
        } else {
            break;
        }
        if read >= LONGEST {
            return None;
        }
        bytes += c.len_utf8();
    }
    (bytes > 0 && (1..3000).contains(&value)).then_some((value, bytes))
}

impl Reader<'_> {
    /// The date at the start of the text; its `end` is the number of its bytes.
    pub(super) fn japanese(&self, text: &str) -> Option<Found> {
        self.named_in_japanese(text)
            .or_else(|| self.counted_in_japanese(text))
    }

    fn named_in_japanese(&self, text: &str) -> Option<Found> {
        let today = self.today;
        let (year, month, _) = calendar::civil(today);
        let week = calendar::week(today);
        let day = |day: i32| Some(Days::one(day));
        let last_weekend = match calendar::weekend(today) {
            weekend if weekend.to < today => weekend,
            weekend => weekend.shifted(-7),
        };
        // Longer names before those that they begin with.
        let names: [(&str, Option<Days>); 24] = [
            ("一昨日", day(today - 2)),
            ("おととい", day(today - 2)),
            ("昨日", day(today - 1)),
            ("きのう", day(today - 1)),
            ("昨夜", day(today - 1)),
            ("昨晩", day(today - 1)),
            ("今日", day(today)),
            ("今朝", day(today)),
            ("今夜", day(today)),
            ("明日", day(today + 1)),
            ("明後日", day(today + 2)),
            ("先週末", Some(last_weekend)),
            ("今週末", Some(calendar::weekend(today))),
            ("先週", Some(week.shifted(-7))),
            ("今週", Some(week)),
            ("来週", Some(week.shifted(7))),
            ("先月", calendar::month(year, month - 1)),
            ("今月", calendar::month(year, month)),
            ("来月", calendar::month(year, month + 1)),
            ("一昨年", calendar::year(year - 2)),
            ("昨年", calendar::year(year - 1)),
            ("去年", calendar::year(year - 1)),
            ("今年", calendar::year(year)),
            ("来年", calendar::year(year + 1)),
        ];
        let known = names.into_iter().find(|(name, _)| text.starts_with(name));
        let Some((name, days)) = known else {
            return self.weekday_in_japanese(text);
        };
        let (mut days, mut end) = (days?, name.len());
        let rest = text.get(end..)?;
        let rest = rest.strip_prefix('の').unwrap_or(rest);
        let skipped = text.len() - rest.len();
        if let Some(within) = within(days, rest) {
            (days, end) = (within.0, skipped + within.1);
        }
        Some(Found::new(days, 0.9, end))
    }

    /// `金曜日`: the last one.
    fn weekday_in_japanese(&self, text: &str) -> Option<Found> {
        let weekday = place(WEEKDAYS, text.chars().next()?)?;
        let rest = text.get('月'.len_utf8()..)?;
        let name = ["曜日", "曜"]
            .into_iter()
            .find(|name| rest.starts_with(name))?;
        let back = (calendar::weekday(self.today - 1) - weekday).rem_euclid(7);
        let days = Days::one(self.today - 1 - back);
        Some(Found::new(days, 0.6, '月'.len_utf8() + name.len()))
    }

    /// `2023年5月7日`, `5月7日`, `5月上旬`, `3日前`, `2週間前`.
    fn counted_in_japanese(&self, text: &str) -> Option<Found> {
        let (first, bytes) = number(text)?;
        let rest = text.get(bytes..)?;
        if let Some((days, length)) = self.ago_in_japanese(first, rest) {
            return Some(Found::new(days, 0.9, bytes + length));
        }
        if let Some(rest) = rest.strip_prefix('年') {
            (1900..2100).contains(&first).then_some(())?;
            let end = text.len() - rest.len();
            let whole = calendar::year(first)?;
            let found = number(rest).and_then(|(month, bytes)| {
                let rest = rest.get(bytes..)?.strip_prefix('月')?;
                let (days, length) = self.of_month(first, month, rest)?;
                Some(Found::new(days, 1.0, text.len() - rest.len() + length))
            });
            let season =
                within(whole, rest).map(|(days, length)| Found::new(days, 0.9, end + length));
            return found.or(season).or(Some(Found::new(whole, 0.7, end)));
        }
        let rest = rest.strip_prefix('月')?;
        if rest.starts_with('曜') || !(1..=12).contains(&first) {
            return None;
        }
        let length = self.of_month(2024, first, rest)?.1;
        let days = |year| self.of_month(year, first, rest).map(|(days, _)| days);
        Some(Found {
            any_year: true,
            ..Found::new(
                calendar::nearest(self.today, days)?,
                0.9,
                text.len() - rest.len() + length,
            )
        })
    }

    /// The days of a month that the text after `月` names, and its bytes.
    fn of_month(&self, year: i32, month: i32, rest: &str) -> Option<(Days, usize)> {
        let whole = calendar::month(year, month).filter(|_| (1..=12).contains(&month))?;
        if let Some((day, bytes)) = number(rest)
            && rest.get(bytes..)?.starts_with('日')
        {
            let day = calendar::day(year, month, day)?;
            return Some((Days::one(day), bytes + '日'.len_utf8()));
        }
        let rest_of = rest.strip_prefix('の').unwrap_or(rest);
        let skipped = rest.len() - rest_of.len();
        let part = part(whole, rest_of).map(|(days, bytes)| (days, skipped + bytes));
        Some(part.unwrap_or((whole, 0)))
    }

    /// `日前`, `週間前`, `ヶ月前`, `年前` after a number.
    fn ago_in_japanese(&self, count: i32, rest: &str) -> Option<(Days, usize)> {
        let units = [
            "日前",
            "週間前",
            "ヶ月前",
            "か月前",
            "カ月前",
            "ヵ月前",
            "年前",
        ];
        let unit = units.into_iter().find(|unit| rest.starts_with(unit))?;
        let days = match unit {
            "日前" => Days::one(self.today - count),
            "週間前" => Days::around(self.today - 7 * count, 3),
            "年前" => calendar::year(calendar::civil(self.today).0 - count)?,
            _ => Days::around(self.today - 30 * count, 15),
        };
        Some((days, unit.len()))
    }
}

/// The part of these days that the text begins with: a weekday, a season, a month of the year.
fn within(days: Days, text: &str) -> Option<(Days, usize)> {
    let first = text.chars().next()?;
    let bytes = first.len_utf8();
    if days.count() == 7 {
        let weekday = place(WEEKDAYS, first)?;
        let rest = text.get(bytes..)?;
        let name = ["曜日", "曜"]
            .into_iter()
            .find(|name| rest.starts_with(name))?;
        return Some((Days::one(days.from + weekday), bytes + name.len()));
    }
    if days.count() < 32 {
        return part(days, text);
    }
    let (year, ..) = calendar::civil(days.from);
    if let Some(season) = place(SEASONS, first) {
        return Some((calendar::season(year, season)?, bytes));
    }
    let (month, bytes) = number(text)?;
    let rest = text.get(bytes..)?.strip_prefix('月')?;
    let whole = calendar::month(year, month).filter(|_| (1..=12).contains(&month))?;
    let skipped = text.len() - rest.len();
    if let Some((day, bytes)) = number(rest)
        && rest.get(bytes..)?.starts_with('日')
    {
        let day = calendar::day(year, month, day)?;
        return Some((Days::one(day), skipped + bytes + '日'.len_utf8()));
    }
    Some((whole, skipped))
}

/// A third of a month: `上旬`, `初め`, `末`.
fn part(month: Days, text: &str) -> Option<(Days, usize)> {
    let names = [
        ("上旬", Part::Early),
        ("初め", Part::Early),
        ("初旬", Part::Early),
        ("中旬", Part::Middle),
        ("半ば", Part::Middle),
        ("下旬", Part::Late),
        ("末", Part::Late),
    ];
    let (name, part) = names.into_iter().find(|(name, _)| text.starts_with(name))?;
    Some((month.part(part), name.len()))
}
