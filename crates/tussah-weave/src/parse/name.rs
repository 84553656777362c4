//! Names of instances, parameters and graphs.

use super::{KEYWORDS, Parse, Parser, Reported};
use crate::diagnostic::Diagnostic;
use crate::tree::Name;
use crate::unit;

impl Parser<'_> {
    /// Reads the name of an instance, a parameter or a graph.
    pub(super) fn name(&mut self, what: &str) -> Parse<Name> {
        let is_refused = self
            .peek_word(0)
            .is_some_and(|it| self.refused.contains(it));
        let name = self.any_name(what)?;
        match role(&name.text) {
            Some(role) if !is_refused => Err(self.refuse(&name, role)),
            _ => Ok(name),
        }
    }

    /// Reads the name of a new instance or parameter. If it cannot be a name, reports this here,
    /// and not where the graph uses the name.
    pub(super) fn new_name(&mut self, what: &str) -> Parse<Name> {
        let word = self.peek_word(0);
        let name = self.any_name(what)?;
        if let Some(role) = role(&name.text) {
            self.refuse(&name, role);
            self.refused.extend(word);
        }
        Ok(name)
    }

    fn refuse(&mut self, name: &Name, role: &str) -> Reported {
        let message = format!("`{}` is {role} and cannot be a name", name.text);
        self.report(Diagnostic::error(name.span, message))
    }
}

/// Returns the role of a word that cannot be the name of an instance or a parameter.
fn role(word: &str) -> Option<&'static str> {
    match unit::find(word) {
        Some(_) => Some("a unit"),
        None => KEYWORDS.contains(&word).then_some("a keyword"),
    }
}
