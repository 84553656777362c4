//! The rules on the length of sentences in pages.

use super::Rule;
use super::markdown::{Piece, Place};

/// Bound, in words: a longer sentence has more than one thought.
const SENTENCE_WORDS_MAX: usize = 30;

/// Bound, in words: a page whose sentences are longer on average is tiring to read.
const AVERAGE_WORDS_MAX: usize = 18;

/// Bound, in sentences: the average of fewer sentences means little.
const SENTENCES_MIN: usize = 5;

/// Words with a full stop that does not end a sentence.
const ABBREVIATIONS: [&str; 7] = ["e.g.", "i.e.", "etc.", "vs.", "cf.", "al.", "approx."];

/// Returns the sentences that are too long, and the average of a page if it is too high.
pub(super) fn check(pieces: &[Piece]) -> Vec<(Rule, usize, String)> {
    let mut found = Vec::new();
    let mut lengths = Vec::new();
    for piece in pieces {
        for (start, sentence) in sentences(&piece.text) {
            if !counts(piece.place, sentence) {
                continue;
            }
            let words = words(sentence);
            lengths.push(words);
            if words > SENTENCE_WORDS_MAX {
                let what = format!(
                    "the sentence `{}...` has {words} words, expected at most \
                     {SENTENCE_WORDS_MAX}; make two of it, or a list",
                    beginning(sentence)
                );
                found.push((Rule::Sentence, piece.line(start), what));
            }
        }
    }
    let total: usize = lengths.iter().sum();
    if lengths.len() >= SENTENCES_MIN && total > AVERAGE_WORDS_MAX * lengths.len() {
        let average = total as f64 / lengths.len() as f64;
        let what = format!(
            "the sentences have {average:.1} words on average, expected at most \
             {AVERAGE_WORDS_MAX}; shorten the longest"
        );
        found.push((Rule::Average, 1, what));
    }
    found
}

/// Returns whether a piece of text is a sentence: headings, cells and items without a full stop are
/// fragments.
pub(super) fn counts(place: Place, sentence: &str) -> bool {
    match place {
        Place::Paragraph => true,
        Place::Item => sentence.ends_with(['.', '!', '?', ':']),
        Place::Heading | Place::Cell => false,
    }
}

/// Returns the sentences of `text`, each with its offset.
pub(super) fn sentences(text: &str) -> Vec<(usize, &str)> {
    let mut sentences = Vec::new();
    let mut start = 0;
    let mut words = text.split_inclusive(char::is_whitespace).peekable();
    let mut end = 0;
    while let Some(word) = words.next() {
        end += word.len();
        let next = words.peek();
        if next.is_none_or(|next| ends_sentence(word, next)) {
            let sentence = &text[start..end];
            let indent = sentence.len() - sentence.trim_start().len();
            if !sentence.trim().is_empty() {
                sentences.push((start + indent, sentence.trim()));
            }
            start = end;
        }
    }
    sentences
}

/// Returns whether a sentence ends between two words.
fn ends_sentence(word: &str, next: &str) -> bool {
    let word = word.trim_end();
    let stopped = word.trim_end_matches([')', '"', '\'', '*', '_', '”']);
    let initial = stopped.len() == 2 && stopped.starts_with(char::is_uppercase);
    stopped.ends_with(['.', '!', '?'])
        && !initial
        && !ABBREVIATIONS.contains(&stopped.trim_start_matches('('))
        && !next.starts_with(char::is_lowercase)
}

/// Returns the number of words; a dash or a number sign on its own does not count.
fn words(sentence: &str) -> usize {
    let words = sentence.split_whitespace();
    words
        .filter(|word| word.contains(char::is_alphanumeric))
        .count()
}

/// Returns the first words of a sentence, which help to find it.
fn beginning(sentence: &str) -> String {
    let words: Vec<_> = sentence.split_whitespace().take(5).collect();
    words.join(" ").replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::super::markdown::pieces;
    use super::*;

    #[test]
    fn a_text_is_cut_into_sentences() {
        let check = |text: &str, expected: &[&str]| {
            let found: Vec<_> = sentences(text).into_iter().map(|(_, text)| text).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("A b. C d! E?", &["A b.", "C d!", "E?"]);
        check("A (b c.) D", &["A (b c.)", "D"]);
        check(
            "A, e.g. B, of 1.5 c. `d` e",
            &["A, e.g. B, of 1.5 c.", "`d` e"],
        );
        check(
            "A of J. Smith et al. 2008: b",
            &["A of J. Smith et al. 2008: b"],
        );
        check(
            "Read `a.rs` first; then b... and c.",
            &["Read `a.rs` first; then b... and c."],
        );
        check("", &[]);
        let offsets: Vec<_> = sentences("A b.  C").into_iter().map(|(at, _)| at).collect();
        assert_eq!(offsets, [0, 6]);
    }

    #[track_caller]
    fn expect(text: &str, expected: &[(Rule, usize)]) {
        let found = check(&pieces(text));
        let places: Vec<_> = found.iter().map(|(rule, line, _)| (*rule, *line)).collect();
        assert_eq!(places, expected, "{found:?}");
    }

    #[test]
    fn a_long_sentence_is_found() {
        let sentence = |words: usize| format!("One{}", " two".repeat(words - 1));
        expect(&format!("{}.\n", sentence(30)), &[]);
        expect(&format!("{}.\n", sentence(31)), &[(Rule::Sentence, 1)]);
        expect(&format!("{}:\n", sentence(31)), &[(Rule::Sentence, 1)]);
        expect(&format!("Ab.\n{}.\n", sentence(31)), &[(Rule::Sentence, 2)]);
        expect(&format!("- {}.\n", sentence(31)), &[(Rule::Sentence, 1)]);
        expect(&format!("{} `a b c`.\n", sentence(29)), &[]);
        expect(&format!("{} – -.\n", sentence(30)), &[]);
        // Fragments, tables and code.
        expect(&format!("# {}\n", sentence(31)), &[]);
        expect(&format!("- {}\n", sentence(31)), &[]);
        expect(&format!("| a |\n|---|\n| {}. |\n", sentence(31)), &[]);
        expect(&format!("```\n{}.\n```\n", sentence(31)), &[]);
    }

    #[test]
    fn long_sentences_on_average_are_found() {
        let page = |words: usize, sentences: usize| {
            let sentence = format!("One{}. ", " two".repeat(words - 1));
            sentence.repeat(sentences)
        };
        expect(&page(18, 10), &[]);
        expect(&page(19, 10), &[(Rule::Average, 1)]);
        expect(&page(19, 4), &[]);
    }
}
