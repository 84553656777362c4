//! The prose of a Markdown text, in pieces, without its code.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// The place of a piece of prose in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Paragraph,
    Item,
    Heading,
    Cell,
}

/// A paragraph, a list item, a heading or a table cell.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) place: Place,
    /// The text on a single line; a piece of code is a single word in backticks.
    pub(super) text: String,
    /// The offset in the text at which each line begins, with its number from 1.
    lines: Vec<(usize, usize)>,
}

impl Piece {
    fn new(place: Place) -> Self {
        Self {
            place,
            text: String::new(),
            lines: Vec::new(),
        }
    }

    /// Returns the line, counted from 1, of the text at an offset.
    pub(super) fn line(&self, offset: usize) -> usize {
        let before = self.lines.iter().take_while(|(start, _)| *start <= offset);
        before.last().map_or(1, |(_, line)| *line)
    }
}

/// Returns the pieces in the order of the text; code blocks, pictures and HTML are left out.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let mut reader = Reader::default();
    let parser = Parser::new_ext(text, Options::ENABLE_TABLES);
    for (event, range) in parser.into_offset_iter() {
        let line = 1 + text[..range.start].matches('\n').count();
        reader.read(event, line);
    }
    reader.flush();
    reader.pieces
}

#[derive(Default)]
struct Reader {
    pieces: Vec<Piece>,
    current: Option<Piece>,
    /// The number of open elements whose text is not prose.
    left_out: usize,
}

impl Reader {
    fn read(&mut self, event: Event<'_>, line: usize) {
        match event {
            Event::Start(Tag::CodeBlock(_) | Tag::Image { .. }) => self.left_out += 1,
            Event::End(TagEnd::CodeBlock | TagEnd::Image) => self.left_out -= 1,
            Event::Start(Tag::Paragraph) => {
                // A paragraph in a list item is part of that item.
                let place = match &self.current {
                    Some(piece) if piece.text.is_empty() => piece.place,
                    _ => Place::Paragraph,
                };
                self.begin(place);
            }
            Event::Start(Tag::Item) => self.begin(Place::Item),
            Event::Start(Tag::Heading { .. }) => self.begin(Place::Heading),
            Event::Start(Tag::TableCell) => self.begin(Place::Cell),
            Event::End(
                TagEnd::Paragraph | TagEnd::Item | TagEnd::Heading(_) | TagEnd::TableCell,
            ) => self.flush(),
            Event::Text(text) => self.push(&text, line),
            Event::Code(code) => {
                let word = code.split_whitespace().collect::<Vec<_>>().join("_");
                self.push(&format!("`{word}`"), line);
            }
            Event::SoftBreak | Event::HardBreak => self.push(" ", line),
            _ => {}
        }
    }

    fn begin(&mut self, place: Place) {
        self.flush();
        self.current = Some(Piece::new(place));
    }

    fn push(&mut self, text: &str, line: usize) {
        if self.left_out > 0 {
            return;
        }
        if let Some(piece) = &mut self.current {
            piece.lines.push((piece.text.len(), line));
            piece.text.push_str(text);
        }
    }

    fn flush(&mut self) {
        let finished = self.current.take();
        self.pieces
            .extend(finished.filter(|piece| !piece.text.is_empty()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_cut_into_pieces() {
        use Place::{Cell, Heading, Item, Paragraph};
        let check = |text: &str, expected: &[(Place, &str)]| {
            let pieces = pieces(text);
            let found: Vec<_> = pieces
                .iter()
                .map(|piece| (piece.place, &*piece.text))
                .collect();
            assert_eq!(found, expected, "{text}");
        };
        check("# A *b*\n\nc\nd\n", &[(Heading, "A b"), (Paragraph, "c d")]);
        check("a `b c` d\n", &[(Paragraph, "a `b_c` d")]);
        check("[a b](https://c) ![d](e)\n", &[(Paragraph, "a b ")]);
        check(
            "- a\n- b\n  - c\n",
            &[(Item, "a"), (Item, "b"), (Item, "c")],
        );
        check("- a\n\n- b\n", &[(Item, "a"), (Item, "b")]);
        check(
            "| a | b |\n|---|---|\n| c | |\n",
            &[(Cell, "a"), (Cell, "b"), (Cell, "c")],
        );
        check(
            "a\n\n```sh\nb\n```\n\n    c\n\nd\n",
            &[(Paragraph, "a"), (Paragraph, "d")],
        );
        check("<p>\na\n</p>\n\nb\n", &[(Paragraph, "b")]);
    }

    #[test]
    fn the_line_of_a_word_is_known() {
        let pieces = pieces("a\n\n- b\n  c `d`\n  e\n");
        let line = |word: &str| pieces[1].line(pieces[1].text.find(word).unwrap());
        assert_eq!(pieces[0].line(0), 1);
        assert_eq!(["b", "c", "d", "e"].map(line), [3, 4, 4, 5]);
    }
}
