//! The commands for graphs in Weave.

use std::path::Path;
use std::process::{Command, Output};

const GRAPH: &str = "use A, B\n\ngraph Two {\n  a = A\n  b = B\n  a -> b\n}\n";

fn tussah(directory: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tussah"))
        .args(arguments)
        .current_dir(directory)
        .output();
    let Output {
        status,
        stdout,
        stderr,
    } = output.expect("the command starts");
    let text = |bytes| String::from_utf8(bytes).expect("the output is text");
    (
        status.code().expect("the command ends by itself"),
        text(stdout),
        text(stderr),
    )
}

#[test]
fn check_exits_with_the_kind_of_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    std::fs::write(path.join("two.weave"), GRAPH).expect("a file");
    std::fs::write(path.join("wrong.weave"), GRAPH.replace("-> b", "-> c")).expect("a file");
    let (code, _, stderr) = tussah(path, &["check", "two.weave"]);
    assert_eq!(code, 0);
    assert!(stderr.contains("taken on trust"), "{stderr}");
    let (code, _, stderr) = tussah(path, &["check", "two.weave", "wrong.weave"]);
    assert_eq!(code, 1);
    assert!(
        stderr.contains("error: unknown instance `c`\n --> wrong.weave:6:8"),
        "{stderr}"
    );
    let (code, stdout, _) = tussah(path, &["check", "--json", "wrong.weave"]);
    assert_eq!(code, 1);
    let error: serde_json::Value = serde_json::from_str(&stdout).expect("one line of JSON");
    assert_eq!(
        (&error["line"], &error["severity"]),
        (&6.into(), &"error".into())
    );
    let (code, _, stderr) = tussah(path, &["check", "missing.weave"]);
    assert_eq!(code, 2);
    assert!(stderr.starts_with("note:"), "{stderr}");
    assert!(stderr.contains("cannot read missing.weave"), "{stderr}");
}

#[test]
fn check_uses_a_manifest() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let manifest = r#"{"signatures": {
        "A": {"name": "A", "outputs": [{"name": "out", "item": "Vec<u8>", "required": true}]},
        "B": {"name": "B", "inputs": [{"name": "run", "item": "String"}], "parallelism": "serial"}
    }}"#;
    std::fs::write(path.join("modules.json"), manifest).expect("a file");
    std::fs::write(path.join("two.weave"), GRAPH).expect("a file");
    let (code, _, stderr) = tussah(path, &["check", "--modules", "modules.json", "two.weave"]);
    assert_eq!(code, 1);
    let expected = "error: `a` sends `Vec<u8>`, but `b` expects `String`\n --> two.weave:6:3";
    assert!(stderr.starts_with(expected), "{stderr}");
    std::fs::write(path.join("modules.json"), "{}").expect("a file");
    let (code, _, stderr) = tussah(path, &["check", "--modules", "modules.json", "two.weave"]);
    assert_eq!(code, 2);
    assert!(
        stderr.contains("modules.json is not a manifest"),
        "{stderr}"
    );
}

#[test]
fn fmt_formats_or_only_checks() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let file = path.join("two.weave");
    std::fs::write(&file, "use A,B graph Two{a=A b=B a->b}").expect("a file");
    let (code, stdout, _) = tussah(path, &["fmt", "--check", "two.weave"]);
    assert_eq!((code, stdout.as_str()), (1, "two.weave is not formatted\n"));
    assert_eq!(tussah(path, &["fmt", "two.weave"]).0, 0);
    let formatted = std::fs::read_to_string(&file).expect("the file");
    assert_eq!(formatted, GRAPH.replace("\n\ngraph", "\ngraph"));
    assert_eq!(tussah(path, &["fmt", "--check", "two.weave"]).0, 0);
}

#[test]
fn draw_writes_a_picture() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    std::fs::write(path.join("two.weave"), GRAPH).expect("a file");
    let (code, stdout, _) = tussah(path, &["draw", "two.weave"]);
    assert_eq!(code, 0);
    assert!(stdout.starts_with("<svg "), "{stdout}");
    let arguments = [
        "draw",
        "two.weave",
        "--graph",
        "Two",
        "--dot",
        "-o",
        "two.dot",
    ];
    assert_eq!(tussah(path, &arguments).0, 0);
    let written = std::fs::read_to_string(path.join("two.dot")).expect("the drawing");
    assert!(written.contains("\"a\" -> \"b\""), "{written}");
    let (code, _, stderr) = tussah(path, &["draw", "two.weave", "--graph", "Three"]);
    assert_eq!(code, 2);
    assert!(
        stderr.contains("does not contain Three (graphs: Two)"),
        "{stderr}"
    );
}
