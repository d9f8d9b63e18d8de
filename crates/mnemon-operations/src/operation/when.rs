//! Moments and durations as people write them.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use mnemon_core::{Invalid, Time, limits};

/// A moment in the past: RFC 3339, a date, a date and time in the reader's zone, or `7d` ago.
pub fn past(field: &str, text: &str, now: Time) -> Result<Time, Invalid> {
    if let Some(ms) = duration_ms(text) {
        return Ok(now.plus_millis(ms.saturating_neg()));
    }
    let ago = ", or how long ago: 30m, 12h, 7d, 2w";
    moment(text).ok_or_else(|| no_time(field, text, ago))
}

/// A moment, whenever: RFC 3339, a date, or a date and time in the reader's zone.
pub fn absolute(field: &str, text: &str) -> Result<Time, Invalid> {
    moment(text).ok_or_else(|| no_time(field, text, ""))
}

fn no_time(field: &str, text: &str, more: &str) -> Invalid {
    let text = text.escape_debug();
    let forms = "2026-01-31, \"2026-01-31 12:00\" or 2026-01-31T12:00:00Z";
    let what = format!("`{text}` is not a time; write {forms}{more}");
    Invalid::new(field, what)
}

/// How long from now, at most [`limits::TTL_DAYS`].
pub fn ahead(field: &str, text: &str, now: Time) -> Result<Time, Invalid> {
    let text = text.trim();
    let years = limits::TTL_DAYS * 4 / 1461;
    match duration_ms(text) {
        Some(ms) if ms > limits::TTL_DAYS * DAY_MS => {
            let what = format!("`{text}` is too long; at most {years}y is allowed");
            Err(Invalid::new(field, what))
        }
        Some(ms) if ms > 0 => Ok(now.plus_millis(ms)),
        _ => Err(no_duration(field, text)),
    }
}

/// A duration in milliseconds, which may be 0.
pub fn duration(field: &str, text: &str) -> Result<i64, Invalid> {
    duration_ms(text.trim()).ok_or_else(|| no_duration(field, text))
}

fn no_duration(field: &str, text: &str) -> Invalid {
    let text = text.trim().escape_debug();
    let forms = "write a number and a unit: 90s, 30m, 12h, 14d, 2w, 1y";
    Invalid::new(field, format!("`{text}` is not a duration; {forms}"))
}

const DAY_MS: i64 = 86_400_000;

fn moment(text: &str) -> Option<Time> {
    if let Ok(time) = text.parse() {
        return Some(time);
    }
    // Without an offset it is meant as the reader's clock shows it.
    let civil: DateTime = text.parse().ok()?;
    let at = civil.to_zoned(TimeZone::system()).ok()?;
    Time::from_millis(at.timestamp().as_millisecond()).ok()
}

fn duration_ms(text: &str) -> Option<i64> {
    let split = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(split)?;
    let ms: i64 = match unit {
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => DAY_MS,
        "w" => 7 * DAY_MS,
        "y" => 365 * DAY_MS,
        _ => return None,
    };
    number.parse::<i64>().ok()?.checked_mul(ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Time {
        "2026-03-01T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn the_past_can_be_said_in_several_ways() {
        let said = |text: &str| past("since", text, now()).unwrap().to_string();
        assert_eq!(said("2h"), "2026-03-01T10:00:00.000Z");
        assert_eq!(said("1w"), "2026-02-22T12:00:00.000Z");
        assert_eq!(
            said("2026-01-31T12:00:00+07:00"),
            "2026-01-31T05:00:00.000Z"
        );
        assert!(past("since", "2026-01-31", now()).is_ok());
        assert!(past("since", "2026-01-31 12:00", now()).is_ok());
        for bad in [
            "",
            "d",
            "7",
            "-7d",
            "7q",
            "yesterday",
            "2026-13-01",
            "99999999999999999d",
        ] {
            assert!(past("since", bad, now()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_duration_leads_ahead() {
        let at = ahead("ttl", "14d", now()).unwrap();
        assert_eq!(at.to_string(), "2026-03-15T12:00:00.000Z");
        let at = ahead("ttl", "36h", now()).unwrap();
        assert_eq!(at.to_string(), "2026-03-03T00:00:00.000Z");
        let at = ahead("ttl", "2y", now()).unwrap();
        assert_eq!(at.to_string(), "2028-02-29T12:00:00.000Z");
        assert!(ahead("ttl", "100y", now()).is_ok());
        for bad in ["0d", "", "14", "soon", "1.5h", "101y", "99999999999d"] {
            assert!(ahead("ttl", bad, now()).is_err(), "{bad}");
        }
    }
}
