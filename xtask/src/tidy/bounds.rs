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
         Everything in tussah is bounded. This page lists the bounds that a user of the libraries\n\
         and commands can meet or set, each with its unit and its reason, from the documentation of\n\
         the items that hold them. A bound without a value is a field or a type, and its\n\
         documentation says what sets it. Internal limits are documented only in the code.\n\n\
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
mod tests;
