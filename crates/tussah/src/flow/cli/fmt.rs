//! The command `fmt`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use tussah_weave::format;

use super::source::{WRONG, fail, print, print_error, read, render, write};

/// Format Weave graphs.
#[derive(Args)]
pub struct FmtArguments {
    /// Files to format
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
        let text = read(path)?;
        match format(&text) {
            Err(diagnostics) => {
                print_error(&render(path, &text, &diagnostics));
                Ok(false)
            }
            Ok(formatted) if formatted == text => Ok(true),
            Ok(_) if self.check => {
                let text = format!("{} is not formatted\n", path.display());
                print(&text).map(|()| false)
            }
            Ok(formatted) => write(path, &formatted).map(|()| true),
        }
    }
}
