//! The documentation comments that users see: rustdoc of public items, and the help of options.

use std::collections::BTreeSet;

use syn::visit::{self, Visit};
use syn::{Attribute, Item, Visibility};

use crate::tidy::source::{Role, Source, Tree, attributes};

/// Returns the paths, without `.rs`, of the modules that a library declares with `pub mod`, and of
/// the libraries themselves.
pub(super) fn public_modules(tree: &Tree) -> BTreeSet<String> {
    let files = tree.files.iter().filter(|it| it.role == Role::Product);
    let mut stems = BTreeSet::new();
    for file in files {
        let stem = file.path.trim_end_matches(".rs");
        let base = stem.trim_end_matches("/mod").trim_end_matches("/lib");
        if base.ends_with("/src") {
            stems.insert(base.to_owned());
        }
        let modules = file.ast.items.iter().filter_map(|item| match item {
            Item::Mod(module) if is_public(&module.vis) => Some(module),
            _ => None,
        });
        stems.extend(modules.map(|module| format!("{base}/{}", module.ident)));
    }
    stems
}

/// Returns the lines, counted from 1, of the documentation comments in a file that users see.
///
/// This is an approximation: `pub` counts as public even if no path leads to the item.
pub(super) fn lines(source: &Source, public_modules: &BTreeSet<String>) -> BTreeSet<usize> {
    let mut finder = Finder {
        is_library: source.role == Role::Product,
        lines: BTreeSet::new(),
    };
    let stem = source.path.trim_end_matches(".rs");
    let stem = stem.trim_end_matches("/mod").trim_end_matches("/lib");
    finder.note(public_modules.contains(stem), &source.ast.attrs);
    finder.visit_file(&source.ast);
    finder.lines.retain(|line| !source.is_test_line(*line));
    finder.lines
}

struct Finder {
    /// False for the project's own programs, of which users see only the help.
    is_library: bool,
    lines: BTreeSet<usize>,
}

impl Finder {
    fn note(&mut self, is_public: bool, attributes: &[Attribute]) {
        if is_public && self.is_library {
            self.note_all(attributes);
        }
    }

    fn note_all(&mut self, attributes: &[Attribute]) {
        let docs = attributes.iter().filter(|it| it.path().is_ident("doc"));
        self.lines
            .extend(docs.map(|it| it.pound_token.span.start().line));
    }

    /// Notes the fields of a variant or of options, all of which users see.
    fn note_fields(&mut self, fields: &syn::Fields) {
        for field in fields {
            self.note_all(&field.attrs);
        }
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item(&mut self, item: &'ast Item) {
        let shown = match item {
            Item::Const(item) => is_public(&item.vis),
            Item::Enum(item) => is_public(&item.vis),
            Item::Fn(item) => is_public(&item.vis),
            Item::Mod(item) => is_public(&item.vis),
            Item::Static(item) => is_public(&item.vis),
            Item::Struct(item) => is_public(&item.vis),
            Item::Trait(item) => is_public(&item.vis),
            Item::Type(item) => is_public(&item.vis),
            Item::Macro(item) => item
                .attrs
                .iter()
                .any(|it| it.path().is_ident("macro_export")),
            _ => false,
        };
        self.note(shown, attributes(item));
        let is_help = is_help(attributes(item));
        match item {
            Item::Enum(item) if is_help || (shown && self.is_library) => {
                for variant in &item.variants {
                    self.note_all(&variant.attrs);
                    self.note_fields(&variant.fields);
                }
            }
            Item::Struct(item) if is_help => self.note_fields(&item.fields),
            Item::Trait(item) if shown => {
                for item in &item.items {
                    let attributes = match item {
                        syn::TraitItem::Const(item) => &item.attrs,
                        syn::TraitItem::Fn(item) => &item.attrs,
                        syn::TraitItem::Type(item) => &item.attrs,
                        _ => continue,
                    };
                    self.note(true, attributes);
                }
            }
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        self.note(is_public(&field.vis), &field.attrs);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.note(is_public(&function.vis), &function.attrs);
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.note(is_public(&item.vis), &item.attrs);
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Returns whether clap makes help texts from the comments of an item's fields or variants.
fn is_help(attributes: &[Attribute]) -> bool {
    let names = ["Args", "Parser", "Subcommand", "ValueEnum"];
    attributes.iter().any(|attribute| {
        let mut found = false;
        if attribute.path().is_ident("derive") {
            let _ = attribute.parse_nested_meta(|meta| {
                let last = meta.path.segments.last();
                found |= last.is_some_and(|last| names.iter().any(|name| last.ident == name));
                Ok(())
            });
        }
        found
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the words of the comments that users see.
    fn shown(path: &str, text: &str) -> Vec<String> {
        let lib = ("crates/a/src/lib.rs", "pub mod open;\nmod closed;\n");
        let tree = Tree::of(&[lib, (path, text)]);
        let lines = lines(&tree.files[1], &public_modules(&tree));
        let text: Vec<_> = text.lines().collect();
        lines
            .iter()
            .map(|line| {
                text[line - 1]
                    .trim_start_matches([' ', '/', '!'])
                    .to_owned()
            })
            .collect()
    }

    #[test]
    fn comments_of_public_items_are_shown() {
        let path = "crates/a/src/closed.rs";
        let check = |text: &str, expected: &[&str]| assert_eq!(shown(path, text), expected);
        check(
            "/// A\npub struct S;\n/// B\npub(crate) struct T;\n",
            &["A"],
        );
        check(
            "pub struct S {\n    /// A\n    pub a: u8,\n    /// B\n    b: u8,\n}\n",
            &["A"],
        );
        check(
            "pub enum E {\n    /// A\n    A {\n        /// B\n        b: u8,\n    },\n}\n\
             enum F {\n    /// C\n    C,\n}\n",
            &["A", "B"],
        );
        check(
            "pub trait T {\n    /// A\n    fn a(&self);\n}\ntrait U {\n    /// B\n    fn b();\n}\n",
            &["A"],
        );
        check(
            "impl S {\n    /// A\n    pub fn a() {}\n    /// B\n    fn b() {}\n}\n",
            &["A"],
        );
        check("#[cfg(test)]\nmod tests {\n/// A\npub fn a() {}\n}\n", &[]);
    }

    #[test]
    fn the_documentation_of_a_module_is_shown_if_the_module_is_public() {
        assert_eq!(shown("crates/a/src/open.rs", "//! A\n"), ["A"]);
        assert_eq!(shown("crates/a/src/closed.rs", "//! A\n"), [""; 0]);
    }

    #[test]
    fn the_help_of_private_options_is_shown_even_in_a_program() {
        let text = "/// A\n#[derive(clap::Args)]\nstruct S {\n    /// B\n    b: u8,\n}\n\
                    /// C\npub fn c() {}\n";
        assert_eq!(shown("xtask/src/a.rs", text), ["B"]);
    }
}
