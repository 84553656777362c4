//! The list of all bounds, collected from the documentation of the code.

use proc_macro2::Span;
use syn::Attribute;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::Finding;
use super::size::type_name;
use super::source::{self, Role, Source, Tree};
use super::tokens;

/// The path of the list.
pub(super) const PATH: &str = "docs/bounds.md";

/// The form of the line that declares a bound. In Weave it is a comment or documentation.
const FORM: &str = "`/// Bound, in <unit>: <reason>.`";

/// A bound.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bound {
    crate_name: String,
    /// The path of the item in the crate.
    item: String,
    /// The path of its file, relative to the workspace.
    path: String,
    /// The expression of a constant; `None` for a value that can be configured.
    value: Option<String>,
    unit: String,
    reason: String,
}

/// Returns the bounds, sorted by name, and the lines that resemble a bound but do not have the
/// form. `graphs` are the files in Weave.
pub(super) fn collect(tree: &Tree, graphs: &[(String, String)]) -> (Vec<Bound>, Vec<Finding>) {
    let mut bounds = Vec::new();
    let mut findings = Vec::new();
    for source in &tree.files {
        let mut names = module_path(&source.path);
        let crate_name = names.remove(0);
        let mut finder = Finder {
            source,
            crate_name,
            names,
            bounds: Vec::new(),
            findings: Vec::new(),
        };
        finder.visit_file(&source.ast);
        bounds.append(&mut finder.bounds);
        findings.append(&mut finder.findings);
    }
    for (path, text) in graphs {
        if source::role(path) == Role::Product {
            collect_graph(path, text, &mut bounds, &mut findings);
        }
    }
    bounds.sort();
    bounds.dedup();
    (bounds, findings)
}

/// Returns the list as a page.
pub(super) fn page(bounds: &[Bound]) -> String {
    let mut page = String::from(
        "# Bounds\n\n\
         Everything in tussah is bounded. This page lists the bounds of the libraries and servers,\n\
         each with its unit and its reason, from the documentation of the items that hold them. A\n\
         bound without a value is a field or a type, and its documentation says what sets it.\n\n\
         `cargo xtask tidy --bless` writes this page, and `cargo xtask tidy` compares it with the\n\
         code. It is not edited by hand.\n",
    );
    let mut crate_name = None;
    for bound in bounds {
        if crate_name != Some(&bound.crate_name) {
            crate_name = Some(&bound.crate_name);
            page.push_str(&format!(
                "\n## {}\n\n| bound | value | unit | reason |\n",
                bound.crate_name
            ));
            page.push_str("|---|---|---|---|\n");
        }
        let value = bound
            .value
            .as_ref()
            .map_or(String::new(), |value| format!("`{value}`"));
        let cells = [&value, &bound.unit, &bound.reason].map(|cell| cell.replace('|', "\\|"));
        let [value, unit, reason] = cells;
        let Bound { item, path, .. } = bound;
        page.push_str(&format!(
            "| [`{item}`](../{path}) | {value} | {unit} | {reason} |\n"
        ));
    }
    page
}

/// Returns a finding if the page differs from the code.
pub(super) fn compare(written: &str, expected: &str) -> Option<Finding> {
    if written == expected {
        return None;
    }
    let same = written
        .lines()
        .zip(expected.lines())
        .take_while(|(left, right)| left == right);
    let line = same.count() + 1;
    let what = match expected.lines().nth(line - 1) {
        Some(line) => format!("is stale, expected `{line}`"),
        None => "is stale, expected the end of the page".into(),
    };
    Some(Finding::new(
        PATH,
        line,
        what + " (`cargo xtask tidy --bless` writes the page)",
    ))
}

struct Finder<'a> {
    source: &'a Source,
    crate_name: String,
    /// The modules, types and functions around the current place.
    names: Vec<String>,
    bounds: Vec<Bound>,
    findings: Vec<Finding>,
}

