//! Counts the words of files, one after another.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use tussah::spawn_blocking;
use tussah::sync::mpmc::Receiver;

use super::Job;
use super::read::Reader;

/// Bound, in words: when a counting thread has found this number of different words, it adds them
/// to the totals.
const WORDS_MAX: usize = 50_000;

/// The number of occurrences of each word.
pub(crate) type Words = HashMap<String, u64>;

/// The counts of a thread since it last added them to the totals.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) words: Words,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

/// Counts files from the queue until there are no more.
pub(crate) async fn count_files(job: &Job, files: Receiver<PathBuf>) {
    let mut counts = Counts::default();
    while let Ok(path) = files.recv().await {
        match count_file(job, &path, &mut counts).await {
            Ok(()) => counts.files += 1,
            Err(error) => job.problem(path, error).await,
        }
        job.totals
            .add_if(&mut counts, |counts| counts.words.len() >= WORDS_MAX)
            .await;
    }
    job.totals.add_if(&mut counts, |_| true).await;
}

/// Counts one file. Data read before an error is counted.
async fn count_file(job: &Job, path: &Path, counts: &mut Counts) -> io::Result<()> {
    let path = path.to_owned();
    let mut reader = blocking(move || Reader::open(&path)).await?;
    loop {
        let (back, chunk) = blocking(move || {
            let chunk = reader.next_chunk();
            (reader, chunk)
        })
        .await;
        reader = back;
        let Some(chunk) = chunk? else {
            return Ok(());
        };
        count_words(&chunk, &mut counts.words);
        counts.bytes += chunk.len() as u64;
        job.progress.inc(chunk.len() as u64);
    }
}

async fn blocking<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> T {
    spawn_blocking(f)
        .await
        .unwrap_or_else(|error| error.resume())
}

/// Counts the words of `text`. Bytes that are not UTF-8 separate words.
pub(crate) fn count_words(text: &[u8], words: &mut Words) {
    let text = String::from_utf8_lossy(text);
    let mut lower = String::new();
    let is_between = |character: char| !character.is_alphanumeric();
    for word in text.split(is_between).filter(|word| !word.is_empty()) {
        lower.clear();
        lower.extend(word.chars().flat_map(char::to_lowercase));
        match words.get_mut(&lower) {
            Some(count) => *count += 1,
            None => {
                words.insert(lower.clone(), 1);
            }
        }
    }
}
