//! The command `draw`.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use tussah_weave::{Checked, Diagnostic, Modules, draw};

use super::Program;
use super::manifest::Manifest;
use super::source::{Source, fail, no_graph, print, print_error, write};

/// Draw a Weave graph as SVG.
#[derive(Args)]
pub struct DrawArguments {
    /// File with the graph
    file: PathBuf,
    /// Graph to draw [default: the first]
    #[arg(long, value_name = "NAME")]
    graph: Option<String>,
    /// Write DOT, the language of Graphviz, instead of SVG
    #[arg(long)]
    dot: bool,
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    manifest: Manifest,
}

impl DrawArguments {
    pub(super) fn run(&self, program: &Program) -> ExitCode {
        let loaded = Source::read(&self.file).and_then(|source| {
            let modules = self.manifest.load(program, &source)?;
            Ok((source, modules))
        });
        let (source, modules) = match loaded {
            Ok(loaded) => loaded,
            Err(error) => return fail(&error),
        };
        let checked = source.check(Some(&modules));
        if checked.diagnostics.iter().any(Diagnostic::is_error) {
            print_error(&source.render(&checked.diagnostics));
            return ExitCode::FAILURE;
        }
        match self.draw(&source, &checked, &modules) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&error),
        }
    }

    fn draw(&self, source: &Source, checked: &Checked, modules: &Modules) -> Result<(), String> {
        let mut graphs = checked.graphs.iter();
        let graph = match &self.graph {
            Some(name) => graphs.find(|graph| graph.name == *name),
            None => graphs.next(),
        };
        let graph =
            graph.ok_or_else(|| no_graph(source, &checked.graphs, self.graph.as_deref()))?;
        // In one figure, a box without a mark would be either a serial module or an unknown one.
        let modules = Some(modules).filter(|modules| !modules.is_open);
        let drawn = match self.dot {
            true => draw::dot(graph, modules),
            false => draw::svg(graph, modules),
        };
        match &self.output {
            None => print(&drawn),
            Some(path) if is_same(path, &self.file) => Err(format!(
                "cannot write the drawing to {}: it is the file with the graph",
                path.display()
            )),
            Some(path) => write(path, &drawn),
        }
    }
}

/// Returns whether two paths lead to one file.
fn is_same(one: &Path, other: &Path) -> bool {
    let [one, other] = [one, other].map(|path| {
        let file = std::fs::metadata(path).ok()?;
        Some((file.dev(), file.ino()))
    });
    one.is_some() && one == other
}