impl Finder<'_> {
    fn note(&mut self, attributes: &[Attribute], name: &str, value: Option<Span>) {
        let only_modelled = attributes
            .iter()
            .any(|attribute| source::for_cfg(attribute, "loom"));
        let Some((line, text)) = bound_text(attributes) else {
            return;
        };
        if only_modelled || self.source.is_test_line(line) {
            return;
        }
        let Some((unit, reason)) = parse(&text) else {
            let what = format!("`{text}` is not a bound, expected {FORM}");
            self.findings
                .push(Finding::new(self.source.path.as_str(), line, what));
            return;
        };
        // Users never see the constants of benchmarks, examples and the project's own programs.
        if self.source.role != Role::Product {
            return;
        }
        let mut names = self.names.clone();
        names.push(name.to_owned());
        self.bounds.push(Bound {
            crate_name: self.crate_name.clone(),
            item: names.join("::"),
            path: self.source.path.clone(),
            value: value
                .and_then(|span| span.source_text())
                .map(|text| one_line(&text)),
            unit: unit.to_owned(),
            reason: reason.to_owned(),
        });
    }

    fn within(&mut self, name: impl Into<String>, visit: impl FnOnce(&mut Self)) {
        self.names.push(name.into());
        visit(self);
        self.names.pop();
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        use syn::Item;
        let (name, value) = match item {
            Item::Const(item) => (item.ident.to_string(), Some(item.expr.span())),
            Item::Static(item) => (item.ident.to_string(), Some(item.expr.span())),
            Item::Fn(item) => (item.sig.ident.to_string(), None),
            Item::Mod(item) => (item.ident.to_string(), None),
            Item::Struct(item) => (item.ident.to_string(), None),
            Item::Enum(item) => (item.ident.to_string(), None),
            Item::Trait(item) => (item.ident.to_string(), None),
            Item::Type(item) => (item.ident.to_string(), None),
            Item::Impl(item) => (type_name(&item.self_ty), None),
            _ => return visit::visit_item(self, item),
        };
        self.note(source::attributes(item), &name, value);
        self.within(name, |finder| visit::visit_item(finder, item));
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        let name = field
            .ident
            .as_ref()
            .map_or_else(|| "0".to_owned(), ToString::to_string);
        self.note(&field.attrs, &name, None);
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        let name = variant.ident.to_string();
        self.note(&variant.attrs, &name, None);
        self.within(name, |finder| visit::visit_variant(finder, variant));
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.note(&item.attrs, &item.ident.to_string(), Some(item.expr.span()));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        let name = item.sig.ident.to_string();
        self.note(&item.attrs, &name, None);
        self.within(name, |finder| visit::visit_impl_item_fn(finder, item));
    }

    fn visit_trait_item_const(&mut self, item: &'ast syn::TraitItemConst) {
        let value = item.default.as_ref().map(|(_, value)| value.span());
        self.note(&item.attrs, &item.ident.to_string(), value);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        let name = item.sig.ident.to_string();
        self.note(&item.attrs, &name, None);
        self.within(name, |finder| visit::visit_trait_item_fn(finder, item));
    }
}

/// Collects the bounds of a file in Weave. Each stands above an instance, whose argument is its
/// value.
fn collect_graph(path: &str, text: &str, bounds: &mut Vec<Bound>, findings: &mut Vec<Finding>) {
    let mut names = module_path(path);
    let crate_name = names.remove(0);
    let mut lines = (1..).zip(text.lines().map(str::trim)).peekable();
    while let Some((number, line)) = lines.next() {
        if !line.starts_with("//") {
            continue;
        }
        let mut comment = vec![(number, comment_text(line))];
        while let Some((number, line)) = lines.next_if(|(_, line)| line.starts_with("//")) {
            comment.push((number, comment_text(line)));
        }
        let Some((number, bound)) = bound_of(comment.into_iter()) else {
            continue;
        };
        let argument = lines.peek().and_then(|&(_, line)| argument(line));
        let (Some((unit, reason)), Some((item, value))) = (parse(&bound), argument) else {
            let what = format!(
                "`{bound}` is not a bound, expected {FORM} above an instance with one named argument"
            );
            findings.push(Finding::new(path, number, what));
            continue;
        };
        bounds.push(Bound {
            crate_name: crate_name.clone(),
            item: format!("{}::{item}", names.join("::")),
            path: path.to_owned(),
            value: Some(value),
            unit: unit.to_owned(),
            reason: reason.to_owned(),
        });
    }
}

fn comment_text(line: &str) -> String {
    line.trim_start_matches('/').trim().to_owned()
}

/// Returns the name and the value of the only argument of an instance in Weave.
fn argument(line: &str) -> Option<(String, String)> {
    let (instance, rest) = line.split_once('=')?;
    let (_, arguments) = rest.split_once('(')?;
    let (arguments, _) = arguments.split_once(')')?;
    let (argument, value) = arguments.split_once(':')?;
    let is_one = !value.contains(',');
    is_one.then(|| {
        let item = format!("{}::{}", instance.trim(), argument.trim());
        (item, value.trim().to_owned())
    })
}

