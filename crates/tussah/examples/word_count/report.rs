//! The result, as a table or as JSON.

use std::cmp::Reverse;
use std::fmt::Write;

use indicatif::{HumanBytes, HumanCount};
use serde::Serialize;

use super::count::Words;

/// The totals, the most frequent words, and the problems.
#[derive(Serialize)]
pub(crate) struct Report {
    /// Files read to their end.
    pub(crate) files: u64,
    /// Bytes counted.
    pub(crate) bytes: u64,
    /// Total number of words.
    pub(crate) words: u64,
    /// Number of different words.
    pub(crate) distinct: u64,
    /// The most frequent words; equally frequent ones in alphabetical order.
    pub(crate) top: Vec<WordCount>,
    /// Paths that could not be counted, in alphabetical order.
    pub(crate) problems: Vec<Problem>,
}

#[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Problem {
    pub(crate) path: String,
    pub(crate) error: String,
}

#[derive(Serialize, PartialEq, Eq)]
pub(crate) struct WordCount {
    pub(crate) word: String,
    pub(crate) count: u64,
}

impl WordCount {
    fn key(&self) -> (Reverse<u64>, &str) {
        (Reverse(self.count), &self.word)
    }
}

impl Ord for WordCount {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for WordCount {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Returns the most frequent words of a shard.
pub(crate) fn most_frequent(words: &Words, top: usize) -> Vec<WordCount> {
    let mut all: Vec<_> = words
        .iter()
        .map(|(word, &count)| (Reverse(count), word))
        .collect();
    all.sort_unstable();
    all.truncate(top);
    all.into_iter()
        .map(|(count, word)| WordCount {
            word: word.clone(),
            count: count.0,
        })
        .collect()
}

impl Report {
    pub(crate) fn table(&self) -> String {
        let mut text = String::new();
        self.write_table(&mut text)
            .expect("writing to a string does not fail");
        text
    }

    fn write_table(&self, text: &mut String) -> std::fmt::Result {
        if !self.top.is_empty() {
            writeln!(text, "{:>14}  {:>7}  word", "count", "share")?;
        }
        for WordCount { word, count } in &self.top {
            let share = 100.0 * *count as f64 / self.words as f64;
            writeln!(
                text,
                "{:>14}  {share:>6.2}%  {word}",
                HumanCount(*count).to_string()
            )?;
        }
        writeln!(
            text,
            "{:>14}  words, {} different, in {} files ({})",
            HumanCount(self.words).to_string(),
            HumanCount(self.distinct),
            HumanCount(self.files),
            HumanBytes(self.bytes),
        )?;
        if !self.problems.is_empty() {
            writeln!(
                text,
                "{:>14}  paths that could not be counted",
                self.problems.len()
            )?;
        }
        Ok(())
    }

    pub(crate) fn json(&self) -> String {
        let mut text = serde_json::to_string(self).expect("a report is plain data");
        text.push('\n');
        text
    }
}
