//! The commands for graphs in Weave.

mod options;
mod output;
mod refused;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

const GRAPH: &str = "use A, B\n\ngraph Two {\n  a = A\n  b = B\n  a -> b\n}\n";

fn tussah(directory: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tussah"));
    run(command.args(arguments).current_dir(directory))
}

fn run(command: &mut Command) -> (i32, String, String) {
    let output = command.output();
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
    let note = "note: two.weave uses modules of another program (`A`, `B`); without --modules, ";
    assert!(stderr.starts_with(note), "{stderr}");
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
    std::fs::write(path.join("near.weave"), GRAPH.replace('A', "Timr")).expect("a file");
    let (code, _, stderr) = tussah(path, &["check", "near.weave"]);
    assert_eq!(code, 0, "{stderr}");
    let warning = "warning: unknown module `Timr`\n --> near.weave:1:5";
    assert!(stderr.contains(warning), "{stderr}");
    assert!(stderr.contains("did you mean `Timer`?"), "{stderr}");
    let mixed = GRAPH.replace('A', "Timer").replace("Timer\n", "Timer(5)\n");
    std::fs::write(path.join("mixed.weave"), mixed).expect("a file");
    let (code, _, stderr) = tussah(path, &["check", "mixed.weave"]);
    assert_eq!(code, 1, "{stderr}");
    let error = "error: `every` of `Timer` is a duration, found a count";
    assert!(stderr.contains(error), "{stderr}");
    let (code, _, stderr) = tussah(path, &["check", "missing.weave"]);
    assert_eq!(code, 2);
    let expected = "error: cannot read missing.weave";
    assert!(stderr.starts_with(expected), "{stderr}");
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

const LINES: &str = "use FileLines, LinesOut

/// Prints lines.
graph LinePrinter(
  /// File to print.
  file: path,
  at_once: count = 8 * workers,
) {
  lines = FileLines(file)
  print = LinesOut()
  lines -> print via queue(at_once)
}
";

/// Returns a directory with graphs and a file to print.
fn lines() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        std::fs::write(directory.path().join(name), text).expect("a file");
    };
    write("lines.weave", LINES);
    write("in.txt", "one\ntwo\n");
    write("values.toml", "file = 'in.txt'\nat_once = 2\n");
    write("two.weave", "graph A() {} graph B() {}");
    directory
}

#[test]
fn run_takes_values_from_options_the_environment_and_a_file() {
    let directory = lines();
    let run_lines = |arguments: &[&str], variable: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tussah"));
        command.args(["run", "lines.weave"]).args(arguments);
        command.current_dir(directory.path());
        command.envs(variable.map(|file| ("LINE_PRINTER_FILE", file)));
        run(&mut command)
    };
    let printed = (0, "one\ntwo\n".to_owned(), String::new());
    assert_eq!(run_lines(&["--file", "in.txt"], Some("missing")), printed);
    let params = ["--params", "values.toml"];
    assert_eq!(run_lines(&params, None), printed);
    assert_eq!(
        run_lines(&["--at-once=1", "--workers=1"], Some("in.txt")),
        printed
    );
    let (code, stdout, stderr) = run_lines(&params, Some("missing"));
    let expected = "error: lines.weave:9:3: `lines` cannot start: ";
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(stderr.starts_with(expected), "{stderr}");
    // A line that is too long.
    let long = directory.path().join("long.txt");
    std::fs::write(long, format!("one\n{}", "x".repeat(100_000))).expect("a file");
    let (code, stdout, stderr) = run_lines(&params, Some("long.txt"));
    let expected = "error: lines.weave:9:3: the source `lines` failed: long.txt: ";
    assert_eq!((code, stdout.as_str()), (1, "one\n"));
    assert!(stderr.starts_with(expected), "{stderr}");
}

#[test]
fn run_reports_what_is_wrong_before_anything_starts() {
    let directory = lines();
    let check = |arguments: &[&str], expected: &str| {
        let (code, stdout, stderr) = tussah(directory.path(), arguments);
        assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
        assert!(stderr.starts_with(expected), "{stderr}");
    };
    check(
        &["run"],
        "error: expected a file: tussah run FILE [OPTIONS]",
    );
    check(&["run", "none.weave"], "error: cannot read none.weave");
    check(
        &["run", "lines.weave", "--at-once", "1 s"],
        "error: --file <path> is missing: give it on the command line, in the environment \
         (LINE_PRINTER_FILE), or in a file of --params\nerror: --at-once: 1 s is a duration, expected a count, for example 10 or 2 k\n",
    );
    check(
        &["run", "lines.weave", "--file", "in.txt", "--at-once", "0"],
        "error: the room of a queue is 0, expected at least 1\n  --> lines.weave:11:28",
    );
    check(
        &["run", "lines.weave", "--fil", "a"],
        "error: unexpected argument '--fil' found",
    );
    check(
        &["run", "two.weave"],
        "error: two.weave has several graphs: expected --graph with one of A, B",
    );
    check(
        &["run", "two.weave", "--graph", "C"],
        "error: two.weave does not contain C",
    );
}

