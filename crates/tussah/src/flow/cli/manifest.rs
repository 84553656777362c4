//! The modules known to `check` and `draw`: those of the program, or those in a manifest.

use std::borrow::Cow;
use std::path::PathBuf;

use clap::Args;
use tussah_weave::Modules;

use super::source::{Source, read};
use super::{Others, Program};

#[derive(Args)]
pub(super) struct Manifest {
    /// Manifest of the modules that the graphs use, as `describe` prints it
    ///
    /// By default, the graphs use the modules of this program.
    #[arg(long, value_name = "MANIFEST.json")]
    modules: Option<PathBuf>,
}

impl Manifest {
    /// Returns the modules of the manifest or, without a manifest, those of the program. If a file
    /// uses unknown modules and the program trusts them, the modules are open to others.
    pub(super) fn load<'p>(
        &self,
        program: &'p Program,
        source: &Source,
    ) -> Result<Cow<'p, Modules>, String> {
        if let Some(path) = &self.modules {
            let modules = serde_json::from_str(&read(path)?);
            return modules.map(Cow::Owned).map_err(|error| {
                format!("{} is not a manifest of modules: {error}", path.display())
            });
        }
        let known = program.modules.signatures();
        if program.others == Others::Trusted && !unknown(program, source).is_empty() {
            return Ok(Cow::Owned(Modules {
                is_open: true,
                ..known.clone()
            }));
        }
        Ok(Cow::Borrowed(known))
    }
}

/// Returns a help line for a file that uses modules that the program does not have. The help is
/// empty if they cannot belong to another program. `command` is the command that needs the modules.
pub(super) fn foreign(program: &Program, source: &Source, command: &str) -> String {
    if program.others == Others::Refused || unknown(program, source).is_empty() {
        return String::new();
    }
    let file = source.file();
    format!(
        "help: unknown modules may belong to another program; use the command `{command}` of that \
         program\n      (in a project made by `{} new`: cargo run -- {command} {file})\n",
        program.name
    )
}

/// Returns the names of the modules that a file uses and the program does not have.
pub(super) fn unknown(program: &Program, source: &Source) -> Vec<String> {
    let known = &program.modules.signatures().signatures;
    let unknown = source.imports().filter(|path| !known.contains_key(path));
    unknown.map(|path| format!("`{path}`")).collect()
}
