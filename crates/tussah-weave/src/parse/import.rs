//! The paths of `use`.

use super::{Parse, Parser};
use crate::token::{Punct, TokenKind};
use crate::tree::{Name, Path};

impl Parser<'_> {
    /// Reads `a::{b, c::d}` and adds the paths.
    pub(super) fn imports(&mut self, prefix: &mut Vec<Name>, imports: &mut Vec<Path>) -> Parse<()> {
        let len = prefix.len();
        prefix.push(self.import_name("the path of a module")?);
        while self.eat(Punct::PathSep) {
            if self.is_punct(0, Punct::BraceOpen) {
                self.nested(|parser| {
                    parser.list(Punct::BraceOpen, Punct::BraceClose, |parser| {
                        parser.imports(prefix, imports)
                    })
                })?;
                prefix.truncate(len);
                return Ok(());
            }
            prefix.push(self.import_name("the path of a module or `{`")?);
        }
        let path = Path {
            names: prefix.clone(),
        };
        if let Some(name) = path.names.last() {
            self.refuse_renaming(name)?;
        }
        imports.push(path);
        prefix.truncate(len);
        Ok(())
    }

    /// Reads a part of a path after `use`, but not the keyword of the item after it.
    fn import_name(&mut self, what: &str) -> Parse<Name> {
        match self.begins_item() {
            true => Err(self.expected(what)),
            false => self.any_name(what),
        }
    }

    /// Returns whether an item begins with the next token. A path can end with the word of
    /// an item, and another item can follow.
    pub(super) fn begins_item(&self) -> bool {
        match self.peek_word(0) {
            Some("use" | "graph") => {
                !matches!(self.peek_word(1), None | Some("use" | "graph" | "test"))
            }
            Some("test") => matches!(self.peek_at(1), Some(TokenKind::Text(_))),
            _ => false,
        }
    }
}
