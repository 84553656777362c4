//! Calendar dates in UTC.

use std::time::{SystemTime, UNIX_EPOCH};

/// The English names of the months, as HTTP and log formats abbreviate them.
pub(crate) const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// A time in the Gregorian calendar in UTC, to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Civil {
    pub(crate) year: i64,
    /// 1 to 12.
    pub(crate) month: u8,
    /// 1 to 31.
    pub(crate) day: u8,
    pub(crate) hour: u8,
    pub(crate) minute: u8,
    pub(crate) second: u8,
}

/// Returns whole seconds since 1970, negative before.
pub(crate) fn unix_seconds(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => after.as_secs().cast_signed(),
        Err(before) => {
            let before = before.duration();
            -before.as_secs().cast_signed() - i64::from(before.subsec_nanos() > 0)
        }
    }
}

/// Returns the date of a time, by `civil_from_days` of Howard Hinnant's "chrono-compatible
/// low-level date algorithms". Years begin in March, so that the leap day is the last of its year.
pub(crate) fn civil(unix_seconds: i64) -> Civil {
    let (days, in_day) = (
        unix_seconds.div_euclid(86_400),
        unix_seconds.rem_euclid(86_400),
    );
    let days = days + 719_468; // since 0000-03-01
    let (era, in_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (in_era - in_era / 1460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * in_year + 2) / 153;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let small = |n: i64| u8::try_from(n).expect("parts of a date are below 61");
    Civil {
        year: era * 400 + year_of_era + i64::from(month <= 2),
        month: small(month),
        day: small(in_year - (153 * from_march + 2) / 5 + 1),
        hour: small(in_day / 3600),
        minute: small(in_day / 60 % 60),
        second: small(in_day % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn seconds_are_dates() {
        // From `date -u -d @SECONDS`.
        let table = [
            (0, (1970, 1, 1, 0, 0, 0)),
            (-1, (1969, 12, 31, 23, 59, 59)),
            (951_782_400, (2000, 2, 29, 0, 0, 0)),
            (951_868_799, (2000, 2, 29, 23, 59, 59)),
            (1_709_251_199, (2024, 2, 29, 23, 59, 59)),
            (1_709_251_200, (2024, 3, 1, 0, 0, 0)),
            (4_107_542_400, (2100, 3, 1, 0, 0, 0)),
            (784_111_777, (1994, 11, 6, 8, 49, 37)),
        ];
        for (seconds, (year, month, day, hour, minute, second)) in table {
            let expected = Civil {
                year,
                month,
                day,
                hour,
                minute,
                second,
            };
            assert_eq!(civil(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn moments_before_1970_are_rounded_down() {
        assert_eq!(unix_seconds(UNIX_EPOCH + Duration::from_millis(1500)), 1);
        assert_eq!(unix_seconds(UNIX_EPOCH - Duration::from_millis(1500)), -2);
        assert_eq!(unix_seconds(UNIX_EPOCH - Duration::from_secs(2)), -2);
    }
}
