//! The arguments of a queue.

use crate::diagnostic::Diagnostic;
use crate::expr::Expr;
use crate::graph::WhenFull;
use crate::parse::{Parse, Parser, Reported};
use crate::suggest;
use crate::token::{Punct, Span};

impl Parser<'_> {
    /// Reads `(room, when_full: policy)`; both arguments are optional.
    pub(super) fn queue(&mut self) -> Parse<(Option<Expr>, Option<WhenFull>)> {
        let open = self.span();
        if !self.eat(Punct::ParenOpen) {
            return Err(self.no_queue("`(`", None));
        }
        let (mut room, mut when_full) = (None, None);
        while !self.eat(Punct::ParenClose) {
            if when_full.is_some() {
                return Err(self.no_queue("`)`", Some(open)));
            }
            let is_policy = self.is_word("when_full");
            if let Some(word) = self.peek_word(0)
                && self.is_punct(1, Punct::Colon)
                && !is_policy
            {
                let message = format!("a queue has no argument `{word}`");
                let error = Diagnostic::error(self.span(), message);
                return Err(self.report(error.help(LOOK)));
            }
            if is_policy {
                self.at += 1;
                self.expect(Punct::Colon)?;
                when_full = Some(self.when_full()?);
            } else if room.is_none() {
                room = Some(self.expr()?);
            } else {
                return Err(self.no_queue("`when_full`", None));
            }
            if !self.eat(Punct::Comma) && !self.is_punct(0, Punct::ParenClose) {
                let what = if when_full.is_some() {
                    "`)`"
                } else {
                    "`,` or `)`"
                };
                return Err(self.no_queue(what, Some(open)));
            }
        }
        Ok((room, when_full))
    }

    fn when_full(&mut self) -> Parse<WhenFull> {
        let word = self.peek_word(0).unwrap_or_default();
        if let Some(policy) = policy(word) {
            self.at += 1;
            return Ok(policy);
        }
        let names = WhenFull::NAMED.iter().map(|(name, _)| *name);
        let mut error = self.unexpected("`wait`, `shed` or `drop_oldest`");
        if let Some(near) = suggest::nearest(word, names) {
            error = error.help(format!("did you mean `{near}`?"));
        }
        Err(self.report(error))
    }

    /// Reports what was expected here instead of an argument, in a list that begins at `open`.
    fn no_queue(&mut self, what: &str, open: Option<Span>) -> Reported {
        let mut error = self.unexpected(what);
        if let Some(open) = open {
            error = error.other(open, "the list begins with this `(`");
        }
        let word = self.peek_word(0).unwrap_or_default();
        self.report(match policy(word) {
            Some(policy) => error.help(format!("name the policy: `when_full: {policy}`")),
            None => error.help(LOOK),
        })
    }
}

/// The help for wrong arguments.
const LOOK: &str = "a queue looks like this: `queue(100, when_full: shed)`";

/// Returns the policy with this name.
fn policy(word: &str) -> Option<WhenFull> {
    let named = WhenFull::NAMED.iter().find(|(name, _)| *name == word);
    named.map(|&(_, policy)| policy)
}
