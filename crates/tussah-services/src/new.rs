//! The command `new`, which creates a project with a module, a graph and a test.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

/// The files of a project. The sources of Cargo's files have other names here, because Cargo would
/// otherwise treat the directory as a package.
const FILES: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("new/manifest.toml")),
    ("README.md", include_str!("new/readme.md")),
    ("graph.weave", include_str!("new/graph.weave")),
    ("src/main.rs", include_str!("new/main.rs.txt")),
    (".gitignore", "/target\n"),
];

/// The keywords of Rust, as `cargo new` lists them.
const KEYWORDS: &[&str] = &[
    "Self", "abstract", "as", "async", "await", "become", "box", "break", "const", "continue",
    "crate", "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Create a cargo project with a module, a graph in Weave, and a test.
#[derive(Args)]
pub struct Arguments {
    /// Name of the project, and of its directory
    name: String,
    /// Source of the tussah dependency: directory of the crate, directory of its repository, or URL
    /// of the repository
    ///
    /// The default is the directory from which this command was built.
    #[arg(long, value_name = "PATH|GIT")]
    tussah: Option<String>,
}

/// Runs `tussah new`. Returns exit status 0, or 2 if the project cannot be created.
#[must_use]
pub fn run(arguments: &Arguments) -> ExitCode {
    match create(arguments) {
        Ok(()) => {
            let name = &arguments.name;
            println!(
                "created {name}; try: cd {name} && cargo test && cargo run -- run graph.weave"
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn create(arguments: &Arguments) -> Result<(), String> {
    let name = &arguments.name;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(is_plain) {
        return Err(format!(
            "the name {name:?} is not one of a cargo package: expected letters, digits, `-` and `_`"
        ));
    }
    if let Some(reason) = refusal(name) {
        let error = format!("the project cannot have the name {name:?}: {reason}");
        return Err(error);
    }
    let dependency = dependency(arguments.tussah.as_deref())?;
    // An existing directory is an error, so that no file is overwritten.
    let made = |path: &Path, result: io::Result<()>| {
        result.map_err(|error| format!("cannot create {}: {error}", path.display()))
    };
    let directory = Path::new(name);
    made(directory, fs::create_dir(directory))?;
    let source = directory.join("src");
    made(&source, fs::create_dir(&source))?;
    for (file, text) in FILES {
        let text = text.replace("NAME", name).replace("TUSSAH", &dependency);
        let path = directory.join(file);
        made(&path, fs::write(&path, text))?;
    }
    Ok(())
}

/// Returns the reason why a project cannot have the name of a package.
fn refusal(name: &str) -> Option<&'static str> {
    match name {
        "tussah" | "tussah-core" | "tussah-macros" | "tussah-weave" => {
            Some("it depends on a package with this name")
        }
        "build" | "deps" | "examples" | "incremental" | "test" => Some("cargo reserves it"),
        keyword if KEYWORDS.contains(&keyword) => Some("it is a keyword of Rust"),
        _ => None,
    }
}

/// Returns the location of tussah in the form of a dependency in Cargo.toml.
fn dependency(place: Option<&str>) -> Result<String, String> {
    let path = match place {
        Some(git) if git.contains("://") || git.starts_with("git@") => {
            return Ok(format!("git = {git:?}"));
        }
        Some(path) => PathBuf::from(path),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("tussah"),
    };
    // The repository contains the crate.
    let inside = path.join("crates/tussah");
    let path = match inside.join("Cargo.toml").is_file() {
        true => inside,
        false => path,
    };
    if !path.join("Cargo.toml").is_file() {
        let path = path.display();
        return Err(format!(
            "there is no crate in {path}: expected --tussah with the directory of the crate tussah, \
             or the address of its git repository"
        ));
    }
    let path = path.canonicalize();
    let path = path.map_err(|error| format!("cannot find the crate tussah: {error}"))?;
    Ok(format!("path = {:?}", path.display().to_string()))
}
