//! Dates in Vietnamese: every syllable is a word, and what is counted stands before its time.

use super::calendar::{self, Part};
use super::{Days, Found, Reader};

const COUNTS: [&str; 12] = [
    "một", "hai", "ba", "bốn", "năm", "sáu", "bảy", "tám", "chín", "mười", "mốt", "tư",
];
const SEASONS: [&str; 4] = ["xuân", "hè", "thu", "đông"];

fn count(word: &str) -> Option<i32> {
    let digits = word
        .parse()
        .ok()
        .filter(|number| (1..=400).contains(number));
    digits.or_else(|| {
        let at = COUNTS.iter().position(|known| *known == word)?;
        match at {
            10 => Some(1),
            11 => Some(4),
            at => i32::try_from(at + 1).ok(),
        }
    })
}

/// -1 for what was, 1 for what comes, 0 for now.
fn away(word: &str) -> Option<i32> {
    match word {
        "trước" | "rồi" | "qua" | "ngoái" => Some(-1),
        "này" | "nay" => Some(0),
        "sau" | "tới" => Some(1),
        _ => None,
    }
}

impl Reader<'_> {
    /// The date that begins at this word.
    pub(super) fn vietnamese(&self, at: usize) -> Option<Found> {
        let words = [self.word(at), self.word(at + 1), self.word(at + 2)];
        let today = self.today;
        let near = |day: i32, words: usize| Some(Found::new(Days::one(day), 1.0, at + words));
        match words {
            ["hôm", "nay", _] => near(today, 2),
            ["hôm", "qua", _] => near(today - 1, 2),
            ["hôm", "kia", _] => near(today - 2, 2),
            ["ngày", "mai", _] => near(today + 1, 2),
            ["ngày", "kia", _] => near(today + 2, 2),
            ["sáng" | "trưa" | "chiều" | "tối" | "đêm", "nay", _] => near(today, 2),
            ["sáng" | "trưa" | "chiều" | "tối" | "đêm", "qua", _] => near(today - 1, 2),
            ["đầu" | "giữa" | "cuối", "tháng" | "năm" | "mùa", _] => {
                self.part_in_vietnamese(at)
            }
            ["cuối", "tuần", _] => self.weekend_in_vietnamese(at),
            ["ngày", ..] => self.day_in_vietnamese(at),
            ["mùa", season, _] => self.season_in_vietnamese(at, season),
            ["thứ" | "chủ", ..] => self.weekday_in_vietnamese(at),
            _ => self.period_in_vietnamese(at),
        }
    }

    /// `tuần trước`, `tháng 5 năm 2023`, `năm ngoái`, `ba tuần trước`.
    fn period_in_vietnamese(&self, at: usize) -> Option<Found> {
        self.ago_in_vietnamese(at)
            .or_else(|| self.unit_in_vietnamese(at))
            .or_else(|| self.month_in_vietnamese(at))
            .or_else(|| {
                let number = super::english::year(self.word(at + 1))?;
                let days = calendar::year(number)?;
                (self.word(at) == "năm").then_some(Found::new(days, 0.8, at + 2))
            })
    }

    /// `ba ngày trước`, `2 tuần trước`, `cách đây 3 tháng`.
    fn ago_in_vietnamese(&self, at: usize) -> Option<Found> {
        let is_first = self.word(at) == "cách" && self.word(at + 1) == "đây";
        let at = at + if is_first { 2 } else { 0 };
        let number = count(self.word(at))?;
        let is_past = is_first || self.word(at + 2) == "trước";
        let days = match self.word(at + 1) {
            "ngày" | "hôm" => Days::one(self.today - number),
            "tuần" => Days::around(self.today - 7 * number, 3),
            "tháng" => Days::around(self.today - 30 * number, 15),
            "năm" => calendar::year(calendar::civil(self.today).0 - number)?,
            _ => return None,
        };
        let end = at + 2 + usize::from(self.word(at + 2) == "trước");
        is_past.then_some(Found::new(days, 0.9, end))
    }

    /// `tuần này`, `tháng sau`, `năm ngoái`.
    fn unit_in_vietnamese(&self, at: usize) -> Option<Found> {
        let away = away(self.word(at + 1))?;
        let (year, month, _) = calendar::civil(self.today);
        let days = match self.word(at) {
            "tuần" => calendar::week(self.today).shifted(7 * away),
            "tháng" => calendar::month(year, month + away)?,
            "năm" => calendar::year(year + away)?,
            _ => return None,
        };
        Some(Found::new(days, 0.9, at + 2))
    }

    /// `tháng 5 năm 2023`, `tháng 5/2023`, `tháng năm`.
    fn month_in_vietnamese(&self, at: usize) -> Option<Found> {
        if self.word(at) != "tháng" {
            return None;
        }
        let word = self.word(at + 1);
        if let Some((month, year)) = word.split_once('/') {
            let month = month
                .parse()
                .ok()
                .filter(|month| (1..=12).contains(month))?;
            let days = calendar::month(super::english::year(year)?, month)?;
            return Some(Found::new(days, 1.0, at + 2));
        }
        let number = match word {
            "giêng" => 1,
            "chạp" => 12,
            word => count(word).filter(|number| (1..=12).contains(number))?,
        };
        let (year, end) = self.year_in_vietnamese(at + 2);
        if let Some(year) = year {
            return Some(Found::new(calendar::month(year, number)?, 1.0, end));
        }
        let days = calendar::nearest(self.today, |year| calendar::month(year, number))?;
        Some(Found {
            any_year: true,
            ..Found::new(days, 0.8, end)
        })
    }

    /// The year that may stand here: `năm 2023`, `2023`, `năm ngoái`.
    fn year_in_vietnamese(&self, at: usize) -> (Option<i32>, usize) {
        let next = at + usize::from(self.word(at) == "năm");
        if let Some(year) = super::english::year(self.word(next)) {
            return (Some(year), next + 1);
        }
        match away(self.word(next)).filter(|_| next > at) {
            Some(away) => (Some(calendar::civil(self.today).0 + away), next + 1),
            None => (None, at),
        }
    }

    /// `ngày 3 tháng 10 năm 2023`, `ngày 3/10`, `ngày 3/10/2023`.
    fn day_in_vietnamese(&self, at: usize) -> Option<Found> {
        let at = at + usize::from(self.word(at) == "ngày");
        let at = at + usize::from(matches!(self.word(at), "mùng" | "mồng"));
        let word = self.word(at);
        if let Some(found) = self.numeric(at) {
            return Some(found);
        }
        let (day, month, next) = match word.split_once('/') {
            Some((day, month)) => (day.parse().ok()?, month.parse().ok()?, at + 1),
            None if self.word(at + 1) == "tháng" => {
                let month = count(self.word(at + 2))?;
                (count(word)?, month, at + 3)
            }
            None => return None,
        };
        let (year, end) = self.year_in_vietnamese(next);
        if let Some(year) = year {
            let day = calendar::day(year, month, day)?;
            return Some(Found::new(Days::one(day), 1.0, end));
        }
        let there = |year| calendar::day(year, month, day).map(Days::one);
        Some(Found {
            any_year: true,
            ..Found::new(calendar::nearest(self.today, there)?, 0.9, end)
        })
    }

    /// `đầu tháng 5`, `cuối năm ngoái`, `giữa mùa hè`.
    fn part_in_vietnamese(&self, at: usize) -> Option<Found> {
        let part = match self.word(at) {
            "đầu" => Part::Early,
            "giữa" => Part::Middle,
            _ => Part::Late,
        };
        let whole = match self.word(at + 1) {
            "mùa" => self.season_in_vietnamese(at + 1, self.word(at + 2))?,
            _ => self.period_in_vietnamese(at + 1)?,
        };
        let days = whole.days.part(part);
        Some(Found { days, ..whole })
    }

    /// `cuối tuần trước`, `cuối tuần này`.
    fn weekend_in_vietnamese(&self, at: usize) -> Option<Found> {
        let away = away(self.word(at + 2))?;
        let this = calendar::weekend(self.today);
        let days = match away {
            -1 if this.to < self.today => this,
            away => this.shifted(7 * away),
        };
        Some(Found::new(days, 0.9, at + 3))
    }

    /// `thứ sáu tuần trước`, `chủ nhật`.
    fn weekday_in_vietnamese(&self, at: usize) -> Option<Found> {
        let weekday = match (self.word(at), self.word(at + 1)) {
            ("chủ", "nhật") => 6,
            ("thứ", day) => count(day).filter(|day| (2..=7).contains(day))? - 2,
            _ => return None,
        };
        let week = calendar::week(self.today);
        if self.word(at + 2) == "tuần"
            && let Some(away) = away(self.word(at + 3))
        {
            let day = week.from + 7 * away + weekday;
            return Some(Found::new(Days::one(day), 0.9, at + 4));
        }
        let end = at + 2 + usize::from(away(self.word(at + 2)).is_some());
        let back = (calendar::weekday(self.today - 1) - weekday).rem_euclid(7);
        let last = self.today - 1 - back;
        let day = match away(self.word(at + 2)) {
            Some(1) => last + 7,
            _ => last,
        };
        Some(Found::new(Days::one(day), 0.7, end))
    }

    /// `mùa hè năm ngoái`, `mùa xuân 2022`.
    fn season_in_vietnamese(&self, at: usize, season: &str) -> Option<Found> {
        let number = SEASONS.iter().position(|known| *known == season)?;
        let number = i32::try_from(number).ok()?;
        let (year, end) = self.year_in_vietnamese(at + 2);
        if let Some(year) = year {
            return Some(Found::new(calendar::season(year, number)?, 0.9, end));
        }
        let days = calendar::nearest(self.today, |year| calendar::season(year, number))?;
        Some(Found {
            any_year: true,
            ..Found::new(days, 0.6, end)
        })
    }
}
