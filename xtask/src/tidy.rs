//! The rules of the house that the compiler and clippy do not check.

use std::fmt;
use std::path::Path;

use anyhow::Context as _;

mod bounds;
mod exceptions;
mod header;
mod leftovers;
mod size;
mod source;
mod tokens;
mod unsafe_code;

use exceptions::Exceptions;
use source::Tree;

/// Something that breaks a rule, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    /// From 1.
    line: usize,
    what: String,
}

impl Finding {
    fn new(path: impl Into<String>, line: usize, what: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            line,
            what: what.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// Checks the tree and prints what it finds; the result says whether that was nothing.
///
/// With `bless` the list of bounds is written instead of compared.
///
/// # Errors
///
/// A file cannot be read or written.
pub(crate) fn run(root: &Path, bless: bool) -> anyhow::Result<bool> {
    let (tree, mut findings) = Tree::load(root)?;
    let listed = std::fs::read_to_string(root.join(exceptions::PATH)).unwrap_or_default();
    match Exceptions::parse(&listed) {
        Ok(exceptions) => findings.extend(check(&tree, &exceptions)),
        Err(finding) => findings.push(finding),
    }

    let (bounds, malformed) = bounds::collect(&tree);
    findings.extend(malformed);
    let page = bounds::page(&bounds);
    let page_path = root.join(bounds::PATH);
    if bless {
        std::fs::create_dir_all(page_path.parent().expect("the page is in a directory"))
            .and_then(|()| std::fs::write(&page_path, page))
            .with_context(|| format!("could not write {}", page_path.display()))?;
    } else {
        let written = std::fs::read_to_string(&page_path).unwrap_or_default();
        findings.extend(bounds::compare(&written, &page));
    }

    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    let files = tree.files.len();
    println!(
        "tidy: {files} files, {} bounds, {} findings",
        bounds.len(),
        findings.len()
    );
    Ok(findings.is_empty())
}

fn check(tree: &Tree, exceptions: &Exceptions) -> Vec<Finding> {
    let mut findings = size::check(tree, exceptions);
    findings.extend(unsafe_code::check(tree, exceptions));
    findings.extend(tree.files.iter().flat_map(leftovers::check));
    findings.extend(tree.files.iter().filter_map(header::check));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_printed_with_its_place() {
        let finding = Finding::new("src/lib.rs", 7, "is wrong, expected right");
        assert_eq!(
            finding.to_string(),
            "src/lib.rs:7: is wrong, expected right"
        );
    }

    /// A tree that breaks one rule of each kind, checked from end to end.
    #[test]
    fn every_rule_is_checked_and_bless_writes_the_bounds() {
        let root = std::env::temp_dir().join(format!("xtask-tidy-{}", std::process::id()));
        let source = root.join("crates/tussah/src");
        std::fs::create_dir_all(&source).unwrap();
        let text = "//! A library.\n#![forbid(unsafe_code)]\n\n\
                    /// Bound, in events: small enough for a test.\nconst EVENTS_MAX: usize = 4;\n";
        std::fs::write(source.join("lib.rs"), text).unwrap();

        assert!(
            !run(&root, false).unwrap(),
            "there is no list of bounds yet"
        );
        assert!(run(&root, true).unwrap());
        assert!(run(&root, false).unwrap());
        let page = std::fs::read_to_string(root.join(bounds::PATH)).unwrap();
        assert!(
            page.contains("| `4` | events | small enough for a test |"),
            "{page}"
        );

        std::fs::write(source.join("bad.rs"), "fn f() { todo!() }\n").unwrap();
        std::fs::write(source.join("broken.rs"), "//! Broken.\nfn f( {}\n").unwrap();
        let (tree, broken) = Tree::load(&root).unwrap();
        assert_eq!(broken.len(), 1, "{broken:?}");
        let found = check(&tree, &Exceptions::default());
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(!run(&root, false).unwrap());
        std::fs::remove_dir_all(&root).unwrap();
    }
}
