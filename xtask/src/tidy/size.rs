//! The rule that files and functions stay small enough to be read in one go.
//!
//! Clippy's `too_many_lines` does not replace the rule for functions. It does not count signatures,
//! comments and blank lines, which also take room on a screen, and it reports long tests.

use proc_macro2::Span;
use syn::visit::{self, Visit};

use super::Finding;
use super::exceptions::{self, Exceptions};
use super::source::{Source, Tree};

/// Bound, in lines without tests: a file of this length still contains a single idea.
const FILE_LINES_MAX: usize = 400;

/// Bound, in lines: a function of this length still fits on a tall screen.
const FUNCTION_LINES_MAX: usize = 70;

/// Bound, in lines: the maximum margin that the limit of an exception may have. The margin allows
/// small changes, but ensures that a reduction is not lost again.
const SLACK_LINES_MAX: usize = 20;

/// A function outside of tests.
#[derive(Debug, PartialEq)]
struct Function {
    name: String,
    line: usize,
    lines: usize,
}

pub(super) fn check(tree: &Tree, exceptions: &Exceptions) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.files {
        check_file(source, exceptions, &mut findings);
        check_functions(source, exceptions, &mut findings);
    }
    for exception in &exceptions.file {
        let source = tree
            .files
            .iter()
            .find(|source| source.path == *exception.path.get_ref());
        let needed = source.map_or(0, Source::line_count_without_tests);
        let line = exceptions.line(&exception.path);
        findings.extend(check_limit(line, exception.limit, needed, FILE_LINES_MAX));
    }
    for exception in &exceptions.function {
        let source = tree
            .files
            .iter()
            .find(|source| source.path == *exception.path.get_ref());
        let mut named = source.map(functions).unwrap_or_default();
        named.retain(|function| function.name == exception.name);
        let needed = named
            .iter()
            .map(|function| function.lines)
            .max()
            .unwrap_or(0);
        let line = exceptions.line(&exception.path);
        findings.extend(check_limit(
            line,
            exception.limit,
            needed,
            FUNCTION_LINES_MAX,
        ));
    }
    findings
}

fn check_file(source: &Source, exceptions: &Exceptions, findings: &mut Vec<Finding>) {
    let exception = exceptions
        .file
        .iter()
        .find(|entry| *entry.path.get_ref() == source.path);
    let limit = exception.map_or(FILE_LINES_MAX, |entry| entry.limit);
    let lines = source.line_count_without_tests();
    if lines > limit {
        let what = format!("the file has {lines} lines without tests, expected at most {limit}");
        findings.push(Finding::new(source.path.as_str(), 1, what));
    }
}

fn check_functions(source: &Source, exceptions: &Exceptions, findings: &mut Vec<Finding>) {
    for Function { name, line, lines } in functions(source) {
        let exception = exceptions
            .function
            .iter()
            .find(|entry| *entry.path.get_ref() == source.path && entry.name == name);
        let limit = exception.map_or(FUNCTION_LINES_MAX, |entry| entry.limit);
        if lines > limit {
            let what = format!("`{name}` has {lines} lines, expected at most {limit}");
            findings.push(Finding::new(source.path.as_str(), line, what));
        }
    }
}

/// Returns a finding if an exception is not needed, or its limit is much larger than needed.
fn check_limit(line: usize, limit: usize, needed: usize, default: usize) -> Option<Finding> {
    let what = if needed <= default || limit <= default {
        format!("the exception is no longer needed ({needed} lines), expected it to be removed")
    } else if limit > needed + SLACK_LINES_MAX {
        format!("the limit is {limit} and {needed} lines are needed, expected it to be lowered")
    } else {
        return None;
    };
    Some(Finding::new(exceptions::PATH, line, what))
}

/// Returns the functions of a file, except for those in tests.
fn functions(source: &Source) -> Vec<Function> {
    let mut finder = Finder {
        owners: Vec::new(),
        functions: Vec::new(),
    };
    finder.visit_file(&source.ast);
    finder
        .functions
        .retain(|function| !source.is_test_line(function.line));
    finder.functions
}

struct Finder {
    /// The types and traits that contain the current place.
    owners: Vec<String>,
    functions: Vec<Function>,
}

impl Finder {
    fn note(&mut self, signature: &syn::Signature, close: Span) {
        let function = signature.ident.to_string();
        let name = match self.owners.last() {
            Some(owner) => format!("{owner}::{function}"),
            None => function,
        };
        let line = signature.fn_token.span.start().line;
        self.functions.push(Function {
            name,
            line,
            lines: close.end().line - line + 1,
        });
    }

