//! Writes the results of the commands that run on demand: one text file each in `record/`.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;

/// Writes `record/NAME.txt`, with the command, the date, and the result. It replaces the previous
/// result.
///
/// The text goes to a repository: it must not contain a path of this machine.
///
/// # Errors
///
/// The file cannot be written.
pub(crate) fn write(root: &Path, name: &str, command: &str, body: &str) -> anyhow::Result<()> {
    let path = root.join("record").join(name).with_extension("txt");
    let text = format!("$ {command}\n{}\n\n{}\n", today(), body.trim_end());
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    println!("recorded in record/{name}.txt");
    Ok(())
}

/// Returns today's date in UTC, such as `2026-11-23`.
pub(crate) fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    date(since.unwrap_or(Duration::ZERO).as_secs() / 86_400)
}

/// Returns the date of a day given as days since 1970-01-01.
///
/// Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`, for days from
/// 1970 on.
fn date(days: u64) -> String {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (days, expected) in [
            (0, "1970-01-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_453, "2025-12-31"),
            (20_780, "2026-11-23"),
        ] {
            assert_eq!(date(days), expected);
        }
    }
}