/// Returns the sentence of an item's documentation that declares a bound, and its line.
fn bound_text(attributes: &[Attribute]) -> Option<(usize, String)> {
    let lines = attributes
        .iter()
        .filter_map(doc_line)
        .flat_map(|(line, text)| {
            let texts = text
                .lines()
                .map(|text| text.trim().to_owned())
                .collect::<Vec<_>>();
            (line..).zip(texts)
        });
    bound_of(lines)
}

/// Returns the sentence that declares a bound, and its line. The sentence may span several lines of
/// one paragraph.
fn bound_of(mut lines: impl Iterator<Item = (usize, String)>) -> Option<(usize, String)> {
    let begins = |text: &str| {
        ["Bound,", "Bound:", "Bound in "]
            .iter()
            .any(|b| text.starts_with(b))
    };
    let (line, mut bound) = lines.find(|(_, text)| begins(text))?;
    for (_, text) in lines {
        if text.is_empty() || bound.ends_with('.') {
            break;
        }
        bound.push(' ');
        bound.push_str(&text);
    }
    Some((line, bound))
}

fn doc_line(attribute: &Attribute) -> Option<(usize, String)> {
    match &attribute.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("doc") => {
            let text = tokens::string(&pair.value)?;
            // An empty line must be kept, because it ends a paragraph.
            let text = if text.is_empty() { "\n".into() } else { text };
            Some((attribute.span().start().line, text))
        }
        _ => None,
    }
}

