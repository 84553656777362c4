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
        let known = program.modules.signatures();
        let is_known = |path: &str| known.signatures.contains_key(path);
        if program.others == Others::Trusted && !source.imports().all(|path| is_known(&path)) {
            return Ok(None);
        }
        Ok(Some(Cow::Borrowed(known)))
    }
}