#[test]
fn the_help_of_run_lists_the_parameters() {
    let directory = lines();
    let (code, stdout, _) = tussah(directory.path(), &["run", "lines.weave", "--help"]);
    assert_eq!(code, 0);
    let expected = "Parameters of LinePrinter:
      --file <PATH>      File to print. [env: LINE_PRINTER_FILE]
      --at-once <COUNT>  [default: 8 * workers] [env: LINE_PRINTER_AT_ONCE]
";
    assert!(stdout.starts_with("Prints lines.\n"), "{stdout}");
    assert!(stdout.ends_with(expected), "{stdout}");
}

#[test]
fn the_first_signal_drains_the_graph() {
    let directory = lines();
    // The second source never ends.
    let text = LINES.replace("use", "use Timer, Logger,").replace(
        "print = ",
        "timer = Timer(1 h) log = Logger() timer -> log print = ",
    );
    std::fs::write(directory.path().join("lines.weave"), text).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tussah"));
    command.args(["run", "lines.weave", "--file", "in.txt"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.current_dir(directory.path()).spawn();
    let mut child = child.expect("the command starts");
    let mut printed = [0; 8];
    let stdout = child.stdout.as_mut().expect("a pipe");
    stdout.read_exact(&mut printed).expect("two lines");
    assert_eq!(printed, *b"one\ntwo\n");
    let id = Pid::from_child(&child);
    kill_process(id, Signal::TERM).expect("the command runs");
    let output = child.wait_with_output().expect("the command ends");
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let mut lines = stderr.lines();
    let is_told = lines.any(|line| line.starts_with("shutting down: "));
    assert!(is_told, "{stderr}");
}

#[test]
fn a_write_at_the_limit_on_file_sizes_fails() {
    let directory = tempfile::tempdir().expect("there is room");
    let text = r#"use FileLines, FileAppend, Logger graph Copy() {
        lines = FileLines("in.txt") copy = FileAppend("out.txt") lost = Logger("lost")
        lines -> copy  copy.failed -> lost
    }"#;
    std::fs::write(directory.path().join("copy.weave"), text).expect("a file");
    let line = format!("{}\n", "x".repeat(999));
    std::fs::write(directory.path().join("in.txt"), line.repeat(5)).expect("a file");
    let mut shell = Command::new("sh");
    // The limit is 2 or 4 KB: shells count different blocks.
    shell.args(["-c", "ulimit -f 4; exec \"$0\" run copy.weave"]);
    let (code, _, stderr) = run(shell
        .arg(env!("CARGO_BIN_EXE_tussah"))
        .current_dir(directory.path()));
    assert_eq!(code, 0, "{stderr}");
    let lost = stderr.matches("label=\"lost\"").count();
    let copied = std::fs::read_to_string(directory.path().join("out.txt")).expect("a file");
    assert_eq!(copied.matches('\n').count() + lost, 5, "{stderr}");
    assert!(stderr.contains("File too large"), "{stderr}");
}

#[test]
fn run_prints_what_modules_log() {
    let directory = tempfile::tempdir().expect("there is room");
    let text = "use Timer, Logger graph Log() { t = Timer(1 ms, 3) l = Logger(\"here\") t -> l }";
    std::fs::write(directory.path().join("log.weave"), text).expect("a file");
    let (code, stdout, stderr) = tussah(directory.path(), &["run", "log.weave"]);
    assert_eq!((code, stdout.as_str()), (0, ""), "{stderr}");
    let logged = stderr
        .lines()
        .filter(|line| line.contains("label=\"here\""));
    // Several workers log at the same time.
    let mut items: Vec<_> = logged
        .filter_map(|line| line.split("item=").nth(1))
        .collect();
    items.sort_unstable();
    assert_eq!(items, ["0", "1", "2"], "{stderr}");
}

#[test]
fn test_runs_the_tests_of_a_file() {
    let directory = lines();
    let file = directory.path().join("lines.weave");
    let case = "test \"a line\" of LinePrinter(file: \"no file\") {
  send lines \"one\"
  expect print \"one\"
}
";
    std::fs::write(&file, format!("{LINES}\n{case}")).expect("a file");
    let passed = (0, "test a line ... ok\n".to_owned(), String::new());
    assert_eq!(tussah(directory.path(), &["test", "lines.weave"]), passed);
    let case = case.replace("print \"one\"", "print \"two\"");
    std::fs::write(&file, format!("{LINES}\n{case}")).expect("a file");
    let (code, stdout, stderr) = tussah(directory.path(), &["test", "lines.weave"]);
    assert_eq!((code, stdout.as_str()), (1, "test a line ... FAILED\n"));
    let expected = "test \"a line\" failed
error: other items have arrived at `print`
  --> lines.weave:16:10
   |
16 |   expect print \"two\"
   |          ^^^^^
  - two
  + one

";
    assert_eq!(stderr, expected);
    assert_eq!(tussah(directory.path(), &["test", "none.weave"]).0, 2);
}

