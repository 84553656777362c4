//! The command line of a program with modules of its own.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use clap::{FromArgMatches as _, Subcommand as _};
use tussah::flow::Modules;
use tussah::flow::cli::{GraphCommand, Others, Program};
use tussah::modules::{Logger, Timer};

use super::build::Unmade;

/// The arguments of the process that a test starts, one a line.
const ARGUMENTS: &str = "TUSSAH_TEST_GRAPH_COMMAND";

/// Not a test: the process that [`graph_command`] starts.
#[test]
fn the_command() {
    let Ok(arguments) = std::env::var(ARGUMENTS) else {
        return;
    };
    let command = GraphCommand::augment_subcommands(clap::Command::new("numbers"));
    let matches = command.get_matches_from(["numbers"].into_iter().chain(arguments.lines()));
    let command = GraphCommand::from_arg_matches(&matches).expect("a command");
    let modules = Modules::new()
        .with::<Timer>("Timer")
        .with::<Logger<u64>>("Logger")
        .with::<Unmade>("Unmade");
    let code = command.run(&Program {
        name: "numbers".to_owned(),
        modules,
        others: Others::Refused,
    });
    let code = (0..=2).find(|&it| code == ExitCode::from(it));
    std::process::exit(code.expect("a code of the documentation").into());
}

/// Runs a command in a process of its own. Returns its exit code and its output.
fn graph_command(directory: &Path, arguments: &[&str]) -> (i32, String, String) {
    graph_command_with(directory, arguments, "")
}

/// Runs a command as [`graph_command`] does, with a standard input.
fn graph_command_with(directory: &Path, arguments: &[&str], input: &str) -> (i32, String, String) {
    let this = std::env::current_exe().expect("a test is a program");
    let mut child = Command::new(this)
        .args(["--exact", "cli::the_command", "--nocapture"])
        .env(ARGUMENTS, arguments.join("\n"))
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    // A command that reads nothing may have ended already.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().expect("the command ends");
    let text = |bytes| String::from_utf8(bytes).expect("the output is text");
    let code = output.status.code().expect("the command ends by itself");
    (code, text(output.stdout), text(output.stderr))
}

/// Returns a directory with this graph.
fn graph(text: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("graph.weave"), text).expect("a file");
    directory
}

#[test]
fn run_prints_what_modules_log() {
    let text = "use Timer, Logger graph G() { t = Timer(1 ms, 1) l = Logger(\"here\") t -> l }";
    let (code, _, stderr) = graph_command(graph(text).path(), &["run", "graph.weave"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("label=\"here\""), "{stderr}");
}

const UNMADE: &str = "use Timer, Unmade, Logger
graph Broken() { t = Timer(1 ms, 1) u = Unmade() t -> u }
graph Whole() { t = Timer(1 ms, 1) l = Logger() t -> l }
test \"broken\" of Broken() { drain }
test \"whole\" of Whole() { drain }
";

#[test]
fn an_init_that_panics_fails_run_and_its_test() {
    let directory = graph(UNMADE);
    let run = ["run", "graph.weave", "--graph", "Broken"];
    let (code, _, stderr) = graph_command(directory.path(), &run);
    let expected = "error: graph.weave:2:37: `u` cannot start: `init` panicked: it cannot be made";
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains(expected), "{stderr}");
    let (code, stdout, stderr) = graph_command(directory.path(), &["test", "graph.weave"]);
    assert_eq!(code, 1, "{stderr}");
    let results = "test broken ... FAILED\ntest whole ... ok\n";
    assert!(stdout.contains(results), "{stdout}");
    assert!(
        stderr.contains("`init` panicked: it cannot be made"),
        "{stderr}"
    );
}

