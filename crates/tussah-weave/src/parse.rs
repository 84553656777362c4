//! The parser: recursive descent over tokens, which continues after an error.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use crate::diagnostic::Diagnostic;
use crate::lex::{self, lex};
use crate::suggest;
use crate::token::{Punct, Span, Token, TokenKind};
use crate::tree::{Definition, File, Name, Path};
use crate::unit::NumberError;

#[cfg(test)]
pub(crate) use self::constant::expression;
pub(crate) use self::constant::{ConstantError, constant};

mod constant;
mod expr;
mod graph;
mod habits;
mod import;
mod name;
mod statement;
mod test;

/// Bound, in levels: the maximum depth of nesting; more is an error, since the parser recurses.
const DEPTH_MAX: usize = 32;

/// The result of parsing a file.
#[derive(Clone, Debug, Default)]
pub struct Parsed {
    /// The tree, without the parts that contain errors.
    pub file: File,
    /// The errors.
    pub diagnostics: Vec<Diagnostic>,
}

/// Parses source text.
#[must_use]
pub fn parse(text: &str) -> Parsed {
    let lexed = lex(text);
    let end = u32::try_from(text.trim_end().len()).unwrap_or(0);
    let mut parsed = parse_tokens(&lexed.tokens, Span::new(end, end));
    // A wrong token explains the errors that follow it.
    if !lexed.diagnostics.is_empty() {
        parsed.diagnostics = lexed.diagnostics;
        parsed.file.is_broken = true;
        parsed
            .file
            .graphs
            .iter_mut()
            .for_each(|graph| graph.is_broken = true);
    }
    parsed
}

/// Parses the tokens of a macro. If a token is missing at the end of the input, the error has the
/// position `end`.
#[must_use]
pub fn parse_tokens(tokens: &[Token], end: Span) -> Parsed {
    let mut parser = Parser::new(tokens, end);
    let mut file = parser.file();
    file.is_broken = !parser.diagnostics.is_empty();
    let mut diagnostics = parser.diagnostics;
    diagnostics.truncate(lex::ERRORS_MAX);
    Parsed { file, diagnostics }
}

/// The words that cannot be names of instances or parameters.
pub(crate) const KEYWORDS: &[&str] = &[
    "use", "graph", "test", "if", "else", "in", "out", "shed", "limit", "fuse", "via", "after",
    "when", "by", "workers", "true", "false",
];

/// The result of a production. After `Err` the parser has reported the error.
type Parse<T> = Result<T, Reported>;

/// The proof that an error is reported.
#[derive(Debug)]
struct Reported;

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    end: Span,
    depth: usize,
    /// True after an error that leaves no place from which to continue in this item.
    is_lost: bool,
    /// The operators of the current expression, so that its tree is bounded.
    operators: usize,
    /// The instances of the current graph whose statements did not parse.
    lost: Vec<Name>,
    /// The words that cannot be names, but are those of an instance or a parameter. Each of them is
    /// reported where it is defined.
    refused: BTreeSet<&'a str>,
    /// True if a limit of the current graph did not parse.
    has_lost_limit: bool,
    /// The graphs that are defined inside another.
    inner: Vec<Definition>,
    /// The reason why the last wrong number has no value.
    wrong_number: Option<NumberError>,
    /// True if a semicolon is reported.
    has_semicolon: bool,
    diagnostics: Vec<Diagnostic>,
    layout: Layout,
}

/// Positions of tokens, by their indices, that decide where the formatter breaks lines.
#[derive(Default)]
pub(crate) struct Layout {
    /// The first tokens of items, statements and steps.
    pub(crate) starts: BTreeSet<usize>,
    /// The braces that open blocks.
    pub(crate) opens: BTreeSet<usize>,
    /// The braces that close blocks.
    pub(crate) closes: BTreeSet<usize>,
    /// The parentheses around the parameters of graphs.
    pub(crate) params: Vec<RangeInclusive<usize>>,
    /// The first tokens of parameters.
    pub(crate) param_starts: BTreeSet<usize>,
    /// The tokens of Rust types.
    pub(crate) types: BTreeSet<usize>,
}

/// Returns the layout of a file without errors.
pub(crate) fn layout(tokens: &[Token]) -> Layout {
    let mut parser = Parser::new(tokens, Span::default());
    parser.file();
    parser.layout
}

impl<'a> Parser<'a> {
    fn new(tokens: &'a [Token], end: Span) -> Self {
        Self {
            tokens,
            at: 0,
            end,
            depth: 0,
            is_lost: false,
            operators: 0,
            lost: Vec::new(),
            refused: BTreeSet::new(),
            has_lost_limit: false,
            inner: Vec::new(),
            wrong_number: None,
            has_semicolon: false,
            diagnostics: Vec::new(),
            layout: Layout::default(),
        }
    }

