//! The modules known to `check` and `draw`: those of the program, or those in a manifest.

use std::borrow::Cow;
use std::path::PathBuf;

use clap::Args;
use tussah_weave::{Modules, suggest};

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
    /// Returns the modules of the manifest or, without a manifest, those of the program. Returns
    /// `None` if a file uses unknown modules and the program trusts them.
    pub(super) fn load<'p>(
        &self,
        program: &'p Program,
        source: &Source,
    ) -> Result<Option<Cow<'p, Modules>>, String> {
        if let Some(path) = &self.modules {
            let modules = serde_json::from_str(&read(path)?);
            return modules
                .map(|modules| Some(Cow::Owned(modules)))
                .map_err(|error| {
                    format!("{} is not a manifest of modules: {error}", path.display())
                });
        }
        if program.others == Others::Trusted && !unknown(program, source).is_empty() {
            return Ok(None);
        }
        Ok(Some(Cow::Borrowed(program.modules.signatures())))
    }
}

/// Returns the names of the modules that a file uses and the program does not have, each with a
/// similar name that the program has.
pub(super) fn unknown(program: &Program, source: &Source) -> Vec<String> {
    let known = &program.modules.signatures().signatures;
    let imports = source.imports();
    imports
        .filter(|path| !known.contains_key(&**path))
        .map(
            |path| match suggest::nearest(&path, known.keys().map(String::as_str)) {
                Some(near) => format!("`{path}`: did you mean `{near}`?"),
                None => format!("`{path}`"),
            },
        )
        .collect()
}