#[test]
fn commands_go_on_after_a_file_that_they_cannot_read() {
    let directory = graph("use Timer graph G() { t = Timer(1 ms 1) }");
    let formatted = directory.path().join("other.weave");
    std::fs::write(&formatted, "graph   A() {}").expect("a file");
    let files = ["none.weave", "graph.weave", "neither.weave", "other.weave"];
    for command in ["check", "fmt", "test"] {
        let arguments: Vec<&str> = [command].into_iter().chain(files).collect();
        let (code, _, stderr) = graph_command(directory.path(), &arguments);
        assert_eq!(code, 2, "{stderr}");
        for expected in ["none.weave", "neither.weave"] {
            let expected = format!("error: cannot read {expected}");
            assert!(stderr.contains(&expected), "{command}: {stderr}");
        }
        let expected = " --> graph.weave:1:38";
        assert!(stderr.contains(expected), "{command}: {stderr}");
    }
    let text = std::fs::read_to_string(&formatted).expect("a file");
    assert_eq!(text, "graph A() {\n}\n");
}

#[test]
fn run_quotes_wrong_values_and_asks_for_missing_ones() {
    let text = "use Timer, Logger
        graph G(help: count, n: count, room: size) {
          t = Timer(1 ms, n) l = Logger() t -> l
        }";
    let arguments = ["run", "graph.weave", "--n", "2.0", "--room", "99999999TiB"];
    let (code, _, stderr) = graph_command(graph(text).path(), &arguments);
    assert_eq!(code, 2, "{stderr}");
    for expected in [
        "error: `help: count` is missing, and has no option: give it in the environment (G_HELP), \
         or in a file of --params\n",
        "error: --n: 2.0 is a number, expected a count, for example 10 or 2 k\n",
        "error: --room: 99999999TiB is too large\n",
    ] {
        assert!(stderr.contains(expected), "{stderr}");
    }
}

#[test]
fn run_refuses_dates_of_a_file() {
    let text = "use Timer, Logger graph G(n: count) { t = Timer(1 ms, n) l = Logger() t -> l }";
    let directory = graph(text);
    std::fs::write(directory.path().join("g.toml"), "n = 1979-05-27").expect("a file");
    let arguments = ["run", "graph.weave", "--params", "g.toml", "--workers", "1"];
    let (code, _, stderr) = graph_command(directory.path(), &arguments);
    assert_eq!(code, 2, "{stderr}");
    let expected = "error: `n` in g.toml:1: 1979-05-27 is a date or a time, expected a count, for \
                    example 10 or 2 k\n";
    assert!(stderr.contains(expected), "{stderr}");
}

#[test]
fn the_line_of_a_test_is_one_line_with_its_file() {
    let test = |name: &str| {
        let graph = "use Timer, Logger graph G() { t = Timer(1 ms, 1) l = Logger() t -> l }";
        format!("{graph}\ntest \"{name}\" of G() {{ drain }}\n")
    };
    let directory = graph(&test("one\\ntwo \u{1b}[2J"));
    std::fs::write(directory.path().join("other.weave"), test("three")).expect("a file");
    let (code, stdout, stderr) = graph_command(directory.path(), &["test", "graph.weave"]);
    assert_eq!(code, 0, "{stderr}");
    let line = "one\\ntwo \\u{1b}[2J ... ok\n";
    assert!(stdout.contains(&format!("\ntest {line}")), "{stdout}");
    let arguments = ["test", "graph.weave", "other.weave"];
    let (code, stdout, stderr) = graph_command(directory.path(), &arguments);
    assert_eq!(code, 0, "{stderr}");
    let lines = format!("test graph.weave: {line}test other.weave: three ... ok\n");
    assert!(stdout.contains(&lines), "{stdout}");
}

#[test]
fn tap_explains_that_a_file_is_not_a_socket() {
    let arguments = ["tap", "graph.weave"];
    let (code, _, stderr) = graph_command(graph("").path(), &arguments);
    assert_eq!(code, 2, "{stderr}");
    let expected = "error: cannot connect to graph.weave: it is not a socket; expected the socket \
                    of `run --control`\n";
    assert!(stderr.contains(expected), "{stderr}");
}

