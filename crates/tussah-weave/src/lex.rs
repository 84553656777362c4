//! The front end for text, which produces tokens.

use crate::diagnostic::Diagnostic;
use crate::token::{Punct, Span, Token, TokenKind};

/// Bound, in bytes: the maximum length of a source; a longer source is an error, since it was not
/// written by a person.
const TEXT_LEN_MAX: usize = 1 << 20;
/// Bound, in errors: the maximum number that are reported for one source. A source with more errors
/// is not Weave.
pub(crate) const ERRORS_MAX: usize = 100;

/// The result of splitting source text into tokens.
#[derive(Clone, Debug, Default)]
pub struct Lexed {
    /// The tokens.
    pub tokens: Vec<Token>,
    /// The comments, which do not count as tokens.
    pub comments: Vec<Comment>,
    /// The errors.
    pub diagnostics: Vec<Diagnostic>,
}

/// A comment that is not documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// The position, delimiters included.
    pub span: Span,
}

/// Splits source text into tokens.
///
/// A macro can use this function for a single literal or for adjacent punctuation characters. A
/// macro that uses this function must set the spans of the resulting tokens itself.
#[must_use]
pub fn lex(text: &str) -> Lexed {
    let mut lexer = Lexer {
        text,
        at: start(text),
        lexed: Lexed::default(),
    };
    if text.len() > TEXT_LEN_MAX {
        let message = format!(
            "the text has {} bytes, more than {TEXT_LEN_MAX}",
            text.len()
        );
        lexer.error(Span::new(0, 0), message);
        return lexer.lexed;
    }
    while lexer.next() {}
    lexer.lexed.diagnostics.truncate(ERRORS_MAX);
    lexer.lexed
}

