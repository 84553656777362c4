//! The checker, which resolves names and makes graphs from the definitions of a file.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::diagnostic::{Diagnostic, Severity};
use crate::graph::{Graph, Test};
use crate::lex::ERRORS_MAX;
use crate::modules::Modules;
use crate::suggest;
use crate::token::Span;
use crate::tree::{File, Path};

mod args;
mod build;
mod cases;
mod conditions;
mod copies;
mod cycles;
mod doubles;
mod edges;
pub(crate) mod ends;
mod expand;
mod fields;
mod fused;
pub(crate) mod instance;
mod order;
pub(crate) mod ports;
mod scope;
mod unify;
mod values;

/// The result of checking a file.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// The graphs, in the order in which the file defines them. A graph with errors may lack some
    /// parts.
    pub graphs: Vec<Graph>,
    /// The tests.
    pub tests: Vec<Test>,
    /// The errors and warnings, sorted by position.
    pub diagnostics: Vec<Diagnostic>,
}

/// Checks a file, using the signatures in `modules` if they are given.
///
/// If there are no signatures, ports and types are not checked.
#[must_use]
pub fn check(file: &File, modules: Option<&Modules>) -> Checked {
    let mut checker = Checker {
        modules,
        imports: HashMap::new(),
        definitions: HashMap::new(),
        reported: HashSet::new(),
        broken: HashSet::new(),
        copied: 0,
        is_too_large: false,
        diagnostics: Vec::new(),
    };
    checker.resolve_imports(file);
    checker.resolve_definitions(file);
    let (mut built, mut broken) = (BTreeMap::new(), HashSet::new());
    for index in checker.order(file) {
        let (graph, is_broken) = build::graph(&mut checker, &file.graphs[index], &built);
        broken.extend(is_broken.then_some(index));
        let name = &file.graphs[index].name.text;
        checker.broken.extend(is_broken.then(|| name.clone()));
        built.insert(index, graph);
    }
    broken.extend((0..file.graphs.len()).filter(|index| !built.contains_key(index)));
    // A recursive graph is not built; it stands there empty.
    let graphs: Vec<Graph> = (0..file.graphs.len())
        .map(|index| {
            built
                .remove(&index)
                .unwrap_or_else(|| build::empty(&file.graphs[index]))
        })
        .collect();
    let tests = cases::tests(&mut checker, file, &graphs, &broken);
    checker.report_unused_imports(file);
    let mut diagnostics = checker.diagnostics;
    // What seems unused may be used where the error is.
    if file.is_broken || diagnostics.iter().any(Diagnostic::is_error) {
        diagnostics.retain(Diagnostic::is_error);
    }
    diagnostics.sort_by_key(|diagnostic| diagnostic.span);
    diagnostics.truncate(ERRORS_MAX);
    Checked {
        graphs,
        tests,
        diagnostics,
    }
}

/// The checker's knowledge of the whole file.
struct Checker<'a> {
    modules: Option<&'a Modules>,
    /// The imported modules by their last name.
    imports: HashMap<&'a str, Import<'a>>,
    /// The graphs by name.
    definitions: HashMap<&'a str, usize>,
    /// The names of the graphs that may lack some parts because of errors.
    broken: HashSet<String>,
    /// The positions of the errors so far.
    reported: HashSet<Span>,
    /// The size of all copies of graphs inside other graphs.
    copied: usize,
    /// True if a graph has too many parts, which is reported once.
    is_too_large: bool,
    diagnostics: Vec<Diagnostic>,
}

struct Import<'a> {
    path: &'a Path,
    is_known: bool,
    is_used: bool,
}

/// The module or graph that the path after `=` names.
enum Target {
    /// A module with its full path.
    Module(String),
    /// A graph of the file.
    Graph(usize),
    /// Neither. The error is reported.
    Unknown,
}

impl<'a> Checker<'a> {
    /// Reports a diagnostic, unless an error has already been reported for this position.
    fn report(&mut self, diagnostic: Diagnostic) {
        if diagnostic.severity == Severity::Error {
            if !self.reported.insert(diagnostic.span) {
                return;
            }
        } else if self.reported.contains(&diagnostic.span) {
            return;
        }
        self.diagnostics.push(diagnostic);
    }

    fn resolve_imports(&mut self, file: &'a File) {
        let graphs = file.graphs.iter().map(|graph| graph.name.text.as_str());
        let graphs: HashSet<&str> = graphs.collect();
        for path in &file.imports {
            let span = path.names.last().map_or(path.span(), |name| name.span);
            if let [name] = &*path.names
                && graphs.contains(path.last())
                && self
                    .modules
                    .is_none_or(|it| !it.signatures.contains_key(&name.text))
            {
                let message = format!("`{path}` is a graph of this file, and needs no `use`");
                self.report(Diagnostic::error(span, message));
                continue;
            }
            let is_known = self.check_path(path, span);
            let import = Import {
                path,
                is_known,
                is_used: false,
            };
            if let Some(before) = self.imports.insert(path.last(), import) {
                let span = path.names.last().map_or(path.span(), |name| name.span);
                let message = format!("`{}` is imported twice", path.last());
                let error = Diagnostic::error(span, message)
                    .other(
                        before.path.span(),
                        format!("`{}` is imported here first", before.path),
                    )
                    .help("write the whole path of one of them at its instances");
                self.report(error);
            }
        }
    }

