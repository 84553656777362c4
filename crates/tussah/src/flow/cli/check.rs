//! The command `check`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use tussah_weave::Diagnostic;

use super::Program;
use super::manifest::{Manifest, unknown};
use super::source::{Source, WRONG, fail, print, print_error};

/// Check Weave graphs, and print all errors.
///
/// Exits with 0 if there are no errors, with 1 if there are errors, and with 2 if a file cannot be
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

impl CheckArguments {
    pub(super) fn run(&self, program: &Program) -> ExitCode {
        let (mut has_errors, mut is_unread) = (false, false);
        for path in &self.files {
            let source = match Source::read(path) {
                Ok(source) => source,
                Err(error) => {
                    fail(&error);
                    is_unread = true;
                    continue;
                }
            };
            let modules = match self.manifest.load(program, &source) {
                Ok(modules) => modules,
                Err(error) => return fail(&error),
            };
            if modules.is_open && !self.json {
                let (file, others) = (source.file(), unknown(program, &source).join(", "));
                print_error(&format!(
                    "note: {file} uses modules of another program ({others}); without --modules, \
                     their arguments, ports and types are not checked\n"
                ));
            }
            let diagnostics = source.check(Some(&modules)).diagnostics;
            has_errors |= diagnostics.iter().any(Diagnostic::is_error);
            if self.json {
                if let Err(error) = print(&json(&source, &diagnostics)) {
                    return fail(&error);
                }
            } else {
                print_error(&source.render(&diagnostics));
            }
        }
        ExitCode::from(match is_unread {
            true => WRONG,
            false => u8::from(has_errors),
        })
    }
}

/// Returns each diagnostic as a line of JSON, with its position.
fn json(source: &Source, diagnostics: &[Diagnostic]) -> String {
    let mut lines = String::new();
    for diagnostic in diagnostics {
        let (line, column) = diagnostic.span.position(&source.text);
        let object = serde_json::json!({
            "file": source.file(),
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
