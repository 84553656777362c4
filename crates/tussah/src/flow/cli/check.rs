//! The commands for graphs in Weave: `tussah check`, `tussah fmt` and `tussah draw`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use tussah_weave::{Checked, Diagnostic, Modules, check, draw, format, parse};

/// The exit code if a file cannot be read or written, as for a wrong command line.
const CANNOT_RUN: u8 = 2;

/// Check graphs in Weave, and print all errors.
///
/// Exits with 0 if there are no errors, with 1 if there are some, and with 2 if a file cannot be
/// read.
#[derive(Args)]
pub struct CheckArguments {
    /// Files to check
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print each error as one line of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    manifest: Manifest,
}

/// Format graphs in Weave.
#[derive(Args)]
pub struct FmtArguments {
    /// Files to format
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Change no file; exit with 1 if a file is not formatted
    #[arg(long)]
    check: bool,
}

/// Draw a graph in Weave as SVG.
#[derive(Args)]
pub struct DrawArguments {
    /// File with the graph
    file: PathBuf,
    /// Graph to draw [default: the first]
    #[arg(long, value_name = "NAME")]
    graph: Option<String>,
    /// Write the language DOT of Graphviz instead of SVG
    #[arg(long)]
    dot: bool,
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    manifest: Manifest,
}

#[derive(Args)]
struct Manifest {
    /// Manifest of the modules that the graphs use, as a program describes them
    ///
    /// Without it, ports and types are taken on trust.
    #[arg(long, value_name = "MANIFEST.json")]
    modules: Option<PathBuf>,
}

impl Manifest {
    fn load(&self) -> Result<Option<Modules>, String> {
        let Some(path) = &self.modules else {
            return Ok(None);
        };
        serde_json::from_str(&read(path)?)
            .map(Some)
            .map_err(|error| format!("{} is not a manifest of modules: {error}", path.display()))
    }
}

/// Runs `tussah check`.
#[must_use]
pub fn run_check(arguments: &CheckArguments) -> ExitCode {
    let modules = match arguments.manifest.load() {
        Ok(modules) => modules,
        Err(error) => return fail("check", &error),
    };
    if modules.is_none() && !arguments.json {
        eprintln!("note: without --modules, ports and types are taken on trust");
    }
    let mut has_errors = false;
    for path in &arguments.files {
        let text = match read(path) {
            Ok(text) => text,
            Err(error) => return fail("check", &error),
        };
        let (_, diagnostics) = check_text(&text, modules.as_ref());
        has_errors |= diagnostics.iter().any(Diagnostic::is_error);
        match arguments.json {
            true => print!("{}", json(path, &text, &diagnostics)),
            false => eprint!("{}", render(path, &text, &diagnostics)),
        }
    }
    ExitCode::from(u8::from(has_errors))
}

/// Runs `tussah fmt`.
#[must_use]
pub fn run_fmt(arguments: &FmtArguments) -> ExitCode {
    let mut is_clean = true;
    for path in &arguments.files {
        let text = match read(path) {
            Ok(text) => text,
            Err(error) => return fail("fmt", &error),
        };
        match format(&text) {
            Err(diagnostics) => {
                eprint!("{}", render(path, &text, &diagnostics));
                is_clean = false;
            }
            Ok(formatted) if formatted == text => {}
            Ok(_) if arguments.check => {
                println!("{} is not formatted", path.display());
                is_clean = false;
            }
            Ok(formatted) => {
                if let Err(error) = write(path, &formatted) {
                    return fail("fmt", &error);
                }
            }
        }
    }
    ExitCode::from(u8::from(!is_clean))
}

/// Runs `tussah draw`.
#[must_use]
pub fn run_draw(arguments: &DrawArguments) -> ExitCode {
    let inputs = arguments
        .manifest
        .load()
        .and_then(|modules| Ok((modules, read(&arguments.file)?)));
    let (modules, text) = match inputs {
        Ok(inputs) => inputs,
        Err(error) => return fail("draw", &error),
    };
    let (checked, diagnostics) = check_text(&text, modules.as_ref());
    if diagnostics.iter().any(Diagnostic::is_error) {
        eprint!("{}", render(&arguments.file, &text, &diagnostics));
        return ExitCode::FAILURE;
    }
    let mut graphs = checked.graphs.iter();
    let graph = match &arguments.graph {
        Some(name) => graphs.find(|graph| graph.name == *name),
        None => graphs.next(),
    };
    let Some(graph) = graph else {
        let names: Vec<&str> = checked
            .graphs
            .iter()
            .map(|graph| graph.name.as_str())
            .collect();
        let wanted = arguments.graph.as_deref().unwrap_or("a graph");
        let known = names.join(", ");
        let file = arguments.file.display();
        return fail(
            "draw",
            &format!("{file} does not contain {wanted} (graphs: {known})"),
        );
    };
    let drawn = match arguments.dot {
        true => draw::dot(graph, modules.as_ref()),
        false => draw::svg(graph, modules.as_ref()),
    };
    match &arguments.output {
        None => print!("{drawn}"),
        Some(path) => {
            if let Err(error) = write(path, &drawn) {
                return fail("draw", &error);
            }
        }
    }
    ExitCode::SUCCESS
}

fn fail(command: &str, error: &str) -> ExitCode {
    eprintln!("tussah {command}: {error}");
    ExitCode::from(CANNOT_RUN)
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Checks a text. The diagnostics of the parser and the checker are in the order of the file.
fn check_text(text: &str, modules: Option<&Modules>) -> (Checked, Vec<Diagnostic>) {
    let parsed = parse(text);
    let mut checked = check(&parsed.file, modules);
    let mut diagnostics = parsed.diagnostics;
    diagnostics.append(&mut checked.diagnostics);
    diagnostics.sort_by_key(|diagnostic| diagnostic.span);
    (checked, diagnostics)
}

fn render(path: &Path, text: &str, diagnostics: &[Diagnostic]) -> String {
    let file = path.display().to_string();
    let rendered = diagnostics
        .iter()
        .map(|diagnostic| diagnostic.render(&file, text) + "\n");
    rendered.collect()
}

/// Returns each diagnostic as a line of JSON, with its position.
fn json(path: &Path, text: &str, diagnostics: &[Diagnostic]) -> String {
    let mut lines = String::new();
    for diagnostic in diagnostics {
        let (line, column) = diagnostic.span.position(text);
        let object = serde_json::json!({
            "file": path.display().to_string(),
            "line": line,
            "column": column,
            "severity": diagnostic.severity,
            "message": diagnostic.message,
            "label": diagnostic.label,
            "help": diagnostic.help,
        });
        writeln!(lines, "{object}").expect("a string takes all");
    }
    lines
}