/// Returns the unit and the reason.
fn parse(text: &str) -> Option<(&str, &str)> {
    let (unit, reason) = text.strip_prefix("Bound, in ")?.split_once(": ")?;
    let reason = reason.strip_suffix('.')?;
    (!unit.is_empty() && !reason.is_empty()).then_some((unit, reason))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the crate and the modules of a file.
fn module_path(path: &str) -> Vec<String> {
    let path = path.strip_prefix("crates/").unwrap_or(path);
    let inner = path.split_once("/src/").or_else(|| path.split_once('/'));
    let (package, file) = inner.unwrap_or(("", path));
    let mut names = vec![package.to_owned()];
    let file = file.trim_end_matches(".rs").trim_end_matches(".weave");
    names.extend(file.split('/').map(str::to_owned));
    if names
        .last()
        .is_some_and(|last| ["lib", "main", "mod"].contains(&last.as_str()))
    {
        names.pop();
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collected(text: &str) -> (Vec<Bound>, Vec<Finding>) {
        collect(
            &Tree::of(&[("crates/tussah-core/src/time/wheel.rs", text)]),
            &[],
        )
    }

    #[track_caller]
    fn expect(text: &str, item: &str, value: Option<&str>) {
        let (bounds, findings) = collected(text);
        assert_eq!(findings, []);
        let seen: Vec<_> = bounds
            .iter()
            .map(|bound| (bound.item.as_str(), bound.value.as_deref()))
            .collect();
        assert_eq!(seen, [(item, value)]);
        assert_eq!(
            (bounds[0].unit.as_str(), bounds[0].reason.as_str()),
            ("timers", "it is enough")
        );
    }

    const DOC: &str = "/// Bound, in timers: it is enough.\n";

    #[test]
    fn bounds_are_found_on_every_kind_of_item() {
        expect(
            &format!("{DOC}const N: usize = 1 << 4;\n"),
            "time::wheel::N",
            Some("1 << 4"),
        );
        expect(
            &format!("{DOC}pub static N: u8 = 4;\n"),
            "time::wheel::N",
            Some("4"),
        );
        expect(
            &format!("struct S {{\n{DOC}pub n: u8 }}\n"),
            "time::wheel::S::n",
            None,
        );
        expect(
            &format!("impl S {{\n{DOC}const N: u8 = 4; }}\n"),
            "time::wheel::S::N",
            Some("4"),
        );
        expect(&format!("{DOC}struct S;\n"), "time::wheel::S", None);
        expect(
            &format!("fn f() {{\n{DOC}const N: u8 = 4; }}\n"),
            "time::wheel::f::N",
            Some("4"),
        );
        expect(
            &format!("mod m {{\n{DOC}fn f() {{}} }}\n"),
            "time::wheel::m::f",
            None,
        );
    }

    #[test]
    fn a_bound_may_stand_among_other_lines_and_go_on_for_several() {
        let text = "/// What it is.\n///\n/// Bound, in timers: it is\n/// enough.\n/// More.\nconst N: u8 = 4;\n";
        expect(text, "time::wheel::N", Some("4"));
    }

    #[test]
    fn tests_and_models_are_left_out() {
        let (bounds, _) = collected(&format!(
            "#[cfg(test)]\nmod tests {{\n{DOC}const N: u8 = 4; }}\n"
        ));
        assert_eq!(bounds, []);
        let model = format!("{DOC}#[cfg(loom)]\nconst N: u8 = 2;\n");
        let real = format!("{DOC}#[cfg(not(loom))]\nconst N: u8 = 64;\n");
        expect(&format!("{model}{real}"), "time::wheel::N", Some("64"));
    }

    #[test]
    fn a_line_without_the_form_is_found() {
        for doc in [
            "Bound: 4.",
            "Bound, in timers.",
            "Bound, in timers: no end",
            "Bound, in : x.",
        ] {
            let (bounds, findings) = collected(&format!("\n/// {doc}\nconst N: u8 = 4;\n"));
            assert_eq!(bounds, []);
            assert_eq!(findings[0].line, 2);
            assert!(
                findings[0].what.contains("is not a bound, expected"),
                "{findings:?}"
            );
        }
        assert_eq!(
            collected("/// Bounds of the heap.\nconst N: u8 = 4;\n").1,
            []
        );
    }

    #[test]
    fn the_page_has_a_table_for_each_crate() {
        let (bounds, _) = collect(
            &Tree::of(&[
                (
                    "crates/tussah/src/lib.rs",
                    &format!("struct C {{\n{DOC}pub n: u8 }}\n"),
                ),
                (
                    "crates/tussah-core/src/lib.rs",
                    &format!("{DOC}const N: u8 = 4 | 2;\n"),
                ),
                (
                    "crates/tussah/examples/some.rs",
                    &format!("{DOC}const M: u8 = 4;\n"),
                ),
            ]),
            &[],
        );
        let page = page(&bounds);
        let row = "|---|---|---|---|\n| [`C::n`]";
        assert!(page.contains(row), "{page}");
        assert!(!page.contains("some.rs"), "{page}");
        let row = "| [`C::n`](../crates/tussah/src/lib.rs) |  | timers | it is enough |";
        assert!(page.contains(row), "{page}");
        let row = "| [`N`](../crates/tussah-core/src/lib.rs) | `4 \\| 2` | timers | it is enough |";
        assert!(page.contains(row), "{page}");
        assert_eq!(page.matches("\n## ").count(), 2);
    }

    #[test]
    fn bounds_of_graphs_are_arguments_of_instances() {
        let collected = |path: &str, instance: &str| {
            let text = format!(
                "graph A {{\n  // One.\n  // Bound, in pages: it is\n  // enough.\n  {instance}\n}}"
            );
            collect(&Tree::of(&[]), &[(path.to_owned(), text)])
        };
        let path = "crates/tussah-services/src/web/a.weave";
        let (bounds, findings) = collected(path, "b = B(room: 1 << 4) * 2");
        assert_eq!(findings, []);
        let row = "| [`web::a::b::room`](../crates/tussah-services/src/web/a.weave) | `1 << 4` | pages | it is enough |";
        assert!(page(&bounds).contains(row), "{}", page(&bounds));
        let (bounds, findings) = collected(path, "b = B(room: 4, of: 5)");
        assert_eq!((bounds, findings[0].line), (Vec::new(), 3));
        let example = "crates/tussah/examples/a.weave";
        assert_eq!(
            collected(example, "b = B(room: 4)"),
            (Vec::new(), Vec::new())
        );
    }

    #[test]
    fn a_stale_page_is_found_at_the_first_line_that_differs() {
        assert_eq!(compare("a\nb\n", "a\nb\n"), None);
        let finding = compare("a\nx\n", "a\nb\n").unwrap();
        assert!(
            finding
                .to_string()
                .starts_with("docs/bounds.md:2: is stale, expected `b`")
        );
        assert!(
            compare("a\nb\nc\n", "a\nb\n")
                .unwrap()
                .what
                .contains("the end of the page")
        );
        assert_eq!(compare("", "a\n").unwrap().line, 1);
    }
}