/// Returns the start of the text after a byte order mark, with which some editors begin a file.
pub(crate) fn start(text: &str) -> usize {
    match text.starts_with('\u{feff}') {
        true => '\u{feff}'.len_utf8(),
        false => 0,
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    lexed: Lexed,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Returns the number of leading bytes for which a condition holds.
    fn run(&self, holds: impl Fn(u8) -> bool) -> usize {
        self.rest().bytes().take_while(|&byte| holds(byte)).count()
    }

    fn span_from(&self, start: usize) -> Span {
        // The text has at most `TEXT_LEN_MAX` bytes.
        Span::new(start as u32, self.at as u32)
    }

    fn push(&mut self, start: usize, kind: TokenKind) {
        let span = self.span_from(start);
        self.lexed.tokens.push(Token { kind, span });
    }

    fn error(&mut self, span: Span, message: impl Into<String>) {
        self.lexed
            .diagnostics
            .push(Diagnostic::error(span, message));
    }

    /// Reads a token, a comment or white space. Returns whether there was one.
    fn next(&mut self) -> bool {
        let start = self.at;
        let Some(first) = self.rest().chars().next() else {
            return false;
        };
        if first.is_whitespace() {
            self.at += first.len_utf8();
        } else if self.rest().starts_with("//") {
            self.line_comment();
        } else if self.rest().starts_with("/*") {
            self.block_comment();
        } else if first.is_ascii_alphabetic() || first == '_' {
            self.at += self.run(is_name);
            self.push(start, TokenKind::Name(self.text[start..self.at].to_owned()));
        } else if first.is_ascii_digit() {
            self.number();
        } else if first == '"' {
            self.string();
        } else if first == '\'' {
            self.lifetime();
        } else if let Some(&(spelling, punct)) = self.punct() {
            self.at += spelling.len();
            self.push(start, TokenKind::Punct(punct));
        } else {
            self.unexpected();
        }
        true
    }

    fn punct(&self) -> Option<&'static (&'static str, Punct)> {
        let mut all = Punct::ALL.iter();
        all.find(|(spelling, _)| self.rest().starts_with(spelling))
    }

    /// Reports a run of characters that begin no token.
    fn unexpected(&mut self) {
        let start = self.at;
        let begins_token = |c: char| {
            c.is_whitespace()
                || c.is_ascii_alphanumeric()
                || matches!(c, '_' | '"' | '\'')
                || Punct::ALL
                    .iter()
                    .any(|(spelling, _)| spelling.starts_with(c))
        };
        let rest = self.rest();
        // A single `|` begins `||` but is no token by itself.
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let more = rest[first..].find(begins_token);
        self.at += more.map_or(rest.len(), |more| first + more);
        let found = &self.text[start..self.at];
        let span = self.span_from(start);
        if found.chars().all(char::is_alphanumeric) {
            self.error(span, "names consist of ASCII letters, digits and `_`");
        } else {
            let error = Diagnostic::error(span, format!("unexpected {found:?}"));
            self.lexed.diagnostics.push(match found.starts_with('#') {
                true => error.help("a comment begins with `//`"),
                false => error,
            });
        }
    }

    fn line_comment(&mut self) {
        let start = self.at;
        let line = self.rest().lines().next().unwrap_or_default();
        self.at += line.len();
        match line.strip_prefix("///") {
            Some(doc) if !doc.starts_with('/') => self.push(start, TokenKind::Doc(doc.to_owned())),
            _ => {
                let span = self.span_from(start);
                self.lexed.comments.push(Comment { span });
            }
        }
    }

    /// Reads a block comment. As in Rust, it can contain others.
    fn block_comment(&mut self) {
        let start = self.at;
        let mut depth = 0_usize;
        loop {
            let rest = self.rest();
            if rest.starts_with("/*") {
                depth += 1;
                self.at += 2;
            } else if rest.starts_with("*/") {
                depth -= 1;
                self.at += 2;
                if depth == 0 {
                    break;
                }
            } else if let Some(c) = rest.chars().next() {
                self.at += c.len_utf8();
            } else {
                let span = Span::new(start as u32, start as u32 + 2);
                self.error(span, "this comment has no end");
                break;
            }
        }
        let comment = &self.text[start..self.at];
        let doc = comment
            .strip_prefix("/**")
            .and_then(|rest| rest.strip_suffix("*/"));
        match doc {
            Some(doc) if !doc.is_empty() && !doc.starts_with('*') => {
                self.push(start, TokenKind::Doc(doc.to_owned()));
            }
            _ => {
                let span = self.span_from(start);
                self.lexed.comments.push(Comment { span });
            }
        }
    }

    /// Reads a decimal number. A unit may follow without a space.
    fn number(&mut self) {
        let start = self.at;
        self.at += self.run(is_digit);
        let mut after = self.rest().bytes();
        if after.next() == Some(b'.') && after.next().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
            self.at += self.run(is_digit);
        }
        let digits = self.text[start..self.at].replace('_', "");
        self.push(start, TokenKind::Number(digits));
    }

    fn lifetime(&mut self) {
        let start = self.at;
        self.at += 1;
        let len = self.run(is_name);
        self.at += len;
        if len == 0 || self.rest().starts_with('\'') {
            self.at += usize::from(self.rest().starts_with('\''));
            let span = self.span_from(start);
            self.lexed.diagnostics.push(
                Diagnostic::error(span, "unexpected quote").help("strings have double quotes"),
            );
            return;
        }
        self.push(
            start,
            TokenKind::Lifetime(self.text[start..self.at].to_owned()),
        );
    }

    fn string(&mut self) {
        let start = self.at;
        self.at += 1;
        let mut content = String::new();
        loop {
            let Some(c) = self.rest().chars().next() else {
                let span = Span::new(start as u32, start as u32 + 1);
                self.error(span, "this string has no end");
                break;
            };
            let escape = self.at;
            self.at += c.len_utf8();
            match c {
                '"' => break,
                '\\' => match self.escape() {
                    Some(text) => content.extend(text),
                    None => {
                        self.at = self.at.max(escape + 1);
                        let span = self.span_from(escape);
                        let help = "escapes: \\n \\r \\t \\\\ \\\" \\' \\0 \\x7f \\u{1f980}";
                        let error = Diagnostic::error(span, "unknown escape").help(help);
                        self.lexed.diagnostics.push(error);
                    }
                },
                // Rust reads a line end of two bytes as one.
                '\r' if self.rest().starts_with('\n') => {}
                c => content.push(c),
            }
        }
        self.push(start, TokenKind::Text(content));
    }

    /// Reads an escape after its backslash: a character, or nothing for an escaped line end.
    fn escape(&mut self) -> Option<Option<char>> {
        let rest = self.rest();
        let first = rest.chars().next()?;
        let (len, value) = match first {
            'n' => (1, '\n'),
            'r' => (1, '\r'),
            't' => (1, '\t'),
            '0' => (1, '\0'),
            '\\' | '"' | '\'' => (1, first),
            'x' => {
                let digits = rest.get(1..3)?;
                let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
                let code = u32::from_str_radix(digits, 16).ok()?;
                (3, char::from_u32(code).filter(|c| is_hex && c.is_ascii())?)
            }
            'u' => {
                let digits = rest.get(2..).filter(|_| rest[1..].starts_with('{'))?;
                let end = digits.find('}').filter(|end| (1..=6).contains(end))?;
                let digits = &digits[..end];
                let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
                let code = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)?;
                (end + 3, char::from_u32(code)?)
            }
            '\n' | '\r' => {
                self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
                return Some(None);
            }
            _ => return None,
        };
        self.at += len;
        Some(Some(value))
    }
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit() || byte == b'_'
}
