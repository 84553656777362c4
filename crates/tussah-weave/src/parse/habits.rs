//! Errors about what people write out of the habit of other languages.

use super::{Parse, Parser, Reported};
use crate::diagnostic::Diagnostic;
use crate::suggest;
use crate::token::{Punct, TokenKind};
use crate::tree::{End, Name};

impl Parser<'_> {
    /// Reports a token with which no statement begins.
    pub(super) fn no_statement(&mut self) -> Reported {
        let error = self.unexpected("a statement");
        let error = match self.peek() {
            Some(TokenKind::Punct(Punct::Semicolon)) => {
                // One of many.
                if std::mem::replace(&mut self.has_semicolon, true) {
                    return Reported;
                }
                error.help("a statement has no semicolon")
            }
            Some(TokenKind::Punct(Punct::Comma)) => {
                error.help("each receiver has an edge of its own: `a -> b`, and then `a -> c`")
            }
            Some(TokenKind::Punct(Punct::BracketOpen | Punct::ParenOpen)) => {
                error.help("each sender has an edge of its own: `a -> c`, and then `b -> c`")
            }
            _ => error,
        };
        self.report(error)
    }

    /// Reports a word after which no statement goes on.
    pub(super) fn half_statement(&mut self, word: &str) -> Reported {
        let span = |ahead: usize| {
            let token = self.tokens.get(self.at + ahead);
            token.map_or(self.end, |token| token.span)
        };
        if word == "else" {
            let error = Diagnostic::error(span(0), "this `else` follows no `if`");
            return self.report(error);
        }
        if self.is_punct(1, Punct::Less) && self.is_punct(2, Punct::Minus) {
            let error = Diagnostic::error(span(1).to(span(2)), "expected `->`, found `<-`");
            let from = self.peek_word(3).unwrap_or("a");
            let help = format!("an edge begins at its sender: `{from} -> {word}`");
            return self.report(error.help(help));
        }
        let found = match self.peek_at(1) {
            Some(next) => next.to_string(),
            None => "the end".to_owned(),
        };
        let message = format!("expected `=`, `.` or `->` after `{word}`, found {found}");
        let error = Diagnostic::error(span(1), message);
        if self.is_punct(1, Punct::Colon) {
            let (text, span) = (word.to_owned(), span(0));
            self.lost.push(Name { text, span });
        }
        let near = suggest::nearest(word, ["shed", "limit", "fuse", "if"]);
        self.report(match near {
            Some(near) if near != word => error.help(format!("did you mean `{near}`?")),
            _ => error.help("`name = Module()` adds an instance, `a -> b` adds an edge"),
        })
    }

    /// Reports a graph inside a graph, and reads it like one beside it.
    pub(super) fn nested_graph(&mut self, doc: String) -> Parse<()> {
        let error = Diagnostic::error(self.span(), "a graph is not defined inside another");
        self.report(error.help("define it beside this graph, and add an instance of it here"));
        let outer = (std::mem::take(&mut self.lost), self.has_lost_limit);
        let graph = self.nested(|parser| parser.graph(doc));
        (self.lost, self.has_lost_limit) = outer;
        self.inner.push(graph?);
        Ok(())
    }

    /// Reports a token between a condition and its block.
    pub(super) fn no_block(&mut self) -> Reported {
        let error = self.unexpected("`{`");
        let before = self
            .at
            .checked_sub(1)
            .map(|before| &self.tokens[before].kind);
        let is_not = before.is_some_and(|before| *before == TokenKind::Name("not".into()));
        let help = match (self.peek_word(0), is_not) {
            (Some("and"), _) => "did you mean `&&`?",
            (Some("or"), _) => "did you mean `||`?",
            (_, true) => "write `!` instead of `not`",
            _ if self.is_punct(0, Punct::Assign) => "did you mean `==`?",
            _ => return self.report(error),
        };
        self.report(error.help(help))
    }

    /// Reads the field after `by`. Without one, the next statement may begin here.
    pub(super) fn field(&mut self) -> Parse<String> {
        let next = [Punct::Assign, Punct::Arrow, Punct::Dot];
        let begins = self.is_word("if")
            || self.is_word("fuse")
            || next.into_iter().any(|punct| self.is_punct(1, punct));
        if self.peek_word(0).is_some() && !begins {
            return Ok(self.any_name("a field of the items")?.text);
        }
        let by = self.tokens[self.at - 1].span;
        let error = Diagnostic::error(by, "no field follows `by`");
        Err(self.report(error.help("write a field of the items, or leave `by` out")))
    }

    /// Reports a new name for a module, and reads it.
    pub(super) fn refuse_renaming(&mut self, module: &Name) -> Parse<()> {
        let start = self.span();
        if self.eat_word("as") {
            self.any_name("a name")?;
            let error = Diagnostic::error(self.since(start), "`use` cannot rename a module");
            let help = format!(
                "use the name `{}`; if it is taken, write the whole path at the instances",
                module.text
            );
            self.report(error.help(help));
        }
        Ok(())
    }

    /// Returns whether a `(` follows the last token without a space.
    pub(super) fn is_attached(&self) -> bool {
        let before = self
            .at
            .checked_sub(1)
            .map(|before| self.tokens[before].span);
        let is_adjacent = before.is_some_and(|before| before.end == self.span().start);
        is_adjacent && self.is_punct(0, Punct::ParenOpen)
    }

    /// Reports an edge to a module: a path or a name with arguments.
    pub(super) fn refuse_module(&mut self, to: &End) -> Parse<()> {
        if !self.is_attached() && !self.is_punct(0, Punct::PathSep) {
            return Ok(());
        }
        let message = "an edge leads to an instance, not to a module";
        let error = Diagnostic::error(to.span(), message);
        Err(self.report(error.help("add an instance, `name = Module()`, and an edge to `name`")))
    }

    /// Reports an address without quotes, after its first number.
    pub(super) fn refuse_address(&mut self) -> Parse<()> {
        let is_number = |kind: Option<&TokenKind>| matches!(kind, Some(TokenKind::Number(_)));
        if !self.is_punct(0, Punct::Dot) || !is_number(self.peek_at(1)) {
            return Ok(());
        }
        let start = self.tokens[self.at - 1].span;
        while self.is_punct(0, Punct::Dot)
            || self.is_punct(0, Punct::Colon)
            || is_number(self.peek())
        {
            self.at += 1;
        }
        let error = Diagnostic::error(self.since(start), "an address needs quotes");
        Err(self.report(error.help("an address looks like this: \"127.0.0.1:8080\"")))
    }
}