#[test]
fn draw_asks_for_a_graph() {
    let (code, _, stderr) = graph_command(graph("").path(), &["draw", "graph.weave"]);
    assert_eq!(code, 2, "{stderr}");
    let expected = "error: graph.weave contains no graph: expected one, such as \
                    `graph G { a -> b }`\n";
    assert!(stderr.contains(expected), "{stderr}");
}

#[test]
fn draw_does_not_overwrite_the_graph() {
    let text = "graph G() {\n}\n";
    let directory = graph(text);
    let path = directory.path().join("graph.weave");
    std::os::unix::fs::symlink(&path, directory.path().join("link.svg")).expect("a link");
    for output in ["graph.weave", "./graph.weave", "link.svg"] {
        let arguments = ["draw", "graph.weave", "-o", output];
        let (code, _, stderr) = graph_command(directory.path(), &arguments);
        assert_eq!(code, 2, "{stderr}");
        let expected =
            format!("error: cannot write the drawing to {output}: it is the file with the graph\n");
        assert!(stderr.contains(&expected), "{stderr}");
        assert_eq!(std::fs::read_to_string(&path).expect("a file"), text);
    }
    let arguments = ["draw", "graph.weave", "-o", "graph.svg"];
    let (code, _, stderr) = graph_command(directory.path(), &arguments);
    assert_eq!(code, 0, "{stderr}");
}

#[test]
fn fmt_writes_the_standard_input_to_the_standard_output() {
    let directory = graph("");
    let input = "graph   A() {}";
    let arguments = ["fmt", "/dev/stdin"];
    let (code, _, stderr) = graph_command_with(directory.path(), &arguments, input);
    assert_eq!(code, 2, "{stderr}");
    let expected = "error: cannot format /dev/stdin: it is not a regular file; `fmt -` formats the \
                    standard input\n";
    assert!(stderr.contains(expected), "{stderr}");
    for input in [input, "graph A() {\n}\n"] {
        let (code, stdout, stderr) = graph_command_with(directory.path(), &["fmt", "-"], input);
        assert_eq!(code, 0, "{stderr}");
        assert!(stdout.contains("\ngraph A() {\n}\n"), "{stdout}");
    }
    let arguments = ["fmt", "--check", "-"];
    let (code, stdout, stderr) = graph_command_with(directory.path(), &arguments, input);
    assert_eq!(code, 1, "{stderr}");
    assert!(
        stdout.contains("standard input is not formatted\n"),
        "{stdout}"
    );
}

#[test]
fn run_refuses_a_part_without_its_edges() {
    let text = "use Timer, Logger
graph In() { l = Logger<u64>() in -> l }
graph Out() { t = Timer(1 ms, 1) t -> out }
graph Optional(x: flag = true) {
  t = Timer(1 ms, 1) l = Logger() t -> l l -> out
  if !x { more = Logger<u64>() in -> more }
}
";
    let directory = graph(text);
    let run = |name: &str| {
        let arguments = ["run", "graph.weave", "--graph", name];
        let (code, _, stderr) = graph_command(directory.path(), &arguments);
        (code, stderr)
    };
    let (code, stderr) = run("In");
    assert_eq!(code, 2, "{stderr}");
    let expected = "error: no edge leads to `l`\n --> graph.weave:2:14\n";
    assert!(stderr.contains(expected), "{stderr}");
    let expected = "help: the input `in` of `In` has no edge if `In` runs alone; run a graph that \
                    contains it\n";
    assert!(stderr.contains(expected), "{stderr}");
    let (code, stderr) = run("Out");
    assert_eq!(code, 2, "{stderr}");
    let expected = "error: the output `out` of `t` must be connected\n --> graph.weave:3:15\n";
    assert!(stderr.contains(expected), "{stderr}");
    let (code, stderr) = run("Optional");
    assert_eq!(code, 0, "{stderr}");
}