    fn peek_at(&self, ahead: usize) -> Option<&'a TokenKind> {
        self.tokens.get(self.at + ahead).map(|token| &token.kind)
    }

    fn peek(&self) -> Option<&'a TokenKind> {
        self.peek_at(0)
    }

    /// Returns the next token if it is a name.
    fn peek_word(&self, ahead: usize) -> Option<&'a str> {
        match self.peek_at(ahead) {
            Some(TokenKind::Name(name)) => Some(name),
            _ => None,
        }
    }

    fn is_punct(&self, ahead: usize, punct: Punct) -> bool {
        self.peek_at(ahead) == Some(&TokenKind::Punct(punct))
    }

    fn is_word(&self, word: &str) -> bool {
        self.peek_word(0) == Some(word)
    }

    /// Returns the position of the next token.
    fn span(&self) -> Span {
        self.tokens
            .get(self.at)
            .map_or(self.end, |token| token.span)
    }

    /// Returns the position from a start to the last token that was read.
    fn since(&self, start: Span) -> Span {
        match self
            .at
            .checked_sub(1)
            .and_then(|last| self.tokens.get(last))
        {
            Some(last) if last.span.end >= start.end => start.to(last.span),
            _ => start,
        }
    }

    fn eat(&mut self, punct: Punct) -> bool {
        let is_next = self.is_punct(0, punct);
        self.at += usize::from(is_next);
        is_next
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let is_next = self.is_word(word);
        self.at += usize::from(is_next);
        is_next
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Reported {
        if !self.is_lost {
            self.diagnostics.push(diagnostic);
        }
        Reported
    }

    /// Reports an error that states what was expected here.
    fn expected(&mut self, what: &str) -> Reported {
        let diagnostic = self.unexpected(what);
        self.report(diagnostic)
    }

    /// Returns an error that states what was expected here.
    fn unexpected(&self, what: &str) -> Diagnostic {
        let message = match self.peek() {
            Some(found) => format!("expected {what}, found {found}"),
            None => format!("expected {what}, found the end"),
        };
        Diagnostic::error(self.span(), message)
    }

    fn expect(&mut self, punct: Punct) -> Parse<Span> {
        let span = self.span();
        match self.eat(punct) {
            true => Ok(span),
            false => Err(self.expected(&format!("`{punct}`"))),
        }
    }

    fn expect_word(&mut self, word: &str) -> Parse<()> {
        match self.eat_word(word) {
            true => Ok(()),
            false => Err(self.expected(&format!("`{word}`"))),
        }
    }

    /// Reads a name that may also be a keyword: a port, a field, a module or a parameter of one.
    fn any_name(&mut self, what: &str) -> Parse<Name> {
        let Some(word) = self.peek_word(0) else {
            return Err(self.expected(what));
        };
        let span = self.span();
        self.at += 1;
        Ok(Name {
            text: word.to_owned(),
            span,
        })
    }

    fn path(&mut self, what: &str) -> Parse<Path> {
        let mut names = vec![self.any_name(what)?];
        while self.is_punct(0, Punct::PathSep) && self.peek_word(1).is_some() {
            self.at += 1;
            names.push(self.any_name(what)?);
        }
        Ok(Path { names })
    }

    /// Reads documentation comments.
    fn docs(&mut self) -> String {
        let mut lines: Vec<&str> = Vec::new();
        while let Some(TokenKind::Doc(doc)) = self.peek() {
            let line = doc.strip_prefix(' ').unwrap_or(doc);
            lines.push(line.trim_end());
            self.at += 1;
        }
        lines.join("\n")
    }

    /// Reads a list between delimiters, separated by commas.
    fn list<T>(
        &mut self,
        open: Punct,
        close: Punct,
        mut item: impl FnMut(&mut Self) -> Parse<T>,
    ) -> Parse<Vec<T>> {
        let start = self.expect(open)?;
        let mut items = Vec::new();
        while !self.eat(close) {
            items.push(item(self)?);
            if !self.eat(Punct::Comma) && !self.is_punct(0, close) {
                let what = format!("`,` or `{close}`");
                let error = self
                    .unexpected(&what)
                    .other(start, format!("the list begins with this `{open}`"));
                return Err(self.report(error));
            }
        }
        Ok(items)
    }

    /// Runs a production one level deeper.
    fn nested<T>(&mut self, production: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth == DEPTH_MAX {
            let message = format!("this is nested more than {DEPTH_MAX} levels deep");
            let reported = self.report(Diagnostic::error(self.span(), message));
            self.is_lost = true;
            return Err(reported);
        }
        self.depth += 1;
        let result = production(self);
        self.depth -= 1;
        result
    }

    fn file(&mut self) -> File {
        let mut file = File::default();
        while self.peek().is_some() {
            let start = self.at;
            self.is_lost = false;
            if self.item(&mut file).is_err() {
                self.skip_to_item(start);
            }
        }
        file
    }

    /// Reads a `use`, a graph or a test.
    fn item(&mut self, file: &mut File) -> Parse<()> {
        self.layout.starts.insert(self.at);
        let doc = self.docs();
        match self.peek_word(0) {
            Some("use") => {
                self.at += 1;
                self.imports(&mut Vec::new(), &mut file.imports)?;
                while self.eat(Punct::Comma) {
                    self.imports(&mut Vec::new(), &mut file.imports)?;
                }
                // Rust's habit: a semicolon ends a `use`.
                if self.is_punct(0, Punct::Semicolon) {
                    let error = self.unexpected("`use`, `graph` or `test`");
                    return Err(self.report(error.help("`use` has no semicolon")));
                }
                Ok(())
            }
            Some("graph") => {
                let graph = self.graph(doc);
                file.graphs.append(&mut self.inner);
                file.graphs.push(graph?);
                Ok(())
            }
            Some("test") => {
                let test = self.test()?;
                file.tests.push(test);
                Ok(())
            }
            found => {
                let mut error = self.unexpected("`use`, `graph` or `test`");
                if let Some(near) =
                    found.and_then(|word| suggest::nearest(word, ["use", "graph", "test"]))
                {
                    error = error.help(format!("did you mean `{near}`?"));
                }
                Err(self.report(error))
            }
        }
    }

    /// Continues after an error at the next item.
    fn skip_to_item(&mut self, start: usize) {
        self.at = self.at.max(start + 1);
        while self.peek().is_some() && !self.begins_item() {
            self.at += 1;
        }
    }
}