    /// Reports a module that has no signature. Returns whether it is known.
    fn check_path(&mut self, path: &Path, span: Span) -> bool {
        let Some(modules) = self.modules else {
            return true;
        };
        let name = path.to_string();
        if modules.signatures.contains_key(&name) {
            return true;
        }
        if modules.is_open {
            self.warn_of_similar(modules, &name, span);
            return true;
        }
        let mut error = Diagnostic::error(span, format!("unknown module `{name}`"));
        // The module may be in another place under the same name.
        let elsewhere = modules
            .signatures
            .keys()
            .find(|known| known.rsplit("::").next() == Some(path.last()));
        let known = modules.signatures.keys().map(String::as_str);
        let mut inside = known.clone().filter_map(|known| {
            let inner = known.strip_prefix(&*name)?;
            inner.strip_prefix("::")
        });
        error.help = match (elsewhere, inside.next()) {
            (Some(elsewhere), _) => Some(format!("did you mean `{elsewhere}`?")),
            (None, Some(inner)) => {
                Some(format!("name a module inside it, as in `{name}::{inner}`"))
            }
            (None, None) => suggest::help(&name, known),
        };
        self.report(error);
        false
    }

    /// Warns of a module without a signature if a module in the same place has a similar name.
    fn warn_of_similar(&mut self, modules: &Modules, name: &str, span: Span) {
        let place = |path: &str| path.rsplit_once("::").map(|(place, _)| place.to_owned());
        let known = modules.signatures.keys().map(String::as_str);
        let known = known.filter(|known| place(known) == place(name));
        if let Some(near) = suggest::nearest(name, known) {
            let warning = Diagnostic::warning(span, format!("unknown module `{name}`"));
            self.report(warning.help(format!("did you mean `{near}`?")));
        }
    }

    fn resolve_definitions(&mut self, file: &'a File) {
        for (index, definition) in file.graphs.iter().enumerate() {
            let name = &definition.name;
            let taken = match self.definitions.get(name.text.as_str()) {
                Some(&first) => {
                    Some((file.graphs[first].name.span, "the first graph of this name"))
                }
                None => {
                    let import = self.imports.get(name.text.as_str());
                    import.map(|import| {
                        (import.path.span(), "a module of this name is imported here")
                    })
                }
            };
            if let Some((span, text)) = taken {
                let message = format!("the name `{}` is taken", name.text);
                self.report(Diagnostic::error(name.span, message).other(span, text));
            }
            self.definitions.entry(&name.text).or_insert(index);
        }
    }

    /// Resolves the path of an instance.
    fn resolve(&mut self, path: &Path) -> Target {
        if path.names.len() > 1 {
            return match self.check_path(path, path.span()) {
                true => Target::Module(path.to_string()),
                false => Target::Unknown,
            };
        }
        let name = path.last();
        if let Some(&graph) = self.definitions.get(name) {
            return Target::Graph(graph);
        }
        if let Some(import) = self.imports.get_mut(name) {
            import.is_used = true;
            return match import.is_known {
                true => Target::Module(import.path.to_string()),
                false => Target::Unknown,
            };
        }
        let error = Diagnostic::error(path.span(), format!("unknown module `{name}`"));
        let known = self.imports.keys().chain(self.definitions.keys()).copied();
        let help = match suggest::nearest(name, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => match self.modules.and_then(|modules| path_of(modules, name)) {
                Some(path) => format!("add `use {path}`"),
                None => format!("add `use` with the path of `{name}`, or a graph of this name"),
            },
        };
        self.report(error.help(help));
        Target::Unknown
    }

    /// Returns whether a name is that of an imported module or of a graph.
    fn is_module(&self, name: &str) -> bool {
        self.imports.contains_key(name) || self.definitions.contains_key(name)
    }

    fn report_unused_imports(&mut self, file: &File) {
        if file.is_broken {
            return;
        }
        let unused: Vec<&Path> = self
            .imports
            .values()
            .filter(|import| !import.is_used && import.is_known)
            .map(|import| import.path)
            .collect();
        for path in unused {
            let span = path.names.last().map_or(path.span(), |name| name.span);
            self.report(Diagnostic::warning(span, format!("no graph uses `{path}`")));
        }
    }
}

/// Returns the full path of a module, from its last name.
fn path_of<'a>(modules: &'a Modules, name: &str) -> Option<&'a str> {
    let mut paths = modules.signatures.keys().map(String::as_str);
    paths.find(|path| path.rsplit("::").next() == Some(name))
}
