//! The house rules that the compiler and clippy do not check.

use std::fmt;
use std::path::Path;

use anyhow::Context as _;

mod bounds;
mod exceptions;
mod header;
mod leftovers;
mod links;
mod prose;
mod size;
mod source;
mod tokens;
mod unsafe_code;

use exceptions::Exceptions;
use source::Tree;
pub(crate) use source::read_all;

/// A place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    /// The line, from 1.
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

/// Prints sentences of the documentation, for a reader to judge.
///
/// # Errors
///
/// Returns an error if a file cannot be read.
pub(crate) fn sample(root: &Path, seed: u64) -> anyhow::Result<bool> {
    let (tree, _) = Tree::load(root)?;
    for sentence in prose::draw(&tree, &prose::pages(root)?, seed) {
        println!("{sentence}");
    }
    Ok(true)
}

/// Checks the tree, prints the findings, and returns whether there are none.
///
/// With `bless`, it writes the list of bounds and the list of prose exceptions instead of comparing
/// them.
///
/// # Errors
///
/// Returns an error if a file cannot be read or written.
pub(crate) fn run(root: &Path, bless: bool) -> anyhow::Result<bool> {
    let (tree, mut findings) = Tree::load(root)?;
    let listed = std::fs::read_to_string(root.join(exceptions::PATH)).unwrap_or_default();
    match Exceptions::parse(&listed) {
        Ok(exceptions) => findings.extend(check(&tree, &exceptions)),
        Err(finding) => findings.push(finding),
    }

    findings.extend(links::check(root)?);
    let graphs = source::read_all(root, ".weave")?;
    let (bounds, malformed) = bounds::collect(&tree, &graphs);
    findings.extend(malformed);
    let page = bounds::page(&bounds);
    let page_path = root.join(bounds::PATH);
    if bless {
        std::fs::create_dir_all(page_path.parent().expect("the page is in a directory"))
            .and_then(|()| std::fs::write(&page_path, page))
            .with_context(|| format!("cannot write {}", page_path.display()))?;
    } else {
        let written = std::fs::read_to_string(&page_path).unwrap_or_default();
        findings.extend(bounds::compare(&written, &page));
    }

    let prose = check_prose(root, &tree, bless)?;
    let hint = !prose.is_empty() && !bless;
    findings.extend(prose);

    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    if hint {
        println!(
            "tidy: `cargo xtask tidy --bless` keeps the prose exceptions of text that only moved"
        );
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

/// Checks the writing rules. With `bless`, it writes the list of their exceptions if the list has
/// changed.
fn check_prose(root: &Path, tree: &Tree, bless: bool) -> anyhow::Result<Vec<Finding>> {
    let breaches = prose::check(tree, &prose::pages(root)?);
    let path = root.join(prose::EXCEPTIONS);
    let listed = std::fs::read_to_string(&path).unwrap_or_default();
    let allowed = match prose::Allowed::parse(&listed) {
        Ok(allowed) => allowed,
        Err(finding) => return Ok(vec![finding]),
    };
    if !bless {
        return Ok(allowed.check(&breaches));
    }
    match allowed.bless(&breaches) {
        Ok(needed) if needed == allowed => Ok(Vec::new()),
        Ok(needed) => {
            std::fs::create_dir_all(path.parent().expect("the list is in a directory"))
                .and_then(|()| std::fs::write(&path, needed.write()))
                .with_context(|| format!("cannot write {}", path.display()))?;
            Ok(Vec::new())
        }
        Err(findings) => Ok(findings),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_finding_is_printed_with_its_place() {
        let finding = Finding::new("src/lib.rs", 7, "is wrong, expected right");
        assert_eq!(
            finding.to_string(),
            "src/lib.rs:7: is wrong, expected right"
        );
    }

    /// Creates an empty tree of one crate, in its own directory.
    fn root(name: &str) -> (PathBuf, PathBuf) {
        let root = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
        let source = root.join("crates/tussah/src");
        std::fs::create_dir_all(&source).unwrap();
        (root, source)
    }

    #[test]
    fn bless_moves_and_removes_exceptions_from_the_writing_rules_and_adds_none() {
        let (root, source) = root("prose");
        std::fs::create_dir_all(root.join("docs")).unwrap();
        std::fs::write(root.join(bounds::PATH), bounds::page(&[])).unwrap();
        let text = "//! What it is.\n#![forbid(unsafe_code)]\n";
        std::fs::write(source.join("lib.rs"), text).unwrap();
        assert!(!run(&root, false).unwrap());
        assert!(!run(&root, true).unwrap(), "nothing is excepted");

        let list = root.join(prose::EXCEPTIONS);
        std::fs::create_dir_all(list.parent().unwrap()).unwrap();
        std::fs::write(&list, "[summary]\n\"crates/tussah/src/old.rs\" = 1\n").unwrap();
        assert!(!run(&root, false).unwrap(), "another file is excepted");
        assert!(run(&root, true).unwrap());
        assert!(run(&root, false).unwrap());
        let written = std::fs::read_to_string(&list).unwrap();
        assert!(
            written.ends_with("[summary]\n\"crates/tussah/src/lib.rs\" = 1\n"),
            "{written}"
        );

        std::fs::write(
            source.join("lib.rs"),
            text.replace("What it is", "A library"),
        )
        .unwrap();
        assert!(run(&root, true).unwrap());
        let written = std::fs::read_to_string(&list).unwrap();
        assert!(!written.contains("[summary]"), "{written}");
        std::fs::remove_dir_all(&root).unwrap();
    }

    /// Checks a tree that breaks one rule of each kind, from end to end.
    #[test]
    fn every_rule_is_checked_and_bless_writes_the_bounds() {
        let (root, source) = root("tidy");
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

        std::fs::write(source.join("bad.rs"), "fn f() { x.unwrap() }\n").unwrap();
        std::fs::write(source.join("broken.rs"), "//! Broken.\nfn f( {}\n").unwrap();
        let (tree, broken) = Tree::load(&root).unwrap();
        assert_eq!(broken.len(), 1, "{broken:?}");
        let found = check(&tree, &Exceptions::default());
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(!run(&root, false).unwrap());
        std::fs::remove_dir_all(&root).unwrap();
    }
}
