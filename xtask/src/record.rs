//! Writes the results of the commands that run on demand: one text file for each in `record/`.

use std::path::Path;

use anyhow::Context as _;
use jiff::Timestamp;

/// Writes `record/NAME.txt`, with the command, the date, and the result. It replaces the previous
/// result.
///
/// The text goes into a repository, so it must not contain a path of this machine.
///
/// # Errors
///
/// Returns an error if the file cannot be written.
pub(crate) fn write(root: &Path, name: &str, command: &str, body: &str) -> anyhow::Result<()> {
    let path = root.join("record").join(name).with_extension("txt");
    let text = format!("$ {command}\n{}\n\n{}\n", today(), body.trim_end());
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    println!("recorded in record/{name}.txt");
    Ok(())
}

/// Returns today's date in UTC, such as `2026-11-23`.
pub(crate) fn today() -> String {
    Timestamp::now().strftime("%Y-%m-%d").to_string()
}
