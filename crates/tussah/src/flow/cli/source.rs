//! A Weave file, as the commands read it.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tussah_weave::tree::File;
use tussah_weave::{Checked, Diagnostic, Graph, Modules, Span, check, parse};

/// The exit code for an invalid command line, for a file that cannot be read or written, and for a
/// graph that cannot run.
pub(super) const WRONG: u8 = 2;

/// The text of a file and its tree.
pub(super) struct Source {
    path: PathBuf,
    pub(super) text: String,
    tree: File,
    diagnostics: Vec<Diagnostic>,
}

impl Source {
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let text = read(path)?;
        let parsed = parse(&text);
        Ok(Self {
            path: path.to_owned(),
            text,
            tree: parsed.file,
            diagnostics: parsed.diagnostics,
        })
    }

    /// Returns the file's name as the user wrote it.
    pub(super) fn file(&self) -> String {
        self.path.display().to_string()
    }

    /// Returns the position of a span, such as `web.weave:7:3`.
    pub(super) fn position(&self, span: Span) -> String {
        span.place(&self.file(), &self.text)
    }

    /// Returns the paths of the modules that the file uses.
    pub(super) fn imports(&self) -> impl Iterator<Item = String> {
        self.tree.imports.iter().map(ToString::to_string)
    }

    /// Checks the file. The diagnostics of the parser and the checker are in the order of the file.
    pub(super) fn check(&self, modules: Option<&Modules>) -> Checked {
        let mut checked = check(&self.tree, modules);
        checked.diagnostics.extend(self.diagnostics.iter().cloned());
        checked
            .diagnostics
            .sort_by_key(|diagnostic| diagnostic.span);
        checked
    }

    /// Returns diagnostics as excerpts of the file.
    pub(super) fn render(&self, diagnostics: &[Diagnostic]) -> String {
        render(&self.path, &self.text, diagnostics)
    }
}

/// Returns the error for a graph that is not in the file.
pub(super) fn no_graph(source: &Source, graphs: &[Graph], wanted: Option<&str>) -> String {
    let names: Vec<&str> = graphs.iter().map(|graph| graph.name.as_str()).collect();
    let (file, known) = (source.file(), names.join(", "));
    match wanted {
        Some(wanted) if !graphs.is_empty() => {
            format!("{file} does not contain {wanted} (graphs: {known})")
        }
        _ => format!(
            "{file} contains no graph: expected one, such as `graph {} {{ a -> b }}`",
            wanted.unwrap_or("G")
        ),
    }
}

/// Returns a text in which no character is a command for a terminal, or ends the line.
pub(super) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character.is_control() {
            true => shown.extend(character.escape_default()),
            false => shown.push(character),
        }
    }
    shown
}

/// Prints an error that ends a command.
pub(super) fn fail(error: &str) -> ExitCode {
    print_error(&format!("error: {error}\n"));
    ExitCode::from(WRONG)
}

/// Prints all errors that end a command.
pub(super) fn fail_all(errors: &[String]) -> ExitCode {
    for error in errors {
        fail(error);
    }
    ExitCode::from(WRONG)
}

/// Prints text on the standard error. If that fails, nobody can be told.
pub(super) fn print_error(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Prints text on the standard output. A reader that has closed the pipe is not an error.
pub(super) fn print(text: &str) -> Result<(), String> {
    let mut stdout = io::stdout().lock();
    let printed = stdout.write_all(text.as_bytes());
    match printed.and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write to the standard output: {error}"))
        }
        _ => Ok(()),
    }
}

pub(super) fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))
}

pub(super) fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

pub(super) fn render(path: &Path, text: &str, diagnostics: &[Diagnostic]) -> String {
    let file = path.display().to_string();
    let rendered = diagnostics
        .iter()
        .map(|diagnostic| diagnostic.render(&file, text) + "\n");
    rendered.collect()
}
