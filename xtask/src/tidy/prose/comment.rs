//! The comments of a Rust file, grouped into blocks of adjacent lines.

use std::collections::BTreeMap;

use super::super::source::Source;
use super::Rule;

/// Bound, in columns: two files fit next to each other on a screen.
const COLUMNS_MAX: usize = 100;

/// The markers that begin a line comment, the longer ones first.
const MARKERS: [(&str, Kind); 4] = [
    ("////", Kind::Plain),
    ("///", Kind::Documentation),
    ("//!", Kind::Documentation),
    ("//", Kind::Plain),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Documentation,
    Plain,
}

/// Comment lines that follow each other, without code between them.
#[derive(Debug)]
pub(super) struct Block {
    /// The first line, counted from 1.
    pub(super) line: usize,
    marker: &'static str,
    kind: Kind,
    /// The text of each line after its marker, with any indentation beyond one space.
    pub(super) lines: Vec<String>,
    /// The width of each line in columns, including everything before the comment.
    widths: Vec<usize>,
}

impl Block {
    pub(super) fn is_documentation(&self) -> bool {
        self.kind == Kind::Documentation
    }

    /// Returns the lines over the limit, except for table rows and lines with an address, which
    /// cannot be wrapped.
    pub(super) fn too_wide(&self) -> Vec<(Rule, usize, String)> {
        let lines = self.lines.iter().zip(&self.widths).enumerate();
        let wide = lines.filter(|(_, (text, width))| {
            **width > COLUMNS_MAX && !text.contains("://") && !text.trim_start().starts_with('|')
        });
        wide.map(|(at, (_, width))| {
            let what = format!(
                "the comment line has {width} columns, expected at most {COLUMNS_MAX}; wrap it"
            );
            (Rule::Columns, self.line + at, what)
        })
        .collect()
    }
}

/// Returns the blocks of line comments; `/* */` comments are left out.
pub(super) fn blocks(source: &Source) -> Vec<Block> {
    let code_ends = code_ends(source);
    let mut blocks: Vec<Block> = Vec::new();
    let mut may_continue = false;
    for (line, text) in (1..).zip(source.text.lines()) {
        let code_end = code_ends.get(&line).copied();
        let Some((marker, kind, comment)) = comment_of(text, code_end) else {
            may_continue = false;
            continue;
        };
        let alone = code_end.is_none_or(|end| matches!(end, End::Comment));
        let comment = comment.strip_prefix(' ').unwrap_or(comment).to_owned();
        let width = text.chars().count();
        match blocks.last_mut() {
            Some(block) if may_continue && alone && block.marker == marker => {
                block.lines.push(comment);
                block.widths.push(width);
            }
            _ => blocks.push(Block {
                line,
                marker,
                kind,
                lines: vec![comment],
                widths: vec![width],
            }),
        }
        may_continue = alone;
    }
    blocks
}

/// The part of a line that tokens cover.
#[derive(Clone, Copy, Debug)]
enum End {
    /// Only a documentation comment, which is a token too.
    Comment,
    /// Code up to this column.
    Code(usize),
    /// A literal that continues on the next line.
    Literal,
}

/// Returns the column at which the code of each line ends.
fn code_ends(source: &Source) -> BTreeMap<usize, End> {
    let lines: Vec<&str> = source.text.lines().collect();
    let in_comment = |line: usize| lines[line - 1].trim_start().starts_with("//");
    let mut ends = BTreeMap::new();
    for token in &source.tokens {
        let begins = token.line;
        for line in begins..token.end.line {
            ends.insert(line, End::Literal);
        }
        let last = token.end.line;
        match ends.get(&last) {
            Some(End::Code(column)) if *column >= token.end.column => {}
            _ if begins == last && in_comment(last) => {
                ends.entry(last).or_insert(End::Comment);
            }
            _ => {
                ends.insert(last, End::Code(token.end.column));
            }
        }
    }
    ends
}

/// Returns the marker, the kind and the text of the comment at the end of a line.
fn comment_of(line: &str, code: Option<End>) -> Option<(&'static str, Kind, &str)> {
    let rest = match code {
        None | Some(End::Comment) => line,
        Some(End::Literal) => return None,
        Some(End::Code(column)) => {
            let (at, _) = line.char_indices().nth(column)?;
            &line[at..]
        }
    };
    let rest = rest.trim_start();
    let found = MARKERS.iter().find(|(marker, _)| rest.starts_with(marker));
    found.map(|&(marker, kind)| (marker, kind, &rest[marker.len()..]))
}

#[cfg(test)]
mod tests {
    use super::super::super::source::Tree;
    use super::*;

    fn found(text: &str) -> Vec<(usize, String)> {
        let tree = Tree::of(&[("a.rs", text)]);
        let blocks = blocks(&tree.files[0]);
        blocks
            .into_iter()
            .map(|block| (block.line, block.lines.join("\n")))
            .collect()
    }

    #[test]
    fn comments_are_found_in_blocks() {
        let check = |text: &str, expected: &[(usize, &str)]| {
            let found = found(text);
            let found: Vec<_> = found.iter().map(|(line, text)| (*line, &**text)).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("//! a\n//!\n//!  b\n\n// c\n", &[(1, "a\n\n b"), (5, "c")]);
        check("// a\n/// b\nfn f() {}\n", &[(1, "a"), (2, "b")]);
        check("fn f() {} // a\n// b\n", &[(1, "a"), (2, "b")]);
        check("fn f() { g(\"// no\", 'ü'); // ä\n}\n", &[(1, "ä")]);
        check("const A: &str = \"\n// no\n/// no\n\"; // a\n", &[(4, "a")]);
        check("const A: &str = r#\"// no\n  // no \"#;\n", &[]);
        check("m! { // a\n    1 } // b\n", &[(1, "a"), (2, "b")]);
        check(
            "struct S {\n    /// a\n    a: u8, // b\n}\n",
            &[(2, "a"), (3, "b")],
        );
    }

    #[test]
    fn wide_lines_are_found_but_for_addresses_and_tables() {
        let check = |text: &str, expected: usize| {
            let tree = Tree::of(&[("a.rs", text)]);
            let blocks = blocks(&tree.files[0]);
            let wide: usize = blocks.iter().map(|block| block.too_wide().len()).sum();
            assert_eq!(wide, expected, "{text}");
        };
        let x = "x".repeat(97);
        check(&format!("// {x}\n"), 0);
        check(&format!("// ü{x}\n"), 1);
        check(&format!("//! {x}\n"), 1);
        check(&format!("mod m {{\n    /// {x}\n    fn f() {{}}\n}}\n"), 1);
        check(&format!("fn f() {{}} // {x}\n"), 1);
        check(&format!("// https://{x}\n"), 0);
        check(&format!("/// | {x} |\nfn f() {{}}\n"), 0);
        check(&format!("const A: &str = \"// {x}\";\n"), 0);
    }
}
