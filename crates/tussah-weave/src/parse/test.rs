//! Tests of graphs.

use super::{Parse, Parser};
use crate::expr::Expr;
use crate::suggest;
use crate::token::{Punct, TokenKind};
use crate::tree::{End, Name, TestCase, TestEnd, TestStep};

/// The words that follow a value or begin a step.
pub(super) const WORDS: &[&str] = &[
    "replace",
    "send",
    "expect",
    "advance",
    "drain",
    "within",
    "at",
    "when_full",
    "with",
];

impl Parser<'_> {
    /// Reads a test, from its keyword on.
    pub(super) fn test(&mut self) -> Parse<TestCase> {
        self.expect_word("test")?;
        let span = self.span();
        let Some(TokenKind::Text(name)) = self.peek() else {
            return Err(self.expected("the name of the test in quotes"));
        };
        self.at += 1;
        self.expect_word("of")?;
        let graph = self.graph_name()?;
        let args = self.args()?;
        self.layout.opens.insert(self.at);
        let open = self.expect(Punct::BraceOpen)?;
        let mut steps = Vec::new();
        loop {
            if self.eat(Punct::BraceClose) {
                self.layout.closes.insert(self.at - 1);
                break;
            }
            if self.peek().is_none() {
                let error = self.unexpected("`}`").other(open, "the test begins here");
                return Err(self.report(error));
            }
            let start = self.at;
            self.layout.starts.insert(start);
            match self.step() {
                Ok(step) => steps.push(step),
                Err(_) => self.skip_to_step(start),
            }
        }
        Ok(TestCase {
            name: name.clone(),
            span,
            graph,
            args,
            steps,
        })
    }

    fn step(&mut self) -> Parse<TestStep> {
        let start = self.span();
        let word = self.peek_word(0).unwrap_or_default();
        match word {
            "replace" => {
                self.at += 1;
                let name = self.test_end("the name of an instance")?;
                self.expect_word("with")?;
                let module = self.path("the path of a module")?;
                let (types, args) = (self.types()?, self.args()?);
                Ok(TestStep::Replace {
                    name,
                    module,
                    types,
                    args,
                })
            }
            "send" => {
                self.at += 1;
                let to = self.test_end("an instance or `in`")?;
                let values = self.values()?;
                Ok(TestStep::Send { to, values })
            }
            "expect" => {
                self.at += 1;
                self.expectation()
            }
            "advance" => {
                self.at += 1;
                Ok(TestStep::Advance(self.time()?))
            }
            "drain" => {
                self.at += 1;
                Ok(TestStep::Drain(start))
            }
            _ => {
                let steps = ["replace", "send", "expect", "advance", "drain"];
                let error = self.unexpected("`replace`, `send`, `expect`, `advance` or `drain`");
                let error = match suggest::nearest(word, steps) {
                    Some(near) => error.help(format!("did you mean `{near}`?")),
                    None => error,
                };
                Err(self.report(error))
            }
        }
    }

    fn expectation(&mut self) -> Parse<TestStep> {
        let (at, values) = if self.eat_word("nothing") {
            self.expect_word("at")?;
            (self.test_end("an instance or `out`")?, Vec::new())
        } else {
            let at = self.test_end("an instance or `out`")?;
            (at, self.values()?)
        };
        let within = match self.eat_word("within") {
            true => Some(self.time()?),
            false => None,
        };
        Ok(TestStep::Expect { at, values, within })
    }

    /// Reads an instance or a port, which can be inside nested graphs.
    fn test_end(&mut self, what: &str) -> Parse<TestEnd> {
        let End { name, port } = self.end(what)?;
        let mut names: Vec<Name> = [name].into_iter().chain(port).collect();
        while names.len() > 1 && self.eat(Punct::Dot) {
            names.push(self.any_name("the name of an instance or a port")?);
        }
        Ok(TestEnd { names })
    }

    fn values(&mut self) -> Parse<Vec<Expr>> {
        let mut values = vec![self.value()?];
        while self.eat(Punct::Comma) {
            values.push(self.value()?);
        }
        Ok(values)
    }

    fn value(&mut self) -> Parse<Expr> {
        if WORDS.contains(&self.peek_word(0).unwrap_or_default()) {
            let error = self.unexpected("a value").help("text needs quotes");
            return Err(self.report(error));
        }
        self.expr()
    }

    fn time(&mut self) -> Parse<Expr> {
        if WORDS.contains(&self.peek_word(0).unwrap_or_default()) {
            return Err(self.expected("a duration"));
        }
        self.sum()
    }

    fn skip_to_step(&mut self, start: usize) {
        self.at = self.at.max(start + 1);
        while let Some(kind) = self.peek() {
            match kind {
                TokenKind::Punct(Punct::BraceClose) => return,
                TokenKind::Name(word) if WORDS[..5].contains(&word.as_str()) => return,
                _ => self.at += 1,
            }
        }
    }
}
