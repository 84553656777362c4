//! The rule that only one crate may contain `unsafe` code, and that the others forbid it.

use super::Finding;
use super::exceptions::{self, Exceptions};
use super::source::{Source, Tree};

/// The directory of the only crate with `unsafe` code.
const CRATE: &str = "crates/tussah-core/";

pub(super) fn check(tree: &Tree, exceptions: &Exceptions) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in tree
        .files
        .iter()
        .filter(|source| !source.path.starts_with(CRATE))
    {
        let found = check_file(source);
        if exceptions
            .unsafe_code
            .iter()
            .all(|exception| *exception.path.get_ref() != source.path)
        {
            findings.extend(found);
        }
    }
    findings.extend(exceptions.unsafe_code.iter().filter_map(|exception| {
        let source = tree
            .files
            .iter()
            .find(|source| source.path == *exception.path.get_ref());
        let needed = source.is_some_and(|source| !check_file(source).is_empty());
        let what = "the exception is no longer needed, expected it to be removed";
        (!needed).then(|| Finding::new(exceptions::PATH, exceptions.line(&exception.path), what))
    }));
    findings
}

fn check_file(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    if is_root(&source.path) && !source.ast.attrs.iter().any(forbids) {
        let what = "may hold `unsafe` code, expected `#![forbid(unsafe_code)]`";
        findings.push(Finding::new(source.path.as_str(), 1, what));
    }
    let found = source.tokens.iter().filter(|token| token.text == "unsafe");
    findings.extend(found.map(|token| {
        let what = format!("`unsafe` code, expected it under {CRATE} only");
        Finding::new(source.path.as_str(), token.line, what)
    }));
    findings
}

/// Returns whether a path is the root file of one of the project's libraries or programs.
fn is_root(path: &str) -> bool {
    let package = path
        .strip_suffix("/src/lib.rs")
        .or_else(|| path.strip_suffix("/src/main.rs"));
    package.is_some_and(|package| package == "xtask" || package.starts_with("crates/"))
}

fn forbids(attribute: &syn::Attribute) -> bool {
    let mut found = false;
    if attribute.path().is_ident("forbid") {
        // Anything that cannot be parsed as a list of lints is irrelevant.
        let _ = attribute.parse_nested_meta(|lint| {
            found |= lint.path.is_ident("unsafe_code");
            Ok(())
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORBID: &str = "#![forbid(missing_docs, unsafe_code)]\n";

    fn found(path: &str, text: &str, exceptions: &str) -> Vec<String> {
        let exceptions = Exceptions::parse(exceptions).unwrap();
        let findings = check(&Tree::of(&[(path, text)]), &exceptions);
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn unsafe_code_is_found_outside_of_its_crate() {
        for text in [
            "\nunsafe fn f() {}\n",
            "\nfn f() { unsafe {} }\n",
            "\nm!(unsafe {});\n",
        ] {
            let found_elsewhere = found("crates/tussah/src/a.rs", text, "");
            assert_eq!(found_elsewhere.len(), 1);
            assert!(found_elsewhere[0].starts_with("crates/tussah/src/a.rs:2: `unsafe` code"));
            assert!(found("crates/tussah-core/src/a.rs", text, "").is_empty());
        }
        assert!(found("xtask/src/a.rs", "/// unsafe\nfn f() { \"unsafe\"; }\n", "").is_empty());
    }

    #[test]
    fn a_root_has_to_forbid_it() {
        for path in [
            "crates/tussah/src/lib.rs",
            "crates/tussah-bench/src/main.rs",
        ] {
            assert!(found(path, FORBID, "").is_empty());
            for text in ["", "#![deny(unsafe_code)]\n", "#![forbid(missing_docs)]\n"] {
                assert!(found(path, text, "")[0].contains("expected `#![forbid(unsafe_code)]`"));
            }
        }
        assert!(found("crates/tussah-core/src/lib.rs", "", "").is_empty());
        assert!(found("crates/tussah/src/time.rs", "", "").is_empty());
    }

    #[test]
    fn an_exception_holds_while_it_is_needed() {
        let exceptions = "[[unsafe_code]]\npath = \"crates/b/src/main.rs\"\nreason = \"counts\"\n";
        assert!(found("crates/b/src/main.rs", "fn f() { unsafe {} }\n", exceptions).is_empty());
        let expected = "xtask/tidy-exceptions.toml:2: the exception is no longer needed";
        assert!(found("crates/b/src/main.rs", FORBID, exceptions)[0].starts_with(expected));
        assert!(found("crates/b/src/other.rs", "", exceptions)[0].starts_with(expected));
    }
}
