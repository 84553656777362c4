//! Statements of a graph.

mod limit;
mod queue;

use super::{Parse, Parser};
use crate::diagnostic::Diagnostic;
use crate::graph::{Arg, Shards};
use crate::token::{Punct, Span, TokenKind};
use crate::tree::{Chain, Choice, End, Hop, HopKind, Instance, Name, ShedRule, Statement};

impl Parser<'_> {
    /// Reads statements between braces.
    pub(super) fn block(&mut self) -> Parse<Vec<Statement>> {
        self.layout.opens.insert(self.at);
        let open = self.expect(Punct::BraceOpen)?;
        let mut statements = Vec::new();
        loop {
            if self.eat(Punct::BraceClose) {
                self.layout.closes.insert(self.at - 1);
                break;
            }
            if self.peek().is_none() {
                let error = self.unexpected("`}`").other(open, "the block begins here");
                return Err(self.report(error));
            }
            let start = self.at;
            if self.is_word("graph") && self.peek_word(1).is_some() {
                if self.nested_graph(String::new()).is_err() {
                    self.skip_to_statement(start);
                }
                continue;
            }
            match self.statement() {
                Ok(statement) => statements.push(statement),
                Err(_) => self.lose(start),
            }
        }
        Ok(statements)
    }

    fn statement(&mut self) -> Parse<Statement> {
        self.layout.starts.insert(self.at);
        let doc = self.docs();
        let start = self.span();
        match (self.peek_word(0), self.peek_at(1)) {
            (Some("if"), _) => self.nested(Self::choice).map(Statement::If),
            (Some("shed"), Some(TokenKind::Name(_))) => self.shed().map(Statement::Shed),
            (Some("fuse"), Some(TokenKind::Name(_))) => self.fuse().map(Statement::Chain),
            (Some("limit"), next) if next != Some(&TokenKind::Punct(Punct::Assign)) => {
                self.limit().map(Statement::Limit)
            }
            (Some(_), Some(TokenKind::Punct(Punct::Assign))) => {
                self.instance(doc, start).map(Statement::Instance)
            }
            (Some(_), Some(TokenKind::Punct(Punct::Arrow | Punct::Dot))) => {
                self.chain().map(Statement::Chain)
            }
            (Some(word), _) => Err(self.half_statement(word)),
            (None, _) => Err(self.no_statement()),
        }
    }

    fn instance(&mut self, doc: String, start: Span) -> Parse<Instance> {
        let name = self.new_name("the name of an instance")?;
        let assign = self.expect(Punct::Assign)?;
        if self.is_punct(0, Punct::Greater) {
            let span = assign.to(self.span());
            let error = Diagnostic::error(span, "expected `->`, found `=>`");
            return Err(self.report(error));
        }
        let instance = self.rest_of_instance(doc, start, name.clone());
        if instance.is_err() {
            self.lost.push(name);
        }
        instance
    }

    /// Reads an instance after its `=`.
    fn rest_of_instance(&mut self, doc: String, start: Span, name: Name) -> Parse<Instance> {
        let module = self.path("the path of a module")?;
        let (types, args) = (self.types()?, self.args()?);
        let shards_start = self.span();
        let shards = match self.eat(Punct::Star) {
            true => {
                let count = self.sum()?;
                let by = match self.eat_word("by") {
                    true => Some(self.field()?),
                    false => None,
                };
                let span = self.since(shards_start);
                Some(Shards { count, by, span })
            }
            false => None,
        };
        let span = self.since(start);
        Ok(Instance {
            doc,
            name,
            module,
            types,
            args,
            shards,
            span,
        })
    }

    /// Reads the arguments of an instance. Without parentheses there are none.
    pub(super) fn args(&mut self) -> Parse<Vec<Arg>> {
        if !self.is_punct(0, Punct::ParenOpen) {
            return Ok(Vec::new());
        }
        let open = self.span();
        let args = self.list(Punct::ParenOpen, Punct::ParenClose, |parser| {
            let start = parser.span();
            let is_named = parser.peek_word(0).is_some() && parser.is_punct(1, Punct::Colon);
            let name = match is_named {
                true => {
                    let name = parser.any_name("the name of a parameter")?;
                    parser.at += 1;
                    Some(name.text)
                }
                false => None,
            };
            if let Some(word) = parser
                .peek_word(0)
                .filter(|_| parser.is_punct(1, Punct::Assign))
            {
                parser.at += 1;
                let error = parser.unexpected("`:`");
                let error = error.help(format!("an argument has a colon: `{word}: ..`"));
                return Err(parser.report(error));
            }
            let value = parser.expr()?;
            let span = parser.since(start);
            let kind = None;
            Ok(Arg {
                name,
                value,
                kind,
                span,
            })
        })?;
        let mut named = args.iter().skip_while(|arg| arg.name.is_none());
        if let Some(late) = named.find(|arg| arg.name.is_none()) {
            let message = "a positional argument follows a named one";
            let error = Diagnostic::error(late.span, message).other(open, "in this list");
            return Err(self.report(error));
        }
        Ok(args)
    }

    fn chain(&mut self) -> Parse<Chain> {
        let first = self.end("an instance, `in` or `out`")?;
        if !self.is_punct(0, Punct::Arrow) {
            return Err(self.expected("`->`"));
        }
        let mut hops = Vec::new();
        loop {
            let arrow = self.span();
            if !self.eat(Punct::Arrow) {
                break;
            }
            if self.is_punct(1, Punct::Assign) {
                // The name belongs to the next statement.
                let error = Diagnostic::error(arrow, "this edge has no end");
                return Err(self.report(error.help("write an instance or `out` after `->`")));
            }
            let to = self.end("an instance, `in` or `out`")?;
            self.refuse_module(&to)?;
            let mut hop = Hop {
                to,
                kind: None,
                after: None,
            };
            self.via(&mut hop)?;
            hops.push(hop);
        }
        Ok(Chain { first, hops })
    }

    /// Reads a fused chain, from its keyword on.
    fn fuse(&mut self) -> Parse<Chain> {
        let start = self.span();
        self.expect_word("fuse")?;
        let mut chain = self.chain()?;
        for hop in &mut chain.hops {
            let fused = HopKind::Fused(start);
            let written = hop.kind.replace(fused).is_some() || hop.after.is_some();
            if written {
                let message = "an edge of a fused chain has no `via` and no `after`";
                return Err(self.report(Diagnostic::error(hop.to.span(), message)));
            }
        }
        Ok(chain)
    }

    /// Reads an end of an edge.
    pub(super) fn end(&mut self, what: &str) -> Parse<End> {
        let name = match self.peek_word(0) {
            Some("in" | "out") => self.any_name(what)?,
            _ => self.name(what)?,
        };
        let port = match self.eat(Punct::Dot) {
            true => Some(self.any_name("the name of a port")?),
            false => None,
        };
        Ok(End { name, port })
    }

    /// Reads `via ..` and `after ..`, in any order.
    fn via(&mut self, hop: &mut Hop) -> Parse<()> {
        loop {
            let start = self.span();
            if self.eat_word("via") {
                let kind = self.hop_kind(start)?;
                if hop.kind.replace(kind).is_some() {
                    let span = self.since(start);
                    let message = "an edge has one `via`";
                    return Err(self.report(Diagnostic::error(span, message)));
                }
            } else if self.eat_word("after") {
                let delay = self.sum()?;
                if hop.after.replace(delay).is_some() {
                    let span = self.since(start);
                    let message = "an edge has one `after`";
                    return Err(self.report(Diagnostic::error(span, message)));
                }
            } else {
                return Ok(());
            }
        }
    }

    fn hop_kind(&mut self, start: Span) -> Parse<HopKind> {
        if self.eat_word("call") {
            if self.is_attached() {
                let error = Diagnostic::error(self.span(), "a call has no arguments");
                return Err(self.report(error));
            }
            return Ok(HopKind::Call(self.since(start)));
        }
        if !self.eat_word("queue") {
            return Err(self.expected("`call` or `queue(..)`"));
        }
        let (room, when_full) = self.queue()?;
        let span = self.since(start);
        Ok(HopKind::Queue {
            room,
            when_full,
            span,
        })
    }

    fn shed(&mut self) -> Parse<ShedRule> {
        let start = self.span();
        self.expect_word("shed")?;
        let name = self.name("the name of an instance")?;
        self.expect_word("when")?;
        self.expect_word("p90")?;
        self.expect(Punct::Greater)?;
        let above = self.sum()?;
        let to = match self.eat(Punct::Arrow) {
            true => Some(self.end("an instance or `out`")?),
            false => None,
        };
        if to.is_some() {
            self.refuse_more_of_shed(&name)?;
        }
        let span = self.since(start);
        Ok(ShedRule {
            name,
            above,
            to,
            span,
        })
    }

    /// Reports what only an edge can have, after the receiver of a `shed` rule.
    fn refuse_more_of_shed(&mut self, instance: &Name) -> Parse<()> {
        let (message, help) = if self.is_punct(0, Punct::Arrow) {
            let help = "write the edges after it as a statement of their own".to_owned();
            (
                "a `shed` rule ends at the receiver of the rejected items",
                help,
            )
        } else if self.is_word("via") || self.is_word("after") {
            let help = format!(
                "write the rule without `->`, and give these options to an edge from `{}.dropped`",
                instance.text
            );
            ("a `shed` rule has no `via` and no `after`", help)
        } else {
            return Ok(());
        };
        Err(self.report(Diagnostic::error(self.span(), message).help(help)))
    }

    fn choice(&mut self) -> Parse<Choice> {
        self.expect_word("if")?;
        let condition = self.expr()?;
        if !self.is_punct(0, Punct::BraceOpen) {
            return Err(self.no_block());
        }
        let then = self.block()?;
        let otherwise = match self.eat_word("else") {
            true if self.is_word("if") => {
                let choice = self.nested(Self::choice)?;
                vec![Statement::If(choice)]
            }
            true => self.block()?,
            false => Vec::new(),
        };
        Ok(Choice {
            condition,
            then,
            otherwise,
        })
    }

    /// Continues after an error at the next statement, or at the end of the block.
    pub(super) fn skip_to_statement(&mut self, start: usize) {
        self.at = self.at.max(start + 1);
        let mut depth = 0_usize;
        while let Some(kind) = self.peek() {
            match kind {
                TokenKind::Punct(Punct::BraceOpen) => depth += 1,
                TokenKind::Punct(Punct::BraceClose) if depth == 0 => return,
                TokenKind::Punct(Punct::BraceClose) => depth -= 1,
                TokenKind::Name(_) if depth == 0 && self.begins_statement() => return,
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Returns whether a statement begins with the next token, as far as two tokens tell.
    fn begins_statement(&self) -> bool {
        // After `->`, `.` or a comma, a name belongs to the statement that is skipped.
        let before = self
            .at
            .checked_sub(1)
            .and_then(|before| self.tokens.get(before));
        let is_inside = matches!(
            before.map(|token| &token.kind),
            Some(TokenKind::Punct(
                Punct::Arrow | Punct::Dot | Punct::Comma | Punct::PathSep | Punct::ParenOpen
            ))
        );
        let next = self.peek_at(1);
        let is_name_next = matches!(next, Some(TokenKind::Name(_)));
        match self.peek_word(0) {
            Some("if" | "limit") => !is_inside,
            Some("shed" | "fuse") => !is_inside && is_name_next,
            _ => {
                let is_start = [Punct::Assign, Punct::Arrow]
                    .into_iter()
                    .any(|punct| self.is_punct(1, punct));
                let is_port = self.is_punct(1, Punct::Dot) && self.is_punct(3, Punct::Arrow);
                !is_inside && (is_start || is_port)
            }
        }
    }
}
