//! The Rust files of the tree, parsed.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context as _;
use proc_macro2::TokenStream;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Meta};

use super::Finding;
use super::tokens::{self, Token};

/// All Rust files of the tree that can be parsed.
pub(super) struct Tree {
    pub(super) files: Vec<Source>,
}

/// The purpose of a file, which determines the rules that apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A part of the code that users depend on.
    Product,
    /// An integration test, or a unit-test module in its own file.
    Test,
    /// A benchmark, an example, or one of the project's own programs.
    Tool,
}

/// A Rust file.
pub(super) struct Source {
    /// Relative to the workspace, with `/` between its parts.
    pub(super) path: String,
    pub(super) role: Role,
    pub(super) text: String,
    pub(super) tokens: Vec<Token>,
    pub(super) ast: syn::File,
    /// The lines, counted from 1, of items that are compiled for tests only.
    tests: Vec<RangeInclusive<usize>>,
}

impl Tree {
    /// Reads the tree below `root`, and reports the files that cannot be parsed.
    ///
    /// # Errors
    ///
    /// Returns an error if a directory or a file cannot be read.
    pub(super) fn load(root: &Path) -> anyhow::Result<(Self, Vec<Finding>)> {
        Ok(Self::parse(read_all(root, ".rs")?))
    }

    fn parse(texts: Vec<(String, String)>) -> (Self, Vec<Finding>) {
        let mut files = Vec::new();
        let mut findings = Vec::new();
        for (path, text) in texts {
            match Source::parse(path, text) {
                Ok(source) => files.push(source),
                Err(finding) => findings.push(finding),
            }
        }
        let mut tree = Self { files };
        tree.mark_test_files();
        (tree, findings)
    }

    /// Returns a tree of small files, all of which can be parsed.
    #[cfg(test)]
    pub(super) fn of(texts: &[(&str, &str)]) -> Self {
        let owned = texts
            .iter()
            .map(|&(path, text)| (path.to_owned(), text.to_owned()));
        let (tree, findings) = Self::parse(owned.collect());
        assert_eq!(findings, []);
        tree
    }

    /// Marks each file that a `#[cfg(test)] mod name;` includes as a test, and the files below it.
    fn mark_test_files(&mut self) {
        let stems: BTreeSet<String> = self.files.iter().flat_map(Source::test_modules).collect();
        for file in &mut self.files {
            let brought_in = stems.iter().any(|stem| {
                let rest = file.path.strip_prefix(stem.as_str());
                rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/') || rest.is_empty())
            });
            if brought_in {
                file.role = Role::Test;
            }
        }
    }
}

impl Source {
    fn parse(path: String, text: String) -> Result<Self, Finding> {
        let broken = |line: usize, error: &dyn std::fmt::Display| {
            Finding::new(
                path.as_str(),
                line,
                format!("does not parse as Rust: {error}"),
            )
        };
        let stream = TokenStream::from_str(&text)
            .map_err(|error| broken(error.span().start().line, &error))?;
        let tokens = tokens::flatten(stream.clone());
        let ast: syn::File =
            syn::parse2(stream).map_err(|error| broken(error.span().start().line, &error))?;
        let mut finder = TestFinder { tests: Vec::new() };
        finder.visit_file(&ast);
        let role = if ast.attrs.iter().any(for_tests) {
            Role::Test
        } else {
            role(&path)
        };
        Ok(Self {
            path,
            role,
            text,
            tokens,
            ast,
            tests: finder.tests,
        })
    }

    /// Returns whether a line, counted from 1, is compiled for tests only.
    pub(super) fn is_test_line(&self, line: usize) -> bool {
        self.role == Role::Test || self.tests.iter().any(|range| range.contains(&line))
    }

    pub(super) fn line_count_without_tests(&self) -> usize {
        (1..=self.text.lines().count())
            .filter(|&line| !self.is_test_line(line))
            .count()
    }

    /// Returns the paths, without `.rs`, of the modules that this file declares for tests only.
    fn test_modules(&self) -> Vec<String> {
        let (directory, name) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        let stem = name.strip_suffix(".rs").unwrap_or(name);
        let base = match stem {
            "lib" | "main" | "mod" => directory.to_owned(),
            _ => format!("{directory}/{stem}"),
        };
        let modules = self.ast.items.iter().filter_map(|item| match item {
            syn::Item::Mod(module) if module.content.is_none() => Some(module),
            _ => None,
        });
        let for_tests = modules.filter(|module| module.attrs.iter().any(for_tests));
        for_tests
            .map(
                |module| match module.attrs.iter().find_map(path_attribute) {
                    Some(path) => format!("{directory}/{}", path.trim_end_matches(".rs")),
                    None => format!("{base}/{}", module.ident),
                },
            )
            .collect()
    }
}

/// A visitor that finds the items that are compiled for tests only.
struct TestFinder {
    tests: Vec<RangeInclusive<usize>>,
}

impl TestFinder {
    /// Returns whether the item is for tests only, and records its lines if so.
    fn note(&mut self, attributes: &[Attribute], item: &dyn Fn() -> proc_macro2::Span) -> bool {
        let found = attributes.iter().any(for_tests);
        if found {
            let span = item();
            self.tests.push(span.start().line..=span.end().line);
        }
        found
    }
}

impl<'ast> Visit<'ast> for TestFinder {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !self.note(attributes(item), &|| item.span()) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !self.note(&function.attrs, &|| function.span()) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        self.note(&field.attrs, &|| field.span());
    }
}

