//! The command `fmt`.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use tussah_weave::format;

use super::source::{WRONG, fail, print, print_error, read, render, write};

/// Format Weave graphs.
#[derive(Args)]
pub struct FmtArguments {
    /// Files to format; `-` formats the standard input, and writes to the standard output
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Only check the files; exit with 1 if a file is not formatted
    #[arg(long)]
    check: bool,
}

impl FmtArguments {
    pub(super) fn run(&self) -> ExitCode {
        let (mut is_clean, mut has_failed) = (true, false);
        for path in &self.files {
            match self.format(path) {
                Ok(is_formatted) => is_clean &= is_formatted,
                Err(error) => {
                    fail(&error);
                    has_failed = true;
                }
            }
        }
        ExitCode::from(match has_failed {
            true => WRONG,
            false => u8::from(!is_clean),
        })
    }

    /// Formats a file, or only checks it. Returns whether the file is formatted afterwards.
    fn format(&self, path: &Path) -> Result<bool, String> {
        if path == Path::new("-") {
            let text = io::read_to_string(io::stdin());
            let text = text.map_err(|error| format!("cannot read the standard input: {error}"))?;
            return self.format_text(Path::new("standard input"), &text, &print);
        }
        // The text of a pipe can be read only once, so it would be lost.
        if !self.check && std::fs::metadata(path).is_ok_and(|file| !file.is_file()) {
            let path = path.display();
            return Err(format!(
                "cannot format {path}: it is not a regular file; `fmt -` formats the standard input"
            ));
        }
        let text = read(path)?;
        let write_changed = |formatted: &str| match formatted == text {
            true => Ok(()),
            false => write(path, formatted),
        };
        self.format_text(path, &text, &write_changed)
    }

    /// Formats a text, or only checks it. Returns whether it is formatted afterwards.
    fn format_text(
        &self,
        path: &Path,
        text: &str,
        write: &dyn Fn(&str) -> Result<(), String>,
    ) -> Result<bool, String> {
        match format(text) {
            Err(diagnostics) => {
                print_error(&render(path, text, &diagnostics));
                Ok(false)
            }
            Ok(formatted) if self.check && formatted == text => Ok(true),
            Ok(_) if self.check => {
                let text = format!("{} is not formatted\n", path.display());
                print(&text).map(|()| false)
            }
            Ok(formatted) => write(&formatted).map(|()| true),
        }
    }
}
