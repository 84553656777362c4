//! The text of the tokens of `weave!`, with each token at its place in the source file.
//!
//! The same parser reads this text and files, so both yield identical graphs. A place in the text
//! maps back to a token.

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use syn::LitStr;

/// The text of tokens.
#[derive(Default)]
pub(super) struct Text {
    /// The text. Its first token is in the line that it has in the source file.
    pub(super) text: String,
    /// The first byte of each token, in order.
    tokens: Vec<(u32, Span)>,
    /// The current line and column; both begin with 0.
    line: usize,
    column: usize,
}

impl Text {
    /// Writes tokens.
    pub(super) fn of(tokens: TokenStream) -> Self {
        let mut text = Self::default();
        text.all(tokens);
        text.text.push('\n');
        text
    }

    /// Returns the token at a place of the text.
    pub(super) fn span(&self, at: tussah_weave::Span) -> Span {
        let before = self
            .tokens
            .iter()
            .rev()
            .find(|(start, _)| *start <= at.start);
        before.map_or_else(Span::call_site, |(_, span)| *span)
    }

    fn all(&mut self, tokens: TokenStream) {
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            let doc = match (&token, tokens.peek()) {
                (TokenTree::Punct(hash), Some(TokenTree::Group(group)))
                    if hash.as_char() == '#' =>
                {
                    doc(group.stream())
                }
                _ => None,
            };
            match (doc, token) {
                (Some(doc), token) => {
                    tokens.next();
                    for line in doc.value().split('\n') {
                        self.write(&format!("///{line}"), token.span());
                        self.newline();
                    }
                }
                (None, TokenTree::Group(group)) => {
                    let (open, close) = match group.delimiter() {
                        Delimiter::Parenthesis => ("(", ")"),
                        Delimiter::Brace => ("{", "}"),
                        Delimiter::Bracket => ("[", "]"),
                        Delimiter::None => ("", ""),
                    };
                    self.write(open, group.span_open());
                    self.all(group.stream());
                    self.write(close, group.span_close());
                }
                (None, token) => self.write(&token.to_string(), token.span()),
            }
        }
    }

    /// Writes a token at its place in the source file. A token from another macro has no usable
    /// place, so it follows the previous token after a space.
    fn write(&mut self, token: &str, span: Span) {
        let start = span.start();
        let (line, column) = (start.line.saturating_sub(1), start.column);
        if (line, column) < (self.line, self.column) {
            self.text.push(' ');
            self.column += 1;
        }
        while self.line < line {
            self.newline();
        }
        while self.line == line && self.column < column {
            self.text.push(' ');
            self.column += 1;
        }
        self.tokens.push((self.text.len() as u32, span));
        self.text.push_str(token);
        match token.rsplit_once('\n') {
            None => self.column += token.chars().count(),
            Some((before, last)) => {
                self.line += before.matches('\n').count() + 1;
                self.column = last.chars().count();
            }
        }
    }

    fn newline(&mut self) {
        self.text.push('\n');
        self.line += 1;
        self.column = 0;
    }
}

/// Returns the text of a documentation comment, which is an attribute by now.
fn doc(attribute: TokenStream) -> Option<LitStr> {
    let mut tokens = attribute.into_iter();
    match (tokens.next(), tokens.next(), tokens.next(), tokens.next()) {
        (
            Some(TokenTree::Ident(name)),
            Some(TokenTree::Punct(_)),
            Some(TokenTree::Literal(text)),
            None,
        ) if name == "doc" => syn::parse2(TokenTree::from(text).into()).ok(),
        _ => None,
    }
}
