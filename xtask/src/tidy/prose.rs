//! The writing rules that a program can check in comments, documentation and Markdown pages.

use std::path::Path;

use super::Finding;
use super::source::{self, Source, Tree};

mod allowed;
mod comment;
mod length;
mod markdown;
mod sample;
mod shown;
mod wording;

pub(super) use allowed::{Allowed, PATH as EXCEPTIONS};
pub(super) use sample::draw;

/// A writing rule, in the order in which the list of exceptions names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rule {
    /// A sentence of a page has at most 30 words.
    Sentence,
    /// The sentences of a page have at most 18 words on average.
    Average,
    /// A comment line is at most 100 columns wide.
    Columns,
    /// A documentation summary does not begin with "What", "Who", "Whether", "So" or "It".
    Summary,
    /// A clause with "who" follows the noun that it refers to.
    Who,
    /// A number is called N.
    SoMany,
}

impl Rule {
    const ALL: [Self; 6] = [
        Self::Sentence,
        Self::Average,
        Self::Columns,
        Self::Summary,
        Self::Who,
        Self::SoMany,
    ];

    /// Returns the name of the rule in the list of exceptions and in messages.
    fn name(self) -> &'static str {
        match self {
            Self::Sentence => "sentence",
            Self::Average => "average",
            Self::Columns => "columns",
            Self::Summary => "summary",
            Self::Who => "who",
            Self::SoMany => "so-many",
        }
    }
}

/// A place that breaks a writing rule.
#[derive(Debug, PartialEq)]
pub(super) struct Breach {
    rule: Rule,
    finding: Finding,
}

/// A Markdown page.
pub(super) struct Page {
    /// Relative to the workspace, with `/` between its parts.
    path: String,
    text: String,
}

/// Reads the Markdown pages below `root`, except for the one that is generated from the code.
///
/// # Errors
///
/// Returns an error if a directory or a file cannot be read.
pub(super) fn pages(root: &Path) -> anyhow::Result<Vec<Page>> {
    let texts = source::read_all(root, ".md")?;
    let written = texts
        .into_iter()
        .filter(|(path, _)| path != super::bounds::PATH);
    Ok(written.map(|(path, text)| Page { path, text }).collect())
}

/// Returns every place that breaks a writing rule.
pub(super) fn check(tree: &Tree, pages: &[Page]) -> Vec<Breach> {
    let mut breaches: Vec<Breach> = tree.files.iter().flat_map(check_source).collect();
    breaches.extend(pages.iter().flat_map(check_page));
    breaches
}

fn check_source(source: &Source) -> Vec<Breach> {
    let mut found = Vec::new();
    for block in comment::blocks(source) {
        found.extend(block.too_wide());
        if block.is_documentation() {
            found.extend(
                wording::check_summary(&block.lines[0])
                    .map(|(rule, what)| (rule, block.line, what)),
            );
        }
        let text = block.lines.join("\n");
        for piece in markdown::pieces(&text) {
            let broken = wording::check(&piece, block.is_documentation());
            found.extend(
                broken
                    .into_iter()
                    .map(|(rule, line, what)| (rule, block.line + line - 1, what)),
            );
        }
    }
    breaches(&source.path, found)
}

fn check_page(page: &Page) -> Vec<Breach> {
    let pieces = markdown::pieces(&page.text);
    let mut found = length::check(&pieces);
    found.extend(pieces.iter().flat_map(|piece| wording::check(piece, false)));
    breaches(&page.path, found)
}

fn breaches(path: &str, found: Vec<(Rule, usize, String)>) -> Vec<Breach> {
    let breach = |(rule, line, what): (Rule, usize, String)| Breach {
        rule,
        finding: Finding::new(path, line, format!("{}: {what}", rule.name())),
    };
    found.into_iter().map(breach).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/a/src/a.rs";

    #[track_caller]
    fn expect(text: &str, expected: &[&str]) {
        let tree = Tree::of(&[(PATH, text)]);
        let found: Vec<_> = check(&tree, &[])
            .into_iter()
            .map(|breach| breach.finding.to_string())
            .collect();
        assert_eq!(found.len(), expected.len(), "{text}: {found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{found}, expected {expected}");
        }
    }

    #[test]
    fn comments_are_checked_at_the_line_where_they_break_a_rule() {
        let wide = format!("fn f() {{}} // {}\n", "x".repeat(90));
        let cases = [
            ("/// What it is.\nfn f() {}\n", ":1: summary: "),
            (
                "//! A file.\n//!\n//! It waits\n//! for so long.\n",
                ":4: so-many: ",
            ),
            (
                "fn f() {\n    // A client. Who comes first\n    // is served.\n}\n",
                ":2: who: ",
            ),
            (
                wide.as_str(),
                ":1: columns: the comment line has 103 columns",
            ),
        ];
        for (text, expected) in cases {
            expect(text, &[expected]);
        }
    }

    #[test]
    fn code_and_strings_are_not_prose() {
        expect("fn f() { \"so many\"; }\n", &[]);
        expect("const TEXT: &str = \"\n// for so long\n\";\n", &[]);
        expect(
            "/// An example:\n///\n/// ```\n/// let so_many = 1; // so many\n/// ```\nfn f() {}\n",
            &[],
        );
    }

    #[test]
    fn a_page_is_checked_for_its_wording_and_its_sentences() {
        let long = format!("# Title\n\nIt has{}.\n\nAnd so many.\n", " word".repeat(30));
        let page = Page {
            path: "docs/a.md".into(),
            text: long,
        };
        let found: Vec<_> = check(&Tree::of(&[]), &[page])
            .into_iter()
            .map(|breach| (breach.rule, breach.finding.line))
            .collect();
        assert_eq!(found, [(Rule::Sentence, 3), (Rule::SoMany, 5)]);
    }
}
