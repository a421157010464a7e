//! RFC 3339 times.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns the time that a text with a zone names. A leap second is the next second.
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    let bytes = text.as_bytes();
    if !text.is_ascii() || bytes.len() < 20 {
        return None;
    }
    let separators = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
    if separators.iter().any(|&(at, want)| bytes[at] != want) || !b"Tt ".contains(&bytes[10]) {
        return None;
    }
    let year = digits(&text[0..4])?;
    let month = digits(&text[5..7])?;
    let day = digits(&text[8..10])?;
    let (hour, minute, second) = (
        digits(&text[11..13])?,
        digits(&text[14..16])?,
        digits(&text[17..19])?,
    );
    if !(1..=12).contains(&month)
        || !(1..=days_in(year, month)).contains(&day)
        || hour > 23
        || minute > 59
        || second > 60
    {
        return None;
    }
    let (nanos, zone) = fraction(&text[19..])?;
    let seconds =
        days_before(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset(zone)?;
    from_unix(seconds)?.checked_add(Duration::from_nanos(nanos))
}

/// Returns a time in UTC with milliseconds.
pub(crate) fn format(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(0);
    let (year, month, day) = date(seconds.div_euclid(86_400));
    let rest = seconds.rem_euclid(86_400);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        rest / 3600,
        rest / 60 % 60,
        rest % 60,
        since.subsec_millis()
    )
}

/// Returns the current time as text.
pub(crate) fn now() -> String {
    format(SystemTime::now())
}

fn digits(text: &str) -> Option<i64> {
    text.bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| text.parse().ok())?
}

/// Returns the nanoseconds, and the zone behind them.
fn fraction(text: &str) -> Option<(u64, &str)> {
    let Some(rest) = text.strip_prefix('.') else {
        return Some((0, text));
    };
    let end = rest.bytes().position(|b| !b.is_ascii_digit())?;
    if end == 0 {
        return None;
    }
    let nanos = format!("{:0<9}", &rest[..end.min(9)]).parse().ok()?;
    Some((nanos, &rest[end..]))
}

/// Returns the seconds by which a zone is ahead of UTC.
fn offset(zone: &str) -> Option<i64> {
    if zone == "Z" || zone == "z" {
        return Some(0);
    }
    let sign = match zone.as_bytes() {
        [b'+', _, _, b':', _, _] => 1,
        [b'-', _, _, b':', _, _] => -1,
        _ => return None,
    };
    let (hours, minutes) = (digits(&zone[1..3])?, digits(&zone[4..6])?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

fn from_unix(seconds: i64) -> Option<SystemTime> {
    let distance = Duration::from_secs(seconds.unsigned_abs());
    if seconds < 0 {
        UNIX_EPOCH.checked_sub(distance)
    } else {
        UNIX_EPOCH.checked_add(distance)
    }
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the days from 1970-01-01 to a date. Years begin in March, so that the leap day
/// is the last day of a year.
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Returns the date that is some days after 1970-01-01.
fn date(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0.0),
            ("2026-01-02T03:04:05Z", 1_767_323_045.0),
            ("2026-01-02t04:04:05.5+01:00", 1_767_323_045.5),
            ("2026-01-01 22:34:05.25-04:30", 1_767_323_045.25),
            ("2000-02-29T23:59:60z", 951_868_800.0),
        ] {
            let at = parse(text).expect(text);
            let got = at.duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
            assert!((got - seconds).abs() < 1e-6, "{text}: got {got}");
        }
    }

    #[test]
    fn malformed_times_are_refused() {
        for text in [
            "",
            "2026-01-02",
            "2026-01-02T03:04:05",
            "2026-02-29T03:04:05Z",
            "2026-13-02T03:04:05Z",
            "2026-01-02T24:04:05Z",
            "2026-01-02T03:04:05.Z",
            "2026-01-02T03:04:05+1:00",
            "+026-01-02T03:04:05Z",
            "2026-01-02T03:04:05+25:00",
            "2026-01-02T03:04:0\u{e9}Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn times_round_trip() {
        for seconds in [0, 951_782_399, 951_868_799, 1_767_323_045, 4_107_542_399] {
            let at = UNIX_EPOCH + Duration::from_millis(seconds * 1000 + 7);
            assert_eq!(parse(&format(at)), Some(at), "{}", format(at));
        }
        assert_eq!(format(UNIX_EPOCH), "1970-01-01T00:00:00.000Z");
    }
}
