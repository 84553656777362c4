//! Random sentences of the documentation for a reader to judge.

use super::markdown::{self, Piece};
use super::{Page, comment, length, shown};
use crate::tidy::source::Tree;

/// The number of sentences in a sample.
const SIZE: usize = 100;

/// Bound, in words: in a shorter sentence there is nothing to judge.
const WORDS_MIN: usize = 5;

/// Returns sentences of the README, of the documents, of help texts and of the documentation of
/// public items, each with its path and line. The same seed always selects the same sentences of
/// the same text.
pub(in crate::tidy) fn draw(tree: &Tree, pages: &[Page], seed: u64) -> Vec<String> {
    let mut all = Vec::new();
    for page in pages
        .iter()
        .filter(|page| page.path == "README.md" || page.path.starts_with("docs/"))
    {
        for piece in markdown::pieces(&page.text) {
            all.extend(sentences(&page.path, 1, &piece));
        }
    }
    let modules = shown::public_modules(tree);
    for source in tree.files.iter().filter(|it| it.path.contains("/src/")) {
        let shown = shown::lines(source, &modules);
        for block in comment::blocks(source) {
            if block.is_documentation() && shown.contains(&block.line) {
                for piece in markdown::pieces(&block.lines.join("\n")) {
                    all.extend(sentences(&source.path, block.line, &piece));
                }
            }
        }
    }
    fastrand::Rng::with_seed(seed).choose_multiple(all, SIZE)
}

/// Returns the sentences of a piece whose text begins on this line.
fn sentences(path: &str, first: usize, piece: &Piece) -> Vec<String> {
    let all = length::sentences(&piece.text).into_iter();
    all.filter(|(_, text)| length::counts(piece.place, text) && words(text) >= WORDS_MIN)
        .map(|(at, text)| format!("{path}:{}: {text}", first + piece.line(at) - 1))
        .collect()
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_sentences_are_drawn_with_their_places() {
        let text = "/// Returns the number of events.\n/// It is zero. It changes while events \
                    arrive.\npub fn f() {}\n/// Returns no number that users see.\nfn \
                    g() {}\n";
        let tree = Tree::of(&[("crates/a/src/a.rs", text), ("crates/a/tests/b.rs", text)]);
        let page = Page {
            path: "docs/a.md".into(),
            text: "# A long heading that does not count\n\nA page has one sentence too.\n".into(),
        };
        let mut drawn = draw(&tree, &[page], 1);
        drawn.sort();
        assert_eq!(
            drawn,
            [
                "crates/a/src/a.rs:1: Returns the number of events.",
                "crates/a/src/a.rs:2: It changes while events arrive.",
                "docs/a.md:3: A page has one sentence too.",
            ]
        );
    }

    #[test]
    fn the_same_seed_draws_the_same_sentences() {
        let page = Page {
            path: "docs/a.md".into(),
            text: (0..1000)
                .map(|n| format!("The page has sentence {n}.\n\n"))
                .collect(),
        };
        let drawn = |seed| draw(&Tree::of(&[]), std::slice::from_ref(&page), seed);
        assert_eq!((drawn(1).len(), drawn(1)), (SIZE, drawn(1)));
        assert_ne!(drawn(1), drawn(2));
    }
}