#[test]
fn modules_of_another_program_need_that_program() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    std::fs::write(path.join("two.weave"), GRAPH).expect("a file");
    for command in ["run", "test"] {
        let (code, stdout, stderr) = tussah(path, &[command, "two.weave"]);
        assert_eq!((code, stdout.as_str()), (2, ""));
        let expected = format!(
            "help: unknown modules may belong to another program; use the command `{command}` of \
             that program\n      (in a project made by `tussah new`: cargo run -- {command} \
             two.weave)\n"
        );
        assert!(stderr.ends_with(&expected), "{stderr}");
    }
    std::fs::write(path.join("wrong.weave"), "graph A {").expect("a file");
    let (_, _, stderr) = tussah(path, &["run", "wrong.weave"]);
    assert!(!stderr.contains("help: unknown modules"), "{stderr}");
}

#[test]
fn new_makes_a_project() {
    // `cargo xtask ci --only new` builds one.
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let (code, _, stderr) = tussah(path, &["new", "squares"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let project = path.join("squares");
    let files = [
        "Cargo.toml",
        "README.md",
        "graph.weave",
        "src/main.rs",
        ".gitignore",
    ];
    for file in files {
        let text = std::fs::read_to_string(project.join(file)).expect(file);
        assert!(!text.contains("NAME") && !text.contains("TUSSAH"), "{text}");
    }
    let manifest = std::fs::read_to_string(project.join("Cargo.toml")).expect("a manifest");
    let tussah_path = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("tussah");
    assert!(
        manifest.contains(&format!("path = {tussah_path:?}")),
        "{manifest}"
    );
    let formatted = (0, String::new(), String::new());
    assert_eq!(
        tussah(&project, &["fmt", "--check", "graph.weave"]),
        formatted
    );

    let check = |arguments: &[&str], expected: &str| {
        let (code, stdout, stderr) = tussah(path, arguments);
        assert_eq!((code, stdout.as_str()), (2, ""));
        assert!(stderr.starts_with(expected), "{stderr}");
    };
    check(
        &["new", "squares"],
        "error: cannot create squares: File exists",
    );
    check(
        &["new", "9x"],
        "error: the name \"9x\" is not one of a cargo package",
    );
    let refused = |name, reason| {
        let expected = format!("error: the project cannot have the name \"{name}\": {reason}\n");
        check(&["new", name], &expected);
        assert!(!path.join(name).exists());
    };
    refused("tussah", "it depends on a package with this name");
    refused("tussah-core", "it depends on a package with this name");
    refused("fn", "it is a keyword of Rust");
    refused("build", "cargo reserves it");
    check(
        &["new", "b", "--tussah", "/none"],
        "error: there is no crate in /none",
    );
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let repository = repository.to_str().expect("the path is text");
    assert_eq!(
        tussah(path, &["new", "by-clone", "--tussah", repository]).0,
        0
    );
    let manifest = std::fs::read_to_string(path.join("by-clone/Cargo.toml")).expect("a manifest");
    let expected = format!("path = {tussah_path:?}");
    assert!(manifest.contains(&expected), "{manifest}");
    let git = ["new", "by-git", "--tussah", "https://example.org/tussah"];
    assert_eq!(tussah(path, &git).0, 0);
    let manifest = std::fs::read_to_string(path.join("by-git/Cargo.toml")).expect("a manifest");
    assert!(
        manifest.contains("{ git = \"https://example.org/tussah\", features"),
        "{manifest}"
    );
}

#[test]
fn the_manifest_of_describe_suits_check() {
    let directory = lines();
    let (code, manifest, _) = tussah(directory.path(), &["describe"]);
    assert_eq!(code, 0);
    std::fs::write(directory.path().join("modules.json"), manifest).expect("a file");
    let arguments = ["check", "--modules", "modules.json", "lines.weave"];
    let nothing = (0, String::new(), String::new());
    assert_eq!(tussah(directory.path(), &arguments), nothing);
    assert_eq!(tussah(directory.path(), &["check", "lines.weave"]), nothing);
}

#[test]
fn a_module_is_described_as_text() {
    let path = Path::new(".");
    let (code, text, errors) = tussah(path, &["describe", "Retry"]);
    assert_eq!((code, &*errors), (0, ""));
    let start = "Retry: handles any number of items at the same time; may wait

parameters:
  attempts  count (1 to 4294967295)
  first     duration
  longest   duration, optional
  jitter    number (0 to 1), optional
  seed      count, optional

input ports:
  run  Attempt<T>

output ports:
  out      Attempt<T>
  lost     Attempt<T>
  dropped  Dropped<Attempt<T>>, optional

item types:
  T = Message   (fields: text, size)
  T = PathBuf
";
    assert!(text.starts_with(start), "{text}");
    assert!(text.contains("| `jitter` | number"), "{text}");
    let (_, text, _) = tussah(path, &["describe", "TcpListen"]);
    assert!(text.contains("when `TcpDemand` asks "), "{text}");

    let (code, _, errors) = tussah(path, &["describe", "Timer", "Rety"]);
    let expected = "error: the program has no module `Rety`; did you mean `Retry`?\n";
    assert_eq!((code, &*errors), (2, expected));
}

#[test]
fn every_standard_module_has_documentation() {
    let (_, manifest, _) = tussah(Path::new("."), &["describe"]);
    let manifest: serde_json::Value = serde_json::from_str(&manifest).expect("a manifest");
    let signatures = manifest["signatures"].as_object().expect("signatures");
    let bare = signatures.iter().filter(|(_, module)| module["doc"] == "");
    let bare: Vec<_> = bare.map(|(name, _)| name).collect();
    assert!(signatures.len() > 20 && bare.is_empty(), "{bare:?}");
}

#[test]
fn the_figure_of_the_web_server_is_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let graph = "src/web/stages/web.weave";
    let nothing = (0, String::new(), String::new());
    assert_eq!(tussah(root, &["fmt", "--check", graph]), nothing);
    assert_eq!(tussah(root, &["check", graph]).0, 0);
    has_current_figure(graph, "../../docs/internals/web.svg");
}

#[test]
fn the_figures_of_the_other_servers_are_current() {
    has_current_figure("src/video/video.weave", "../../docs/video.svg");
    has_current_figure("src/gnutella/gnutella.weave", "../../docs/gnutella.svg");
}

fn has_current_figure(graph: &str, file: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (_, figure, _) = tussah(root, &["draw", graph]);
    let current = std::fs::read_to_string(root.join(file)).expect("the figure");
    let command = format!("tussah draw {graph} -o {file}");
    assert!(figure == current, "the figure is old: {command}");
}

const TICKS: &str = "use Timer, Logger, FileLines, LinesOut
graph Ticks() {
  timer = Timer(1 ms)
  log   = Logger()
  lines = FileLines(\"in.txt\")
  print = LinesOut()
  timer -> log
  lines -> print
}
";

/// Starts a command, and reads its first line.
fn started(directory: &Path, arguments: &[&str]) -> (Child, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tussah"));
    command.args(arguments).current_dir(directory);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command starts");
    let mut line = String::new();
    let stdout = child.stdout.as_mut().expect("a pipe");
    // The rest of the output goes to the pipe, which has room for it.
    let mut lines = BufReader::with_capacity(1, stdout);
    lines.read_line(&mut line).expect("a line");
    (child, line)
}

/// Returns a graph that ticks until it is stopped, with a control socket.
fn ticking() -> (tempfile::TempDir, Child) {
    let directory = lines();
    let path = directory.path();
    std::fs::write(path.join("ticks.weave"), TICKS).expect("a file");
    let run = ["run", "ticks.weave", "--control", "ticks.sock"];
    let (child, line) = started(path, &run);
    assert_eq!(line, "one\n");
    (directory, child)
}

fn ended(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().expect("the command ends");
    let stderr = String::from_utf8(output.stderr).expect("text");
    (output.status.code(), stderr)
}

#[test]
fn tap_shows_the_items_of_a_running_graph() {
    let (directory, run) = ticking();
    let path = directory.path();
    let socket = std::fs::metadata(path.join("ticks.sock")).expect("a socket");
    assert_eq!(socket.permissions().mode() & 0o777, 0o600);
    let edges = (
        0,
        "timer -> log\nlines -> print\n".to_owned(),
        String::new(),
    );
    assert_eq!(tussah(path, &["tap", "ticks.sock"]), edges);

    let (code, stdout, _) = tussah(path, &["tap", "ticks.sock", "timer", "--count", "3"]);
    let numbers: Vec<u64> = stdout
        .lines()
        .map(|it| it.parse().expect("a number"))
        .collect();
    let [first, second, third] = *numbers else {
        panic!("three numbers: {stdout}");
    };
    assert_eq!((code, second, third), (0, first + 1, first + 2));
    let json = ["tap", "ticks.sock", "timer -> log", "--json", "--count=1"];
    let (code, stdout, _) = tussah(path, &json);
    let item: serde_json::Value = serde_json::from_str(&stdout).expect("one line of JSON");
    assert_eq!(code, 0);
    assert!(item["item"].is_string(), "{item}");

    let (code, stdout, stderr) = tussah(path, &["tap", "ticks.sock", "timer -> lgo"]);
    let expected = "error: there is no edge `timer -> lgo`: did you mean `timer -> log`?\n";
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (1, "", expected));
    let again = ["run", "ticks.weave", "--control", "ticks.sock"];
    let expected = "error: another process uses the socket ticks.sock\n";
    assert_eq!(
        tussah(path, &again),
        (1, String::new(), expected.to_owned())
    );

    // The graph may still serve some of the commands above, and then refuses some of these clients.
    let clients = (0..32).map(|_| {
        let mut client = UnixStream::connect(path.join("ticks.sock")).expect("a connection");
        let _ = client.write_all(b"tap timer\n");
        client
    });
    let clients: Vec<UnixStream> = clients.collect();
    let expected = "error: 16 clients are connected already\n";
    assert_eq!(
        tussah(path, &["tap", "ticks.sock"]),
        (1, String::new(), expected.to_owned())
    );
    drop(clients);
    while tussah(path, &["tap", "ticks.sock"]).0 != 0 {}

    // The user ends one tap, and the graph the other.
    let (tap, _) = started(path, &["tap", "ticks.sock", "timer"]);
    let (last, _) = started(path, &["tap", "ticks.sock", "timer"]);
    kill_process(Pid::from_child(&tap), Signal::INT).expect("the command runs");
    assert_eq!(ended(tap), (Some(0), String::new()));
    kill_process(Pid::from_child(&run), Signal::TERM).expect("the command runs");
    assert_eq!(ended(last), (Some(0), "the graph has ended\n".to_owned()));
    assert_eq!(ended(run).0, Some(0));
    assert!(!path.join("ticks.sock").exists());
}

#[test]
fn the_socket_of_a_dead_process_is_an_error_and_can_be_used_again() {
    let (directory, mut run) = ticking();
    let path = directory.path();
    run.kill().expect("the command runs");
    run.wait().expect("the command ends");
    let check = |arguments: &[&str], code: i32, expected: &str| {
        let seen = tussah(path, arguments);
        assert_eq!(seen, (code, String::new(), format!("error: {expected}\n")));
    };
    let gone = "cannot connect to ticks.sock: its process has ended";
    check(&["tap", "ticks.sock", "timer"], 2, gone);
    let none = "cannot connect to none: there is no such socket; start the graph with --control";
    check(&["tap", "none"], 2, none);
    let file = ["run", "ticks.weave", "--control", "in.txt"];
    check(&file, 1, "in.txt exists and is not a socket");

    let run = ["run", "ticks.weave", "--control", "ticks.sock"];
    let (run, _) = started(path, &run);
    assert_eq!(
        tussah(path, &["tap", "ticks.sock", "timer", "--count=1"]).0,
        0
    );
    kill_process(Pid::from_child(&run), Signal::TERM).expect("the command runs");
    assert_eq!(ended(run).0, Some(0));
}
