//! Limits: the lists of their instances.

use crate::parse::{Parse, Parser, Reported};
use crate::token::{Punct, Token, TokenKind};
use crate::tree::LimitRule;

impl Parser<'_> {
    /// Reads a limit, from its keyword on.
    pub(super) fn limit(&mut self) -> Parse<LimitRule> {
        let start = self.span();
        self.expect_word("limit")?;
        let count = self.sum()?;
        self.expect_word("in")?;
        let names = self.list(Punct::BraceOpen, Punct::BraceClose, |parser| {
            let name = parser.name("the name of an instance")?;
            if parser.is_punct(0, Punct::Dot) {
                let error = parser.unexpected("`,` or `}`");
                return Err(parser.report(error.help("a limit names instances, without ports")));
            }
            Ok(name)
        });
        let Ok(names) = names else {
            self.skip_names();
            return Err(Reported);
        };
        let span = self.since(start);
        Ok(LimitRule { count, names, span })
    }

    /// Continues after the brace that ends a list of names, if nothing else precedes the brace.
    fn skip_names(&mut self) {
        let is_part = |token: &&Token| {
            let kind = &token.kind;
            matches!(
                kind,
                TokenKind::Name(_) | TokenKind::Punct(Punct::Comma | Punct::Dot)
            )
        };
        let rest = self.tokens[self.at..].iter();
        let end = self.at + rest.take_while(is_part).count();
        let close = TokenKind::Punct(Punct::BraceClose);
        if self
            .tokens
            .get(end)
            .is_some_and(|token| token.kind == close)
        {
            self.at = end + 1;
        }
    }
}
