//! Programs that are wrong, with their whole messages.
//!
//! `tests/wrong/NAME.weave` is the program, `NAME.stderr` its messages with signatures. With the
//! first line `// without signatures`, it is checked without, and with `// with other modules`, it
//! may use modules without a signature. `WEAVE_BLESS=1` writes the messages.

use std::collections::BTreeSet;
use std::path::Path;

use tussah_weave::{Diagnostic, check, parse};

use crate::modules::modules;

/// Returns the messages about a program.
fn messages(name: &str, text: &str) -> String {
    let parsed = parse(text);
    let mut modules = modules();
    modules.is_open = text.starts_with("// with other modules");
    let is_trusting = text.starts_with("// without signatures");
    let checked = check(&parsed.file, (!is_trusting).then_some(&modules));
    let mut diagnostics: Vec<&Diagnostic> = parsed
        .diagnostics
        .iter()
        .chain(&checked.diagnostics)
        .collect();
    diagnostics.sort_by_key(|diagnostic| diagnostic.span);
    let rendered: Vec<String> = diagnostics
        .iter()
        .map(|diagnostic| diagnostic.render(&format!("{name}.weave"), text))
        .collect();
    rendered.join("\n")
}

#[test]
fn each_wrong_program_has_its_messages() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wrong");
    let is_blessed = std::env::var_os("WEAVE_BLESS").is_some();
    let mut programs = BTreeSet::new();
    let mut snapshots = BTreeSet::new();
    for entry in std::fs::read_dir(&directory).expect("the directory exists") {
        let path = entry.expect("the directory can be read").path();
        let stem = path
            .file_stem()
            .expect("a file has a name")
            .to_string_lossy()
            .into_owned();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("weave") => programs.insert(stem),
            Some("stderr") => snapshots.insert(stem),
            _ => panic!("{} is neither a program nor its messages", path.display()),
        };
    }
    let mut failures = String::new();
    for name in &programs {
        let text = std::fs::read_to_string(directory.join(name).with_extension("weave"))
            .expect("a program can be read");
        let found = messages(name, &text);
        let path = directory.join(name).with_extension("stderr");
        if found.is_empty() {
            failures.push_str(&format!("{name} has no messages\n"));
        } else if is_blessed {
            std::fs::write(&path, &found).expect("the messages can be written");
            snapshots.insert(name.clone());
        } else {
            let expected = std::fs::read_to_string(&path).unwrap_or_default();
            if expected != found {
                failures.push_str(&format!("{name}: expected\n{expected}found\n{found}\n"));
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{failures}WEAVE_BLESS=1 writes the messages"
    );
    let partners: Vec<&String> = programs.symmetric_difference(&snapshots).collect();
    assert!(partners.is_empty(), "without a partner: {partners:?}");
    assert!(programs.len() >= 60, "only {} programs", programs.len());
}

#[test]
fn messages_about_long_names_are_short() {
    let name = "n".repeat(900_000);
    for text in [
        format!("graph G() {{\n  a = {name}()\n}}"),
        format!("use {name}, Parse\ngraph G() {{\n  a = {name}()\n  a = Parse({name}: 1)\n}}"),
        format!("use Parse\ngraph G() {{\n  {name} = Parse()\n  {name} -> {name}.{name}\n}}"),
        format!("graph {name}() {{\n}}\ngraph {name}() {{\n}}"),
        format!("graph G({name}: count, {name}: count = 1 {name}) {{\n}}"),
        format!("graph G() {{\n  {name} {name}\n}}"),
    ] {
        let found = messages("long", &text);
        assert!(
            !found.is_empty() && found.len() < 3000,
            "{} bytes",
            found.len()
        );
    }
}
