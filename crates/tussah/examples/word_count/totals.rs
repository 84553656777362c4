//! The totals: sharded colored state.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use tussah::Colored;

use super::count::{Counts, Words};
use super::report::{Problem, Report, WordCount, most_frequent};

/// The number of shards, large enough that threads rarely access the same one on any known machine.
const SHARDS: usize = 64;

/// The totals; clones refer to the same ones.
#[derive(Clone)]
pub(crate) struct Totals {
    shards: Arc<[Colored<Words>]>,
    /// The number of files and the number of bytes.
    sums: Colored<(u64, u64)>,
}

impl Totals {
    pub(crate) fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Colored::new(Words::new())).collect(),
            sums: Colored::new((0, 0)),
        }
    }

    /// Moves the counts into the totals if the condition holds.
    pub(crate) async fn add_if(
        &self,
        counts: &mut Counts,
        condition: impl FnOnce(&Counts) -> bool,
    ) {
        if !condition(counts) {
            return;
        }
        let Counts {
            words,
            files,
            bytes,
        } = std::mem::take(counts);
        let mut parts: Vec<Words> = (0..SHARDS).map(|_| Words::new()).collect();
        for (word, count) in words {
            let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(&word);
            parts[hash as usize % SHARDS].insert(word, count);
        }
        for (shard, part) in self.shards.iter().zip(parts) {
            if !part.is_empty() {
                shard.with(move |words| merge(words, part)).await;
            }
        }
        self.sums
            .with(move |sums| {
                sums.0 += files;
                sums.1 += bytes;
            })
            .await;
    }

    /// Sums up after the threads have ended.
    pub(crate) async fn report(&self, top: usize, problems: Vec<Problem>) -> Report {
        let mut all: Vec<WordCount> = Vec::new();
        let (mut words, mut distinct) = (0, 0);
        for shard in &*self.shards {
            let (sum, len, most) = shard
                .read(move |words| {
                    (
                        words.values().sum::<u64>(),
                        words.len(),
                        most_frequent(words, top),
                    )
                })
                .await;
            words += sum;
            distinct += len as u64;
            all.extend(most);
        }
        all.sort();
        all.truncate(top);
        let (files, bytes) = self.sums.read(|sums| *sums).await;
        Report {
            files,
            bytes,
            words,
            distinct,
            top: all,
            problems,
        }
    }
}

fn merge(words: &mut Words, part: Words) {
    for (word, count) in part {
        *words.entry(word).or_default() += count;
    }
}