/// Returns the attributes of an item.
pub(super) fn attributes(item: &syn::Item) -> &[Attribute] {
    use syn::Item;
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Returns whether an attribute makes its item a test: `#[test]`, `#[tussah::test]`,
/// `#[cfg(test)]`.
fn for_tests(attribute: &Attribute) -> bool {
    attribute
        .path()
        .segments
        .last()
        .is_some_and(|segment| segment.ident == "test")
        || for_cfg(attribute, "test")
}

/// Returns whether an attribute is a `#[cfg]` that requires the option.
pub(super) fn for_cfg(attribute: &Attribute, option: &str) -> bool {
    match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => list
            .parse_args::<Meta>()
            .is_ok_and(|condition| requires(&condition, option)),
        _ => false,
    }
}

fn requires(condition: &Meta, option: &str) -> bool {
    let Meta::List(list) = condition else {
        return condition.path().is_ident(option);
    };
    let parser = syn::punctuated::Punctuated::<Meta, syn::Token![,]>::parse_terminated;
    let Ok(parts) = list.parse_args_with(parser) else {
        return false;
    };
    let mut parts = parts.iter();
    if list.path.is_ident("all") {
        parts.any(|part| requires(part, option))
    } else if list.path.is_ident("any") {
        parts.len() > 0 && parts.all(|part| requires(part, option))
    } else {
        false
    }
}

/// Returns the file name in `#[path = "name.rs"]`.
fn path_attribute(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => tokens::string(&pair.value),
        _ => None,
    }
}

/// Returns the purpose of a file that is not compiled for tests only.
pub(super) fn role(path: &str) -> Role {
    let below = |name: &str| path.split('/').rev().skip(1).any(|part| part == name);
    if below("tests") {
        Role::Test
    } else if below("benches")
        || below("examples")
        || path.starts_with("xtask/")
        || path.starts_with("crates/tussah-bench/")
    {
        Role::Tool
    } else {
        Role::Product
    }
}

/// Reads the files below `root` whose names end with `ending`, sorted by their paths.
///
/// # Errors
///
/// Returns an error if a directory or a file cannot be read.
pub(crate) fn read_all(root: &Path, ending: &str) -> anyhow::Result<Vec<(String, String)>> {
    let mut paths = Vec::new();
    walk(root, ending, &mut paths)?;
    paths.sort();
    let mut texts = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let relative = path.strip_prefix(root).expect("the walk began at the root");
        texts.push((relative.to_string_lossy().replace('\\', "/"), text));
    }
    Ok(texts)
}

/// Collects the files whose names end with `ending`. It skips hidden directories, build output, and
/// the inputs of UI tests, which are wrong on purpose.
fn walk(directory: &Path, ending: &str, paths: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let entries = std::fs::read_dir(directory)
        .with_context(|| format!("cannot read {}", directory.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            let built = name == "target" || path.join("CACHEDIR.TAG").exists();
            if !built && !path.ends_with("tests/ui") {
                walk(&path, ending, paths)?;
            }
        } else if name.ends_with(ending) {
            paths.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_lines(text: &str) -> Vec<usize> {
        let tree = Tree::of(&[("crates/a/src/lib.rs", text)]);
        (1..=text.lines().count())
            .filter(|&line| tree.files[0].is_test_line(line))
            .collect()
    }

    #[test]
    fn items_for_tests_are_found_with_their_attributes() {
        let text =
            "fn f() {}\n/// Tests.\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\nfn h() {}\n";
        assert_eq!(test_lines(text), [2, 3, 4, 5, 6]);
        assert_eq!(
            test_lines("struct S;\nimpl S {\n#[cfg(test)]\nfn f() {}\nfn g() {}\n}\n"),
            [3, 4]
        );
        assert_eq!(test_lines("#[tussah::test]\nasync fn f() {}\n"), [1, 2]);
    }

    #[test]
    fn a_condition_is_for_tests_only_if_it_requires_them() {
        let check = |condition: &str, expected: bool| {
            let text = format!("#[cfg({condition})]\nfn f() {{}}\n");
            assert_eq!(!test_lines(&text).is_empty(), expected, "{condition}");
        };
        check("test", true);
        check("all(test, loom)", true);
        check("all(test, not(loom))", true);
        check("any(test, all(test, loom))", true);
        check("not(test)", false);
        check("any(test, loom)", false);
        check("loom", false);
        check("feature = \"test\"", false);
    }

    #[test]
    fn a_test_module_in_a_file_of_its_own_is_a_test() {
        let tree = Tree::of(&[
            (
                "crates/a/src/lib.rs",
                "#[cfg(test)]\nmod models;\nmod ring;\n",
            ),
            ("crates/a/src/models.rs", ""),
            ("crates/a/src/models/deep.rs", ""),
            (
                "crates/a/src/ring.rs",
                "#[cfg(test)]\nmod tests;\n#[cfg(test)]\n#[path = \"x.rs\"]\nmod y;\n",
            ),
            ("crates/a/src/ring/tests.rs", ""),
            ("crates/a/src/x.rs", ""),
            ("crates/a/tests/it/main.rs", ""),
            ("crates/a/benches/b.rs", ""),
        ]);
        let roles: Vec<_> = tree.files.iter().map(|file| file.role).collect();
        use Role::{Product, Test, Tool};
        assert_eq!(
            roles,
            [Product, Test, Test, Product, Test, Test, Test, Tool]
        );
    }

    #[test]
    fn a_file_that_does_not_parse_is_a_finding() {
        for text in ["fn f( {}\n", "\nfn 7() {}\n"] {
            let (tree, findings) = Tree::parse(vec![("a.rs".into(), text.into())]);
            assert!(tree.files.is_empty());
            assert!(
                findings[0].to_string().contains("does not parse as Rust"),
                "{findings:?}"
            );
        }
    }
}
