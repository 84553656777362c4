//! The rule against leftovers that clippy does not find: skipped tests, tests that sleep, and bare
//! `unwrap` calls.
//!
//! Clippy's `unwrap_used` does not replace the last rule. It misses `map(Option::unwrap)` and code
//! that only other configurations compile, such as loom, and it reports the helpers of integration
//! tests.

use super::Finding;
use super::source::{Role, Source};
use super::tokens::{Token, starts_with};

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let tokens = source.tokens.as_slice();
    let at = |start: usize| rule_broken(source, &tokens[start..]).map(|what| (start, what));
    let broken = (0..tokens.len()).filter_map(at);
    broken
        .map(|(at, what)| Finding::new(source.path.as_str(), tokens[at].line, what))
        .collect()
}

/// Returns the rule that the code beginning with these tokens breaks.
fn rule_broken(source: &Source, tokens: &[Token]) -> Option<String> {
    let line = tokens[0].line;
    if is_ignore(tokens) {
        return Some("a test is ignored, expected one that runs or none".into());
    }
    if is_sleep(tokens) && source.is_test_line(line) {
        return Some("a test sleeps, expected it to wait for an event".into());
    }
    if is_unwrap(tokens) && source.role == Role::Product && !source.is_test_line(line) {
        return Some("a bare `unwrap`, expected `expect` with the invariant, or an error".into());
    }
    None
}

/// Returns whether this is `#[ignore]`, either unconditional or under a condition other than Miri,
/// where some tests are too slow.
fn is_ignore(tokens: &[Token]) -> bool {
    if starts_with(tokens, &["#", "[", "ignore"]) {
        return true;
    }
    if !starts_with(tokens, &["#", "[", "cfg_attr", "("]) {
        return false;
    }
    let inside = tokens.iter().take_while(|token| token.text != "]");
    let has = |name: &str| inside.clone().any(|token| token.text == name);
    has("ignore") && !has("miri")
}

fn is_sleep(tokens: &[Token]) -> bool {
    if starts_with(tokens, &["thread", ":", ":", "{"]) {
        let mut listed = tokens.iter().take_while(|token| token.text != "}");
        return listed.any(|token| token.text == "sleep");
    }
    starts_with(tokens, &["thread", ":", ":", "sleep"])
}

fn is_unwrap(tokens: &[Token]) -> bool {
    starts_with(tokens, &[".", "unwrap", "(", ")"]) || starts_with(tokens, &[":", "unwrap"])
}

#[cfg(test)]
mod tests {
    use super::super::source::Tree;
    use super::*;

    #[track_caller]
    fn expect(path: &str, text: &str, expected: &[(usize, &str)]) {
        let findings = check(&Tree::of(&[(path, text)]).files[0]);
        assert_eq!(findings.len(), expected.len(), "{findings:?}");
        for (finding, (line, what)) in findings.iter().zip(expected) {
            assert_eq!(finding.line, *line);
            assert!(finding.what.contains(what), "{finding}");
        }
    }

    const PRODUCT: &str = "crates/a/src/lib.rs";
    const TEST: &str = "crates/a/tests/it/main.rs";

    #[test]
    fn ignored_tests_are_found_except_for_miri() {
        expect(TEST, "#[test]\n#[ignore]\nfn f() {}\n", &[(2, "ignored")]);
        expect(TEST, "#[ignore = \"slow\"]\nfn f() {}\n", &[(1, "ignored")]);
        expect(
            TEST,
            "#[cfg_attr(loom, ignore)]\nfn f() {}\n",
            &[(1, "ignored")],
        );
        expect(TEST, "#[cfg_attr(miri, ignore)]\nfn f() {}\n", &[]);
    }

    #[test]
    fn sleeps_are_found_in_tests_only() {
        let sleeps = "fn f() { std::thread::sleep(D); }\n";
        expect(TEST, sleeps, &[(1, "sleeps")]);
        expect(TEST, "use std::thread::{self, sleep};\n", &[(1, "sleeps")]);
        expect(
            TEST,
            "use std::thread::{self, spawn};\nfn sleep() {}\n",
            &[],
        );
        expect(PRODUCT, sleeps, &[]);
        let unit = format!("#[cfg(test)]\nmod tests {{\n{sleeps}}}\n");
        expect(PRODUCT, &unit, &[(3, "sleeps")]);
    }

    #[test]
    fn bare_unwraps_are_found_in_the_product_only() {
        let unwraps = "fn f() {\n    x.unwrap();\n    y.map(Option::unwrap);\n}\n";
        expect(PRODUCT, unwraps, &[(2, "unwrap"), (3, "unwrap")]);
        let elsewhere = [
            "xtask/src/a.rs",
            "crates/tussah-bench/src/a.rs",
            "crates/a/examples/b.rs",
        ];
        for path in elsewhere.into_iter().chain([TEST, "crates/a/benches/b.rs"]) {
            expect(path, unwraps, &[]);
        }
        expect(
            PRODUCT,
            &format!("#[cfg(test)]\nmod tests {{\n{unwraps}}}\n"),
            &[],
        );
        expect(
            PRODUCT,
            "/// x.unwrap()\nfn f() { x.unwrap_or(1); x.expect(\"i\"); unwrap(); }\n",
            &[],
        );
    }
}
