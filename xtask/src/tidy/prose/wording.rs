//! The rules on words: how a summary begins, "who" without a noun, "so many" as a number.

use super::Rule;
use super::length::sentences;
use super::markdown::{Piece, Place};

/// Words that begin a question or refer back, so that no summary begins with them.
const OPENERS: [&str; 5] = ["What", "Who", "Whether", "So", "It"];

/// Words after which "who" has no noun to refer to.
///
/// Prepositions, and verbs that an indirect question may follow ("depends on who is first"), are
/// left out, because the rule must never be wrong.
const BEFORE_HEADLESS_WHO: [&str; 15] = [
    "if", "unless", "because", "when", "while", "where", "since", "as", "than", "that", "so",
    "then", "even", "only", "against",
];

/// Returns the rule that the first line of documentation breaks.
pub(super) fn check_summary(line: &str) -> Option<(Rule, String)> {
    let text = line.trim_start().trim_start_matches(['*', '_', '"']);
    let word = text.split(|c: char| !c.is_alphabetic()).next()?;
    OPENERS.contains(&word).then(|| {
        let instead = match word {
            "Whether" => "write \"Returns whether ...\", or \"True if ...\" for a field",
            _ => "begin with a noun (type, field, file) or a verb in the third person (function)",
        };
        let what = format!("the summary begins with \"{word}\"; {instead}");
        (Rule::Summary, what)
    })
}

/// Returns the rules that a piece of prose breaks, with the line of each place.
///
/// The beginning of documentation is checked by [`check_summary`].
pub(super) fn check(piece: &Piece, documentation: bool) -> Vec<(Rule, usize, String)> {
    let mut found = Vec::new();
    for (start, sentence) in sentences(&piece.text) {
        let summary = documentation && piece.line(start) == 1;
        let opens = piece.place == Place::Paragraph && !summary;
        if let Some((at, what)) = headless_who(sentence, opens) {
            found.push((Rule::Who, piece.line(start + at), what));
        }
        if let Some((at, what)) = so_many(sentence) {
            found.push((Rule::SoMany, piece.line(start + at), what));
        }
    }
    found
}

/// Returns the place of a "who" without a noun; a "who" at the beginning of the sentence counts if
/// `opens` is set.
fn headless_who(sentence: &str, opens: bool) -> Option<(usize, String)> {
    let words = words(sentence);
    let headless = |at: usize| match at.checked_sub(1) {
        // The sentence is a question, or "Who" names what follows the colon.
        None => opens && words[0].1 == "Who" && !sentence.contains(['?', ':']),
        Some(before) => {
            let (offset, before) = words[before];
            let between = &sentence[offset + before.len()..words[at].0];
            words[at].1 == "who"
                && between.trim().is_empty()
                && BEFORE_HEADLESS_WHO.contains(&before.to_lowercase().as_str())
        }
    };
    let at = (0..words.len()).find(|&at| headless(at))?;
    let shown: Vec<_> = words[at..].iter().take(3).map(|(_, word)| *word).collect();
    let what = format!(
        "\"{}\" has no noun before it; name the subject: \"a client that ...\"",
        shown.join(" ")
    );
    Some((words[at].0, what))
}

/// Returns the place of a "so many", "so much" or "so long" that is neither compared ("so long as")
/// nor followed by its consequence ("so many that").
fn so_many(sentence: &str) -> Option<(usize, String)> {
    let words = words(sentence);
    let compared =
        |rest: &[(usize, &str)]| rest.iter().any(|(_, word)| ["as", "that"].contains(word));
    let at = (0..words.len().saturating_sub(1)).find(|&at| {
        let (offset, so) = words[at];
        so.eq_ignore_ascii_case("so")
            && sentence[offset + so.len()..words[at + 1].0]
                .trim()
                .is_empty()
            && ["many", "much", "long"].contains(&words[at + 1].1)
            && !compared(&words[at + 2..])
    })?;
    let what = format!(
        "\"{} {}\" stands for a number; write N, or name the field",
        words[at].1,
        words[at + 1].1
    );
    Some((words[at].0, what))
}

/// Returns the words of a sentence, each with its offset and without the punctuation around it.
fn words(sentence: &str) -> Vec<(usize, &str)> {
    let inside = |c: char| c.is_alphanumeric() || c == '`' || c == '_' || c == '\'';
    let mut words = Vec::new();
    let mut start = None;
    for (at, c) in sentence.char_indices().chain([(sentence.len(), ' ')]) {
        match (start, inside(c)) {
            (None, true) => start = Some(at),
            (Some(from), false) => {
                words.push((from, &sentence[from..at]));
                start = None;
            }
            _ => {}
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::super::markdown::pieces;
    use super::*;

    #[test]
    fn a_summary_begins_with_what_it_is_about() {
        let check = |text: &str, expected: bool| {
            assert_eq!(check_summary(text).is_some(), expected, "{text}");
        };
        for opener in OPENERS {
            check(&format!("{opener} is full."), true);
        }
        check("What's left.", true);
        check("*What* is left.", true);
        check("Whatever is left.", false);
        check("Its length.", false);
        check("Whole words.", false);
        check("Returns whether it is full.", false);
        check("`What` of an event.", false);
        check("", false);
    }

    #[track_caller]
    fn expect(rule: Rule, text: &str, expected: bool) {
        let pieces = pieces(text);
        let found: Vec<_> = pieces
            .iter()
            .flat_map(|piece| check(piece, false))
            .collect();
        let broken = found.iter().any(|(found, ..)| *found == rule);
        assert_eq!(broken, expected, "{text}: {found:?}");
    }

    #[test]
    fn who_needs_a_noun() {
        for headless in [
            "Who comes too soon is as a new client.",
            "A client waits. Who has waited longest is served.",
            "It is as who has just come.",
            "It ends if who holds it leaves.",
            "It is served earlier than who came later.",
            "Only who has the token runs.",
        ] {
            expect(Rule::Who, headless, true);
        }
        for sound in [
            "Who holds it?",
            "Who runs next: a `Policy`.",
            "A client who waits is served.",
            "Those who wait are served.",
            "It decides who runs next.",
            "That depends on who is first.",
            "It says who holds it, and who waits.",
            "Whoever adds a call adds it to the table.",
            "A client that waits, who waits long, is served.",
            "Only a client, as the one who waits, is served.",
            "# Who waits",
            "- Who may touch it: the owner.",
        ] {
            expect(Rule::Who, sound, false);
        }
    }

    #[test]
    fn a_summary_with_who_is_found_once() {
        assert_eq!(check(&pieces("Who waits.")[0], true), []);
        assert_eq!(check(&pieces("A client. Who waits.")[0], true).len(), 0);
        assert_eq!(check(&pieces("A client.\nWho waits.")[0], true).len(), 1);
    }

    #[test]
    fn a_number_is_not_so_many() {
        for number in [
            "After so many turns it looks.",
            "So much is left.",
            "It waits for so\nlong.",
            "It takes so many, since nobody waits.",
        ] {
            expect(Rule::SoMany, number, true);
        }
        for sound in [
            "There are so many that none fits.",
            "It waits so long that the client leaves.",
            "So long as it is held, nobody waits.",
            "So many events wait that it rejects.",
            "`so many` is code.",
            "So, many wait.",
            "It also looks for many.",
        ] {
            expect(Rule::SoMany, sound, false);
        }
    }
}
