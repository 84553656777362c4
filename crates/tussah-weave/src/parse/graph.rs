//! Graphs: their parameters and Rust types.

use super::{Parse, Parser};
use crate::diagnostic::Diagnostic;
use crate::graph::Param;
use crate::suggest;
use crate::token::{Punct, Span, TokenKind};
use crate::tree::{Definition, Name, TypeRef};
use crate::types::Type;
use crate::unit;
use crate::value::Kind;

impl Parser<'_> {
    /// Reads a graph, from its keyword on.
    pub(super) fn graph(&mut self, doc: String) -> Parse<Definition> {
        self.expect_word("graph")?;
        let name = self.graph_name()?;
        self.lost.clear();
        self.has_lost_limit = false;
        let errors = self.diagnostics.len();
        let params = match self.is_punct(0, Punct::ParenOpen) {
            true => self.params()?,
            false => Vec::new(),
        };
        let body = self.block()?;
        Ok(Definition {
            doc,
            name,
            params,
            body,
            is_broken: self.diagnostics.len() > errors,
            lost: std::mem::take(&mut self.lost),
            has_lost_limit: self.has_lost_limit,
        })
    }

    /// Continues after the statement that begins with this token and did not parse.
    pub(super) fn lose(&mut self, start: usize) {
        let mut words = self.tokens[start..]
            .iter()
            .filter_map(|token| match &token.kind {
                TokenKind::Name(word) => Some(word),
                _ => None,
            });
        let near = words
            .next()
            .and_then(|word| suggest::nearest(word, ["limit"]));
        self.has_lost_limit |= near.is_some();
        self.skip_to_statement(start);
    }

    /// Reads the name of a graph. It can be that of a unit, because no number precedes it.
    pub(super) fn graph_name(&mut self) -> Parse<Name> {
        match self.peek_word(0) {
            Some(word) if unit::find(word).is_some() => self.any_name("the name of a graph"),
            _ => self.name("the name of a graph"),
        }
    }

    /// Reads the parameters. After an error it continues with the next one.
    fn params(&mut self) -> Parse<Vec<Param>> {
        let open = self.at;
        let params = self.list(Punct::ParenOpen, Punct::ParenClose, |parser| {
            parser.layout.param_starts.insert(parser.at);
            let param = parser.param();
            if param.is_err() {
                parser.skip_param();
            }
            Ok(param.ok())
        })?;
        self.layout.params.push(open..=self.at - 1);
        Ok(params.into_iter().flatten().collect())
    }

    fn skip_param(&mut self) {
        let mut depth = 0_usize;
        while let Some(kind) = self.peek() {
            match kind {
                TokenKind::Punct(Punct::ParenOpen) => depth += 1,
                TokenKind::Punct(Punct::ParenClose | Punct::Comma) if depth == 0 => return,
                TokenKind::Punct(Punct::BraceOpen | Punct::BraceClose) => return,
                TokenKind::Punct(Punct::ParenClose) => depth -= 1,
                _ => {}
            }
            self.at += 1;
        }
    }

    fn param(&mut self) -> Parse<Param> {
        let doc = self.docs();
        let name = match self.is_punct(1, Punct::Colon) {
            true => self.new_name("the name of a parameter")?,
            false => self.name("the name of a parameter")?,
        };
        if !self.eat(Punct::Colon) {
            return Err(self.expected(&format!("`:` and the type of `{}`", name.text)));
        }
        let (kind, kind_span) = self.kind()?;
        let default = match self.eat(Punct::Assign) {
            true => Some(self.expr()?),
            false => None,
        };
        Ok(Param {
            name: name.text,
            kind,
            default,
            doc,
            span: name.span,
            kind_span,
        })
    }

    /// Reads the kind of a parameter: one of Weave, or a Rust type.
    fn kind(&mut self) -> Parse<(Kind, Span)> {
        let start = self.span();
        let word = self.peek_word(0).unwrap_or_default();
        let named = Kind::NAMED.iter().find(|kind| kind.name() == word);
        // The name of a Rust module can be that of a kind.
        if let Some(kind) = named.filter(|_| !self.is_punct(1, Punct::PathSep)) {
            self.at += 1;
            return Ok((kind.clone(), start));
        }
        let found = self.type_ref("the type of the parameter")?;
        // Rust's own lowercase types, such as `u32`, are types; a misspelt kind is none.
        let is_lower =
            found.ty.args.is_empty() && word.starts_with(|c: char| c.is_ascii_lowercase());
        if is_lower && !is_primitive(&found.ty.name) && !found.ty.name.contains("::") {
            let names = Kind::NAMED.iter().map(Kind::name);
            let help = match suggest::nearest(word, names.clone()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("types: {}, or a Rust type", suggest::list(names)),
            };
            let error = Diagnostic::error(found.span, format!("unknown type `{word}`"));
            return Err(self.report(error.help(help)));
        }
        Ok((Kind::Rust(found.ty), found.span))
    }

    /// Reads the types for a generic module. Without `<` there are none.
    pub(super) fn types(&mut self) -> Parse<Vec<TypeRef>> {
        let less = self.at;
        let types = match self.is_punct(0, Punct::Less) {
            true => self.list(Punct::Less, Punct::Greater, |parser| {
                parser.type_ref("a Rust type")
            })?,
            false => Vec::new(),
        };
        self.layout.types.extend(less..self.at);
        Ok(types)
    }

    /// Reads a Rust type, up to a `,`, `=`, `)` or `>` that does not belong to it.
    pub(super) fn type_ref(&mut self, what: &str) -> Parse<TypeRef> {
        let start = self.span();
        let first = self.at;
        let mut text = String::new();
        let mut open: Vec<Punct> = Vec::new();
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        while let Some(kind) = self.peek() {
            match kind {
                TokenKind::Name(word) | TokenKind::Lifetime(word) | TokenKind::Number(word) => {
                    if text.ends_with(is_word) {
                        text.push(' ');
                    }
                    text.push_str(word);
                }
                TokenKind::Text(_) | TokenKind::Doc(_) => break,
                TokenKind::Punct(punct) => {
                    match punct {
                        Punct::Less => open.push(Punct::Greater),
                        Punct::ParenOpen => open.push(Punct::ParenClose),
                        Punct::BracketOpen => open.push(Punct::BracketClose),
                        Punct::Greater | Punct::ParenClose | Punct::BracketClose => {
                            if open.last() != Some(punct) {
                                break;
                            }
                            open.pop();
                        }
                        Punct::Comma if open.is_empty() => break,
                        Punct::Comma | Punct::And | Punct::Semicolon | Punct::PathSep => {}
                        _ => break,
                    }
                    text.push_str(punct.as_str());
                }
            }
            self.at += 1;
        }
        if text.is_empty() {
            return Err(self.expected(what));
        }
        self.layout.types.extend(first..self.at);
        let span = self.since(start);
        match Type::parse(&text) {
            Ok(ty) => Ok(TypeRef { ty, span }),
            Err(error) => Err(self.report(Diagnostic::error(span, error.to_string()))),
        }
    }
}

fn is_primitive(name: &str) -> bool {
    const PRIMITIVES: &[&str] = &[
        "bool", "char", "str", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "u8",
        "u16", "u32", "u64", "u128", "usize",
    ];
    PRIMITIVES.contains(&name)
}
