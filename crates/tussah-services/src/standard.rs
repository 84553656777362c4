//! The modules that `tussah run` offers to every graph.

use std::path::PathBuf;

use tussah::flow::{AsyncOut, Modules, module};

/// Returns the standard modules by their names in Weave.
#[must_use]
pub fn modules() -> Modules {
    Modules::new().with::<Lines>("Lines").with::<Print>("Print")
}

/// Reads the lines of a file, which is held in memory.
struct Lines(String);

#[module]
impl Lines {
    fn init(file: PathBuf) -> Result<Self, String> {
        let text = std::fs::read_to_string(&file);
        let text = text.map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        Ok(Self(text))
    }

    async fn start(&self, out: &impl AsyncOut<String>) {
        for line in self.0.lines() {
            out.send(line.to_owned()).await;
        }
    }
}

/// Prints each line on standard output.
#[derive(Default)]
struct Print;

#[module]
impl Print {
    fn run(&mut self, line: String) {
        println!("{line}");
    }
}