    fn within(&mut self, owner: String, visit: impl FnOnce(&mut Self)) {
        self.owners.push(owner);
        visit(self);
        self.owners.pop();
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        // A function inside a method does not belong to the type.
        let owners = std::mem::take(&mut self.owners);
        self.note(&item.sig, item.block.brace_token.span.close());
        visit::visit_item_fn(self, item);
        self.owners = owners;
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.note(&item.sig, item.block.brace_token.span.close());
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.note(&item.sig, block.brace_token.span.close());
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        self.within(type_name(&item.self_ty), |finder| {
            visit::visit_item_impl(finder, item)
        });
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.within(item.ident.to_string(), |finder| {
            visit::visit_item_trait(finder, item)
        });
    }
}

/// Returns the last name in the path of a type, or a placeholder for a type without a path.
pub(super) fn type_name(of: &syn::Type) -> String {
    match of {
        syn::Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        syn::Type::Reference(reference) => Some(type_name(&reference.elem)),
        _ => None,
    }
    .unwrap_or_else(|| "_".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/a/src/a.rs";

    fn found(text: &str, exceptions: &str) -> Vec<String> {
        let exceptions = Exceptions::parse(exceptions).unwrap();
        let findings = check(&Tree::of(&[(PATH, text)]), &exceptions);
        findings.iter().map(ToString::to_string).collect()
    }

    /// Returns a function with `lines` lines.
    fn function(name: &str, lines: usize) -> String {
        format!("fn {name}() {{\n{}}}\n", "    f();\n".repeat(lines - 2))
    }

    fn file_exception(limit: usize) -> String {
        format!("[[file]]\npath = \"{PATH}\"\nlimit = {limit}\nreason = \"whole\"\n")
    }

    fn function_exception(name: &str, limit: usize) -> String {
        format!(
            "[[function]]\npath = \"{PATH}\"\nname = \"{name}\"\nlimit = {limit}\nreason = \"x\"\n"
        )
    }

    #[test]
    fn a_long_file_is_found() {
        assert!(found(&"\n".repeat(400), "").is_empty());
        let expected =
            "crates/a/src/a.rs:1: the file has 401 lines without tests, expected at most 400";
        assert_eq!(found(&"\n".repeat(401), ""), [expected]);
    }

    #[test]
    fn tests_do_not_count() {
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function("f", 500));
        assert!(found(&tests, "").is_empty());
        assert_eq!(found(&format!("{}{tests}", "\n".repeat(401)), "").len(), 1);
    }

    #[test]
    fn a_long_function_is_found() {
        assert!(found(&function("f", 70), "").is_empty());
        let expected = "crates/a/src/a.rs:1: `f` has 71 lines, expected at most 70";
        assert_eq!(found(&function("f", 71), ""), [expected]);
        let method = format!("impl<T> a::S<T> {{\n{}}}\n", function("f", 71));
        assert!(found(&method, "")[0].contains(":2: `S::f` has 71 lines"));
        let provided = format!("trait T {{\n{}}}\n", function("f", 71));
        assert!(found(&provided, "")[0].contains(":2: `T::f` has 71 lines"));
    }

    #[test]
    fn comments_on_a_function_do_not_count() {
        let text = format!("{}{}", "/// Doc.\n".repeat(50), function("f", 70));
        assert!(found(&text, "").is_empty());
    }

    #[test]
    fn an_exception_raises_the_limit() {
        assert!(found(&"\n".repeat(450), &file_exception(450)).is_empty());
        assert_eq!(found(&"\n".repeat(451), &file_exception(450)).len(), 1);
        assert!(found(&function("f", 80), &function_exception("f", 85)).is_empty());
        assert!(found(&function("f", 80), &function_exception("g", 85)).len() == 2);
    }

    #[test]
    fn an_exception_that_is_not_needed_is_found() {
        let expected = "xtask/tidy-exceptions.toml:2: the exception is no longer needed";
        assert!(found(&"\n".repeat(400), &file_exception(450))[0].starts_with(expected));
        assert!(found(&function("f", 70), &function_exception("f", 80))[0].starts_with(expected));
        let elsewhere = file_exception(450).replace("a.rs", "gone.rs");
        assert!(found("", &elsewhere)[0].starts_with(expected));
    }

    #[test]
    fn a_limit_that_is_too_large_is_found() {
        assert!(found(&"\n".repeat(430), &file_exception(450)).is_empty());
        assert!(found(&"\n".repeat(429), &file_exception(450))[0].contains("to be lowered"));
        let exception = function_exception("f", 100);
        assert!(found(&function("f", 79), &exception)[0].contains("to be lowered"));
    }
}
